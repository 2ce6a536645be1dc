//! Custom resources come and go with their definitions.
//!
//! One task follows the definitions: it gives them their names, says so in their status, serves their resources, and
//! when one is deleted, deletes its objects and its Conversion before it lets the definition go. It follows the
//! conversions too, because a definition takes effect together with the rules between its versions. Whoever writes one of
//! either is answered once the task has seen it, so that the next request finds what was defined.

mod cleanup;
mod registrations;
mod status;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use revisor_cache::{Feed, Item, News};
use revisor_catalog::{Definition, FROZEN_VERSIONS, Resource, TakenNames};
use revisor_convert::Conversion;
use revisor_object::{Object, Value};
use revisor_version::Revision;
use tokio::sync::watch;

use self::status::Telling;
use crate::conversions::{Verdict, is_conversions, judge, known};
use crate::workbench::{is_light, off_the_workers};
use crate::{Decoded, Registry};

/// How long a writer waits until its definition is served. It is there sooner unless something is very wrong.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether these are the objects that define other resources.
pub(crate) fn is_definitions(resource: &Resource) -> bool {
    resource.name() == ("apiextensions.k8s.io", "customresourcedefinitions")
}

/// How far the task has come.
#[derive(Default)]
pub(crate) struct Progress {
    definitions: Seen,
    conversions: Seen,
}

/// Up to where all changes of a resource have taken effect.
struct Seen(watch::Sender<Option<Revision>>);

impl Default for Seen {
    fn default() -> Seen {
        Seen(watch::Sender::new(None))
    }
}

impl Seen {
    fn reach(&self, revision: Option<Revision>) {
        self.0.send_if_modified(|seen| {
            let is_news = *seen < revision;
            *seen = revision.max(*seen);
            is_news
        });
    }

    /// The same for a single change: what was there at the start is seen when all of it is.
    fn reach_next(&self, revision: Option<Revision>) {
        if self.0.borrow().is_some() {
            self.reach(revision);
        }
    }

    async fn begin(&self) {
        // The task ends only with the registry.
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }
}

impl Registry {
    /// Begins to follow the definitions, and waits until all that are there are served.
    pub(crate) async fn follow_definitions(self: &Arc<Self>) {
        let Some(definitions) = self.catalog.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
            return;
        };
        let feed = Feed::open(&self.cache_of(definitions), None);
        let conversions = self.catalog.conversions();
        let feed_of_conversions = Feed::open(&self.cache_of(conversions), None);
        let keeper = Keeper {
            registry: Arc::downgrade(self),
            definitions: definitions.clone(),
            conversions: conversions.clone(),
            names: HashMap::new(),
            installed: HashMap::new(),
            told: HashMap::new(),
            judged: HashMap::new(),
            serves_versioning: false,
            shows_versioning: self.shows_versioning,
        };
        tokio::spawn(keeper.run(feed, feed_of_conversions));
        self.definitions.definitions.begin().await;
        self.definitions.conversions.begin().await;
    }

    /// Waits until what was written to a definition or to a Conversion has taken effect.
    pub(crate) async fn await_definition(&self, resource: &Resource, written: &[u8]) {
        let seen = match () {
            () if is_definitions(resource) => &self.definitions.definitions,
            () if is_conversions(resource) => &self.definitions.conversions,
            () => return,
        };
        let Ok(version) = sonic_rs::get(written, ["metadata", "resourceVersion"]) else { return };
        let Some(revision) = version.as_raw_str().trim_matches('"').parse().ok().and_then(Revision::new) else {
            return;
        };
        let mut seen = seen.0.subscribe();
        let reached = seen.wait_for(|seen| *seen >= Some(revision));
        if tokio::time::timeout(PATIENCE, reached).await.is_err() {
            tracing::warn!(%revision, "what was written has not taken effect yet");
        }
    }
}

/// The task that follows the definitions.
struct Keeper {
    registry: Weak<Registry>,
    definitions: Arc<Resource>,
    conversions: Arc<Resource>,
    /// The names that definitions have got, by group and name of the definition.
    names: HashMap<String, BTreeMap<String, TakenNames>>,
    installed: HashMap<String, Installed>,
    /// What is being said in the status of definitions where others are asked about that, by the names of these.
    told: HashMap<String, Telling>,
    /// The same of Conversions.
    judged: HashMap<String, Telling>,
    serves_versioning: bool,
    /// Whether that is ever to be so.
    shows_versioning: bool,
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
    /// The same of its Conversion.
    conversion: Option<[Option<Value>; 2]>,
    is_established: bool,
    is_terminating: bool,
}

