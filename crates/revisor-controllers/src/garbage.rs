//! [`GarbageCollector`]: deletes objects whose owners are gone, and does what owners that are being deleted wait for.
//!
//! `graph` knows who names whom as an owner, from the feeds of all resources; `owners` says how an owner stands now,
//! from the cache; `attempt` acts on one object. The graph only says *whom to look at*. What is done is decided by
//! what the cache says at that moment and carried out with preconditions, so a graph that lags costs another look and
//! never an object. An owner that the graph has not seen needs no placeholder in it: the cache is asked.
//!
//! Objects that other servers keep are in the same graph (`home`): they are followed by watches, and what the cache says
//! of objects here, their server is asked for. What has to wait for another server is done by workers of its own, so that
//! one that hangs holds up nothing that is kept here. While a server does not say what it has, its kinds are not known,
//! and nothing is done about objects that name owners of them.
//!
//! One thing cannot be repaired by another look: to let an owner go before all of its dependents are known. Before
//! that, [`caught_up`](GarbageCollector::caught_up) waits until every feed has told all that the store had, and every
//! other server was asked once for what it has.

mod attempt;
mod graph;
mod home;
mod owners;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use revisor_catalog::{Resource, Verb};
use revisor_registry::{Actor, Registry};
use revisor_store::Key;
use revisor_version::Revision;
use tokio::sync::{Notify, watch};

use crate::controllers::{Controller, stored_resources};
use crate::elsewhere::{self, NewsElsewhere, ResourcesElsewhere, next_change};
use crate::metadata::{Metadata, Owner};
use crate::uid::Uid;
use crate::work_queue::{Backoff, QueueTally, WorkQueue};
use crate::{Clock, Elsewhere, ResourceList};
use attempt::{Failure, Reach};
use graph::Graph;
use home::{Home, Neighbour};
use owners::{Inquiry, Kinds, Standing, inquire};
use revisor_cache::{Feed, News};

/// How many objects are acted on at once: so many writes share one sync of the disk.
const WORKERS: usize = 32;

/// How many of those are acted on at once for which another server has to be asked.
const WORKERS_ELSEWHERE: usize = 16;

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_secs(300) };

/// Collects garbage.
pub(crate) struct GarbageCollector {
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    queue: WorkQueue<Uid>,
    /// Those for which another server has to be asked.
    queue_elsewhere: WorkQueue<Uid>,
    graph: Mutex<Graph>,
    kinds: RwLock<Arc<Kinds>>,
    /// The resources that are followed, by their key prefix.
    follows: Mutex<HashMap<String, Follow>>,
    elsewhere: Option<Arc<dyn Elsewhere>>,
    /// The resources of other servers, by their key prefix.
    neighbours: Mutex<HashMap<String, Arc<Home>>>,
    account: Actor,
}

/// A resource that is followed.
#[derive(Clone)]
struct Follow {
    resource: Arc<Resource>,
    home: Arc<Home>,
    /// How far somebody wants the feed to be.
    wanted: Arc<AtomicU64>,
    /// Tells the feed that somebody wants to know how far it is.
    question: Arc<Notify>,
    answer: watch::Receiver<Option<Revision>>,
}

/// What the collector does beside others, and the prefix of the resource if it has ended with it.
type Activity = Pin<Box<dyn Future<Output = Option<String>> + Send>>;

