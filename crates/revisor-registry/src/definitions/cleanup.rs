//! The end of a definition: its objects are deleted, and when none is left, the definition may go, and its Conversion
//! with it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use revisor_cache::{Feed, ResourceCache};
use revisor_catalog::{CLEANUP_FINALIZER, Condition, Resource, TERMINATING};
use revisor_object::{Object, Value, Warnings};

use crate::write::Proposal;
use crate::{DeleteOptions, ListRequest, ListVersions, Place, Registry, RegistryError, Selection, WriteOptions};

/// How long it takes at least until objects that could not be deleted are tried again, and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Deletes the objects of a definition that is being deleted, waits until they are gone, and lets the definition go.
pub(super) async fn run(registry: Weak<Registry>, definitions: Arc<Resource>, name: String, objects: Arc<Resource>) {
    let mut pause = RETRY.0;
    loop {
        let Some(strong) = registry.upgrade() else { return };
        let in_progress = condition("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
        if !report(&strong, &definitions, &name, &in_progress).await {
            return;
        }
        let cache = strong.cache_of(&objects);
        match delete_all(&strong, &objects).await {
            Ok(()) => {
                drop(strong);
                until_empty(&cache, pause).await;
            }
            Err(error) => {
                let message = format!("could not issue all deletes: {error}");
                report(&strong, &definitions, &name, &condition("True", "InstanceDeletionFailed", &message)).await;
                drop(strong);
                tokio::time::sleep(pause).await;
            }
        }
        let Some(strong) = registry.upgrade() else { return };
        if cache.is_empty() {
            report(
                &strong,
                &definitions,
                &name,
                &condition("False", "InstanceDeletionCompleted", "removed all instances"),
            )
            .await;
            delete_conversion(&strong, &name).await;
            remove_finalizer(&strong, &definitions, &name).await;
            return;
        }
        pause = (pause * 2).min(RETRY.1);
    }
}

/// Lets a definition go that was never served: it has no objects.
pub(super) async fn let_go(registry: &Arc<Registry>, definitions: &Arc<Resource>, name: &str) {
    let never = condition("False", "NeverEstablished", "resource was never established");
    if report(registry, definitions, name, &never).await {
        delete_conversion(registry, name).await;
        remove_finalizer(registry, definitions, name).await;
    }
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

/// Says in the status of a definition how far its end is; false if it is gone.
async fn report(registry: &Registry, definitions: &Arc<Resource>, name: &str, condition: &Condition) -> bool {
    let now = registry.now();
    let written = registry
        .overwrite(definitions, None, name, false, |_, definition| {
            if !condition.is_in(definition) {
                let old = definition.clone();
                condition.put(definition, &now);
                registry.record_status(definitions, &old, definition, &now);
            }
            Ok(())
        })
        .await;
    !matches!(written, Err(RegistryError::NotFound { .. }))
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

async fn remove_finalizer(registry: &Registry, definitions: &Arc<Resource>, name: &str) {
    let place = Place { resource: definitions, namespace: None, name: Some(name) };
    let options = WriteOptions { subresource: Some("status"), ..WriteOptions::default() };
    let mut without = |current: &Object| {
        let mut object = current.clone();
        let metadata = object.object_mut("metadata");
        let held = metadata.array("finalizers").iter();
        let rest: Vec<Value> = held.filter(|name| name.as_str() != Some(CLEANUP_FINALIZER)).cloned().collect();
        metadata.set("finalizers", Some(rest).filter(|rest| !rest.is_empty()).map(Value::from));
        Ok(Proposal { object, warnings: Warnings::default(), is_conditional: false, managed: None })
    };
    if let Err(error) = registry.change_stored(place, options, &mut without).await
        && !error.is_stop()
    {
        tracing::warn!(definition = name, %error, "a definition could not be let go");
    }
}
