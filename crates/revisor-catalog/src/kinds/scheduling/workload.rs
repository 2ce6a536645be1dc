//! Workloads: the groups of pods that belong together, as templates. Nothing of them changes later.

use std::collections::HashSet;

use revisor_object::names::{dns1123_label, dns1123_subdomain, path_segment_name};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use super::policy;
use crate::checks::problems;
use crate::kinds::workload::{spec, text};
use crate::{Circumstances, Features, Part, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const TEMPLATES: &str = "podGroupTemplates";
const MAX_TEMPLATES: usize = 8;

pub(crate) struct Workloads {
    pub(super) features: Features,
}

impl Strategy for Workloads {
    fn settle(&self, object: &mut Object, old: Option<&Object>, _: Circumstances<'_>) {
        let before = old.map(|old| spec(old).array(TEMPLATES)).unwrap_or_default();
        let templates = object.object_mut("spec").array_mut(TEMPLATES).into_iter().flatten();
        for (at, template) in templates.filter_map(Value::as_object_mut).enumerate() {
            let before = before.get(at).and_then(Value::as_object);
            policy::drop_disabled_fields(template, before, self.features);
            // It is always shown, and compared with what is stored.
            if !template.contains("schedulingConstraints") {
                template.insert("schedulingConstraints", Value::Null);
            }
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let spec = spec(object);
        let mut errors = FieldErrors::new();
        if let Some(controller) = spec.object("controllerRef") {
            errors.extend(validate_controller(SPEC.child("controllerRef"), controller));
        }
        let templates = spec.array(TEMPLATES);
        let path = SPEC.child(TEMPLATES);
        match count_problem(path, templates) {
            Some(problem) => errors.push(problem),
            None => errors.extend(validate_templates(path, templates)),
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let (spec, was) = (spec(object), spec(old));
        let mut errors = FieldErrors::new();
        for name in ["controllerRef", TEMPLATES] {
            if spec.get(name) != was.get(name) {
                let shown = BadValue::of(&Value::Null);
                errors.push(FieldError::invalid(SPEC.child(name), shown, "field is immutable"));
                if name == TEMPLATES {
                    errors.extend(count_problem(SPEC.child(name), spec.array(name)));
                }
            }
        }
        errors
    }
}

fn validate_controller(path: FieldPath<'_>, controller: &Object) -> FieldErrors {
    let group = text(controller, "apiGroup");
    let mut errors = FieldErrors::new();
    if !group.is_empty() {
        errors.extend(problems(path.child("apiGroup"), group, dns1123_subdomain(group)));
    }
    for name in ["kind", "name"] {
        let path = path.child(name);
        errors.extend(match text(controller, name) {
            "" => FieldErrors::from([FieldError::required(path, "")]),
            given => problems(path, given, path_segment_name(given)),
        });
    }
    errors
}

fn count_problem(path: FieldPath<'_>, templates: &[Value]) -> Option<FieldError> {
    match templates.len() {
        0 => Some(FieldError::required(path, "")),
        count => (count > MAX_TEMPLATES).then(|| FieldError::too_many(path, count, MAX_TEMPLATES)),
    }
}

fn validate_templates(path: FieldPath<'_>, templates: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut seen = HashSet::new();
    for (at, template) in templates.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let name = text(template, "name");
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(path, BadValue::of(template)));
        }
        if name.is_empty() {
            errors.push(FieldError::required(path.child("name"), ""));
        } else {
            errors.extend(problems(path.child("name"), name, dns1123_label(name)));
        }
        errors.extend(policy::validate(path, template));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object, terms};

    fn workloads() -> Workloads {
        Workloads { features: terms().features }
    }

    fn workload(spec: &str) -> Object {
        object(&format!(r#"{{"spec":{{{spec}}}}}"#))
    }

    const BASIC: &str = r#""schedulingPolicy":{"basic":{}}"#;

    #[test]
    fn templates_have_names_and_one_policy() {
        let template = |rest: &str| format!(r#""podGroupTemplates":[{{{rest}}}]"#);
        let many = (0..9).map(|at| format!(r#"{{"name":"a{at}",{BASIC}}}"#)).collect::<Vec<_>>().join(",");
        let policy = "FieldValueInvalid spec.podGroupTemplates[0].schedulingPolicy";
        let count = "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount";
        for (spec, want) in [
            (template(&format!(r#""name":"a",{BASIC}"#)), vec![]),
            (String::new(), vec!["FieldValueRequired spec.podGroupTemplates".to_owned()]),
            (format!(r#""podGroupTemplates":[{many}]"#), vec!["FieldValueTooMany spec.podGroupTemplates".to_owned()]),
            (template(BASIC), vec!["FieldValueRequired spec.podGroupTemplates[0].name".to_owned()]),
            (
                template(&format!(r#""name":"A",{BASIC}"#)),
                vec!["FieldValueInvalid spec.podGroupTemplates[0].name".to_owned()],
            ),
            (template(r#""name":"a""#), vec![policy.to_owned()]),
            (template(r#""name":"a","schedulingPolicy":{"basic":{},"gang":{"minCount":1}}"#), vec![policy.to_owned()]),
            (template(r#""name":"a","schedulingPolicy":{"gang":{}}"#), vec![format!("FieldValueRequired {count}")]),
            (
                template(r#""name":"a","schedulingPolicy":{"gang":{"minCount":-1}}"#),
                vec![format!("FieldValueInvalid {count}")],
            ),
            (
                format!(r#""podGroupTemplates":[{{"name":"a",{BASIC}}},{{"name":"a",{BASIC}}}]"#),
                vec!["FieldValueDuplicate spec.podGroupTemplates[1]".to_owned()],
            ),
            (
                format!(
                    r#""controllerRef":{{"apiGroup":"A","name":"a/b"}},"podGroupTemplates":[{{"name":"a",{BASIC}}}]"#
                ),
                vec![
                    "FieldValueInvalid spec.controllerRef.apiGroup".to_owned(),
                    "FieldValueRequired spec.controllerRef.kind".to_owned(),
                    "FieldValueInvalid spec.controllerRef.name".to_owned(),
                ],
            ),
        ] {
            let want: Vec<&str> = want.iter().map(String::as_str).collect();
            check(&spec, &workloads().validate(&workload(&spec)), &want);
        }
    }

    #[test]
    fn nothing_changes() {
        let old = workload(&format!(r#""podGroupTemplates":[{{"name":"a",{BASIC}}}]"#));
        let immutable = "FieldValueInvalid spec.podGroupTemplates";
        for (spec, want) in [
            (format!(r#""podGroupTemplates":[{{"name":"a",{BASIC}}}]"#), vec![]),
            (format!(r#""podGroupTemplates":[{{"name":"b",{BASIC}}}]"#), vec![immutable]),
            (String::new(), vec![immutable, "FieldValueRequired spec.podGroupTemplates"]),
            (
                format!(r#""controllerRef":{{"kind":"K","name":"n"}},"podGroupTemplates":[{{"name":"a",{BASIC}}}]"#),
                vec!["FieldValueInvalid spec.controllerRef"],
            ),
        ] {
            check(&spec, &workloads().validate_update(&workload(&spec), &old, Part::Whole), &want);
        }
    }
}
