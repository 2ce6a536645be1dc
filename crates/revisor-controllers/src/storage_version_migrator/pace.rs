//! [`Pace`]: how many objects of a migration are next, and when.
//!
//! Those of a portion share a sync of the disk, and whoever writes meanwhile waits until it is over. So portions are as
//! small as the disk allows: each has what has become due while the one before was made and written. On a quick disk
//! that is twenty objects, and others wait hardly longer than behind a write like their own; on a slow one it is more, so
//! that the pace is kept.

use std::sync::Arc;
use std::time::Duration;

use crate::Clock;

/// From one object to the next: 5,560 a second.
const BETWEEN: Duration = Duration::from_micros(180);

/// How many objects a portion has at least, or each would cost a sync of its own.
const FEWEST: u32 = 20;

/// How many it has at most. What is behind by more than that stays behind.
const MOST: u32 = 100;

/// The pace of all migrations of one pass.
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    /// When the last object was due that has had its turn.
    reached: Duration,
}

impl Pace {
    /// The first portion is due soon.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Pace {
        Pace { reached: clock.uptime(), clock }
    }

    /// Waits until there is enough for a portion, and says how many objects it has.
    pub(super) async fn next(&mut self) -> usize {
        self.clock.sleep_until(self.reached + BETWEEN * FEWEST).await;
        let behind = self.clock.uptime().saturating_sub(self.reached);
        if behind > BETWEEN * MOST {
            self.reached += behind - BETWEEN * MOST;
        }
        let due = (behind.as_micros() / BETWEEN.as_micros()).clamp(FEWEST.into(), MOST.into()) as u32;
        self.reached += BETWEEN * due;
        due as usize
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use time::OffsetDateTime;

    use super::*;
    use crate::Sleep;

    /// Whoever sleeps moves it.
    #[derive(Default)]
    struct Moved(Mutex<Duration>);

    impl Moved {
        fn pass(&self, time: Duration) {
            *self.0.lock().expect("nobody panics") += time;
        }
    }

    impl Clock for Moved {
        fn now(&self) -> OffsetDateTime {
            OffsetDateTime::UNIX_EPOCH + self.uptime()
        }

        fn uptime(&self) -> Duration {
            *self.0.lock().expect("nobody panics")
        }

        fn sleep_until(&self, uptime: Duration) -> Sleep {
            let mut now = self.0.lock().expect("nobody panics");
            *now = uptime.max(*now);
            Box::pin(std::future::ready(()))
        }
    }

    #[tokio::test]
    async fn portions_are_as_small_as_they_can_be_without_falling_behind() {
        for (what, microseconds, portion, rate) in [
            ("next to nothing", 100, 20..=20, 5_500..5_600),
            ("as long as the smallest portion may", 3_600, 20..=20, 5_500..5_600),
            ("longer", 5_000, 27..=28, 5_500..5_600),
            ("as long as the largest portion may", 18_000, 100..=100, 5_500..5_600),
            ("too long", 50_000, 100..=100, 1_990..2_010),
        ] {
            let clock = Arc::new(Moved::default());
            let mut pace = Pace::new(clock.clone());
            let mut objects = 0;
            for nth in 0.. {
                if clock.uptime() >= Duration::from_secs(10) {
                    break;
                }
                let size = pace.next().await;
                assert!(nth < 3 || portion.contains(&size), "a portion takes {what}, and the {nth}th has {size}");
                objects += size;
                clock.pass(Duration::from_micros(microseconds));
            }
            assert!(rate.contains(&(objects / 10)), "a portion takes {what}, and in 10 s there are {objects}");
        }
    }

    #[tokio::test]
    async fn after_a_rest_it_does_not_hurry() {
        let clock = Arc::new(Moved::default());
        let mut pace = Pace::new(clock.clone());
        clock.pass(Duration::from_secs(60));
        assert_eq!(pace.next().await, 100, "of all that was due meanwhile");
        assert_eq!(pace.next().await, 20);
        assert_eq!(clock.uptime(), Duration::from_micros(60_003_600));
    }
}
