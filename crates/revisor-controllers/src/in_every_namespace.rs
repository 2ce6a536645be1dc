//! [`InEveryNamespace`]: one object with a known name that every active namespace has, made again when it is deleted
//! and mended when it is changed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use revisor_cache::Filter;
use revisor_catalog::Resource;
use revisor_object::{Object, Value, parse_json};
use revisor_registry::{Actor, Decoded, FieldValidation, Format, Place, Registry, RegistryError, WriteOptions};
use tokio::sync::watch;

use crate::Clock;
use crate::controllers::{Controller, FIELD_MANAGER};
use crate::metadata::{place, text_at};
use crate::work_queue::{Backoff, Outcome, QueueTally, WorkQueue};
use revisor_cache::{Feed, News};

/// How many namespaces are looked after at once: so many writes share one sync of the disk.
const WORKERS: usize = 8;

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_secs(300) };

/// What every namespace should have.
pub(crate) trait Wanted: Send + Sync + 'static {
    /// The resource, of the core group.
    fn plural(&self) -> &'static str;

    /// The name of the object.
    fn name(&self) -> &'static str;

    /// The object, where there is none.
    fn fresh(&self) -> Object;

    /// Puts right what is wrong with the object that is there; answers whether something was.
    fn mend(&self, object: &mut Object) -> bool;

    /// Tells when what is wanted is another; `None` if it is always the same.
    fn changes(&self) -> Option<watch::Receiver<String>> {
        None
    }
}

/// Keeps one object in every active namespace.
pub(crate) struct InEveryNamespace<W> {
    registry: Arc<Registry>,
    wanted: W,
    queue: WorkQueue<String>,
    account: Actor,
}

/// The two resources that matter.
struct Scene {
    namespaces: Arc<Resource>,
    objects: Arc<Resource>,
}

impl<W: Wanted> InEveryNamespace<W> {
    pub(crate) fn new(
        registry: Arc<Registry>,
        clock: Arc<dyn Clock>,
        controller: Controller,
        tally: Arc<QueueTally>,
        wanted: W,
    ) -> InEveryNamespace<W> {
        let account = controller.actor();
        InEveryNamespace { registry, wanted, queue: WorkQueue::new(clock, BACKOFF, tally), account }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let core = |plural| self.registry.built_in().resource("", "v1", plural).cloned();
        let (Some(namespaces), Some(objects)) = (core("namespaces"), core(self.wanted.plural())) else { return };
        let scene = Scene { namespaces, objects };
        let workers = (0..WORKERS).map(|_| self.queue.work(|namespace| self.look_after(&scene, namespace)));
        let changes = self.wanted.changes();
        tokio::join!(
            self.follow_namespaces(&scene),
            self.follow_objects(&scene),
            self.follow_changes(&scene, changes),
            join_all(workers)
        );
    }

    /// Looks after every namespace again when something else is wanted there.
    async fn follow_changes(&self, scene: &Scene, changes: Option<watch::Receiver<String>>) {
        let Some(mut changes) = changes else { return };
        while changes.changed().await.is_ok() {
            self.look_everywhere(scene);
        }
    }

    fn look_everywhere(&self, scene: &Scene) {
        let snapshot = self.registry.cache_of(&scene.namespaces).snapshot();
        for item in snapshot.range(&scene.namespaces.prefix, None) {
            let (_, name) = place(&scene.namespaces, item.key().as_str());
            self.queue.add(name.to_owned());
        }
    }

    async fn follow_namespaces(&self, scene: &Scene) {
        let mut feed = Feed::open(&self.registry.cache_of(&scene.namespaces), None);
        while let Some(news) = feed.next().await {
            if let News::Present(item) | News::Changed { new: item, .. } = news {
                let (_, name) = place(&scene.namespaces, item.key().as_str());
                self.queue.add(name.to_owned());
            }
            tokio::task::consume_budget().await;
        }
    }

    async fn follow_objects(&self, scene: &Scene) {
        let name = self.wanted.name();
        let filter: Filter =
            Arc::new(move |item| item.key().as_str().strip_suffix(name).is_some_and(|rest| rest.ends_with('/')));
        let mut feed = Feed::open(&self.registry.cache_of(&scene.objects), Some(filter));
        while let Some(news) = feed.next().await {
            match news {
                // At the start every namespace is looked at anyway.
                News::Present(_) | News::Complete { again: false } => {}
                News::Changed { new: item, .. } | News::Gone(item) => {
                    let (namespace, _) = place(&scene.objects, item.key().as_str());
                    self.queue.add(namespace.unwrap_or_default().to_owned());
                }
                News::Complete { again: true } => self.look_everywhere(scene),
            }
            tokio::task::consume_budget().await;
        }
    }

    async fn look_after(&self, scene: &Scene, namespace: String) -> Outcome {
        match self.ensure(scene, &namespace).await {
            Ok(()) => Outcome::Done,
            // The namespace is gone or going: nobody wants anything there any more.
            Err(RegistryError::NoSuchNamespace(_))
            | Err(RegistryError::Forbidden { terminating_namespace: Some(_), .. }) => Outcome::Done,
            // Somebody was faster, and what they did comes as an event.
            Err(RegistryError::AlreadyExists { .. } | RegistryError::NotFound { .. }) => Outcome::Done,
            Err(RegistryError::Conflict { .. }) => Outcome::Retry,
            Err(error) => {
                tracing::warn!(%namespace, name = self.wanted.name(), ?error, "cannot keep what a namespace should have");
                Outcome::Retry
            }
        }
    }

    async fn ensure(&self, scene: &Scene, namespace: &str) -> Result<(), RegistryError> {
        let Scene { namespaces, objects } = scene;
        let Some(around) = self.registry.cache_of(namespaces).get(&namespaces.key(None, namespace)) else {
            return Ok(());
        };
        if text_at(around.bytes(), &["status", "phase"]) != "Active" {
            return Ok(());
        }
        let name = self.wanted.name();
        let decode = |object: Object| {
            let text = Value::Object(object).to_json();
            Decoded::read(objects, Format::Json, text.as_bytes(), FieldValidation::Ignore)
        };
        let namespace = Some(namespace);
        let options = WriteOptions { field_manager: FIELD_MANAGER, ..self.account.options() };
        match self.registry.cache_of(objects).get(&objects.key(namespace, name)) {
            None => {
                let place = Place { resource: objects, namespace, name: None };
                self.registry.create(place, decode(self.wanted.fresh())?, options).await?;
            }
            Some(item) => {
                let Ok(Value::Object(mut object)) = parse_json(item.bytes()).map(|parsed| parsed.value) else {
                    return Err(RegistryError::Unreadable);
                };
                if self.wanted.mend(&mut object) {
                    // It names its version, so that a change in between is not overwritten but looked at again.
                    let place = Place { resource: objects, namespace, name: Some(name) };
                    self.registry.update(place, decode(object)?, options).await?;
                }
            }
        }
        Ok(())
    }
}
