//! [`Item`]: one object of the cache, with the parsed view that selectors need and what its readers remember of it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use revisor_object::Shape;
use revisor_store::{Entry, Key};
use revisor_version::Revision;

use crate::encodings::{EncodedKey, EncodingRoom, Encodings};

/// One object at one revision. The map, the window and every reader share one of these.
pub struct Item {
    entry: Arc<Entry>,
    // Made on first need: a million objects that nobody selects on cost one empty word each.
    beside: OnceLock<Box<Beside>>,
}

/// What is made of an object and goes with it, so that nothing has to be invalidated.
#[derive(Default)]
struct Beside {
    view: OnceLock<Box<View>>,
    // What it is, only readers know.
    remembered: OnceLock<Box<Remembered>>,
    // In other shapes than the stored one, and as the server itself reads it. Most objects are asked for in neither.
    kept: OnceLock<Box<Mutex<Kept>>>,
    // In other encodings than the stored one.
    encodings: OnceLock<Box<Encodings>>,
}

/// What readers remember of an object, by the shape in which they see it. The first is the one that nearly all see.
struct Remembered {
    first: (Shape, Arc<dyn Any + Send + Sync>),
    others: Mutex<Vec<(Shape, Arc<dyn Any + Send + Sync>)>>,
}

/// What is made of an object for others than selectors and tables.
#[derive(Default)]
struct Kept {
    /// Encoded objects by their shape.
    shown: Vec<(Shape, Bytes)>,
    /// What the server reads of it.
    read: Option<Arc<dyn Any + Send + Sync>>,
}

/// In how many other shapes an object is kept. Who changes a definition again and again leaves shapes behind.
const MAX_SHOWN: usize = 8;

/// What selectors look at, read from an object's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The labels, sorted by key.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// The values of the resource's selectable fields, in the resource's own order.
    pub fields: Vec<Box<str>>,
}

impl Item {
    /// The item of `entry`, not yet parsed. Also for what is not stored but listed like it.
    pub fn new(entry: Arc<Entry>) -> Arc<Item> {
        Arc::new(Item { entry, beside: OnceLock::new() })
    }

    fn beside(&self) -> &Beside {
        self.beside.get_or_init(Box::default)
    }

    /// The entry as the store has it.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Where the object lives.
    pub fn key(&self) -> &Key {
        self.entry.key()
    }

    /// The encoded object.
    pub fn bytes(&self) -> &Bytes {
        self.entry.bytes()
    }

    /// The write that made it.
    pub fn revision(&self) -> Revision {
        self.entry.revision()
    }

    /// The parsed view; `read` makes it from the bytes, once in the life of this item however many ask. All callers
    /// of one resource must pass the same reading.
    pub fn view(&self, read: impl FnOnce(&[u8]) -> View) -> &View {
        self.beside().view.get_or_init(|| Box::new(read(self.entry.bytes())))
    }

    /// What readers remember of the object in this shape while it lives; `make` makes it, once in the life of this item
    /// unless it is seen in many shapes. All callers of one resource must pass the same making. `None` if something of
    /// another type is remembered.
    pub fn remember<T: Any + Send + Sync>(&self, shape: Shape, make: impl FnOnce() -> T) -> Option<Arc<T>> {
        let mut make = Some(make);
        let mut made = || make.take().map(|make| Arc::new(make()) as Arc<dyn Any + Send + Sync>);
        let remembered = self.beside().remembered.get_or_init(|| {
            let first = made().expect("nothing was made before");
            Box::new(Remembered { first: (shape, first), others: Mutex::default() })
        });
        if remembered.first.0 == shape {
            return remembered.first.1.clone().downcast().ok();
        }
        let mut others = remembered.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = others.iter().find(|(known, _)| *known == shape) {
            return known.clone().downcast().ok();
        }
        if others.len() == MAX_SHOWN {
            others.remove(0);
        }
        let new = made()?;
        others.push((shape, new.clone()));
        new.downcast().ok()
    }

    /// The object in another encoding, if it was kept in it.
    pub fn encoded(&self, key: EncodedKey) -> Option<Bytes> {
        self.look_encoded(key, Bytes::clone)
    }

    /// What `look` makes of the object in another encoding, if it was kept in it: for those who need it for a moment.
    pub fn look_encoded<R>(&self, key: EncodedKey, look: impl FnOnce(&Bytes) -> R) -> Option<R> {
        self.beside.get()?.encodings.get()?.look(key, look)
    }

    /// Keeps the object in another encoding while it lives, if there is room.
    pub fn keep_encoded(&self, key: EncodedKey, bytes: Bytes, room: &Arc<EncodingRoom>) {
        self.beside().encodings.get_or_init(Box::default).keep(key, bytes, room);
    }

