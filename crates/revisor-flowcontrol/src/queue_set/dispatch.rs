//! Whose turn it is: the queue whose oldest request would end first in virtual time.

use super::requests::Phase;
use super::{DispatchReading, QueueSet, RequestId, SERVICE_TIME};
use crate::{Moment, Queuing, SeatSeconds};

impl<T> QueueSet<T> {
    pub(super) fn dispatch_all(&mut self, now: Moment, new: Option<RequestId>) {
        while self.waiting != 0 && self.seats_in_use < self.limit {
            match self.dispatch_next(now) {
                Some(id) if Some(id) == new => {}
                Some(id) => self.woken.push(id),
                None => return,
            }
        }
    }

    /// Serves the request whose turn it is, if there are seats enough for it. If not, nobody else takes them.
    fn dispatch_next(&mut self, now: Moment) -> Option<RequestId> {
        let (at, reading) = self.next_queue()?;
        let id = *self.queues[at].waiting.front()?;
        let request = self.requests.get(id);
        let (seats, schema) = (request.work.max_seats(), request.schema);
        if !self.has_room_for(seats) {
            self.tallies[schema].not_accommodated += 1;
            return None;
        }
        self.leave_queue(id, at, now);
        let tally = &mut self.tallies[schema];
        tally.waiting = (tally.waiting.0 - 1, tally.waiting.1 - seats);
        self.robin = at;
        self.dispatch = Some(reading);
        let limit = self.limit;
        let request = self.requests.get_mut(id);
        request.fit(limit);
        let (cost, seats) = (request.cost, request.work.max_seats());
        self.touch(at, |queue| {
            queue.executing += 1;
            queue.seats_in_use += seats;
            queue.next = queue.next.plus(cost);
        });
        self.seats_of_queues += seats;
        self.execute(id, now);
        self.bound(at);
        Some(id)
    }

    /// The queue whose oldest request would end first, beginning behind the one that was served last.
    fn next_queue(&mut self) -> Option<(usize, DispatchReading)> {
        let only = self.queues.get(self.last_joined).filter(|queue| self.waiting == queue.waiting.len());
        let candidates = match only {
            Some(_) => self.last_joined..self.last_joined + 1,
            None => 0..self.queues.len(),
        };
        let first = if only.is_some() { 0 } else { self.robin + 1 };
        let count = candidates.len();
        let (mut best, mut end) = (None, SeatSeconds::MAX);
        let mut bounds = (SeatSeconds::MAX, SeatSeconds::ZERO);
        let mut discounted = bounds;
        for step in 0..count {
            let at = candidates.start + (first + step) % count;
            let queue = &self.queues[at];
            let Some(oldest) = queue.waiting.front() else { continue };
            bounds = (bounds.0.min(queue.next), bounds.1.max(queue.next));
            let left = queue.next.minus(SeatSeconds::of(queue.seats_in_use as f64, SERVICE_TIME));
            discounted = (discounted.0.min(left), discounted.1.max(left));
            let ends = queue.next.plus(self.requests.get(*oldest).cost);
            if ends < end {
                (best, end) = (Some(at), ends);
            }
        }
        let at = best?;
        Some((at, DispatchReading { r: self.meter, s: self.queues[at].next, bounds, discounted }))
    }

    pub(super) fn has_room_for(&self, seats: usize) -> bool {
        match self.queuing {
            Queuing::Exempt => true,
            // Wider than the level itself: it is served when it is alone.
            _ if seats > self.limit => self.executing == 0,
            _ => self.seats_in_use + seats <= self.limit,
        }
    }

    pub(super) fn execute(&mut self, id: RequestId, now: Moment) {
        let request = self.requests.get_mut(id);
        request.phase = Phase::Executing(now);
        let (seats, schema, waited) = (request.work.max_seats(), request.schema, now.since(request.arrived));
        self.executing += 1;
        self.seats_in_use += seats;
        self.counts.dispatched += 1;
        let tally = &mut self.tallies[schema];
        tally.dispatched += 1;
        tally.executing += 1;
        tally.seats += seats;
        if self.queuing != Queuing::Exempt {
            tally.waits[0].observe(waited.as_secs_f64());
        }
        self.timings.executing.set(self.executing as f64, now);
        self.timings.seats.set(self.seats_in_use as f64, now);
        self.want(now);
    }
}
