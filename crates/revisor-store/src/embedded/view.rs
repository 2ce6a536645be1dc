//! [`View`]: the state of the store in memory, now and as far back as history reaches.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use revisor_version::Revision;

use super::HistoryLimits;
use super::usage::{self, Usage};
use super::window::Window;
use crate::{Entry, Event, Key, Listing, Page, StoreError};

/// What readers see. A clone is cheap and never changes, so that a long listing holds nobody up.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    entries: OrdMap<Key, Arc<Entry>>,
    newest: Option<Revision>,
    usage: Usage,
    pub(super) window: Window,
}

impl View {
    /// The view of an empty store whose history begins at `oldest`.
    pub(super) fn starting_at(oldest: Option<Revision>) -> View {
        View { newest: oldest, window: Window::starting_at(oldest), ..View::default() }
    }

    /// The newest revision.
    pub(super) fn newest(&self) -> Option<Revision> {
        self.newest
    }

    /// How many bytes the state and its history take.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// The newest entry of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.entries.get(key)
    }

    /// All entries, in order of their keys.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// Applies the event of the next revision.
    pub(super) fn apply(&mut self, event: Event) {
        self.settle(event.key().clone(), event.new.clone());
        self.newest = Some(event.revision);
        self.usage.remember(&event);
        self.window.push(event);
    }

    /// Forgets history up to and including `oldest`, and shows each event that goes to `leaving`.
    pub(super) fn forget(&mut self, oldest: Revision, mut leaving: impl FnMut(&Event)) {
        let usage = &mut self.usage;
        self.window.forget(oldest, |event| {
            usage.forget(event);
            leaving(event);
        });
    }

    /// Up to where history must be forgotten to keep within its limits, and within `room` bytes in all.
    pub(super) fn beyond(&self, limits: &HistoryLimits, room: u64) -> Option<Revision> {
        self.window.beyond_size(limits).max(self.beyond_room(room))
    }

    /// As with the limits, goes a little further than it must.
    fn beyond_room(&self, room: u64) -> Option<Revision> {
        let mut history = self.usage.history;
        if history <= room {
            return None;
        }
        let mut last = None;
        for event in self.window.after(self.window.oldest()) {
            if history <= room - room / 32 {
                break;
            }
            history -= usage::of_event(event);
            last = Some(event.revision);
        }
        last
    }

    /// Makes `entry` what `key` holds, without making history. Returns what it held.
    pub(super) fn settle(&mut self, key: Key, entry: Option<Arc<Entry>>) -> Option<Arc<Entry>> {
        let bytes = entry.as_deref().map_or(0, usage::of_entry);
        let old = match entry {
            Some(entry) => self.entries.insert(key, entry),
            None => self.entries.remove(key.as_str()),
        };
        self.usage.replace(old.as_deref().map_or(0, usage::of_entry), bytes);
        old
    }

    /// As much of this view as a listing of `page` needs. Few listings look at the past, so most leave history out.
    pub(super) fn snapshot(&self, page: &Page) -> View {
        if page.at.is_none() || page.at == self.newest {
            let window = Window::starting_at(self.window.oldest());
            return View { entries: self.entries.clone(), newest: self.newest, usage: self.usage, window };
        }
        self.clone()
    }

    /// Whether the state at `revision` can be read and watched from; `None` is the beginning of history.
    pub(super) fn check_reach(&self, revision: Option<Revision>) -> Result<(), StoreError> {
        if let Some(oldest) = self.window.oldest()
            && revision < Some(oldest)
        {
            return Err(StoreError::Compacted { asked: revision.unwrap_or(Revision::FIRST), oldest });
        }
        match revision {
            Some(asked) if Some(asked) > self.newest => Err(StoreError::Future { asked, newest: self.newest }),
            _ => Ok(()),
        }
    }

    /// The entries under `prefix` that `page` asks for.
    pub(super) fn list(&self, prefix: &str, page: &Page) -> Result<Listing, StoreError> {
        let at = page.at.or(self.newest);
        if page.at.is_some() {
            self.check_reach(page.at)?;
        }
        let after = page.after.as_ref().map(Key::as_str).filter(|after| *after >= prefix);
        let start = after.map_or(Bound::Included(prefix), Bound::Excluded);
        let newest = self
            .entries
            .range::<_, str>((start, Bound::Unbounded))
            .map(|(_, entry)| entry)
            .take_while(|entry| entry.key().as_str().starts_with(prefix));
        let limit = page.limit.unwrap_or(usize::MAX);
        let (entries, more) = if at == self.newest {
            cut(newest.cloned(), limit)
        } else {
            let changed =
                self.changed_since(at, |key| key.starts_with(prefix) && after.is_none_or(|after| key > after));
            cut(rolled_back(newest, changed), limit)
        };
        Ok(Listing { entries, revision: at, more })
    }

    /// The keys of a selection that changed after `at`, with what they held at `at`.
    fn changed_since(
        &self,
        at: Option<Revision>,
        selected: impl Fn(&str) -> bool,
    ) -> BTreeMap<Key, Option<Arc<Entry>>> {
        let mut changed = BTreeMap::new();
        for event in self.window.after(at).filter(|event| selected(event.key().as_str())) {
            // The first change after `at` is the one that knows what was there.
            changed.entry(event.key().clone()).or_insert_with(|| event.old.clone());
        }
        changed
    }
}

/// Merges the newest entries with what the changed keys held before; both are in order of their keys.
fn rolled_back<'a>(
    newest: impl Iterator<Item = &'a Arc<Entry>>,
    changed: BTreeMap<Key, Option<Arc<Entry>>>,
) -> impl Iterator<Item = Arc<Entry>> {
    let mut newest = newest.peekable();
    let mut changed = changed.into_iter().peekable();
    std::iter::from_fn(move || {
        loop {
            let order = match (newest.peek(), changed.peek()) {
                (None, None) => return None,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(entry), Some((key, _))) => entry.key().cmp(key),
            };
            if order.is_lt() {
                return newest.next().cloned();
            }
            if order.is_eq() {
                newest.next();
            }
            if let Some((_, Some(old))) = changed.next() {
                return Some(old);
            }
        }
    })
}

/// The first `limit` entries, and whether there are more.
fn cut(mut entries: impl Iterator<Item = Arc<Entry>>, limit: usize) -> (Vec<Arc<Entry>>, bool) {
    let taken = entries.by_ref().take(limit).collect();
    (taken, entries.next().is_some())
}
