//! [`Content`]: what is left in a namespace after everything in it was deleted that can be.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use revisor_catalog::{Feature, Resource, Verb};
use revisor_object::Value;
use revisor_registry::{DeleteOptions, Place, RegistryError};
use revisor_store::Key;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::conditions::DISCOVERY_PROBLEM;
use super::{NamespaceController, Rest};
use crate::controllers::stored_resources;
use crate::metadata::{Duty, Metadata, place, text_at};

/// How many objects are looked at before the state is taken anew: so many keys, and not all of a namespace, are held.
const PAGE: usize = 512;

/// How many objects are deleted at once: so many deletions share one sync of the disk.
const AT_ONCE: usize = 64;

/// How many seconds an object with finalizers is taken to need, as the original has it.
const FINALIZER_SECONDS: i64 = 15;

/// What is left.
#[derive(Default)]
pub(super) struct Content {
    /// How many objects there are of each resource: `configmaps.` or `leases.coordination.k8s.io`.
    pub(super) remaining: BTreeMap<String, usize>,
    /// How many objects each finalizer holds back.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// What could not be deleted, and why.
    pub(super) errors: Vec<String>,
    /// Groups and versions of other servers of which nobody knows what they have.
    pub(super) undiscovered: Vec<String>,
    /// In how many seconds the rest should be gone.
    pub(super) estimate: i64,
    /// The collections that are not empty.
    pub(super) rests: Vec<Rest>,
}

impl Content {
    /// Whether nothing is left.
    pub(super) fn is_gone(&self) -> bool {
        self.errors.is_empty() && self.remaining.is_empty() && self.undiscovered.is_empty()
    }
}

impl NamespaceController {
    /// Deletes everything in a namespace; where that is ordered, pods first: what they may still need stays until they
    /// are gone.
    pub(super) async fn delete_content(&self, namespace: &str, deleted_at: &str) -> Content {
        let resources = self.resources.borrow().clone();
        let mut resources = stored_resources(&resources, &[Verb::Delete, Verb::List]);
        resources.retain(|resource| resource.namespaced);
        let is_ordered = self.registry.built_in().features().has(Feature::OrderedNamespaceDeletion);
        resources.sort_by_key(|resource| !is_pods(resource));
        let mut content = Content::default();
        for resource in &resources {
            self.delete_collection(resource, namespace, deleted_at, &mut content).await;
            if is_ordered && is_pods(resource) && !content.remaining.is_empty() {
                return content;
            }
        }
        self.delete_elsewhere(namespace, &mut content).await;
        content
    }

    /// Deletes what other servers keep. As in the original, a namespace stays for as long as nobody knows what they have.
    async fn delete_elsewhere(&self, namespace: &str, content: &mut Content) {
        let Some(elsewhere) = &self.elsewhere else { return };
        let left = elsewhere.empty(namespace).await;
        content.remaining.extend(left.remaining);
        content.errors.extend(left.errors);
        if !left.undiscovered.is_empty() {
            let told: Vec<String> = left
                .undiscovered
                .iter()
                .map(|version| format!("{version}: stale GroupVersion discovery: {version}"))
                .collect();
            let problem = format!("{DISCOVERY_PROBLEM}: {}", told.join(", "));
            content.undiscovered = left.undiscovered;
            content.errors.push(problem);
        }
    }

