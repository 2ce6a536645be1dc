//! [`Encodings`]: an object in the encodings that were asked for, kept beside it for as long as it lives and there is room.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use revisor_object::Shape;

/// In how many ways one object is kept. Who changes a definition again and again leaves shapes behind.
const MAX_ENCODINGS: usize = 4;

/// What beside the object itself decides how it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EncodedKey {
    /// The shape in which it is shown.
    pub shape: Shape,
    /// The encoding. Whoever encodes objects numbers the ways to do so.
    pub encoding: u8,
}

/// How much may be kept of all objects together.
pub struct EncodingRoom {
    most: usize,
    used: AtomicUsize,
}

impl EncodingRoom {
    /// Room for so many bytes.
    pub fn new(most: usize) -> Arc<EncodingRoom> {
        Arc::new(EncodingRoom { most, used: AtomicUsize::new(0) })
    }

    /// How many bytes are kept.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes room for so many bytes, if there is as much.
    fn take(self: &Arc<Self>, bytes: usize) -> Option<Taken> {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| *used <= self.most)
        });
        taken.ok().map(|_| Taken { room: self.clone(), bytes })
    }
}

impl fmt::Debug for EncodingRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodingRoom({} of {})", self.used(), self.most)
    }
}

/// Room that is given back with what it was taken for.
struct Taken {
    room: Arc<EncodingRoom>,
    bytes: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// One object in the encodings that were asked for. The first is found without a lock: most objects are read in one, and a
/// long list of them should wait for nothing.
#[derive(Default)]
pub(crate) struct Encodings {
    first: OnceLock<Kept>,
    others: Mutex<Vec<Kept>>,
}

type Kept = (EncodedKey, Bytes, Taken);

impl Encodings {
    /// What `look` makes of the object in this encoding, if it is kept.
    pub(crate) fn look<R>(&self, key: EncodedKey, look: impl FnOnce(&Bytes) -> R) -> Option<R> {
        match self.first.get() {
            Some((found, bytes, _)) if *found == key => Some(look(bytes)),
            Some(_) => self.others().iter().find(|(found, ..)| *found == key).map(|(_, bytes, _)| look(bytes)),
            None => None,
        }
    }

    pub(crate) fn keep(&self, key: EncodedKey, bytes: Bytes, room: &Arc<EncodingRoom>) {
        if self.look(key, |_| ()).is_some() {
            return;
        }
        let Some(taken) = room.take(bytes.len()) else { return };
        let Err(other) = self.first.set((key, bytes, taken)) else { return };
        let mut others = self.others();
        if others.iter().any(|(found, ..)| *found == other.0) {
            return;
        }
        if others.len() == MAX_ENCODINGS - 1 {
            others.remove(0);
        }
        others.push(other);
    }

    fn others(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(encoding: u8) -> EncodedKey {
        EncodedKey { shape: Shape::STORED, encoding }
    }

    fn kept(object: &Encodings, encoding: u8) -> Option<Bytes> {
        object.look(key(encoding), Bytes::clone)
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let room = EncodingRoom::new(10);
        let (one, two) = (Encodings::default(), Encodings::default());
        one.keep(key(0), "123456".into(), &room);
        one.keep(key(0), "123456".into(), &room);
        assert_eq!(room.used(), 6, "what is kept already is not kept again");
        two.keep(key(0), "12345".into(), &room);
        assert_eq!((kept(&two, 0), room.used()), (None, 6));
        two.keep(key(1), "1234".into(), &room);
        assert_eq!((kept(&two, 1), room.used()), (Some("1234".into()), 10));
        drop(one);
        two.keep(key(0), "12345".into(), &room);
        assert_eq!((kept(&two, 0), room.used()), (Some("12345".into()), 9));
    }

    #[test]
    fn a_few_are_kept_of_each_object() {
        let room = EncodingRoom::new(1000);
        let object = Encodings::default();
        for encoding in 0..=MAX_ENCODINGS as u8 {
            object.keep(key(encoding), "x".into(), &room);
        }
        let found: Vec<bool> = (0..=MAX_ENCODINGS as u8).map(|encoding| kept(&object, encoding).is_some()).collect();
        assert_eq!((found, room.used()), (vec![true, false, true, true, true], MAX_ENCODINGS));
    }
}
