//! The rules for jobs, case by case.

use super::*;
use crate::kinds::tests::{object, terms};
use crate::{Catalog, Requester};

fn jobs() -> Jobs {
    Jobs { policy: terms().pods() }
}

const NOW: Circumstances<'static> =
    Circumstances { now: "2026-01-01T00:00:00Z", requester: Requester { name: "", uid: "", groups: &[], extra: &[] } };

/// A job as it would be stored, whose spec has these members too.
fn job(changes: &str) -> Object {
    job_with(changes, "{}")
}

fn job_with(changes: &str, metadata: &str) -> Object {
    let mut job = object(
        r#"{"metadata":{"name":"j","namespace":"n","uid":"u"},"spec":{"template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i:1"}]}}}}"#,
    );
    for (name, value) in object(changes).iter() {
        job.object_mut("spec").insert(name, value.clone());
    }
    for (name, value) in object(metadata).iter() {
        job.object_mut("metadata").insert(name, value.clone());
    }
    let catalog = Catalog::default();
    let resource = catalog.resource("batch", "v1", "jobs").expect("is served");
    resource.default(&mut job);
    jobs().prepare_create(&mut job, NOW);
    resource.complete(&mut job);
    job
}

fn causes(errors: FieldErrors) -> Vec<String> {
    let mut causes: Vec<String> =
        errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect();
    causes.sort();
    causes.dedup();
    causes
}

