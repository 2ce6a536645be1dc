//! [`QueueSet`]: the seats of one priority level, and the queues of those who wait for them.
//!
//! Fair queuing by virtual time, as the original's `fairqueuing/queueset` has it: a meter R tells how much work every
//! queue that has any was given; a queue remembers at which reading its next request would begin, and the queue whose
//! next request would end first is served next. So a queue gets its share however much waits in the others, and a request
//! that takes many seats counts for as much as it is.
//!
//! Nothing here waits or knows the time. Whoever holds a `QueueSet` tells it what happens and when, and wakes those whom
//! [`woken`](QueueSet::woken) names. On the way of a request for which there is a seat nothing is allocated.

mod dispatch;
mod queue;
mod readings;
mod requests;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::{Moment, Queuing, SchemaTally, SeatDemand, SeatSeconds, WorkEstimate};
use queue::Queue;
pub use queue::QueueReading;
pub use readings::Counts;
use readings::{DispatchReading, Timings};
use requests::{Phase, Request, Requests};
pub use requests::{RequestId, RequestReading};

/// How long a request is thought to take when its turn is found out. What it really took is settled afterwards.
const SERVICE_TIME: Duration = Duration::from_millis(3);

/// By how much the meter is wound back before it overflows, and when.
const WIND_BACK: SeatSeconds = SeatSeconds::MAX.half();

/// The requests of one priority level. `T` is what the caller knows of a request.
#[derive(Debug)]
pub struct QueueSet<T> {
    queuing: Queuing,
    limit: usize,
    /// May be more than are wanted, for as long as there is something in them.
    queues: Vec<Queue>,
    requests: Requests<T>,
    meter: SeatSeconds,
    metered: Moment,
    /// The queue that was served last.
    robin: usize,
    last_joined: usize,
    /// How many queues have requests that wait or are served, and the seats of the latter.
    active: usize,
    seats_of_queues: usize,
    waiting: usize,
    seats_waiting: usize,
    executing: usize,
    seats_in_use: usize,
    joined: usize,
    counts: Counts,
    demand: SeatDemand,
    tallies: Vec<SchemaTally>,
    woken: Vec<RequestId>,
    timings: Timings,
    dispatch: Option<DispatchReading>,
}

/// A request that comes.
#[derive(Debug)]
pub struct Arrival<T> {
    /// What the caller knows of it.
    pub payload: T,
    /// The [tally](QueueSet::tally_of) of its schema.
    pub schema: usize,
    /// The hash of its flow.
    pub hash: u64,
    /// How much work it is.
    pub work: WorkEstimate,
    /// The watches that will be told of it, if it is a write.
    pub watches: Option<usize>,
}

/// What became of a request that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// It has its seats.
    Executing(RequestId),
    /// It waits for them.
    Waiting(RequestId),
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// All seats are taken, and nobody waits at this level.
    ConcurrencyLimit,
    /// Its queue is full.
    QueueFull,
    /// It has waited for too long.
    TimeOut,
}

/// What becomes of the seats of a request that was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// They are free.
    Released,
    /// They are to be [released](QueueSet::release) after this time: others still work on what it did.
    Lingers(Duration),
}

impl<T> QueueSet<T> {
    /// A level with this configuration and so many seats.
    pub fn new(queuing: Queuing, limit: usize, denominator: usize, now: Moment) -> QueueSet<T> {
        let mut set = QueueSet {
            queuing,
            limit,
            queues: Vec::new(),
            requests: Requests::default(),
            meter: SeatSeconds::ZERO,
            metered: now,
            robin: 0,
            last_joined: 0,
            active: 0,
            seats_of_queues: 0,
            waiting: 0,
            seats_waiting: 0,
            executing: 0,
            seats_in_use: 0,
            joined: 0,
            counts: Counts::default(),
            demand: SeatDemand::new(now),
            tallies: Vec::new(),
            woken: Vec::new(),
            timings: Timings::new(now),
            dispatch: None,
        };
        set.configure(queuing, limit, denominator, now);
        set
    }

    /// Changes the configuration. Queues that are too many go when they are empty.
    pub fn configure(&mut self, queuing: Queuing, limit: usize, denominator: usize, now: Moment) {
        self.sync(now);
        let mut room = 1;
        if let Queuing::Queue { queues, length_limit, .. } = queuing {
            if queues > self.queues.len() {
                self.queues.resize_with(queues, Queue::default);
            }
            room = queues * length_limit.max(1);
        }
        self.queuing = queuing;
        self.limit = limit;
        let denominator = denominator.max(1) as f64;
        self.timings.waiting.set_denominator(room as f64, now);
        self.timings.executing.set_denominator(denominator, now);
        self.timings.seats.set_denominator(denominator, now);
        self.timings.demand.set_denominator(denominator, now);
        self.dispatch_all(now, None);
    }

