//! [`NamespaceController`]: empties namespaces that are being deleted and then lets them go.
//!
//! `content` deletes what is in a namespace and counts what stays, `conditions` tells of it in the namespace's status.
//! What stays is waited for in two ways: by its going, which is an event, and by trying again after a while, because
//! conditions count and some deletions fail.

mod conditions;
mod content;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use revisor_cache::{Item, ResourceCache, Scope, WatchItem, WatchRequest, WatchStart};
use revisor_catalog::Resource;
use revisor_object::{Object, Value};
use revisor_registry::{Actor, PatchKind, Place, Registry, RegistryError, WriteOptions};
use revisor_version::Revision;
use tokio::task::AbortHandle;

use crate::controllers::{Controller, FIELD_MANAGER};
use crate::metadata::{Metadata, array_at, place, text_at};
use crate::uid::Uid;
use crate::work_queue::{Backoff, Outcome, QueueTally, WorkQueue};
use crate::{Clock, Elsewhere, ResourceList};
use content::Content;
use revisor_cache::{Feed, News};

/// The finalizer that is this controller's to remove.
const KUBERNETES: &str = "kubernetes";

/// How many namespaces are emptied at once.
const WORKERS: usize = 8;

/// As in the original, a namespace is tried again at least every minute.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_secs(60) };

/// How long a namespace rests between its mark and the deletion of its content. Whoever was let in before the mark
/// has written by then; what came in after the content was counted would outlive its namespace.
const REST: Duration = Duration::from_millis(100);

/// How often a write to a namespace is tried anew because others changed it in between.
const MAX_ATTEMPTS: usize = 5;

/// Empties namespaces.
pub(crate) struct NamespaceController {
    registry: Arc<Registry>,
    resources: ResourceList,
    clock: Arc<dyn Clock>,
    queue: Arc<WorkQueue<String>>,
    account: Actor,
    /// Those who wait for the content of a namespace to go, by its name.
    lookouts: Mutex<HashMap<String, Lookout>>,
    /// What other servers keep, if there may be any.
    elsewhere: Option<Arc<dyn Elsewhere>>,
}

/// A task that ends with its owner.
struct Lookout(AbortHandle);

impl Drop for Lookout {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A collection that still has objects, and the state in which it had.
struct Rest {
    cache: Arc<ResourceCache>,
    collection: String,
    revision: Option<Revision>,
}

impl NamespaceController {
    pub(crate) fn new(
        registry: Arc<Registry>,
        resources: ResourceList,
        clock: Arc<dyn Clock>,
        tally: Arc<QueueTally>,
    ) -> NamespaceController {
        let queue = Arc::new(WorkQueue::new(clock.clone(), BACKOFF, tally));
        let account = Controller::Namespace.actor();
        NamespaceController { registry, resources, clock, queue, account, lookouts: Mutex::default(), elsewhere: None }
    }

    /// The same for namespaces that other servers have content of.
    pub(crate) fn with_elsewhere(self, elsewhere: Option<Arc<dyn Elsewhere>>) -> NamespaceController {
        NamespaceController { elsewhere, ..self }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let Some(namespaces) = self.registry.built_in().resource("", "v1", "namespaces").cloned() else { return };
        let workers = (0..WORKERS).map(|_| self.queue.work(|name| self.look_after(&namespaces, name)));
        tokio::join!(self.follow(&namespaces), join_all(workers));
    }

    async fn follow(&self, namespaces: &Arc<Resource>) {
        let is_marked = |item: &Item| Metadata::read(item.bytes()).is_some_and(|metadata| metadata.is_marked);
        let mut feed = Feed::open(&self.registry.cache_of(namespaces), None);
        while let Some(news) = feed.next().await {
            // Later changes of a marked namespace are mostly this controller's own.
            let marked = match news {
                News::Present(item) if is_marked(&item) => Some(item),
                News::Changed { old, new } if is_marked(&new) && !old.as_deref().is_some_and(is_marked) => Some(new),
                _ => None,
            };
            if let Some(item) = marked {
                self.queue.add_after(place(namespaces, item.key().as_str()).1.to_owned(), REST);
            }
            tokio::task::consume_budget().await;
        }
    }

    async fn look_after(&self, namespaces: &Arc<Resource>, name: String) -> Outcome {
        match self.empty(namespaces, &name).await {
            Ok(outcome) => outcome,
            Err(RegistryError::NotFound { .. }) => Outcome::Done,
            Err(RegistryError::Conflict { .. }) => Outcome::Retry,
            Err(error) => {
                tracing::warn!(namespace = %name, ?error, "cannot empty a namespace");
                Outcome::Retry
            }
        }
    }

