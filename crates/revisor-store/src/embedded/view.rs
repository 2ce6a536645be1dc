//! [`View`]: the newest state of the store, and where its past is to be found.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use revisor_version::Revision;

use super::index::{Index, Written};
use super::usage::{self, Usage};
use super::{HistoryLimits, ShareOf};
use crate::{Entry, Event, Key, Listing, Page, StoreError};

/// How many keys or writes are looked at before writers get a turn.
const LOOK: usize = 1024;

/// What readers see.
#[derive(Debug)]
pub(super) struct View {
    entries: OrdMap<Key, Arc<Entry>>,
    newest: Option<Revision>,
    /// How many bytes the entries take.
    bytes: u64,
    pub(super) index: Index,
}

/// The newest state alone. It is cheap to take and never changes, so that a long listing holds nobody up.
pub(super) struct Newest {
    entries: OrdMap<Key, Arc<Entry>>,
    revision: Option<Revision>,
}

/// An object of the past.
#[derive(Debug)]
pub(super) enum Found {
    /// It is still what its key holds.
    Here(Arc<Entry>),
    /// Its record is on disk.
    Recorded(Key, Revision),
}

/// Some objects of a past state, in order of their keys.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) found: Vec<Found>,
    /// The key after which to go on, if these are not all.
    pub(super) rest: Option<Key>,
}

/// Some writes of the past.
#[derive(Debug)]
pub(super) struct Stretch {
    /// In order. With each the entry that its key holds now if it is the one that it wrote.
    pub(super) writes: Vec<(Written, Option<Arc<Entry>>)>,
    /// All writes of the selection up to here are among them.
    pub(super) through: Option<Revision>,
}

impl View {
    /// The view of an empty store whose history begins at `oldest`, and in some shares later.
    pub(super) fn starting_at(
        oldest: Option<Revision>,
        floors: &[(Arc<str>, Revision)],
        share_of: ShareOf,
        limits: &HistoryLimits,
    ) -> View {
        let index = Index::starting_at(oldest, floors, share_of, limits);
        View { entries: OrdMap::new(), newest: oldest, bytes: 0, index }
    }

    /// The newest revision.
    pub(super) fn newest(&self) -> Option<Revision> {
        self.newest
    }

    /// How many bytes the state and its history take.
    pub(super) fn usage(&self) -> Usage {
        Usage { state: self.bytes, history: self.index.held().bytes }
    }

    /// The newest entry of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.entries.get(key)
    }

    /// Applies the event of the next revision.
    pub(super) fn apply(&mut self, event: &Event) {
        self.settle(event.key().clone(), event.new.clone());
        self.index.push(event.revision, event.time, event.key(), event.old.as_deref(), event.new.is_none());
        self.reach(event.revision);
    }

    /// Makes `entry` what `key` holds, without making history. Returns what it held.
    pub(super) fn settle(&mut self, key: Key, entry: Option<Arc<Entry>>) -> Option<Arc<Entry>> {
        self.bytes += entry.as_deref().map_or(0, usage::of_entry);
        let old = match entry {
            Some(entry) => self.entries.insert(key, entry),
            None => self.entries.remove(key.as_str()),
        };
        self.bytes -= old.as_deref().map_or(0, usage::of_entry);
        old
    }

    /// Notes that `revision` was written.
    pub(super) fn reach(&mut self, revision: Revision) {
        self.newest = Some(revision);
    }

    /// The newest state.
    pub(super) fn state(&self) -> Newest {
        Newest { entries: self.entries.clone(), revision: self.newest }
    }

    /// Whether the keys with this prefix are known at `revision` and after it; `None` is the beginning of history.
    pub(super) fn check_reach(&self, prefix: &str, revision: Option<Revision>) -> Result<(), StoreError> {
        if let Some(oldest) = self.index.oldest(prefix)
            && revision < Some(oldest)
        {
            return Err(StoreError::Compacted { asked: revision.unwrap_or(Revision::FIRST), oldest });
        }
        match revision {
            Some(asked) if Some(asked) > self.newest => Err(StoreError::Future { asked, newest: self.newest }),
            _ => Ok(()),
        }
    }

    /// Some of the objects under `prefix` as they were at `revision`, after the key `after`.
    pub(super) fn past(&self, prefix: &str, after: Option<&Key>, revision: Revision) -> Result<Piece, StoreError> {
        self.check_reach(prefix, Some(revision))?;
        let after = after.map(Key::as_str);
        // A key that is there now, one that was written since then, or both.
        let mut now = range(&self.entries, prefix, after).peekable();
        let mut written = self.index.keys(prefix, after).peekable();
        let mut piece = Piece { found: vec![], rest: None };
        for looked_at in 0.. {
            let key = match (now.peek().map(|entry| entry.key()), written.peek().copied()) {
                (None, None) => break,
                (Some(key), None) | (None, Some(key)) => key,
                (Some(one), Some(other)) => one.min(other),
            };
            if looked_at == LOOK {
                break;
            }
            let here = now.next_if(|entry| entry.key() == key);
            let was_written = written.next_if(|other| *other == key).is_some();
            let then = if was_written { self.index.at(key.as_str(), revision) } else { None };
            piece.found.extend(match (then, here) {
                (Some(Some(then)), Some(here)) if here.revision() == then => Some(Found::Here(here.clone())),
                (Some(Some(then)), _) => Some(Found::Recorded(key.clone(), then)),
                (Some(None), _) => None,
                (None, here) => here.cloned().map(Found::Here),
            });
            piece.rest = Some(key.clone());
        }
        if now.peek().is_none() && written.peek().is_none() {
            piece.rest = None;
        }
        Ok(piece)
    }

    /// Some of the writes after `after` to keys under `prefix`, at most `limit`.
    pub(super) fn stretch(&self, prefix: &str, after: Option<Revision>, limit: usize) -> Result<Stretch, StoreError> {
        self.check_reach(prefix, after)?;
        let (writes, through) = self.index.writes_after(prefix, after, self.newest, limit.min(LOOK), LOOK);
        let with_newest = |write: Written| {
            let here = self.get(write.key.as_str()).filter(|entry| entry.revision() == write.version.revision());
            let here = here.cloned();
            (write, here)
        };
        Ok(Stretch { writes: writes.into_iter().map(with_newest).collect(), through })
    }
}

impl Newest {
    /// All entries, in order of their keys.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// The entries under `prefix` that `page` asks for.
    pub(super) fn list(&self, prefix: &str, page: &Page) -> Listing {
        let mut entries = range(&self.entries, prefix, page.after.as_ref().map(Key::as_str));
        let taken = entries.by_ref().take(page.limit.unwrap_or(usize::MAX)).cloned().collect();
        Listing { entries: taken, revision: self.revision, remaining: entries.count() }
    }
}

/// The entries under `prefix` after the key `after`.
fn range<'a>(
    entries: &'a OrdMap<Key, Arc<Entry>>,
    prefix: &'a str,
    after: Option<&str>,
) -> impl Iterator<Item = &'a Arc<Entry>> {
    let start = after.filter(|after| *after >= prefix).map_or(Bound::Included(prefix), Bound::Excluded);
    let entries = entries.range::<_, str>((start, Bound::Unbounded)).map(|(_, entry)| entry);
    entries.take_while(move |entry| entry.key().as_str().starts_with(prefix))
}
