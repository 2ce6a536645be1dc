//! What is done about one object: deleted, released from owners that are gone, or let go after its dependents.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use revisor_cache::Item;
use revisor_object::{Object, Value};
use revisor_registry::{DeleteOptions, PatchKind, Place, Preconditions, RegistryError, WriteOptions};

use super::graph::Target;
use super::owners::{Standing, standing};
use super::{GarbageCollector, place};
use crate::controllers::FIELD_MANAGER;
use crate::metadata::{Duty, FOREGROUND, Metadata, ORPHAN, array_at, is_blocking};
use crate::uid::Uid;
use crate::work_queue::Outcome;

/// How often a write is tried anew because others changed the object in between.
const MAX_ATTEMPTS: usize = 5;

/// How many dependents of one owner are written at once.
const AT_ONCE: usize = 32;

/// An object as it is now.
struct Live {
    target: Target,
    item: Arc<Item>,
    metadata: Metadata,
}

/// The owners of an object, by how they stand.
#[derive(Default)]
struct Owners {
    solid: usize,
    waiting: Vec<Uid>,
    dangling: Vec<Uid>,
}

impl GarbageCollector {
    /// Does what there is to do about an object.
    pub(super) async fn attempt(&self, uid: Uid) -> Outcome {
        match self.act(&uid).await {
            Ok(()) | Err(RegistryError::NotFound { .. }) => Outcome::Done,
            Err(RegistryError::Conflict { .. }) => Outcome::Retry,
            Err(error) => {
                tracing::warn!(%uid, ?error, "cannot collect an object");
                Outcome::Retry
            }
        }
    }

    async fn act(&self, uid: &Uid) -> Result<(), RegistryError> {
        let Some(live) = self.live(uid) else { return Ok(()) };
        match live.metadata.duty() {
            Duty::Orphan => self.orphan(&live).await,
            Duty::Foreground => self.delete_after_dependents(&live).await,
            // There is no way back from a mark; its dependents are looked at when it is gone.
            Duty::None if live.metadata.is_marked => Ok(()),
            Duty::None => self.judge(&live).await,
        }
    }

    /// The object with this identity, if it is still there.
    fn live(&self, uid: &Uid) -> Option<Live> {
        let target = self.graph().target(uid)?;
        let item = self.registry.cache_of(&target.resource).get(target.key.as_str())?;
        let metadata = Metadata::read(item.bytes()).filter(|metadata| metadata.uid == *uid)?;
        Some(Live { target, item, metadata })
    }

    /// Deletes an object that no owner keeps, and takes owners that are gone out of one that another keeps.
    async fn judge(&self, live: &Live) -> Result<(), RegistryError> {
        if live.metadata.owners.is_empty() {
            return Ok(());
        }
        // Where several servers write to one store, an owner may be newer than what this server has heard of.
        self.registry.cache().freshen().await?;
        let Some(owners) = self.classify(live) else { return Ok(()) };
        let uid = &live.metadata.uid;
        if owners.solid > 0 {
            let released = [owners.dangling, owners.waiting].concat();
            // Also from those that wait: they would wait for an object that stays.
            return if released.is_empty() { Ok(()) } else { self.release(live, &released).await };
        }
        let dependents: Vec<Uid> = self.graph().dependents_of(uid).cloned().collect();
        if !owners.waiting.is_empty() && !dependents.is_empty() {
            let is_circle = dependents.iter().any(|dependent| self.graph().is_waiting(dependent));
            if is_circle {
                // Its owner waits for it and it would wait for its owner.
                self.unblock(live).await?;
                return match self.live(uid) {
                    Some(live) => self.delete(&live, "Foreground").await,
                    None => Ok(()),
                };
            }
            return self.delete(live, "Foreground").await;
        }
        let policy = match &live.metadata {
            metadata if metadata.has_finalizer(ORPHAN) => "Orphan",
            metadata if metadata.has_finalizer(FOREGROUND) => "Foreground",
            _ => "Background",
        };
        self.delete(live, policy).await
    }

    /// How the owners of an object stand; `None` if that cannot be said of all, because then nothing may be done.
    fn classify(&self, live: &Live) -> Option<Owners> {
        let (namespace, _) = place(&live.target.resource, live.target.key.as_str());
        let kinds = self.kinds();
        let mut owners = Owners::default();
        for owner in &live.metadata.owners {
            match standing(&self.registry, &kinds, owner, namespace) {
                Standing::Solid => owners.solid += 1,
                Standing::Waiting => owners.waiting.push(owner.uid.clone()),
                Standing::Dangling => owners.dangling.push(owner.uid.clone()),
                Standing::Misplaced => {
                    tracing::debug!(key = %live.target.key, owner = owner.name, "an owner is in a namespace");
                    return None;
                }
                Standing::Unresolved => {
                    self.graph().set_unresolved(&live.metadata.uid);
                    // The kind may have become known between the look and the note.
                    if !Arc::ptr_eq(&kinds, &self.kinds()) {
                        self.queue.add(live.metadata.uid.clone());
                    }
                    return None;
                }
            }
        }
        Some(owners)
    }

