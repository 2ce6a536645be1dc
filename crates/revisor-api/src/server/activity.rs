//! [`Activity`]: what happens on a connection, as far as others must know to judge whether it is used.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The requests of one connection, counted.
#[derive(Debug, Default)]
pub(super) struct Activity {
    running: AtomicUsize,
    begun: AtomicU64,
}

impl Activity {
    /// Counts a request that begins; whether it is the first.
    pub(super) fn begin(&self) -> bool {
        self.running.fetch_add(1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Counts the end of a request, which comes with the last byte of its answer.
    pub(super) fn end(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running() == 0
    }

    /// How many requests are being answered.
    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// How many requests there were.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Completes if no request has come within `time`.
    pub(super) async fn silent_for(&self, time: Duration) {
        tokio::time::sleep(time).await;
        if self.begun() > 0 {
            std::future::pending().await
        }
    }

    /// Completes when no request ran during a whole `period`.
    pub(super) async fn idle_for(&self, period: Duration) {
        loop {
            let before = self.begun();
            let idle_before = self.is_idle();
            tokio::time::sleep(period).await;
            if idle_before && self.begun() == before {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn idleness_needs_a_whole_period_without_requests() {
        let activity = Activity::default();
        let started = tokio::time::Instant::now();
        assert!(activity.begin(), "the first");
        let busy = async {
            tokio::time::sleep(Duration::from_secs(25)).await;
            activity.end();
        };
        let ((), ()) = tokio::join!(activity.idle_for(Duration::from_secs(10)), busy);
        // The period from 20 to 30 began busy; the one from 30 to 40 was idle.
        assert_eq!(started.elapsed(), Duration::from_secs(40));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_with_the_first_request() {
        let activity = Activity::default();
        let minute = Duration::from_secs(60);
        assert!(tokio::time::timeout(minute, activity.silent_for(minute / 2)).await.is_ok());
        activity.begin();
        activity.end();
        assert!(tokio::time::timeout(minute, activity.silent_for(minute / 2)).await.is_err());
        assert!(!activity.begin(), "not the first");
    }
}
