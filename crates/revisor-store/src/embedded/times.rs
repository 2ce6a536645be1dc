//! [`Times`]: when the writes of history happened, to the thousandth part of how long they are kept.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use revisor_version::Revision;

/// Into how many spans the age of history is divided. So much memory is enough to know how old a write is, however
/// many there are.
const SPANS: u32 = 1024;

/// Spans of writes, in order.
#[derive(Debug)]
pub(super) struct Times {
    grain: Duration,
    spans: VecDeque<Span>,
}

#[derive(Debug)]
struct Span {
    first: SystemTime,
    last: SystemTime,
    /// The last write of the span.
    revision: Revision,
}

impl Times {
    /// No writes yet, of a history that keeps them for `age`.
    pub(super) fn for_age(age: Duration) -> Times {
        Times { grain: age / SPANS, spans: VecDeque::new() }
    }

    /// Notes when the newest write happened. Times never run backwards.
    pub(super) fn push(&mut self, revision: Revision, time: SystemTime) {
        match self.spans.back_mut() {
            Some(span) if time.duration_since(span.first).unwrap_or_default() <= self.grain => {
                (span.last, span.revision) = (time, revision);
            }
            _ => self.spans.push_back(Span { first: time, last: time, revision }),
        }
    }

    /// The time of the newest write.
    pub(super) fn newest(&self) -> Option<SystemTime> {
        self.spans.back().map(|span| span.last)
    }

    /// The last write that happened at or before a moment which is `age` before `now`.
    pub(super) fn older_than(&self, age: Duration, now: SystemTime) -> Option<Revision> {
        // An age that reaches back before time itself is one that nothing has.
        let moment = now.checked_sub(age)?;
        let end = self.spans.partition_point(|span| span.last <= moment);
        self.spans.range(..end).next_back().map(|span| span.revision)
    }

    /// Forgets the times of the writes up to `oldest`.
    pub(super) fn forget(&mut self, oldest: Revision) {
        let newest = self.spans.len().saturating_sub(1);
        let gone = self.spans.partition_point(|span| span.revision <= oldest);
        // The time of the newest write is that which the next may not be before.
        self.spans.drain(..gone.min(newest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    #[test]
    fn writes_are_as_old_as_their_span() {
        let mut times = Times::for_age(Duration::from_secs(2048));
        for number in 1..=10 {
            times.push(at(number), time(number));
        }
        for (age, want) in [(u64::MAX, None), (20, None), (17, Some(3)), (16, Some(3)), (14, Some(6)), (0, Some(10))] {
            assert_eq!(times.older_than(Duration::from_secs(age), time(20)), want.map(at), "older than {age}");
        }
        times.forget(at(9));
        assert_eq!(times.older_than(Duration::ZERO, time(20)), Some(at(10)));
        times.forget(at(10));
        assert_eq!(times.newest(), Some(time(10)));
    }

    #[test]
    fn a_long_history_has_few_spans() {
        let mut times = Times::for_age(Duration::from_secs(3600));
        for number in 1..=100_000 {
            times.push(at(number), time(number / 28));
        }
        assert!(times.spans.len() <= 1024, "{}", times.spans.len());
    }
}
