//! [`Versions`]: when one key was written, as far as history knows.

use revisor_version::Revision;
use smallvec::SmallVec;

/// One write of a key: its revision, and whether it was a deletion. One word, because there is one for every write
/// that history holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(u64);

impl Version {
    pub(super) fn new(revision: Revision, is_deletion: bool) -> Version {
        Version(revision.get() << 1 | u64::from(is_deletion))
    }

    pub(super) fn revision(self) -> Revision {
        Revision::new(self.0 >> 1).expect("a version is made of a revision")
    }

    pub(super) fn is_deletion(self) -> bool {
        self.0 & 1 == 1
    }

    /// The revision of the object that this write left behind; nothing after a deletion.
    pub(super) fn object(self) -> Option<Revision> {
        (!self.is_deletion()).then(|| self.revision())
    }
}

/// The writes of a key in order. The first may be older than history: it is what the key held where history begins.
#[derive(Debug, Default)]
pub(super) struct Versions {
    all: SmallVec<[Version; 2]>,
    /// So many at the front are forgotten; they are moved out of the way now and then.
    gone: usize,
}

/// What a write leaves behind when history passes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passed {
    /// The write.
    pub(super) version: Version,
    /// The object that it replaced or deleted, which nothing needs any more.
    pub(super) old: Option<Revision>,
}

impl Versions {
    fn live(&self) -> &[Version] {
        &self.all[self.gone..]
    }

    /// Whether history holds no write of this key.
    pub(super) fn is_empty(&self) -> bool {
        self.live().is_empty()
    }

    /// Adds the newest write.
    pub(super) fn push(&mut self, version: Version) {
        debug_assert!(self.live().last().is_none_or(|last| last.revision() < version.revision()), "in order");
        self.all.push(version);
    }

    /// The last write up to `revision`.
    pub(super) fn at(&self, revision: Revision) -> Option<Version> {
        let live = self.live();
        live[..live.partition_point(|version| version.revision() <= revision)].last().copied()
    }

    /// Forgets the oldest write that is in history, which is that at `revision`, and what it replaced. What it left
    /// behind stays as that with which the history of this key begins, until there is nothing more to tell of it.
    pub(super) fn pass(&mut self, revision: Revision) -> Passed {
        let live = self.live();
        let at = live.partition_point(|version| version.revision() < revision);
        let version = live[at];
        debug_assert!(at <= 1 && version.revision() == revision, "writes leave history in order");
        let old = live[..at].last().and_then(|old| old.object());
        let is_last = live.len() == at + 1;
        // A deletion leaves nothing that would have to be remembered, nor does an object that nobody touched since.
        self.gone += at + usize::from(is_last || version.is_deletion());
        if self.gone > self.all.len() / 2 {
            self.all.drain(..self.gone);
            self.gone = 0;
            if self.all.capacity() > 4 * self.all.len() + 8 {
                self.all.shrink_to_fit();
            }
        }
        Passed { version, old }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    #[test]
    fn a_key_is_what_its_last_write_made_it() {
        let mut versions = Versions::default();
        for (number, is_deletion) in [(3, false), (7, false), (9, true), (12, false)] {
            versions.push(Version::new(at(number), is_deletion));
        }
        let held = |versions: &Versions, number| versions.at(at(number)).map(|version| version.object());
        for (number, want) in [(2, None), (3, Some(Some(3))), (8, Some(Some(7))), (9, Some(None)), (20, Some(Some(12)))]
        {
            assert_eq!(held(&versions, number), want.map(|object| object.map(at)), "at {number}");
        }
        // The object of 3 is what was there when history began; the deletion of 9 leaves nothing to remember.
        for (number, old, first) in [(7, Some(3), Some(7)), (9, Some(7), None), (12, None, None)] {
            let passed = versions.pass(at(number));
            assert_eq!((passed.version.revision(), passed.old), (at(number), old.map(at)));
            assert_eq!(held(&versions, number), first.map(|first| Some(at(first))), "after {number} has passed");
        }
        assert!(versions.is_empty());
    }

    #[test]
    fn what_has_passed_takes_no_room() {
        let mut versions = Versions::default();
        for number in 1..=10_000 {
            versions.push(Version::new(at(number), false));
        }
        for number in 1..10_000 {
            versions.pass(at(number));
            assert!(versions.gone <= versions.all.len() / 2, "at {number}");
            assert_eq!(versions.at(at(10_000)).map(Version::revision), Some(at(10_000)));
        }
        assert!(versions.all.capacity() < 32, "{}", versions.all.capacity());
    }
}
