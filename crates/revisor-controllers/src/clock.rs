//! [`Clock`]: the time, and waiting for it. It is passed in, so that tests own it and never sleep.

use std::pin::Pin;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

/// Ends when the time has come.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The time as controllers see it.
pub trait Clock: Send + Sync + 'static {
    /// The time of day, which people may set.
    fn now(&self) -> OffsetDateTime;

    /// The time since some moment in the past. It never goes back.
    fn uptime(&self) -> Duration;

    /// Waits until the uptime is this.
    fn sleep_until(&self, uptime: Duration) -> Sleep;
}

/// The machine's clock.
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// The machine's clock; its uptime begins now.
    pub fn start() -> SystemClock {
        SystemClock { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep_until(&self, uptime: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(uptime.saturating_sub(self.uptime())))
    }
}