    /// Where the requests of a schema are counted.
    pub fn tally_of(&mut self, schema: &str) -> usize {
        if let Some(at) = self.tallies.iter().position(|tally| tally.schema == schema) {
            self.tallies[at].is_current = true;
            return at;
        }
        // The place of one that is no more, so that they do not become more and more.
        match self.tallies.iter().position(|tally| !tally.is_current && tally.is_idle()) {
            Some(at) => {
                self.tallies[at] = SchemaTally::new(schema);
                at
            }
            None => {
                self.tallies.push(SchemaTally::new(schema));
                self.tallies.len() - 1
            }
        }
    }

    /// Schemas that are not asked for after this are no more.
    pub fn forget_schemas(&mut self) {
        self.tallies.iter_mut().for_each(|tally| tally.is_current = false);
    }

    /// A request comes.
    pub fn start(&mut self, arrival: Arrival<T>, now: Moment) -> Result<Started, Rejection> {
        self.sync(now);
        let seats = arrival.work.max_seats();
        let tally = &mut self.tallies[arrival.schema];
        tally.estimated_seats.observe(seats as f64);
        if let Some(watches) = arrival.watches {
            tally.watch_counts.observe(watches as f64);
        }
        let Queuing::Queue { dealer, length_limit, .. } = self.queuing else {
            if !self.has_room_for(seats) {
                return Err(self.reject(arrival.schema, Rejection::ConcurrencyLimit));
            }
            let id = self.requests.insert(Request::new(arrival, None, self.meter, now, SERVICE_TIME));
            self.execute(id, now);
            return Ok(Started::Executing(id));
        };
        let queue = self.choose_queue(&dealer.deal(arrival.hash));
        if self.seats_in_use >= self.limit && self.queues[queue].waiting.len() >= length_limit {
            self.bound(queue);
            return Err(self.reject(arrival.schema, Rejection::QueueFull));
        }
        let id = self.requests.insert(Request::new(arrival, Some(queue), self.meter, now, SERVICE_TIME));
        self.join(id, queue, now);
        self.dispatch_all(now, Some(id));
        Ok(match self.requests.get(id).phase {
            Phase::Executing(_) => Started::Executing(id),
            _ => Started::Waiting(id),
        })
    }

    /// Whether it is the turn of a request that waited.
    pub fn is_executing(&self, id: RequestId) -> bool {
        matches!(self.requests.get(id).phase, Phase::Executing(_))
    }

    /// What the caller knows of a request.
    pub fn payload_mut(&mut self, id: RequestId) -> &mut T {
        &mut self.requests.get_mut(id).payload
    }

    /// A request does not want to wait any longer; answers whether it still did. If not, it has its seats.
    pub fn cancel(&mut self, id: RequestId, now: Moment) -> bool {
        self.sync(now);
        let request = self.requests.get(id);
        let (Phase::Waiting, Some(queue)) = (request.phase, request.queue) else { return false };
        let (seats, schema, arrived) = (request.work.max_seats(), request.schema, request.arrived);
        self.leave_queue(id, queue, now);
        self.requests.remove(id);
        self.counts.cancelled += 1;
        self.reject(schema, Rejection::TimeOut);
        let tally = &mut self.tallies[schema];
        tally.waiting = (tally.waiting.0 - 1, tally.waiting.1 - seats);
        tally.waits[0].observe(now.since(arrived).as_secs_f64());
        self.want(now);
        self.bound(queue);
        true
    }

    /// A request was served, or given up.
    pub fn finish(&mut self, id: RequestId, is_watch: bool, now: Moment) -> Finished {
        self.sync(now);
        let request = self.requests.get_mut(id);
        let Phase::Executing(started) = request.phase else { return Finished::Released };
        request.phase = Phase::Lingering;
        let (queue, schema, work) = (request.queue, request.schema, request.work);
        let took = now.since(started);
        self.executing -= 1;
        self.timings.executing.set(self.executing as f64, now);
        let tally = &mut self.tallies[schema];
        tally.executing -= 1;
        tally.executions[usize::from(is_watch)].observe(took.as_secs_f64());
        if let Some(queue) = queue {
            self.touch(queue, |queue| queue.executing -= 1);
            // It was counted as what it was thought to be; now it is known what it was.
            let over = SERVICE_TIME.as_nanos() as f64 - took.as_nanos() as f64;
            let owed = SeatSeconds::of_nanos(work.initial_seats as f64, over);
            self.queues[queue].next = self.queues[queue].next.minus(owed);
            self.bound(queue);
        }
        if work.additional_latency > Duration::ZERO {
            self.dispatch_all(now, None);
            return Finished::Lingers(work.additional_latency);
        }
        self.free_seats(id, now);
        self.dispatch_all(now, None);
        Finished::Released
    }

    /// The seats of a request that lingered are free.
    pub fn release(&mut self, id: RequestId, now: Moment) {
        self.sync(now);
        self.free_seats(id, now);
        self.dispatch_all(now, None);
    }

    /// The next of those that got their seats after they had waited; until there is none.
    pub fn woken(&mut self) -> Option<&mut T> {
        let id = self.woken.pop()?;
        Some(&mut self.requests.get_mut(id).payload)
    }

