//! Updates, and the loop that every change of a stored object goes through. New objects are in [`create`](self::create),
//! what an object says of its own place in [`address`](self::address).

mod address;
mod attempts;
mod create;
mod options;
mod owners;
mod unstored;

use std::sync::Arc;

use bytes::Bytes;
use revisor_catalog::{
    Beneath, Circumstances, Custom, MetadataChecks, Part, Resource, validate_known_finalizers, validate_metadata,
    validate_metadata_change, validate_metadata_update,
};
use revisor_merge::ManagedFields;
use revisor_object::names::NameRule;
use revisor_object::{FieldErrors, Object, Value, Warnings};
use revisor_store::{BoxFuture, Change, Draft, Entry, Expect, StoreError, Write};

pub(crate) use self::address::{check_address, match_namespace, named_version, other_uid, unlike_stored};
pub use self::options::{Place, WithinWrite, WriteOptions};
use self::owners::{drop_repeated_owners, repeated_owners};
pub use self::unstored::UnstoredWrite;
use crate::actor::GARBAGE_COLLECTOR;
use crate::admission::Attributes;
use crate::allocation::{Outcome, Reservation};
use crate::conversion::Current;
use crate::definitions::is_definitions;
use crate::present::named_as;
use crate::scale::scale_of;
use crate::{Decoded, Registry, RegistryError, managed_fields};

/// What every conflict over a resource version says.
const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";

/// A write that was done.
#[derive(Debug, Clone)]
pub struct Saved {
    /// The encoded object as it is now.
    pub bytes: Bytes,
    /// Whether it was not there before.
    pub created: bool,
    /// What the client should be told.
    pub warnings: Warnings,
    /// The encoded object in the version that was written through, where that is known already.
    pub(crate) shown: Option<Bytes>,
}

impl Saved {
    /// A write of which nothing else is shown than these bytes.
    pub fn new(bytes: Bytes, created: bool, warnings: Warnings) -> Saved {
        Saved { bytes, created, warnings, shown: None }
    }
}

/// What an update makes of what is there.
pub(crate) struct Proposal {
    pub(crate) object: Object,
    pub(crate) warnings: Warnings,
    /// Whether the writer insists on the version that it names.
    pub(crate) is_conditional: bool,
    /// Who manages what, where that is known already.
    pub(crate) managed: Option<ManagedFields>,
}

/// Says what should be there instead of an object.
pub(crate) trait Propose: FnMut(&Object) -> Result<Proposal, RegistryError> + Send {}

impl<F: FnMut(&Object) -> Result<Proposal, RegistryError> + Send> Propose for F {}

impl Registry {
    /// How much a write is about, in bytes: what is sent, what is there already, and what a schema makes of them.
    pub fn weight(&self, place: Place<'_>, sent: usize) -> usize {
        let Place { resource, namespace, name } = place;
        let key = name.map(|name| resource.key(namespace, name));
        let stored = key.and_then(|key| self.cache_of(resource).get(&key)).map_or(0, |item| item.bytes().len());
        let more = resource.custom().map_or_else(|| self.weight_of_rules(resource, name), Custom::weight);
        // Who changes a definition is told what that does to its objects.
        let objects = name.filter(|_| is_definitions(resource)).map_or(0, |name| self.weight_of_objects(name));
        sent.saturating_add(stored).saturating_add(more).saturating_add(objects)
    }

    /// The time as metadata shows it.
    pub(crate) fn now(&self) -> String {
        self.environment.timestamp()
    }

