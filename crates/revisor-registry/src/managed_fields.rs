//! Which writes are recorded in `metadata.managedFields`, and under whose name.

use revisor_catalog::Resource;
use revisor_merge::{Comparison, FieldSet, ManagedFields, Manager, Operation};
use revisor_object::Object;

use crate::WriteOptions;

/// The name under which the server's own writes are recorded.
const SERVER: &str = "revisor";

/// The entries of a new object: as it was sent, if it was applied, or else with what the server added to it.
pub(crate) fn of_create(resource: &Resource, object: &Object, options: WriteOptions<'_>, now: &str) -> ManagedFields {
    let mut managed = ManagedFields::default();
    let changes = if options.is_apply {
        // Who applies manages what was said, not the defaults that came with it nor what is around it.
        Comparison { added: resource.filled(object), ..Comparison::default() }
    } else {
        resource.compare(&Object::new(), object)
    };
    managed.update(&manager(resource, &options), &possible(resource, &options, changes), now);
    managed
}

/// The entries that an update begins with.
pub(crate) fn begin(object: &Object, old: &Object, options: WriteOptions<'_>) -> ManagedFields {
    let entries = |object: &'_ Object| object.at(&["metadata", "managedFields"]).cloned();
    let stored = old.object("metadata").map(|metadata| metadata.array("managedFields")).unwrap_or_default();
    // Through a subresource nobody says who manages what.
    let sent = entries(object).filter(|_| options.subresource.is_none());
    ManagedFields::of_write(sent.as_ref(), stored)
}

/// The entries of an object that is put in place of the old one, before the server adds anything to it: what is the
/// server's own is nobody's to manage.
pub(crate) fn of_update(
    mut managed: ManagedFields,
    resource: &Resource,
    object: &Object,
    old: &Object,
    options: WriteOptions<'_>,
    now: &str,
) -> ManagedFields {
    // What was applied is recorded already. Where nobody was recorded, recording begins with the next apply.
    if !options.is_apply && !managed.is_empty() {
        let changes = possible(resource, &options, resource.compare(old, object));
        managed.update(&manager(resource, &options), &changes, now);
    }
    managed
}

/// In whose name a write is recorded.
pub(crate) fn manager(resource: &Resource, options: &WriteOptions<'_>) -> Manager {
    let name = if options.field_manager.is_empty() { SERVER } else { options.field_manager };
    Manager {
        name: name.to_owned(),
        operation: if options.is_apply { Operation::Apply } else { Operation::Update },
        api_version: match options.written_as {
            "" => resource.api_version.clone(),
            version => version.to_owned(),
        },
        subresource: options.subresource.unwrap_or_default().to_owned(),
    }
}

/// Of some changes those that this kind of write can make at all. Others are taken back before the object is stored.
fn possible(resource: &Resource, options: &WriteOptions<'_>, changes: Comparison) -> Comparison {
    changes.only(|fields| owned(resource, options, fields))
}

/// The fields that this kind of write can change at all.
pub(crate) fn owned(resource: &Resource, options: &WriteOptions<'_>, fields: FieldSet) -> FieldSet {
    resource.strategy.untouched(options.part()).iter().fold(fields, |fields, place| {
        let steps: Vec<String> = place.iter().map(|member| format!("f:{member}")).collect();
        fields.without_subtree(&steps.iter().map(String::as_str).collect::<Vec<_>>())
    })
}
