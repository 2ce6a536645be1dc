//! [`ResourceQuotaController`]: keeps the status of quotas in line with what their namespaces hold.
//!
//! What a write adds is charged as it is stored (`revisor_registry`); what goes, ends or shrinks is noticed here, by
//! following every resource that quotas count. An event says no more than which quotas to count again. Of the events,
//! only those of namespaces that have a quota are told, so where there is none this costs one look per write.
//!
//! What other servers keep is counted too where a quota says so by name (`count/lamps.ext.example`). Such resources are
//! followed while there is a quota that names them. Nothing holds back writes to them: they do not come by here, in the
//! original neither.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use revisor_cache::{Feed, Filter, Item, News};
use revisor_catalog::{Resource, Verb};
use revisor_object::{Object, Value, parse_json};
use revisor_registry::{Actor, Evaluator, Registry, WriteOptions};
use tokio::sync::Notify;

use crate::controllers::{Controller, FIELD_MANAGER, stored_resources};
use crate::elsewhere::{Follow, NewsElsewhere, ResourceElsewhere, Roster, next_change};
use crate::metadata::{place, place_after};
use crate::uid::Uid;
use crate::work_queue::{Backoff, Outcome, QueueTally, WorkQueue};
use crate::{Clock, Elsewhere, ResourceList};

/// How many quotas are counted at once, as the original has it.
const WORKERS: usize = 5;

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_secs(300) };

/// How long a count waits for more to happen: a thousand deletions are counted a few times.
const PAUSE: Duration = Duration::from_millis(50);

/// How many times as long as a count takes the next one waits, so that counting takes a small part of the machine
/// however much there is to count.
const REST: u32 = 9;

/// How long a count holds, as the original has it. It mends what no event tells of: a write that was checked before a
/// quota limited it and stored after that quota was counted.
const RESYNC: Duration = Duration::from_secs(300);

/// Where a quota is.
type Key = (String, String);

/// Counts for quotas.
pub(crate) struct ResourceQuotaController {
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    queue: WorkQueue<Key>,
    resources: ResourceList,
    /// The quotas of every namespace that has some, and how long it took to count for each the last time.
    quotas: Arc<RwLock<HashMap<String, HashMap<String, Duration>>>>,
    /// The resources that are followed, by their key prefix.
    followed: Mutex<HashSet<String>>,
    elsewhere: Option<Arc<dyn Elsewhere>>,
    /// The resources of other servers that are followed, by how quotas call the number of their objects.
    neighbours: Mutex<HashMap<String, Arc<Neighbour>>>,
    /// Tells that quotas limit something else than before.
    limits_changed: Notify,
    account: Actor,
}

/// A resource that another server keeps and a quota counts.
struct Neighbour {
    resource: Arc<ResourceElsewhere>,
    /// The objects that it was last known to have.
    roster: Roster,
    /// Tells that nobody counts it any more.
    end: Notify,
}

/// What the controller does beside others, and the prefix of the resource if it has ended with it.
type Activity = Pin<Box<dyn Future<Output = Option<String>> + Send>>;

impl ResourceQuotaController {
    pub(crate) fn new(
        registry: Arc<Registry>,
        resources: ResourceList,
        elsewhere: Option<Arc<dyn Elsewhere>>,
        clock: Arc<dyn Clock>,
        tally: Arc<QueueTally>,
    ) -> Arc<ResourceQuotaController> {
        Arc::new(ResourceQuotaController {
            registry,
            queue: WorkQueue::new(clock.clone(), BACKOFF, tally),
            clock,
            resources,
            quotas: Arc::default(),
            followed: Mutex::default(),
            elsewhere,
            neighbours: Mutex::default(),
            limits_changed: Notify::new(),
            account: Controller::ResourceQuota.actor(),
        })
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        let Some(quotas) = self.registry.built_in().resource("", "v1", "resourcequotas").cloned() else { return };
        let mut activities: FuturesUnordered<Activity> = FuturesUnordered::new();
        for _ in 0..WORKERS {
            let me = self.clone();
            activities.push(Box::pin(async move {
                me.queue.work(|key| me.recount(key)).await;
                None
            }));
        }
        let me = self.clone();
        activities.push(Box::pin(async move {
            me.follow_quotas(&quotas).await;
            None
        }));
        let mut resources = self.resources.clone();
        self.take_resources(&resources.borrow_and_update().clone(), &activities);
        let mut changes = self.elsewhere.as_ref().map(|elsewhere| elsewhere.changes());
        let mut may_grow = true;
        loop {
            tokio::select! {
                ended = activities.next() => {
                    // A resource that was taken away; it may come back with a later list.
                    if let Some(Some(prefix)) = ended {
                        self.followed.lock().expect("no holder of the prefixes panics").remove(&prefix);
                        self.neighbours().remove(&prefix);
                        self.take_neighbours(&resources.borrow().clone(), &activities);
                    }
                }
                () = self.limits_changed.notified() => {
                    self.take_neighbours(&resources.borrow().clone(), &activities);
                }
                true = next_change(&mut changes) => {
                    self.take_neighbours(&resources.borrow().clone(), &activities);
                }
                changed = resources.changed(), if may_grow => {
                    may_grow = changed.is_ok();
                    self.take_resources(&resources.borrow_and_update().clone(), &activities);
                    // A quota may have waited for one of them to be there.
                    self.look_at_all();
                }
            }
        }
    }

