//! [`Sinks`]: who watches what, and how an event finds those who want it.
//!
//! Nearly all prefixes end in a slash, so an event looks up the few parts of its key that do, whatever the number of
//! watchers. Prefixes of another form are looked up by their lengths.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use revisor_version::Revision;

use crate::{Entry, Event, News, Sink, StoreError, WatchGuard};

/// The sinks of one store.
#[derive(Default)]
pub struct Sinks {
    index: Mutex<Index>,
}

#[derive(Default)]
struct Index {
    by_prefix: HashMap<Arc<str>, Vec<Arc<Registration>>>,
    /// How many prefixes of each length do not end in a slash; the empty one is among them.
    odd_lengths: BTreeMap<usize, usize>,
}

/// One who watches.
pub struct Registration {
    prefix: Arc<str>,
    sink: Arc<dyn Sink>,
    ended: AtomicBool,
}

impl Sinks {
    /// Adds a sink; it hears what happens from now on.
    pub fn add(self: &Arc<Sinks>, registration: Arc<Registration>) -> WatchGuard {
        self.index().add(registration.clone());
        let sinks = self.clone();
        WatchGuard::new(move || sinks.remove(&registration))
    }

    /// Tells those concerned of `events`, which are in order.
    pub fn deliver(&self, events: &[Event]) {
        let selected = self.index().select(events);
        // Nothing is locked while sinks are called: one of them may drop its guard.
        for (registrations, events) in selected {
            for registration in registrations {
                self.tell(&registration, || News::Events(&events));
            }
        }
    }

    /// Tells those who watch any key under `prefix` that history before `oldest` is gone.
    pub fn compacted(&self, prefix: &str, oldest: Revision) {
        let touches = |other: &str| other.starts_with(prefix) || prefix.starts_with(other);
        let concerned: Vec<_> = {
            let index = self.index();
            let sinks = index.by_prefix.iter().filter(|(other, _)| touches(other)).map(|(_, sinks)| sinks);
            sinks.flatten().cloned().collect()
        };
        for registration in concerned {
            self.tell(&registration, || News::Compacted(oldest));
        }
    }

    /// Tells everybody what there is at `revision`, because some changes before it were missed. `state` is what the keys
    /// with a prefix hold.
    pub fn replaced(&self, revision: Revision, state: impl Fn(&str) -> Vec<Arc<Entry>>) {
        let all: Vec<_> = self.index().by_prefix.values().flatten().cloned().collect();
        for registration in all {
            let entries = state(&registration.prefix);
            self.tell(&registration, || News::Replaced { entries: &entries, revision });
        }
    }

    /// Tells everybody that there is no more to come.
    pub fn end(&self, error: &StoreError) {
        let index = std::mem::take(&mut *self.index());
        for registration in index.by_prefix.into_values().flatten() {
            self.tell(&registration, || News::Ended(error.clone()));
            registration.ended.store(true, Ordering::Release);
        }
    }

    fn tell<'a>(&self, registration: &Arc<Registration>, news: impl FnOnce() -> News<'a>) {
        if !registration.tell(news) {
            self.remove(registration);
        }
    }

    fn remove(&self, registration: &Arc<Registration>) {
        registration.ended.store(true, Ordering::Release);
        let removed = self.index().remove(registration);
        // The last reference to a sink may be this one, and what it drops may come back here.
        drop(removed);
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sinks").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Registration {
    /// One who watches the keys that start with `prefix`. They hear nothing before they are added.
    pub fn new(prefix: &str, sink: Arc<dyn Sink>) -> Arc<Registration> {
        Arc::new(Registration { prefix: prefix.into(), sink, ended: AtomicBool::new(false) })
    }

    /// What the keys start with that are watched.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Tells of events of the past.
    pub fn replay(&self, events: &[Event]) -> Result<(), StoreError> {
        if events.is_empty() || self.tell(|| News::Events(events)) {
            return Ok(());
        }
        Err(StoreError::Backend(Arc::from(crate::BoxError::from("the watcher panicked"))))
    }

    /// Passes `news` on unless the watch has ended. A sink that panics is out of step and hears no more: false.
    pub fn tell<'a>(&self, news: impl FnOnce() -> News<'a>) -> bool {
        if self.ended.load(Ordering::Acquire) {
            return true;
        }
        let delivered = catch_unwind(AssertUnwindSafe(|| self.sink.deliver(news()))).is_ok();
        if !delivered {
            tracing::error!(prefix = &*self.prefix, "a watcher of the store panicked and was dropped");
        }
        delivered
    }
}

impl Index {
    fn add(&mut self, registration: Arc<Registration>) {
        let sinks = self.by_prefix.entry(registration.prefix.clone()).or_default();
        if sinks.is_empty() && !registration.prefix.ends_with('/') {
            *self.odd_lengths.entry(registration.prefix.len()).or_default() += 1;
        }
        sinks.push(registration);
    }

    fn remove(&mut self, registration: &Arc<Registration>) -> Option<Arc<Registration>> {
        let sinks = self.by_prefix.get_mut(&registration.prefix)?;
        let removed = sinks.swap_remove(sinks.iter().position(|other| Arc::ptr_eq(other, registration))?);
        if sinks.is_empty() {
            self.by_prefix.remove(&registration.prefix);
            let length = registration.prefix.len();
            if !registration.prefix.ends_with('/')
                && let Some(count) = self.odd_lengths.get_mut(&length)
            {
                *count -= 1;
                if *count == 0 {
                    self.odd_lengths.remove(&length);
                }
            }
        }
        Some(removed)
    }

