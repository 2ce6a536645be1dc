//! [`Window`]: the events that history still holds, and when they must go.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use revisor_version::Revision;

use super::HistoryLimits;
use crate::Event;

/// A chunk takes no further event when it has so many, or so many superseded bytes. Both bound what a chunk keeps
/// alive whose first events have been forgotten.
const CHUNK_EVENTS: usize = 256;
const CHUNK_BYTES: usize = 1 << 20;

/// All events after the oldest revision, without a gap.
///
/// A clone shares its chunks, so that a reader of the past takes one and lets the writer go on.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    oldest: Option<Revision>,
    chunks: VecDeque<Arc<Chunk>>,
    len: usize,
    superseded: usize,
}

#[derive(Debug, Clone, Default)]
struct Chunk {
    events: Vec<Event>,
    superseded: usize,
}

impl Chunk {
    fn last(&self) -> Revision {
        self.events.last().expect("a chunk is made for an event and loses none").revision
    }
}

impl Window {
    /// The empty window of a history that begins at `oldest`.
    pub(super) fn starting_at(oldest: Option<Revision>) -> Window {
        Window { oldest, ..Window::default() }
    }

    /// The oldest revision that can be read; `None` while all of history is there.
    pub(super) fn oldest(&self) -> Option<Revision> {
        self.oldest
    }

    /// Adds the event of the newest revision.
    pub(super) fn push(&mut self, event: Event) {
        debug_assert_eq!(event.revision.get(), self.oldest.map_or(0, Revision::get) + self.len as u64 + 1);
        let bytes = superseded_bytes(&event);
        self.len += 1;
        self.superseded += bytes;
        let full = |chunk: &Arc<Chunk>| chunk.events.len() >= CHUNK_EVENTS || chunk.superseded >= CHUNK_BYTES;
        if self.chunks.back().is_none_or(full) {
            self.chunks.push_back(Arc::default());
        }
        // Copies the chunk if a reader holds it, which costs no more than the chunk's bound.
        let chunk = Arc::make_mut(self.chunks.back_mut().expect("there is a chunk with room"));
        chunk.events.push(event);
        chunk.superseded += bytes;
    }

    /// The events after `after`, which must not be before the oldest.
    pub(super) fn after(&self, after: Option<Revision>) -> impl Iterator<Item = &Event> {
        let first = self.chunks.partition_point(|chunk| Some(chunk.last()) <= after);
        let skip = self
            .chunks
            .get(first)
            .map_or(0, |chunk| chunk.events.partition_point(|event| Some(event.revision) <= after));
        self.chunks.range(first..).flat_map(|chunk| &chunk.events).skip(skip)
    }

    /// Up to where the bounds on number and bytes want events forgotten. Goes a little further than it must, so that
    /// a full window is not trimmed at every write.
    pub(super) fn beyond_size(&self, limits: &HistoryLimits) -> Option<Revision> {
        if self.len <= limits.events && self.superseded <= limits.bytes {
            return None;
        }
        let mut len = self.len;
        let mut superseded = self.superseded;
        let (most_events, most_bytes) = (limits.events - limits.events / 32, limits.bytes - limits.bytes / 32);
        let mut last = None;
        for event in self.after(self.oldest) {
            if len <= most_events && superseded <= most_bytes {
                break;
            }
            len -= 1;
            superseded -= superseded_bytes(event);
            last = Some(event.revision);
        }
        last
    }

    /// Up to where events are older than the limits allow at `now`.
    pub(super) fn beyond_age(&self, limits: &HistoryLimits, now: SystemTime) -> Option<Revision> {
        // An age that reaches back before time itself forgets nothing.
        let cutoff = now.checked_sub(limits.age)?;
        self.after(self.oldest).take_while(|event| event.time <= cutoff).last().map(|event| event.revision)
    }

    /// Forgets the events up to and including `oldest`, which must have been written, and shows each to `leaving`.
    pub(super) fn forget(&mut self, oldest: Revision, mut leaving: impl FnMut(&Event)) {
        if self.oldest >= Some(oldest) {
            return;
        }
        let (mut len, mut superseded) = (self.len, self.superseded);
        for event in self.after(self.oldest).take_while(|event| event.revision <= oldest) {
            len -= 1;
            superseded -= superseded_bytes(event);
            leaving(event);
        }
        (self.len, self.superseded, self.oldest) = (len, superseded, Some(oldest));
        while self.chunks.front().is_some_and(|chunk| chunk.last() <= oldest) {
            self.chunks.pop_front();
        }
    }
}

/// The bytes that live on only because this event remembers them.
fn superseded_bytes(event: &Event) -> usize {
    event.old.as_ref().map_or(0, |old| old.bytes().len() + old.key().as_str().len())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Draft, Entry, Key};

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    fn time(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Events 1 to `count`, one a second, each replacing 98 bytes under a key of two.
    fn window(count: u64) -> Window {
        let entry = |number| Arc::new(Entry::new(Key::new("/k"), at(number), &Draft::opaque(vec![0; 98])));
        let mut window = Window::default();
        for number in 1..=count {
            let old = Some(entry(number));
            window.push(Event { revision: at(number), time: time(number), old, new: Some(entry(number)) });
        }
        window
    }

    fn revisions(window: &Window, after: Option<Revision>) -> Vec<u64> {
        window.after(after).map(|event| event.revision.get()).collect()
    }

    #[test]
    fn a_window_starts_after_any_revision_that_it_holds() {
        let mut window = window(700);
        for from in [0, 1, 255, 256, 257, 512, 699, 700] {
            assert_eq!(revisions(&window, Revision::new(from)), (from + 1..=700).collect::<Vec<_>>(), "from {from}");
        }
        let mut left = vec![];
        window.forget(at(300), |event| left.push(event.revision.get()));
        assert_eq!(left, (1..=300).collect::<Vec<_>>());
        assert_eq!(revisions(&window, Some(at(300))), (301..=700).collect::<Vec<_>>());
        window.forget(at(200), |event| panic!("{event:?} left twice"));
        assert_eq!(window.oldest(), Some(at(300)));
    }

    #[test]
    fn a_clone_keeps_what_it_saw() {
        let mut window = window(10);
        let clone = window.clone();
        let last = window.after(Some(at(9))).last().expect("event 10").clone();
        window.push(Event { revision: at(11), ..last });
        window.forget(at(10), |_| {});
        assert_eq!(revisions(&clone, None), (1..=10).collect::<Vec<_>>());
        assert_eq!(revisions(&window, Some(at(10))), [11]);
    }

    #[test]
    fn each_limit_says_what_must_go() {
        let limits = |age, events, bytes| HistoryLimits { age: Duration::from_secs(age), events, bytes };
        for (name, limits, size, age) in [
            ("all fits", limits(1000, 100, 10_000), None, None),
            ("one event too many", limits(1000, 9, 10_000), Some(1), None),
            ("no events at all", limits(1000, 0, 10_000), Some(10), None),
            ("a byte too many", limits(1000, 100, 999), Some(1), None),
            ("no bytes at all", limits(1000, 100, 0), Some(10), None),
            ("the stricter wins", limits(1000, 7, 500), Some(6), None),
            ("old ones", limits(16, 100, 10_000), None, Some(4)),
            ("all are old", limits(0, 100, 10_000), None, Some(10)),
            ("an age before the epoch", limits(u64::MAX, 100, 10_000), None, None),
        ] {
            let window = window(10);
            assert_eq!(window.beyond_size(&limits), size.and_then(Revision::new), "{name}");
            assert_eq!(window.beyond_age(&limits, time(20)), age.and_then(Revision::new), "{name}");
        }
    }
}