    /// Follows the resources that quotas count and that are not followed yet.
    fn take_resources(self: &Arc<Self>, all: &[Arc<Resource>], activities: &FuturesUnordered<Activity>) {
        for resource in quotable(all) {
            let Some(evaluator) = Evaluator::of(&resource) else { continue };
            let is_new =
                self.followed.lock().expect("no holder of the prefixes panics").insert(resource.prefix.clone());
            if is_new {
                let me = self.clone();
                activities.push(Box::pin(async move {
                    me.follow(&resource, &evaluator).await;
                    Some(resource.prefix.clone())
                }));
            }
        }
    }

    /// Follows what other servers have and a quota counts, and ends that for what no quota counts any more.
    fn take_neighbours(self: &Arc<Self>, own: &[Arc<Resource>], activities: &FuturesUnordered<Activity>) {
        let Some(elsewhere) = &self.elsewhere else { return };
        let limits = self.limits_elsewhere();
        let known = elsewhere.resources();
        let mut usable = if limits.is_empty() { Vec::new() } else { known.usable(own, QUOTABLE) };
        usable.retain(|resource| resource.namespaced && limits.contains(&resource.count_limit()));
        let mut neighbours = self.neighbours();
        for (limit, neighbour) in &*neighbours {
            let is_undiscovered = known.undiscovered.contains(&neighbour.resource.group) && limits.contains(limit);
            if !is_undiscovered && !usable.contains(&neighbour.resource) {
                neighbour.end.notify_one();
            }
        }
        for resource in usable {
            let limit = resource.count_limit();
            if neighbours.contains_key(&limit) {
                continue;
            }
            let neighbour = Arc::new(Neighbour { resource, roster: Roster::default(), end: Notify::new() });
            neighbours.insert(limit.clone(), neighbour.clone());
            let (me, elsewhere) = (self.clone(), elsewhere.clone());
            activities.push(Box::pin(async move {
                tokio::select! {
                    () = me.follow_neighbour(&*elsewhere, &neighbour) => {}
                    () = neighbour.end.notified() => {}
                }
                Some(limit)
            }));
        }
    }

    /// What quotas count that may be objects of other servers.
    fn limits_elsewhere(&self) -> HashSet<String> {
        let places: Vec<Key> = {
            let known = self.quotas.read().expect("no holder of the quotas panics");
            let of = |(namespace, names): (&String, &HashMap<String, Duration>)| {
                names.keys().map(|name| (namespace.clone(), name.clone())).collect::<Vec<_>>()
            };
            known.iter().flat_map(of).collect()
        };
        let mut limits = HashSet::new();
        for (namespace, name) in places {
            let quota = self.registry.stored("", "v1", "resourcequotas", Some(&namespace), &name);
            let hard = quota.as_ref().and_then(|quota| quota.at(&["spec", "hard"])).and_then(Value::as_object);
            let counted = hard.into_iter().flat_map(Object::iter).map(|(limit, _)| limit);
            limits.extend(counted.filter(|limit| limit.starts_with("count/")).map(str::to_owned));
        }
        limits
    }

