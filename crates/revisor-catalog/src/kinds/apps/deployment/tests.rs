//! The rules for deployments, case by case.

use super::*;
use crate::Catalog;
use crate::kinds::tests::{object, terms};

fn deployments() -> Deployments {
    Deployments { policy: terms().pods() }
}

/// A good deployment with its defaults, whose members `changes` replaces.
fn deployment(changes: &str) -> Object {
    let mut deployment = object(
        r#"{"metadata":{"name":"web","namespace":"n"},"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}}}"#,
    );
    for (name, value) in object(changes).iter() {
        let spec = deployment.object_mut("spec");
        spec.insert(name, value.clone());
    }
    let catalog = Catalog::default();
    catalog.resource("apps", "v1", "deployments").expect("is served").default(&mut deployment);
    deployment
}

fn causes(errors: FieldErrors) -> Vec<String> {
    errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect()
}

#[test]
fn defaults_depend_on_the_strategy() {
    for (changes, want) in [
        ("{}", r#"{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"}"#),
        (
            r#"{"strategy":{"rollingUpdate":{"maxSurge":1}}}"#,
            r#"{"rollingUpdate":{"maxSurge":1,"maxUnavailable":"25%"},"type":"RollingUpdate"}"#,
        ),
        (r#"{"strategy":{"type":"Recreate"}}"#, r#"{"type":"Recreate"}"#),
    ] {
        let deployment = deployment(changes);
        assert_eq!(spec(&deployment).get("strategy").map(Value::to_json).as_deref(), Some(want), "{changes}");
    }
}

#[test]
fn bad_specs_are_refused_with_every_cause() {
    for (changes, want) in [
        ("{}", &[][..]),
        (
            r#"{"selector":null}"#,
            &["FieldValueRequired spec.selector", "FieldValueInvalid spec.template.metadata.labels"],
        ),
        (r#"{"selector":{}}"#, &["FieldValueInvalid spec.selector"]),
        (r#"{"selector":{"matchLabels":{"app":"other"}}}"#, &["FieldValueInvalid spec.template.metadata.labels"]),
        (
            r#"{"selector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}"#,
            &["FieldValueInvalid spec.selector.matchExpressions[0].operator", "FieldValueInvalid spec.selector"],
        ),
        (
            r#"{"replicas":-1,"minReadySeconds":-1}"#,
            &["FieldValueInvalid spec.replicas", "FieldValueInvalid spec.minReadySeconds"],
        ),
        (
            r#"{"revisionHistoryLimit":-1,"minReadySeconds":-1,"replicas":-1,"strategy":{"type":"Odd"}}"#,
            &[
                "FieldValueInvalid spec.replicas",
                "FieldValueNotSupported spec.strategy",
                "FieldValueInvalid spec.minReadySeconds",
                "FieldValueInvalid spec.revisionHistoryLimit",
            ],
        ),
        (
            r#"{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"0%","maxUnavailable":0}}}"#,
            &["FieldValueInvalid spec.strategy.rollingUpdate.maxUnavailable"],
        ),
        (
            r#"{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"some","maxUnavailable":"101%"}}}"#,
            &[
                "FieldValueInvalid spec.strategy.rollingUpdate.maxSurge",
                "FieldValueInvalid spec.strategy.rollingUpdate.maxUnavailable",
            ],
        ),
        (
            r#"{"strategy":{"type":"Recreate","rollingUpdate":{}}}"#,
            &["FieldValueForbidden spec.strategy.rollingUpdate"],
        ),
        (r#"{"strategy":{"type":"Magic"}}"#, &["FieldValueNotSupported spec.strategy"]),
        (r#"{"progressDeadlineSeconds":5,"minReadySeconds":5}"#, &["FieldValueInvalid spec.progressDeadlineSeconds"]),
        (r#"{"progressDeadlineSeconds":-1}"#, &["FieldValueInvalid spec.progressDeadlineSeconds"; 2]),
    ] {
        let errors = deployments().validate(&deployment(changes));
        assert_eq!(causes(errors), want, "{changes}");
    }
}

#[test]
fn the_selector_is_there_for_good() {
    let old = deployment("{}");
    let mut new = old.clone();
    new.object_mut("spec").object_mut("template").object_mut("metadata").object_mut("labels").insert("v", "1");
    assert_eq!(causes(deployments().validate_update(&new, &old, Part::Whole)), [""; 0]);
    new.object_mut("spec").object_mut("selector").object_mut("matchLabels").insert("v", "1");
    assert_eq!(causes(deployments().validate_update(&new, &old, Part::Whole)), ["FieldValueInvalid spec.selector"]);
}

#[test]
fn the_revision_to_roll_back_to_has_one_form() {
    for (written, kept, want) in [
        ("", None, &[][..]),
        ("7", Some("7"), &[]),
        ("+07", Some("7"), &[]),
        ("-1", Some("-1"), &["FieldValueInvalid spec.rollback.version"]),
    ] {
        let mut deployment = deployment("{}");
        deployment.object_mut("metadata").object_mut("annotations").insert(ROLLBACK_TO, written);
        deployments().default(&mut deployment);
        let found = deployment.at(&["metadata", "annotations", ROLLBACK_TO]).and_then(Value::as_str);
        assert_eq!(found, kept, "{written}");
        assert_eq!(causes(deployments().validate(&deployment)), want, "{written}");
    }
}

#[test]
fn statuses_add_up() {
    for (status, old, want) in [
        (
            r#"{"replicas":2,"readyReplicas":1,"availableReplicas":1,"collisionCount":1}"#,
            r#"{"collisionCount":1}"#,
            &[][..],
        ),
        ("{}", r#"{"collisionCount":1}"#, &["FieldValueInvalid status.collisionCount"]),
        (
            r#"{"replicas":-1}"#,
            "{}",
            &[
                "FieldValueInvalid status.replicas",
                "FieldValueInvalid status.updatedReplicas",
                "FieldValueInvalid status.readyReplicas",
                "FieldValueInvalid status.availableReplicas",
            ],
        ),
        (r#"{"replicas":2,"availableReplicas":1}"#, "{}", &["FieldValueInvalid status.availableReplicas"]),
    ] {
        assert_eq!(causes(validate_status(&object(status), &object(old))), want, "{status}");
    }
}

#[test]
fn a_rollback_to_no_number_cannot_be_read() {
    let annotation = "deprecated.deployment.rollback.to";
    for (written, want) in [
        ("", None),
        ("7", None),
        ("x", Some(r#"strconv.ParseInt: parsing "x": invalid syntax"#)),
        ("9223372036854775808", Some(r#"strconv.ParseInt: parsing "9223372036854775808": value out of range"#)),
    ] {
        let annotated = object(&format!(r#"{{"metadata":{{"annotations":{{"{annotation}":"{written}"}}}}}}"#));
        let want = want.map(|why| format!("failed to parse annotation[{annotation}]={written} as int64: {why}"));
        assert_eq!(deployments().unreadable(&annotated), want, "{written}");
    }
}
