//! The end of a definition: its objects are deleted, and when none is left, the definition may go, and its Conversion
//! with it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use revisor_cache::{Feed, ResourceCache};
use revisor_catalog::{CLEANUP_FINALIZER, Condition, Resource, TERMINATING};
use revisor_object::Value;

use super::status::is_end;
use crate::{DeleteOptions, ListRequest, ListVersions, Place, Registry, RegistryError, Selection, WriteOptions};

/// How long it takes at least until objects that could not be deleted are tried again, and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Deletes the objects of a definition that is being deleted, waits until they are gone, and lets the definition go.
pub(super) async fn run(registry: Weak<Registry>, definitions: Arc<Resource>, name: String, objects: Arc<Resource>) {
    let mut pause = RETRY.0;
    loop {
        let Some(strong) = registry.upgrade() else { return };
        let in_progress = condition("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
        match report(&strong, &definitions, &name, &in_progress).await {
            Ok(()) => {}
            Err(error) if is_end(&error) => return,
            // As in the original, nothing is deleted before it is said.
            Err(error) if error.is_refusal() => {
                tracing::debug!(definition = name, %error, "the end of a definition is held up");
                drop(strong);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY.1);
                continue;
            }
            Err(error) => tracing::debug!(definition = name, %error, "the end of a definition was not told"),
        }
        let cache = strong.cache_of(&objects);
        match delete_all(&strong, &objects).await {
            Ok(()) => {
                drop(strong);
                until_empty(&cache, pause).await;
            }
            Err(error) => {
                let message = format!("could not issue all deletes: {error}");
                let failed = condition("True", "InstanceDeletionFailed", &message);
                if let Err(error) = report(&strong, &definitions, &name, &failed).await {
                    tracing::debug!(definition = name, %error, "what holds a definition up was not told");
                }
                drop(strong);
                tokio::time::sleep(pause).await;
            }
        }
        let Some(strong) = registry.upgrade() else { return };
        if cache.is_empty() {
            let completed = condition("False", "InstanceDeletionCompleted", "removed all instances");
            match end(&strong, &definitions, &name, &completed).await {
                Ok(()) => return,
                Err(error) if is_end(&error) => return,
                Err(error) => tracing::warn!(definition = name, %error, "a definition could not be let go"),
            }
            drop(strong);
            tokio::time::sleep(pause).await;
        }
        pause = (pause * 2).min(RETRY.1);
    }
}

/// Lets a definition go that was never served: it has no objects.
pub(super) async fn let_go(
    registry: &Arc<Registry>,
    definitions: &Arc<Resource>,
    name: &str,
) -> Result<(), RegistryError> {
    let never = condition("False", "NeverEstablished", "resource was never established");
    match end(registry, definitions, name, &never).await {
        Err(error) if is_end(&error) => Ok(()),
        ended => ended,
    }
}

/// Says that nothing holds a definition any more, and lets it go.
async fn end(
    registry: &Registry,
    definitions: &Arc<Resource>,
    name: &str,
    condition: &Condition,
) -> Result<(), RegistryError> {
    report(registry, definitions, name, condition).await?;
    delete_conversion(registry, name).await;
    remove_finalizer(registry, definitions, name).await
}

fn condition(status: &'static str, reason: &str, message: &str) -> Condition {
    Condition::new(TERMINATING, status, reason, message)
}

async fn delete_all(registry: &Registry, objects: &Arc<Resource>) -> Result<(), RegistryError> {
    let everything = Selection::parse(objects, "", "")?;
    let versions = ListVersions::default();
    let request = ListRequest { resource: objects, namespace: None, selection: &everything, versions, limit: 0 };
    registry.delete_collection(request, &DeleteOptions::default(), WriteOptions::default()).await.map(drop)
}

/// Waits until no object is left, but not for ever: somebody may make one while others are deleted.
async fn until_empty(cache: &Arc<ResourceCache>, pause: Duration) {
    let mut feed = Feed::open(cache, None);
    let emptied = async {
        while !cache.is_empty() {
            if feed.next().await.is_none() {
                return;
            }
        }
    };
    // What holds the rest back is told by their finalizers; to ask for their deletion again does no harm.
    let _ = tokio::time::timeout(pause, emptied).await;
}

/// Says in the status of a definition how far its end is.
async fn report(
    registry: &Registry,
    definitions: &Arc<Resource>,
    name: &str,
    condition: &Condition,
) -> Result<(), RegistryError> {
    let place = Place { resource: definitions, namespace: None, name: Some(name) };
    let now = registry.now();
    let told = registry.tell_as_server(place, registry.own.options(), |definition| {
        if !condition.is_in(definition) {
            condition.put(definition, &now);
        }
        Ok(())
    });
    told.await
}

/// Rules between the versions of what is no more are of no use, and would be in the way of another definition by that
/// name.
async fn delete_conversion(registry: &Registry, name: &str) {
    let conversions = registry.catalog.conversions();
    let place = Place { resource: conversions, namespace: None, name: Some(name) };
    match registry.delete_stored(place, place.resource, &DeleteOptions::default(), None).await {
        Ok(_) | Err(RegistryError::NotFound { .. }) => {}
        Err(error) if error.is_stop() => {}
        Err(error) => tracing::warn!(conversion = name, %error, "a Conversion stays behind its definition"),
    }
}

async fn remove_finalizer(registry: &Registry, definitions: &Arc<Resource>, name: &str) -> Result<(), RegistryError> {
    let place = Place { resource: definitions, namespace: None, name: Some(name) };
    let options = WriteOptions { subresource: Some("status"), ..registry.own.options() };
    let changed = registry.change_as_server(place, options, |definition| {
        let metadata = definition.object_mut("metadata");
        let held = metadata.array("finalizers").iter();
        let rest: Vec<Value> = held.filter(|name| name.as_str() != Some(CLEANUP_FINALIZER)).cloned().collect();
        metadata.set("finalizers", Some(rest).filter(|rest| !rest.is_empty()).map(Value::from));
        Ok(())
    });
    changed.await
}
