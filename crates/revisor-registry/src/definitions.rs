//! Custom resources come and go with their definitions.
//!
//! One task follows the definitions: it gives them their names, says so in their status, serves their resources, and
//! when one is deleted, deletes its objects before it lets the definition go. Whoever writes a definition is answered
//! once the task has seen it, so that the next request finds what was defined.

mod cleanup;
mod registrations;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use revisor_cache::{Feed, Item, News};
use revisor_catalog::{Definition, FROZEN_VERSIONS, Resource, TakenNames, settle_status};
use revisor_object::{Object, Value};
use revisor_version::Revision;
use tokio::sync::watch;

use crate::workbench::{is_light, off_the_workers};
use crate::{Decoded, Registry, RegistryError};

/// How long a writer waits until its definition is served. It is there sooner unless something is very wrong.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether these are the objects that define other resources.
pub(crate) fn is_definitions(resource: &Resource) -> bool {
    resource.name() == ("apiextensions.k8s.io", "customresourcedefinitions")
}

/// How far the task has come.
pub(crate) struct Progress(watch::Sender<Option<Revision>>);

impl Default for Progress {
    fn default() -> Progress {
        Progress(watch::Sender::new(None))
    }
}

impl Registry {
    /// Begins to follow the definitions, and waits until all that are there are served.
    pub(crate) async fn follow_definitions(self: &Arc<Self>) {
        let Some(definitions) = self.catalog.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
            return;
        };
        let feed = Feed::open(&self.cache_of(definitions), None);
        let keeper = Keeper {
            registry: Arc::downgrade(self),
            definitions: definitions.clone(),
            names: HashMap::new(),
            installed: HashMap::new(),
            serves_reports: false,
        };
        let mut seen = self.definitions.0.subscribe();
        tokio::spawn(keeper.run(feed));
        // The task ends only with the registry.
        let _ = seen.wait_for(Option::is_some).await;
    }

    /// Waits until what was written to a definition has taken effect.
    pub(crate) async fn await_definition(&self, resource: &Resource, written: &[u8]) {
        if !is_definitions(resource) {
            return;
        }
        let Ok(version) = sonic_rs::get(written, ["metadata", "resourceVersion"]) else { return };
        let Some(revision) = version.as_raw_str().trim_matches('"').parse().ok().and_then(Revision::new) else {
            return;
        };
        let mut seen = self.definitions.0.subscribe();
        let reached = seen.wait_for(|seen| *seen >= Some(revision));
        if tokio::time::timeout(PATIENCE, reached).await.is_err() {
            tracing::warn!(%revision, "a definition was written but is not served yet");
        }
    }
}

/// The task that follows the definitions.
struct Keeper {
    registry: Weak<Registry>,
    definitions: Arc<Resource>,
    /// The names that definitions have got, by group and name of the definition.
    names: HashMap<String, BTreeMap<String, TakenNames>>,
    installed: HashMap<String, Installed>,
    serves_reports: bool,
}

/// A definition whose resources are served.
struct Installed {
    /// Everything that its resources depend on.
    basis: Basis,
    group: String,
    plural: String,
    prefix: String,
    is_being_cleaned: bool,
}

#[derive(PartialEq)]
struct Basis {
    /// Which definition it is, and how often its spec was changed: all of a thousand specs would be much to hold.
    uid: Option<Value>,
    generation: Option<Value>,
    accepted: Option<Value>,
    frozen: Option<Value>,
    is_established: bool,
    is_terminating: bool,
}

impl Keeper {
    async fn run(mut self, mut feed: Feed) {
        while let Some(news) = feed.next().await {
            // Held for one step at a time: the registry is gone when its last user is.
            let Some(registry) = self.registry.upgrade() else { return };
            match news {
                News::Present(item) | News::Changed { new: item, .. } => {
                    self.look_at(&registry, &item).await;
                    self.serve_reports(&registry);
                    // What was there at the start is seen when all of it is.
                    registry.definitions.0.send_if_modified(|seen| {
                        let is_news = seen.is_some() && *seen < Some(item.revision());
                        if is_news {
                            *seen = Some(item.revision());
                        }
                        is_news
                    });
                }
                News::Complete { .. } => {
                    self.forget_missing(&registry).await;
                    self.serve_reports(&registry);
                    let reached = registry.cache.revision();
                    registry.definitions.0.send_if_modified(|seen| {
                        let is_news = *seen < reached;
                        *seen = reached.max(*seen);
                        is_news
                    });
                }
                News::Gone(item) => {
                    let name = name_of(&self.definitions, &item).to_owned();
                    self.forget(&registry, &name).await;
                    self.serve_reports(&registry);
                }
            }
        }
    }

    /// Serves the reports on definitions as long as there are any to report on.
    fn serve_reports(&mut self, registry: &Registry) {
        let has_definitions = self.names.values().any(|names| !names.is_empty());
        if has_definitions != self.serves_reports {
            self.serves_reports = has_definitions;
            let reports = registry.catalog.version_reports();
            let served = if has_definitions { vec![reports.clone()] } else { Vec::new() };
            registry.serve_custom(&reports.group, &reports.plural, served);
        }
    }

    /// Brings everything in step with a definition.
    async fn look_at(&mut self, registry: &Arc<Registry>, item: &Item) {
        let name = name_of(&self.definitions, item).to_owned();
        let Ok(mut object) = at_leisure(item.bytes().len(), || Decoded::stored(item.bytes())) else { return };
        if let Err(error) = self.settle(registry, &name, &mut object).await {
            // Somebody else was faster or it is gone; either comes as news.
            tracing::debug!(definition = name, %error, "the status of a definition was not written");
        }
        self.install(registry, &name, &object, item).await;
    }

