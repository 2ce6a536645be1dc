//! [`GarbageCollector`]: deletes objects whose owners are gone, and does what owners that are being deleted wait for.
//!
//! `graph` knows who names whom as an owner, from the feeds of all resources; `owners` says how an owner stands now,
//! from the cache; `attempt` acts on one object. The graph only says *whom to look at*. What is done is decided by
//! what the cache says at that moment and carried out with preconditions, so a graph that lags costs another look and
//! never an object. An owner that the graph has not seen needs no placeholder in it: the cache is asked.
//!
//! One thing cannot be repaired by another look: to let an owner go before all of its dependents are known. Before
//! that, [`caught_up`](GarbageCollector::caught_up) waits until every feed has told all that the store had.

mod attempt;
mod graph;
mod owners;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use revisor_cache::Item;
use revisor_catalog::{Resource, Verb};
use revisor_registry::{Actor, Registry};
use revisor_version::Revision;
use tokio::sync::{Notify, watch};

use crate::controllers::{Controller, stored_resources};
use crate::metadata::{Metadata, place};
use crate::uid::Uid;
use crate::work_queue::{Backoff, WorkQueue};
use crate::{Clock, ResourceList};
use graph::Graph;
use owners::{Kinds, Standing};
use revisor_cache::{Feed, News};

/// How many objects are acted on at once: so many writes share one sync of the disk.
const WORKERS: usize = 32;

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_secs(300) };

/// Collects garbage.
pub(crate) struct GarbageCollector {
    registry: Arc<Registry>,
    queue: WorkQueue<Uid>,
    graph: Mutex<Graph>,
    kinds: RwLock<Arc<Kinds>>,
    /// The resources that are followed, by their key prefix.
    follows: Mutex<HashMap<String, Follow>>,
    account: Actor,
}

/// A resource that is followed.
#[derive(Clone)]
struct Follow {
    resource: Arc<Resource>,
    /// How far somebody wants the feed to be.
    wanted: Arc<AtomicU64>,
    /// Tells the feed that somebody wants to know how far it is.
    question: Arc<Notify>,
    answer: watch::Receiver<Option<Revision>>,
}

/// What the collector does beside others, and the prefix of the resource if it has ended with it.
type Activity = Pin<Box<dyn Future<Output = Option<String>> + Send>>;

