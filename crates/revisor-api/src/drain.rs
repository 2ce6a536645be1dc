//! [`Drain`]: how a server that is going away tells everyone who must know, in the order in which they must know it.
//!
//! 1. *Draining*: readiness fails, so that load balancers look elsewhere. Everything is still served.
//! 2. *Closing*: nothing new is accepted, connections finish what they have, watches end.
//! 3. *Aborting*: the patience is over, what is left is cut off.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// How far the way out has been walked. Only ever grows; zero stands for a server that has not set out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Not ready any more, and still serving.
    Draining = 1,
    /// Finishing what is under way.
    Closing = 2,
    /// Cutting off what did not finish.
    Aborting = 3,
}

/// A view of the server's way out. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Drain {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    phase: AtomicU8,
    changed: Arc<Notify>,
}

impl Drain {
    /// A server that has not been asked to stop.
    pub fn new() -> Drain {
        Drain::default()
    }

    /// Whether the server was asked to stop. It still serves then, but should not be sent new clients.
    pub fn draining(&self) -> bool {
        self.reached(Phase::Draining)
    }

    /// Completes when watches and other endless answers must end. They should end as if their timeout had come, so
    /// that clients resume elsewhere from the version they have.
    pub fn watches_should_end(&self) -> WatchEnd {
        self.wait(Phase::Closing)
    }

    pub(crate) fn wait(&self, phase: Phase) -> WatchEnd {
        WatchEnd { phase, shared: Arc::clone(&self.shared), waiting: None }
    }

    pub(crate) fn advance(&self, phase: Phase) {
        // Who waits relies on it that they are told of steps only.
        if self.shared.phase.fetch_max(phase as u8, Ordering::SeqCst) < phase as u8 {
            self.shared.changed.notify_waiters();
        }
    }

    fn reached(&self, phase: Phase) -> bool {
        self.shared.phase.load(Ordering::SeqCst) >= phase as u8
    }
}

/// Completes when the server reaches a step of its way out, see [`Drain::watches_should_end`].
///
/// It can be polled from within a [`crate::ByteSource`] without pinning, and costs about a hundred bytes while it
/// waits: there is one per open watch.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct WatchEnd {
    phase: Phase,
    shared: Arc<Shared>,
    waiting: Option<Waiting>,
}

/// A subscription to the next step.
#[derive(Debug)]
struct Waiting {
    /// The step before it, as far as is known.
    after: u8,
    notified: Pin<Box<OwnedNotified>>,
    /// Who is woken.
    waker: Option<Waker>,
}

impl Future for WatchEnd {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let WatchEnd { phase, shared, waiting } = self.get_mut();
        loop {
            // The subscription is made before the phase is looked at: a change in between is then not missed.
            let current = waiting.get_or_insert_with(|| {
                let notified = Box::pin(Arc::clone(&shared.changed).notified_owned());
                Waiting { after: shared.phase.load(Ordering::SeqCst), notified, waker: None }
            });
            let reached = shared.phase.load(Ordering::SeqCst);
            if reached >= *phase as u8 {
                *waiting = None;
                return Poll::Ready(());
            }
            // Whoever waits is polled far more often than a server goes away, and all of them share a lock.
            if current.after == reached && current.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                return Poll::Pending;
            }
            if current.notified.as_mut().poll(cx).is_pending() {
                current.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            *waiting = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_wait_ends_at_its_phase_and_not_before() {
        let drain = Drain::new();
        assert!(!drain.draining());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut watch = drain.watches_should_end();
        let mut abort = drain.wait(Phase::Aborting);
        for (phase, draining, watch_ends, abort_ends) in [
            (Phase::Draining, true, false, false),
            (Phase::Closing, true, true, false),
            // A step back is no step.
            (Phase::Draining, true, true, false),
            (Phase::Aborting, true, true, true),
        ] {
            drain.advance(phase);
            assert_eq!(drain.draining(), draining, "{phase:?}");
            assert_eq!(Pin::new(&mut watch).poll(&mut cx).is_ready(), watch_ends, "{phase:?}");
            assert_eq!(Pin::new(&mut abort).poll(&mut cx).is_ready(), abort_ends, "{phase:?}");
        }
        drain.watches_should_end().await;
    }

    #[tokio::test]
    async fn sleeping_waiters_are_woken() {
        let drain = Drain::new();
        let waiters: Vec<_> = (0..64).map(|_| tokio::spawn(drain.watches_should_end())).collect();
        tokio::task::yield_now().await;
        drain.advance(Phase::Draining);
        drain.advance(Phase::Closing);
        for waiter in waiters {
            waiter.await.expect("a waiter does not panic");
        }
    }
}