    /// Takes an owner out of its dependents and then lets it go.
    async fn orphan(&self, owner: &Live) -> Result<(), RegistryError> {
        // A dependent that was not known here would be deleted as soon as its owner is gone.
        self.caught_up().await;
        let uid = &owner.metadata.uid;
        let dependents: Vec<Uid> = self.graph().dependents_of(uid).cloned().collect();
        let mut releases = stream::iter(dependents)
            .map(async |dependent| match self.live(&dependent) {
                Some(live) => self.release(&live, std::slice::from_ref(uid)).await,
                None => Ok(()),
            })
            .buffer_unordered(AT_ONCE);
        while let Some(released) = releases.next().await {
            match released {
                Ok(()) | Err(RegistryError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.remove_finalizer(uid, ORPHAN).await
    }

    /// Lets an owner go if nothing of what it waits for is left, and else sees to that.
    async fn delete_after_dependents(&self, owner: &Live) -> Result<(), RegistryError> {
        let uid = &owner.metadata.uid;
        let mut blocking = self.graph().blocking_dependents_of(uid);
        if blocking.is_empty() {
            self.caught_up().await;
            blocking = self.graph().blocking_dependents_of(uid);
            if blocking.is_empty() {
                return self.remove_finalizer(uid, FOREGROUND).await;
            }
        }
        for dependent in blocking {
            if !self.graph().is_waiting(&dependent) {
                self.queue.add(dependent);
            }
        }
        Ok(())
    }

    /// Deletes an object that is as it was when that was decided, or at least has the same owners.
    async fn delete(&self, live: &Live, policy: &str) -> Result<(), RegistryError> {
        tracing::debug!(key = %live.target.key, policy, "no owner is left");
        let uid = &live.metadata.uid;
        let options = |version| DeleteOptions {
            propagation_policy: Some(policy.to_owned()),
            preconditions: Preconditions { uid: Some(uid.to_string()), resource_version: version },
            ..DeleteOptions::default()
        };
        let place = place_of(&live.target);
        let seen = live.item.revision().to_string();
        match self.registry.delete_for(place, &options(Some(seen)), self.account.options()).await {
            Err(RegistryError::Conflict { .. })
                if self.live(uid).is_some_and(|now| now.metadata.owners == live.metadata.owners) =>
            {
                // One that is written all the time would never be caught at one version.
                self.registry.delete_for(place, &options(None), self.account.options()).await.map(|_| ())
            }
            deleted => deleted.map(|_| ()),
        }
    }

    /// Takes owners out of an object.
    async fn release(&self, live: &Live, owners: &[Uid]) -> Result<(), RegistryError> {
        self.change(&live.metadata.uid, "ownerReferences", |mut references| {
            references.retain(|reference| {
                let uid = reference.as_object().and_then(|reference| reference.str("uid")).unwrap_or_default();
                !owners.contains(&Uid::new(uid))
            });
            references
        })
        .await
    }

    /// Lets no owner wait for an object any more.
    async fn unblock(&self, live: &Live) -> Result<(), RegistryError> {
        self.change(&live.metadata.uid, "ownerReferences", |mut references| {
            for reference in references.iter_mut().filter_map(Value::as_object_mut) {
                if is_blocking(reference) {
                    reference.insert("blockOwnerDeletion", false);
                }
            }
            references
        })
        .await
    }

    async fn remove_finalizer(&self, uid: &Uid, name: &str) -> Result<(), RegistryError> {
        self.change(uid, "finalizers", |mut finalizers| {
            finalizers.retain(|finalizer| finalizer.as_str() != Some(name));
            finalizers
        })
        .await
    }

    /// Changes a list in the metadata of an object, unless it is as it should be or the object is gone.
    async fn change(
        &self,
        uid: &Uid,
        list: &'static str,
        propose: impl Fn(Vec<Value>) -> Vec<Value>,
    ) -> Result<(), RegistryError> {
        let mut attempt = 1;
        loop {
            let Some(Live { target, item, .. }) = self.live(uid) else { return Ok(()) };
            let known = array_at(item.bytes(), &["metadata", list]);
            let wanted = propose(known.clone());
            if wanted == known {
                return Ok(());
            }
            let wanted = if wanted.is_empty() { Value::Null } else { Value::from(wanted) };
            let version = Value::from(item.revision().to_string());
            let metadata: Object = [("resourceVersion", version), (list, wanted)].into_iter().collect();
            let patch: Object = [("metadata", Value::from(metadata))].into_iter().collect();
            let text = Value::Object(patch).to_json();
            let options = WriteOptions { field_manager: FIELD_MANAGER, ..self.account.options() };
            match self.registry.patch(place_of(&target), PatchKind::Merge, text.as_bytes(), options).await {
                Err(RegistryError::Conflict { .. }) if attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                    self.registry.cache().freshen().await?;
                }
                done => return done.map(|_| ()),
            }
        }
    }
}

fn place_of(target: &Target) -> Place<'_> {
    let (namespace, name) = place(&target.resource, target.key.as_str());
    Place { resource: &target.resource, namespace, name: Some(name) }
}
