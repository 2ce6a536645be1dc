//! A level as its requests see it, on a clock that the test owns.

use super::*;
use crate::Dealer;

const MILLI: u64 = 1_000_000;

fn queues(queues: usize, hand_size: usize, length_limit: usize) -> Queuing {
    let dealer = Dealer::new(queues, hand_size).expect("can be dealt");
    Queuing::Queue { queues, dealer, hand_size, length_limit }
}

/// A level on its own clock, with one schema.
struct Level {
    set: QueueSet<&'static str>,
    now: u64,
}

impl Level {
    fn new(queuing: Queuing, limit: usize) -> Level {
        let mut set = QueueSet::new(queuing, limit, limit, Moment(0));
        set.tally_of("schema");
        Level { set, now: 0 }
    }

    fn start(&mut self, name: &'static str, hash: u64, seats: u64) -> Result<Started, Rejection> {
        let work = WorkEstimate { initial_seats: seats, ..WorkEstimate::ONE };
        let arrival = Arrival { payload: name, schema: 0, hash, work, watches: None };
        self.set.start(arrival, Moment(self.now))
    }

    fn executing(&mut self, name: &'static str, hash: u64, seats: u64) -> RequestId {
        match self.start(name, hash, seats) {
            Ok(Started::Executing(id)) => id,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn waiting(&mut self, name: &'static str, hash: u64, seats: u64) -> RequestId {
        match self.start(name, hash, seats) {
            Ok(Started::Waiting(id)) => id,
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Those who got their seats because of this.
    fn finish(&mut self, id: RequestId, after: u64) -> Vec<&'static str> {
        self.now += after;
        self.set.finish(id, false, Moment(self.now));
        self.woken()
    }

    fn woken(&mut self) -> Vec<&'static str> {
        let mut woken = Vec::new();
        while let Some(payload) = self.set.woken() {
            woken.push(*payload);
        }
        woken.reverse();
        woken
    }
}

#[test]
fn without_queues_one_too_many_is_refused() {
    let mut level = Level::new(Queuing::Reject, 2);
    let first = level.executing("a", 0, 1);
    level.executing("b", 0, 1);
    assert_eq!(level.start("c", 0, 1), Err(Rejection::ConcurrencyLimit));
    level.finish(first, MILLI);
    level.executing("d", 0, 1);
    let mut exempt = Level::new(Queuing::Exempt, 0);
    for _ in 0..100 {
        exempt.executing("e", 0, 5);
    }
    assert_eq!(exempt.set.occupancy(), (0, 100, 500));
}

#[test]
fn those_who_wait_are_served_in_turn_and_a_full_queue_refuses() {
    let mut level = Level::new(queues(1, 1, 2), 1);
    let first = level.executing("a", 0, 1);
    let second = level.waiting("b", 0, 1);
    let third = level.waiting("c", 0, 1);
    assert_eq!(level.start("d", 0, 1), Err(Rejection::QueueFull));
    assert_eq!(level.finish(first, MILLI), ["b"]);
    assert!(level.set.is_executing(second) && !level.set.is_executing(third));
    assert!(!level.set.cancel(second, Moment(level.now)), "it has its seat");
    assert!(level.set.cancel(third, Moment(level.now)), "it does not want to wait");
    assert_eq!(level.finish(second, MILLI), [""; 0]);
    assert!(level.set.is_idle());
    let tally = &level.set.tallies()[0];
    assert_eq!((tally.dispatched, tally.rejected), (2, [0, 1, 1]));
    assert_eq!(level.set.counts(), Counts { dispatched: 2, rejected: 2, cancelled: 1, ..Counts::default() });
    assert_eq!(level.set.queues().next().expect("one queue").work, SeatSeconds::ZERO);
}

/// The point of it all: a flow with a hundred requests in its queue does not keep another waiting behind them.
#[test]
fn a_flow_that_floods_does_not_keep_others_waiting() {
    let mut level = Level::new(queues(8, 1, 200), 1);
    // With one card in a hand, the hash is the queue.
    let mut running = level.executing("flood", 3, 1);
    for _ in 0..100 {
        level.waiting("flood", 3, 1);
    }
    level.waiting("modest", 5, 1);
    let mut served = Vec::new();
    for _ in 0..3 {
        served.extend(level.finish(running, 3 * MILLI));
        running = level.set.requests.executing().next().expect("one is served");
    }
    assert!(served.contains(&"modest"), "{served:?}");
}

#[test]
fn seats_are_shared_by_work_and_not_by_number() {
    let mut level = Level::new(queues(8, 1, 1000), 10);
    for _ in 0..200 {
        let _ = level.start("wide", 0, 5);
        let _ = level.start("narrow", 1, 1);
    }
    let mut seats = [0, 0];
    for _ in 0..150 {
        let since = |id: &RequestId| match level.set.requests.get(*id).phase {
            Phase::Executing(since) => since,
            _ => Moment::default(),
        };
        let id = level.set.requests.executing().min_by_key(since).expect("something is served");
        let is_wide = *level.set.payload_mut(id) == "wide";
        seats[usize::from(!is_wide)] += if is_wide { 5 } else { 1 };
        level.finish(id, 3 * MILLI);
    }
    let ratio = f64::from(seats[0]) / f64::from(seats[1]);
    assert!((0.5..2.0).contains(&ratio), "{seats:?}");
}

#[test]
fn a_request_wider_than_its_level_is_served_alone() {
    let mut level = Level::new(queues(4, 1, 10), 3);
    let first = level.executing("a", 0, 1);
    let wide = level.waiting("wide", 1, 10);
    let second = level.executing("b", 2, 1);
    assert_eq!(level.finish(first, MILLI), [""; 0], "it is not alone yet");
    assert_eq!(level.finish(second, MILLI), ["wide"]);
    assert!(level.set.is_executing(wide));
    assert_eq!(level.set.tallies()[0].not_accommodated, 3);
}

#[test]
fn seats_linger_after_the_answer() {
    let mut level = Level::new(queues(4, 1, 10), 4);
    let work = WorkEstimate { initial_seats: 1, final_seats: 8, additional_latency: Duration::from_millis(5) };
    let arrival = Arrival { payload: "write", schema: 0, hash: 0, work, watches: Some(80) };
    let Ok(Started::Executing(id)) = level.set.start(arrival, Moment(0)) else { panic!("there is room") };
    level.waiting("next", 1, 1);
    let lingers = Finished::Lingers(Duration::from_millis(10));
    assert_eq!(level.set.finish(id, false, Moment(MILLI)), lingers, "narrower and longer");
    assert!(level.woken().is_empty(), "its seats are still taken");
    assert_eq!(level.set.occupancy(), (1, 0, 4));
    level.set.release(id, Moment(11 * MILLI));
    assert_eq!(level.woken(), ["next"]);
}

#[test]
fn a_configuration_can_change_while_requests_wait() {
    let mut level = Level::new(queues(4, 1, 10), 1);
    let first = level.executing("a", 3, 1);
    let late = level.waiting("b", 2, 1);
    level.set.configure(queues(2, 1, 10), 1, 1, Moment(level.now));
    assert_eq!(level.set.queues().count(), 4, "as long as there is something in them");
    assert_eq!(level.finish(first, MILLI), ["b"]);
    assert_eq!(level.set.queues().count(), 3);
    level.finish(late, MILLI);
    assert_eq!(level.set.queues().count(), 2);
    let first = level.executing("c", 1, 1);
    level.waiting("d", 1, 1);
    level.set.configure(queues(2, 1, 10), 2, 2, Moment(level.now));
    assert_eq!(level.woken(), ["d"], "there are more seats");
    level.finish(first, MILLI);
}

#[test]
fn places_are_used_again() {
    let mut level = Level::new(queues(4, 2, 10), 2);
    for round in 0..1000 {
        let id = level.executing("a", round, 1);
        level.finish(id, MILLI);
    }
    assert_eq!(level.set.requests.places.len(), 1);
    for name in ["one", "two", "three"] {
        level.set.forget_schemas();
        level.set.tally_of(name);
    }
    assert_eq!(level.set.tallies().len(), 1, "schemas that are no more leave their place");
}

#[test]
fn what_is_under_way_can_be_read() {
    let mut level = Level::new(queues(4, 1, 10), 1);
    level.executing("a", 1, 1);
    level.now += MILLI;
    level.waiting("b", 1, 2);
    let shown: Vec<_> = level
        .set
        .requests()
        .map(|request| (*request.payload, request.schema, request.queue, request.position, request.started.is_some()))
        .collect();
    assert_eq!(shown, [("b", "schema", Some(1), Some(0), false), ("a", "schema", Some(1), None, true)]);
    let queue = level.set.queues().nth(1).expect("four queues");
    assert_eq!((queue.waiting, queue.executing, queue.max_seats, queue.initial_seats), (1, 1, 2, 2));
    assert_eq!(queue.work.to_string(), "0.00600000ss");
}

#[test]
fn the_meter_is_wound_back_before_it_overflows() {
    let mut level = Level::new(queues(2, 1, 10), 1);
    level.executing("a", 0, 1);
    level.waiting("b", 0, 1);
    let (before, high) = (level.set.queues[0].next, WIND_BACK.plus(WIND_BACK.half()));
    level.set.meter = high;
    level.set.queues[0].next = high.plus(before);
    level.set.sync(Moment(0));
    assert_eq!(level.set.counts().epochs, 1);
    assert_eq!(level.set.meter, WIND_BACK.half());
    assert_eq!(level.set.queues[0].next, WIND_BACK.half().plus(before));
}
