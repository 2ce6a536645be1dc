//! [`Pace`]: when a resource tells those who watch it of what is new.
//!
//! To wake a watcher and to send it a TLS record costs more than an event itself. So a crowd is told of several events
//! together: after it was woken it is left alone for a while, and if events came together before, the next one waits for
//! its company. What comes alone is told at once, and few who watch are told of everything at once.

use std::time::Duration;

use tokio::time::Instant;

/// For how long those who were woken are left alone afterwards, for each of them: a few times what it costs to wake one
/// and to send it an event, so that while many watch and much is written, that is paid for several events at once.
const REST_PER_WAKER: Duration = Duration::from_micros(40);
/// Below this a rest is none.
const SHORTEST_REST: Duration = Duration::from_millis(1);
const LONGEST_REST: Duration = Duration::from_millis(5);
/// How long an event waits for others that are expected, as a part of the rest.
const PART_FOR_COMPANY: u32 = 2;

/// The pace of one resource.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Nothing is told before.
    not_before: Option<Instant>,
    /// Whether there is news that waits for that.
    has_waited: bool,
    /// How many were woken since the last rest began, and of how many events they were told.
    woken: usize,
    events: usize,
    /// How long the crowd was left alone last; nothing for a few.
    rest: Option<Duration>,
    /// Whether it was told of several events.
    came_together: bool,
}

impl Pace {
    /// Until when the news that is there has to wait, if it has to.
    pub(crate) fn waits_until(&mut self, now: Instant) -> Option<Instant> {
        if let Some(until) = self.not_before.filter(|until| now < *until) {
            self.has_waited = true;
            return Some(until);
        }
        if self.has_waited || !self.came_together {
            return None;
        }
        self.has_waited = true;
        self.not_before = self.rest.map(|rest| now + rest / PART_FOR_COMPANY);
        self.not_before
    }

    /// So many were woken and are told of so many events.
    pub(crate) fn told(&mut self, woken: usize, events: usize) {
        self.woken += woken;
        self.events += events;
    }

    /// There is no more news.
    pub(crate) fn rest(&mut self, now: Instant) {
        let woken = u32::try_from(self.woken).unwrap_or(u32::MAX);
        let rest = REST_PER_WAKER.saturating_mul(woken).min(LONGEST_REST);
        self.rest = Some(rest).filter(|rest| *rest >= SHORTEST_REST);
        self.came_together = self.events > 1;
        self.not_before = self.rest.map(|rest| now + rest);
        self.has_waited = false;
        (self.woken, self.events) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For how many milliseconds news that comes `after` so many of them has to wait, beginning with the first moment.
    fn waits(pace: &mut Pace, start: Instant, after: u64) -> u64 {
        let now = start + Duration::from_millis(after);
        pace.waits_until(now).map_or(0, |until| u64::try_from((until - now).as_millis()).expect("is short"))
    }

    #[test]
    fn a_crowd_waits_for_what_comes_together() {
        let start = Instant::now();
        for (name, woken, events, after, want) in [
            ("few are told at once", 10, 5, 0, 0),
            ("a crowd is left alone", 100, 1, 1, 3),
            ("a lone event goes out", 100, 1, 5, 0),
            ("so it does the day after", 100, 1, 86_400_000, 0),
            ("where several came, others are waited for", 100, 2, 5, 2),
            ("however many watch, not for long", 10_000, 2, 2, 3),
        ] {
            let mut pace = Pace::default();
            assert_eq!(waits(&mut pace, start, 0), 0, "{name}: nobody was woken yet");
            for _ in 0..events {
                pace.told(woken / events, 1);
            }
            pace.rest(start);
            assert_eq!(waits(&mut pace, start, after), want, "{name}");
            assert_eq!(waits(&mut pace, start, after + want), 0, "{name}: it has waited");
        }
    }

    #[test]
    fn who_waited_in_vain_does_not_wait_again() {
        let start = Instant::now();
        let mut pace = Pace::default();
        pace.told(100, 3);
        pace.rest(start);
        assert_eq!(waits(&mut pace, start, 10), 2);
        assert_eq!(waits(&mut pace, start, 12), 0);
        pace.told(100, 1);
        pace.rest(start + Duration::from_millis(12));
        assert_eq!(waits(&mut pace, start, 20), 0, "the one before came alone");
    }
}
