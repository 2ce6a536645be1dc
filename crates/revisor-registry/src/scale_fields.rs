//! Who manages the scale of an object. As in the original, a scale is tracked as an object of its own: of the entries
//! of its object only those count that have the number of replicas, and only that is changed in them.

use std::sync::Arc;

use revisor_catalog::Resource;
use revisor_merge::{
    Application, Applied, ApplyError, FieldSet, ManagedFields, Manager, Operation, Replacement, Unconvertible,
    Versions, server_side_apply,
};
use revisor_object::Object;
use revisor_schema::{StructId, Types};

use crate::apply::BEFORE_FIRST_APPLY;
use crate::field_versions::Converted;
use crate::managed_fields::{self, stored};
use crate::scale::in_version;
use crate::{Registry, RegistryError, WriteOptions};

/// Where a scale has its number of replicas.
const REPLICAS: &[&[&str]] = &[&["f:spec", "f:replicas"]];

/// The only version of scales.
struct ScaleVersion<'r>(&'r Resource);

impl Versions for ScaleVersion<'_> {
    fn type_in(&self, version: &str) -> Result<(&Types, StructId), Unconvertible> {
        if version == self.0.api_version { Ok(self.0.typed()) } else { Err(Unconvertible::NoSuchVersion) }
    }

    fn convert(&self, _: &Object, _: &str, _: &str) -> Result<Object, Unconvertible> {
        Err(Unconvertible::NoSuchVersion)
    }
}

impl Registry {
    /// The entries of a stored object whose scale is replaced.
    pub(crate) fn track_scale(
        &self,
        resource: &Arc<Resource>,
        current: &Object,
        scale: &Object,
        options: WriteOptions<'_>,
    ) -> Result<ManagedFields, RegistryError> {
        let managed = stored(current).unwrap_or_default();
        let mut entries = self.scale_entries(resource, &managed);
        if !entries.is_empty() {
            let before = self.scale_object(resource, &in_version(resource, current))?;
            let kind = self.catalog.scale();
            let versions = ScaleVersion(kind);
            let write = Replacement {
                versions: &versions,
                version: &kind.api_version,
                old: &before,
                new: &without_zero(scale),
            };
            let tracked = entries.update(&self.scale_manager(&options), write, &self.now(), |fields| fields);
            tracked.map_err(RegistryError::Conversion)?;
        }
        Ok(self.with_scale_entries(resource, managed, entries))
    }

    /// Applies a configuration to the scale of a stored object. Answers the scale and the entries of the object.
    pub(crate) fn apply_to_scale(
        &self,
        resource: &Arc<Resource>,
        current: &Object,
        config: &Object,
        options: WriteOptions<'_>,
    ) -> Result<(Object, ManagedFields), RegistryError> {
        let managed = stored(current).ok_or(RegistryError::Unreadable)?;
        let live = self.scale_object(resource, &in_version(resource, current))?;
        let kind = self.catalog.scale();
        let (versions, manager, now) = (ScaleVersion(kind), self.scale_manager(&options), self.now());
        let mut entries = self.scale_entries(resource, &managed);
        if entries.is_empty() {
            let before =
                Manager { name: BEFORE_FIRST_APPLY.to_owned(), operation: Operation::Update, ..manager.clone() };
            let (version, empty) = (kind.api_version.as_str(), Object::new());
            let write = Replacement { versions: &versions, version, old: &empty, new: &live };
            entries.update(&before, write, &now, |fields| fields).map_err(RegistryError::Conversion)?;
        }
        let (force, allowed) = (options.force, FieldSet::new());
        let application = Application { config, manager: &manager, force, allowed: &allowed, now: &now };
        let applied = server_side_apply(&versions, &live, entries, application, |fields| fields);
        let Applied { object, managed: entries } = applied.map_err(|error| match error {
            ApplyError::Conflicts(conflicts) => RegistryError::ApplyConflict(conflicts),
            ApplyError::Unconvertible(why) => RegistryError::Conversion(why),
        })?;
        Ok((object, self.with_scale_entries(resource, managed, entries)))
    }

    fn scale_manager(&self, options: &WriteOptions<'_>) -> Manager {
        Manager {
            api_version: self.catalog.scale().api_version.clone(),
            ..managed_fields::manager(self.catalog.scale(), options)
        }
    }

    fn scale_entries(&self, resource: &Arc<Resource>, managed: &ManagedFields) -> ManagedFields {
        let version = &self.catalog.scale().api_version;
        managed.of_scale(|version| self.replicas_place(resource, version), version, &FieldSet::of(REPLICAS))
    }

    fn with_scale_entries(
        &self,
        resource: &Arc<Resource>,
        managed: ManagedFields,
        scale: ManagedFields,
    ) -> ManagedFields {
        let place = |version: &str| self.replicas_place(resource, version);
        managed.with_scale(scale, place, &resource.api_version, &FieldSet::of(REPLICAS))
    }

    /// Where objects of a version keep their number of replicas.
    fn replicas_place(&self, resource: &Arc<Resource>, version: &str) -> Option<FieldSet> {
        let converted = Converted::default();
        self.field_versions(resource, &converted).type_in(version).ok()?;
        let steps: Vec<String> = resource.scale.as_ref()?.replicas.iter().map(|name| format!("f:{name}")).collect();
        Some(FieldSet::of(&[&steps.iter().map(String::as_str).collect::<Vec<_>>()]))
    }
}

/// A scale as it is shown: no replicas are not said.
fn without_zero(scale: &Object) -> Object {
    let mut scale = scale.clone();
    if scale.at(&["spec", "replicas"]).and_then(revisor_object::Value::as_i64) == Some(0) {
        scale.object_mut("spec").remove("replicas");
    }
    scale
}
