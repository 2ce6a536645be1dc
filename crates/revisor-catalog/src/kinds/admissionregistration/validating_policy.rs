//! ValidatingAdmissionPolicies: expressions that objects must satisfy.

use std::collections::HashSet;

use revisor_cel::Type;
use revisor_object::names::qualified_name;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object};

use super::FAILURE_POLICIES;
use super::expressions::{Composition, Expressions, Scope};
use super::match_conditions::validate_match_conditions;
use super::match_resources::validate_match_constraints;
use super::param::validate_param_kind;
use super::reserved_names;
use crate::checks::{one_of, problems, required};
use crate::kinds::conditions;
use crate::strategy::spec_and_metadata_or_status;
use crate::{Features, Part, Places, Strategy};

const MAX_AUDIT_ANNOTATIONS: usize = 20;
const MAX_VALUE_EXPRESSION: usize = 5 * 1024;
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

pub(crate) struct ValidatingAdmissionPolicies {
    pub(super) expressions: Expressions,
    pub(super) features: Features,
}

impl Strategy for ValidatingAdmissionPolicies {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_policy(&self.expressions, object, None);
        errors.extend(reserved_names::validate(object, self.features));
        errors
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        reserved_names::warnings(object, old, self.features)
    }

    fn subresource_warnings(&self, object: &Object, old: &Object) -> Vec<String> {
        self.warnings(object, Some(old))
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        match part {
            Part::Whole => validate_policy(&self.expressions, object, Some(old)),
            Part::Subresource(_) => validate_status(object),
        }
    }
}

fn validate_policy(expressions: &Expressions, object: &Object, old: Option<&Object>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let empty = Object::new();
    let path = FieldPath::root("spec");
    let spec = object.object("spec").unwrap_or(&empty);
    let is_plain = spec.array("variables").is_empty();
    let mut policy = if is_plain { expressions.plain(old) } else { expressions.composed(old) };
    validate_common(path, spec, old.and_then(|old| old.object("spec")), expressions, &mut policy, &mut errors);
    let scope = Scope { params: spec.contains("paramKind"), authorizer: true, patch: false };
    if spec.array("validations").is_empty() && spec.array("auditAnnotations").is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.push(FieldError::required(path.child("validations"), detail));
        errors.push(FieldError::required(path.child("auditAnnotations"), detail));
        return errors;
    }
    let validations = path.child("validations");
    for (at, validation) in spec.array("validations").iter().enumerate() {
        if let Some(validation) = validation.as_object() {
            validate_validation(validations.index(at), validation, &policy, scope, &mut errors);
        }
    }
    let name = object.object("metadata").and_then(|metadata| metadata.str("name")).unwrap_or_default();
    let check = |path: FieldPath<'_>, value: &str| {
        policy.check(path, (value.trim(), value), scope, &[Type::String, Type::Null])
    };
    validate_audit_annotations(path.child("auditAnnotations"), name, spec, check, &mut errors);
    errors
}

/// What both sorts of policy have: what happens on failure, parameters, constraints, conditions and variables.
pub(super) fn validate_common(
    path: FieldPath<'_>,
    spec: &Object,
    old: Option<&Object>,
    expressions: &Expressions,
    policy: &mut Composition<'_>,
    errors: &mut FieldErrors,
) {
    let params = spec.contains("paramKind");
    match spec.str("failurePolicy") {
        Some(policy) => errors.extend(one_of(path.child("failurePolicy"), policy, &FAILURE_POLICIES)),
        None => errors.push(FieldError::required(path.child("failurePolicy"), "")),
    }
    if let Some(kind) = spec.object("paramKind") {
        validate_param_kind(path.child("paramKind"), kind, errors);
    }
    validate_match_constraints(path.child("matchConstraints"), spec.object("matchConstraints"), errors);
    let is_unchanged = |name| old.is_some_and(|old| old.get(name) == spec.get(name));
    if !(is_unchanged("paramKind") && is_unchanged("matchConditions")) {
        let at_conditions = path.child("matchConditions");
        let plain = expressions.plain(old);
        validate_match_conditions(at_conditions, spec.array("matchConditions"), &plain, params, errors);
    }
    let variables = path.child("variables");
    for (at, variable) in spec.array("variables").iter().enumerate() {
        let Some(variable) = variable.as_object() else { continue };
        let path = variables.index(at);
        let name = variable.str("name").unwrap_or_default();
        if name.trim().is_empty() {
            errors.push(FieldError::required(path.child("name"), "name is not specified"));
        } else if !is_identifier(name) {
            errors.push(FieldError::invalid(path.child("name"), name, "must be a valid CEL identifier"));
        }
        let at_expression = path.child("expression");
        match variable.str("expression").unwrap_or_default() {
            text if text.trim().is_empty() => {
                errors.push(FieldError::required(at_expression, "expression is not specified"));
            }
            text => {
                let scope = Scope { params, authorizer: true, patch: false };
                errors.extend(policy.add_variable(at_expression, name, text, scope));
            }
        }
    }
}

