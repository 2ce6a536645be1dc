//! What is done about one object: deleted, released from owners that are gone, or let go after its dependents.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use revisor_cache::Item;
use revisor_catalog::Resource;
use revisor_object::{Object, Value};
use revisor_registry::{DeleteOptions, PatchKind, Place, Preconditions, RegistryError, WriteOptions};
use revisor_store::{Key, StoreError};

use super::GarbageCollector;
use super::graph::Target;
use super::home::{Home, Neighbour};
use super::owners::{Inquiry, Standing, inquire, standing};
use crate::controllers::FIELD_MANAGER;
use crate::elsewhere::{ActionElsewhere, RequestElsewhere};
use crate::metadata::{Duty, FOREGROUND, Metadata, ORPHAN, array_at, is_blocking, place, text_at};
use crate::uid::Uid;
use crate::work_queue::Outcome;

/// How often a write is tried anew because others changed the object in between.
const MAX_ATTEMPTS: usize = 5;

/// How many dependents of one owner are written at once.
const AT_ONCE: usize = 32;

/// Who may be asked for the sake of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// This server alone.
    Here,
    /// Others too, which may take a while.
    Everywhere,
}

impl Reach {
    /// Lets only those on who may ask others.
    pub(super) fn permits(self) -> Result<(), Failure> {
        match self {
            Reach::Here => Err(Failure::TooFar),
            Reach::Everywhere => Ok(()),
        }
    }
}

/// Why something was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// The object is gone.
    Gone,
    /// Others changed the object in between.
    Changed,
    /// Another server has to be asked, by those who may.
    TooFar,
    /// This server does not do it.
    Registry(RegistryError),
    /// Another server does not do it, or does not answer.
    Elsewhere(String),
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Failure {
        match error {
            RegistryError::NotFound { .. } => Failure::Gone,
            RegistryError::Conflict { .. } => Failure::Changed,
            error => Failure::Registry(error),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::from(RegistryError::from(error))
    }
}

/// An object as it is now.
struct Live {
    target: Target,
    seen: Seen,
    metadata: Metadata,
}

/// What an object was read from.
enum Seen {
    Here(Arc<Item>),
    Elsewhere(Bytes),
}

impl Live {
    fn bytes(&self) -> &[u8] {
        match &self.seen {
            Seen::Here(item) => item.bytes(),
            Seen::Elsewhere(bytes) => bytes,
        }
    }

    fn version(&self) -> String {
        match &self.seen {
            Seen::Here(item) => item.revision().to_string(),
            Seen::Elsewhere(bytes) => text_at(bytes, &["metadata", "resourceVersion"]),
        }
    }
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
    pub(super) async fn attempt(&self, uid: Uid, reach: Reach) -> Outcome {
        match self.act(&uid, reach).await {
            Ok(()) | Err(Failure::Gone) => Outcome::Done,
            Err(Failure::Changed) => Outcome::Retry,
            Err(Failure::TooFar) => {
                self.queue_elsewhere.add(uid);
                Outcome::Done
            }
            Err(Failure::Elsewhere(why)) => {
                tracing::debug!(%uid, why, "cannot collect an object that has to do with another server");
                Outcome::Retry
            }
            Err(Failure::Registry(error)) => {
                tracing::warn!(%uid, ?error, "cannot collect an object");
                Outcome::Retry
            }
        }
    }

    async fn act(&self, uid: &Uid, reach: Reach) -> Result<(), Failure> {
        let Some(live) = self.live(uid, reach).await? else { return Ok(()) };
        match live.metadata.duty() {
            Duty::Orphan => self.orphan(&live, reach).await,
            Duty::Foreground => self.delete_after_dependents(&live, reach).await,
            // There is no way back from a mark; its dependents are looked at when it is gone.
            Duty::None if live.metadata.is_marked => Ok(()),
            Duty::None => self.judge(&live, reach).await,
        }
    }

