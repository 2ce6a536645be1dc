//! Which writes are recorded in `metadata.managedFields`, and under whose name.

use revisor_catalog::Resource;
use revisor_merge::{Comparison, FieldSet, ManagedFields, Manager, Operation};
use revisor_object::Object;

use crate::WriteOptions;

/// The name under which the server's own writes are recorded.
const SERVER: &str = "revisor";

/// The kinds whose status is written without their metadata: writes of it leave that as it is.
const STATUS_WITHOUT_METADATA: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("internal.apiserver.k8s.io", "storageversions"),
    ("networking.k8s.io", "servicecidrs"),
    ("resource.k8s.io", "devicetaintrules"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourcepoolstatusrequests"),
    ("scheduling.k8s.io", "podgroups"),
    ("storage.k8s.io", "volumeattachments"),
    ("storagemigration.k8s.io", "storageversionmigrations"),
];

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
    let name = resource.name();
    let kept: &[&[&str]] = match (options.subresource, name) {
        (None, ("certificates.k8s.io", "certificatesigningrequests")) => &[&["f:spec"], &["f:status"]],
        (Some("approval"), _) => &[&["f:spec"], &["f:status", "f:certificate"]],
        (Some("status"), ("certificates.k8s.io", "certificatesigningrequests")) => {
            &[&["f:spec"], &["f:status", "f:conditions"]]
        }
        (Some("status"), ("apps", "deployments")) => &[&["f:spec"], &["f:metadata", "f:labels"]],
        (Some("status"), ("", "pods")) => {
            &[&["f:spec"], &["f:metadata", "f:deletionTimestamp"], &["f:metadata", "f:ownerReferences"]]
        }
        (Some("status"), name) if STATUS_WITHOUT_METADATA.contains(&name) => &[&["f:spec"], &["f:metadata"]],
        (Some("status"), _) => &[&["f:spec"]],
        _ if resource.subresource("status").is_some() => &[&["f:status"]],
        _ => &[],
    };
    kept.iter().fold(fields, |fields, place| fields.without_subtree(place))
}
