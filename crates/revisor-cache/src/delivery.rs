//! [`Change`]: one write as the window keeps it, and [`Delivery`]: the same as watchers get it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use revisor_object::Shape;
use revisor_store::Key;
use revisor_version::Revision;

use crate::{Filter, Item};

/// What a write means to one watcher. It depends on the watcher: an object that begins to match its selection was
/// added as far as the watcher can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The object came into the selection.
    Added,
    /// The object was in the selection and still is.
    Modified,
    /// The object left the selection, by deletion or otherwise.
    Deleted,
}

impl EventKind {
    /// What a write means to who has selected the object before it, and selects it after it; nothing if neither.
    pub fn of(is_selected_before: bool, is_selected_after: bool) -> Option<EventKind> {
        match (is_selected_before, is_selected_after) {
            (false, true) => Some(EventKind::Added),
            (true, true) => Some(EventKind::Modified),
            (true, false) => Some(EventKind::Deleted),
            (false, false) => None,
        }
    }
}

/// Everything that a frame depends on beside its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameKey {
    /// The shape of the object.
    pub shape: Shape,
    /// What the event means to those who share the frame.
    pub kind: EventKind,
    /// What is made of it.
    pub form: FrameForm,
}

/// What is made of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameForm {
    /// Its object alone, of which frames are made.
    Object,
    /// What is sent. Whoever sends events numbers the encodings, and the ways to show an object.
    Sent {
        /// The encoding.
        encoding: u8,
        /// What is shown.
        shape: u8,
    },
}

/// What an event costs beside the object that it replaced: itself, the items around the objects, and its part of the
/// nodes of the states that are kept in between.
const EVENT_BYTES: usize = 1024;

/// One write to an object of the resource. At least one side is there.
#[derive(Debug)]
pub(crate) struct Change {
    revision: Revision,
    old: Option<Arc<Item>>,
    new: Option<Arc<Item>>,
    // Weak, so that what was encoded lives while somebody still has to send it and not as long as the window.
    delivery: Mutex<Weak<Delivery>>,
}

impl Change {
    /// The write at `revision` that put `new` in place of `old`.
    pub(crate) fn new(revision: Revision, old: Option<Arc<Item>>, new: Option<Arc<Item>>) -> Arc<Change> {
        Arc::new(Change { revision, old, new, delivery: Mutex::new(Weak::new()) })
    }

    /// The revision of the write.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// How many bytes a window takes more for this event. The new object is also in the state, or in the next event.
    pub(crate) fn weight(&self) -> usize {
        EVENT_BYTES + self.old.as_ref().map_or(0, |item| item.bytes().len())
    }

    /// The object before the write.
    pub(crate) fn old_item(&self) -> Option<&Arc<Item>> {
        self.old.as_ref()
    }

    /// The object after the write.
    pub(crate) fn new_item(&self) -> Option<&Arc<Item>> {
        self.new.as_ref()
    }

    /// The key that was written.
    pub(crate) fn key(&self) -> &Key {
        self.new.as_ref().or(self.old.as_ref()).expect("a change has an old or a new side").key()
    }

    /// What the write means to one who selects by `filter`; nothing if the object was not selected before or after.
    pub(crate) fn kind(&self, filter: Option<&Filter>) -> Option<EventKind> {
        let selected =
            |item: &Option<Arc<Item>>| item.as_deref().is_some_and(|item| filter.is_none_or(|filter| filter(item)));
        EventKind::of(selected(&self.old), selected(&self.new))
    }

    /// The delivery of this change. All who ask while one of them holds it get the same, also those who catch up
    /// from the window, so that they share its frames (W3).
    pub(crate) fn delivery(self: &Arc<Change>) -> Arc<Delivery> {
        let mut slot = self.delivery.lock().expect("no holder of the delivery slot panics");
        if let Some(delivery) = slot.upgrade() {
            return delivery;
        }
        let delivery = Arc::new(Delivery { change: self.clone(), frames: Mutex::default(), runs: Mutex::default() });
        *slot = Arc::downgrade(&delivery);
        delivery
    }
}

