//! Pod groups: pods that are scheduled together. What they are is decided when they are made.

use revisor_object::names::{dns1123_label, dns1123_subdomain};
use revisor_object::{BadValue, FieldError, FieldPath, Object, Value};

use super::policy;
use crate::checks::{problems, put_back};
use crate::kinds::conditions;
use crate::kinds::workload::{spec, status, text};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Circumstances, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STATUS: FieldPath<'static> = FieldPath::root("status");

/// What makes way for others: without the feature, every pod for itself.
const DISRUPTION_MODE: (&str, &str) = ("disruptionMode", "Pod");

pub(crate) struct PodGroups;

impl Strategy for PodGroups {
    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn settle(&self, object: &mut Object, _: Option<&Object>, _: Circumstances<'_>) {
        drop_disabled(object);
    }

    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, circumstances: Circumstances<'_>) {
        put_back(object, old, self.untouched(part));
        match part {
            Part::Whole => self.settle(object, Some(old), circumstances),
            // Groups have no claims, as the feature is off.
            Part::Subresource(_) => _ = object.object_mut("status").remove("resourceClaimStatuses"),
        }
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let spec = spec(object);
        let mut errors = Vec::new();
        if let Some(template) = spec.object("podGroupTemplateRef") {
            errors.extend(validate_template_ref(SPEC.child("podGroupTemplateRef"), template));
        }
        errors.extend(policy::validate(SPEC, spec));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> Vec<FieldError> {
        if part != Part::Whole {
            return conditions::validate(STATUS.child("conditions"), status(object).array("conditions"));
        }
        let given = |object, name| spec(object).get(name).filter(|value| !value.is_null());
        let changed = ["podGroupTemplateRef", "schedulingPolicy"]
            .into_iter()
            .filter(|name| given(object, name) != given(old, name));
        let immutable = |name| FieldError::invalid(SPEC.child(name), BadValue::of(&Value::Null), "field is immutable");
        changed.map(immutable).collect()
    }
}

fn drop_disabled(object: &mut Object) {
    let spec = object.object_mut("spec");
    spec.retain(|name, _| !policy::OFF.contains(&name));
    let (name, mode) = DISRUPTION_MODE;
    spec.insert(name, mode);
}

fn validate_template_ref(path: FieldPath<'_>, template: &Object) -> Vec<FieldError> {
    let Some(workload) = template.object("workload") else {
        return vec![FieldError::invalid(path, "", "must specify one of: `workload`")];
    };
    let path = path.child("workload");
    let rules = [("workloadName", dns1123_subdomain as fn(&str) -> _), ("podGroupTemplateName", dns1123_label)];
    let mut errors = Vec::new();
    for (name, rule) in rules {
        let path = path.child(name);
        errors.extend(match text(workload, name) {
            "" => vec![FieldError::required(path, "")],
            given => problems(path, given, rule(given)),
        });
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

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
            check(&spec, &PodGroups.validate(&group(&spec)), &want);
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
            check(&spec, &PodGroups.validate_update(&group(&spec), &old, Part::Whole), &want);
        }
    }

    #[test]
    fn what_needs_a_feature_that_is_off_is_dropped() {
        let mut new = group(&format!(r#"{BASIC},"disruptionMode":"PodGroup","priority":1,"resourceClaims":[]"#));
        drop_disabled(&mut new);
        assert_eq!(new, group(&format!(r#"{BASIC},"disruptionMode":"Pod""#)));
    }
}