    async fn delete_collection(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        deleted_at: &str,
        content: &mut Content,
    ) {
        let collection = resource.collection(Some(namespace));
        let estimate = if is_pods(resource) { self.grace_left(resource, &collection, deleted_at) } else { 0 };
        if let Err(error) = self.delete_each(resource, &collection).await {
            content.errors.push(error.to_string());
            content.estimate = content.estimate.max(estimate);
        }
        let cache = self.registry.cache_of(resource);
        let snapshot = cache.snapshot();
        let (mut count, mut held) = (0, false);
        for item in snapshot.range(&collection, None) {
            count += 1;
            for finalizer in Metadata::read(item.bytes()).map(|metadata| metadata.finalizers).unwrap_or_default() {
                held = true;
                *content.finalizers.entry(finalizer).or_default() += 1;
            }
        }
        if count == 0 {
            return;
        }
        content.remaining.insert(format!("{}.{}", resource.plural, resource.group), count);
        content.rests.push(Rest { cache: cache.clone(), collection, revision: snapshot.revision() });
        let expected = match (estimate, held) {
            (0, true) => FINALIZER_SECONDS,
            (estimate, _) => estimate,
        };
        content.estimate = content.estimate.max(expected);
        if expected == 0 {
            let (group, version, plural) = (&resource.group, &resource.version, &resource.plural);
            content.errors.push(format!(
                "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, Resource={plural}"
            ));
        }
    }

    /// Deletes every object of a collection, some at a time. The first error is answered when all were tried.
    async fn delete_each(&self, resource: &Arc<Resource>, collection: &str) -> Result<(), RegistryError> {
        // Nothing may be kept for dependents' sake, and nothing be orphaned: all of it goes.
        let options = DeleteOptions { propagation_policy: Some("Background".to_owned()), ..DeleteOptions::default() };
        let mut after: Option<Key> = None;
        let mut failed = Ok(());
        loop {
            let snapshot = self.registry.cache_of(resource).snapshot();
            let mut page = Vec::new();
            let mut looked_at = 0;
            for item in snapshot.range(collection, after.as_ref().map(Key::as_str)).take(PAGE) {
                looked_at += 1;
                after = Some(item.key().clone());
                // One that finalizers hold back was marked before; to mark it again would change nothing. A pod is asked
                // again: one that has ended in the meantime goes at once.
                let is_waiting = !is_pods(resource)
                    && Metadata::read(item.bytes()).is_some_and(|metadata| {
                        metadata.is_marked && metadata.duty() == Duty::None && !metadata.finalizers.is_empty()
                    });
                if !is_waiting {
                    page.push(item.key().clone());
                }
            }
            drop(snapshot);
            let mut deletions = stream::iter(page)
                .map(async |key| {
                    let (namespace, name) = place(resource, key.as_str());
                    let target = Place { resource, namespace, name: Some(name) };
                    let write = self.account.options();
                    // As in the original, which deletes collections where they can be deleted.
                    if resource.verbs.contains(&Verb::DeleteCollection) {
                        self.registry.delete_of_collection(target, &options, write).await
                    } else {
                        self.registry.delete_for(target, &options, write).await
                    }
                })
                .buffer_unordered(AT_ONCE);
            while let Some(deleted) = deletions.next().await {
                match deleted {
                    Ok(_) | Err(RegistryError::NotFound { .. }) => {}
                    Err(error) => failed = failed.and(Err(error)),
                }
            }
            if looked_at < PAGE {
                return failed;
            }
        }
    }

    /// How many seconds the slowest pod may take; none if they have passed already since the namespace was marked.
    fn grace_left(&self, pods: &Arc<Resource>, collection: &str, deleted_at: &str) -> i64 {
        let snapshot = self.registry.cache_of(pods).snapshot();
        let alive = snapshot
            .range(collection, None)
            .filter(|item| !matches!(&*text_at(item.bytes(), &["status", "phase"]), "Succeeded" | "Failed"));
        let grace = alive.map(|item| seconds_at(item.bytes(), &["spec", "terminationGracePeriodSeconds"])).max();
        let grace = grace.unwrap_or_default().max(0);
        let marked = OffsetDateTime::parse(deleted_at, &Rfc3339).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        if (self.clock.now() - marked).whole_seconds() >= grace { 0 } else { grace }
    }
}

fn is_pods(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "pods"
}

fn seconds_at(bytes: &[u8], path: &[&str]) -> i64 {
    let found = sonic_rs::get(bytes, path).ok();
    let value = found.and_then(|value| revisor_object::parse_json(value.as_raw_str().as_bytes()).ok());
    value.and_then(|parsed| Value::as_i64(&parsed.value)).unwrap_or_default()
}
