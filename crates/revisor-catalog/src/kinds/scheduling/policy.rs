//! What pod groups and the templates for them have in common: how the pods of a group are scheduled, and the members
//! that are features of their own.

use std::collections::HashSet;

use revisor_object::names::{dns1123_label, dns1123_subdomain, qualified_name};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::{one_of, problems};
use crate::kinds::members::{given_number, objects, text};
use crate::kinds::workload::{NOTHING, number};
use crate::{Feature, Features};

/// Members that are features.
const GATED: [(Feature, &str); 5] = [
    (Feature::TopologyAwareWorkloadScheduling, "schedulingConstraints"),
    (Feature::DRAWorkloadResourceClaims, "resourceClaims"),
    (Feature::WorkloadAwarePreemption, "disruptionMode"),
    (Feature::WorkloadAwarePreemption, "priorityClassName"),
    (Feature::WorkloadAwarePreemption, "priority"),
];

const DISRUPTION_MODES: &[&str] = &["Pod", "PodGroup"];
const CLAIM_SOURCES: [&str; 2] = ["resourceClaimName", "resourceClaimTemplateName"];
const MAX_CONSTRAINTS: usize = 1;
const MAX_CLAIMS: usize = 4;
const MAX_PRIORITY: i64 = 1_000_000_000;

/// A member that is there, and not only to say that it is not.
pub(super) fn given<'a>(holder: &'a Object, name: &str) -> Option<&'a Value> {
    holder.get(name).filter(|value| !value.is_null())
}

/// Drops the members of a group or a template whose feature is off, unless the old one has them already.
pub(super) fn drop_disabled_fields(holder: &mut Object, old: Option<&Object>, features: Features) {
    for (feature, name) in GATED {
        if !features.has(feature) && old.is_none_or(|old| given(old, name).is_none()) {
            holder.remove(name);
        }
    }
}

/// What is wrong with changes of the members that are features: they are fixed, and without the feature cannot be given.
pub(super) fn validate_changes(path: FieldPath<'_>, holder: &Object, old: &Object, features: Features) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (feature, name) in GATED {
        if given(holder, name) == given(old, name) {
            continue;
        }
        let path = path.child(name);
        if features.has(feature) || name == "resourceClaims" {
            errors.push(FieldError::invalid(path, BadValue::of(&Value::Null), "field is immutable"));
        } else if given(holder, name).is_some() {
            errors.push(FieldError::forbidden(path, ""));
        }
    }
    errors
}

/// What is wrong with a new group or template, which is at this path.
pub(super) fn validate(path: FieldPath<'_>, holder: &Object) -> FieldErrors {
    let mut errors = validate_policy(path.child("schedulingPolicy"), holder);
    if let Some(constraints) = holder.object("schedulingConstraints") {
        let path = path.child("schedulingConstraints");
        errors.extend(validate_constraints(path.child("topology"), constraints));
    }
    errors.extend(validate_claims(path.child("resourceClaims"), holder));
    if let Some(mode) = holder.str("disruptionMode") {
        errors.extend(one_of(path.child("disruptionMode"), mode, DISRUPTION_MODES));
    }
    let class = text(holder, "priorityClassName");
    if !class.is_empty() {
        errors.extend(problems(path.child("priorityClassName"), class, dns1123_subdomain(class)));
    }
    if let Some(priority) = given_number(holder, "priority").filter(|priority| *priority > MAX_PRIORITY) {
        let detail = format!("must be less than or equal to {MAX_PRIORITY}");
        errors.push(FieldError::invalid(path.child("priority"), priority, detail));
    }
    errors
}

