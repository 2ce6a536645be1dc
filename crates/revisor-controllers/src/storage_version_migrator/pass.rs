//! [`Pass`]: once through all objects of a resource, at a pace that leaves room for others.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use revisor_cache::{Item, Snapshot};
use revisor_catalog::{Custom, Resource};
use revisor_registry::{Registry, RegistryError, Rewrite, off_the_workers};
use revisor_store::StoreError;
use revisor_version::Revision;

use super::Run;
use super::migration::Tally;
use super::pace::Pace;
use crate::metadata::place;

/// How often it is told how far it is.
const TELLING: Duration = Duration::from_secs(1);

/// How many objects may fail before the others are not tried any more: nearly always all fail for one reason.
const MAX_FAILURES: usize = 100;

/// How many of the objects that failed are named.
const MAX_NAMES: usize = 10;

/// How much is told of why they failed.
const MAX_REASON: usize = 1024;

/// All objects of a resource, as they were when the pass began.
pub(super) struct Pass {
    registry: Arc<Registry>,
    resource: Arc<Resource>,
    storage: Arc<Resource>,
    objects: Snapshot,
    /// Up to this one objects may be stored otherwise, whatever their version.
    begun: Revision,
}

/// Why a pass has not come to its end.
pub(super) enum Halt {
    /// Objects could not be stored.
    Failed(Failures),
    /// Nothing could be: that is no object's fault.
    Interrupted(RegistryError),
}

/// Objects that could not be stored.
#[derive(Debug)]
pub(super) struct Failures {
    pub(super) tally: Tally,
    /// Whether it would come to the same to try again.
    pub(super) is_final: bool,
    names: Vec<String>,
    count: usize,
    reason: String,
}

impl Pass {
    pub(super) fn new(registry: &Arc<Registry>, resource: &Arc<Resource>, begun: Revision) -> Pass {
        let storage = registry.storage_of(resource);
        let objects = registry.cache_of(resource).snapshot();
        Pass { registry: registry.clone(), resource: resource.clone(), storage, objects, begun }
    }

    /// Whether an object has to be looked at: what was written since is stored in this version as it is to be.
    fn is_due(&self, item: &Item) -> bool {
        item.revision() <= self.begun || self.registry.is_in_other_version(&self.storage, item)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.objects.range(&self.resource.prefix, None)
    }

    /// Whether anything is stored in another version.
    pub(super) fn has_other_versions(&self) -> bool {
        off_the_workers(|| self.all().any(|item| self.registry.is_in_other_version(&self.storage, item)))
    }

    /// How far everything is.
    pub(super) fn tally(&self) -> Tally {
        let left = off_the_workers(|| self.all().filter(|item| self.is_due(item)).count());
        Tally { done: self.objects.count(&self.resource.prefix) - left, left }
    }

    /// Stores anew what has to be, and tells from time to time how far it is.
    pub(super) async fn run(self, run: &Run) -> Result<Tally, Halt> {
        let clock = &*run.clock;
        let items: Vec<Arc<Item>> = off_the_workers(|| self.all().filter(|item| self.is_due(item)).cloned().collect());
        let mut tally = Tally { done: self.objects.count(&self.resource.prefix) - items.len(), left: items.len() };
        let (mut pace, mut told) = (Pace::new(run.clock.clone()), clock.uptime());
        let mut failures: Option<Failures> = None;
        let mut rest = &items[..];
        while !rest.is_empty() && failures.as_ref().is_none_or(|failures| failures.count < MAX_FAILURES) {
            let (portion, later) = rest.split_at(pace.next().await.min(rest.len()));
            rest = later;
            let drafts: Vec<_> = portion.iter().map(|item| self.draft(item.clone())).collect();
            let drafts: Vec<_> = stream::iter(drafts).buffered(portion.len()).collect().await;
            // All at once, so that they do share a sync.
            let rewrites = drafts.into_iter().map(|(item, drafted)| self.rewrite(item, drafted));
            let mut rewritten = stream::iter(rewrites).buffered(portion.len());
            while let Some((item, done)) = rewritten.next().await {
                match done {
                    Ok(()) => (tally.done, tally.left) = (tally.done + 1, tally.left.saturating_sub(1)),
                    // The store is full or out of order, and will be for the next one.
                    Err(error @ RegistryError::Store(_)) if !is_about_one(&error) => {
                        return Err(Halt::Interrupted(error));
                    }
                    Err(error) => {
                        let failed = failures.get_or_insert_with(|| self.no_failures());
                        failed.add(self.name(&item), &error);
                    }
                }
            }
            if clock.uptime().saturating_sub(told) >= TELLING {
                told = clock.uptime();
                run.tell(tally, "").await.map_err(Halt::Interrupted)?;
            }
        }
        match failures {
            None => Ok(tally),
            Some(failures) => Err(Halt::Failed(Failures { tally, ..failures })),
        }
    }

    async fn draft(&self, item: Arc<Item>) -> (Arc<Item>, Result<Rewrite, RegistryError>) {
        // Whoever waits for the processor gets it between two objects, and not when the kernel would look next.
        std::thread::yield_now();
        let drafted = self.registry.draft_rewrite(&self.resource, &item).await;
        (item, drafted)
    }

    async fn rewrite(
        &self,
        item: Arc<Item>,
        drafted: Result<Rewrite, RegistryError>,
    ) -> (Arc<Item>, Result<(), RegistryError>) {
        let rewritten = match drafted {
            Ok(drafted) => self.registry.rewrite(&self.resource, &item, drafted).await,
            Err(error) => Err(error),
        };
        (item, rewritten)
    }

    /// Nobody has failed yet. Whether to try again would help is a matter of who converts.
    fn no_failures(&self) -> Failures {
        let is_final = !self.storage.custom().is_some_and(Custom::asks_others);
        Failures { tally: Tally::default(), is_final, names: Vec::new(), count: 0, reason: String::new() }
    }

    /// `namespace/name`, or `name`.
    fn name(&self, item: &Item) -> String {
        match place(&self.resource, item.key().as_str()) {
            (Some(namespace), name) => format!("{namespace}/{name}"),
            (None, name) => name.to_owned(),
        }
    }
}

/// Whether an error of the store is about one object alone.
fn is_about_one(error: &RegistryError) -> bool {
    matches!(error, RegistryError::Store(StoreError::Conflict { .. }))
}

impl Failures {
    fn add(&mut self, name: String, error: &RegistryError) {
        self.count += 1;
        if matches!(error, RegistryError::Contended { .. }) {
            self.is_final = false;
        }
        if self.names.len() < MAX_NAMES {
            self.names.push(name);
        }
        if self.reason.is_empty() {
            self.reason = error.to_string();
            let mut end = self.reason.len().min(MAX_REASON);
            while !self.reason.is_char_boundary(end) {
                end -= 1;
            }
            self.reason.truncate(end);
        }
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.names.join(", "))?;
        match self.count - self.names.len() {
            0 => {}
            1 => f.write_str(" and 1 other")?,
            others => write!(f, " and {others} others")?,
        }
        write!(f, " could not be stored anew: {}", self.reason)
    }
}