impl GarbageCollector {
    pub(crate) fn new(
        registry: Arc<Registry>,
        elsewhere: Option<Arc<dyn Elsewhere>>,
        clock: Arc<dyn Clock>,
        tally: Arc<QueueTally>,
    ) -> Arc<GarbageCollector> {
        Arc::new(GarbageCollector {
            registry,
            queue: WorkQueue::new(clock.clone(), BACKOFF, tally.clone()),
            queue_elsewhere: WorkQueue::new(clock.clone(), BACKOFF, tally),
            clock,
            graph: Mutex::default(),
            kinds: RwLock::default(),
            follows: Mutex::default(),
            elsewhere,
            neighbours: Mutex::default(),
            account: Controller::GarbageCollector.actor(),
        })
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(self: Arc<Self>, mut resources: ResourceList) {
        let mut activities: FuturesUnordered<Activity> = FuturesUnordered::new();
        for _ in 0..WORKERS {
            let me = self.clone();
            activities.push(Box::pin(async move {
                me.queue.work(|uid| me.attempt(uid, Reach::Here)).await;
                None
            }));
        }
        let mut changes = self.elsewhere.as_ref().map(|elsewhere| elsewhere.changes());
        if changes.is_some() {
            for _ in 0..WORKERS_ELSEWHERE {
                let me = self.clone();
                activities.push(Box::pin(async move {
                    me.queue_elsewhere.work(|uid| me.attempt(uid, Reach::Everywhere)).await;
                    None
                }));
            }
        }
        self.take_resources(&resources.borrow_and_update().clone(), &activities);
        let mut may_grow = true;
        loop {
            tokio::select! {
                ended = activities.next() => {
                    // A resource that was taken away; it may come back with a later list.
                    if let Some(Some(prefix)) = ended {
                        self.follows().remove(&prefix);
                        if self.forget_neighbour(&prefix) {
                            self.take_resources(&resources.borrow().clone(), &activities);
                        }
                    }
                }
                true = next_change(&mut changes) => {
                    self.take_resources(&resources.borrow().clone(), &activities);
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
        let known = self.elsewhere.as_ref().map(|elsewhere| elsewhere.resources()).unwrap_or_default();
        let homes = self.take_neighbours(all, &known, activities);
        *self.kinds.write().expect("no holder of the kinds panics") = Arc::new(Kinds::new(all, homes.into_iter()));
        for resource in stored_resources(all, &[Verb::Delete, Verb::List, Verb::Watch]) {
            if is_ignored(&resource) || self.follows().contains_key(&resource.prefix) {
                continue;
            }
            let (sender, answer) = watch::channel(None);
            let (resource, home) = (resource.clone(), Arc::new(Home::Here(resource)));
            let follow = Follow { resource, home, wanted: Arc::default(), question: Arc::default(), answer };
            self.follows().insert(follow.resource.prefix.clone(), follow.clone());
            let me = self.clone();
            activities.push(Box::pin(async move {
                me.follow(&follow, sender).await;
                Some(follow.resource.prefix.clone())
            }));
        }
        let unresolved = self.graph().take_unresolved();
        self.add_all(unresolved);
    }

    /// Follows what other servers have and is not followed yet, and ends that for what they have no more (upstream:
    /// `GarbageCollector.Sync`). What a server had that does not say now what it has is followed on. Answers who keeps
    /// objects that can be asked for.
    fn take_neighbours(
        self: &Arc<Self>,
        own: &[Arc<Resource>],
        known: &ResourcesElsewhere,
        activities: &FuturesUnordered<Activity>,
    ) -> Vec<Arc<Home>> {
        let Some(elsewhere) = &self.elsewhere else { return Vec::new() };
        let usable = known.usable(own, &["get"]);
        let mut neighbours = self.neighbours();
        for home in neighbours.values() {
            let Home::Elsewhere(neighbour) = &**home else { continue };
            if !known.undiscovered.contains(&neighbour.resource.group) && !usable.contains(&neighbour.resource) {
                neighbour.end.notify_one();
            }
        }
        let mut homes = Vec::new();
        for resource in usable {
            let prefix = resource.prefix();
            if let Some(home) = neighbours.get(&prefix) {
                homes.push(home.clone());
                continue;
            }
            let home = Arc::new(Home::Elsewhere(Neighbour::new(resource)));
            neighbours.insert(prefix.clone(), home.clone());
            homes.push(home.clone());
            let (me, elsewhere) = (self.clone(), elsewhere.clone());
            activities.push(Box::pin(async move {
                me.follow_elsewhere(&*elsewhere, &home).await;
                Some(prefix)
            }));
        }
        homes
    }

    /// Tells the graph of every object that another server has of a resource, until the resource is not there any more.
    async fn follow_elsewhere(&self, elsewhere: &dyn Elsewhere, home: &Arc<Home>) {
        let Home::Elsewhere(neighbour) = &**home else { return };
        let Neighbour { resource, roster, end, .. } = neighbour;
        let following = async {
            if resource.can(&["delete", "list", "watch"]) {
                let follow =
                    elsewhere::Follow { elsewhere, resource, actor: &self.account, clock: &*self.clock, roster };
                follow.run(|news| self.note_elsewhere(home, news)).await;
            }
            // It is known until it ends, though its objects are not.
            std::future::pending().await
        };
        tokio::select! {
            () = following => {}
            () = end.notified() => {}
        }
    }

    fn note_elsewhere(&self, home: &Arc<Home>, news: NewsElsewhere<'_>) {
        match news {
            NewsElsewhere::Present(key, metadata) => self.observe(home, key, metadata),
            NewsElsewhere::Gone(key, uid) => {
                let affected = self.graph().remove(key, uid);
                self.add_all(affected);
            }
        }
    }

    /// Forgets what another server had of a resource that it has no more: owners do not wait for it. Answers whether there
    /// was one.
    fn forget_neighbour(&self, prefix: &str) -> bool {
        let Some(home) = self.neighbours().remove(prefix) else { return false };
        let lost: Vec<_> = self.graph().objects_of(&home).collect();
        for (key, uid) in lost {
            let affected = self.graph().remove(&key, &uid);
            self.add_all(affected);
        }
        true
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
                    self.note(&follow.resource, &follow.home, news);
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

    fn note(&self, resource: &Arc<Resource>, home: &Arc<Home>, news: News) {
        match news {
            News::Present(item) | News::Changed { new: item, .. } => {
                if let Some(metadata) = Metadata::read(item.bytes()) {
                    self.observe(home, item.key(), &metadata);
                }
            }
            News::Gone(item) => {
                if let Some(metadata) = Metadata::read(item.bytes()) {
                    let affected = self.graph().remove(item.key(), &metadata.uid);
                    self.add_all(affected);
                }
            }
            News::Complete { again: false } => {}
            News::Complete { again: true } => {
                // Deletions were missed: of objects that the graph knows, and of owners that it does not know.
                let lost: Vec<_> = self.graph().objects_of(home).collect();
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

    fn observe(&self, home: &Arc<Home>, key: &Key, metadata: &Metadata) {
        let affected = self.graph().observe(home, key, metadata);
        self.add_all(affected);
        // Most owners are there, and then there is nothing to do. This look at the cache comes after the graph was
        // told: an owner that goes later finds its dependent there.
        let (namespace, _) = home.place(key.as_str());
        let kinds = self.kinds();
        if metadata.owners.iter().any(|owner| !self.is_solid(&kinds, owner, namespace)) {
            self.queue.add(metadata.uid.clone());
        }
    }

    /// Whether an owner is there for all that is known without asking anybody.
    fn is_solid(&self, kinds: &Kinds, owner: &Owner, namespace: Option<&str>) -> bool {
        match inquire(&self.registry, kinds, owner, namespace) {
            Inquiry::Known(standing) => standing == Standing::Solid,
            Inquiry::Elsewhere(home, key) => match &**home {
                Home::Elsewhere(neighbour) => {
                    neighbour.roster.has(&owner.uid, &key) && !self.graph().is_waiting(&owner.uid)
                }
                Home::Here(_) => false,
            },
        }
    }

    /// Waits until the graph knows every object that the store had when this was called.
    async fn caught_up(&self, reach: Reach) -> Result<(), Failure> {
        // Resources may be in stores of their own, each with its own revisions.
        let reached = |follow: Follow| (self.registry.cache_of(&follow.resource).reached(), follow);
        let follows: Vec<_> = self.follows().values().cloned().map(reached).collect();
        for (revision, Follow { wanted, question, .. }) in &follows {
            wanted.fetch_max(revision.map_or(0, Revision::get), Ordering::SeqCst);
            question.notify_one();
        }
        for (revision, mut follow) in follows {
            // One whose feed has ended has no objects that anybody could own any more.
            let _ = follow.answer.wait_for(|progress| *progress >= revision).await;
        }
        let homes: Vec<_> = self.neighbours().values().cloned().collect();
        for home in homes {
            if let Home::Elsewhere(Neighbour { resource, roster, .. }) = &*home
                && resource.can(&["delete", "list", "watch"])
                && !roster.was_asked()
            {
                reach.permits()?;
                roster.asked().await;
            }
        }
        Ok(())
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

    fn neighbours(&self) -> MutexGuard<'_, HashMap<String, Arc<Home>>> {
        self.neighbours.lock().expect("no holder of the neighbours panics")
    }
}

/// Events come and go by themselves.
fn is_ignored(resource: &Resource) -> bool {
    resource.plural == "events" && (resource.group.is_empty() || resource.group == "events.k8s.io")
}
