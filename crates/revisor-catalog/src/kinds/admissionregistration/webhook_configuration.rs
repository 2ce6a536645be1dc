//! ValidatingWebhookConfigurations and MutatingWebhookConfigurations: lists of webhooks.

use std::collections::HashSet;

use revisor_object::names::{dns1035_label, fully_qualified_name};
use revisor_object::{
    BadValue, FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector, Value,
};

use super::client_config::validate_client_config;
use super::expressions::{Composition, Expressions};
use super::match_conditions::validate_match_conditions;
use super::reserved_names;
use super::resource_rule::validate_rules;
use super::{FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES};
use crate::checks::{one_of, problems};
use crate::{Features, Part, Places, Strategy};

const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];

/// The versions of reviews that the server can send.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

const SELECTORS: [&str; 2] = ["namespaceSelector", "objectSelector"];

/// The longest and shortest that a webhook may take, in seconds.
const TIMEOUT_SECONDS: std::ops::RangeInclusive<i64> = 1..=30;

/// Configurations of both kinds. Validating webhooks only lack the `reinvocationPolicy`, which their type does not have.
pub(crate) struct WebhookConfigurations {
    pub(super) expressions: Expressions,
    pub(super) features: Features,
}

impl Strategy for WebhookConfigurations {
    fn tracked(&self) -> Places {
        &[&["webhooks"]]
    }

    /// What was sent empty counts as a change, each time: it is not stored (upstream: `reflect.DeepEqual`).
    fn is_changed(&self, object: &Object, old: &Object) -> bool {
        let has_sent_empty =
            || object.is_sent_empty("webhooks") || object.get("webhooks").is_some_and(Value::has_sent_empty);
        object.get("webhooks") != old.get("webhooks") || has_sent_empty()
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_webhooks(&self.expressions, object, None);
        errors.extend(reserved_names::validate(object, self.features));
        errors
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        reserved_names::warnings(object, old, self.features)
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        validate_webhooks(&self.expressions, object, Some(old))
    }
}

/// Faults that may stay because the configuration was stored with them.
#[derive(Default)]
struct Tolerated {
    match_conditions: bool,
    side_effects: bool,
    unknown_review_versions: bool,
    names_twice: bool,
    invalid_label_values: bool,
}

impl Tolerated {
    fn of(object: &Object, old: &Object) -> Tolerated {
        let (new, before) = (object.array("webhooks"), old.array("webhooks"));
        let conditions = |webhook: &Value| webhook.as_object().map(|webhook| webhook.array("matchConditions").to_vec());
        let webhooks = || before.iter().filter_map(Value::as_object);
        let mut names = HashSet::new();
        Tolerated {
            match_conditions: new.len() == before.len() && new.iter().map(conditions).eq(before.iter().map(conditions)),
            side_effects: webhooks()
                .any(|webhook| !webhook.str("sideEffects").is_some_and(|class| NO_SIDE_EFFECTS.contains(&class))),
            unknown_review_versions: webhooks()
                .any(|webhook| review_versions(webhook).len() > 0 && !has_known_review_version(webhook)),
            names_twice: webhooks().any(|webhook| !names.insert(webhook.str("name").unwrap_or_default())),
            invalid_label_values: webhooks().any(|webhook| {
                SELECTORS.iter().filter_map(|name| webhook.object(name)).any(|selector| {
                    let selector = StructuredLabelSelector::new(selector);
                    !selector.validate(&FieldPath::none(), LabelSelectorOptions::default()).is_empty()
                })
            }),
        }
    }
}

fn review_versions(webhook: &Object) -> impl ExactSizeIterator<Item = &str> {
    webhook.array("admissionReviewVersions").iter().map(|version| version.as_str().unwrap_or_default())
}

fn has_known_review_version(webhook: &Object) -> bool {
    review_versions(webhook).any(|version| REVIEW_VERSIONS.contains(&version))
}

fn validate_webhooks(expressions: &Expressions, object: &Object, old: Option<&Object>) -> FieldErrors {
    let tolerated = old.map(|old| Tolerated::of(object, old)).unwrap_or_default();
    let expressions = expressions.plain(old);
    let mut errors = FieldErrors::new();
    let root = FieldPath::root("webhooks");
    let mut names = HashSet::new();
    for (at, webhook) in object.array("webhooks").iter().enumerate() {
        let Some(webhook) = webhook.as_object() else { continue };
        let path = root.index(at);
        validate_webhook(path, webhook, &expressions, &tolerated, &mut errors);
        validate_review_versions(path.child("admissionReviewVersions"), webhook, &tolerated, &mut errors);
        let name = webhook.str("name").unwrap_or_default();
        if !name.is_empty() && !names.insert(name) && !tolerated.names_twice {
            errors.push(FieldError::duplicate(path.child("name"), name));
        }
    }
    errors
}