    /// Gives a definition its names, and says so in its status.
    async fn settle(&mut self, registry: &Arc<Registry>, name: &str, object: &mut Object) -> Result<(), RegistryError> {
        let group = group_of(object).to_owned();
        self.remember_names(&group, name, object);
        let taken = self.taken(registry, &group);
        let now = registry.now();
        if settle_status(object, &taken, &now) {
            registry
                .overwrite(&self.definitions, None, name, false, |_, current| {
                    settle_status(current, &taken, &now);
                    Ok(())
                })
                .await?;
            self.remember_names(&group, name, object);
        }
        Ok(())
    }

    fn remember_names(&mut self, group: &str, name: &str, object: &Object) {
        let mut own = TakenNames::default();
        own.add(object);
        self.names.entry(group.to_owned()).or_default().insert(name.to_owned(), own);
    }

    fn taken(&self, registry: &Registry, group: &str) -> TakenNames {
        let mut taken = TakenNames::default();
        let reports = registry.catalog.version_reports();
        if reports.group == group {
            taken.add(&as_definition(reports));
        }
        self.names.get(group).into_iter().flat_map(BTreeMap::values).for_each(|names| taken.extend(names));
        taken
    }

    /// Serves what a definition says, or no longer.
    async fn install(&mut self, registry: &Arc<Registry>, name: &str, object: &Object, item: &Item) {
        let bytes = item.bytes().len();
        let definition = at_leisure(bytes, || Definition::read(object));
        let basis = Basis {
            uid: object.at(&["metadata", "uid"]).cloned(),
            generation: object.at(&["metadata", "generation"]).cloned(),
            accepted: object.at(&["status", "acceptedNames"]).cloned(),
            frozen: object.at(&["metadata", "annotations", FROZEN_VERSIONS]).cloned(),
            is_established: definition.is_established,
            is_terminating: definition.is_terminating,
        };
        if self.installed.get(name).is_some_and(|installed| installed.basis == basis) || !definition.is_established {
            if definition.is_terminating && !definition.is_established {
                cleanup::let_go(registry, &self.definitions, name).await;
            }
            return;
        }
        let compiled = at_leisure(bytes, || definition.resources(&registry.catalog, None));
        let Some(resources) = compiled else { return };
        let prefix = resources.storage.prefix.clone();
        if let Err(error) = registry.add_custom_cache(&prefix, definition.namespaced).await {
            tracing::error!(definition = name, %error, "the objects of a definition cannot be read");
            return;
        }
        let (group, plural) = (definition.group.clone(), definition.accepted.plural.clone());
        let is_being_cleaned = self.installed.get(name).is_some_and(|installed| installed.is_being_cleaned);
        registry.serve_custom(&group, &plural, resources.served);
        registry.register_custom(&group).await;
        if definition.is_terminating && !is_being_cleaned {
            let (definitions, registry) = (self.definitions.clone(), self.registry.clone());
            tokio::spawn(cleanup::run(registry, definitions, name.to_owned(), resources.storage));
        }
        let is_being_cleaned = definition.is_terminating;
        self.installed.insert(name.to_owned(), Installed { basis, group, plural, prefix, is_being_cleaned });
    }

    /// Forgets a definition that is gone. Others may have waited for its names.
    async fn forget(&mut self, registry: &Arc<Registry>, name: &str) {
        if let Some(Installed { group, plural, prefix, .. }) = self.installed.remove(name) {
            registry.serve_custom(&group, &plural, Vec::new());
            registry.register_custom(&group).await;
            registry.remove_custom_cache(&prefix);
        }
        let Some(group) = self.names.iter().find(|(_, names)| names.contains_key(name)).map(|(group, _)| group.clone())
        else {
            return;
        };
        if let Some(names) = self.names.get_mut(&group) {
            names.remove(name);
        }
        let others: Vec<String> = self.names.get(&group).into_iter().flat_map(BTreeMap::keys).cloned().collect();
        for other in others {
            let item = registry.cache_of(&self.definitions).get(&self.definitions.key(None, &other));
            if let Some(item) = item {
                self.look_at(registry, &item).await;
            }
        }
    }

    /// After a start, or when news were missed: forgets what is no longer there.
    async fn forget_missing(&mut self, registry: &Arc<Registry>) {
        let cache = registry.cache_of(&self.definitions);
        let is_missing = |name: &&String| cache.get(&self.definitions.key(None, name)).is_none();
        let known = self.names.values().flat_map(BTreeMap::keys);
        let missing: Vec<String> = known.filter(is_missing).cloned().collect();
        for name in missing {
            self.forget(registry, &name).await;
        }
    }
}

/// Does something with so many bytes of a definition: where it holds up nobody, if they are many.
fn at_leisure<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if is_light(bytes) { work() } else { off_the_workers(work) }
}

fn name_of<'i>(definitions: &Resource, item: &'i Item) -> &'i str {
    let key = item.key().as_str();
    key.strip_prefix(&*definitions.prefix).unwrap_or(key)
}

/// The names of a resource of the server's own, as a definition would have got them.
fn as_definition(resource: &Resource) -> Object {
    let mut definition = Object::new();
    let names = definition.object_mut("status").object_mut("acceptedNames");
    names.insert("plural", resource.plural.as_str());
    names.insert("singular", resource.singular.as_str());
    names.insert("kind", resource.kind.as_str());
    names.insert("listKind", resource.list_kind.as_str());
    let short_names = resource.short_names.iter().map(|name| Value::from(name.as_str()));
    names.insert("shortNames", short_names.collect::<Vec<_>>());
    definition
}

fn group_of(definition: &Object) -> &str {
    definition.at(&["spec", "group"]).and_then(Value::as_str).unwrap_or_default()
}