    async fn empty(&self, namespaces: &Arc<Resource>, name: &str) -> Result<Outcome, RegistryError> {
        self.lookouts().remove(name);
        self.registry.cache().freshen().await?;
        let Some(namespace) = self.registry.cache_of(namespaces).get(&namespaces.key(None, name)) else {
            return Ok(Outcome::Done);
        };
        let Some(metadata) = Metadata::read(namespace.bytes()).filter(|metadata| metadata.is_marked) else {
            return Ok(Outcome::Done);
        };
        if array_at(namespace.bytes(), &["spec", "finalizers"]).is_empty() {
            return Ok(Outcome::Done);
        }
        let content = self.delete_content(name, &text_at(namespace.bytes(), &["metadata", "deletionTimestamp"])).await;
        self.report(namespaces, name, &metadata.uid, &content).await?;
        if content.is_gone() {
            self.finalize(namespaces, name, &metadata.uid).await?;
            return Ok(Outcome::Done);
        }
        for error in &content.errors {
            tracing::warn!(namespace = %name, error, "cannot delete all content of a namespace");
        }
        self.look_out(name, content.rests);
        if !content.errors.is_empty() {
            return Ok(Outcome::Retry);
        }
        let pause = u64::try_from(content.estimate / 2 + 1).unwrap_or_default();
        Ok(Outcome::RetryAfter(Duration::from_secs(pause)))
    }

    /// Tells in the namespace's status how far its deletion is.
    async fn report(
        &self,
        namespaces: &Arc<Resource>,
        name: &str,
        uid: &Uid,
        content: &Content,
    ) -> Result<(), RegistryError> {
        let found = conditions::of(content);
        self.change(namespaces, name, uid, "status", |namespace| {
            let known = array_at(namespace.bytes(), &["status", "conditions"]);
            let conditions = conditions::merge(known, &found, self.clock.now())?;
            let status: Object = [("conditions", Value::from(conditions))].into_iter().collect();
            Some(("status", status))
        })
        .await
    }

    /// Removes this controller's finalizer, and with the last one the namespace.
    async fn finalize(&self, namespaces: &Arc<Resource>, name: &str, uid: &Uid) -> Result<(), RegistryError> {
        self.change(namespaces, name, uid, "finalize", |namespace| {
            let mut finalizers = array_at(namespace.bytes(), &["spec", "finalizers"]);
            finalizers.retain(|finalizer| finalizer.as_str() != Some(KUBERNETES));
            finalizers.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            finalizers.dedup();
            let spec: Object = [("finalizers", Value::from(finalizers))].into_iter().collect();
            Some(("spec", spec))
        })
        .await
    }

    /// Writes one member of a namespace through a subresource, if `propose` has something to write. Ends quietly when
    /// another namespace has taken the name.
    async fn change(
        &self,
        namespaces: &Arc<Resource>,
        name: &str,
        uid: &Uid,
        subresource: &str,
        propose: impl Fn(&Item) -> Option<(&'static str, Object)>,
    ) -> Result<(), RegistryError> {
        for attempt in 1.. {
            let Some(namespace) = self.registry.cache_of(namespaces).get(&namespaces.key(None, name)) else { break };
            if Metadata::read(namespace.bytes()).is_none_or(|metadata| metadata.uid != *uid) {
                break;
            }
            let Some((member, value)) = propose(&namespace) else { break };
            let version: Object =
                [("resourceVersion", Value::from(namespace.revision().to_string()))].into_iter().collect();
            let patch: Object =
                [("metadata", Value::from(version)), (member, Value::from(value))].into_iter().collect();
            let target = Place { resource: namespaces, namespace: None, name: Some(name) };
            let subresource = Some(subresource);
            let options = WriteOptions { subresource, field_manager: FIELD_MANAGER, ..self.account.options() };
            let text = Value::Object(patch).to_json();
            match self.registry.patch(target, PatchKind::Merge, text.as_bytes(), options).await {
                Err(RegistryError::Conflict { .. }) if attempt < MAX_ATTEMPTS => {
                    self.registry.cache().freshen().await?;
                }
                Ok(_) | Err(RegistryError::NotFound { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Has the namespace looked at again as soon as one of the collections is empty.
    fn look_out(&self, name: &str, rests: Vec<Rest>) {
        let (queue, namespace) = (self.queue.clone(), name.to_owned());
        let task = tokio::spawn(async move {
            let mut waits: FuturesUnordered<_> = rests.into_iter().map(|rest| rest.until_empty(&namespace)).collect();
            waits.next().await;
            drop(waits);
            queue.add(namespace);
        });
        self.lookouts().insert(name.to_owned(), Lookout(task.abort_handle()));
    }

    fn lookouts(&self) -> std::sync::MutexGuard<'_, HashMap<String, Lookout>> {
        self.lookouts.lock().expect("no holder of the lookouts panics")
    }
}

impl Rest {
    /// Ends when there is nothing left, or when that cannot be told any more.
    async fn until_empty(self, namespace: &str) {
        let Rest { cache, collection, revision } = self;
        let start = revision.map_or(WatchStart::State, WatchStart::After);
        let request = WatchRequest { scope: Scope::Namespace(namespace.to_owned()), filter: None, start };
        let Ok(mut watcher) = cache.watch(request) else { return };
        while let Some(WatchItem::State(_) | WatchItem::InitialEnd(_) | WatchItem::Event(..)) = watcher.next().await {
            if cache.snapshot().range(&collection, None).next().is_none() {
                return;
            }
        }
    }
}
