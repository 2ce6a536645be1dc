//! [`Keys`]: the keys that were written within history, each with a number that stands for it in the writes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use revisor_version::Revision;

use super::versions::{Passed, Version, Versions};
use crate::Key;

/// Stands for a key for as long as history holds a write of it.
pub(super) type KeyNumber = u32;

/// The keys by name and by number. The lowest number that is free is given out first, so that the room of many keys that
/// were written once, and deleted, is given back.
#[derive(Debug, Default)]
pub(super) struct Keys {
    numbers: BTreeMap<Key, KeyNumber>,
    /// By number. The last one is never free.
    slots: Vec<Option<(Key, Versions)>>,
    free: BTreeSet<KeyNumber>,
}

impl Keys {
    /// When `key` was written, if it was.
    pub(super) fn get(&self, key: &str) -> Option<&Versions> {
        self.numbers.get(key).map(|number| &self.slot(*number).1)
    }

    /// The key of a write that history holds, and when it was written.
    pub(super) fn slot(&self, number: KeyNumber) -> &(Key, Versions) {
        self.slots[number as usize].as_ref().expect("a number is taken while there are writes with it")
    }

    /// The keys from `start` on, in order.
    pub(super) fn from<'a>(&'a self, start: Bound<&str>) -> impl Iterator<Item = &'a Key> + use<'a> {
        self.numbers.range::<str, _>((start, Bound::Unbounded)).map(|(key, _)| key)
    }

    /// Adds a write to a key that held the object of `old` before, and answers the key's number.
    pub(super) fn push(&mut self, key: &Key, old: Option<Revision>, version: Version) -> KeyNumber {
        if let Some(&number) = self.numbers.get(key) {
            let slot = self.slots[number as usize].as_mut().expect("a key that is known has a slot");
            slot.1.push(version);
            return number;
        }
        let mut versions = Versions::default();
        old.into_iter().for_each(|old| versions.push(Version::new(old, false)));
        versions.push(version);
        let slot = Some((key.clone(), versions));
        let number = match self.free.pop_first() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                KeyNumber::try_from(self.slots.len() - 1).expect("memory holds fewer keys")
            }
        };
        self.numbers.insert(key.clone(), number);
        number
    }

    /// Forgets a write of the key with this number, its oldest one, and the key if that was all of it.
    pub(super) fn pass(&mut self, number: KeyNumber, revision: Revision) -> Passed {
        let slot = &mut self.slots[number as usize];
        let (key, versions) = slot.as_mut().expect("a number is taken while there are writes with it");
        let passed = versions.pass(revision);
        if versions.is_empty() {
            self.numbers.remove(key);
            *slot = None;
            self.free.insert(number);
            self.shorten();
        }
        passed
    }

    /// Gives back the room behind the last key.
    fn shorten(&mut self) {
        while self.slots.pop_if(|slot| slot.is_none()).is_some() {
            let number = KeyNumber::try_from(self.slots.len()).expect("it had a number");
            self.free.remove(&number);
        }
        if self.slots.capacity() > 4 * self.slots.len() + 64 {
            self.slots.shrink_to(2 * self.slots.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    fn key(number: u64) -> Key {
        Key::new(format!("/registry/pods/a/{number:06}"))
    }

    #[test]
    fn what_was_written_once_and_passed_leaves_no_room_behind() {
        // In the order of their writes, in the opposite one, and in none.
        for (name, factor) in [("first to last", 1), ("last to first", 999), ("anyhow", 617)] {
            let mut keys = Keys::default();
            let lasting = keys.push(&key(1_000_000), None, Version::new(at(1), false));
            let numbers: Vec<_> = (0..1000).map(|n| keys.push(&key(n), None, Version::new(at(n + 2), false))).collect();
            assert_eq!(keys.slots.len(), 1001, "{name}");
            for n in (0..1000).map(|n| n * factor % 1000) {
                keys.pass(numbers[n as usize], at(n + 2));
            }
            assert_eq!((keys.slots.len(), keys.numbers.len(), keys.free.len()), (1, 1, 0), "{name}");
            assert!(keys.slots.capacity() <= 128, "{name}");
            assert_eq!(keys.slot(lasting).0, key(1_000_000), "{name}");
        }
    }

    #[test]
    fn the_lowest_number_is_taken_first() {
        let mut keys = Keys::default();
        for n in 0..4 {
            assert_eq!(u64::from(keys.push(&key(n), None, Version::new(at(n + 1), false))), n);
        }
        keys.pass(2, at(3));
        keys.pass(1, at(2));
        assert_eq!(keys.push(&key(4), None, Version::new(at(5), false)), 1);
        assert_eq!(keys.push(&key(0), None, Version::new(at(6), false)), 0, "a key that is known keeps its number");
        assert_eq!(keys.push(&key(5), None, Version::new(at(7), false)), 2);
        let found: Vec<_> = keys.from(Bound::Excluded(key(0).as_str())).cloned().collect();
        assert_eq!(found, [key(3), key(4), key(5)]);
    }
}
