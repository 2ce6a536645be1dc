//! [`Ledger`]: what quotas were charged for writes of which it is not known yet whether they are done. A count of what is
//! stored lacks these objects, or has them already; which of the two can be told by their versions.
//!
//! A charge is a write of its own, about which webhooks may be asked for long. So it is noted down for the moment of that
//! write only ([`Charging`]): nobody who counts, charges or gives back waits for who is asked.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::evaluator::Usage;
use crate::admission::Attributes;

/// The charges that are under way.
#[derive(Default)]
pub(crate) struct Ledger {
    open: Arc<Mutex<Open>>,
    /// Held together by those who charge and give back, alone for the moment in which a count begins: so a count sees a
    /// charge both in the status of its quota and here, or in neither.
    turns: RwLock<()>,
}

#[derive(Default)]
struct Open {
    entries: HashMap<u64, Entry>,
    count: u64,
}

/// One charge that is under way.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The key of the quota.
    quota: String,
    pub(super) target: Target,
    pub(super) added: Usage,
}

/// The object that is written.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// What the keys of its resource begin with.
    pub(super) prefix: String,
    pub(super) key: String,
    /// The version that it replaces; empty if there is none yet.
    version: String,
}

impl Target {
    pub(super) fn new(attributes: &Attributes<'_>) -> Target {
        let version = attributes.old.and_then(|old| old.object("metadata")?.str("resourceVersion")).unwrap_or_default();
        Target {
            prefix: attributes.resource.prefix.clone(),
            key: attributes.resource.key(attributes.namespace, attributes.name),
            version: version.to_owned(),
        }
    }

    /// Whether the object was written, if this is the version of it that is stored.
    pub(super) fn is_written(&self, stored: Option<&str>) -> bool {
        stored.is_some_and(|stored| stored != self.version)
    }
}

/// A charge that is under way until this is dropped.
pub(super) struct Pending {
    open: Arc<Mutex<Open>>,
    id: u64,
}

impl Drop for Pending {
    fn drop(&mut self) {
        lock(&self.open).entries.remove(&self.id);
    }
}

/// A charge that is to be written.
pub(crate) struct Charging<'l> {
    ledger: &'l Ledger,
    /// The key of the quota.
    quota: String,
    target: &'l Target,
    added: &'l Usage,
    /// That it is under way, once it is stored.
    pending: Mutex<Option<Pending>>,
}

impl fmt::Debug for Charging<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charging").field("quota", &self.quota).field("added", self.added).finish_non_exhaustive()
    }
}

impl<'l> Charging<'l> {
    pub(super) fn new(ledger: &'l Ledger, quota: String, target: &'l Target, added: &'l Usage) -> Charging<'l> {
        Charging { ledger, quota, target, added, pending: Mutex::new(None) }
    }

    /// Stores the charge by this write: whoever counts sees it in the quota and in the ledger, or in neither.
    pub(crate) async fn store<T, E>(&self, write: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let turn = self.ledger.charging().await;
        let pending = self.ledger.begin(self.quota.clone(), self.target, self.added);
        let written = write.await;
        if written.is_ok() {
            *self.lock() = Some(pending);
        }
        drop(turn);
        written
    }

    /// That the charge is under way; `None` if it was not stored.
    pub(super) fn into_pending(self) -> Option<Pending> {
        self.pending.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    /// Held while a quota gets something back, or while a charge is stored.
    pub(super) async fn charging(&self) -> RwLockReadGuard<'_, ()> {
        self.turns.read().await
    }

    /// Held while a count begins.
    pub(super) async fn counting(&self) -> RwLockWriteGuard<'_, ()> {
        self.turns.write().await
    }

    /// Notes a charge down.
    fn begin(&self, quota: String, target: &Target, added: &Usage) -> Pending {
        let mut open = lock(&self.open);
        let id = open.count;
        open.count += 1;
        open.entries.insert(id, Entry { quota, target: target.clone(), added: added.clone() });
        Pending { open: self.open.clone(), id }
    }

    /// What is under way for a quota.
    pub(super) fn of(&self, quota: &str) -> Vec<Entry> {
        lock(&self.open).entries.values().filter(|entry| entry.quota == quota).cloned().collect()
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().expect("no holder of the ledger panics")
}
