//! [`Tally`]: how many objects of a resource there are of each class, kept along with every write.
//!
//! What the classes are, only the owner of a resource knows: it brings the [`Classify`]. Nothing is ever counted again
//! after the start: a write takes the old object out of its class and puts the new one into its own, under the lock
//! under which the objects themselves change.

use std::borrow::Cow;
use std::sync::Arc;

use crate::Item;

/// Says of which class an object is, by its bytes. It runs on the store's writer thread, twice per write: it must be
/// quick, must not wait, and must always say the same of the same bytes.
pub type Classify = fn(&[u8]) -> Cow<'_, str>;

/// How many objects there are of each class.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    classify: Classify,
    /// In the order of the classes, and none without objects. They are few: a search costs less than a hash.
    counts: Vec<(Box<str>, u64)>,
}

impl Tally {
    /// The tally of no objects.
    pub(crate) fn new(classify: Classify) -> Tally {
        Tally { classify, counts: Vec::new() }
    }

    /// The tally of these objects.
    pub(crate) fn of<'i>(classify: Classify, items: impl Iterator<Item = &'i Arc<Item>>) -> Tally {
        let mut tally = Tally::new(classify);
        items.for_each(|item| tally.add(item.bytes()));
        tally
    }

    /// How objects are classified.
    pub(crate) fn classify(&self) -> Classify {
        self.classify
    }

    /// Counts an object.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let class = (self.classify)(bytes);
        match self.find(&class) {
            Ok(at) => self.counts[at].1 += 1,
            Err(at) => self.counts.insert(at, (class.as_ref().into(), 1)),
        }
    }

    /// Counts an object no longer, which was counted before.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let class = (self.classify)(bytes);
        let Ok(at) = self.find(&class) else {
            debug_assert!(false, "an object of class {class:?} goes that never came");
            return;
        };
        self.counts[at].1 -= 1;
        if self.counts[at].1 == 0 {
            self.counts.remove(at);
        }
    }

    /// The classes that have objects, in their order, and how many each has.
    pub(crate) fn counts(&self) -> &[(Box<str>, u64)] {
        &self.counts
    }

    fn find(&self, class: &str) -> Result<usize, usize> {
        self.counts.binary_search_by(|(known, _)| (**known).cmp(class))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The class of a text is its first letter.
    fn first_letter(bytes: &[u8]) -> Cow<'_, str> {
        String::from_utf8_lossy(bytes.get(..1).unwrap_or_default())
    }

    #[test]
    fn a_class_is_there_while_it_has_objects() {
        let mut tally = Tally::new(first_letter);
        for (name, write, want) in [
            ("the first", "+beech", &[("b", 1)][..]),
            ("of another class, before it", "+ash", &[("a", 1), ("b", 1)]),
            ("of a class that is there", "+birch", &[("a", 1), ("b", 2)]),
            ("of no class", "+", &[("", 1), ("a", 1), ("b", 2)]),
            ("one goes", "-beech", &[("", 1), ("a", 1), ("b", 1)]),
            ("the last of its class goes", "-ash", &[("", 1), ("b", 1)]),
        ] {
            match write.split_at(1) {
                ("+", text) => tally.add(text.as_bytes()),
                (_, text) => tally.take(text.as_bytes()),
            }
            let counts: Vec<(&str, u64)> = tally.counts().iter().map(|(class, count)| (&**class, *count)).collect();
            assert_eq!(counts, want, "{name}");
        }
    }

    proptest! {
        /// Whatever is written, the tally is what a recount finds.
        #[test]
        fn a_tally_is_what_a_recount_finds(writes in prop::collection::vec((0..20_usize, prop::option::of("[abc]{0,3}")), 0..200)) {
            let mut objects: BTreeMap<usize, String> = BTreeMap::new();
            let mut tally = Tally::new(first_letter);
            for (key, text) in writes {
                let old = match &text {
                    Some(text) => objects.insert(key, text.clone()),
                    None => objects.remove(&key),
                };
                if let Some(old) = old {
                    tally.take(old.as_bytes());
                }
                if let Some(text) = &text {
                    tally.add(text.as_bytes());
                }
                let mut recount: BTreeMap<Box<str>, u64> = BTreeMap::new();
                objects.values().for_each(|text| *recount.entry(first_letter(text.as_bytes()).into()).or_default() += 1);
                prop_assert_eq!(tally.counts(), &recount.into_iter().collect::<Vec<_>>()[..]);
            }
        }
    }
}
