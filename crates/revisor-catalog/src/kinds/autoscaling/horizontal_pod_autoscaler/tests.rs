//! The rules for horizontal pod autoscalers, case by case.

use super::*;
use crate::Catalog;
use crate::kinds::tests::{object, terms};

fn autoscalers() -> HorizontalPodAutoscalers {
    HorizontalPodAutoscalers { features: terms().features }
}

fn autoscaler(changes: &str) -> Object {
    let mut autoscaler = object(
        r#"{"metadata":{"name":"h","namespace":"n"},"spec":{"maxReplicas":5,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}"#,
    );
    for (name, value) in object(changes).iter() {
        autoscaler.object_mut("spec").insert(name, value.clone());
    }
    let catalog = Catalog::default();
    let resource = catalog.resource("autoscaling", "v2", "horizontalpodautoscalers").expect("is served");
    resource.default(&mut autoscaler);
    autoscaler
}

fn causes(errors: FieldErrors) -> Vec<String> {
    errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect()
}

#[test]
fn behavior_is_filled_in_for_both_directions() {
    let filled = autoscaler(r#"{"behavior":{"scaleUp":{"selectPolicy":"Min"}}}"#);
    let want = r#"{"scaleDown":{"policies":[{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max"},"scaleUp":{"policies":[{"periodSeconds":15,"type":"Pods","value":4},{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Min","stabilizationWindowSeconds":0}}"#;
    assert_eq!(spec_of(&filled).get("behavior").map(Value::to_json).as_deref(), Some(want));
    assert_eq!(spec_of(&autoscaler("{}")).get("behavior"), None);
}

#[test]
fn bad_specs_are_refused_with_every_cause() {
    for (changes, want) in [
        ("{}", &[][..]),
        (r#"{"minReplicas":0}"#, &["FieldValueInvalid spec.minReplicas", "FieldValueForbidden spec.metrics"]),
        (r#"{"maxReplicas":0}"#, &["FieldValueRequired spec.maxReplicas", "FieldValueInvalid spec.maxReplicas"]),
        (r#"{"maxReplicas":-1}"#, &["FieldValueInvalid spec.maxReplicas"; 2]),
        (r#"{"minReplicas":6}"#, &["FieldValueInvalid spec.maxReplicas"]),
        (r#"{"scaleTargetRef":{"kind":"ReplicationController","name":"r","apiVersion":"v1"}}"#, &[]),
        (
            r#"{"scaleTargetRef":{"kind":"a/b","apiVersion":"a/b/c"}}"#,
            &[
                "FieldValueInvalid spec.scaleTargetRef.kind",
                "FieldValueRequired spec.scaleTargetRef.name",
                "FieldValueInvalid spec.scaleTargetRef.apiVersion",
            ],
        ),
        (
            r#"{"metrics":[{}]}"#,
            &[
                "FieldValueRequired spec.metrics[0].type",
                "FieldValueNotSupported spec.metrics[0].type",
                "FieldValueNotSupported spec.metrics[0].type",
            ],
        ),
        (
            r#"{"metrics":[{"type":"Pods","resource":{"target":{"type":"Value","value":"0"}}}]}"#,
            &[
                "FieldValueRequired spec.metrics[0].resource.name",
                "FieldValueInvalid spec.metrics[0].resource.target.value",
                "FieldValueRequired spec.metrics[0].resource.target.averageUtilization",
                "FieldValueRequired spec.metrics[0].pods",
            ],
        ),
        (
            r#"{"metrics":[{"type":"External","external":{"metric":{"name":"q"},"target":{"type":"Value","value":"1","averageValue":"1"}},"pods":{}}]}"#,
            &["FieldValueForbidden spec.metrics[0].external.target.value", "FieldValueForbidden spec.metrics[0].pods"],
        ),
        (
            r#"{"behavior":{"scaleUp":{"stabilizationWindowSeconds":3601,"policies":[],"tolerance":"-1"}}}"#,
            &[
                "FieldValueInvalid spec.behavior.scaleUp.stabilizationWindowSeconds",
                "FieldValueRequired spec.behavior.scaleUp.policies",
                "FieldValueInvalid spec.behavior.scaleUp.tolerance",
            ],
        ),
    ] {
        assert_eq!(causes(autoscalers().validate(&autoscaler(changes))), want, "{changes}");
    }
}

#[test]
fn what_is_stored_stays_changeable() {
    let old = autoscaler(r#"{"minReplicas":0,"scaleTargetRef":{"kind":"Deployment","name":"d"}}"#);
    let new = autoscaler(
        r#"{"minReplicas":0,"scaleTargetRef":{"kind":"Deployment","name":"e"},"metrics":[{"type":"External","external":{"metric":{"name":"q"},"target":{"type":"Value","value":"1"}}}]}"#,
    );
    assert_eq!(causes(autoscalers().validate_update(&new, &old, Part::Whole)), [""; 0]);
}