    /// Replaces an object, or makes it where its kind allows that.
    ///
    /// Boxed, as every way in to a write: the future of a write is tens of kilobytes of code, which the compiler would
    /// copy to whoever awaits it, and of room, which would be moved with theirs.
    pub fn update<'a>(
        &'a self,
        place: Place<'a>,
        decoded: Decoded,
        options: WriteOptions<'a>,
    ) -> BoxFuture<'a, Result<Saved, RegistryError>> {
        Box::pin(self.update_unboxed(place, decoded, options))
    }

    async fn update_unboxed(
        &self,
        place: Place<'_>,
        decoded: Decoded,
        options: WriteOptions<'_>,
    ) -> Result<Saved, RegistryError> {
        let newest = self.newest(place.resource);
        let place = Place { resource: &newest, ..place };
        let Place { resource, namespace, name } = place;
        refuse_frozen(place, options)?;
        if scale_of(resource, options.subresource).is_some() {
            return self.update_scale(place, decoded, options).await;
        }
        let name = name.unwrap_or_default();
        let Decoded { mut object, mut warnings } = decoded;
        let metadata = object.object_mut("metadata");
        warnings.extend(repeated_owners(&drop_repeated_owners(metadata), false));
        options.keep_sent(&warnings);
        match_namespace(resource, metadata, namespace)?;
        check_address(metadata, name)?;
        let uid = metadata.str("uid").unwrap_or_default().to_owned();
        let named = named_version(metadata)?.map(str::to_owned);
        let is_conditional = named.is_some();
        resource.to_stored(&mut object);
        let mut sent = Some(object);
        let proposed = self
            .change(place, options, |current| {
                if let Some(why) = other_uid(&uid, current) {
                    return Err(RegistryError::conflict(resource, name, unlike_stored(place, options.dry_run, &why)));
                }
                let version = current.object("metadata").and_then(|metadata| metadata.str("resourceVersion"));
                if version.is_some() && named.is_some() && version != named.as_deref() {
                    return Err(RegistryError::conflict(resource, name, MODIFIED));
                }
                // Who insists on a version is asked once: if somebody else was faster, it is the wrong one.
                let object = if is_conditional { sent.take() } else { sent.clone() };
                let object = object.ok_or_else(|| RegistryError::conflict(resource, name, MODIFIED))?;
                Ok(Proposal { object, warnings: warnings.clone(), is_conditional, managed: None })
            })
            .await;
        match (proposed, sent) {
            (Err(RegistryError::NotFound { .. }), Some(mut object))
                if resource.rules.create_on_update && options.subresource.is_none() =>
            {
                // Who names an identity means an object that was there, and it is not.
                if let Some(why) = other_uid(&uid, &Object::new()) {
                    return Err(RegistryError::conflict(resource, name, unlike_stored(place, options.dry_run, &why)));
                }
                object.object_mut("metadata").remove("resourceVersion");
                resource.to_shown(&mut object);
                self.create(place, Decoded { object, warnings }, options).await
            }
            (done, _) => done,
        }
    }

    /// Reads an object, lets `propose` say what should be there instead, and stores that, again and again until nobody
    /// else was faster. Both objects are in the shape in which they are stored.
    pub(crate) fn change<'a>(
        &'a self,
        place: Place<'a>,
        options: WriteOptions<'a>,
        propose: impl Propose + 'a,
    ) -> BoxFuture<'a, Result<Saved, RegistryError>> {
        Box::pin(self.change_by(place, options, Box::new(propose)))
    }

    async fn change_by(
        &self,
        place: Place<'_>,
        options: WriteOptions<'_>,
        mut propose: Box<dyn Propose + '_>,
    ) -> Result<Saved, RegistryError> {
        let changed = self.change_stored(place, options, &mut *propose).await;
        let mut saved = changed.map_err(|error| named_as(place.resource, error))?;
        self.await_definition(place.resource, &saved.bytes).await;
        self.compile_policies(place.resource);
        self.show_saved(place.resource, &mut saved).await?;
        Ok(saved)
    }

    /// The same without waiting for what the write brings about: who brings it about would wait for itself.
    pub(crate) async fn change_stored(
        &self,
        place: Place<'_>,
        options: WriteOptions<'_>,
        propose: &mut dyn Propose,
    ) -> Result<Saved, RegistryError> {
        let resource = place.resource.working();
        let mut attempts = self.attempts_from_cache(resource, place.namespace, place.name.unwrap_or_default()).await?;
        loop {
            let current = attempts.current()?;
            let answer = match self.change_once(place, &current, options, propose).await {
                Ok(Attempt::Saved(saved) | Attempt::Removed(saved)) => return Ok(saved),
                Ok(Attempt::Overtaken(newest)) => {
                    attempts.go_on_with(newest);
                    continue;
                }
                Ok(Attempt::Unchanged(saved)) => Ok(saved),
                // It may have happened: to look again would be to meet oneself.
                Ok(Attempt::Lost(error)) => return Err(error),
                Err(error) => Err(error),
            };
            // A write has shown whether it began with the newest state. Whatever else is answered must be true of it
            // too (upstream: `origStateIsCurrent` in `GuaranteedUpdate`).
            if self.is_current(&mut attempts).await? {
                return answer;
            }
        }
    }

    /// Changes an object once, from this state.
    async fn change_once(
        &self,
        place: Place<'_>,
        current: &Entry,
        options: WriteOptions<'_>,
        propose: &mut dyn Propose,
    ) -> Result<Attempt, RegistryError> {
        let Place { resource: shown, namespace, name } = place;
        let resource = shown.working();
        let name = name.unwrap_or_default();
        let Current { object: old, beneath } = self.read_stored(resource, current).await?;
        let Proposal { mut object, warnings, is_conditional, managed } = propose(&old)?;
        let metadata = object.object_mut("metadata");
        let version = current.revision().to_string();
        let named = metadata.str("resourceVersion").unwrap_or_default();
        if matches!(named, "" | "0") {
            if !resource.rules.unconditional_update {
                return Err(RegistryError::VersionRequired { resource: resource.clone(), name: name.to_owned() });
            }
            metadata.remove("resourceVersion");
        } else if named != version {
            return Err(RegistryError::conflict(resource, name, MODIFIED));
        }
        let attributes = options.attributes(shown, namespace, name, Some(&old));
        let attributes = Attributes { stored: Some(current.bytes()), ..attributes };
        // Where it is known already who manages what, nobody sent it.
        let begun = managed.is_none().then(|| managed_fields::begin(resource, &mut object, &old, options));
        managed_fields::take_sent(&mut object);
        restore_metadata(&mut object, &old);
        resource.default(&mut object);
        let now = self.now();
        // Where nobody was recorded, recording begins with the next apply.
        let managed = match begun {
            Some(begun) if !begun.is_empty() => self.track(shown, begun, [&old, &object], options, &now).await,
            _ => managed.unwrap_or_default(),
        };
        resource.forget_empty(&mut object);
        object.object_mut("metadata").set("managedFields", managed.into_value());
        if scale_of(shown, options.subresource).is_some() {
            object.object_mut("metadata").insert("resourceVersion", version.clone());
            self.admit_scale(&attributes, &mut object).await?;
        } else if self.admit_keeping_managers(&attributes, &mut object).await? {
            restore_metadata(&mut object, &old);
            // Others may have said anything about where and what the object is.
            let metadata = object.object_mut("metadata");
            match_namespace(resource, metadata, namespace)?;
            let named = metadata.str("resourceVersion").unwrap_or_default();
            if !matches!(named, "" | "0") && named != version {
                return Err(RegistryError::conflict(resource, name, MODIFIED));
            }
        }
        // As in the original, who does not insist on a version shows none to mutating admission.
        object.object_mut("metadata").insert("resourceVersion", version);
        if let Some(told) = repeated_owners(&drop_repeated_owners(object.object_mut("metadata")), true) {
            attributes.warn(told);
        }
        // What is stored was written and read again. Only as if it had been, too, the new object can be compared.
        resource.complete(&mut object);
        self.refuse_escalation(&attributes, &object, options)?;
        let mut reservation = self.reserve(&attributes, &mut object, options.dry_run).await?;
        let candidate = Candidate { object, beneath, warnings, is_conditional };
        let attempt = self.store_changed(&attributes, current, candidate, options, &mut reservation).await;
        let outcome = match &attempt {
            Ok(Attempt::Saved(_) | Attempt::Unchanged(_)) => Outcome::Stored,
            Ok(Attempt::Removed(_)) => Outcome::Removed,
            Ok(Attempt::Overtaken(_) | Attempt::Lost(_)) | Err(_) => Outcome::Failed,
        };
        reservation.settle(outcome).await;
        attempt
    }

    /// The mutating pass over an object of which it is known who manages what. Webhooks may change that, but only to
    /// something that can be read (upstream: `managedFieldsValidatingAdmissionController`). Answers whether others
    /// changed the object.
    pub(crate) async fn admit_keeping_managers(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Object,
    ) -> Result<bool, RegistryError> {
        // Most servers have nobody who could change it, and need not remember it.
        let may_change = self.admission_webhooks.may_change(&self.expressions)
            || self.policies.mutating(&self.expressions).is_some();
        let known = object.at(&["metadata", "managedFields"]).filter(|_| may_change).cloned();
        let has_changed = self.admit(attributes, object).await?;
        if has_changed && may_change {
            let metadata = object.object_mut("metadata");
            let managed = metadata.array("managedFields");
            if managed.is_empty() {
                metadata.remove("managedFields");
            } else if metadata.get("managedFields") != known.as_ref() && ManagedFields::read(managed).is_none() {
                let why = managed_fields::why_unreadable(managed);
                metadata.set("managedFields", known);
                attributes.warn(format!(
                    ".metadata.managedFields was in an invalid state after admission; this could be caused by an \
                     outdated mutating admission controller; please fix your requests: {why}"
                ));
            }
        }
        Ok(has_changed)
    }

    /// Prepares, validates and stores an object in place of the current one.
    async fn store_changed(
        &self,
        attributes: &Attributes<'_>,
        current: &Entry,
        candidate: Candidate,
        options: WriteOptions<'_>,
        reservation: &mut Reservation<'_>,
    ) -> Result<Attempt, RegistryError> {
        let Attributes { resource, shown, name, .. } = *attributes;
        let Candidate { mut object, beneath, mut warnings, is_conditional } = candidate;
        let empty = Object::new();
        let old = attributes.old.unwrap_or(&empty);
        let now = self.environment.timestamp();
        let circumstances = Circumstances { now: &now, requester: options.requester };
        options.in_time()?;
        resource.prepare_update(&mut object, old, options.part(), circumstances);
        if options.subresource != Some("status") {
            count_generation(resource, &mut object, old);
        }
        let mut errors = check_updated_metadata(shown, &object, old, options.part());
        let validated =
            shown.strategy.validate_update_warning(&object, old, options.part(), circumstances, &mut warnings);
        errors.extend(validated);
        options.keep_sent_too(&warnings);
        // Admission may have given it another name, by which it is refused.
        let called = object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or(name);
        reject_invalid(resource, called, errors)?;
        warnings.extend(match options.part() {
            Part::Whole => resource.strategy.warnings(&object, Some(old)),
            Part::Subresource(_) => resource.strategy.subresource_warnings(&object, old),
        });
        options.keep_sent_too(&warnings);
        if scale_of(shown, options.subresource).is_some() {
            self.validate_scale_admission(attributes, &object).await?;
        } else {
            self.validate_admission(attributes, &object).await?;
        }
        let judged = self.judge(attributes, &mut object, options).await?;
        if is_definitions(resource) {
            warnings.extend(self.check_semver(attributes, &object, judged.rules.as_deref(), options)?);
            // Boxed: all others would carry the room for it about.
            warnings.extend(Box::pin(self.rehearse(attributes, &object, judged.rules.clone(), options)).await);
        }
        options.in_time()?;
        let charges = self.charge_quotas(attributes, &object, options.dry_run).await?;
        options.in_time()?;
        warnings.extend(judged.warnings.iter().cloned());

        let is_last_step = is_free_to_go(resource, &object, old);
        let drafted = self.draft(resource, object, &beneath).await?;
        let draft = &drafted.stored;
        let saved = |bytes, revision| {
            let shown = drafted.shown(&bytes, Some(revision));
            Saved { bytes, created: false, warnings, shown }
        };
        let before = current.revision();
        let is_as_it_was = current.same_content(draft) && !is_last_step;
        // What would be encrypted otherwise today is written although nothing changed, as in the original.
        if options.dry_run || (is_as_it_was && !self.cache.is_stale(current).await?) {
            return Ok(Attempt::Unchanged(saved(draft.at_revision(before), before)));
        }
        // What was only held by its finalizers goes with the write that removes the last of them. Those who watch see
        // the state before.
        let change = if is_last_step { Change::Delete } else { Change::Put(draft.clone()) };
        if is_last_step {
            reservation.give_up_all(old);
        }
        let write = Write { key: current.key().clone(), expect: Expect::At(before), change };
        let writing = self.write_charged(write, charges);
        let written = match options.within.charging {
            Some(charging) => charging.store(writing).await,
            None => writing.await,
        };
        match written {
            Ok(event) => Ok(match event.new {
                Some(entry) => Attempt::Saved(saved(entry.bytes().clone(), entry.revision())),
                None => Attempt::Removed(saved(draft.at_revision(before), before)),
            }),
            Err(StoreError::Conflict { .. }) if is_conditional => {
                Err(RegistryError::conflict(resource, name, MODIFIED))
            }
            Err(StoreError::Conflict { current, .. }) => Ok(Attempt::Overtaken(current)),
            Err(error) => Ok(Attempt::Lost(error.into())),
        }
    }
}

