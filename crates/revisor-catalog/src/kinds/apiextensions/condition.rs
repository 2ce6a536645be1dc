//! [`Condition`]: one condition in the status of a definition.

use revisor_object::{Object, Value};

use crate::kinds::members::text;

/// That the names of a definition are its own.
pub const NAMES_ACCEPTED: &str = "NamesAccepted";
/// That the resources of a definition are served.
pub const ESTABLISHED: &str = "Established";
/// That a definition is being deleted, and its objects with it.
pub const TERMINATING: &str = "Terminating";
/// That a schema of a definition is not structural.
pub const NON_STRUCTURAL_SCHEMA: &str = "NonStructuralSchema";
/// Whether a definition in a group of the community was approved.
pub const API_APPROVAL: &str = "KubernetesAPIApprovalPolicyConformant";

/// One condition in the status of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// What it is about.
    pub kind: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

impl Condition {
    /// A condition.
    pub fn new(
        kind: &'static str,
        status: &'static str,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Condition {
        Condition { kind, status, reason: reason.into(), message: message.into() }
    }

    /// Puts the condition into the status of a definition, in place of the one of its kind. The time of the last
    /// transition stays unless the truth changed.
    pub fn put(&self, definition: &mut Object, now: &str) {
        let status = definition.object_mut("status");
        let mut conditions = status.array("conditions").to_vec();
        let known =
            conditions.iter_mut().filter_map(Value::as_object_mut).find(|known| text(known, "type") == self.kind);
        let mut fresh = Object::new();
        let is_known = known.is_some();
        let condition = known.unwrap_or(&mut fresh);
        if text(condition, "status") != self.status || text(condition, "lastTransitionTime").is_empty() {
            condition.insert("lastTransitionTime", now);
        }
        condition.insert("type", self.kind);
        condition.insert("status", self.status);
        for (name, words) in [("reason", &self.reason), ("message", &self.message)] {
            condition.set(name, Some(words).filter(|words| !words.is_empty()).map(|words| Value::from(words.as_str())));
        }
        if !is_known {
            conditions.push(Value::from(fresh));
        }
        status.insert("conditions", conditions);
    }

    /// Whether the status of a definition says the same already.
    pub fn is_in(&self, definition: &Object) -> bool {
        find(definition, self.kind).is_some_and(|known| {
            text(known, "status") == self.status
                && text(known, "reason") == self.reason
                && text(known, "message") == self.message
        })
    }
}

/// The condition of this kind in the status of a definition.
pub(super) fn find<'a>(definition: &'a Object, kind: &str) -> Option<&'a Object> {
    let conditions = definition.object("status").map(|status| status.array("conditions")).unwrap_or_default();
    conditions.iter().filter_map(Value::as_object).find(|condition| text(condition, "type") == kind)
}

/// Whether the condition of this kind is there and true.
pub(super) fn is_true(definition: &Object, kind: &str) -> bool {
    find(definition, kind).is_some_and(|condition| text(condition, "status") == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn the_time_of_a_transition_stays_while_nothing_changes() {
        let mut definition = object("{}");
        for (status, now, want) in [("False", "t1", "t1"), ("False", "t2", "t1"), ("True", "t3", "t3")] {
            let condition = Condition::new(ESTABLISHED, status, "Why", now);
            assert!(!condition.is_in(&definition), "{now}");
            condition.put(&mut definition, now);
            assert!(condition.is_in(&definition), "{now}");
            let found = find(&definition, ESTABLISHED).expect("was put");
            assert_eq!((text(found, "lastTransitionTime"), text(found, "message")), (want, now));
        }
        assert!(is_true(&definition, ESTABLISHED) && !is_true(&definition, TERMINATING));
        Condition::new(TERMINATING, "True", "", "").put(&mut definition, "t4");
        assert_eq!(definition.object("status").map(|status| status.array("conditions").len()), Some(2));
    }
}