    /// Has quotas counted again when another server has other objects than before.
    async fn follow_neighbour(&self, elsewhere: &dyn Elsewhere, neighbour: &Neighbour) {
        let Neighbour { resource, roster, .. } = neighbour;
        let (prefix, limit) = (resource.prefix(), resource.count_limit());
        let follow = Follow { elsewhere, resource, actor: &self.account, clock: &*self.clock, roster };
        let mut counted: HashSet<Uid> = HashSet::new();
        let following = follow.run(|news| {
            let key = match news {
                NewsElsewhere::Present(key, metadata) if counted.insert(metadata.uid.clone()) => key,
                NewsElsewhere::Present(..) => return,
                NewsElsewhere::Gone(key, uid) => {
                    counted.remove(uid);
                    key
                }
            };
            if let (Some(namespace), _) = place_after(&prefix, true, key.as_str()) {
                self.look_at_limited(namespace, |name| name == limit);
            }
        });
        let listed = async {
            roster.asked().await;
            // Where there are none, nothing is told.
            self.look_at_all();
            std::future::pending().await
        };
        tokio::select! {
            () = following => {}
            () = listed => {}
        }
        // There are too many to be followed.
        std::future::pending().await
    }

    /// How many objects other servers have in a namespace, as far as that is known.
    fn counts_elsewhere(&self, namespace: &str) -> BTreeMap<String, usize> {
        let neighbours: Vec<_> = self.neighbours().iter().map(|(limit, it)| (limit.clone(), it.clone())).collect();
        let count = |(limit, neighbour): (String, Arc<Neighbour>)| {
            let prefix = format!("{}{namespace}/", neighbour.resource.prefix());
            Some((limit, neighbour.roster.count(&prefix)?))
        };
        neighbours.into_iter().filter_map(count).collect()
    }