    /// The object in another shape, if it was kept in it.
    pub fn shown(&self, shape: Shape) -> Option<Bytes> {
        let kept = self.beside.get()?.kept.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        kept.shown.iter().find(|(known, _)| *known == shape).map(|(_, bytes)| bytes.clone())
    }

    /// Keeps the object in another shape while it lives. Only what is finished is kept: whoever finds it sends it.
    pub fn keep_shown(&self, shape: Shape, bytes: Bytes) {
        let mut kept = self.beside().kept.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner);
        let shown = &mut kept.shown;
        shown.retain(|(known, _)| *known != shape);
        if shown.len() == MAX_SHOWN {
            shown.remove(0);
        }
        shown.push((shape, bytes));
    }

    /// What the server itself reads of the object, kept while it lives; `make` makes it from the bytes. All callers of
    /// one resource should pass the same making: what is of another type than what is kept is made for each of them.
    pub fn keep_read<T: Any + Send + Sync>(&self, make: impl FnOnce(&Bytes) -> T) -> Arc<T> {
        let lock = || self.beside().kept.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().read.clone().and_then(|known| known.downcast().ok()) {
            return known;
        }
        // Made without the lock: it may take long, and to make it twice is no harm.
        let made = Arc::new(make(self.entry.bytes()));
        lock().read.get_or_insert_with(|| made.clone());
        made
    }

    /// What readers remember of the object in the shape in which nearly all see it, if they do already.
    pub fn recall<T: Any + Send + Sync>(&self, shape: Shape) -> Option<&T> {
        let (known, remembered) = &self.beside.get()?.remembered.get()?.first;
        if *known == shape { remembered.downcast_ref() } else { None }
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key(), self.revision())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use revisor_store::Draft;

    use super::*;

    #[test]
    fn the_view_is_read_once() {
        let entry = Entry::new(Key::new("/a"), Revision::FIRST, &Draft::opaque(&b"app=web"[..]));
        let item = Item::new(Arc::new(entry));
        let reads = Cell::new(0);
        let read = |bytes: &[u8]| {
            reads.set(reads.get() + 1);
            let text = std::str::from_utf8(bytes).expect("written as text");
            View { labels: Vec::new(), fields: vec![text.into()] }
        };
        assert_eq!(item.view(read).fields, ["app=web".into()]);
        assert_eq!(item.view(read).fields, ["app=web".into()]);
        assert_eq!(reads.get(), 1);
    }

    #[test]
    fn an_item_of_which_nothing_was_made_is_small() {
        assert_eq!(size_of::<Item>(), 24, "its entry, and one empty word with its state");
    }

    #[test]
    fn a_few_other_shapes_are_kept() {
        let entry = Entry::new(Key::new("/a"), Revision::FIRST, &Draft::opaque(&b"web"[..]));
        let item = Item::new(Arc::new(entry));
        let shape = |state: usize| Shape::of_defined(0, state as u64);
        assert_eq!(item.shown(shape(1)), None);
        for state in 1..=MAX_SHOWN + 1 {
            item.keep_shown(shape(state), "old".into());
            item.keep_shown(shape(state), "new".into());
        }
        assert_eq!((item.shown(shape(1)), item.shown(shape(2))), (None, Some("new".into())));
    }

    #[test]
    fn what_is_remembered_is_made_once_for_each_shape_and_has_one_type() {
        let entry = Entry::new(Key::new("/a"), Revision::FIRST, &Draft::opaque(&b"web"[..]));
        let item = Item::new(Arc::new(entry));
        let made = Cell::new(0);
        let make = || {
            made.set(made.get() + 1);
            made.get()
        };
        let other = Shape::of_defined(1, 1);
        assert_eq!(item.recall::<usize>(Shape::STORED), None);
        for _ in 0..2 {
            assert_eq!(item.remember(Shape::STORED, make).as_deref(), Some(&1));
            assert_eq!(item.remember(other, make).as_deref(), Some(&2));
        }
        assert_eq!(item.recall::<usize>(Shape::STORED), Some(&1));
        assert_eq!(item.recall::<usize>(other), None, "only the first is at hand");
        assert_eq!(item.remember(Shape::STORED, || "text"), None);
        assert_eq!(item.recall::<&str>(Shape::STORED), None);
        for state in 2..=MAX_SHOWN as u64 + 1 {
            assert!(item.remember(Shape::of_defined(1, state), make).is_some());
        }
        assert_eq!(
            item.remember(other, make).as_deref(),
            Some(&(MAX_SHOWN + 3)),
            "what is seen in many shapes is made again"
        );
    }
}
