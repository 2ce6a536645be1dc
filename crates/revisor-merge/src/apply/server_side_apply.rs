//! Server-side apply: an object is made to agree with a configuration, and who applies it comes to manage what it says.

use revisor_object::Object;
use revisor_schema::{StructId, Types};

use super::compare::Comparison;
use super::conflict::Conflict;
use super::field_set::FieldSet;
use super::managed_fields::{ManagedFields, Manager};
use super::overlay::overlay;
use super::prune::remove;

/// An object to which a configuration was applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The object.
    pub object: Object,
    /// Who manages what of it.
    pub managed: ManagedFields,
}

/// Applies `config` to `live`, both of type `id` and without managed fields, in the name of `manager` at the time
/// `now`. Places that others manage and that would get another value are conflicts, unless `force` takes them over or
/// all of them are `allowed`.
/// `owned` says which of the places the manager may manage at all.
///
/// What the manager applied before and does not apply now is removed, unless others manage it too.
#[allow(clippy::too_many_arguments, reason = "one call from one place; a struct would only name them twice")]
pub fn server_side_apply(
    types: &Types,
    id: StructId,
    live: &Object,
    config: &Object,
    mut managed: ManagedFields,
    manager: &Manager,
    force: bool,
    allowed: &FieldSet,
    now: &str,
    owned: impl Fn(FieldSet) -> FieldSet,
) -> Result<Applied, Vec<Conflict>> {
    let mut object = live.clone();
    overlay(types, id, &mut object, config);
    let applied = owned(FieldSet::filled(types, id, config));
    let before = managed.begin_apply(manager, applied);
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        object = pruned(types, id, object, &before, &managed);
    }
    // What the manager may not manage is not changed either, whatever it says.
    let changes = Comparison::of(types, id, live, &object).only(owned);
    let conflicts = managed.conflicts(manager, &changes, allowed);
    if !force && !conflicts.is_empty() {
        return Err(conflicts);
    }
    managed.finish_apply(manager, &changes, (object != *live).then_some(now));
    Ok(Applied { object, managed })
}

/// The object without what its manager applied before and nobody manages any more.
fn pruned(types: &Types, id: StructId, merged: Object, before: &FieldSet, managed: &ManagedFields) -> Object {
    let without = |set: &FieldSet| {
        let mut object = merged.clone();
        remove(types, id, &mut object, set);
        object
    };
    let filled = |object: &Object| FieldSet::filled(types, id, object).with_named_fields(types, id);
    let before = before.with_named_fields(types, id);
    let all = filled(&merged);
    // First without all that was applied before; then back comes what anybody manages now; and what was not applied
    // before in the first place never goes.
    let stripped = filled(&without(&before));
    let kept = stripped.union(&managed.all().with_named_fields(types, id));
    let kept = filled(&without(&all.difference(&kept)));
    without(&all.difference(&kept).intersection(&before))
}
