//! The index against a list of all that was ever written.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::Draft;

fn at(number: u64) -> Revision {
    Revision::new(number).expect("not zero")
}

fn time(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn limits(events: usize, bytes: usize, floor: u64) -> HistoryLimits {
    HistoryLimits { age: Duration::from_secs(1000), events, bytes, floor: Duration::from_secs(floor) }
}

/// An index, and the writes that made it: key, what the key held before, and whether it holds something now.
struct Fixture {
    index: Index,
    writes: Vec<(Key, Option<Revision>, bool)>,
    newest: BTreeMap<Key, Entry>,
}

impl Fixture {
    fn new() -> Fixture {
        let index = Index::starting_at(None, &[], super::super::resource_of, &limits(100, 10_000, 0));
        Fixture { index, writes: vec![], newest: BTreeMap::new() }
    }

    /// Writes 96 bytes to a key of four, or deletes it, a second after the write before.
    fn write(&mut self, key: &str, is_deletion: bool) {
        let revision = at(self.writes.len() as u64 + 1);
        let key = Key::new(format!("/{key}/k"));
        let old = self.newest.remove(&key);
        self.index.push(revision, time(revision.get()), &key, old.as_ref(), is_deletion);
        self.writes.push((key.clone(), old.map(|old| old.revision()), !is_deletion));
        if !is_deletion {
            let entry = Entry::new(key.clone(), revision, &Draft::opaque(vec![0; 96]));
            self.newest.insert(key, entry);
        }
    }

    /// So many writes to each of these, in turn.
    fn write_all(&mut self, counts: &[(&str, usize)]) {
        let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
        for turn in 0..most {
            for (key, count) in counts {
                if turn < *count {
                    self.write(key, false);
                }
            }
        }
    }

    fn newest(&self) -> Option<Revision> {
        Revision::new(self.writes.len() as u64)
    }

    /// Compares all that the index still knows with what was written.
    fn check(&self) {
        let newest = self.newest();
        for prefix in ["", "/a/", "/b/", "/c/k", "/none/"] {
            let oldest = self.index.oldest(prefix).map_or(0, Revision::get);
            for after in oldest..=newest.map_or(0, Revision::get) {
                let (found, through) = self.index.writes_after(prefix, Revision::new(after), newest, 1000, 1000);
                assert_eq!(through, newest);
                let found: Vec<_> = found
                    .iter()
                    .map(|w| (w.version.revision().get(), w.key.clone(), w.old, !w.version.is_deletion()))
                    .collect();
                let all = (1..).zip(&self.writes).skip(after as usize);
                let want = all.filter(|(_, (key, ..))| key.as_str().starts_with(prefix));
                let want: Vec<_> = want.map(|(number, (key, old, new))| (number, key.clone(), *old, *new)).collect();
                assert_eq!(found, want, "{prefix:?} after {after}");
            }
        }
    }
}

#[test]
fn every_share_loses_its_own_and_the_largest_first() {
    for (name, counts, limits, want) in [
        ("all fits", &[("a", 5), ("b", 5)][..], limits(10, 10_000, 0), &[("/a/", 0), ("/b/", 0)][..]),
        ("the noisy one pays for all", &[("a", 50), ("b", 5)], limits(20, 100_000, 0), &[("/a/", 40), ("/b/", 0)]),
        ("also in bytes", &[("a", 50), ("b", 5)], limits(1000, 4_000, 0), &[("/a/", 43), ("/b/", 0)]),
        (
            "the noisiest pays first, down to its share",
            &[("a", 50), ("b", 40), ("c", 3)],
            limits(23, 100_000, 0),
            &[("/a/", 86), ("/b/", 57), ("/c/", 0)],
        ),
        ("nothing is allowed", &[("a", 5), ("b", 2)], limits(0, 100_000, 0), &[("/a/", 7), ("/b/", 4)]),
    ] {
        let mut fixture = Fixture::new();
        fixture.write_all(counts);
        let now = time(fixture.writes.len() as u64);
        while fixture.index.trim(&limits, now, |_| {}).is_some() {}
        assert!(!fixture.index.is_beyond(&limits), "{name}");
        let oldest: Vec<_> =
            want.iter().map(|(prefix, _)| (*prefix, fixture.index.oldest(prefix).map_or(0, Revision::get))).collect();
        assert_eq!(oldest, want, "{name}");
        fixture.check();
    }
}

#[test]
fn what_is_young_goes_last() {
    // Of 60 writes to a and 20 before them to b, both beyond their shares of 15, those to b are older than the floor.
    let mut fixture = Fixture::new();
    fixture.write_all(&[("b", 20)]);
    fixture.write_all(&[("a", 60)]);
    let limits = |floor| limits(30, 100_000, floor);
    let now = time(80);
    let (share, oldest) = fixture.index.trim(&limits(60), now, |_| {}).expect("there is too much");
    assert_eq!((&*share, oldest), ("/b/", at(5)), "down to its share");
    let (share, oldest) = fixture.index.trim(&limits(60), now, |_| {}).expect("there is too much");
    assert_eq!((&*share, oldest), ("/a/", at(65)), "as no other is beyond its share");
    assert_eq!(fixture.index.trim(&limits(60), now, |_| {}), None);
    fixture.check();
}

#[test]
fn what_leaves_is_told_once_and_in_the_order_of_its_key() {
    let mut fixture = Fixture::new();
    for turn in 0..40 {
        fixture.write(["a", "b", "c"][turn % 3], turn % 3 == 1 && turn % 2 == 0 && turn > 3);
    }
    let mut left = vec![];
    let mut leaving = |passed: Passed| left.push((passed.version.revision(), passed.old));
    assert!(fixture.index.trim(&limits(30, 100_000, 0), time(40), &mut leaving).is_some());
    fixture.index.forget(at(25), &mut leaving);
    fixture.index.forget(at(20), |_| panic!("nothing leaves twice"));
    fixture.index.forget(at(40), &mut leaving);
    left.sort();
    let want: Vec<_> = (1..).zip(&fixture.writes).map(|(number, (_, old, _))| (at(number), *old)).collect();
    assert_eq!(left, want);
    assert_eq!(fixture.index.held(), Held::default());
    assert_eq!(fixture.index.floors(), []);
    assert!(fixture.index.shares.is_empty() && fixture.index.keys.from(Bound::Unbounded).next().is_none());
    fixture.check();
}

#[test]
fn a_search_is_bounded_and_says_how_far_it_came() {
    let mut fixture = Fixture::new();
    fixture.write_all(&[("a", 30), ("b", 3)]);
    for (name, prefix, after, limit, look, want, through) in [
        ("the limit of events", "/a/", 6, 2, 100, vec![7, 8], 8),
        ("the limit of looks", "/a/none", 6, 9, 10, vec![], 16),
        ("of one share among others", "", 0, 3, 100, vec![1, 2, 3], 3),
        ("to the end", "/b/", 0, 9, 100, vec![2, 4, 6], 33),
    ] {
        let (found, reached) = fixture.index.writes_after(prefix, Revision::new(after), fixture.newest(), limit, look);
        let found: Vec<_> = found.iter().map(|write| write.version.revision().get()).collect();
        assert_eq!((found, reached), (want, Some(at(through))), "{name}");
    }
}

#[test]
fn each_limit_says_what_must_go() {
    let mut fixture = Fixture::new();
    fixture.write_all(&[("a", 10)]);
    for (name, age, want) in [("old ones", 16, Some(4)), ("all are old", 0, Some(10)), ("none is", 1000, None)] {
        let limits = HistoryLimits { age: Duration::from_secs(age), ..limits(100, 10_000, 0) };
        assert_eq!(fixture.index.beyond_age(&limits, time(20)), want.map(at), "{name}");
    }
}