    fn neighbours(&self) -> MutexGuard<'_, HashMap<String, Arc<Neighbour>>> {
        self.neighbours.lock().expect("no holder of the neighbours panics")
    }

    async fn follow_quotas(&self, quotas: &Arc<Resource>) {
        let mut feed = Feed::open(&self.registry.cache_of(quotas), None);
        while let Some(news) = feed.next().await {
            match news {
                News::Present(item) => self.know(quotas, &item),
                // The status is what this controller writes itself, and what writes are charged to.
                News::Changed { old: Some(old), new } if limits(&old) == limits(&new) => {}
                News::Changed { new, .. } => self.know(quotas, &new),
                News::Gone(item) => self.forget(quotas, &item),
                News::Complete { again: false } => {}
                News::Complete { again: true } => {
                    let cache = self.registry.cache_of(quotas);
                    let is_there =
                        |namespace: &str, name: &String| cache.get(&quotas.key(Some(namespace), name)).is_some();
                    let mut known = self.quotas.write().expect("no holder of the quotas panics");
                    known.retain(|namespace, names| {
                        names.retain(|name, _| is_there(namespace, name));
                        !names.is_empty()
                    });
                }
            }
            tokio::task::consume_budget().await;
        }
    }

    /// Notes down that there is a quota, before it is counted: from then on events of its namespace are told.
    fn know(&self, quotas: &Resource, item: &Item) {
        let (Some(namespace), name) = place(quotas, item.key().as_str()) else { return };
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let mut known = self.quotas.write().expect("no holder of the quotas panics");
        known.entry(namespace.clone()).or_default().entry(name.clone()).or_default();
        drop(known);
        self.queue.add((namespace, name));
        self.limits_changed.notify_one();
    }

    fn forget(&self, quotas: &Resource, item: &Item) {
        let (Some(namespace), name) = place(quotas, item.key().as_str()) else { return };
        let mut known = self.quotas.write().expect("no holder of the quotas panics");
        if let Some(names) = known.get_mut(namespace) {
            names.remove(name);
            if names.is_empty() {
                known.remove(namespace);
            }
        }
        self.limits_changed.notify_one();
    }

    /// Has quotas counted again when objects of a resource go, or hold something else.
    async fn follow(&self, resource: &Arc<Resource>, evaluator: &Evaluator) {
        let (quotas, prefix) = (self.quotas.clone(), resource.prefix.clone());
        let filter: Filter = Arc::new(move |item| {
            let namespace = item.key().as_str().strip_prefix(&*prefix).and_then(|place| place.split('/').next());
            let known = quotas.read().expect("no holder of the quotas panics");
            namespace.is_some_and(|namespace| known.contains_key(namespace))
        });
        let mut feed = Feed::open(&self.registry.cache_of(resource), Some(filter));
        while let Some(news) = feed.next().await {
            match news {
                // A new object was charged as it was made.
                News::Present(_) | News::Changed { old: None, .. } | News::Complete { again: false } => {}
                News::Changed { old: Some(old), new } => {
                    if evaluator.is_recounted(&self.registry, old.bytes(), new.bytes()) {
                        self.look_at(resource, evaluator, &new);
                    }
                }
                News::Gone(item) => self.look_at(resource, evaluator, &item),
                News::Complete { again: true } => self.look_at_all(),
            }
            tokio::task::consume_budget().await;
        }
    }

    /// Has the quotas counted again that limit what an object holds (upstream: `replenishQuota`).
    fn look_at(&self, resource: &Arc<Resource>, evaluator: &Evaluator, item: &Item) {
        let (Some(namespace), _) = place(resource, item.key().as_str()) else { return };
        self.look_at_limited(namespace, |limit| evaluator.counts(&self.registry, limit));
    }

    /// Has the quotas of a namespace counted again that have a limit like this.
    fn look_at_limited(&self, namespace: &str, is_limit: impl Fn(&str) -> bool) {
        let names: Vec<(String, Duration)> = {
            let known = self.quotas.read().expect("no holder of the quotas panics");
            let known = known.get(namespace).into_iter().flatten();
            known.map(|(name, cost)| (name.clone(), *cost)).collect()
        };
        for (name, cost) in names {
            let quota = self.registry.stored("", "v1", "resourcequotas", Some(namespace), &name);
            let hard = quota.as_ref().and_then(|quota| quota.at(&["spec", "hard"])).and_then(Value::as_object);
            if hard.is_some_and(|hard| hard.iter().any(|(limit, _)| is_limit(limit))) {
                self.queue.add_after((namespace.to_owned(), name), PAUSE.max(cost.saturating_mul(REST)));
            }
        }
    }

    fn look_at_all(&self) {
        let known = self.quotas.read().expect("no holder of the quotas panics");
        for (namespace, names) in &*known {
            for (name, cost) in names {
                let pause = PAUSE.max(cost.saturating_mul(REST));
                self.queue.add_after((namespace.clone(), name.clone()), pause);
            }
        }
    }

    async fn recount(&self, (namespace, name): Key) -> Outcome {
        let resources = self.resources.borrow().clone();
        let resources = quotable(&resources);
        let begun = self.clock.uptime();
        let options = WriteOptions { field_manager: FIELD_MANAGER, ..self.account.options() };
        let elsewhere = self.counts_elsewhere(&namespace);
        let counted = self.registry.recount_quota(&resources, &elsewhere, &namespace, &name, options).await;
        let cost = self.clock.uptime().saturating_sub(begun);
        let mut known = self.quotas.write().expect("no holder of the quotas panics");
        if let Some(last) = known.get_mut(&namespace).and_then(|names| names.get_mut(&name)) {
            *last = cost;
        }
        drop(known);
        match counted {
            Ok(None) => Outcome::Done,
            Ok(Some(recount)) => {
                // Past the end, and not at it: at the end itself everything still counts.
                let until =
                    |due: time::OffsetDateTime| (due - self.clock.now()).max(time::Duration::ZERO).unsigned_abs();
                let pause = recount.due.map_or(RESYNC, |due| RESYNC.min(until(due) + Duration::from_secs(1)));
                self.queue.add_after((namespace, name), pause);
                Outcome::Done
            }
            Err(error) => {
                tracing::warn!(%namespace, %name, ?error, "cannot count what a quota limits");
                Outcome::Retry
            }
        }
    }
}

/// What can be done with objects that quotas may count.
const QUOTABLE: &[&str] = &["create", "list", "watch", "delete"];

/// The resources that quotas may count, each once (upstream: `GetQuotableResources`).
fn quotable(all: &[Arc<Resource>]) -> Vec<Arc<Resource>> {
    let mut resources = stored_resources(all, &[Verb::Create, Verb::List, Verb::Watch, Verb::Delete]);
    resources.retain(|resource| resource.namespaced);
    resources
}

/// What of a quota says what is to be counted. Two quotas are compared by it; one that cannot be read has none.
fn limits(quota: &Item) -> Option<Object> {
    let spec = sonic_rs::get(&quota.bytes()[..], ["spec"]).ok()?;
    match parse_json(spec.as_raw_str().as_bytes()).ok()?.value {
        Value::Object(spec) => Some(spec),
        _ => None,
    }
}
