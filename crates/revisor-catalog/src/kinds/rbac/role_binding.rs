//! RoleBindings and ClusterRoleBindings: who has a role. The role of a binding is for good.

use revisor_object::names::{dns1123_subdomain, path_segment_name};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use super::GROUP;
use crate::checks::{one_of, problems, required};
use crate::{Part, Strategy};

const SUBJECT_KINDS: [&str; 3] = ["ServiceAccount", "User", "Group"];

pub(crate) struct RoleBindings;

impl Strategy for RoleBindings {
    fn default(&self, object: &mut Object) {
        default_subjects(object);
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_binding(object, true, &["Role", "ClusterRole"])
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        with_the_same_role(object, old, self.validate(object))
    }
}

pub(crate) struct ClusterRoleBindings;

impl Strategy for ClusterRoleBindings {
    fn default(&self, object: &mut Object) {
        default_subjects(object);
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_binding(object, false, &["ClusterRole"])
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        with_the_same_role(object, old, self.validate(object))
    }
}

/// Users and groups are of this group; service accounts are of the core group, whose name is empty.
fn default_subjects(object: &mut Object) {
    for subject in object.array_mut("subjects").into_iter().flatten().filter_map(Value::as_object_mut) {
        let is_unset = subject.str("apiGroup").unwrap_or_default().is_empty();
        if is_unset && matches!(subject.str("kind"), Some("User" | "Group")) {
            subject.insert("apiGroup", GROUP);
        }
    }
}

fn validate_binding(object: &Object, namespaced: bool, kinds: &[&str]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let path = FieldPath::root("roleRef");
    let role = object.object("roleRef");
    let text = |name| role.and_then(|role| role.str(name)).unwrap_or_default();
    errors.extend(one_of(path.child("apiGroup"), text("apiGroup"), &[GROUP]));
    errors.extend(one_of(path.child("kind"), text("kind"), kinds));
    errors.extend(required(path.child("name"), text("name")));
    errors.extend(problems(path.child("name"), text("name"), path_segment_name(text("name"))));
    let subjects = FieldPath::root("subjects");
    for (at, subject) in object.array("subjects").iter().enumerate() {
        if let Some(subject) = subject.as_object() {
            validate_subject(subject, namespaced, subjects.index(at), &mut errors);
        }
    }
    errors
}

fn validate_subject(subject: &Object, namespaced: bool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let text = |name| subject.str(name).unwrap_or_default();
    errors.extend(required(path.child("name"), text("name")));
    match text("kind") {
        "ServiceAccount" => {
            if !text("name").is_empty() {
                errors.extend(problems(path.child("name"), text("name"), dns1123_subdomain(text("name"))));
            }
            errors.extend(one_of(path.child("apiGroup"), text("apiGroup"), &[""]));
            if !namespaced {
                errors.extend(required(path.child("namespace"), text("namespace")));
            }
        }
        "User" | "Group" => errors.extend(one_of(path.child("apiGroup"), text("apiGroup"), &[GROUP])),
        other => errors.push(FieldError::not_supported(path.child("kind"), other, &SUBJECT_KINDS)),
    }
}

fn with_the_same_role(object: &Object, old: &Object, mut errors: FieldErrors) -> FieldErrors {
    if object.get("roleRef") != old.get("roleRef") {
        let shown = BadValue::of(&object.get("roleRef"));
        errors.push(FieldError::invalid("roleRef", shown, "cannot change roleRef"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn subjects_are_checked_by_their_kind() {
        let of_role = r#""roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}"#;
        for (subject, in_namespace, in_cluster) in [
            (r#"{"kind":"User","name":"u"}"#, &[][..], &[][..]),
            (r#"{"kind":"Group","name":"a:b"}"#, &[], &[]),
            (
                r#"{"kind":"User","apiGroup":"other","name":"u"}"#,
                &["FieldValueNotSupported subjects[0].apiGroup"],
                &["FieldValueNotSupported subjects[0].apiGroup"],
            ),
            (r#"{"kind":"ServiceAccount","name":"s"}"#, &[], &["FieldValueRequired subjects[0].namespace"]),
            (
                r#"{"kind":"ServiceAccount","name":"S","namespace":"n","apiGroup":"x"}"#,
                &["FieldValueInvalid subjects[0].name", "FieldValueNotSupported subjects[0].apiGroup"],
                &["FieldValueInvalid subjects[0].name", "FieldValueNotSupported subjects[0].apiGroup"],
            ),
            (
                r#"{"kind":"Pod"}"#,
                &["FieldValueRequired subjects[0].name", "FieldValueNotSupported subjects[0].kind"],
                &["FieldValueRequired subjects[0].name", "FieldValueNotSupported subjects[0].kind"],
            ),
        ] {
            let mut binding = object(&format!(r#"{{{of_role},"subjects":[{subject}]}}"#));
            RoleBindings.default(&mut binding);
            check(subject, &RoleBindings.validate(&binding), in_namespace);
            check(subject, &ClusterRoleBindings.validate(&binding), in_cluster);
        }
    }

    #[test]
    fn a_binding_names_a_role_and_keeps_it() {
        let role = |kind, name| {
            object(&format!(
                r#"{{"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"{kind}","name":"{name}"}}}}"#
            ))
        };
        check("a role", &RoleBindings.validate(&role("Role", "a:b")), &[]);
        check(
            "a role for all",
            &ClusterRoleBindings.validate(&role("Role", "r")),
            &["FieldValueNotSupported roleRef.kind"],
        );
        check("a path", &RoleBindings.validate(&role("Role", "a/b")), &["FieldValueInvalid roleRef.name"]);
        let changed = RoleBindings.validate_update(&role("Role", "b"), &role("Role", "a"), Part::Whole);
        check("another role", &changed, &["FieldValueInvalid roleRef"]);
    }
}
