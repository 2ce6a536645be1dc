//! What pod groups and the templates for them have in common: how the pods of a group are scheduled, and the members
//! that belong to features which are off.

use revisor_object::{FieldError, FieldPath, Object};

use crate::kinds::workload::{NOTHING, number};

/// Members of features that are off. They cannot be set, so no stored object has them.
pub(super) const OFF: [&str; 5] =
    ["disruptionMode", "priority", "priorityClassName", "resourceClaims", "schedulingConstraints"];

/// What is wrong with the scheduling policy of a group or a template, which is at this path.
pub(super) fn validate(path: FieldPath<'_>, holder: &Object) -> Vec<FieldError> {
    let path = path.child("schedulingPolicy");
    let policy = holder.object("schedulingPolicy").unwrap_or(NOTHING);
    let mut errors = Vec::new();
    match (policy.contains("basic"), policy.contains("gang")) {
        (false, false) => errors.push(FieldError::invalid(path, "", "must specify one of: `basic`, `gang`")),
        (true, true) => {
            let detail = "must specify exactly one of: `basic`, `gang`";
            errors.push(FieldError::invalid(path, "{basic, gang}", detail));
        }
        _ => {}
    }
    if let Some(gang) = policy.object("gang") {
        let at_gang = path.child("gang");
        let at_count = at_gang.child("minCount");
        match number(gang, "minCount") {
            0 => errors.push(FieldError::required(at_count, "")),
            count if count < 0 => {
                errors.push(FieldError::invalid(at_count, count, "must be greater than or equal to 1"));
            }
            _ => {}
        }
    }
    errors
}