fn validate_webhook(
    path: FieldPath<'_>,
    webhook: &Object,
    expressions: &Composition<'_>,
    tolerated: &Tolerated,
    errors: &mut FieldErrors,
) {
    errors.extend(fully_qualified_name(&path.child("name"), webhook.str("name").unwrap_or_default()));
    validate_rules(path.child("rules"), webhook.array("rules"), errors);
    for (name, allowed) in [
        ("failurePolicy", &FAILURE_POLICIES),
        ("matchPolicy", &MATCH_POLICIES),
        ("reinvocationPolicy", &REINVOCATION_POLICIES),
    ] {
        if let Some(policy) = webhook.str(name) {
            errors.extend(one_of(path.child(name), policy, allowed));
        }
    }
    let allowed: &[&str] = if tolerated.side_effects { &SIDE_EFFECTS } else { &NO_SIDE_EFFECTS };
    match webhook.str("sideEffects") {
        Some(class) => errors.extend(one_of(path.child("sideEffects"), class, allowed)),
        None => {
            let detail = format!("must specify one of {}", allowed.join(", "));
            errors.push(FieldError::required(path.child("sideEffects"), detail));
        }
    }
    let timeout = webhook.get("timeoutSeconds").and_then(Value::as_i64);
    if let Some(seconds) = timeout.filter(|seconds| !TIMEOUT_SECONDS.contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(path.child("timeoutSeconds"), seconds, detail));
    }
    let options = LabelSelectorOptions { allow_invalid_values: tolerated.invalid_label_values, ..Default::default() };
    for name in SELECTORS {
        if let Some(selector) = webhook.object(name) {
            errors.extend(StructuredLabelSelector::new(selector).validate(&path.child(name), options));
        }
    }
    errors.extend(validate_client_config(path.child("clientConfig"), webhook.object("clientConfig")));
    if !tolerated.match_conditions {
        let conditions = webhook.array("matchConditions");
        validate_match_conditions(path.child("matchConditions"), conditions, expressions, false, errors);
    }
}

fn validate_review_versions(path: FieldPath<'_>, webhook: &Object, tolerated: &Tolerated, errors: &mut FieldErrors) {
    if review_versions(webhook).len() == 0 {
        let detail = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
        return errors.push(FieldError::required(path, detail));
    }
    let mut seen = HashSet::new();
    for (at, version) in review_versions(webhook).enumerate() {
        if seen.insert(version) {
            errors.extend(problems(path.index(at), version, dns1035_label(version)));
        } else {
            errors.push(FieldError::invalid(path.index(at), version, "duplicate version"));
        }
    }
    if !tolerated.unknown_review_versions && !has_known_review_version(webhook) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(path, BadValue::of(&webhook.get("admissionReviewVersions")), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object, terms};

    fn configuration(change: &str) -> Object {
        let mut webhook = object(
            r#"{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://a"}}"#,
        );
        for (name, value) in object(change).iter() {
            webhook.set(name, (!value.is_null()).then(|| value.clone()));
        }
        [("webhooks", Value::from(vec![Value::from(webhook)]))].into_iter().collect()
    }

    #[test]
    fn webhooks_are_checked() {
        for (change, want) in [
            ("{}", &[][..]),
            (r#"{"name":"a.b"}"#, &["FieldValueInvalid webhooks[0].name"]),
            (r#"{"name":""}"#, &["FieldValueRequired webhooks[0].name"]),
            (r#"{"sideEffects":null}"#, &["FieldValueRequired webhooks[0].sideEffects"]),
            (r#"{"sideEffects":"Unknown"}"#, &["FieldValueNotSupported webhooks[0].sideEffects"]),
            (r#"{"timeoutSeconds":31}"#, &["FieldValueInvalid webhooks[0].timeoutSeconds"]),
            (r#"{"reinvocationPolicy":"Twice"}"#, &["FieldValueNotSupported webhooks[0].reinvocationPolicy"]),
            (r#"{"admissionReviewVersions":[]}"#, &["FieldValueRequired webhooks[0].admissionReviewVersions"]),
            (r#"{"admissionReviewVersions":["v7"]}"#, &["FieldValueInvalid webhooks[0].admissionReviewVersions"]),
            (
                r#"{"admissionReviewVersions":["v1","v1","V2"]}"#,
                &[
                    "FieldValueInvalid webhooks[0].admissionReviewVersions[1]",
                    "FieldValueInvalid webhooks[0].admissionReviewVersions[2]",
                ],
            ),
            (
                r#"{"matchConditions":[{"name":"a","expression":"params.x == 1"},{"name":"b","expression":"'c'"}]}"#,
                &[
                    "FieldValueInvalid webhooks[0].matchConditions[0].expression",
                    "FieldValueInvalid webhooks[0].matchConditions[1].expression",
                ],
            ),
            (
                r#"{"matchConditions":[{"name":"a","expression":"true"},{"name":"a","expression":" "},{"expression":"object.a == 1"}]}"#,
                &[
                    "FieldValueDuplicate webhooks[0].matchConditions[1].name",
                    "FieldValueRequired webhooks[0].matchConditions[1].expression",
                    "FieldValueRequired webhooks[0].matchConditions[2].name",
                ],
            ),
        ] {
            let webhooks =
                WebhookConfigurations { expressions: Expressions::new(&terms()), features: terms().features };
            check(change, &webhooks.validate(&configuration(change)), want);
        }
    }

    #[test]
    fn what_was_stored_may_stay() {
        for (stored, changed, want) in [
            (r#"{"sideEffects":"Some"}"#, r#"{"sideEffects":"Unknown"}"#, &[][..]),
            (r#"{"admissionReviewVersions":["v7"]}"#, r#"{"admissionReviewVersions":["v8"]}"#, &[]),
            (
                r#"{"matchConditions":[{"name":"","expression":"object.a == 1"}]}"#,
                r#"{"matchConditions":[{"name":"","expression":"object.a == 1"}]}"#,
                &[],
            ),
            (
                r#"{"matchConditions":[{"name":"","expression":"object.a == 1"}]}"#,
                r#"{"matchConditions":[{"name":"","expression":"object.b == 1"}]}"#,
                &["FieldValueRequired webhooks[0].matchConditions[0].name"],
            ),
            ("{}", r#"{"sideEffects":"Some"}"#, &["FieldValueNotSupported webhooks[0].sideEffects"]),
        ] {
            let errors =
                validate_webhooks(&Expressions::new(&terms()), &configuration(changed), Some(&configuration(stored)));
            check(changed, &errors, want);
        }
    }
}
