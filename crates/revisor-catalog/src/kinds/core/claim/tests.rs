//! The rules for claims, case by case.

use super::*;
use crate::kinds::tests::{object, terms};

fn claims() -> Claims {
    Claims { features: terms().features }
}

fn claim(spec: &str, status: &str) -> Object {
    object(&format!(r#"{{"metadata":{{"name":"c"}},"spec":{spec},"status":{status}}}"#))
}

fn causes(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect()
}

const GOOD: &str =
    r#"{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"2Gi"}},"storageClassName":"c"}"#;

#[test]
fn what_is_wrong_with_a_spec_is_found() {
    for (spec, want) in [
        (GOOD, vec![]),
        ("{}", vec!["FieldValueRequired spec.accessModes", "FieldValueRequired spec.resources[storage]"]),
        (
            r#"{"accessModes":["ReadWriteOncePod","ReadOnlyMany","Odd"],"resources":{"requests":{"storage":"0"}}}"#,
            vec![
                "FieldValueNotSupported spec.accessModes",
                "FieldValueForbidden spec.accessModes",
                "FieldValueInvalid spec.resources[storage]",
            ],
        ),
        (
            r#"{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1"}},"volumeMode":"Odd",
                "storageClassName":"A b","dataSource":{"kind":"Pod"},"dataSourceRef":{"kind":"X","apiGroup":"a b"}}"#,
            vec![
                "FieldValueInvalid spec.storageClassName",
                "FieldValueNotSupported spec.volumeMode",
                "FieldValueRequired spec.dataSource.name",
                "FieldValueInvalid spec.dataSource",
                "FieldValueRequired spec.dataSourceRef.name",
                "FieldValueInvalid spec.dataSourceRef.apiGroup",
                "FieldValueInvalid spec",
            ],
        ),
    ] {
        assert_eq!(causes(&claims().validate(&claim(spec, "{}"))), want, "{spec}");
    }
}

#[test]
fn sources_are_brought_in_line() {
    let known = r#"{"kind":"PersistentVolumeClaim","name":"a"}"#;
    for (name, spec, want) in [
        ("an odd source goes", r#"{"dataSource":{"kind":"Pod","name":"a"}}"#, "{}".to_owned()),
        (
            "the old field fills the new",
            &format!(r#"{{"dataSource":{known}}}"#),
            format!(r#"{{"dataSource":{known},"dataSourceRef":{known}}}"#),
        ),
        (
            "the new field fills the old",
            &format!(r#"{{"dataSourceRef":{known}}}"#),
            format!(r#"{{"dataSource":{known},"dataSourceRef":{known}}}"#),
        ),
        (
            "another namespace is not served",
            r#"{"dataSourceRef":{"kind":"X","name":"a","namespace":"n"}}"#,
            "{}".into(),
        ),
    ] {
        let mut spec = object(spec);
        settle_sources(&mut spec, None, terms().features);
        assert_eq!(Value::from(spec).to_json(), want, "{name}");
    }
}

#[test]
fn groups_are_only_let_pass_where_one_was_named() {
    let with = |source: &str| claim(&GOOD.replacen('{', &format!("{{\"dataSourceRef\":{source},"), 1), "{}");
    let odd = with(r#"{"apiGroup":"A_","kind":"K","name":"n"}"#);
    let (named, unnamed) = (
        with(r#"{"apiGroup":"a.b","kind":"K","name":"n"}"#),
        with(r#"{"apiGroup":null,"kind":"PersistentVolumeClaim","name":"n"}"#),
    );
    let wrong = "FieldValueInvalid spec.dataSourceRef.apiGroup".to_owned();
    assert!(!causes(&claims().validate_update(&odd, &named, Part::Whole)).contains(&wrong));
    assert!(causes(&claims().validate_update(&odd, &unnamed, Part::Whole)).contains(&wrong));
}

#[test]
fn only_some_of_a_spec_changes() {
    let bound = r#"{"phase":"Bound","capacity":{"storage":"1Gi"}}"#;
    let size = |size: &str| GOOD.replace("2Gi", size);
    for (name, spec, status, want) in [
        ("nothing", GOOD.to_owned(), "{}", vec![]),
        ("the notation of the size", size("2048Mi"), "{}", vec![]),
        ("the size of a waiting claim", size("3Gi"), "{}", vec!["FieldValueForbidden spec"]),
        ("the size of a bound claim", size("3Gi"), bound, vec![]),
        ("back to above its capacity", size("1500Mi"), bound, vec![]),
        ("below its capacity", size("1Gi"), bound, vec!["FieldValueForbidden spec.resources.requests.storage"]),
        ("the volume, once", GOOD.replace('}', "").replace("2Gi\"", "2Gi\"}}") + r#","volumeName":"v"}"#, "{}", vec![]),
        ("the class", GOOD.replace("\"c\"", "\"d\""), "{}", vec!["FieldValueForbidden spec"]),
    ] {
        let (old, new) = (claim(GOOD, status), claim(&spec, status));
        assert_eq!(causes(&claims().validate_update(&new, &old, Part::Whole)), want, "{name}");
    }
}

#[test]
fn a_claim_without_a_class_may_get_one() {
    let bare = GOOD.replace(r#","storageClassName":"c""#, "");
    let (old, new) = (claim(&bare, "{}"), claim(GOOD, "{}"));
    assert!(claims().validate_update(&new, &old, Part::Whole).is_empty());
    let annotated = |class: &str, spec: &str| {
        let mut claim = claim(spec, "{}");
        claim.object_mut("metadata").object_mut("annotations").insert(CLASS_ANNOTATION, class);
        claim
    };
    assert!(claims().validate_update(&new, &annotated("c", &bare), Part::Whole).is_empty());
    let errors = claims().validate_update(&annotated("x", GOOD), &annotated("x", &bare), Part::Whole);
    assert_eq!(causes(&errors), ["FieldValueForbidden spec"]);
}

#[test]
fn the_status_is_checked() {
    let status = r#"{"capacity":{"storage":"-1"},"allocatedResources":{"cpu":"1","storage":"-2"},
        "allocatedResourceStatuses":{"storage":"Odd"}}"#;
    let new = claim(GOOD, status);
    assert_eq!(
        causes(&claims().validate_update(&new, &new, Part::Subresource("status"))),
        [
            "FieldValueInvalid status.capacity[storage]",
            "FieldValueNotSupported status.allocatedResourceStatuses",
            "FieldValueNotSupported status.allocatedResources",
            "FieldValueInvalid status.allocatedResources[storage]",
        ]
    );
}

#[test]
fn features_decide_what_claims_and_their_statuses_say() {
    let nobody = Circumstances { now: "", requester: crate::Requester::default() };
    let with = |feature, is_on: bool| {
        let features = terms().features;
        Claims { features: if is_on { features.with(feature) } else { features.without(feature) } }
    };
    let crossing = r#"{"dataSourceRef":{"kind":"X","name":"x","apiGroup":"a.b","namespace":"other"}}"#;
    for (is_on, is_known, is_kept) in [(true, false, true), (false, false, false), (false, true, true)] {
        let (mut new, bare) = (claim(crossing, "{}"), claim("{}", "{}"));
        let old = if is_known { new.clone() } else { bare.clone() };
        let given = new.clone();
        with(Feature::CrossNamespaceVolumeDataSource, is_on).settle(&mut new, Some(&old), nobody);
        assert_eq!(new, if is_kept { given } else { bare }, "on: {is_on}, known: {is_known}");
    }
    let good = r#"{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"SIZE"}}}"#;
    let (bound, grown) = (r#"{"phase":"Bound","capacity":{"storage":"1Gi"}}"#, good.replace("SIZE", "5Gi"));
    let recovering = r#"{"phase":"Bound","capacity":{"storage":"1Gi"},"allocatedResources":{"storage":"5Gi"}}"#;
    for (is_on, status, want) in [(true, bound, 0), (false, bound, 1), (false, recovering, 0)] {
        let (old, new) = (claim(&grown, status), claim(&good.replace("SIZE", "2Gi"), status));
        let errors = with(Feature::RecoverVolumeExpansionFailure, is_on).validate_update(&new, &old, Part::Whole);
        assert_eq!(errors.len(), want, "on: {is_on}, {status}: {errors:?}");
    }
}
