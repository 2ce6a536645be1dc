//! Reviews of access: may this subject do this?

use revisor_object::names::{label_value, qualified_name};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::problems;
use crate::{Part, Strategy};

/// Whom a review is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// Anybody, by name and groups.
    Subject,
    /// Anybody, in one namespace only.
    SubjectInNamespace,
    /// Who asks.
    Oneself,
    /// All that who asks may do.
    OwnRules,
}

pub(super) struct AccessReviews {
    pub(super) about: About,
}

impl Strategy for AccessReviews {
    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        if self.about == About::OwnRules {
            return errors;
        }
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        validate_subject_of_question(spec, &mut errors);
        let names_nobody = spec.str("user").unwrap_or_default().is_empty() && spec.array("groups").is_empty();
        if self.about != About::Oneself && names_nobody {
            errors.push(FieldError::invalid("spec.user", "", "at least one of user or group must be specified"));
        }
        validate_selectors(spec.object("resourceAttributes"), &mut errors);
        self.validate_metadata(object, &mut errors);
        if self.about == About::SubjectInNamespace {
            validate_namespace(object, spec, &mut errors);
        }
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        self.validate(object)
    }
}

impl AccessReviews {
    /// A question has no metadata, but for the namespace where it is about one.
    fn validate_metadata(&self, object: &Object, errors: &mut FieldErrors) {
        let Some(metadata) = object.object("metadata") else { return };
        let is_local = self.about == About::SubjectInNamespace;
        let is_expected = |name: &str| name == "managedFields" || (is_local && name == "namespace");
        if metadata.iter().any(|(name, value)| !is_expected(name) && !value.is_null()) {
            let detail = if is_local { "must be empty except for namespace" } else { "must be empty" };
            errors.push(FieldError::invalid("metadata", BadValue::of(metadata), detail));
        }
    }
}

/// Attributes of a path as they are quoted: by the names that Go calls them by.
fn quoted(of_path: &Object) -> BadValue {
    let text = |name| Value::from(of_path.str(name).unwrap_or_default());
    BadValue::of(&[("Path", text("path")), ("Verb", text("verb"))].into_iter().collect::<Object>())
}

fn validate_subject_of_question(spec: &Object, errors: &mut FieldErrors) {
    let (of_resource, of_path) = (spec.object("resourceAttributes"), spec.object("nonResourceAttributes"));
    match (of_resource, of_path) {
        (Some(_), Some(of_path)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            errors.push(FieldError::invalid("spec.nonResourceAttributes", quoted(of_path), detail));
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(FieldError::invalid("spec.resourceAttributes", BadValue::of(&Value::Null), detail));
        }
        _ => {}
    }
}

