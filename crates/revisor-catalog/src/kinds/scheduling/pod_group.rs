//! Pod groups: pods that are scheduled together. What they are is decided when they are made.

use revisor_object::names::{dns1123_label, dns1123_subdomain};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use super::policy;
use crate::checks::problems;
use crate::kinds::conditions;
use crate::kinds::workload::{fill, spec, status, text};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Circumstances, Features, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const MAX_CLAIM_STATUSES: usize = 4;

const STATUS: FieldPath<'static> = FieldPath::root("status");

/// What makes way for others, if nothing else is said: every pod for itself.
const DISRUPTION_MODE: (&str, &str) = ("disruptionMode", "Pod");

pub(crate) struct PodGroups {
    pub(super) features: Features,
}

impl Strategy for PodGroups {
    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn settle(&self, object: &mut Object, old: Option<&Object>, _: Circumstances<'_>) {
        let group = object.object_mut("spec");
        policy::drop_disabled_fields(group, old.map(spec), self.features);
        let (name, mode) = DISRUPTION_MODE;
        fill(group, name, mode);
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let spec = spec(object);
        let mut errors = FieldErrors::new();
        if let Some(template) = spec.object("podGroupTemplateRef") {
            errors.extend(validate_template_ref(SPEC.child("podGroupTemplateRef"), template));
        }
        errors.extend(policy::validate(SPEC, spec));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part != Part::Whole {
            return validate_status(object);
        }
        let given = |object, name| policy::given(spec(object), name);
        let changed = ["podGroupTemplateRef", "schedulingPolicy"]
            .into_iter()
            .filter(|name| given(object, name) != given(old, name));
        let immutable = |name| FieldError::invalid(SPEC.child(name), BadValue::of(&Value::Null), "field is immutable");
        let mut errors: FieldErrors = changed.map(immutable).collect();
        errors.extend(policy::validate_changes(SPEC, spec(object), spec(old), self.features));
        errors
    }
}

fn validate_status(object: &Object) -> FieldErrors {
    let mut errors = conditions::validate(STATUS.child("conditions"), status(object).array("conditions"));
    let path = STATUS.child("resourceClaimStatuses");
    let claims = status(object).array("resourceClaimStatuses");
    if claims.len() > MAX_CLAIM_STATUSES {
        errors.push(FieldError::too_many(path, claims.len(), MAX_CLAIM_STATUSES));
        return errors;
    }
    for (at, claim) in claims.iter().filter_map(Value::as_object).enumerate() {
        let (name, path) = (text(claim, "name"), path.index(at));
        let mut known = spec(object).array("resourceClaims").iter().filter_map(Value::as_object);
        if !known.any(|known| text(known, "name") == name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(path.child("name"), name, detail));
        }
        let is_again = claims[..at].iter().filter_map(Value::as_object).any(|before| text(before, "name") == name);
        if is_again {
            errors.push(FieldError::duplicate(path, BadValue::of(claim)));
        }
        if let Some(name) = claim.str("resourceClaimName") {
            errors.extend(problems(path.child("resourceClaimName"), name, dns1123_subdomain(name)));
        }
    }
    errors
}

fn validate_template_ref(path: FieldPath<'_>, template: &Object) -> FieldErrors {
    let Some(workload) = template.object("workload") else {
        return FieldErrors::from([FieldError::invalid(path, "", "must specify one of: `workload`")]);
    };
    let path = path.child("workload");
    let rules = [("workloadName", dns1123_subdomain as fn(&str) -> _), ("podGroupTemplateName", dns1123_label)];
    let mut errors = FieldErrors::new();
    for (name, rule) in rules {
        let path = path.child(name);
        errors.extend(match text(workload, name) {
            "" => FieldErrors::from([FieldError::required(path, "")]),
            given => problems(path, given, rule(given)),
        });
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Requester;
    use crate::kinds::tests::{check, object, terms};

    fn groups() -> PodGroups {
        PodGroups { features: terms().features }
    }

    fn group(spec: &str) -> Object {
        object(&format!(r#"{{"spec":{{{spec}}}}}"#))
    }

    const BASIC: &str = r#""schedulingPolicy":{"basic":{}}"#;

    #[test]
    fn groups_have_a_policy_and_perhaps_a_template() {
        let from = |reference: &str| format!(r#""podGroupTemplateRef":{reference},{BASIC}"#);
        let workload = "spec.podGroupTemplateRef.workload";
        for (spec, want) in [
            (BASIC.to_owned(), vec![]),
            (String::new(), vec!["FieldValueInvalid spec.schedulingPolicy".to_owned()]),
            (from("{}"), vec!["FieldValueInvalid spec.podGroupTemplateRef".to_owned()]),
            (from(r#"{"workload":{"workloadName":"a","podGroupTemplateName":"b"}}"#), vec![]),
            (
                from(r#"{"workload":{"podGroupTemplateName":"a.b"}}"#),
                vec![
                    format!("FieldValueRequired {workload}.workloadName"),
                    format!("FieldValueInvalid {workload}.podGroupTemplateName"),
                ],
            ),
        ] {
            let want: Vec<&str> = want.iter().map(String::as_str).collect();
            check(&spec, &groups().validate(&group(&spec)), &want);
        }
    }

    #[test]
    fn what_a_group_is_does_not_change() {
        let old = group(BASIC);
        for (spec, want) in [
            (BASIC.to_owned(), vec![]),
            (format!(r#"{BASIC},"podGroupTemplateRef":null"#), vec![]),
            (
                r#""schedulingPolicy":{"gang":{"minCount":2}}"#.to_owned(),
                vec!["FieldValueInvalid spec.schedulingPolicy"],
            ),
        ] {
            check(&spec, &groups().validate_update(&group(&spec), &old, Part::Whole), &want);
        }
    }

    #[test]
    fn what_needs_a_feature_that_is_off_is_dropped() {
        let mut new = group(&format!(r#"{BASIC},"disruptionMode":"PodGroup","priority":1,"resourceClaims":[]"#));
        let nobody = Circumstances { now: "", requester: Requester::default() };
        groups().settle(&mut new, None, nobody);
        assert_eq!(new, group(&format!(r#"{BASIC},"disruptionMode":"Pod""#)));
    }
}
