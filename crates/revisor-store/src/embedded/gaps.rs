//! [`Gaps`]: the revisions after the mark whose records were removed, because their share of history is shorter.
//!
//! They are kept as runs, of which there are at most as many as records between them, and they are only needed to say
//! what [`Mark::gone`](super::mark::Mark::gone) is: a revision that has no record and is not among them is lost.

use std::collections::BTreeMap;

use revisor_version::Revision;

use super::mark::RevisionSum;

/// A set of revisions.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// The last of each run by its first.
    runs: BTreeMap<u64, u64>,
    sum: RevisionSum,
}

impl Gaps {
    /// What the revisions add up to.
    pub(super) fn sum(&self) -> RevisionSum {
        self.sum
    }

    /// Adds a revision, if it is not there.
    pub(super) fn add(&mut self, revision: Revision) {
        let number = revision.get();
        let before = self.runs.range(..=number).next_back().map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| number <= last) {
            return;
        }
        self.sum.add(revision);
        let first = before.filter(|(_, last)| last + 1 == number).map_or(number, |(first, _)| first);
        let last = self.runs.remove(&(number + 1)).unwrap_or(number);
        self.runs.insert(first, last);
    }

    /// Forgets the revisions up to `mark`.
    pub(super) fn forget(&mut self, mark: Option<Revision>) {
        let Some(mark) = mark.map(Revision::get) else { return };
        while let Some(run) = self.runs.first_entry().filter(|run| *run.key() <= mark) {
            let (first, last) = run.remove_entry();
            for number in first..=last.min(mark) {
                self.sum.remove(Revision::new(number).expect("runs are made of revisions"));
            }
            if last > mark {
                self.runs.insert(mark + 1, last);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    proptest! {
        #[test]
        fn gaps_are_a_set(steps in prop::collection::vec((1..40u64, prop::bool::weighted(0.05)), 0..200)) {
            let (mut gaps, mut model, mut oldest) = (Gaps::default(), BTreeSet::new(), 0);
            for (number, forgets) in steps {
                if forgets {
                    oldest = oldest.max(number);
                    gaps.forget(Revision::new(number));
                    model.retain(|known| *known > oldest);
                } else if number > oldest {
                    gaps.add(at(number));
                    model.insert(number);
                }
                let held: Vec<u64> = gaps.runs.iter().flat_map(|(first, last)| *first..=*last).collect();
                prop_assert_eq!(&held, &model.iter().copied().collect::<Vec<_>>());
                let runs: Vec<_> = gaps.runs.iter().collect();
                prop_assert!(runs.windows(2).all(|pair| pair[0].1 + 1 < *pair[1].0), "runs do not touch");
                let mut sum = RevisionSum::default();
                model.iter().for_each(|number| sum.add(at(*number)));
                prop_assert_eq!(gaps.sum(), sum);
            }
        }
    }
}
