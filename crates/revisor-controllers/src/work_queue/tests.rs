//! The queue on a clock that is set by hand.

use std::sync::atomic::{AtomicU64, Ordering};

use time::OffsetDateTime;

use super::*;
use crate::Sleep;

/// A clock that stands still until it is set. Nobody can wait for it.
#[derive(Default)]
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + self.uptime()
    }

    fn uptime(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, _: Duration) -> Sleep {
        Box::pin(std::future::pending())
    }
}

struct Bench {
    clock: Arc<SetClock>,
    queue: WorkQueue<&'static str>,
}

impl Bench {
    fn new() -> Bench {
        let clock = Arc::new(SetClock::default());
        let backoff = Backoff { first: Duration::from_millis(10), longest: Duration::from_millis(35) };
        let tally = Arc::new(QueueTally::new("bench", clock.clone()));
        Bench { queue: WorkQueue::new(clock.clone(), backoff, tally), clock }
    }

    fn set_clock(&self, millis: u64) {
        self.clock.0.store(millis, Ordering::SeqCst);
    }

    /// The next key, if there is one now.
    fn poll(&self) -> Option<Turn<'_, &'static str>> {
        let next = std::pin::pin!(self.queue.next());
        match next.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
            std::task::Poll::Ready(turn) => Some(turn),
            std::task::Poll::Pending => None,
        }
    }

    #[track_caller]
    fn expect(&self, key: Option<&str>) {
        assert_eq!(self.poll().map(|turn| turn.key), key);
    }
}

#[test]
fn a_key_waits_once_and_is_worked_on_by_one() {
    let bench = Bench::new();
    for key in ["a", "b", "a"] {
        bench.queue.add(key);
    }
    let a = bench.poll().expect("a is there");
    assert_eq!(a.key, "a");
    bench.queue.add("a");
    bench.queue.add("a");
    bench.expect(Some("b"));
    bench.expect(None);
    a.end(Outcome::Done);
    bench.expect(Some("a"));
    bench.expect(None);
}

#[test]
fn pauses_double_up_to_a_bound_and_end_with_success() {
    let bench = Bench::new();
    bench.queue.add("a");
    let mut now = 0;
    for pause in [10, 20, 35, 35] {
        bench.poll().expect("it is due").end(Outcome::Retry);
        bench.set_clock(now + pause - 1);
        bench.expect(None);
        now += pause;
        bench.set_clock(now);
    }
    bench.poll().expect("it is due").end(Outcome::Done);
    bench.queue.add("a");
    bench.poll().expect("it is there").end(Outcome::RetryAfter(Duration::from_millis(30)));
    bench.set_clock(now + 29);
    bench.expect(None);
    bench.set_clock(now + 30);
    bench.expect(Some("a"));
}

#[test]
fn what_becomes_of_keys_is_counted() {
    let bench = Bench::new();
    for key in ["a", "b", "a"] {
        bench.queue.add(key);
    }
    bench.set_clock(5);
    let a = bench.poll().expect("a is there");
    bench.set_clock(25);
    let sample = bench.queue.tally.sample();
    assert_eq!((sample.name, sample.depth, sample.adds, sample.retries), ("bench", 1, 2, 0));
    assert_eq!((sample.unfinished, sample.longest), (Duration::from_millis(20), Duration::from_millis(20)));
    assert_eq!((sample.waited.count, sample.waited.sum), (1, 0.005));
    a.end(Outcome::Retry);
    let sample = bench.queue.tally.sample();
    assert_eq!((sample.retries, sample.unfinished, sample.worked.count), (1, Duration::ZERO, 1));
    // Twenty milliseconds are within a tenth of a second, and not within a hundredth.
    assert_eq!(sample.worked.buckets, [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    bench.set_clock(35);
    bench.expect(Some("b"));
    bench.expect(Some("a"));
    assert_eq!(bench.queue.tally.sample().adds, 3);
}

#[test]
fn what_comes_earlier_counts() {
    let bench = Bench::new();
    for (key, millis) in [("a", 20), ("a", 10), ("b", 15), ("b", 25)] {
        bench.queue.add_after(key, Duration::from_millis(millis));
    }
    bench.queue.add("b");
    bench.expect(Some("b"));
    bench.expect(None);
    bench.set_clock(10);
    bench.expect(Some("a"));
    bench.set_clock(100);
    bench.expect(None);
}
