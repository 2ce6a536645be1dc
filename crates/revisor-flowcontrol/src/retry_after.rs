//! [`RetryAfter`]: for how long those are sent away who cannot be served, by how many that were lately.
//!
//! The original's `dropped_requests_tracker.go`: doubled when requests keep being refused, one less when they are few.

/// The longest time, in seconds.
const MAX: u64 = 32;

/// What a priority level tells those whom it refuses.
#[derive(Debug, Clone)]
pub struct RetryAfter {
    seconds: u64,
    raised: u64,
    current: (u64, u64),
    /// Seconds in which requests were refused, and how many.
    history: Vec<(u64, u64)>,
}

impl Default for RetryAfter {
    fn default() -> RetryAfter {
        RetryAfter { seconds: 1, raised: 0, current: (0, 0), history: Vec::new() }
    }
}

impl RetryAfter {
    /// A request is refused at this second; after how many it may come back.
    pub fn refuse(&mut self, now: u64) -> u64 {
        if self.current.0 == now {
            self.current.1 += 1;
            return self.seconds;
        }
        self.remember();
        self.current = (now, 1);
        self.adjust(now);
        self.seconds
    }

    fn remember(&mut self) {
        let (second, _) = self.current;
        self.history.push(self.current);
        let longest = (2 * self.seconds).min(MAX);
        self.history.retain(|(at, _)| second.saturating_sub(*at) <= longest);
    }

    fn adjust(&mut self, now: u64) {
        let recent = self.history.iter().rev().take_while(|(at, _)| now.saturating_sub(*at) <= self.seconds);
        let refused: u64 = recent.filter(|(at, _)| *at < now).map(|(_, count)| count).sum();
        if now.saturating_sub(self.raised) >= self.seconds && refused >= 3 * self.seconds {
            self.seconds = (self.seconds * 2).min(MAX);
            self.raised = now;
        } else if refused < self.seconds && self.seconds > 1 {
            self.seconds -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_are_refused_often_stay_away_longer() {
        let mut after = RetryAfter::default();
        let mut told = Vec::new();
        for second in 1000..1012 {
            for _ in 0..20 {
                told.push(after.refuse(second));
            }
        }
        assert_eq!(told[0], 1);
        assert_eq!((told[20], told[40], told[239]), (2, 2, 8));
        assert!(told.is_sorted());
        let calm: Vec<u64> = (2000..2003).map(|second| after.refuse(second * 10)).collect();
        assert_eq!(calm, [7, 6, 5]);
    }
}