/// An object that is to take the place of the current one.
struct Candidate {
    object: Object,
    /// What is stored of the current one beside what is worked on.
    beneath: Beneath,
    warnings: Warnings,
    is_conditional: bool,
}

/// What one attempt to change an object came to.
enum Attempt {
    /// It is as it was to be.
    Saved(Saved),
    /// It was so before, or nothing was to be stored.
    Unchanged(Saved),
    /// It was the last thing that held the object, which is gone.
    Removed(Saved),
    /// Somebody else was faster; this is there now.
    Overtaken(Option<Arc<Entry>>),
    /// The store failed while it was written, and nobody knows whether it was.
    Lost(RegistryError),
}

/// Whether an object that was marked before is held by nothing any more. One whose time is not up goes by another
/// deletion.
pub(crate) fn is_free_to_go(resource: &Resource, object: &Object, old: &Object) -> bool {
    let is_unheld = object.object("metadata").is_none_or(|metadata| metadata.array("finalizers").is_empty());
    let was_due = old.object("metadata").is_some_and(|metadata| {
        let seconds = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
        metadata.contains("deletionTimestamp") && seconds == 0
    });
    is_unheld && was_due && !resource.strategy.is_held(object)
}

/// Refuses what a client writes through a version that is only to be read any more. The server itself has to go on, and
/// the garbage collector: owners that are gone are taken out of objects whatever version they are seen in.
pub(crate) fn refuse_frozen(place: Place<'_>, options: WriteOptions<'_>) -> Result<(), RegistryError> {
    let Place { resource, name, .. } = place;
    match resource.custom().and_then(|custom| custom.frozen.as_ref()) {
        Some(why) if !matches!(options.requester.name, "" | GARBAGE_COLLECTOR) => Err(RegistryError::Forbidden {
            resource: resource.clone(),
            name: name.unwrap_or_default().to_owned(),
            why: why.clone(),
            terminating_namespace: None,
        }),
        _ => Ok(()),
    }
}