    /// The object with this identity, if it is still there.
    async fn live(&self, uid: &Uid, reach: Reach) -> Result<Option<Live>, Failure> {
        let Some(target) = self.graph().target(uid) else { return Ok(None) };
        let seen = match &*target.home {
            Home::Here(resource) => self.registry.cache_of(resource).get(target.key.as_str()).map(Seen::Here),
            Home::Elsewhere(_) => {
                let shown = self.ask(reach, &target.home, target.key.as_str(), ActionElsewhere::Show(None)).await;
                shown.map(|bytes| Some(Seen::Elsewhere(bytes))).or_else(gone_is_nothing)?
            }
        };
        let Some(seen) = seen else { return Ok(None) };
        let bytes = match &seen {
            Seen::Here(item) => item.bytes(),
            Seen::Elsewhere(bytes) => bytes,
        };
        let metadata = Metadata::read(bytes).filter(|metadata| metadata.uid == *uid);
        Ok(metadata.map(|metadata| Live { target, seen, metadata }))
    }

    /// Asks another server to do something with an object of its own.
    async fn ask(&self, reach: Reach, home: &Home, key: &str, action: ActionElsewhere<'_>) -> Result<Bytes, Failure> {
        reach.permits()?;
        let (Some(elsewhere), Home::Elsewhere(Neighbour { resource, .. })) = (&self.elsewhere, home) else {
            return Err(Failure::Gone);
        };
        let (namespace, name) = home.place(key);
        let request = RequestElsewhere { resource, namespace, name: Some(name), action, actor: &self.account };
        let answer = elsewhere.ask(request).await.map_err(Failure::Elsewhere)?;
        match answer.code {
            200..300 => Ok(answer.body),
            404 => Err(Failure::Gone),
            409 => Err(Failure::Changed),
            code => Err(Failure::Elsewhere(format!("{key}: {code} {}", text_at(&answer.body, &["message"])))),
        }
    }

    /// Deletes an object that no owner keeps, and takes owners that are gone out of one that another keeps.
    async fn judge(&self, live: &Live, reach: Reach) -> Result<(), Failure> {
        if live.metadata.owners.is_empty() {
            return Ok(());
        }
        // Where several servers write to one store, an owner may be newer than what this server has heard of.
        self.registry.cache().freshen().await?;
        let Some(owners) = self.classify(live, reach).await? else { return Ok(()) };
        let uid = &live.metadata.uid;
        if owners.solid > 0 {
            let released = [owners.dangling, owners.waiting].concat();
            // Also from those that wait: they would wait for an object that stays.
            return if released.is_empty() { Ok(()) } else { self.release(live, &released, reach).await };
        }
        let dependents: Vec<Uid> = self.graph().dependents_of(uid).cloned().collect();
        if !owners.waiting.is_empty() && !dependents.is_empty() {
            let is_circle = dependents.iter().any(|dependent| self.graph().is_waiting(dependent));
            if is_circle {
                // Its owner waits for it and it would wait for its owner.
                self.unblock(live, reach).await?;
                return match self.live(uid, reach).await? {
                    Some(live) => self.delete(&live, "Foreground", reach).await,
                    None => Ok(()),
                };
            }
            return self.delete(live, "Foreground", reach).await;
        }
        let policy = match &live.metadata {
            metadata if metadata.has_finalizer(ORPHAN) => "Orphan",
            metadata if metadata.has_finalizer(FOREGROUND) => "Foreground",
            _ => "Background",
        };
        self.delete(live, policy, reach).await
    }