fn is_identifier(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !revisor_cel::is_reserved(name)
}

fn validate_validation(
    path: FieldPath<'_>,
    validation: &Object,
    policy: &Composition<'_>,
    scope: Scope,
    errors: &mut FieldErrors,
) {
    let text = |name| validation.str(name).unwrap_or_default();
    let expression = text("expression");
    if expression.trim().is_empty() {
        errors.push(FieldError::required(path.child("expression"), "expression is not specified"));
    } else {
        errors.extend(policy.check(path.child("expression"), (expression, expression), scope, &[Type::Bool]));
    }
    let message = text("messageExpression");
    if !message.trim().is_empty() {
        // A message is made after the decision, when there is nobody left to ask what the user may do.
        let scope = Scope { authorizer: false, ..scope };
        errors.extend(policy.check(path.child("messageExpression"), (message, message), scope, &[Type::String]));
    }
    for name in ["messageExpression", "message"] {
        if !text(name).is_empty() && text(name).trim().is_empty() {
            errors.push(FieldError::invalid(path.child(name), text(name), "must be non-empty if specified"));
        }
    }
    if text("message").trim().contains(['\n', '\r']) {
        errors.push(FieldError::invalid(path.child("message"), text("message"), "must not contain line breaks"));
    }
    if let Some(reason) = validation.str("reason") {
        errors.extend(one_of(path.child("reason"), reason, &REASONS));
    }
}

fn validate_audit_annotations(
    path: FieldPath<'_>,
    policy: &str,
    spec: &Object,
    check: impl Fn(FieldPath<'_>, &str) -> Option<FieldError>,
    errors: &mut FieldErrors,
) {
    let annotations = spec.array("auditAnnotations");
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        errors.push(FieldError::invalid(path, BadValue::of(&annotations), detail));
    }
    let mut seen = HashSet::new();
    for (at, annotation) in annotations.iter().enumerate() {
        let Some(annotation) = annotation.as_object() else { continue };
        let path = path.index(at);
        let key = annotation.str("key").unwrap_or_default();
        if policy.is_empty() {
            errors.push(FieldError::invalid(path.child("key"), key, "requires metadata.name be non-empty"));
        } else {
            let whole = format!("{policy}/{key}");
            errors.extend(problems(path.child("key"), &whole, qualified_name(&whole)));
        }
        let at_value = path.child("valueExpression");
        let value = annotation.str("valueExpression").unwrap_or_default();
        match value.trim().len() {
            0 => errors.push(FieldError::required(at_value, "valueExpression is not specified")),
            length if length > MAX_VALUE_EXPRESSION => {
                let detail = format!("must not exceed {MAX_VALUE_EXPRESSION} bytes in length");
                errors.push(FieldError::required(at_value, detail));
            }
            _ => errors.extend(check(at_value, value)),
        }
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(path.child("key"), key));
        }
    }
}