    /// For each prefix that any of `events` falls under: those who watch it, and the events.
    fn select(&self, events: &[Event]) -> Vec<(Vec<Arc<Registration>>, Vec<Event>)> {
        let mut selected: HashMap<&str, Vec<Event>> = HashMap::new();
        if self.by_prefix.is_empty() {
            return vec![];
        }
        for event in events {
            let key = event.key().as_str();
            let slashes = key.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(at, _)| at + 1);
            let odd =
                self.odd_lengths.keys().copied().filter(|length| !key.get(..*length).unwrap_or("/").ends_with('/'));
            for length in slashes.chain(odd) {
                let Some((prefix, _)) = key.get(..length).and_then(|prefix| self.by_prefix.get_key_value(prefix))
                else {
                    continue;
                };
                selected.entry(prefix).or_default().push(event.clone());
            }
        }
        let with_sinks = |(prefix, events)| (self.by_prefix[prefix].clone(), events);
        selected.into_iter().map(with_sinks).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::{Draft, Key};

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Sink for Heard {
        fn deliver(&self, news: News<'_>) {
            let text = match news {
                News::Events(events) => {
                    events.iter().map(|event| event.key().to_string()).collect::<Vec<_>>().join(" ")
                }
                News::Compacted(oldest) => format!("compacted {oldest}"),
                News::Replaced { entries, revision } => format!("{} at {revision}", entries.len()),
                News::Ended(error) => format!("ended: {error}"),
            };
            self.0.lock().expect("not poisoned").push(text);
        }
    }

    fn events(keys: &[&str]) -> Vec<Event> {
        let event = |(number, key): (u64, &&str)| {
            let revision = Revision::new(number).expect("counts from one");
            let new = Arc::new(Entry::new(Key::new(*key), revision, &Draft::opaque(vec![])));
            Event { revision, time: SystemTime::UNIX_EPOCH, old: None, new: Some(new) }
        };
        (1..).zip(keys).map(event).collect()
    }

    #[test]
    fn an_event_reaches_exactly_the_prefixes_of_its_key() {
        let keys = ["/a/b/c", "/a/bb/c", "/a", "/ä/b", "x", "/a/"];
        for (prefix, want) in [
            ("", "/a/b/c /a/bb/c /a /ä/b x /a/"),
            ("/", "/a/b/c /a/bb/c /a /ä/b /a/"),
            ("/a", "/a/b/c /a/bb/c /a /a/"),
            ("/a/", "/a/b/c /a/bb/c /a/"),
            ("/a/b", "/a/b/c /a/bb/c"),
            ("/a/b/", "/a/b/c"),
            ("/a/b/c", "/a/b/c"),
            ("/a/b/cd", ""),
            ("/ä/b", "/ä/b"),
            ("x", "x"),
        ] {
            let sinks = Arc::new(Sinks::default());
            let heard = Arc::new(Heard::default());
            let _guard = sinks.add(Registration::new(prefix, heard.clone()));
            // Somebody else's odd prefix of every length must not add to what this one hears.
            let _others: Vec<_> = ["y", "yy", "yyy", "/y/y", "/y/yy", "/y/y/y"]
                .map(|other| sinks.add(Registration::new(other, Arc::new(Heard::default()))))
                .into();
            sinks.deliver(&events(&keys));
            assert_eq!(heard.0.lock().expect("not poisoned").join("|"), want, "prefix {prefix:?}");
        }
    }

    #[test]
    fn a_dropped_guard_ends_the_watch_and_leaves_nothing_behind() {
        let sinks = Arc::new(Sinks::default());
        let heard = Arc::new(Heard::default());
        let first = sinks.add(Registration::new("/a", heard.clone()));
        let second = sinks.add(Registration::new("/a", heard.clone()));
        sinks.deliver(&events(&["/a"]));
        drop(first);
        sinks.deliver(&events(&["/ab"]));
        drop(second);
        sinks.deliver(&events(&["/abc"]));
        assert_eq!(*heard.0.lock().expect("not poisoned"), ["/a", "/a", "/ab"]);
        assert!(sinks.index().by_prefix.is_empty() && sinks.index().odd_lengths.is_empty());
        assert_eq!(Arc::strong_count(&heard), 1);
    }

    #[test]
    fn a_sink_that_panics_is_dropped_and_the_others_go_on() {
        struct Panics;
        impl Sink for Panics {
            fn deliver(&self, _: News<'_>) {
                panic!("a sink of the test");
            }
        }
        let sinks = Arc::new(Sinks::default());
        let heard = Arc::new(Heard::default());
        let _bad = sinks.add(Registration::new("/", Arc::new(Panics)));
        let _good = sinks.add(Registration::new("/", heard.clone()));
        sinks.deliver(&events(&["/a"]));
        assert_eq!(sinks.index().by_prefix["/"].len(), 1);
        sinks.compacted("", Revision::FIRST);
        sinks.replaced(Revision::FIRST, |_| Vec::new());
        sinks.end(&StoreError::Closed);
        sinks.deliver(&events(&["/b"]));
        assert_eq!(
            *heard.0.lock().expect("not poisoned"),
            ["/a", "compacted 1", "0 at 1", "ended: the store is closed"]
        );
    }

    #[test]
    fn a_sink_may_drop_its_guard_while_it_is_told() {
        #[derive(Default)]
        struct Leaves(Mutex<Option<WatchGuard>>);
        impl Sink for Leaves {
            fn deliver(&self, _: News<'_>) {
                drop(self.0.lock().expect("not poisoned").take());
            }
        }
        let sinks = Arc::new(Sinks::default());
        let leaves = Arc::new(Leaves::default());
        let guard = sinks.add(Registration::new("/", leaves.clone()));
        *leaves.0.lock().expect("not poisoned") = Some(guard);
        sinks.deliver(&events(&["/a"]));
        assert!(sinks.index().by_prefix.is_empty());
    }
}