/// One event, shared by all watchers that get it.
pub struct Delivery {
    change: Arc<Change>,
    frames: Mutex<Vec<(FrameKey, Bytes)>>,
    runs: Mutex<Vec<Run>>,
}

/// Frames in a row that were put together, and what they are: of which event, and what made of it.
struct Run {
    frames: Box<[(Revision, FrameKey)]>,
    bytes: Bytes,
}

/// How many runs an event remembers that end with it. Those who are woken together most often get the same.
const RUNS: usize = 2;

impl Delivery {
    /// The revision of the write.
    pub fn revision(&self) -> Revision {
        self.change.revision
    }

    /// The key that was written.
    pub fn key(&self) -> &Key {
        self.change.key()
    }

    /// The object before the write.
    pub fn old(&self) -> Option<&Arc<Item>> {
        self.change.old.as_ref()
    }

    /// The object after the write.
    #[expect(clippy::new_ret_no_self, reason = "the other side of `old`; a delivery is not made by its users")]
    pub fn new(&self) -> Option<&Arc<Item>> {
        self.change.new.as_ref()
    }

    /// What the write means to one who selects by `filter`; nothing if the object was not selected before or after.
    pub fn kind(&self, filter: Option<&Filter>) -> Option<EventKind> {
        self.change.kind(filter)
    }

    /// The encoded object that an event of this kind shows: the new state, or for [`EventKind::Deleted`] the old one
    /// as it reads at the revision of this event, so that a client can resume from what it was shown.
    pub fn object(&self, kind: EventKind) -> Bytes {
        let old = || self.change.old.as_ref().map(|item| item.entry().reading_at(self.change.revision));
        let new = || self.change.new.as_ref().map(|item| item.bytes().clone());
        let shown = match kind {
            EventKind::Deleted => old().or_else(new),
            EventKind::Added | EventKind::Modified => new().or_else(old),
        };
        shown.expect("a change has an old or a new side")
    }

    /// What `make` makes, made once per `key` however many watchers ask (W3). `make` must not ask this delivery for
    /// another frame.
    pub fn frame(&self, key: FrameKey, make: impl FnOnce() -> Bytes) -> Bytes {
        // Held while the frame is made: others who want the same one would only make it again. A `make` that panics
        // has added nothing, so the memo behind a poisoned lock is as good as before.
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, frame)) = frames.iter().find(|(made, _)| *made == key) {
            return frame.clone();
        }
        let frame = make();
        frames.push((key, frame.clone()));
        frame
    }

    /// What `make` puts together of several `frames` in a row, of which the last is one of this event: made once for all
    /// who are sent the same ones.
    pub fn run(&self, frames: &[(Revision, FrameKey)], make: impl FnOnce() -> Bytes) -> Bytes {
        // Held while it is made, as it is for frames.
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = runs.iter().find(|run| *run.frames == *frames) {
            return run.bytes.clone();
        }
        let bytes = make();
        if runs.len() < RUNS {
            runs.push(Run { frames: frames.into(), bytes: bytes.clone() });
        }
        bytes
    }

    /// What was made under this key, if it was.
    pub fn made(&self, key: FrameKey) -> Option<Bytes> {
        let frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        frames.iter().find(|(made, _)| *made == key).map(|(_, frame)| frame.clone())
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { revision, old, new, .. } = &*self.change;
        f.debug_struct("Delivery").field("revision", revision).field("old", old).field("new", new).finish()
    }
}

#[cfg(test)]
mod tests {
    use revisor_store::{Draft, Entry};

