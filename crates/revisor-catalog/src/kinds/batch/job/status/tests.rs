//! The rules for the status of jobs, case by case.

use super::*;
use crate::kinds::tests::{object, terms};

#[test]
fn statuses_follow_each_other_in_order() {
    let start = r#""startTime":"2024-01-02T03:04:05Z""#;
    let end = r#""completionTime":"2024-01-02T03:14:05Z""#;
    let met = r#"{"type":"SuccessCriteriaMet","status":"True"}"#;
    let complete = r#"{"type":"Complete","status":"True"}"#;
    let failed = r#"{"type":"Failed","status":"True"}"#;
    let target = r#"{"type":"FailureTarget","status":"True"}"#;
    let done = format!(r#"{{{start},{end},"conditions":[{met},{complete}]}}"#);
    let plain = r#"{"completions":3}"#;
    let indexed = r#"{"completionMode":"Indexed","completions":4,"parallelism":2,"backoffLimitPerIndex":1}"#;
    for (name, spec, old, new, want) in [
        ("begins", plain, "{}".to_owned(), format!(r#"{{{start},"active":1,"ready":1}}"#), vec![]),
        ("completes", plain, format!("{{{start}}}"), done.clone(), vec![]),
        (
            "too early",
            plain,
            "{}".to_owned(),
            format!(r#"{{"conditions":[{complete}]}}"#),
            vec!["Required status.completionTime", "Invalid status.conditions", "Required status.startTime"],
        ),
        (
            "busy",
            plain,
            "{}".to_owned(),
            format!(
                r#"{{{start},{end},"active":1,"terminating":1,"conditions":[{met},{complete}],"uncountedTerminatedPods":{{"failed":["x"]}}}}"#
            ),
            vec!["Invalid status.active", "Invalid status.uncountedTerminatedPods", "Invalid status.terminating"],
        ),
        (
            "ends without completing",
            plain,
            "{}".to_owned(),
            format!("{{{start},{end}}}"),
            vec!["Invalid status.completionTime"],
        ),
        (
            "fails without a target",
            plain,
            "{}".to_owned(),
            format!(r#"{{{start},"conditions":[{failed}]}}"#),
            vec!["Invalid status.conditions"],
        ),
        ("fails", plain, "{}".to_owned(), format!(r#"{{{start},"conditions":[{target},{failed}]}}"#), vec![]),
        (
            "both",
            plain,
            "{}".to_owned(),
            format!(r#"{{{start},"conditions":[{target},{met}]}}"#),
            vec!["Invalid status.conditions"],
        ),
        (
            "taken back",
            plain,
            done.clone(),
            format!(r#"{{{start},"conditions":[{met}]}}"#),
            vec!["Invalid status.conditions"],
        ),
        ("another end", plain, done.clone(), done.replace("03:14", "03:15"), vec!["Invalid status.completionTime"]),
        (
            "another start",
            plain,
            format!("{{{start}}}"),
            format!("{{{}}}", start.replace("03:04", "03:05")),
            vec!["Invalid status.startTime"],
        ),
        (
            "fewer",
            plain,
            r#"{"failed":2,"succeeded":2}"#.to_owned(),
            r#"{"failed":1,"succeeded":1}"#.to_owned(),
            vec!["Invalid status.failed", "Invalid status.succeeded"],
        ),
        ("more ready", plain, "{}".to_owned(), r#"{"active":1,"ready":2}"#.to_owned(), vec!["Invalid status.ready"]),
        (
            "twice",
            plain,
            "{}".to_owned(),
            r#"{"uncountedTerminatedPods":{"succeeded":["a",""],"failed":["a"]}}"#.to_owned(),
            vec![
                "Invalid status.uncountedTerminatedPods.succeeded[1]",
                "Duplicate status.uncountedTerminatedPods.failed[0]",
            ],
        ),
        (
            "indexes without indexes",
            plain,
            "{}".to_owned(),
            r#"{"completedIndexes":"1","failedIndexes":"2"}"#.to_owned(),
            vec!["Invalid status.completedIndexes", "Invalid status.failedIndexes"],
        ),
        ("indexes", indexed, "{}".to_owned(), r#"{"completedIndexes":"0,2","failedIndexes":"1,3"}"#.to_owned(), vec![]),
        (
            "overlap",
            indexed,
            "{}".to_owned(),
            r#"{"completedIndexes":"0-2","failedIndexes":"2"}"#.to_owned(),
            vec!["Invalid status.failedIndexes"],
        ),
        (
            "unknown indexes",
            indexed,
            "{}".to_owned(),
            r#"{"completedIndexes":"9","failedIndexes":"x"}"#.to_owned(),
            vec!["Invalid status.completedIndexes", "Invalid status.failedIndexes"],
        ),
        (
            "unchanged",
            plain,
            r#"{"completedIndexes":"1"}"#.to_owned(),
            r#"{"completedIndexes":"1"}"#.to_owned(),
            vec![],
        ),
    ] {
        let whole = |status: &str| object(&format!(r#"{{"spec":{spec},"status":{status}}}"#));
        let errors = validate(&whole(&new), &whole(&old), terms().features);
        let mut found: Vec<String> = errors
            .iter()
            .map(|error| format!("{} {}", error.kind.reason().trim_start_matches("FieldValue"), error.field))
            .collect();
        found.dedup();
        assert_eq!(found, want, "{name}");
    }
}

#[test]
fn where_only_one_controller_writes_it_the_status_is_hardly_looked_at() {
    let met = r#"{"conditions":[{"type":"SuccessCriteriaMet","status":"True"}]}"#;
    let all = terms().features;
    let alone = all.without(Feature::JobManagedBy);
    let older = alone.without(Feature::JobPodReplacementPolicy);
    for (features, old, new, want) in [
        (all, r#"{"failed":2}"#, r#"{"failed":1}"#, 1),
        (alone, r#"{"failed":2}"#, r#"{"failed":1}"#, 0),
        (alone, r#"{"failed":2}"#, r#"{"failed":-1}"#, 1),
        (alone, "{}", met, 0),
        (older, "{}", met, 2),
        (older, met, met, 0),
        (older, met, "{}", 1),
    ] {
        let whole = |status: &str| object(&format!(r#"{{"spec":{{"completions":3}},"status":{status}}}"#));
        assert_eq!(validate(&whole(new), &whole(old), features).len(), want, "{old} {new}");
    }
}
