//! [`History`]: the newest state of a resource, the window of events that led to it, and some states in between.
//!
//! Pure bookkeeping without locks: [`ResourceCache`](crate::ResourceCache) puts it behind one.

use std::collections::VecDeque;
use std::sync::Arc;

use revisor_store::Event;
use revisor_version::Revision;

use crate::Item;
use crate::delivery::Change;
use crate::snapshot::Table;
use crate::tally::{Classify, Tally};

/// History no longer reaches back to the revision asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("revision {asked} is no longer kept, the oldest is {oldest}")]
pub struct Expired {
    /// The revision whose state, or after which the events, were wanted.
    pub asked: Revision,
    /// The oldest revision that can still be read and watched from.
    pub oldest: Revision,
}

/// Why a window cannot tell something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// It is too long ago for the window. The store knows.
    Window,
    /// It is too long ago for everybody.
    History(Expired),
}

/// How much is kept in between, see [`History`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keep {
    /// A state is kept after so many events.
    pub(crate) events: usize,
    /// And after events that take so many bytes.
    pub(crate) bytes: usize,
}

/// What is known of one resource.
///
/// A state is kept every so many events and bytes, and every other one is made by replaying the window from the kept state
/// before it. So the state at any revision costs a bounded replay, and a kept one only the nodes it does not share.
pub(crate) struct History {
    newest: Table,
    /// Counts the objects of `newest`, where somebody wants to know.
    tally: Option<Tally>,
    /// The last event that `newest` includes, or where history began.
    last: Option<Revision>,
    window: VecDeque<Arc<Change>>,
    /// How many bytes the window takes.
    weight: usize,
    /// Never empty: the first is where the window begins.
    kept: VecDeque<Kept>,
    /// The store's own limit: nobody is told of anything before it.
    oldest: Option<Revision>,
    keep: Keep,
    since_kept: Keep,
    /// Whether nothing will be added any more.
    ended: bool,
}

/// A state that can be replayed from.
struct Kept {
    at: Option<Revision>,
    table: Table,
}

/// A past state, as far as it is known without work.
pub(crate) enum Past {
    /// Here it is.
    Ready(Table),
    /// The state after the event of this revision; [`History::replay`] says how to make it.
    After(Option<Revision>),
    /// It is from before the window; the store knows it.
    Stored,
}

/// How to make a past state: outside of any lock, because it takes a while.
pub(crate) struct Replay {
    from: Table,
    changes: Vec<Arc<Change>>,
}

/// What was removed: dropped by the caller once the lock is free, because to free many objects takes a while.
#[derive(Default)]
pub(crate) struct Removed {
    /// How many bytes the window takes less.
    pub(crate) weight: usize,
    _window: Vec<Arc<Change>>,
    _kept: Vec<Kept>,
}

impl History {
    /// The history that begins with the state `table` at `start`.
    pub(crate) fn new(table: Table, start: Option<Revision>, keep: Keep) -> History {
        let kept = VecDeque::from([Kept { at: start, table: table.clone() }]);
        History {
            newest: table,
            tally: None,
            last: start,
            window: VecDeque::new(),
            weight: 0,
            kept,
            oldest: None,
            keep,
            since_kept: Keep { events: 0, bytes: 0 },
            ended: false,
        }
    }

    /// The same history, which counts its objects from here on.
    pub(crate) fn tallied(mut self, classify: Classify) -> History {
        self.tally = Some(Tally::of(classify, self.newest.items()));
        self
    }

    /// How many objects of each class the newest state has; `None` if nobody wanted to know.
    pub(crate) fn tally(&self) -> Option<&Tally> {
        self.tally.as_ref()
    }

    /// The newest state.
    pub(crate) fn newest(&self) -> &Table {
        &self.newest
    }

    /// The last event that the newest state includes.
    pub(crate) fn last(&self) -> Option<Revision> {
        self.last
    }

    /// How many events the window has.
    pub(crate) fn window_len(&self) -> usize {
        self.window.len()
    }

    /// How many bytes the window takes.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Whether this is the end of the history: nothing more will be applied.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Notes that nothing more will be applied.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Adds the next event.
    pub(crate) fn apply(&mut self, event: &Event) {
        if self.ended {
            return;
        }
        debug_assert!(self.last < Some(event.revision), "events come in order");
        // The old side is the item that the map had, not a new one of the event's entry: its view may be parsed.
        let new = event.new.clone().map(Item::new);
        let old = match &new {
            Some(item) => self.newest.put(item.clone()),
            None => self.newest.remove(event.key().as_str()),
        };
        if old.is_none() && new.is_none() {
            debug_assert!(false, "deletion of {}, which is not there", event.key());
            return;
        }
        if let Some(tally) = &mut self.tally {
            // In this order: a class whose only object is written again keeps its place for the moment in between.
            new.iter().for_each(|item| tally.add(item.bytes()));
            old.iter().for_each(|item| tally.take(item.bytes()));
        }
        self.last = Some(event.revision);
        let change = Change::new(event.revision, old, new);
        let weight = change.weight();
        self.window.push_back(change);
        self.weight += weight;
        self.since_kept.events += 1;
        self.since_kept.bytes += weight;
        if self.since_kept.events >= self.keep.events || self.since_kept.bytes >= self.keep.bytes {
            self.since_kept = Keep { events: 0, bytes: 0 };
            self.kept.push_back(Kept { at: self.last, table: self.newest.clone() });
        }
    }