    use super::*;

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    fn item(number: u64, text: &str) -> Arc<Item> {
        let draft = Draft::showing_revision_at(format!(r#"{{"s":"{text}"}}"#), 1);
        Item::new(Arc::new(Entry::new(Key::new("/a"), at(number), &draft)))
    }

    fn change(old: Option<&str>, new: Option<&str>) -> Arc<Change> {
        Change::new(at(9), old.map(|text| item(4, text)), new.map(|text| item(9, text)))
    }

    #[test]
    fn the_kind_is_what_the_selection_sees() {
        use EventKind::{Added, Deleted, Modified};
        let red: Filter = Arc::new(|item| item.bytes().ends_with(br#""red"}"#));
        for (name, old, new, unfiltered, filtered) in [
            ("created inside", None, Some("red"), Added, Some(Added)),
            ("created outside", None, Some("blue"), Added, None),
            ("stays inside", Some("red"), Some("red"), Modified, Some(Modified)),
            ("enters", Some("blue"), Some("red"), Modified, Some(Added)),
            ("leaves", Some("red"), Some("blue"), Modified, Some(Deleted)),
            ("stays outside", Some("blue"), Some("blue"), Modified, None),
            ("deleted inside", Some("red"), None, Deleted, Some(Deleted)),
            ("deleted outside", Some("blue"), None, Deleted, None),
        ] {
            assert_eq!(change(old, new).kind(None), Some(unfiltered), "{name}, without a filter");
            assert_eq!(change(old, new).kind(Some(&red)), filtered, "{name}");
        }
    }

    #[test]
    fn the_object_of_a_deletion_is_the_old_state_at_the_new_revision() {
        let left = change(Some("red"), Some("blue")).delivery();
        assert_eq!(&left.object(EventKind::Modified)[..], br#"{"resourceVersion":"9","s":"blue"}"#);
        assert_eq!(&left.object(EventKind::Deleted)[..], br#"{"resourceVersion":"9","s":"red"}"#);
        assert_eq!(left.old().map(|item| item.revision()), Some(at(4)), "the item itself is not changed");
        let gone = change(Some("red"), None).delivery();
        assert_eq!(&gone.object(EventKind::Deleted)[..], br#"{"resourceVersion":"9","s":"red"}"#);
    }

    #[test]
    fn a_frame_is_made_once_per_key_and_dies_with_the_delivery() {
        let change = change(None, Some("red"));
        let delivery = change.delivery();
        let [one, two] = [0, 1].map(|number| FrameKey {
            shape: Shape::STORED,
            kind: EventKind::Added,
            form: FrameForm::Sent { encoding: 0, shape: number },
        });
        assert_eq!(delivery.made(one), None);
        assert_eq!(delivery.frame(one, || "one".into()), "one");
        assert_eq!(delivery.frame(two, || "two".into()), "two");
        assert_eq!(change.delivery().frame(one, || unreachable!("it was made")), "one", "one delivery is shared");
        assert_eq!(change.delivery().made(two), Some("two".into()));
        drop(delivery);
        assert_eq!(change.delivery().frame(one, || "again".into()), "again");
    }

    #[test]
    fn a_run_is_put_together_once_for_all_who_get_the_same() {
        let delivery = change(None, Some("red")).delivery();
        let [added, modified] = [EventKind::Added, EventKind::Modified].map(|kind| FrameKey {
            shape: Shape::STORED,
            kind,
            form: FrameForm::Sent { encoding: 0, shape: 0 },
        });
        let run = [(at(7), added), (at(9), added)];
        assert_eq!(delivery.run(&run, || "7 9".into()), "7 9");
        assert_eq!(delivery.run(&run, || unreachable!("it was made")), "7 9");
        for (name, other) in [
            ("another event", [(at(8), added), (at(9), added)]),
            ("another meaning", [(at(7), modified), (at(9), added)]),
        ] {
            assert_eq!(delivery.run(&other, || name.into()), name);
        }
        assert_eq!(delivery.run(&run, || unreachable!("it was made")), "7 9");
    }
}
