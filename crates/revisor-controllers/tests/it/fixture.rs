//! A registry on an embedded store with the controllers that a test wants, and a clock that only tests move.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use revisor_cache::{Cache, CacheOptions, Scope, WatchItem, WatchRequest, WatchStart};
use revisor_catalog::{Catalog, CatalogOptions, Resource};
use revisor_controllers::{Clock, Controller, Controllers, ControllersOptions, QueueTallies, SecretToken, Sleep};
use revisor_object::{Object, TokenSealer, Value, parse_json};
use revisor_registry::{
    Decoded, DeleteOptions, Environment, FieldValidation, Format, PatchKind, Place, Registry, RegistryOptions,
    ServiceNetwork, WriteOptions,
};
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore, HistoryLimits};
use time::OffsetDateTime;
use tokio::sync::{oneshot, watch};

/// How long a test waits for anything. Generous, because machines that run tests are busy.
const DEADLINE: Duration = Duration::from_secs(30);

/// The second that every clock of a test starts in.
pub(crate) const START: i64 = 1_800_000_000;

/// A clock that tests move.
#[derive(Default)]
pub(crate) struct ManualClock {
    state: Mutex<ManualTime>,
    /// Grows with every wait.
    waits: watch::Sender<u64>,
}

#[derive(Default)]
struct ManualTime {
    uptime: Duration,
    sleepers: BTreeMap<(Duration, usize), oneshot::Sender<()>>,
    count: usize,
}

impl ManualClock {
    /// Moves the clock and wakes those whose time has come.
    pub(crate) fn advance(&self, by: Duration) {
        let mut state = self.state.lock().expect("no holder panics");
        state.uptime += by;
        let later = (state.uptime + Duration::from_nanos(1), 0);
        let rest = state.sleepers.split_off(&later);
        for (_, sleeper) in std::mem::replace(&mut state.sleepers, rest) {
            // It may have stopped waiting.
            let _ = sleeper.send(());
        }
    }

    /// Waits until somebody waits for this time.
    #[track_caller]
    pub(crate) fn awaited(&self, uptime: Duration) -> impl Future<Output = ()> {
        let mut waits = self.waits.subscribe();
        within(async move {
            let is_awaited = |_: &u64| {
                let state = self.state.lock().expect("no holder panics");
                state.sleepers.iter().any(|((until, _), sleeper)| *until == uptime && !sleeper.is_closed())
            };
            waits.wait_for(is_awaited).await.expect("the clock is there");
        })
    }

    /// Moves the clock again and again until something is the case.
    #[track_caller]
    pub(crate) fn advance_until<T>(&self, by: Duration, mut ask: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
        within(async move {
            let mut pause = tokio::time::interval(Duration::from_millis(1));
            loop {
                if let Some(found) = ask() {
                    return found;
                }
                self.advance(by);
                pause.tick().await;
            }
        })
    }
}