    /// Lets the meter run: all queues that have requests share the seats alike since it was looked at last.
    fn sync(&mut self, now: Moment) {
        let passed = now.since(self.metered);
        self.metered = self.metered.max(now);
        if self.active == 0 {
            return;
        }
        let busy = (self.seats_of_queues + self.seats_waiting).min(self.limit);
        self.meter = self.meter.plus(SeatSeconds::of(busy as f64 / self.active as f64, passed));
        if self.meter >= WIND_BACK.plus(WIND_BACK.half()) {
            self.wind_back();
        }
    }

    fn wind_back(&mut self) {
        self.meter = self.meter.minus(WIND_BACK);
        self.counts.epochs += 1;
        for queue in &mut self.queues {
            if !queue.is_active() {
                // Its next request sets it.
                queue.next = SeatSeconds::ZERO;
                continue;
            }
            queue.next = queue.next.minus(WIND_BACK);
            for id in &queue.waiting {
                let request = self.requests.get_mut(*id);
                request.arrived_at = request.arrived_at.minus(WIND_BACK);
            }
        }
    }

    /// The queue of a hand in which least work waits. The hand is looked through from another place each time, so that
    /// flows whose hands overlap are treated alike.
    fn choose_queue(&mut self, (hand, size): &([usize; crate::shuffle_sharding::MAX_HAND], usize)) -> usize {
        let offset = self.joined % size;
        self.joined += 1;
        let in_turn = (0..*size).map(|at| hand[(offset + at) % size]);
        in_turn.min_by_key(|queue| self.queues[*queue].work).expect("a hand has at least one card")
    }

    fn join(&mut self, id: RequestId, at: usize, now: Moment) {
        let (meter, request) = (self.meter, self.requests.get(id));
        let (seats, schema, work) = (request.work.max_seats(), request.schema, request.cost);
        let initial = request.work.initial_seats as usize;
        self.touch(at, |queue| {
            if !queue.is_active() {
                queue.next = meter;
            }
            queue.join(id, initial, seats, work);
        });
        self.last_joined = at;
        self.waiting += 1;
        self.seats_waiting += seats;
        let length = self.queues[at].waiting.len();
        let tally = &mut self.tallies[schema];
        tally.waiting = (tally.waiting.0 + 1, tally.waiting.1 + seats);
        tally.queue_lengths.observe(length as f64);
        self.timings.waiting.set(self.waiting as f64, now);
        self.want(now);
        self.bound(at);
    }

    /// Takes a request out of its queue, whatever becomes of it.
    fn leave_queue(&mut self, id: RequestId, at: usize, now: Moment) {
        let request = self.requests.get(id);
        let (seats, work, initial) = (request.work.max_seats(), request.cost, request.work.initial_seats as usize);
        self.touch(at, |queue| queue.leave(id, initial, seats, work));
        self.waiting -= 1;
        self.seats_waiting -= seats;
        self.timings.waiting.set(self.waiting as f64, now);
    }

    fn free_seats(&mut self, id: RequestId, now: Moment) {
        let request = self.requests.remove(id);
        let seats = request.work.max_seats();
        self.seats_in_use -= seats;
        self.tallies[request.schema].seats -= seats;
        self.timings.seats.set(self.seats_in_use as f64, now);
        self.want(now);
        if let Some(at) = request.queue {
            self.seats_of_queues -= seats;
            self.queues[at].seats_in_use -= seats;
            self.remove_spare_queue(at);
        }
    }

    /// A queue that is empty goes if there are more than are wanted.
    fn remove_spare_queue(&mut self, at: usize) {
        let wanted = match self.queuing {
            Queuing::Queue { queues, .. } => queues,
            _ => 0,
        };
        let queue = &self.queues[at];
        // Seats that linger still belong to it.
        if self.queues.len() <= wanted || queue.is_active() || queue.seats_in_use > 0 {
            return;
        }
        self.queues.remove(at);
        self.requests.close_gap(at);
        if self.robin >= at {
            self.robin = self.robin.saturating_sub(1);
        }
    }

    fn reject(&mut self, schema: usize, why: Rejection) -> Rejection {
        self.counts.rejected += 1;
        let tally = &mut self.tallies[schema];
        tally.rejected[why as usize] += 1;
        if why != Rejection::TimeOut {
            tally.waits[1].observe(0.0);
        }
        why
    }

    /// A request does not begin before it came, in virtual time neither: a queue that uses less than its share does not
    /// save it up.
    fn bound(&mut self, at: usize) {
        let queue = &mut self.queues[at];
        if let Some(oldest) = queue.waiting.front() {
            queue.next = queue.next.max(self.requests.get(*oldest).arrived_at);
        }
    }

    fn want(&mut self, now: Moment) {
        let wanted = self.seats_in_use + self.seats_waiting;
        self.demand.set(wanted, now);
        self.timings.demand.set(wanted as f64, now);
    }

    /// Changes a queue, and keeps count of those that have requests.
    fn touch(&mut self, at: usize, change: impl FnOnce(&mut Queue)) {
        let queue = &mut self.queues[at];
        let was = queue.is_active();
        change(queue);
        self.active = self.active + usize::from(queue.is_active()) - usize::from(was);
    }
}
