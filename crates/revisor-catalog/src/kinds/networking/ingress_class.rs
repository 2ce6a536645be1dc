//! IngressClasses: who looks after the Ingresses of a class.

use revisor_object::names::{dns1123_label, dns1123_subdomain, domain_prefixed_path, path_segment_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::{immutable, problems};
use crate::{Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const SCOPES: [&str; 2] = ["Cluster", "Namespace"];
const MAX_CONTROLLER: usize = 250;

pub(crate) struct IngressClasses;

impl Strategy for IngressClasses {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let path = SPEC.child("controller");
        let controller = object.at(&["spec", "controller"]).and_then(Value::as_str).unwrap_or_default();
        if controller.len() > MAX_CONTROLLER {
            errors.push(FieldError::too_long(path, MAX_CONTROLLER));
        }
        errors.extend(domain_prefixed_path(&path, controller));
        if let Some(parameters) = object.at(&["spec", "parameters"]).and_then(Value::as_object) {
            validate_parameters(SPEC.child("parameters"), parameters, &mut errors);
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let controller = ["spec", "controller"];
        let changed = immutable(SPEC.child("controller"), object.at(&controller), old.at(&controller));
        let mut errors: FieldErrors = changed.into_iter().collect();
        errors.extend(self.validate(object));
        errors
    }
}

fn validate_parameters(path: FieldPath<'_>, parameters: &Object, errors: &mut FieldErrors) {
    validate_reference(path, parameters, errors);
    let namespace_path = path.child("namespace");
    let namespace = parameters.str("namespace");
    match parameters.str("scope") {
        None => errors.push(FieldError::required(path.child("scope"), "")),
        Some("Namespace") => match namespace {
            Some(namespace) => errors.extend(problems(namespace_path, namespace, dns1123_label(namespace))),
            None => {
                errors.push(FieldError::required(namespace_path, "`parameters.scope` is set to 'Namespace'"));
            }
        },
        Some("Cluster") => {
            if namespace.is_some() {
                errors.push(FieldError::forbidden(namespace_path, "`parameters.scope` is set to 'Cluster'"));
            }
        }
        Some(scope) => errors.push(FieldError::not_supported(path.child("scope"), scope, &SCOPES)),
    }
}

/// What is wrong with a reference to an object of any kind: its group, kind and name.
pub(super) fn validate_reference(path: FieldPath<'_>, reference: &Object, errors: &mut FieldErrors) {
    if let Some(group) = reference.str("apiGroup") {
        errors.extend(problems(path.child("apiGroup"), group, dns1123_subdomain(group)));
    }
    for name in ["kind", "name"] {
        match reference.str(name).unwrap_or_default() {
            "" => errors.push(FieldError::required(path.child(name), "")),
            text => errors.extend(problems(path.child(name), text, path_segment_name(text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    #[test]
    fn controllers_have_a_domain_and_parameters_a_scope() {
        for (spec, want) in [
            (r#"{"controller":"a.b/c"}"#, vec![]),
            (r#"{"controller":"a.b/"}"#, vec!["spec.controller"]),
            ("{}", vec!["spec.controller"]),
            (r#"{"controller":"a.b/c","parameters":{"kind":"K","name":"n","scope":"Cluster"}}"#, vec![]),
            (
                r#"{"controller":"a.b/c","parameters":{"kind":"K","name":"n","scope":"Cluster","namespace":"x"}}"#,
                vec!["spec.parameters.namespace"],
            ),
            (
                r#"{"controller":"a.b/c","parameters":{"apiGroup":"A","scope":"Namespace"}}"#,
                vec![
                    "spec.parameters.apiGroup",
                    "spec.parameters.kind",
                    "spec.parameters.name",
                    "spec.parameters.namespace",
                ],
            ),
            (
                r#"{"controller":"a.b/c","parameters":{"kind":"K","name":"n","scope":"X"}}"#,
                vec!["spec.parameters.scope"],
            ),
        ] {
            let value = parse_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).expect("is JSON").value;
            let errors = IngressClasses.validate(value.as_object().expect("is an object"));
            assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), want, "{spec}");
        }
    }
}