    /// How the owners of an object stand; `None` if that cannot be said of all, because then nothing may be done.
    async fn classify(&self, live: &Live, reach: Reach) -> Result<Option<Owners>, Failure> {
        let (namespace, _) = live.target.home.place(live.target.key.as_str());
        let kinds = self.kinds();
        let mut owners = Owners::default();
        for owner in &live.metadata.owners {
            let standing = match inquire(&self.registry, &kinds, owner, namespace) {
                Inquiry::Known(standing) => standing,
                Inquiry::Elsewhere(home, key) => {
                    let shown = self.ask(reach, home, &key, ActionElsewhere::Show(None)).await;
                    let shown = shown.map(|bytes| Metadata::read(&bytes)).or_else(gone_is_nothing)?;
                    standing(owner, shown.as_ref())
                }
            };
            match standing {
                Standing::Solid => owners.solid += 1,
                Standing::Waiting => owners.waiting.push(owner.uid.clone()),
                Standing::Dangling => owners.dangling.push(owner.uid.clone()),
                Standing::Misplaced => {
                    tracing::debug!(key = %live.target.key, owner = owner.name, "an owner is in a namespace");
                    return Ok(None);
                }
                Standing::Unresolved => {
                    self.graph().set_unresolved(&live.metadata.uid);
                    // The kind may have become known between the look and the note.
                    if !Arc::ptr_eq(&kinds, &self.kinds()) {
                        self.queue.add(live.metadata.uid.clone());
                    }
                    return Ok(None);
                }
            }
        }
        Ok(Some(owners))
    }

    /// Takes an owner out of its dependents and then lets it go.
    async fn orphan(&self, owner: &Live, reach: Reach) -> Result<(), Failure> {
        // A dependent that was not known here would be deleted as soon as its owner is gone.
        self.caught_up(reach).await?;
        let uid = &owner.metadata.uid;
        let dependents: Vec<Uid> = self.graph().dependents_of(uid).cloned().collect();
        let mut releases = stream::iter(dependents)
            .map(async |dependent| match self.live(&dependent, reach).await? {
                Some(live) => self.release(&live, std::slice::from_ref(uid), reach).await,
                None => Ok(()),
            })
            .buffer_unordered(AT_ONCE);
        while let Some(released) = releases.next().await {
            match released {
                Ok(()) | Err(Failure::Gone) => {}
                Err(failure) => return Err(failure),
            }
        }
        self.remove_finalizer(uid, ORPHAN, reach).await
    }