impl Keeper {
    async fn run(mut self, mut definitions: Feed, mut conversions: Feed) {
        loop {
            tokio::select! {
                biased;
                news = definitions.next() => {
                    // Held for one step at a time: the registry is gone when its last user is.
                    let (Some(news), Some(registry)) = (news, self.registry.upgrade()) else { return };
                    self.follow_definition(&registry, news, definitions.told()).await;
                }
                news = conversions.next() => {
                    let (Some(news), Some(registry)) = (news, self.registry.upgrade()) else { return };
                    self.follow_conversion(&registry, news, conversions.told()).await;
                }
            }
        }
    }

    async fn follow_definition(&mut self, registry: &Arc<Registry>, news: News, told: Option<Revision>) {
        let seen = &registry.definitions.definitions;
        match news {
            News::Present(item) | News::Changed { new: item, .. } => {
                self.look_at(registry, &item).await;
                self.serve_versioning(registry);
                seen.reach_next(told.max(Some(item.revision())));
            }
            News::Complete { .. } => {
                self.forget_missing(registry).await;
                self.serve_versioning(registry);
                seen.reach(registry.cache_of(&self.definitions).reached());
            }
            News::Gone(item) => {
                let name = name_of(&self.definitions, &item).to_owned();
                self.forget(registry, &name).await;
                self.serve_versioning(registry);
                seen.reach_next(told);
            }
        }
    }

    /// A Conversion takes effect as a change of its definition does.
    async fn follow_conversion(&mut self, registry: &Arc<Registry>, news: News, told: Option<Revision>) {
        let seen = &registry.definitions.conversions;
        match news {
            News::Present(item) | News::Changed { new: item, .. } => {
                self.look_again(registry, name_of(&self.conversions, &item)).await;
                seen.reach_next(told.max(Some(item.revision())));
            }
            News::Complete { again } => {
                if again {
                    let known: Vec<String> = self.installed.keys().cloned().collect();
                    for name in known {
                        self.look_again(registry, &name).await;
                    }
                }
                seen.reach(registry.cache_of(&self.conversions).reached());
            }
            News::Gone(item) => {
                self.look_again(registry, name_of(&self.conversions, &item)).await;
                seen.reach_next(told);
            }
        }
    }

    /// Looks at a definition once more that was seen before. Those that come later are seen together with what belongs
    /// to them.
    async fn look_again(&mut self, registry: &Arc<Registry>, name: &str) {
        if !self.names.values().any(|names| names.contains_key(name)) {
            return;
        }
        if let Some(item) = registry.cache_of(&self.definitions).get(&self.definitions.key(None, name)) {
            self.look_at(registry, &item).await;
        }
    }

    /// Serves what there is to say about the versions of definitions as long as there are any.
    fn serve_versioning(&mut self, registry: &Registry) {
        let has_definitions = self.shows_versioning && self.names.values().any(|names| !names.is_empty());
        if has_definitions != self.serves_versioning {
            self.serves_versioning = has_definitions;
            for resource in versioning(registry) {
                let served = if has_definitions { vec![resource.clone()] } else { Vec::new() };
                registry.serve_custom(&resource.group, &resource.plural, served);
            }
        }
    }

    /// Brings everything in step with a definition.
    async fn look_at(&mut self, registry: &Arc<Registry>, item: &Item) {
        let name = name_of(&self.definitions, item).to_owned();
        let Ok(mut object) = at_leisure(item.bytes().len(), || Decoded::stored(item.bytes())) else { return };
        let group = group_of(&object).to_owned();
        let before = self.names.get(&group).and_then(|names| names.get(&name)).cloned();
        self.settle(registry, &name, &mut object).await;
        self.install(registry, &name, &object, item).await;
        let after = self.names.get(&group).and_then(|names| names.get(&name));
        if before.is_some_and(|before| after.is_none_or(|after| !after.include(&before))) {
            Box::pin(self.look_at_others(registry, &group, &name)).await;
        }
    }

    /// Looks once more at the other definitions of a group, of which some may have waited for names that are free now.
    async fn look_at_others(&mut self, registry: &Arc<Registry>, group: &str, name: &str) {
        let all = self.names.get(group).into_iter().flat_map(BTreeMap::keys);
        let others: Vec<String> = all.filter(|other| *other != name).cloned().collect();
        for other in others {
            let item = registry.cache_of(&self.definitions).get(&self.definitions.key(None, &other));
            if let Some(item) = item {
                self.look_at(registry, &item).await;
            }
        }
    }

    fn remember_names(&mut self, group: &str, name: &str, object: &Object) {
        let mut own = TakenNames::default();
        own.add(object);
        self.names.entry(group.to_owned()).or_default().insert(name.to_owned(), own);
    }

    fn taken(&self, registry: &Registry, group: &str) -> TakenNames {
        let mut taken = TakenNames::default();
        for resource in versioning(registry).into_iter().filter(|resource| resource.group == group) {
            taken.add(&as_definition(resource));
        }
        self.names.get(group).into_iter().flat_map(BTreeMap::values).for_each(|names| taken.extend(names));
        taken
    }