/// The canonical bytes of an object with the place for its revision.
pub(crate) fn encode(resource: &Resource, object: &Object) -> Draft {
    let encoded = resource.encode(object);
    Draft::showing_revision_at(encoded.bytes, encoded.revision_at)
}

/// Puts back what no update may change.
fn restore_metadata(object: &mut Object, old: &Object) {
    let empty = Object::new();
    let old_metadata = old.object("metadata").unwrap_or(&empty);
    let metadata = object.object_mut("metadata");
    metadata.set("generation", old_metadata.get("generation").cloned());
    metadata.set("creationTimestamp", old_metadata.get("creationTimestamp").cloned());
    metadata.remove("selfLink");
    if metadata.str("uid").unwrap_or_default().is_empty() {
        metadata.set("uid", old_metadata.get("uid").cloned());
    }
    if let Some(marked) = old_metadata.get("deletionTimestamp") {
        metadata.insert("deletionTimestamp", marked.clone());
    }
    if !metadata.contains("deletionGracePeriodSeconds") {
        metadata.set("deletionGracePeriodSeconds", old_metadata.get("deletionGracePeriodSeconds").cloned());
    }
}

/// Raises the generation of an object whose desired state was changed.
fn count_generation(resource: &Resource, object: &mut Object, old: &Object) {
    if resource.strategy.is_changed(object, old) {
        let before = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
        object.object_mut("metadata").insert("generation", before + 1);
    }
}

