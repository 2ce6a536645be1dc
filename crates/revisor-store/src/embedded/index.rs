//! [`Index`]: which writes history holds, of which keys, and whose must go first. The objects lie on disk.
//!
//! A write costs three words here, however large its object is, and so history may be long. What a key held at any
//! revision is a search in its [`Versions`]; what happened after one is a walk along the writes of a share.
//!
//! **Shares.** History is bounded as a whole, and every resource has its share of it: what the bound allows, divided
//! by the number of those that have any. Who keeps within it keeps its history for as long as history is kept at all.
//! When there is too much, the one that holds most beyond its share loses its oldest first, and what is younger than
//! [`HistoryLimits::floor`] goes only where nothing older is left beyond anybody's share. So each share has an oldest
//! revision of its own, which is never before that of all.

use std::collections::{HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::SystemTime;

use revisor_version::Revision;

use super::keys::{KeyNumber, Keys};
use super::times::Times;
use super::versions::{Passed, Version};
use super::{HistoryLimits, ShareOf, usage};
use crate::{Entry, Key};

/// When a bound is met, so much of it is made free beyond what must be, so that a full history is not trimmed at
/// every write.
const SLACK: u64 = 128;

/// The writes after the oldest revision, and what the keys held there that were written since.
#[derive(Debug)]
pub(super) struct Index {
    share_of: ShareOf,
    oldest: Option<Revision>,
    shares: HashMap<Arc<str>, Share>,
    keys: Keys,
    times: Times,
    total: Held,
}

/// How much history there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Held {
    /// Writes.
    pub(super) events: u64,
    /// What they take ([`usage::of_event`]).
    pub(super) bytes: u64,
}

#[derive(Debug, Default)]
struct Share {
    /// Where the history of this share begins, if later than that of all.
    oldest: Option<Revision>,
    writes: VecDeque<Write>,
    bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Write {
    revision: Revision,
    key: KeyNumber,
    /// What it takes, most of all for what it replaced or deleted.
    bytes: u32,
}

/// One write, as far as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) key: Key,
    pub(super) version: Version,
    /// The object that the key held before.
    pub(super) old: Option<Revision>,
}

impl Index {
    /// The index of no writes, of a history that begins at `oldest`, and in some shares later.
    pub(super) fn starting_at(
        oldest: Option<Revision>,
        floors: &[(Arc<str>, Revision)],
        share_of: ShareOf,
        limits: &HistoryLimits,
    ) -> Index {
        let share =
            |(name, oldest): &(Arc<str>, Revision)| (name.clone(), Share { oldest: Some(*oldest), ..Share::default() });
        Index {
            share_of,
            oldest,
            shares: floors.iter().map(share).collect(),
            keys: Keys::default(),
            times: Times::for_age(limits.age),
            total: Held::default(),
        }
    }

    /// How much history there is.
    pub(super) fn held(&self) -> Held {
        self.total
    }

    /// When the newest write happened, if that is known.
    pub(super) fn newest_time(&self) -> Option<SystemTime> {
        self.times.newest()
    }

    /// The oldest revision at which all keys with this prefix are known; `None` while all of history is there.
    pub(super) fn oldest(&self, prefix: &str) -> Option<Revision> {
        self.touching(prefix).map(|share| share.oldest).max().flatten().max(self.oldest)
    }

    /// The oldest revision at which `key` is known.
    pub(super) fn oldest_of(&self, key: &str) -> Option<Revision> {
        self.shares.get((self.share_of)(key)).and_then(|share| share.oldest).max(self.oldest)
    }

    /// The shares whose history begins later than that of all, and where.
    pub(super) fn floors(&self) -> Vec<(Arc<str>, Revision)> {
        let floor = |(name, share): (&Arc<str>, &Share)| {
            let oldest = share.oldest.filter(|oldest| Some(*oldest) > self.oldest)?;
            Some((name.clone(), oldest))
        };
        let mut floors: Vec<_> = self.shares.iter().filter_map(floor).collect();
        floors.sort();
        floors
    }

    /// Adds the newest write, by which `key` holds another object than `old`, or none.
    pub(super) fn push(
        &mut self,
        revision: Revision,
        time: SystemTime,
        key: &Key,
        old: Option<&Entry>,
        is_deletion: bool,
    ) {
        self.times.push(revision, time);
        let number = self.keys.push(key, old.map(Entry::revision), Version::new(revision, is_deletion));
        let bytes = u32::try_from(usage::of_event(old)).expect("the size of an object is bounded");
        let write = Write { revision, key: number, bytes };
        self.total.events += 1;
        self.total.bytes += u64::from(bytes);
        let name = (self.share_of)(key.as_str());
        match self.shares.get_mut(name) {
            Some(share) => share.push(write),
            None => self.shares.entry(name.into()).or_default().push(write),
        }
    }

    /// What `key` held at `revision`, at which it must be known: `None` if it was not written since, so that what it
    /// holds now is what it held then.
    pub(super) fn at(&self, key: &str, revision: Revision) -> Option<Option<Revision>> {
        let versions = self.keys.get(key)?;
        Some(versions.at(revision).and_then(Version::object))
    }

    /// The keys with this prefix that were written within history, after the key `after`, in order.
    pub(super) fn keys(&self, prefix: &str, after: Option<&str>) -> impl Iterator<Item = &Key> {
        let start = after.filter(|after| *after >= prefix).map_or(Bound::Included(prefix), Bound::Excluded);
        self.keys.from(start).take_while(move |key| key.as_str().starts_with(prefix))
    }