fn validate_selectors(of_resource: Option<&Object>, errors: &mut FieldErrors) {
    let root = FieldPath::root("spec.resourceAttributes");
    for (name, check) in
        [("fieldSelector", check_field as fn(FieldPath<'_>, &Object, &mut FieldErrors)), ("labelSelector", check_label)]
    {
        let Some(selector) = of_resource.and_then(|attributes| attributes.object(name)) else { continue };
        let path = root.child(name);
        let requirements = selector.array("requirements");
        match (selector.str("rawSelector").unwrap_or_default(), requirements.is_empty()) {
            ("", true) => {
                let detail = format!("when {path} is specified, requirements or rawSelector is required");
                errors.push(FieldError::required(path.child("requirements"), detail));
            }
            ("", false) | (_, true) => {}
            (raw, false) => {
                let detail = "may not specified at the same time as requirements";
                errors.push(FieldError::invalid(path.child("rawSelector"), raw, detail));
            }
        }
        let at_requirements = path.child("requirements");
        for (at, requirement) in requirements.iter().enumerate() {
            if let Some(requirement) = requirement.as_object() {
                check(at_requirements.index(at), requirement, errors);
            }
        }
    }
}

/// Operators that nobody knows are let pass: a newer client may know them.
fn check_values(path: FieldPath<'_>, requirement: &Object, errors: &mut FieldErrors) {
    let has_values = !requirement.array("values").is_empty();
    let values = path.child("values");
    match requirement.str("operator").unwrap_or_default() {
        "In" | "NotIn" if !has_values => {
            errors.push(FieldError::required(values, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if has_values => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(values, detail));
        }
        _ => {}
    }
}

fn check_field(path: FieldPath<'_>, requirement: &Object, errors: &mut FieldErrors) {
    if requirement.str("key").unwrap_or_default().is_empty() {
        errors.push(FieldError::required(path.child("key"), "must be specified"));
    }
    check_values(path, requirement, errors);
}

fn check_label(path: FieldPath<'_>, requirement: &Object, errors: &mut FieldErrors) {
    check_values(path, requirement, errors);
    let key = requirement.str("key").unwrap_or_default();
    errors.extend(problems(path.child("key"), key, qualified_name(key)));
    let values = path.child("values");
    for (at, value) in requirement.array("values").iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(problems(values.index(at), value, label_value(value)));
    }
}

fn validate_namespace(object: &Object, spec: &Object, errors: &mut FieldErrors) {
    let namespace = object.object("metadata").and_then(|metadata| metadata.str("namespace")).unwrap_or_default();
    if let Some(attributes) = spec.object("resourceAttributes") {
        let asked = attributes.str("namespace").unwrap_or_default();
        if asked != namespace {
            let detail = "must match metadata.namespace";
            errors.push(FieldError::invalid("spec.resourceAttributes.namespace", asked, detail));
        }
    }
    if let Some(attributes) = spec.object("nonResourceAttributes") {
        let detail = "disallowed on this kind of request";
        errors.push(FieldError::invalid("spec.nonResourceAttributes", quoted(attributes), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn questions_are_about_one_thing() {
        let attributes = "FieldValueInvalid spec.resourceAttributes";
        for (name, about, question, want) in [
            ("a path", About::Subject, r#"{"spec":{"user":"u","nonResourceAttributes":{}}}"#, &[][..]),
            ("groups", About::Subject, r#"{"spec":{"groups":["g"],"resourceAttributes":{}}}"#, &[]),
            ("nothing", About::Subject, "{}", &[attributes, "FieldValueInvalid spec.user"]),
            ("nothing of oneself", About::Oneself, "{}", &[attributes]),
            ("own rules", About::OwnRules, "{}", &[]),
            (
                "both",
                About::Oneself,
                r#"{"spec":{"nonResourceAttributes":{},"resourceAttributes":{}}}"#,
                &["FieldValueInvalid spec.nonResourceAttributes"],
            ),
            (
                "metadata",
                About::Oneself,
                r#"{"metadata":{"name":"a"},"spec":{"nonResourceAttributes":{}}}"#,
                &["FieldValueInvalid metadata"],
            ),
            (
                "another namespace",
                About::SubjectInNamespace,
                r#"{"metadata":{"namespace":"a"},"spec":{"user":"u","resourceAttributes":{"namespace":"b"}}}"#,
                &["FieldValueInvalid spec.resourceAttributes.namespace"],
            ),
            (
                "a path in a namespace",
                About::SubjectInNamespace,
                r#"{"metadata":{"namespace":"a"},"spec":{"user":"u","nonResourceAttributes":{}}}"#,
                &["FieldValueInvalid spec.nonResourceAttributes"],
            ),
        ] {
            check(name, &AccessReviews { about }.validate(&object(question)), want);
        }
    }

    #[test]
    fn attributes_of_paths_are_quoted_by_the_names_of_go_and_nobody_is_told_before_selectors() {
        let question = r#"{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"},
            "resourceAttributes":{"labelSelector":{}}}}"#;
        let errors = AccessReviews { about: About::Subject }.validate(&object(question));
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            told[0],
            r#"spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: cannot be specified in combination with resourceAttributes"#
        );
        let fields: Vec<bool> = told.iter().map(|text| text.starts_with("spec.user")).collect();
        assert_eq!(fields, [false, true, false]);
    }

    #[test]
    fn selectors_are_raw_or_in_parts() {
        let path = "spec.resourceAttributes.fieldSelector";
        for (selector, want) in [
            (r#"{"rawSelector":"a=b"}"#, vec![]),
            (r#"{"requirements":[{"key":"a","operator":"Newer"}]}"#, vec![]),
            ("{}", vec![format!("FieldValueRequired {path}.requirements")]),
            (
                r#"{"rawSelector":"a=b","requirements":[{"operator":"In"}]}"#,
                vec![
                    format!("FieldValueInvalid {path}.rawSelector"),
                    format!("FieldValueRequired {path}.requirements[0].key"),
                    format!("FieldValueRequired {path}.requirements[0].values"),
                ],
            ),
        ] {
            let question = format!(r#"{{"spec":{{"resourceAttributes":{{"fieldSelector":{selector}}}}}}}"#);
            let want: Vec<&str> = want.iter().map(String::as_str).collect();
            check(selector, &AccessReviews { about: About::Oneself }.validate(&object(&question)), &want);
        }
    }
}