fn validate_status(object: &Object) -> FieldErrors {
    let Some(status) = object.object("status") else { return FieldErrors::new() };
    let path = FieldPath::root("status");
    let checking = path.child("typeChecking");
    let warnings = checking.child("expressionWarnings");
    let mut errors = FieldErrors::new();
    let found = status.object("typeChecking").map(|checking| checking.array("expressionWarnings")).unwrap_or_default();
    for (at, warning) in found.iter().enumerate() {
        let path = warnings.index(at);
        let text = |name| warning.as_object().and_then(|warning| warning.str(name)).unwrap_or_default();
        errors.extend(required(path.child("warning"), text("warning")));
        errors.extend(required(path.child("fieldRef"), text("fieldRef").trim()));
    }
    errors.extend(conditions::validate(path.child("conditions"), status.array("conditions")));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object, terms};

    fn policies() -> ValidatingAdmissionPolicies {
        ValidatingAdmissionPolicies { expressions: Expressions::new(&terms()), features: terms().features }
    }

    fn policy(change: &str) -> Object {
        let mut policy = object(
            r#"{"metadata":{"name":"p"},"spec":{"failurePolicy":"Fail","validations":[{"expression":"true"}],
                "matchConstraints":{"matchPolicy":"Exact","namespaceSelector":{},"objectSelector":{},"resourceRules":
                [{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE"]}]}}}"#,
        );
        for (name, value) in object(change).iter() {
            policy.object_mut("spec").set(name, (!value.is_null()).then(|| value.clone()));
        }
        policy
    }

    #[test]
    fn policies_are_checked() {
        for (change, want) in [
            ("{}", &[][..]),
            (r#"{"validations":null,"auditAnnotations":[{"key":"a","valueExpression":"'x'"}]}"#, &[]),
            (
                r#"{"validations":null,"matchConstraints":null}"#,
                &[
                    "FieldValueRequired spec.validations",
                    "FieldValueRequired spec.auditAnnotations",
                    "FieldValueRequired spec.matchConstraints",
                ],
            ),
            (
                r#"{"matchConstraints":{}}"#,
                &[
                    "FieldValueRequired spec.matchConstraints.matchPolicy",
                    "FieldValueRequired spec.matchConstraints.namespaceSelector",
                    "FieldValueRequired spec.matchConstraints.objectSelector",
                    "FieldValueRequired spec.matchConstraints.resourceRules",
                ],
            ),
            (
                r#"{"validations":[{"expression":" ","message":" ","messageExpression":" ","reason":"Odd"}]}"#,
                &[
                    "FieldValueRequired spec.validations[0].expression",
                    "FieldValueInvalid spec.validations[0].message",
                    "FieldValueInvalid spec.validations[0].messageExpression",
                    "FieldValueNotSupported spec.validations[0].reason",
                ],
            ),
            (
                r#"{"validations":[{"expression":"true","message":"a\nb"}]}"#,
                &["FieldValueInvalid spec.validations[0].message"],
            ),
            (
                r#"{"validations":[{"expression":"1","messageExpression":"authorizer"}],
                    "auditAnnotations":[{"key":"a","valueExpression":"1"}],
                    "matchConditions":[{"name":"c","expression":"params.x"}]}"#,
                &[
                    "FieldValueInvalid spec.auditAnnotations[0].valueExpression",
                    "FieldValueInvalid spec.matchConditions[0].expression",
                    "FieldValueInvalid spec.validations[0].expression",
                    "FieldValueInvalid spec.validations[0].messageExpression",
                ],
            ),
            (
                r#"{"variables":[{"name":"a","expression":"1"},{"name":"b","expression":"variables.a + 1"}],
                    "validations":[{"expression":"variables.b > 1 && variables.a == 'a'"}]}"#,
                &["FieldValueInvalid spec.validations[0].expression"],
            ),
            (
                r#"{"variables":[{"name":"while","expression":"1"},{"name":"a1","expression":""},{"expression":"1"}]}"#,
                &[
                    "FieldValueInvalid spec.variables[0].name",
                    "FieldValueRequired spec.variables[1].expression",
                    "FieldValueRequired spec.variables[2].name",
                ],
            ),
            (
                r#"{"auditAnnotations":[{"key":"a b","valueExpression":"'x'"},{"key":"c"},{"key":"c","valueExpression":"'y'"}]}"#,
                &[
                    "FieldValueInvalid spec.auditAnnotations[0].key",
                    "FieldValueRequired spec.auditAnnotations[1].valueExpression",
                    "FieldValueDuplicate spec.auditAnnotations[2].key",
                ],
            ),
        ] {
            check(change, &policies().validate(&policy(change)), want);
        }
    }

    #[test]
    fn conditions_that_were_stored_may_stay() {
        let stored = policy(r#"{"matchConditions":[{"name":"","expression":"true"}]}"#);
        check("unchanged", &policies().validate_update(&stored, &stored, Part::Whole), &[]);
        let changed = policy(
            r#"{"matchConditions":[{"name":"","expression":"true"}],"paramKind":{"apiVersion":"v1","kind":"K"}}"#,
        );
        let errors = policies().validate_update(&changed, &stored, Part::Whole);
        check("other parameters", &errors, &["FieldValueRequired spec.matchConditions[0].name"]);
    }
}