fn validate_policy(path: FieldPath<'_>, holder: &Object) -> FieldErrors {
    let policy = holder.object("schedulingPolicy").unwrap_or(NOTHING);
    let mut errors = FieldErrors::new();
    errors.extend(one_member(path, policy, ["basic", "gang"]));
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

/// The error that not exactly one of two members is given.
fn one_member(path: FieldPath<'_>, holder: &Object, [one, other]: [&str; 2]) -> Option<FieldError> {
    match (holder.contains(one), holder.contains(other)) {
        (false, false) => Some(FieldError::invalid(path, "", format!("must specify one of: `{one}`, `{other}`"))),
        (true, true) => {
            let detail = format!("must specify exactly one of: `{one}`, `{other}`");
            Some(FieldError::invalid(path, format!("{{{one}, {other}}}"), detail))
        }
        _ => None,
    }
}

fn validate_constraints(path: FieldPath<'_>, constraints: &Object) -> FieldErrors {
    let count = constraints.array("topology").len();
    if count > MAX_CONSTRAINTS {
        return FieldErrors::from([FieldError::too_many(path, count, MAX_CONSTRAINTS)]);
    }
    let mut errors = FieldErrors::new();
    for (at, constraint) in objects(constraints, "topology") {
        let path = path.index(at);
        let path = path.child("key");
        match text(constraint, "key") {
            "" => errors.push(FieldError::required(path, "")),
            key => errors.extend(problems(path, key, qualified_name(key))),
        }
    }
    errors
}

fn validate_claims(path: FieldPath<'_>, holder: &Object) -> FieldErrors {
    let count = holder.array("resourceClaims").len();
    if count > MAX_CLAIMS {
        return FieldErrors::from([FieldError::too_many(path, count, MAX_CLAIMS)]);
    }
    let mut errors = FieldErrors::new();
    let mut names = HashSet::new();
    for (at, claim) in objects(holder, "resourceClaims") {
        if !names.insert(text(claim, "name")) {
            errors.push(FieldError::duplicate(path.index(at), BadValue::of(claim)));
        }
    }
    for (at, claim) in objects(holder, "resourceClaims") {
        let path = path.index(at);
        errors.extend(one_member(path, claim, CLAIM_SOURCES));
        match text(claim, "name") {
            "" => errors.push(FieldError::required(path.child("name"), "")),
            name => errors.extend(problems(path.child("name"), name, dns1123_label(name))),
        }
        for source in CLAIM_SOURCES {
            if let Some(name) = claim.str(source) {
                errors.extend(problems(path.child(source), name, dns1123_subdomain(name)));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object, terms};

    const BASIC: &str = r#""schedulingPolicy":{"basic":{}}"#;

    #[test]
    fn members_of_features_are_checked() {
        for (members, want) in [
            (r#""schedulingConstraints":{"topology":[{"key":"a/b"}]}"#, vec![]),
            (r#""schedulingConstraints":{}"#, vec![]),
            (
                r#""schedulingConstraints":{"topology":[{}]}"#,
                vec!["FieldValueRequired spec.schedulingConstraints.topology[0].key"],
            ),
            (
                r#""schedulingConstraints":{"topology":[{"key":"a"},{"key":"b"}]}"#,
                vec!["FieldValueTooMany spec.schedulingConstraints.topology"],
            ),
            (r#""resourceClaims":[{"name":"c","resourceClaimName":"x"}]"#, vec![]),
            (
                r#""resourceClaims":[{"name":"c","resourceClaimName":"x"},{"name":"c","resourceClaimName":"x"}]"#,
                vec!["FieldValueDuplicate spec.resourceClaims[1]"],
            ),
            (
                r#""resourceClaims":[{"name":"c.d"},{"resourceClaimName":"x","resourceClaimTemplateName":"y"}]"#,
                vec![
                    "FieldValueInvalid spec.resourceClaims[0]",
                    "FieldValueInvalid spec.resourceClaims[0].name",
                    "FieldValueInvalid spec.resourceClaims[1]",
                    "FieldValueRequired spec.resourceClaims[1].name",
                ],
            ),
            (r#""disruptionMode":"X""#, vec!["FieldValueNotSupported spec.disruptionMode"]),
            (r#""priorityClassName":"A B""#, vec!["FieldValueInvalid spec.priorityClassName"]),
            (r#""priority":1000000001"#, vec!["FieldValueInvalid spec.priority"]),
            (r#""priority":1000000000,"disruptionMode":"PodGroup""#, vec![]),
        ] {
            check(members, &validate(FieldPath::root("spec"), &object(&format!("{{{BASIC},{members}}}"))), &want);
        }
    }

    #[test]
    fn members_are_dropped_and_fixed_by_their_features() {
        let value = |name: &str| match name {
            "priority" => "1",
            "resourceClaims" => "[{}]",
            "schedulingConstraints" => "{}",
            _ => r#""x""#,
        };
        for (feature, name) in GATED {
            let given = object(&format!(r#"{{"{name}":{}}}"#, value(name)));
            let none = Object::new();
            let (on, off) = (terms().features.with(feature), terms().features.without(feature));
            for (features, old, want) in
                [(on, None, &given), (off, None, &none), (off, Some(&none), &none), (off, Some(&given), &given)]
            {
                let mut new = given.clone();
                drop_disabled_fields(&mut new, old, features);
                assert_eq!(new, *want, "{name}");
            }
            let path = FieldPath::root("spec");
            assert_eq!(validate_changes(path, &given, &given, off).len(), 0, "{name}");
            assert_eq!(validate_changes(path, &given, &none, on)[0].detail, "field is immutable", "{name}");
            assert_eq!(validate_changes(path, &given, &none, off).len(), 1, "{name}");
        }
    }
}