impl Clock for ManualClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(START).expect("a time") + self.uptime()
    }

    fn uptime(&self) -> Duration {
        self.state.lock().expect("no holder panics").uptime
    }

    fn sleep_until(&self, uptime: Duration) -> Sleep {
        let mut state = self.state.lock().expect("no holder panics");
        if state.uptime >= uptime {
            return Box::pin(std::future::ready(()));
        }
        let (sender, receiver) = oneshot::channel();
        state.count += 1;
        let at = (uptime, state.count);
        state.sleepers.retain(|_, sleeper| !sleeper.is_closed());
        state.sleepers.insert(at, sender);
        drop(state);
        self.waits.send_modify(|count| *count += 1);
        Box::pin(async move {
            if receiver.await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

/// Fails a test that waits for something that does not come.
#[track_caller]
pub(crate) fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        let done = tokio::time::timeout(DEADLINE, future).await;
        done.unwrap_or_else(|_| panic!("nothing came within {DEADLINE:?} at {caller}"))
    }
}

pub(crate) struct Fixture {
    pub(crate) registry: Arc<Registry>,
    pub(crate) clock: Arc<ManualClock>,
    /// Whoever adds resources sends the longer list.
    pub(crate) resources: watch::Sender<Arc<[Arc<Resource>]>>,
    pub(crate) root_ca: watch::Sender<String>,
    _folder: tempfile::TempDir,
}

impl Fixture {
    /// A registry without controllers.
    pub(crate) async fn new() -> Fixture {
        Fixture::with(CacheOptions::default(), HistoryLimits::default()).await
    }

    /// One whose store forgets every event at once, so that those who follow have to start again and again.
    pub(crate) async fn forgetful() -> Fixture {
        let options = CacheOptions { watcher_queue: 1, ..CacheOptions::default() };
        Fixture::with(options, HistoryLimits { events: 0, ..HistoryLimits::default() }).await
    }

    /// One that serves everything there is, also what is off by default.
    pub(crate) async fn everything() -> Fixture {
        let catalog = Catalog::build(&CatalogOptions::everything()).expect("there is all of it");
        Fixture::of(catalog, CacheOptions::default(), HistoryLimits::default()).await
    }

    pub(crate) async fn with(options: CacheOptions, history: HistoryLimits) -> Fixture {
        Fixture::of(Catalog::default(), options, history).await
    }

    async fn of(catalog: Catalog, options: CacheOptions, history: HistoryLimits) -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let mut options_of_store = EmbeddedOptions::new(folder.path().join("store"));
        options_of_store.history = history;
        let store = EmbeddedStore::open(options_of_store).await.expect("a new store");
        let clock = Arc::new(ManualClock::default());
        let (counter, time) = (AtomicU64::new(0), clock.clone());
        let environment =
            Environment::new(move || time.now(), move || u128::from(counter.fetch_add(1, Ordering::Relaxed)));
        let catalog = Arc::new(catalog);
        let all: Arc<[Arc<Resource>]> = catalog.resources().filter(|resource| resource.is_stored()).cloned().collect();
        let options_of_registry = RegistryOptions {
            catalog,
            environment,
            sealer: TokenSealer::new([7; 32]),
            patience: Duration::from_millis(50),
            services: ServiceNetwork::default(),
            authorization: Default::default(),
            server: "server".to_owned(),
            admission: Default::default(),
            shows_versioning: true,
        };
        let registry = Registry::start(Cache::start(Arc::new(store), options), options_of_registry).await;
        let registry = registry.expect("a new registry");
        Fixture {
            registry,
            clock,
            resources: watch::Sender::new(all),
            root_ca: watch::Sender::new("CERTIFICATES".to_owned()),
            _folder: folder,
        }
    }

    /// Starts controllers. They end when what is answered is dropped.
    pub(crate) fn start(&self, enabled: &[Controller]) -> Controllers {
        let clock: Arc<dyn Clock> = self.clock.clone();
        Controllers::start(ControllersOptions {
            registry: self.registry.clone(),
            resources: self.resources.subscribe(),
            queues: QueueTallies::new(&clock),
            clock,
            enabled: enabled.to_vec(),
            root_ca: self.root_ca.subscribe(),
            token_maker: Some(Arc::new(|token: SecretToken<'_>| {
                let SecretToken { namespace, account, account_uid, secret } = token;
                Some(format!("{namespace}/{account}/{account_uid}/{secret}"))
            })),
            event_ttl: Duration::from_secs(3600),
            elsewhere: None,
        })
    }

    pub(crate) fn resource(&self, plural: &str) -> Arc<Resource> {
        let found = self.registry.built_in().resources().find(|resource| resource.plural == plural);
        found.unwrap_or_else(|| panic!("{plural} are served")).clone()
    }

    /// Makes an object and answers its identity.
    pub(crate) async fn create(&self, plural: &str, namespace: Option<&str>, text: &str) -> String {
        let resource = self.resource(plural);
        let decoded = Decoded::read(&resource, Format::Json, text.as_bytes(), FieldValidation::Strict);
        let place = Place { resource: &resource, namespace, name: None };
        let saved = self.registry.create(place, decoded.expect("fits"), WriteOptions::default()).await;
        text_at(&parse(&saved.expect("is made").bytes), &["metadata", "uid"])
    }

    /// Makes a namespace.
    pub(crate) async fn namespace(&self, name: &str) -> String {
        self.create("namespaces", None, &format!(r#"{{"metadata":{{"name":"{name}"}}}}"#)).await
    }

    /// Makes a config map in the namespace `default` with these owners, members of metadata in JSON.
    pub(crate) async fn config_map(&self, name: &str, metadata: &str) -> String {
        self.config_map_in("default", name, metadata).await
    }

    pub(crate) async fn config_map_in(&self, namespace: &str, name: &str, metadata: &str) -> String {
        let text = format!(r#"{{"metadata":{{"name":"{name}"{metadata}}}}}"#);
        self.create("configmaps", Some(namespace), &text).await
    }

    pub(crate) async fn delete(&self, plural: &str, namespace: Option<&str>, name: &str, policy: &str) {
        let resource = self.resource(plural);
        let policy = (!policy.is_empty()).then(|| policy.to_owned());
        let options = DeleteOptions { propagation_policy: policy, ..DeleteOptions::default() };
        let place = Place { resource: &resource, namespace, name: Some(name) };
        self.registry.delete(place, &options).await.expect("is deleted");
    }

    pub(crate) async fn patch(&self, plural: &str, namespace: Option<&str>, name: &str, patch: &str) {
        let resource = self.resource(plural);
        let place = Place { resource: &resource, namespace, name: Some(name) };
        let patched = self.registry.patch(place, PatchKind::Merge, patch.as_bytes(), WriteOptions::default()).await;
        patched.expect("is patched");
    }

    /// The object as it is, if it is there.
    pub(crate) fn get(&self, plural: &str, namespace: Option<&str>, name: &str) -> Option<Object> {
        let resource = self.resource(plural);
        let item = self.registry.cache_of(&resource).get(&resource.key(namespace, name))?;
        Some(parse(item.bytes()))
    }

    /// Waits until the objects of a resource are so that `ask` has an answer.
    #[track_caller]
    pub(crate) fn until<T>(&self, plural: &str, mut ask: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
        let cache = self.registry.cache_of(&self.resource(plural)).clone();
        let watch = move || {
            let request = WatchRequest { scope: Scope::All, filter: None, start: WatchStart::State };
            cache.watch(request).expect("no revision is asked for")
        };
        let mut watcher = watch();
        within(async move {
            loop {
                if let Some(answer) = ask() {
                    return answer;
                }
                match watcher.next().await {
                    Some(WatchItem::Expired(_)) => watcher = watch(),
                    Some(_) => {}
                    None => panic!("the watch has ended"),
                }
            }
        })
    }

    /// Waits until there is no such object.
    #[track_caller]
    pub(crate) fn gone(&self, plural: &str, namespace: Option<&str>, name: &str) -> impl Future<Output = ()> {
        self.until(plural, move || self.get(plural, namespace, name).is_none().then_some(()))
    }

    /// Waits until there is such an object.
    #[track_caller]
    pub(crate) fn there(&self, plural: &str, namespace: Option<&str>, name: &str) -> impl Future<Output = Object> {
        self.until(plural, move || self.get(plural, namespace, name))
    }

    /// The names of the config maps of the namespace `default`.
    pub(crate) fn config_maps(&self) -> Vec<String> {
        let resource = self.resource("configmaps");
        let snapshot = self.registry.cache_of(&resource).snapshot();
        let all = snapshot.range(&resource.collection(Some("default")), None);
        all.map(|item| text_at(&parse(item.bytes()), &["metadata", "name"])).collect()
    }
}

/// An owner reference to a config map, as a member of metadata.
pub(crate) fn owned_by(owners: &[(&str, &str)], blocks: bool) -> String {
    let references: Vec<String> = owners
        .iter()
        .map(|(name, uid)| {
            format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","name":"{name}","uid":"{uid}","blockOwnerDeletion":{blocks}}}"#
            )
        })
        .collect();
    format!(r#","ownerReferences":[{}]"#, references.join(","))
}

pub(crate) fn parse(bytes: &[u8]) -> Object {
    match parse_json(bytes).expect("what is stored is JSON").value {
        Value::Object(object) => object,
        other => panic!("not an object: {other:?}"),
    }
}

pub(crate) fn text_at(object: &Object, path: &[&str]) -> String {
    object.at(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}
