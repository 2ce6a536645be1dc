//! Which writes are recorded in `metadata.managedFields`, and under whose name.

use std::sync::Arc;

use revisor_catalog::{Custom, Resource};
use revisor_merge::{FieldSet, ManagedFields, Manager, Operation, Replacement};
use revisor_object::{Object, Value};

use crate::field_versions::{Converted, MAX_ROUNDS, as_spoken};
use crate::{Registry, WriteOptions};

/// The name under which the server's own writes are recorded: what it is to its clients.
const SERVER: &str = "kube-apiserver";

impl Registry {
    /// The entries of an object that is put in place of the old one, or of none, before the server adds anything to it:
    /// what is the server's own is nobody's to manage. Both are in the working version.
    pub(crate) async fn track(
        &self,
        shown: &Arc<Resource>,
        mut managed: ManagedFields,
        [old, new]: [&Object; 2],
        options: WriteOptions<'_>,
        now: &str,
    ) -> ManagedFields {
        let (old, new) = (as_spoken(shown, old), as_spoken(shown, new));
        let converted = Converted::default();
        if managed.is_empty() && old.is_empty() {
            return self.first_manager(shown, [&old, &new], options, now, &converted);
        }
        // Only who asks others misses what they have not answered yet, and begins again when they have.
        let is_patient = shown.custom().is_some_and(Custom::asks_others);
        for _ in 0..MAX_ROUNDS {
            let begun = if is_patient { managed.clone() } else { ManagedFields::default() };
            let tracked = {
                let versions = self.field_versions(shown, &converted);
                let write = Replacement { versions: &versions, version: &shown.api_version, old: &old, new: &new };
                let owned = |fields| owned(shown, &options, fields);
                managed.update(&manager(shown, &options), write, now, owned)
            };
            if !(is_patient && self.fulfil(shown, &converted).await) {
                // As in the original, a write that cannot be recorded is done all the same, and nobody is recorded.
                return tracked.map(|()| managed).unwrap_or_default();
            }
            managed = begun;
        }
        ManagedFields::default()
    }
}

impl Registry {
    /// The entry of who makes a new object.
    fn first_manager(
        &self,
        shown: &Arc<Resource>,
        [old, new]: [&Object; 2],
        options: WriteOptions<'_>,
        now: &str,
        converted: &Converted,
    ) -> ManagedFields {
        let versions = self.field_versions(shown, converted);
        let write = Replacement { versions: &versions, version: &shown.api_version, old, new };
        let untouched = steps(shown.strategy.untouched(options.part()));
        let untouched: Vec<Vec<&str>> =
            untouched.iter().map(|place| place.iter().map(String::as_str).collect()).collect();
        let untouched: Vec<&[&str]> = untouched.iter().map(Vec::as_slice).collect();
        ManagedFields::of_new(&manager(shown, &options), write, now, &untouched).unwrap_or_default()
    }
}

impl Registry {
    /// Records what the server itself changed in the status of a built-in object. Where nobody was recorded, recording
    /// begins with the next apply.
    pub(crate) fn record_status(
        &self,
        resource: &Arc<Resource>,
        old: &Object,
        object: &mut Object,
        options: WriteOptions<'_>,
    ) {
        let Some(mut managed) = stored(old).filter(|managed| !managed.is_empty()) else { return };
        let converted = Converted::default();
        let versions = self.field_versions(resource, &converted);
        let write = Replacement { versions: &versions, version: &resource.api_version, old, new: object };
        let owned = |fields| owned(resource, &options, fields);
        if managed.update(&manager(resource, &options), write, &self.now(), owned).is_ok() {
            object.object_mut("metadata").set("managedFields", managed.into_value());
        }
    }
}

impl Registry {
    /// Records who sent an object that is answered without being stored: as in the original, that is shown too.
    pub async fn record_sender(&self, resource: &Arc<Resource>, object: &mut Object, options: WriteOptions<'_>) {
        let begun = begin(resource, object, &Object::new(), options);
        let managed = self.track(resource, begun, [&Object::new(), object], options, &self.now()).await;
        object.object_mut("metadata").set("managedFields", managed.into_value());
    }
}

/// What is wrong with entries that cannot be read (upstream: `DecodeManagedFields`).
pub(crate) fn why_unreadable(entries: &[Value]) -> String {
    let empty = Object::new();
    for (at, entry) in entries.iter().enumerate() {
        let entry = entry.as_object().unwrap_or(&empty);
        let text = |name| entry.str(name).unwrap_or_default();
        if !matches!(text("operation"), "Apply" | "Update") {
            return "operation must be `Apply` or `Update`".to_owned();
        }
        if text("apiVersion").is_empty() {
            return "apiVersion must not be empty".to_owned();
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return format!("missing fieldsType in managed fields entry {at}"),
            other => return format!("invalid fieldsType {other:?} in managed fields entry {at}"),
        }
    }
    "metadata.managedFields cannot be read".to_owned()
}

/// The entries of a new object that was applied as it was sent: who applies manages what was said, not the defaults
/// that come with it nor what is around it.
pub(crate) fn of_applied(shown: &Resource, config: &Object, options: WriteOptions<'_>, now: &str) -> ManagedFields {
    let mut managed = ManagedFields::default();
    managed.take(&manager(shown, &options), owned(shown, &options, shown.filled(config)), now);
    managed
}

/// The entries that a write begins with. Those that were sent are taken out of the object.
pub(crate) fn begin(
    resource: &Resource,
    object: &mut Object,
    old: &Object,
    options: WriteOptions<'_>,
) -> ManagedFields {
    let stored = old.object("metadata").map(|metadata| metadata.array("managedFields")).unwrap_or_default();
    // Through a subresource nobody says who manages what.
    let sent = take_sent(object).filter(|_| options.subresource.is_none());
    // An empty list does not come through to where custom objects are looked at.
    let sent = sent.filter(|sent| resource.custom().is_none() || sent.as_array() != Some(&[]));
    ManagedFields::of_write(sent, stored)
}

/// Takes out of an object who manages what, as it was sent.
pub(crate) fn take_sent(object: &mut Object) -> Option<Value> {
    object.object_mut("metadata").remove("managedFields")
}

/// The stored entries of an object.
pub(crate) fn stored(object: &Object) -> Option<ManagedFields> {
    ManagedFields::read(object.object("metadata").map(|metadata| metadata.array("managedFields")).unwrap_or_default())
}

/// In whose name a write is recorded.
pub(crate) fn manager(shown: &Resource, options: &WriteOptions<'_>) -> Manager {
    let name = if options.field_manager.is_empty() { SERVER } else { options.field_manager };
    Manager {
        name: name.to_owned(),
        operation: if options.is_apply { Operation::Apply } else { Operation::Update },
        api_version: shown.api_version.clone(),
        subresource: options.subresource.unwrap_or_default().to_owned(),
    }
}

/// The fields that this kind of write can change at all. Other changes are taken back before the object is stored.
pub(crate) fn owned(resource: &Resource, options: &WriteOptions<'_>, fields: FieldSet) -> FieldSet {
    steps(resource.strategy.untouched(options.part()))
        .iter()
        .fold(fields, |fields, place| fields.without_subtree(&place.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// Places of members as the steps that lead to them.
fn steps(places: &[&[&str]]) -> Vec<Vec<String>> {
    places.iter().map(|place| place.iter().map(|member| format!("f:{member}")).collect()).collect()
}