/// What is wrong with the metadata of an object in place of the old one, told as often as the original finds it: twice
/// for every kind (upstream: `validateCommonFields`), and again by the rules of most.
pub(crate) fn check_updated_metadata(
    resource: &Resource,
    object: &Object,
    old: &Object,
    part: Part<'_>,
) -> FieldErrors {
    let empty = Object::new();
    let metadata = object.object("metadata").unwrap_or(&empty);
    let old = old.object("metadata").unwrap_or(&empty);
    let own = check_metadata(resource, metadata);
    // Nearly always there is nothing, and one look is enough: no rule for names asks for less than what every object is
    // asked. Where the kind itself checks its names, nothing was asked of them yet.
    let is_named = resource.rules.names != NameRule::OfKind || metadata.str("generateName").is_none();
    if is_named && own.is_empty() && validate_metadata_change(metadata, old).is_empty() {
        return own;
    }
    let mut errors = validate_metadata(metadata, resource.namespaced, NameRule::PathSegment);
    let changed = validate_metadata_update(metadata, old);
    errors.extend(changed.clone());
    let MetadataChecks { as_new, as_changed } = resource.metadata_checks(part);
    for _ in 0..as_changed {
        errors.extend(changed.clone());
        errors.extend(check_finalizers(resource, metadata));
    }
    errors.extend(std::iter::repeat_n(own, as_new).flatten());
    errors
}

fn check_metadata(resource: &Resource, metadata: &Object) -> FieldErrors {
    let mut errors = validate_metadata(metadata, resource.namespaced, resource.rules.names);
    errors.extend(check_finalizers(resource, metadata));
    errors
}

fn check_finalizers(resource: &Resource, metadata: &Object) -> FieldErrors {
    if resource.rules.known_finalizers { validate_known_finalizers(metadata) } else { FieldErrors::new() }
}

pub(crate) fn reject_invalid(resource: &Arc<Resource>, name: &str, errors: FieldErrors) -> Result<(), RegistryError> {
    if errors.is_empty() {
        return Ok(());
    }
    let errors = resource.quoting_internal_values(errors);
    Err(RegistryError::Invalid { resource: resource.clone(), name: name.to_owned(), errors })
}
