//! The rules for stateful sets, case by case.

use super::*;
use crate::Catalog;
use crate::kinds::tests::{object, terms};

fn stateful_sets() -> StatefulSets {
    StatefulSets { policy: terms().pods() }
}

fn stateful_set(changes: &str) -> Object {
    let mut set = object(
        r#"{"metadata":{"name":"db","namespace":"n"},"spec":{"selector":{"matchLabels":{"app":"db"}},"template":{"metadata":{"labels":{"app":"db"}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}}}"#,
    );
    for (name, value) in object(changes).iter() {
        set.object_mut("spec").insert(name, value.clone());
    }
    let catalog = Catalog::default();
    let resource = catalog.resource("apps", "v1", "statefulsets").expect("is served");
    resource.default(&mut set);
    resource.complete(&mut set);
    set
}

fn causes(errors: FieldErrors) -> Vec<String> {
    errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect()
}

#[test]
fn defaults_of_the_strategy_depend_on_what_is_given() {
    for (changes, want) in [
        ("{}", r#"{"rollingUpdate":{"partition":0},"type":"RollingUpdate"}"#),
        (r#"{"updateStrategy":{"type":"RollingUpdate"}}"#, r#"{"type":"RollingUpdate"}"#),
        (
            r#"{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{}}}"#,
            r#"{"rollingUpdate":{"partition":0},"type":"RollingUpdate"}"#,
        ),
        (r#"{"updateStrategy":{"type":"OnDelete"}}"#, r#"{"type":"OnDelete"}"#),
    ] {
        let set = stateful_set(changes);
        assert_eq!(spec(&set).get("updateStrategy").map(Value::to_json).as_deref(), Some(want), "{changes}");
    }
}

#[test]
fn bad_specs_are_refused_with_every_cause() {
    for (changes, want) in [
        ("{}", &[][..]),
        (r#"{"podManagementPolicy":"Chaotic"}"#, &["FieldValueInvalid spec.podManagementPolicy"]),
        (r#"{"updateStrategy":{"type":"Bogus"}}"#, &["FieldValueInvalid spec.updateStrategy"]),
        (
            r#"{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"partition":1}}}"#,
            &["FieldValueInvalid spec.updateStrategy.rollingUpdate"],
        ),
        (
            r#"{"updateStrategy":{"rollingUpdate":{"partition":-1,"maxUnavailable":0}}}"#,
            &[
                "FieldValueInvalid spec.updateStrategy.rollingUpdate.partition",
                "FieldValueInvalid spec.updateStrategy.rollingUpdate.maxUnavailable",
            ],
        ),
        (
            r#"{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Maybe"}}"#,
            &["FieldValueNotSupported spec.persistentVolumeClaimRetentionPolicy.whenDeleted"],
        ),
        (r#"{"ordinals":{"start":-1}}"#, &["FieldValueInvalid spec.ordinals.start"]),
        (r#"{"serviceName":"Not A Name"}"#, &["FieldValueInvalid spec.serviceName"]),
        (r#"{"selector":{}}"#, &["FieldValueInvalid spec.selector"]),
    ] {
        assert_eq!(causes(stateful_sets().validate(&stateful_set(changes))), want, "{changes}");
    }
}

#[test]
fn most_of_the_spec_is_there_for_good() {
    let old = stateful_set("{}");
    for (changes, want) in [
        (r#"{"replicas":4,"minReadySeconds":3,"ordinals":{"start":2},"revisionHistoryLimit":1}"#, &[][..]),
        (r#"{"updateStrategy":{"type":"OnDelete"}}"#, &[]),
        (r#"{"podManagementPolicy":"Parallel"}"#, &["FieldValueForbidden spec"]),
        (r#"{"serviceName":"Other!"}"#, &["FieldValueForbidden spec"]),
        (r#"{"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{}}]}"#, &["FieldValueForbidden spec"]),
    ] {
        let errors = stateful_sets().validate_update(&stateful_set(changes), &old, Part::Whole);
        assert_eq!(causes(errors), want, "{changes}");
    }
}

#[test]
fn claims_become_volumes_of_the_template() {
    let set = stateful_set(r#"{"volumeClaimTemplates":[{"metadata":{"name":"data"}},{"metadata":{"name":"data"}}]}"#);
    let mut pod = object(r#"{"volumes":[{"name":"own"},{"name":"data"}]}"#);
    add_claim_volumes(&mut pod, spec(&set));
    let names: Vec<&str> =
        pod.array("volumes").iter().filter_map(Value::as_object).map(|volume| text(volume, "name")).collect();
    assert_eq!(names, ["data", "own"]);
    let claim = claims(spec(&set)).next().expect("is there");
    assert_eq!((text(claim, "kind"), text(claim, "apiVersion")), ("PersistentVolumeClaim", "v1"));
}

#[test]
fn where_several_may_be_updated_one_is_the_default() {
    for (is_on, want) in [(false, r#"{"partition":0}"#), (true, r#"{"maxUnavailable":1,"partition":0}"#)] {
        let gate = Feature::MaxUnavailableStatefulSet;
        let features = if is_on { terms().features.with(gate) } else { terms().features.without(gate) };
        let sets = StatefulSets { policy: PodPolicy { features, ..terms().pods() } };
        let mut set = object(r#"{"spec":{}}"#);
        sets.default(&mut set);
        assert_eq!(set.at(&["spec", "updateStrategy", "rollingUpdate"]).map(Value::to_json).as_deref(), Some(want));
    }
}
