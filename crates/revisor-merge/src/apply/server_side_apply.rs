//! Server-side apply: an object is made to agree with a configuration, and who applies it comes to manage what it says.

use std::borrow::Cow;

use revisor_object::Object;
use revisor_schema::{StructId, Types};

use super::conflict::Conflict;
use super::field_set::FieldSet;
use super::managed_fields::{ManagedFields, Manager};
use super::overlay::overlay;
use super::prune::remove;
use super::versions::{NO_VERSION, Replacement, Unconvertible, Versioned, Versions};

/// An object to which a configuration was applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The object.
    pub object: Object,
    /// Who manages what of it.
    pub managed: ManagedFields,
}

/// Why a configuration was not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyError {
    /// Others manage what would get another value.
    Conflicts(Vec<Conflict>),
    /// The object cannot be brought into the version of a manager, as clients are told.
    Unconvertible(String),
}

impl From<String> for ApplyError {
    fn from(why: String) -> ApplyError {
        ApplyError::Unconvertible(why)
    }
}

/// A configuration that somebody applies.
#[derive(Clone, Copy)]
pub struct Application<'a> {
    /// What is to be, in the version of its manager.
    pub config: &'a Object,
    /// Who applies it.
    pub manager: &'a Manager,
    /// Whether what others manage is taken over.
    pub force: bool,
    /// The places over which there is no conflict.
    pub allowed: &'a FieldSet,
    /// The time.
    pub now: &'a str,
}

/// Applies a configuration to `live`, which is in the version of the manager too, and has no managed fields. Places
/// that others manage and that would get another value are conflicts, unless they are taken over or all are allowed.
/// `owned` says which of the places the manager may manage at all.
///
/// What the manager applied before and does not apply now is removed, unless others manage it too.
pub fn server_side_apply(
    versions: &dyn Versions,
    live: &Object,
    mut managed: ManagedFields,
    application: Application<'_>,
    owned: impl Fn(FieldSet) -> FieldSet,
) -> Result<Applied, ApplyError> {
    let Application { config, manager, force, allowed, now } = application;
    let version = manager.api_version.as_str();
    let (types, id) = versions.type_in(version).map_err(|_| NO_VERSION.to_owned())?;
    managed.reconcile(versions, live, version)?;
    let mut object = live.clone();
    overlay(types, id, &mut object, config);
    let applied = owned(FieldSet::filled(types, id, config));
    if !managed.has_applied(manager, &applied) {
        let is_all_kept = managed.is_kept(manager, &applied);
        if let Some((before, before_version)) = managed.begin_apply(manager, applied).filter(|_| !is_all_kept) {
            let pruning = Pruning { versions, managed: &managed, before: &before, before_version: &before_version };
            let pruned = pruning.prune(&object, version);
            object = pruned.map_err(|why| format!("failed to prune fields: {why}"))?;
        }
    }
    let write = Replacement { versions, version, old: live, new: &object };
    // What the manager may not manage is not changed either, whatever it says.
    let changes = write.changes()?.only(&owned);
    let touched = managed.touched(manager, write, changes, owned)?;
    if !force {
        let conflicts = managed.conflicts(&touched, allowed);
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
    }
    managed.give_way(&touched);
    managed.finish_apply(manager, (object != *live).then_some(now));
    Ok(Applied { object, managed })
}

/// Taking out what a manager applied before and nobody manages any more.
struct Pruning<'a> {
    versions: &'a dyn Versions,
    managed: &'a ManagedFields,
    before: &'a FieldSet,
    before_version: &'a str,
}

impl Pruning<'_> {
    /// The merged object, which is in `version`, without what is to go.
    fn prune(&self, merged: &Object, version: &str) -> Result<Object, String> {
        let start = Versioned::new(merged, version);
        if self.before.is_empty() {
            return Ok(merged.clone());
        }
        let merged = match start.to(self.versions, self.before_version) {
            Ok(merged) => merged,
            Err(error) => {
                let why = error.during("failed to convert merged object to last applied version");
                return why.map_or_else(|| Ok(start.object.into_owned()), Err);
            }
        };
        let Ok((types, id)) = self.versions.type_in(self.before_version) else { return Ok(start.object.into_owned()) };
        let before = self.before.with_named_fields(types, id);
        // First without all that was applied before; then back comes what anybody manages now; and what was not
        // applied before in the first place never goes.
        let stripped = Versioned { object: Cow::Owned(without(types, id, &merged.object, &before)), ..merged.clone() };
        let owned = self.with_owned(merged.clone(), stripped);
        let kept = owned.map_err(|why| format!("failed add back owned items: {why}"))?;
        let kept = match kept.to(self.versions, self.before_version) {
            Ok(kept) => kept,
            Err(error) => {
                let why = error.during("failed to convert pruned object to last applied version");
                let why = why.map(|why| format!("failed add back dangling items: {why}"));
                return why.map_or_else(|| self.back(&merged, version), Err);
            }
        };
        let all = filled(types, id, &merged.object);
        let gone = all.difference(&filled(types, id, &kept.object)).intersection(&before);
        let pruned = Versioned { object: Cow::Owned(without(types, id, &merged.object, &gone)), ..merged };
        self.back(&pruned, version)
    }

    fn back(&self, object: &Versioned<'_>, version: &str) -> Result<Object, String> {
        if *object.version == *version {
            return Ok(object.object.clone().into_owned());
        }
        self.versions.convert(&object.object, &object.version, version).map_err(|error| match error {
            Unconvertible::NoSuchVersion => format!("no corresponding type for {version}"),
            Unconvertible::Failed(why) => why,
        })
    }

    /// The stripped object with what anybody manages put back, in the last of the versions of managers.
    fn with_owned<'a>(
        &'a self,
        mut merged: Versioned<'a>,
        mut stripped: Versioned<'a>,
    ) -> Result<Versioned<'a>, String> {
        for (version, managed) in self.managed.by_version(self.before_version) {
            match merged.to(self.versions, version) {
                Ok(brought) => merged = brought,
                Err(error) => match error.during(&format!("failed to convert merged object at version {version}")) {
                    Some(why) => return Err(why),
                    None => continue,
                },
            }
            match stripped.to(self.versions, version) {
                Ok(brought) => stripped = brought,
                Err(error) => match error.during(&format!("failed to convert pruned object at version {version}")) {
                    Some(why) => return Err(why),
                    None => continue,
                },
            }
            let Ok((types, id)) = self.versions.type_in(version) else { continue };
            let all = filled(types, id, &merged.object);
            let kept = filled(types, id, &stripped.object).union(&managed.with_named_fields(types, id));
            let object = without(types, id, &merged.object, &all.difference(&kept));
            stripped = Versioned { object: Cow::Owned(object), ..merged.clone() };
        }
        Ok(stripped)
    }
}

fn filled(types: &Types, id: StructId, object: &Object) -> FieldSet {
    FieldSet::filled(types, id, object).with_named_fields(types, id)
}

fn without(types: &Types, id: StructId, object: &Object, set: &FieldSet) -> Object {
    let mut object = object.clone();
    remove(types, id, &mut object, set);
    object
}
