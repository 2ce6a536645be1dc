//! [`Tally`]: how much was moved, and a hash of it.

use revisor_version::Revision;
use sha2::{Digest, Sha256};

/// The number and the hash of objects that were seen in order of their keys.
#[derive(Default)]
pub(super) struct Tally {
    count: u64,
    contents: Sha256,
    revisions: Sha256,
}

/// What a tally comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) count: u64,
    /// The hash of keys and contents.
    pub(super) contents: String,
    /// The hash of revisions.
    revisions: String,
}

impl Tally {
    /// Takes in an object. Its content is without its revision, so that the hash is the same wherever it is stored.
    pub(super) fn add(&mut self, key: &str, revision: Revision, content: &[u8]) {
        self.count += 1;
        // With their lengths, so that nothing can move from one to the other unnoticed.
        for part in [key.as_bytes(), content] {
            self.contents.update((part.len() as u64).to_be_bytes());
            self.contents.update(part);
        }
        self.revisions.update(revision.get().to_be_bytes());
    }

    pub(super) fn sum(self) -> Sum {
        let text = |hash: Sha256| hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Sum { count: self.count, contents: text(self.contents), revisions: text(self.revisions) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(objects: &[(&str, u64, &str)]) -> Sum {
        let mut tally = Tally::default();
        for (key, number, content) in objects {
            tally.add(key, Revision::new(*number).expect("not zero"), content.as_bytes());
        }
        tally.sum()
    }

    #[test]
    fn whatever_differs_shows() {
        let one = sum(&[("/a", 1, "x"), ("/b", 2, "y")]);
        assert_eq!(one, sum(&[("/a", 1, "x"), ("/b", 2, "y")]));
        for other in [
            &[("/a", 1, "x")][..],
            &[("/a", 1, "x"), ("/b", 2, "z")],
            &[("/a", 1, "x"), ("/c", 2, "y")],
            &[("/a", 1, "x"), ("/", 2, "by")],
        ] {
            assert_ne!(one.contents, sum(other).contents, "{other:?}");
        }
        let later = sum(&[("/a", 1, "x"), ("/b", 3, "y")]);
        assert_ne!(one, later);
        assert_eq!(one.contents, later.contents, "contents are the same at any revision");
    }
}