    /// The writes after `after` to keys with this prefix, in order, at most `limit`, and where the search ended: all
    /// such writes up to there are among them. It ends with `newest`, or when it has looked at `look` writes.
    pub(super) fn writes_after(
        &self,
        prefix: &str,
        after: Option<Revision>,
        newest: Option<Revision>,
        limit: usize,
        look: usize,
    ) -> (Vec<Written>, Option<Revision>) {
        let mut found = Vec::new();
        let mut through = newest;
        for share in self.touching(prefix) {
            let start = share.writes.partition_point(|write| Some(write.revision) <= after);
            let mut taken = 0;
            for (looked_at, write) in share.writes.range(start..).enumerate() {
                if looked_at == look || taken == limit {
                    through = through.min(write.revision.previous());
                    break;
                }
                let (key, versions) = self.keys.slot(write.key);
                if key.as_str().starts_with(prefix) {
                    taken += 1;
                    let old = write.revision.previous().and_then(|before| versions.at(before));
                    let version = versions.at(write.revision).expect("a key knows of its writes");
                    found.push(Written { key: key.clone(), version, old: old.and_then(Version::object) });
                }
            }
        }
        found.sort_unstable_by_key(|write| write.version.revision());
        found.truncate(found.partition_point(|write| Some(write.version.revision()) <= through));
        if found.len() > limit {
            found.truncate(limit);
            through = found.last().map_or(after, |last| Some(last.version.revision()));
        }
        (found, through)
    }

    /// Up to where writes are older than the limits allow at `now`.
    pub(super) fn beyond_age(&self, limits: &HistoryLimits, now: SystemTime) -> Option<Revision> {
        self.times.older_than(limits.age, now).filter(|revision| Some(*revision) > self.oldest)
    }

    /// Forgets the writes up to and including `oldest`, which must have been written, and shows each to `leaving`.
    pub(super) fn forget(&mut self, oldest: Revision, mut leaving: impl FnMut(Passed)) {
        if self.oldest >= Some(oldest) {
            return;
        }
        self.oldest = Some(oldest);
        self.times.forget(oldest);
        let Index { shares, keys, total, .. } = self;
        for share in shares.values_mut() {
            share.forget(keys, total, &mut leaving, |write, _, _| write.revision <= oldest);
        }
        shares.retain(|_, share| !share.writes.is_empty() || share.oldest > Some(oldest));
    }

    /// Whether there is more history than the limits allow.
    pub(super) fn is_beyond(&self, limits: &HistoryLimits) -> bool {
        self.total.events > limits.events as u64 || self.total.bytes > limits.bytes as u64
    }

    /// If there is more history than the limits allow at `now`, forgets some of the one that holds most, shows each
    /// write to `leaving`, and answers whose it was and where its history begins now. To be called until all is well.
    pub(super) fn trim(
        &mut self,
        limits: &HistoryLimits,
        now: SystemTime,
        leaving: impl FnMut(Passed),
    ) -> Option<(Arc<str>, Revision)> {
        type Measure = fn(Held) -> u64;
        let bounds: [(Measure, u64); 2] =
            [(|held| held.bytes, limits.bytes as u64), (|held| held.events, limits.events as u64)];
        let (measure, limit) = bounds.into_iter().find(|(measure, limit)| measure(self.total) > *limit)?;
        let holders = self.shares.values().filter(|share| !share.writes.is_empty()).count() as u64;
        let fair = limit / holders.max(1);
        let aged = self.times.older_than(limits.floor, now);
        let of = |share: &Share| Held { events: share.writes.len() as u64, bytes: share.bytes };
        let has_aged = |share: &Share| share.writes.front().is_some_and(|write| Some(write.revision) <= aged);
        // Upholds S4.
        let noisy = self.shares.iter().filter(|(_, share)| measure(of(share)) > fair);
        let (name, share) = noisy.max_by_key(|(_, share)| (has_aged(share), measure(of(share))))?;
        let (name, only_aged) = (name.clone(), has_aged(share));
        let with_slack = |bound: u64| bound - bound / SLACK;
        let Index { shares, keys, total, .. } = self;
        let share = shares.get_mut(&name).expect("it was found there");
        let last = share.forget(keys, total, leaving, |write, own, total| {
            let is_too_much = measure(total) > with_slack(limit) && measure(own) > with_slack(fair);
            is_too_much && (!only_aged || Some(write.revision) <= aged)
        })?;
        share.oldest = Some(last);
        Some((name, last))
    }

    /// The shares that keys with this prefix may belong to.
    fn touching(&self, prefix: &str) -> impl Iterator<Item = &Share> {
        let touches = move |name: &str| name.starts_with(prefix) || prefix.starts_with(name);
        self.shares.iter().filter(move |(name, _)| touches(name)).map(|(_, share)| share)
    }
}

impl Share {
    fn push(&mut self, write: Write) {
        self.writes.push_back(write);
        self.bytes += u64::from(write.bytes);
    }

    /// Forgets its oldest writes while `goes` says so of the next one, knowing what is held by this share and in all.
    /// Answers the last one that went.
    fn forget(
        &mut self,
        keys: &mut Keys,
        total: &mut Held,
        mut leaving: impl FnMut(Passed),
        goes: impl Fn(&Write, Held, Held) -> bool,
    ) -> Option<Revision> {
        let mut last = None;
        while let Some(write) = self.writes.front().copied() {
            if !goes(&write, Held { events: self.writes.len() as u64, bytes: self.bytes }, *total) {
                break;
            }
            self.writes.pop_front();
            self.bytes -= u64::from(write.bytes);
            total.events -= 1;
            total.bytes -= u64::from(write.bytes);
            leaving(keys.pass(write.key, write.revision));
            last = Some(write.revision);
        }
        if self.writes.capacity() > 4 * self.writes.len() + 64 {
            self.writes.shrink_to(2 * self.writes.len());
        }
        last
    }
}

#[cfg(test)]
mod tests;
