//! [`Ranks`]: how many keys of an ordered map stand between two places, without a walk over all of them.
//!
//! The keys are divided into stretches, each of which knows how many it has. What stands between two places is walked in
//! the stretches where they are, and summed up over those in between: for a million keys some thousand additions, which is
//! less than it takes to show one page of a list.

use std::ops::Bound;

use imbl::OrdMap;
use revisor_store::Key;

/// How many keys a stretch has at most. With more, more is walked; with fewer, there are more stretches to sum up.
const LONGEST: usize = 1024;

/// How many keys each stretch of a map has, by the key that it begins with. A clone shares all nodes with the original.
#[derive(Clone, Default)]
pub(crate) struct Ranks {
    stretches: OrdMap<Key, usize>,
}

impl Ranks {
    /// Counts `key`, which was not among `keys` before and is now.
    pub(crate) fn add<V>(&mut self, key: &Key, keys: &OrdMap<Key, V>) {
        let (begin, count) = match self.stretches.get_prev(key.as_str()) {
            Some((begin, count)) => (begin.clone(), count + 1),
            None => (key.clone(), self.remove_first() + 1),
        };
        let middle = if count > LONGEST { keys.range(begin.clone()..).nth(count / 2) } else { None };
        let length = if middle.is_some() { count / 2 } else { count };
        if let Some((middle, _)) = middle {
            self.stretches.insert(middle.clone(), count - length);
        }
        self.stretches.insert(begin, length);
    }

    /// Lets go of the first stretch, for one that begins before it. Answers how many keys it had.
    fn remove_first(&mut self) -> usize {
        let first = self.stretches.get_min().map(|(begin, _)| begin.clone());
        first.and_then(|begin| self.stretches.remove(&begin)).unwrap_or(0)
    }

    /// Counts `key` no more.
    pub(crate) fn take(&mut self, key: &str) {
        let Some((begin, count)) = self.stretches.get_prev(key) else { return };
        let (begin, count) = (begin.clone(), count - 1);
        let before = self.stretches.range(..begin.clone()).next_back();
        match before.map(|(before, length)| (before.clone(), length + count)) {
            // So that a map that has shrunk is not divided as if it were large.
            Some((before, together)) if count == 0 || together <= LONGEST / 2 => {
                self.stretches.remove(&begin);
                self.stretches.insert(before, together);
            }
            None if count == 0 => drop(self.stretches.remove(&begin)),
            _ => drop(self.stretches.insert(begin, count)),
        }
    }

    /// How many of `keys` stand from `start` on and before `end`, if there is an end.
    pub(crate) fn count<V>(&self, keys: &OrdMap<Key, V>, start: Bound<&str>, end: Option<&str>) -> usize {
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        let from = match start {
            Bound::Included(from) | Bound::Excluded(from) => Bound::Excluded(from),
            Bound::Unbounded => Bound::Unbounded,
        };
        let mut begun = self.stretches.range::<_, str>((from, end));
        let Some((second, count)) = begun.next() else { return keys.range::<_, str>((start, end)).count() };
        let before = keys.range::<_, str>((start, Bound::Excluded(second.as_str()))).count();
        let ((last, last_count), between) =
            begun.fold(((second, count), 0), |((_, passed), between), next| (next, between + passed));
        let behind = match end {
            Bound::Unbounded => *last_count,
            end => keys.range::<_, str>((Bound::Included(last.as_str()), end)).count(),
        };
        before + between + behind
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A map of some numbers, with its ranks.
    #[derive(Default)]
    struct Counted {
        keys: OrdMap<Key, ()>,
        ranks: Ranks,
    }

    impl Counted {
        fn add(&mut self, number: usize) {
            let key = key(number);
            if self.keys.insert(key.clone(), ()).is_none() {
                self.ranks.add(&key, &self.keys);
            }
        }

        fn take(&mut self, number: usize) {
            let key = key(number);
            if self.keys.remove(&key).is_some() {
                self.ranks.take(key.as_str());
            }
        }
    }

    fn key(number: usize) -> Key {
        Key::new(format!("/{number:05}"))
    }

    #[test]
    fn stretches_are_neither_long_nor_many() {
        let mut counted = Counted::default();
        (0..20_000).rev().for_each(|number| counted.add(number));
        assert!(counted.ranks.stretches.values().all(|count| (1..=LONGEST).contains(count)));
        assert!(counted.ranks.stretches.len() < 20_000 / (LONGEST / 2) + 2, "{}", counted.ranks.stretches.len());
        (0..20_000).filter(|number| number % 100 != 0).for_each(|number| counted.take(number));
        assert!(counted.ranks.stretches.len() <= 4, "{}", counted.ranks.stretches.len());
        (0..20_000).for_each(|number| counted.take(number));
        assert!(counted.ranks.stretches.is_empty());
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_walk(
            runs in prop::collection::vec((any::<bool>(), 0..6000_usize, 1..3000_usize, 1..5_usize), 1..8),
            asked in prop::collection::vec((0..3_u8, 0..9000_usize, prop::option::of(0..9000_usize)), 1..12),
        ) {
            let (mut counted, mut model) = (Counted::default(), BTreeSet::new());
            for (adds, from, length, step) in runs {
                for number in (from..from + length).step_by(step) {
                    if adds {
                        counted.add(number);
                        model.insert(key(number));
                    } else {
                        counted.take(number);
                        model.remove(&key(number));
                    }
                }
            }
            for (bound, start, length) in asked {
                let (from, end) = (key(start), length.map(|length| key(start + length)));
                let (start, walk) = match bound {
                    0 => (Bound::Unbounded, Bound::Unbounded),
                    1 => (Bound::Included(from.as_str()), Bound::Included(from.clone())),
                    _ => (Bound::Excluded(from.as_str()), Bound::Excluded(from.clone())),
                };
                // There is nothing between a place and itself, of which maps do not want to hear.
                if matches!(start, Bound::Excluded(_)) && length == Some(0) {
                    continue;
                }
                let walked = model.range((walk, end.clone().map_or(Bound::Unbounded, Bound::Excluded))).count();
                let count = counted.ranks.count(&counted.keys, start, end.as_ref().map(Key::as_str));
                prop_assert_eq!(count, walked);
            }
        }
    }
}
