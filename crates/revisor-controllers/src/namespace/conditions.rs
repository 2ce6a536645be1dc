//! The conditions by which a namespace tells how far its deletion is. Types, reasons and messages are the original's.

use revisor_object::{Object, Value};
use revisor_schema::{Precision, format_timestamp};
use time::OffsetDateTime;

use super::content::Content;

/// One condition: what it is about, and what is the case if it is true, else nothing.
pub(super) struct Condition {
    kind: &'static str,
    problem: Option<(&'static str, String)>,
    well: (&'static str, &'static str),
}

/// How it begins what is told of servers that could not be asked what they have.
pub(super) const DISCOVERY_PROBLEM: &str = "unable to retrieve the complete list of server APIs";

/// What the state of the content means.
///
/// DIFFERENCE: while pods are waited for, the original says that no content remains; here they are counted.
pub(super) fn of(content: &Content) -> [Condition; 5] {
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts.join(", ")
    };
    // What cannot be discovered is told by itself.
    let is_discovery = |error: &&String| error.starts_with(DISCOVERY_PROBLEM);
    let undiscovered = (!content.undiscovered.is_empty()).then(|| {
        let count = content.undiscovered.len();
        let why = content.errors.iter().find(is_discovery).cloned().unwrap_or_default();
        ("DiscoveryFailed", format!("Discovery failed for some groups, {count} failing: {why}"))
    });
    let errors: Vec<String> = content.errors.iter().filter(|error| !is_discovery(error)).cloned().collect();
    let failures = (!errors.is_empty()).then(|| {
        let count = errors.len();
        let errors = sorted(errors);
        ("ContentDeletionFailed", format!("Failed to delete all resource types, {count} remaining: {errors}"))
    });
    let remaining = (!content.remaining.is_empty()).then(|| {
        let counted = content.remaining.iter().map(|(name, count)| format!("{name} has {count} resource instances"));
        ("SomeResourcesRemain", format!("Some resources are remaining: {}", sorted(counted.collect())))
    });
    let finalizers = (!content.finalizers.is_empty()).then(|| {
        let counted = content.finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances"));
        let counted = sorted(counted.collect());
        ("SomeFinalizersRemain", format!("Some content in the namespace has finalizers remaining: {counted}"))
    });
    [
        Condition {
            kind: "NamespaceDeletionDiscoveryFailure",
            problem: undiscovered,
            well: ("ResourcesDiscovered", "All resources successfully discovered"),
        },
        Condition {
            kind: "NamespaceDeletionGroupVersionParsingFailure",
            problem: None,
            well: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
        },
        Condition {
            kind: "NamespaceDeletionContentFailure",
            problem: failures,
            well: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
        },
        Condition {
            kind: "NamespaceContentRemaining",
            problem: remaining,
            well: ("ContentRemoved", "All content successfully removed"),
        },
        Condition {
            kind: "NamespaceFinalizersRemaining",
            problem: finalizers,
            well: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
        },
    ]
}

/// The conditions of a namespace brought up to date; `None` if they are.
pub(super) fn merge(mut known: Vec<Value>, found: &[Condition], now: OffsetDateTime) -> Option<Vec<Value>> {
    let mut has_changed = false;
    for condition in found {
        let is_same = |known: &Value| known.as_object().and_then(|known| known.str("type")) == Some(condition.kind);
        let at = known.iter().position(is_same);
        let old = at.and_then(|at| known[at].as_object()).cloned().unwrap_or_default();
        let new = condition.over(&old, now);
        if new == old {
            continue;
        }
        has_changed = true;
        match at {
            Some(at) => known[at] = new.into(),
            None => known.push(new.into()),
        }
    }
    has_changed.then_some(known)
}

impl Condition {
    /// This condition in place of the old one, which keeps its time while its status is the same.
    fn over(&self, old: &Object, now: OffsetDateTime) -> Object {
        let (status, reason, message) = match &self.problem {
            Some((reason, message)) => ("True", *reason, message.as_str()),
            None => ("False", self.well.0, self.well.1),
        };
        let mut condition = old.clone();
        if old.str("status") != Some(status) {
            condition.insert("lastTransitionTime", format_timestamp(now, Precision::Seconds));
        }
        for (name, value) in [("type", self.kind), ("status", status), ("reason", reason), ("message", message)] {
            condition.insert(name, value);
        }
        condition
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(conditions: &[Value]) -> Vec<[&str; 4]> {
        let text = |condition: &'_ Value, name| condition.as_object().and_then(|object| object.str(name)).is_some();
        assert!(conditions.iter().all(|condition| text(condition, "lastTransitionTime")));
        let fields = ["type", "status", "reason", "message"];
        conditions
            .iter()
            .map(|condition| {
                fields.map(|name| condition.as_object().and_then(|object| object.str(name)).unwrap_or_default())
            })
            .collect()
    }

    #[test]
    fn conditions_say_what_is_left_and_why() {
        let mut content = Content::default();
        content.remaining.extend([("configmaps.".to_owned(), 2), ("leases.coordination.k8s.io".to_owned(), 1)]);
        content.finalizers.extend([("e.com/b".to_owned(), 1), ("e.com/a".to_owned(), 2)]);
        content.errors.push("no".to_owned());
        let now = OffsetDateTime::UNIX_EPOCH;
        let merged = merge(Vec::new(), &of(&content), now).expect("all are new");
        assert_eq!(
            texts(&merged),
            [
                [
                    "NamespaceDeletionDiscoveryFailure",
                    "False",
                    "ResourcesDiscovered",
                    "All resources successfully discovered"
                ],
                [
                    "NamespaceDeletionGroupVersionParsingFailure",
                    "False",
                    "ParsedGroupVersions",
                    "All legacy kube types successfully parsed"
                ],
                [
                    "NamespaceDeletionContentFailure",
                    "True",
                    "ContentDeletionFailed",
                    "Failed to delete all resource types, 1 remaining: no"
                ],
                [
                    "NamespaceContentRemaining",
                    "True",
                    "SomeResourcesRemain",
                    "Some resources are remaining: configmaps. has 2 resource instances, leases.coordination.k8s.io has 1 resource instances"
                ],
                [
                    "NamespaceFinalizersRemaining",
                    "True",
                    "SomeFinalizersRemain",
                    "Some content in the namespace has finalizers remaining: e.com/a in 2 resource instances, e.com/b in 1 resource instances"
                ],
            ]
        );
        assert_eq!(merge(merged, &of(&content), now), None, "nothing is new");
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_is_the_same() {
        let mut content = Content::default();
        content.remaining.insert("configmaps.".to_owned(), 2);
        let at = |seconds| OffsetDateTime::from_unix_timestamp(seconds).expect("a time");
        let first = merge(Vec::new(), &of(&content), at(0)).expect("all are new");
        content.remaining.insert("configmaps.".to_owned(), 1);
        let second = merge(first, &of(&content), at(60)).expect("a message is new");
        content.remaining.clear();
        let third = merge(second.clone(), &of(&content), at(120)).expect("a status is new");
        let time = |conditions: &[Value]| {
            conditions[3].as_object().and_then(|object| object.str("lastTransitionTime")).map(str::to_owned)
        };
        assert_eq!(time(&second).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(time(&third).as_deref(), Some("1970-01-01T00:02:00Z"));
    }
}