impl GarbageCollector {
    pub(crate) fn new(registry: Arc<Registry>, clock: Arc<dyn Clock>) -> Arc<GarbageCollector> {
        Arc::new(GarbageCollector {
            registry,
            queue: WorkQueue::new(clock, BACKOFF),
            graph: Mutex::default(),
            kinds: RwLock::default(),
            follows: Mutex::default(),
            account: Controller::GarbageCollector.actor(),
        })
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(self: Arc<Self>, mut resources: ResourceList) {
        let mut activities: FuturesUnordered<Activity> = FuturesUnordered::new();
        for _ in 0..WORKERS {
            let me = self.clone();
            activities.push(Box::pin(async move {
                me.queue.work(|uid| me.attempt(uid)).await;
                None
            }));
        }
        self.take_resources(&resources.borrow_and_update().clone(), &activities);
        let mut may_grow = true;
        loop {
            tokio::select! {
                ended = activities.next() => {
                    // A resource that was taken away; it may come back with a later list.
                    if let Some(Some(prefix)) = ended {
                        self.follows().remove(&prefix);
                    }
                }
                changed = resources.changed(), if may_grow => {
                    may_grow = changed.is_ok();
                    self.take_resources(&resources.borrow_and_update().clone(), &activities);
                }
            }
        }
    }

    /// Follows the resources that are not followed yet, and looks again at the objects whose owners' kinds were not
    /// known.
    fn take_resources(self: &Arc<Self>, all: &[Arc<Resource>], activities: &FuturesUnordered<Activity>) {
        *self.kinds.write().expect("no holder of the kinds panics") = Arc::new(Kinds::new(all));
        for resource in stored_resources(all, &[Verb::Delete, Verb::List, Verb::Watch]) {
            if is_ignored(&resource) || self.follows().contains_key(&resource.prefix) {
                continue;
            }
            let (sender, answer) = watch::channel(None);
            let follow =
                Follow { resource: resource.clone(), wanted: Arc::default(), question: Arc::default(), answer };
            self.follows().insert(resource.prefix.clone(), follow.clone());
            let me = self.clone();
            activities.push(Box::pin(async move {
                me.follow(&follow, sender).await;
                Some(follow.resource.prefix.clone())
            }));
        }
        let unresolved = self.graph().take_unresolved();
        self.add_all(unresolved);
    }

    /// Tells the graph of every object of a resource, and how far it is whenever somebody asks.
    async fn follow(&self, follow: &Follow, answer: watch::Sender<Option<Revision>>) {
        let mut feed = Feed::open(&self.registry.cache_of(&follow.resource), None);
        let mut is_asked = false;
        loop {
            tokio::select! {
                // First the feed: what it says about its progress holds right after it had nothing to tell.
                biased;
                news = feed.next() => {
                    let Some(news) = news else { return };
                    self.note(&follow.resource, news);
                    if is_asked {
                        follow.question.notify_one();
                    }
                    tokio::task::consume_budget().await;
                }
                () = follow.question.notified() => {
                    let progress = feed.progress();
                    // If it is not far enough there is more to come, and then it is asked again.
                    is_asked = progress.map_or(0, Revision::get) < follow.wanted.load(Ordering::SeqCst);
                    answer.send_replace(progress);
                }
            }
        }
    }

    fn note(&self, resource: &Arc<Resource>, news: News) {
        match news {
            News::Present(item) | News::Changed { new: item, .. } => self.observe(resource, &item),
            News::Gone(item) => {
                if let Some(metadata) = Metadata::read(item.bytes()) {
                    let affected = self.graph().remove(item.key(), &metadata.uid);
                    self.add_all(affected);
                }
            }
            News::Complete { again: false } => {}
            News::Complete { again: true } => {
                // Deletions were missed: of objects that the graph knows, and of owners that it does not know.
                let lost: Vec<_> = self.graph().objects_of(resource).collect();
                let cache = self.registry.cache_of(resource);
                for (key, uid) in lost {
                    let live = cache.get(key.as_str()).and_then(|item| Metadata::read(item.bytes()));
                    if live.is_none_or(|metadata| metadata.uid != uid) {
                        let affected = self.graph().remove(&key, &uid);
                        self.add_all(affected);
                    }
                }
                let all = self.graph().all();
                self.add_all(all);
            }
        }
    }

    fn observe(&self, resource: &Arc<Resource>, item: &Item) {
        let Some(metadata) = Metadata::read(item.bytes()) else { return };
        let affected = self.graph().observe(resource, item.key(), &metadata);
        self.add_all(affected);
        // Most owners are there, and then there is nothing to do. This look at the cache comes after the graph was
        // told: an owner that goes later finds its dependent there.
        let (namespace, _) = place(resource, item.key().as_str());
        let kinds = self.kinds();
        let standing = |owner| owners::standing(&self.registry, &kinds, owner, namespace);
        if metadata.owners.iter().any(|owner| standing(owner) != Standing::Solid) {
            self.queue.add(metadata.uid);
        }
    }

    /// Waits until the graph knows every object that the store had when this was called.
    async fn caught_up(&self) {
        let Some(revision) = self.registry.cache().revision() else { return };
        let follows: Vec<Follow> = self.follows().values().cloned().collect();
        for Follow { wanted, question, .. } in &follows {
            wanted.fetch_max(revision.get(), Ordering::SeqCst);
            question.notify_one();
        }
        for mut follow in follows {
            // One whose feed has ended has no objects that anybody could own any more.
            let _ = follow.answer.wait_for(|progress| *progress >= Some(revision)).await;
        }
    }

    fn add_all(&self, uids: Vec<Uid>) {
        for uid in uids {
            self.queue.add(uid);
        }
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().expect("no holder of the graph panics")
    }

    fn kinds(&self) -> Arc<Kinds> {
        self.kinds.read().expect("no holder of the kinds panics").clone()
    }

    fn follows(&self) -> MutexGuard<'_, HashMap<String, Follow>> {
        self.follows.lock().expect("no holder of the follows panics")
    }
}

/// Events come and go by themselves.
fn is_ignored(resource: &Resource) -> bool {
    resource.plural == "events" && (resource.group.is_empty() || resource.group == "events.k8s.io")
}