    /// Lets an owner go if nothing of what it waits for is left, and else sees to that.
    async fn delete_after_dependents(&self, owner: &Live, reach: Reach) -> Result<(), Failure> {
        let uid = &owner.metadata.uid;
        let mut blocking = self.graph().blocking_dependents_of(uid);
        if blocking.is_empty() {
            self.caught_up(reach).await?;
            blocking = self.graph().blocking_dependents_of(uid);
            if blocking.is_empty() {
                return self.remove_finalizer(uid, FOREGROUND, reach).await;
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
    async fn delete(&self, live: &Live, policy: &str, reach: Reach) -> Result<(), Failure> {
        tracing::debug!(key = %live.target.key, policy, "no owner is left");
        let uid = &live.metadata.uid;
        match self.delete_at(live, policy, Some(live.version()), reach).await {
            Err(Failure::Changed) => match self.live(uid, reach).await? {
                // One that is written all the time would never be caught at one version.
                Some(now) if now.metadata.owners == live.metadata.owners => {
                    self.delete_at(live, policy, None, reach).await
                }
                _ => Err(Failure::Changed),
            },
            deleted => deleted,
        }
    }

    async fn delete_at(&self, live: &Live, policy: &str, version: Option<String>, reach: Reach) -> Result<(), Failure> {
        let Live { target: Target { home, key }, metadata, .. } = live;
        let uid = metadata.uid.to_string();
        match &**home {
            Home::Here(resource) => {
                let options = DeleteOptions {
                    propagation_policy: Some(policy.to_owned()),
                    preconditions: Preconditions { uid: Some(uid), resource_version: version },
                    ..DeleteOptions::default()
                };
                let place = place_in(resource, key);
                Ok(self.registry.delete_for(place, &options, self.account.options()).await.map(|_| ())?)
            }
            Home::Elsewhere(_) => {
                let mut preconditions: Object = [("uid", Value::from(uid))].into_iter().collect();
                if let Some(version) = version {
                    preconditions.insert("resourceVersion", version);
                }
                let members = [
                    ("kind", Value::from("DeleteOptions")),
                    ("apiVersion", Value::from("v1")),
                    ("propagationPolicy", Value::from(policy)),
                    ("preconditions", Value::from(preconditions)),
                ];
                let text = Value::Object(members.into_iter().collect()).to_json();
                self.ask(reach, home, key.as_str(), ActionElsewhere::Delete(&text)).await.map(|_| ())
            }
        }
    }

    /// Takes owners out of an object.
    async fn release(&self, live: &Live, owners: &[Uid], reach: Reach) -> Result<(), Failure> {
        let propose = |mut references: Vec<Value>| {
            references.retain(|reference| {
                let uid = reference.as_object().and_then(|reference| reference.str("uid")).unwrap_or_default();
                !owners.contains(&Uid::new(uid))
            });
            references
        };
        self.change(&live.metadata.uid, "ownerReferences", propose, reach).await
    }

    /// Lets no owner wait for an object any more.
    async fn unblock(&self, live: &Live, reach: Reach) -> Result<(), Failure> {
        let propose = |mut references: Vec<Value>| {
            for reference in references.iter_mut().filter_map(Value::as_object_mut) {
                if is_blocking(reference) {
                    reference.insert("blockOwnerDeletion", false);
                }
            }
            references
        };
        self.change(&live.metadata.uid, "ownerReferences", propose, reach).await
    }

    async fn remove_finalizer(&self, uid: &Uid, name: &str, reach: Reach) -> Result<(), Failure> {
        let propose = |mut finalizers: Vec<Value>| {
            finalizers.retain(|finalizer| finalizer.as_str() != Some(name));
            finalizers
        };
        self.change(uid, "finalizers", propose, reach).await
    }

    /// Changes a list in the metadata of an object, unless it is as it should be or the object is gone.
    async fn change(
        &self,
        uid: &Uid,
        list: &'static str,
        propose: impl Fn(Vec<Value>) -> Vec<Value>,
        reach: Reach,
    ) -> Result<(), Failure> {
        let mut attempt = 1;
        loop {
            let Some(live) = self.live(uid, reach).await? else { return Ok(()) };
            let known = array_at(live.bytes(), &["metadata", list]);
            let wanted = propose(known.clone());
            if wanted == known {
                return Ok(());
            }
            let wanted = if wanted.is_empty() { Value::Null } else { Value::from(wanted) };
            let version = Value::from(live.version());
            let metadata: Object = [("resourceVersion", version), (list, wanted)].into_iter().collect();
            let patch: Object = [("metadata", Value::from(metadata))].into_iter().collect();
            let text = Value::Object(patch).to_json();
            match self.patch(&live.target, &text, reach).await {
                Err(Failure::Changed) if attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                    self.registry.cache().freshen().await?;
                }
                done => return done,
            }
        }
    }

    async fn patch(&self, target: &Target, text: &str, reach: Reach) -> Result<(), Failure> {
        match &*target.home {
            Home::Here(resource) => {
                let options = WriteOptions { field_manager: FIELD_MANAGER, ..self.account.options() };
                let place = place_in(resource, &target.key);
                Ok(self.registry.patch(place, PatchKind::Merge, text.as_bytes(), options).await.map(|_| ())?)
            }
            Home::Elsewhere(_) => {
                let patch = ActionElsewhere::Patch(text);
                self.ask(reach, &target.home, target.key.as_str(), patch).await.map(|_| ())
            }
        }
    }
}

/// What is gone is not there; other failures are failures.
fn gone_is_nothing<T>(failure: Failure) -> Result<Option<T>, Failure> {
    match failure {
        Failure::Gone => Ok(None),
        failure => Err(failure),
    }
}

fn place_in<'a>(resource: &'a Arc<Resource>, key: &'a Key) -> Place<'a> {
    let (namespace, name) = place(resource, key.as_str());
    Place { resource, namespace, name: Some(name) }
}