#[test]
fn a_job_gets_labels_and_a_selector_of_its_own() {
    let generated = r#""batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"j","controller-uid":"u","job-name":"j""#;
    let job_labels = |job: &Object| job.at(&["metadata", "labels"]).map(Value::to_json);
    let inherited = job("{}");
    assert_eq!(job_labels(&inherited), Some(format!(r#"{{"a":"b",{generated}}}"#)));
    assert_eq!(
        spec_of(&inherited).get("selector").map(Value::to_json).as_deref(),
        Some(r#"{"matchLabels":{"batch.kubernetes.io/controller-uid":"u"}}"#)
    );
    assert_eq!(job_labels(&job_with("{}", r#"{"labels":{"a":"b"}}"#)).as_deref(), Some(r#"{"a":"b"}"#));
    let manual = job(r#"{"manualSelector":true,"selector":{"matchLabels":{"a":"b"}}}"#);
    assert_eq!(job_labels(&manual).as_deref(), Some(r#"{"a":"b"}"#));
    assert_eq!(template_labels(spec_of(&manual)).map(Object::len), Some(1));
    for job in [inherited, manual] {
        assert_eq!(causes(jobs().validate(&job)), [""; 0]);
    }
}

#[test]
fn bad_specs_are_refused_with_every_cause() {
    let indexed = |more: &str| format!(r#"{{"completionMode":"Indexed","completions":4{more}}}"#);
    let rule = |rule: &str| format!(r#"{{"podFailurePolicy":{{"rules":[{rule}]}}}}"#);
    let at_rule = "spec.podFailurePolicy.rules[0]";
    for (changes, want) in [
        ("{}".to_owned(), vec![]),
        (indexed(""), vec![]),
        (r#"{"selector":{"matchLabels":{"a":"b"}}}"#.to_owned(), vec!["FieldValueInvalid spec.selector".to_owned()]),
        (r#"{"backoffLimitPerIndex":1}"#.to_owned(), vec!["FieldValueInvalid spec.backoffLimitPerIndex".to_owned()]),
        (
            r#"{"maxFailedIndexes":1}"#.to_owned(),
            vec![
                "FieldValueInvalid spec.maxFailedIndexes".to_owned(),
                "FieldValueRequired spec.backoffLimitPerIndex".to_owned(),
            ],
        ),
        (indexed(r#","parallelism":100001"#), vec!["FieldValueInvalid spec.parallelism".to_owned()]),
        (
            indexed(r#","backoffLimitPerIndex":1,"maxFailedIndexes":5"#),
            vec!["FieldValueInvalid spec.maxFailedIndexes".to_owned()],
        ),
        (
            r#"{"completionMode":"Indexed","completions":100001,"parallelism":10001,"backoffLimitPerIndex":1}"#
                .to_owned(),
            vec![
                "FieldValueInvalid spec.parallelism".to_owned(),
                "FieldValueRequired spec.maxFailedIndexes".to_owned(),
            ],
        ),
        (r#"{"completionMode":"Sometimes"}"#.to_owned(), vec!["FieldValueNotSupported spec.completionMode".to_owned()]),
        (r#"{"managedBy":"me"}"#.to_owned(), vec!["FieldValueInvalid spec.managedBy".to_owned()]),
        (indexed(r#","successPolicy":{"rules":[]}"#), vec!["FieldValueRequired spec.successPolicy.rules".to_owned()]),
        (
            indexed(r#","successPolicy":{"rules":[{"succeededIndexes":"0-1","succeededCount":3},{}]}"#),
            vec![
                "FieldValueInvalid spec.successPolicy.rules[0].succeededCount".to_owned(),
                "FieldValueRequired spec.successPolicy.rules[1]".to_owned(),
            ],
        ),
        (
            r#"{"successPolicy":{"rules":[{"succeededCount":1}]}}"#.to_owned(),
            vec!["FieldValueInvalid spec.successPolicy".to_owned()],
        ),
        (rule(r#"{"action":"FailJob"}"#), vec![format!("FieldValueInvalid {at_rule}")]),
        (
            rule(r#"{"onExitCodes":{"operator":"In","values":[1]}}"#),
            vec![format!("FieldValueRequired {at_rule}.action")],
        ),
        (
            rule(r#"{"action":"FailIndex","onExitCodes":{"operator":"In","values":[1]}}"#),
            vec![format!("FieldValueInvalid {at_rule}.action")],
        ),
        (
            rule(r#"{"action":"Count","onExitCodes":{"containerName":"x","operator":"Near","values":[2,1,1]}}"#),
            vec![
                format!("FieldValueDuplicate {at_rule}.onExitCodes.values[2]"),
                format!("FieldValueInvalid {at_rule}.onExitCodes.containerName"),
                format!("FieldValueInvalid {at_rule}.onExitCodes.values"),
                format!("FieldValueNotSupported {at_rule}.onExitCodes.operator"),
            ],
        ),
        (
            rule(r#"{"action":"Ignore","onPodConditions":[{"type":"a b","status":"Maybe"}]}"#),
            vec![
                format!("FieldValueInvalid {at_rule}.onPodConditions[0].type"),
                format!("FieldValueNotSupported {at_rule}.onPodConditions[0].status"),
            ],
        ),
        (
            r#"{"podReplacementPolicy":"Never"}"#.to_owned(),
            vec!["FieldValueNotSupported spec.podReplacementPolicy".to_owned()],
        ),
    ] {
        assert_eq!(causes(jobs().validate(&job(&changes))), want, "{changes}");
    }
}

#[test]
fn a_name_that_its_pods_could_not_bear_is_refused() {
    let name = "a".repeat(62);
    let long = job_with(r#"{"completionMode":"Indexed","completions":11}"#, &format!(r#"{{"name":"{name}"}}"#));
    assert_eq!(causes(jobs().validate(&long)), ["FieldValueInvalid metadata.name"]);
}

#[test]
fn of_a_stored_job_little_may_be_changed() {
    let resting = r#"{"suspend":true}"#;
    for (before, after, want) in [
        ("{}", r#"{"suspend":true,"completions":1,"parallelism":3,"activeDeadlineSeconds":4}"#, &[][..]),
        ("{}", r#"{"completions":2}"#, &["FieldValueInvalid spec.completions"]),
        (
            r#"{"completionMode":"Indexed","completions":2,"parallelism":2}"#,
            r#"{"completionMode":"Indexed","completions":3,"parallelism":3}"#,
            &[],
        ),
        (
            r#"{"completionMode":"Indexed","completions":2,"parallelism":2}"#,
            r#"{"completionMode":"Indexed","completions":3,"parallelism":2}"#,
            &["FieldValueInvalid spec.completions"],
        ),
        ("{}", r#"{"managedBy":"example.com/x"}"#, &["FieldValueInvalid spec.managedBy"]),
        (resting, r#"{"suspend":false}"#, &[]),
    ] {
        let (old, new) = (job(before), job(after));
        assert_eq!(causes(jobs().validate_update(&new, &old, Part::Whole)), want, "{before} {after}");
    }
    // What is wrong in itself is found twice.
    let wrong = job(r#"{"completions":1,"parallelism":-1}"#);
    assert_eq!(jobs().validate_update(&wrong, &job("{}"), Part::Whole).len(), 2);
}

#[test]
fn a_job_at_rest_may_be_placed_elsewhere() {
    let pod = |job: &mut Object, name: &str, value: Value| {
        job.object_mut("spec").object_mut("template").object_mut("spec").insert(name, value);
    };
    let affinity = object(r#"{"nodeAffinity":{"x":1}}"#);
    for (suspended, status, name, value, want) in [
        (true, "{}", "nodeSelector", Value::from(object(r#"{"a":"b"}"#)), &[][..]),
        (true, "{}", "affinity", Value::from(affinity), &[]),
        (true, "{}", "hostname", Value::from("h"), &["FieldValueInvalid spec.template.spec"]),
        (false, "{}", "nodeSelector", Value::from(object(r#"{"a":"b"}"#)), &["FieldValueInvalid spec.template"]),
        (
            true,
            r#"{"startTime":"2026-01-01T00:00:00Z"}"#,
            "nodeSelector",
            Value::from(object(r#"{"a":"b"}"#)),
            &["FieldValueInvalid spec.template"],
        ),
        (
            true,
            r#"{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Suspended","status":"True"}]}"#,
            "nodeSelector",
            Value::from(object(r#"{"a":"b"}"#)),
            &[],
        ),
    ] {
        let mut old = job(&format!(r#"{{"suspend":{suspended}}}"#));
        old.insert("status", object(status));
        let mut new = old.clone();
        pod(&mut new, name, value);
        assert_eq!(
            template::validate_update(&new, &old, terms().features)
                .map(|error| causes(FieldErrors::from([error])))
                .unwrap_or_default(),
            want,
            "{name} {status}"
        );
    }
}

#[test]
fn what_may_change_at_rest_is_for_the_features_to_say() {
    let all = terms().features;
    let no_resources = all.without(Feature::MutablePodResourcesForSuspendedJobs);
    let older = no_resources.without(Feature::MutableSchedulingDirectivesForSuspendedJobs);
    let (fresh, stopped) =
        ("{}", r#"{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Suspended","status":"True"}]}"#);
    let placement = |job: &mut Object| {
        let template = job.object_mut("spec").object_mut("template");
        template.object_mut("metadata").object_mut("labels").insert("more", "x");
        template.object_mut("spec").insert("nodeSelector", object(r#"{"a":"b"}"#));
    };
    let resources = |job: &mut Object| {
        let containers = job.object_mut("spec").object_mut("template").object_mut("spec").array_mut("containers");
        let container = containers.and_then(|all| all.first_mut()).and_then(Value::as_object_mut).expect("has one");
        container.insert("resources", object(r#"{"requests":{"cpu":"2"}}"#));
    };
    type Change<'a> = &'a dyn Fn(&mut Object);
    let (placement, resources): (Change<'_>, Change<'_>) = (&placement, &resources);
    for (name, features, status, change, is_allowed) in [
        ("placed", all, fresh, placement, true),
        ("placed later", all, stopped, placement, true),
        ("resized", all, stopped, resources, true),
        ("resized without the feature", no_resources, fresh, resources, false),
        ("placed without the other", no_resources, stopped, placement, true),
        ("placed before it started", older, fresh, placement, true),
        ("placed after it started", older, stopped, placement, false),
    ] {
        let mut old = job(r#"{"suspend":true}"#);
        old.insert("status", object(status));
        let mut new = old.clone();
        change(&mut new);
        assert_eq!(template::validate_update(&new, &old, features).is_none(), is_allowed, "{name}");
    }
}

#[test]
fn who_manages_a_job_is_dropped_when_it_is_made_without_the_feature() {
    let given = r#"{"managedBy":"example.com/x","podReplacementPolicy":"Failed"}"#;
    let features = terms().features.without(Feature::JobManagedBy).without(Feature::JobPodReplacementPolicy);
    let off = Jobs { policy: PodPolicy { features, ..terms().pods() } };
    for (jobs, old, want) in [
        (jobs(), None, ["managedBy", "podReplacementPolicy"].as_slice()),
        (Jobs { ..off }, None, &["podReplacementPolicy"]),
        (Jobs { ..off }, Some("{}"), &["managedBy", "podReplacementPolicy"]),
    ] {
        let whole = |spec: &str| object(&format!(r#"{{"spec":{spec}}}"#));
        let mut new = whole(given);
        jobs.settle(&mut new, old.map(whole).as_ref(), NOW);
        let names: Vec<&str> = spec_of(&new).iter().map(|(name, _)| name).collect();
        assert_eq!(names, want, "{old:?}");
    }
    let mut plain = object(r#"{"spec":{}}"#);
    off.default(&mut plain);
    assert!(!spec_of(&plain).contains("podReplacementPolicy"));
}
