//! [`Arrivals`]: those who wait until sinks were told of a revision. Each is woken when it is there, and for no other: of
//! many who write at once, everyone would else be woken by the write of everybody.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use revisor_version::Revision;
use tokio::sync::oneshot;

#[derive(Default)]
pub(crate) struct Arrivals {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How far sinks were told.
    reached: Option<Revision>,
    /// By what they wait for; the number tells those apart who wait for the same.
    waiting: BTreeMap<(Revision, u64), oneshot::Sender<()>>,
    count: u64,
}

/// One who waits. To drop it gives the place free.
struct Place<'a> {
    arrivals: &'a Arrivals,
    key: (Revision, u64),
}

impl Arrivals {
    /// Waits until sinks were told of everything up to a revision.
    pub(crate) async fn reach(&self, revision: Option<Revision>) {
        let Some(revision) = revision else { return };
        let (place, arrived) = {
            let mut state = self.state();
            if state.reached >= Some(revision) {
                return;
            }
            let (sender, arrived) = oneshot::channel();
            state.count += 1;
            let key = (revision, state.count);
            state.waiting.insert(key, sender);
            (Place { arrivals: self, key }, arrived)
        };
        // The sender is part of this very value, and goes only when it has sent.
        let _ = arrived.await;
        drop(place);
    }

    /// Says how far sinks were told. That may be less than before, if etcd was set back.
    pub(crate) fn arrive(&self, reached: Option<Revision>) {
        let arrived = {
            let mut state = self.state();
            state.reached = reached;
            let Some(reached) = reached else { return };
            let later = state.waiting.split_off(&(reached.next(), 0));
            std::mem::replace(&mut state.waiting, later)
        };
        for one in arrived.into_values() {
            // Who does not wait any more need not know.
            let _ = one.send(());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.arrivals.state().waiting.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn at(number: u64) -> Option<Revision> {
        Revision::new(number)
    }

    #[test]
    fn everyone_is_woken_once_when_what_they_wait_for_is_there() {
        let arrivals = Arrivals::default();
        let (wakes, later_wakes) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
        let (waker, later_waker) = (Waker::from(wakes.clone()), Waker::from(later_wakes.clone()));
        let (mut context, mut later_context) = (Context::from_waker(&waker), Context::from_waker(&later_waker));
        let (mut one, mut later) = (pin!(arrivals.reach(at(5))), pin!(arrivals.reach(at(7))));
        assert!(one.as_mut().poll(&mut context).is_pending() && later.as_mut().poll(&mut later_context).is_pending());
        arrivals.arrive(at(4));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
        arrivals.arrive(at(6));
        assert!(one.as_mut().poll(&mut context).is_ready());
        assert_eq!([&wakes, &later_wakes].map(|wakes| wakes.0.load(Ordering::Relaxed)), [1, 0]);
        arrivals.arrive(at(7));
        assert!(later.as_mut().poll(&mut later_context).is_ready());
        assert!(pin!(arrivals.reach(at(7))).poll(&mut context).is_ready(), "what is there is not waited for");
    }

    #[test]
    fn who_gives_up_leaves_nothing_behind() {
        let arrivals = Arrivals::default();
        {
            let waiting = pin!(arrivals.reach(at(9)));
            assert!(waiting.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert!(arrivals.state().waiting.is_empty());
    }
}