    /// Lets everything begin with the state `table` at `revision`. Answers what was there before, to be dropped where
    /// nobody waits.
    pub(crate) fn begin_again(&mut self, table: Table, revision: Revision) -> History {
        let mut history = History::new(table, Some(revision), self.keep);
        history.oldest = Some(revision);
        history.ended = self.ended;
        history.tally = self.tally.as_ref().map(|tally| Tally::of(tally.classify(), history.newest.items()));
        std::mem::replace(self, history)
    }

    /// Drops what is not needed to answer from `oldest` on. Fewer events than are between two kept states may stay
    /// behind it: to move the start of the window to exactly there would be a replay on the store's writer thread.
    pub(crate) fn compact(&mut self, oldest: Revision) -> Removed {
        if self.oldest >= Some(oldest) {
            return Removed::default();
        }
        self.oldest = Some(oldest);
        if self.last <= Some(oldest) {
            return self.start_with_newest();
        }
        let start = self.kept.partition_point(|kept| kept.at <= Some(oldest)).saturating_sub(1);
        self.start_with(start)
    }

    /// Drops the oldest events that take `excess` bytes, and those up to the next kept state.
    pub(crate) fn shorten(&mut self, excess: usize) -> Removed {
        let mut weight = 0;
        let enough = self.window.iter().find(|change| {
            weight += change.weight();
            weight >= excess
        });
        let enough = enough.map(|change| change.revision());
        let start = enough.map_or(self.kept.len(), |last| self.kept.partition_point(|kept| kept.at < Some(last)));
        if start < self.kept.len() { self.start_with(start) } else { self.start_with_newest() }
    }

    /// Lets the window begin with the newest state, and so be empty. It begins at the last event nevertheless, because
    /// those who are there have missed nothing.
    fn start_with_newest(&mut self) -> Removed {
        let start = Kept { at: self.last, table: self.newest.clone() };
        self.since_kept = Keep { events: 0, bytes: 0 };
        let kept = std::mem::replace(&mut self.kept, VecDeque::from([start]));
        let window = std::mem::take(&mut self.window);
        Removed { weight: std::mem::take(&mut self.weight), _window: window.into(), _kept: kept.into() }
    }

    /// Lets the window begin with one of the kept states.
    fn start_with(&mut self, kept: usize) -> Removed {
        let kept = self.kept.drain(..kept).collect();
        let start = self.start();
        let gone = self.window.partition_point(|change| Some(change.revision()) <= start);
        let window: Vec<_> = self.window.drain(..gone).collect();
        let weight = window.iter().map(|change| change.weight()).sum();
        self.weight -= weight;
        Removed { weight, _window: window, _kept: kept }
    }

    /// Fails if `revision` is before what the store still has.
    pub(crate) fn check_kept(&self, revision: Revision) -> Result<(), Expired> {
        match self.oldest {
            Some(oldest) if revision < oldest => Err(Expired { asked: revision, oldest }),
            _ => Ok(()),
        }
    }

    /// The events after `position`, in order, which may be none if it is in the future. Fails if the window lacks some.
    pub(crate) fn changes_after(
        &self,
        position: Option<Revision>,
    ) -> Result<impl Iterator<Item = &Arc<Change>>, Beyond> {
        if position >= self.start() {
            return Ok(self.window.range(self.end_of(position)..));
        }
        Err(match self.oldest {
            Some(oldest) if position < Some(oldest) => {
                Beyond::History(Expired { asked: position.unwrap_or(Revision::FIRST), oldest })
            }
            _ => Beyond::Window,
        })
    }

    /// The state at `revision`, which must not be in the future.
    pub(crate) fn at(&self, revision: Revision) -> Result<Past, Expired> {
        self.check_kept(revision)?;
        if self.last <= Some(revision) {
            return Ok(Past::Ready(self.newest.clone()));
        }
        if Some(revision) < self.start() {
            return Ok(Past::Stored);
        }
        let last_included = self.end_of(Some(revision)).checked_sub(1).and_then(|last| self.window.get(last));
        let after = last_included.map_or(self.start(), |change| Some(change.revision()));
        let kept = self.kept_before(after);
        Ok(if kept.at == after { Past::Ready(kept.table.clone()) } else { Past::After(after) })
    }

    /// How to make the state after the event at `revision`, which [`at`](History::at) named under the same lock.
    pub(crate) fn replay(&self, revision: Option<Revision>) -> Replay {
        let kept = self.kept_before(revision);
        let changes = self.window.range(self.end_of(kept.at)..self.end_of(revision)).cloned().collect();
        Replay { from: kept.table.clone(), changes }
    }

    /// Where the window begins: the state there is kept and every later event too.
    fn start(&self) -> Option<Revision> {
        self.kept.front().and_then(|kept| kept.at)
    }

    /// The last kept state that is not later than `revision`, which is not before the start.
    fn kept_before(&self, revision: Option<Revision>) -> &Kept {
        let index = self.kept.partition_point(|kept| kept.at <= revision).saturating_sub(1);
        &self.kept[index]
    }

    /// Where in the window the events end that are not later than `revision`.
    fn end_of(&self, revision: Option<Revision>) -> usize {
        self.window.partition_point(|change| Some(change.revision()) <= revision)
    }
}

impl Replay {
    /// The state that the replay leads to.
    pub(crate) fn run(self) -> Table {
        let mut table = self.from;
        for change in &self.changes {
            match change.new_item() {
                Some(item) => drop(table.put(item.clone())),
                None => drop(table.remove(change.key().as_str())),
            }
        }
        table
    }
}

#[cfg(test)]
mod tests;
