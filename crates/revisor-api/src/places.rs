//! [`Places`]: a bounded number of something that many users share, without queues: who has other things to wait for
//! may wait for a place beside them, and everybody else is told at once that there is none.
//!
//! As long as there is plenty, everybody has as much as they want. The last quarter is for those who have little: who
//! holds more than an eighth of all gets nothing of it. So one user can take much, but never the last of it.
//!
//! Who holds how much is counted in a few maps, each behind a lock of its own that is held for a lookup.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// How many maps there are.
const SHARDS: usize = 16;

/// How many users a map remembers who hold nothing, before they are forgotten.
const REMEMBERED: usize = 256;

/// A bounded number of places.
#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Zero for no limit.
    limit: usize,
    taken: AtomicUsize,
    hasher: RandomState,
    holders: [Mutex<HashMap<Box<str>, Arc<AtomicUsize>>>; SHARDS],
    /// Tells one of those who wait for a place that there may be one.
    freed: Notify,
}

/// Who asks for places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder<'a> {
    /// The user.
    pub(crate) name: &'a str,
    /// Whether they are never refused.
    pub(crate) is_privileged: bool,
}

/// There is no place for this user now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoPlace;

/// Places that somebody holds; free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Shared>,
    held: Arc<AtomicUsize>,
    amount: usize,
}

impl Places {
    /// So many places; zero for any number.
    pub(crate) fn new(limit: usize) -> Places {
        Places(Arc::new(Shared {
            limit,
            taken: AtomicUsize::new(0),
            hasher: RandomState::new(),
            holders: std::array::from_fn(|_| Mutex::default()),
            freed: Notify::new(),
        }))
    }

    /// So many places at once, if the user may have them.
    pub(crate) fn take(&self, holder: Holder<'_>, amount: usize) -> Result<Place, NoPlace> {
        let shared = &self.0;
        let held = shared.held_by(holder.name);
        let own = held.fetch_add(amount, Ordering::Relaxed) + amount;
        let is_only_one = own == amount;
        let fits = |all: usize| {
            let is_fair = all <= shared.plenty() || own <= shared.share() || is_only_one;
            shared.limit == 0 || (all <= shared.limit && is_fair)
        };
        // Who does not fit is never counted, not even for a moment in which others would be refused because of them.
        let added = |taken: usize| taken.checked_add(amount).filter(|all| fits(*all));
        let is_counted = shared.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).is_ok();
        if !is_counted {
            held.fetch_sub(amount, Ordering::Relaxed);
            if !holder.is_privileged {
                return Err(NoPlace);
            }
        }
        // As in the original, those who are served beyond the limit take nothing from others.
        Ok(Place { places: Arc::clone(shared), held, amount: if is_counted { amount } else { 0 } })
    }

    /// The same as soon as the user may have them. Nobody is promised to be the next.
    pub(crate) async fn take_when_free(&self, holder: Holder<'_>, amount: usize) -> Place {
        loop {
            let mut freed = pin!(self.0.freed.notified());
            // From here on, so that nothing is missed that becomes free after a place was asked for.
            freed.as_mut().enable();
            if let Ok(place) = self.take(holder, amount) {
                return place;
            }
            freed.await;
        }
    }

    /// How many are taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Up to how many are given to everybody.
    fn plenty(&self) -> usize {
        self.limit - self.limit / 4
    }

    /// How many one user may have of the rest, with those that they have already.
    fn share(&self) -> usize {
        self.limit / 8
    }

    /// The counter of what a user holds.
    fn held_by(&self, name: &str) -> Arc<AtomicUsize> {
        let shard = self.hasher.hash_one(name) as usize % SHARDS;
        let mut holders = self.holders[shard].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = holders.get(name) {
            return Arc::clone(held);
        }
        if holders.len() >= REMEMBERED {
            holders.retain(|_, held| Arc::strong_count(held) > 1);
        }
        Arc::clone(holders.entry(name.into()).or_default())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.held.fetch_sub(self.amount, Ordering::Relaxed);
        self.places.taken.fetch_sub(self.amount, Ordering::Relaxed);
        self.places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Holder<'_> {
        Holder { name, is_privileged: false }
    }

    #[test]
    fn the_last_quarter_is_for_those_who_have_little() {
        let places = Places::new(16);
        let mut held: Vec<Place> = (0..12).map(|_| places.take(user("greedy"), 1).expect("there is plenty")).collect();
        for (name, holder, amount, want) in [
            ("who has much gets no more", user("greedy"), 1, false),
            ("who has nothing does", user("modest"), 1, true),
            ("and a second one", user("modest"), 1, true),
            ("and no third", user("modest"), 1, false),
            ("large things count as one if they fit", user("other"), 2, true),
            ("nobody gets what is not there", user("late"), 1, false),
            ("but those who must", Holder { name: "late", is_privileged: true }, 5, true),
        ] {
            let got = places.take(holder, amount);
            assert_eq!(got.is_ok(), want, "{name}");
            held.extend(got);
        }
        assert_eq!(places.taken(), 16, "those beyond the limit are not counted");
        drop(held);
        assert_eq!(places.taken(), 0);
        assert!(places.take(user("greedy"), 16).is_ok(), "all is free again");
    }

    #[test]
    fn who_is_refused_keeps_nobody_out() {
        let places = Places::new(8);
        let large = places.take(user("large"), 7).expect("fits");
        std::thread::scope(|scope| {
            for name in ["a", "b", "c"] {
                let places = &places;
                scope.spawn(move || (0..10_000).for_each(|_| drop(places.take(user(name), 2))));
            }
            for _ in 0..10_000 {
                drop(places.take(user("small"), 1).expect("there is a place that nobody else can have"));
            }
        });
        drop(large);
    }

    #[test]
    fn few_places_have_no_shares() {
        for limit in 1..4 {
            let places = Places::new(limit);
            let held: Vec<_> = (0..limit).map(|_| places.take(user("one"), 1)).collect();
            assert!(held.iter().all(Result::is_ok), "{limit}");
            assert_eq!(places.take(user("one"), 1).expect_err("full"), NoPlace, "{limit}");
        }
        let unlimited = Places::new(0);
        assert!((0..1000).map(|_| unlimited.take(user("one"), 1)).collect::<Result<Vec<_>, _>>().is_ok());
    }

    #[test]
    fn users_who_hold_nothing_are_forgotten() {
        let places = Places::new(0);
        let kept = places.take(user("kept"), 7).expect("no limit");
        for at in 0..SHARDS * REMEMBERED * 2 {
            drop(places.take(user(&format!("user-{at}")), 1));
        }
        let remembered: usize = places.0.holders.iter().map(|shard| shard.lock().expect("no panic").len()).sum();
        assert!(remembered <= SHARDS * (REMEMBERED + 1), "{remembered}");
        assert_eq!(places.0.held_by("kept").load(Ordering::Relaxed), 7);
        drop(kept);
    }

    #[tokio::test]
    async fn who_waits_gets_what_becomes_free() {
        let places = Places::new(1);
        let held = places.take(user("one"), 1).expect("it is free");
        let waiting = tokio::spawn({
            let places = places.clone();
            async move { places.take_when_free(user("two"), 1).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(held);
        let _held = waiting.await.expect("no panic");
        assert!(places.take(user("three"), 1).is_err());
    }
}