    /// Serves what a definition says, or no longer.
    async fn install(&mut self, registry: &Arc<Registry>, name: &str, object: &Object, item: &Item) {
        let bytes = item.bytes().len();
        let definition = at_leisure(bytes, || Definition::read(object));
        let conversion = registry.stored_conversion(name);
        let basis = Basis {
            conversion: conversion.as_ref().map(identity),
            uid: object.at(&["metadata", "uid"]).cloned(),
            generation: object.at(&["metadata", "generation"]).cloned(),
            accepted: object.at(&["status", "acceptedNames"]).cloned(),
            frozen: object.at(&["metadata", "annotations", FROZEN_VERSIONS]).cloned(),
            is_established: definition.is_established,
            is_terminating: definition.is_terminating,
        };
        if self.installed.get(name).is_some_and(|installed| installed.basis == basis) || !definition.is_established {
            if definition.is_terminating && !definition.is_established {
                self.let_go(registry, name).await;
            }
            return;
        }
        let rules = self.rules(registry, name, conversion.as_ref(), object).await;
        let compiled = at_leisure(bytes, || definition.resources(&registry.catalog, rules));
        let Some(resources) = compiled else { return };
        let prefix = resources.storage.prefix.clone();
        let uid = basis.uid.as_ref().and_then(Value::as_str).unwrap_or_default();
        if let Err(error) = registry.add_custom_cache(&resources.storage, uid).await {
            if !error.is_stop() {
                tracing::error!(definition = name, %error, "the objects of a definition cannot be read");
            }
            return;
        }
        let (group, plural) = (definition.group.clone(), definition.accepted.plural.clone());
        let is_being_cleaned = self.installed.get(name).is_some_and(|installed| installed.is_being_cleaned);
        let versions = definition.versions.iter().map(|version| version.name.as_str());
        let hidden: Vec<&str> = versions.filter(|_| resources.served.is_empty()).collect();
        registry.serve_custom(&group, &plural, resources.served);
        registry.hide_custom(&group, &plural, &hidden);
        registry.register_custom(&group).await;
        if definition.is_terminating && !is_being_cleaned {
            let (definitions, registry) = (self.definitions.clone(), self.registry.clone());
            tokio::spawn(cleanup::run(registry, definitions, name.to_owned(), resources.storage));
        }
        let is_being_cleaned = definition.is_terminating;
        self.installed.insert(name.to_owned(), Installed { basis, group, plural, prefix, is_being_cleaned });
    }

    /// The rules between the versions of a definition, as far as they keep the laws; says so in the status of their
    /// Conversion.
    async fn rules(
        &mut self,
        registry: &Arc<Registry>,
        name: &str,
        conversion: Option<&Object>,
        definition: &Object,
    ) -> Option<Arc<Conversion>> {
        let conversion = conversion?;
        let found = registry.conversions.recall(name, conversion, definition);
        if found.is_none()
            && let Some(rules) = off_the_workers(|| known(&registry.catalog, conversion, definition))
        {
            return Some(rules);
        }
        let judged = || judge(&registry.catalog, conversion, definition, &|| false);
        let verdict = found.or_else(|| off_the_workers(judged))?;
        self.tell(registry, conversion, &verdict, Some(definition)).await;
        verdict.rules()
    }

    /// Forgets a definition that is gone. Others may have waited for its names.
    async fn forget(&mut self, registry: &Arc<Registry>, name: &str) {
        self.told.remove(name);
        self.judged.remove(name);
        if let Some(conversion) = registry.stored_conversion(name) {
            self.tell(registry, &conversion, &Verdict::Waiting, None).await;
        }
        if let Some(Installed { group, plural, prefix, .. }) = self.installed.remove(name) {
            registry.serve_custom(&group, &plural, Vec::new());
            registry.hide_custom(&group, &plural, &[]);
            registry.register_custom(&group).await;
            registry.remove_custom_cache(&prefix);
            if let Err(error) = registry.forget_version_usage(&prefix).await
                && !error.is_stop()
            {
                tracing::warn!(definition = name, %error, "who asked for a definition that is gone is still written down");
            }
        }
        let Some(group) = self.names.iter().find(|(_, names)| names.contains_key(name)).map(|(group, _)| group.clone())
        else {
            return;
        };
        if let Some(names) = self.names.get_mut(&group) {
            names.remove(name);
        }
        self.look_at_others(registry, &group, name).await;
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

/// Which object it is, and how often its spec was changed.
fn identity(object: &Object) -> [Option<Value>; 2] {
    ["uid", "generation"].map(|field| object.at(&["metadata", field]).cloned())
}

/// The resources that are there as long as there are definitions.
fn versioning(registry: &Registry) -> [&Arc<Resource>; 2] {
    [registry.catalog.conversions(), registry.catalog.version_reports()]
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
