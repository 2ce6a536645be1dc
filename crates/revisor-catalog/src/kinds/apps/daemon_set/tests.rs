//! The rules for daemon sets, case by case.

use super::*;
use crate::kinds::tests::{object, terms};
use crate::{Catalog, Requester};

fn daemon_sets() -> DaemonSets {
    DaemonSets { policy: terms().pods() }
}

const NOW: Circumstances<'static> =
    Circumstances { now: "2026-01-01T00:00:00Z", requester: Requester { name: "", uid: "", groups: &[], extra: &[] } };

fn daemon_set(changes: &str) -> Object {
    let mut daemon_set = object(
        r#"{"metadata":{"name":"agent","namespace":"n"},"spec":{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}}}"#,
    );
    for (name, value) in object(changes).iter() {
        daemon_set.object_mut("spec").insert(name, value.clone());
    }
    let catalog = Catalog::default();
    catalog.resource("apps", "v1", "daemonsets").expect("is served").default(&mut daemon_set);
    daemon_set
}

fn causes(errors: FieldErrors) -> Vec<String> {
    errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect()
}

#[test]
fn the_template_generation_counts_changes_of_the_template() {
    let mut old = daemon_set("{}");
    daemon_sets().prepare_create(&mut old, NOW);
    assert_eq!(template_generation(&old), 1);
    let mut labelled = old.clone();
    labelled.object_mut("metadata").insert("annotations", object(r#"{"a":"b"}"#));
    daemon_sets().prepare_update(&mut labelled, &old, Part::Whole, NOW);
    assert_eq!(template_generation(&labelled), 1, "clients cannot take it away");
    let mut changed = old.clone();
    set_template_generation(&mut changed, 40);
    changed.object_mut("spec").object_mut("template").object_mut("spec").insert("hostNetwork", true);
    daemon_sets().prepare_update(&mut changed, &old, Part::Whole, NOW);
    assert_eq!(template_generation(&changed), 2, "clients cannot set it");
    daemon_sets().prepare_update(&mut changed, &old, Part::Subresource("status"), NOW);
    assert_eq!(template_generation(&changed), 1, "a status leaves it alone");
}

#[test]
fn bad_specs_are_refused_with_every_cause() {
    let unavailable = "spec.updateStrategy.rollingUpdate.maxUnavailable";
    let surge = "spec.updateStrategy.rollingUpdate.maxSurge";
    let rolling =
        |members: &str| format!(r#"{{"updateStrategy":{{"type":"RollingUpdate","rollingUpdate":{members}}}}}"#);
    for (changes, want) in [
        ("{}".to_owned(), vec![]),
        (r#"{"updateStrategy":{"type":"OnDelete"}}"#.to_owned(), vec![]),
        (
            r#"{"updateStrategy":{"type":"Recreate"}}"#.to_owned(),
            vec!["FieldValueNotSupported spec.updateStrategy".to_owned()],
        ),
        (rolling(r#"{"maxSurge":1,"maxUnavailable":1}"#), vec![format!("FieldValueInvalid {surge}")]),
        (rolling(r#"{"maxSurge":0,"maxUnavailable":0}"#), vec![format!("FieldValueRequired {unavailable}")]),
        (rolling(r#"{"maxSurge":"110%","maxUnavailable":0}"#), vec![format!("FieldValueInvalid {surge}")]),
        (r#"{"selector":null}"#.to_owned(), vec!["FieldValueInvalid spec.template.metadata.labels".to_owned()]),
        (r#"{"selector":{}}"#.to_owned(), vec!["FieldValueInvalid spec.selector".to_owned()]),
        (
            r#"{"minReadySeconds":-1,"revisionHistoryLimit":-1}"#.to_owned(),
            vec![
                "FieldValueInvalid spec.minReadySeconds".to_owned(),
                "FieldValueInvalid spec.revisionHistoryLimit".to_owned(),
            ],
        ),
    ] {
        assert_eq!(causes(daemon_sets().validate(&daemon_set(&changes))), want, "{changes}");
    }
}

#[test]
fn a_template_generation_that_is_no_number_cannot_be_read() {
    for (written, want) in [
        ("7", None),
        ("", Some(r#"strconv.ParseInt: parsing "": invalid syntax"#)),
        ("x", Some(r#"strconv.ParseInt: parsing "x": invalid syntax"#)),
    ] {
        let annotation = format!(r#"{{"metadata":{{"annotations":{{"{TEMPLATE_GENERATION}":"{written}"}}}}}}"#);
        assert_eq!(daemon_sets().unreadable(&object(&annotation)).as_deref(), want, "{written}");
    }
}
