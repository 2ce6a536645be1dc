//! Create: what becomes of a new object on its way to the store.

use std::sync::Arc;

use revisor_catalog::{Beneath, Circumstances, Resource};
use revisor_merge::ManagedFields;
use revisor_object::{FieldErrors, Object, Value, Warnings};
use revisor_store::{BoxFuture, Change, Entry, Expect, Key, StoreError, Write};
use revisor_version::Revision;

use super::address::match_namespace;
use super::owners::{drop_repeated_owners, repeated_owners};
use super::{Place, Saved, WriteOptions, check_metadata, refuse_frozen, reject_invalid};
use crate::admission::Attributes;
use crate::allocation::Outcome;
use crate::apply::unfit;
use crate::body::fit_applied;
use crate::present::named_as;
use crate::{Decoded, Registry, RegistryError, managed_fields};

/// How often a name is generated anew because it was taken.
const MAX_GENERATED_NAMES: usize = 8;

impl Registry {
    /// Makes a new object.
    pub fn create<'a>(
        &'a self,
        place: Place<'a>,
        decoded: Decoded,
        options: WriteOptions<'a>,
    ) -> BoxFuture<'a, Result<Saved, RegistryError>> {
        Box::pin(self.create_unboxed(place, decoded, options))
    }

    async fn create_unboxed(
        &self,
        place: Place<'_>,
        decoded: Decoded,
        options: WriteOptions<'_>,
    ) -> Result<Saved, RegistryError> {
        let newest = self.newest(place.resource);
        let place = Place { resource: &newest, ..place };
        let Place { resource, namespace, name } = place;
        let Decoded { mut object, mut warnings } = decoded;
        // What is applied is looked at when others may have changed it.
        if !options.is_apply {
            warnings.extend(repeated_owners(&drop_repeated_owners(object.object_mut("metadata")), false));
        }
        options.keep_sent(&warnings);
        let own_name = object.at(&["metadata", "name"]).and_then(Value::as_str);
        refuse_frozen(Place { name: name.or(own_name), ..place }, options)?;
        let metadata = object.object_mut("metadata");
        match_namespace(resource, metadata, namespace)?;
        if let Some(name) = name {
            metadata.insert("name", name);
        }
        let is_empty = |name| metadata.str(name).unwrap_or_default().is_empty();
        if is_empty("name") && is_empty("generateName") && resource.rules.names_nameless {
            metadata.insert("name", self.environment.uid());
        }
        let sent = managed_fields::begin(resource, &mut object, &Object::new(), options);
        let is_addressed = place.name.is_some() && options.subresource.is_none();
        if is_addressed {
            wipe_identity(object.object_mut("metadata"));
        } else {
            wipe_system_fields(object.object_mut("metadata"));
        }
        let managed = if options.is_apply {
            let managed = managed_fields::of_applied(resource, &object, options, &self.now());
            object = fit_applied(resource, object.clone()).map_err(|problem| unfit(resource, &object, problem))?;
            managed
        } else {
            sent
        };
        let options = WriteOptions { is_addressed, ..options };
        resource.to_stored(&mut object);
        let saved = self.create_stored(resource, namespace, object, managed, options).await;
        let mut saved = saved.map_err(|error| named_as(resource, error))?;
        self.await_definition(resource, &saved.bytes).await;
        self.compile_policies(resource);
        self.show_saved(resource, &mut saved).await?;
        saved.warnings = warnings.into_iter().chain(saved.warnings).collect();
        Ok(saved)
    }

    /// Makes a new object in its stored shape. The rules that it is held to are those of the version that was `shown`.
    /// Who manages what of it is known already if it was applied; or else that is what recording begins with.
    pub(crate) async fn create_stored(
        &self,
        shown: &Arc<Resource>,
        namespace: Option<&str>,
        mut object: Object,
        managed: ManagedFields,
        options: WriteOptions<'_>,
    ) -> Result<Saved, RegistryError> {
        let resource = shown.working();
        let name = name_of(&object);
        if resource.custom().is_some_and(|custom| custom.is_terminating) {
            return Err(RegistryError::Forbidden {
                resource: resource.clone(),
                name,
                why: "create not allowed while custom resource definition is terminating".to_owned(),
                terminating_namespace: None,
            });
        }
        resource.default(&mut object);
        // Before the server adds what is its own: that is nobody's to manage.
        let managed = if options.is_apply {
            managed
        } else {
            let as_managed = resource.strategy.as_managed(&object);
            let new = as_managed.as_ref().unwrap_or(&object);
            self.track(shown, managed, [&Object::new(), new], options, &self.now()).await
        };
        resource.forget_empty(&mut object);
        object.object_mut("metadata").set("managedFields", managed.into_value());
        // As in the original, that there is no place for the object is said before what is wrong with it.
        let attributes = options.attributes(shown, namespace, &name, None);
        let admitted = self.admit_keeping_managers(&attributes, &mut object).await;
        if admitted.map_err(|error| name_refused(error, &object))? {
            match_namespace(resource, object.object_mut("metadata"), namespace)?;
            wipe_system_fields_but_managers(object.object_mut("metadata"));
        }
        if let Some(told) = repeated_owners(&drop_repeated_owners(object.object_mut("metadata")), true) {
            attributes.warn(told);
        }
        self.fill_system_fields(object.object_mut("metadata"), options.within.identity);
        if !name_of(&object).is_empty() {
            return self.create_named(shown, namespace, object, options).await;
        }
        // A name that begins as it says, and that nobody has.
        let prefix = object.at(&["metadata", "generateName"]).and_then(Value::as_str).unwrap_or_default().to_owned();
        if shown.rules.prefix_is_name && !prefix.is_empty() {
            object.object_mut("metadata").insert("name", prefix.as_str());
        }
        if prefix.is_empty() || shown.rules.prefix_is_name {
            return self.create_named(shown, namespace, object, options).await;
        }
        let mut attempt = 1;
        loop {
            let mut named = object.clone();
            named.object_mut("metadata").insert("name", self.environment.generated_name(&prefix));
            match self.create_named(shown, namespace, named, options).await {
                Err(RegistryError::AlreadyExists { .. }) if attempt < MAX_GENERATED_NAMES => attempt += 1,
                done => return done,
            }
        }
    }

    /// Makes a new object that went through mutating admission and has its name and identity.
    async fn create_named(
        &self,
        shown: &Arc<Resource>,
        namespace: Option<&str>,
        mut object: Object,
        options: WriteOptions<'_>,
    ) -> Result<Saved, RegistryError> {
        let name = name_of(&object);
        let attributes = options.attributes(shown, namespace, &name, None);
        let now = self.now();
        let circumstances = Circumstances { now: &now, requester: options.requester };
        self.refuse_escalation(&attributes, &object, options)?;
        let reservation = self.reserve(&attributes, &mut object, options.dry_run).await?;
        let saved = self.store_new(&attributes, object, options, circumstances).await;
        reservation.settle(if saved.is_ok() { Outcome::Stored } else { Outcome::Failed }).await;
        saved
    }

    /// Prepares, validates and stores a new object that has all that the server gives it.
    async fn store_new(
        &self,
        attributes: &Attributes<'_>,
        mut object: Object,
        options: WriteOptions<'_>,
        circumstances: Circumstances<'_>,
    ) -> Result<Saved, RegistryError> {
        let Attributes { resource, shown, namespace, name, .. } = *attributes;
        options.in_time()?;
        let mut warnings: Warnings = resource.strategy.warnings_as_sent(&object).into_iter().collect();
        // Told by those who prepare the object, so also where it is refused afterwards.
        options.keep_sent_too(&warnings);
        resource.prepare_create(&mut object, circumstances);
        if resource.strategy.counts_generation() {
            object.object_mut("metadata").insert("generation", 1);
        }
        let empty = Object::new();
        let own = shown.strategy.validate(&object);
        let mut errors = if own.is_empty() || shown.looks_at_new_metadata() {
            check_metadata(shown, object.object("metadata").unwrap_or(&empty))
        } else {
            FieldErrors::new()
        };
        errors.extend(own);
        reject_invalid(resource, name, errors)?;
        warnings.extend(resource.strategy.warnings(&object, None));
        options.keep_sent_too(&warnings);
        self.require_right_to_create(attributes, options)?;
        self.validate_admission(attributes, &object).await?;
        let judged = self.judge(attributes, &mut object, options).await?;
        let version = numbered_version(&object);
        if version.is_some() && !options.dry_run {
            // DIFFERENCE: the original answers 500.
            let message = "resourceVersion should not be set on objects to be created";
            return Err(RegistryError::BadRequest(message.to_owned()));
        }
        options.in_time()?;
        let charges = self.charge_quotas(attributes, &object, options.dry_run).await?;
        options.in_time()?;
        warnings.extend(judged.warnings.iter().cloned());
        let key = Key::new(resource.key(namespace, name));
        let generate_name = object.at(&["metadata", "generateName"]).and_then(Value::as_str);
        let is_generated = generate_name.is_some_and(|prefix| !prefix.is_empty());
        let already_exists = |current: Option<&Entry>| RegistryError::AlreadyExists {
            resource: resource.clone(),
            name: name.to_owned(),
            being_deleted: current.is_some_and(is_marked),
            is_generated,
        };
        let drafted = self.draft(resource, object, &Beneath::Nothing).await?;
        let saved = |bytes, revision| {
            let shown = drafted.shown(&bytes, revision);
            Saved { bytes, created: true, warnings, shown }
        };
        if options.dry_run {
            return match self.cache_of(resource).get(key.as_str()) {
                Some(item) => Err(already_exists(Some(item.entry()))),
                // What was sent as its version is shown again: only the store would have minded.
                None => {
                    let bytes = version.map(|version| drafted.stored.at_revision(version));
                    Ok(saved(bytes.unwrap_or_else(|| drafted.stored.bytes().clone()), version))
                }
            };
        }
        let write = Write { key, expect: Expect::Absent, change: Change::Put(drafted.stored.clone()) };
        match self.write_charged(write, charges).await {
            Ok(event) => {
                let bytes = event.new.map(|entry| entry.bytes().clone()).unwrap_or_default();
                Ok(saved(bytes, Some(event.revision)))
            }
            Err(StoreError::Conflict { current, .. }) => Err(already_exists(current.as_deref())),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets what the server decides about a new object (upstream: `FillObjectMetaSystemFields`), and its identity, if that
    /// was not chosen before.
    fn fill_system_fields(&self, metadata: &mut Object, identity: Option<&str>) {
        metadata.insert("uid", identity.map_or_else(|| self.environment.uid(), str::to_owned));
        metadata.insert("creationTimestamp", self.environment.timestamp());
    }
}

/// The refusal of an object that has no name yet, under what its name begins with (upstream: `extractResourceName`).
fn name_refused(mut error: RegistryError, object: &Object) -> RegistryError {
    if let RegistryError::Forbidden { name, .. } | RegistryError::ForbiddenBecause { name, .. } = &mut error
        && name.is_empty()
    {
        let of_object = |member| object.at(&["metadata", member]).and_then(Value::as_str);
        let mut names = ["name", "generateName"].into_iter().filter_map(of_object);
        *name = names.find(|name| !name.is_empty()).unwrap_or("Unknown").to_owned();
    }
    error
}

/// The version that a new object was sent with, if the original's store would read it as one: other texts are lost when
/// the object is stored.
fn numbered_version(object: &Object) -> Option<Revision> {
    let version = object.at(&["metadata", "resourceVersion"]).and_then(Value::as_str)?;
    version.parse().ok().and_then(Revision::new)
}

/// Takes out what only the server may decide about a new object (upstream: `WipeObjectMetaSystemFields`). The version
/// that it was sent with is not among it: whoever admits the object sees it.
pub(crate) fn wipe_system_fields(metadata: &mut Object) {
    wipe_system_fields_but_managers(metadata);
    metadata.remove("managedFields");
}

/// Takes out what only the server may decide about an object that is made where it was to be updated: there the original
/// leaves a mark of deletion as it was sent.
fn wipe_identity(metadata: &mut Object) {
    for name in ["selfLink", "uid", "creationTimestamp", "managedFields"] {
        metadata.remove(name);
    }
}

/// The same of an object that the server has begun to keep track of.
fn wipe_system_fields_but_managers(metadata: &mut Object) {
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid", "creationTimestamp"] {
        metadata.remove(name);
    }
}

fn name_of(object: &Object) -> String {
    object.object("metadata").and_then(|metadata| metadata.str("name")).unwrap_or_default().to_owned()
}

/// Whether a stored object is marked as deleted, without reading all of it.
fn is_marked(entry: &Entry) -> bool {
    sonic_rs::get(&entry.bytes()[..], ["metadata", "deletionTimestamp"]).is_ok()
}
