//! What reports say, for definitions in all states.

use revisor_catalog::Verb;
use revisor_object::parse_json;

use super::*;
use crate::version_usage::Client;

fn at(hours: i64) -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH + Duration::hours(hours)
}

fn definition(stored_versions: &str) -> Object {
    let text = format!(
        r#"{{"metadata":{{"name":"widgets.example.com","creationTimestamp":"2026-11-15T20:00:00Z","uid":"u"}},
        "spec":{{"group":"example.com","names":{{"plural":"widgets"}},"versions":[
            {{"name":"v1","served":true,"storage":true}},
            {{"name":"v1beta1","served":true,"storage":false}},
            {{"name":"v1alpha1","served":false,"storage":false}}]}},
        "status":{{"storedVersions":{stored_versions}}}}}"#
    );
    match parse_json(text.as_bytes()).expect("is JSON").value {
        Value::Object(object) => object,
        other => panic!("no object: {other:?}"),
    }
}

fn used(version: &str, clients: &[(&str, i64)]) -> UsedVersion {
    let client = |(agent, hours): &(&str, i64)| Client {
        agent: (*agent).to_owned(),
        requests: 2,
        last: at(*hours),
        verb: Verb::Watch,
    };
    UsedVersion {
        version: version.to_owned(),
        requests: 2 * clients.len() as u64,
        last: clients.iter().map(|(_, hours)| at(*hours)).max().expect("somebody asked"),
        clients: clients.iter().map(client).collect(),
    }
}

/// The report at hour 100.
fn report(stored_versions: &str, counts: Option<&[(&str, u64)]>, used: Vec<UsedVersion>) -> Object {
    let definition = definition(stored_versions);
    let counts = counts.map(|counts| counts.iter().map(|(version, objects)| ((*version).into(), *objects)).collect());
    Facts { definition: &definition, counts, used, since: Some(at(50)), now: at(100) }.report()
}

/// What stands in the way of dropping a version.
fn obstacles(report: &Object, version: &str) -> Vec<String> {
    let versions = report.at(&["status", "versions"]).and_then(Value::as_array).expect("versions");
    let is = |known: &&Object| known.str("name") == Some(version);
    let version = versions.iter().filter_map(Value::as_object).find(is).expect("the version is told of");
    let obstacles = version.array("obstacles").iter().filter_map(Value::as_object);
    let text = |obstacle: &Object, name| obstacle.str(name).expect("a text").to_owned();
    obstacles.map(|obstacle| format!("{}: {}", text(obstacle, "reason"), text(obstacle, "message"))).collect()
}

fn droppable(report: &Object) -> String {
    report.at(&["status", "droppableVersions"]).expect("is told").to_json()
}

#[test]
fn what_stands_in_the_way_of_dropping_a_version_is_told() {
    let storage = "StorageVersion: objects are stored in it whenever they are written";
    let both = r#"["v1beta1","v1"]"#;
    let only = r#"["v1"]"#;
    for (name, stored_versions, counts, used, version, want) in [
        ("the storage version", only, &[][..], vec![], "v1", &[storage][..]),
        ("and its objects", only, &[("v1", 1)], vec![], "v1", &[storage, "ObjectsStored: 1 object is stored in it"]),
        (
            "objects of another version",
            both,
            &[("v1", 1), ("v1beta1", 12)],
            vec![],
            "v1beta1",
            &["ObjectsStored: 12 objects are stored in it; each is stored in v1 when it is written next"],
        ),
        (
            "no objects, but who knows that",
            both,
            &[("v1", 13)],
            vec![],
            "v1beta1",
            &[
                "InStoredVersions: no object is stored in it any more, but status.storedVersions of the definition still \
               names it; remove it there first",
            ],
        ),
        ("nothing", only, &[("v1", 13)], vec![], "v1beta1", &[]),
        (
            "one who asked lately",
            only,
            &[("v1", 13)],
            vec![used("v1", &[("new", 99)]), used("v1beta1", &[("old", 99)])],
            "v1beta1",
            &["RecentRequests: old asked for it at 1970-01-05T03:00:00Z"],
        ),
        (
            "one without a name",
            only,
            &[],
            vec![used("v1beta1", &[("", 99), ("older", 10)])],
            "v1beta1",
            &["RecentRequests: a client without a name asked for it at 1970-01-05T03:00:00Z"],
        ),
        (
            "some who asked lately, and one who did not",
            only,
            &[],
            vec![used("v1beta1", &[("a", 98), ("b", 99), ("c", 10), ("d", 77)])],
            "v1beta1",
            &["RecentRequests: b asked for it at 1970-01-05T03:00:00Z, and 2 other clients within the last day"],
        ),
        ("one who asked long ago", only, &[], vec![used("v1beta1", &[("old", 76)])], "v1beta1", &[]),
        ("one who asked when it was served", only, &[], vec![used("v1alpha1", &[("old", 99)])], "v1alpha1", &[]),
        (
            "objects in a version that is not defined",
            only,
            &[("v0", 2)],
            vec![],
            "v0",
            &["ObjectsStored: 2 objects are stored in it; each is stored in v1 when it is written next"],
        ),
        (
            "objects of which nobody knows the version",
            only,
            &[("", 1)],
            vec![],
            "unknown",
            &["ObjectsStored: 1 object is stored in it; each is stored in v1 when it is written next"],
        ),
    ] {
        let report = report(stored_versions, Some(counts), used);
        assert_eq!(obstacles(&report, version), want, "{name}");
        assert_eq!(droppable(&report).contains(&format!("{version:?}")), want.is_empty(), "{name}");
    }
}

#[test]
fn nothing_can_be_dropped_while_nobody_counts() {
    let report = report(r#"["v1"]"#, None, Vec::new());
    let uncounted = "NotCounted: the definition is not established, so nobody counts its objects";
    assert_eq!(obstacles(&report, "v1alpha1"), [uncounted]);
    assert_eq!(droppable(&report), "[]");
}

#[test]
fn a_report_has_the_name_and_the_age_of_its_definition() {
    let used = vec![used("v1", &[("a", 60), ("b", 99)])];
    let report = report(r#"["v1"]"#, Some(&[("v1", 3), ("v1beta1", 4)]), used);
    assert_eq!(
        report.get("metadata").expect("metadata").to_json(),
        r#"{"creationTimestamp":"2026-11-15T20:00:00Z","name":"widgets.example.com"}"#
    );
    let status = report.object("status").expect("a status");
    assert_eq!(status.get("objects").and_then(Value::as_i64), Some(7));
    assert_eq!(status.str("requestsSince"), Some("1970-01-03T02:00:00Z"));
    let v1 = status.array("versions")[0].as_object().expect("a version");
    assert_eq!(v1.get("requests").and_then(Value::as_i64), Some(4));
    assert_eq!(
        v1.get("clients").expect("clients").to_json(),
        r#"[{"lastRequestTime":"1970-01-05T03:00:00Z","lastVerb":"watch","requests":2,"userAgent":"b"},{"lastRequestTime":"1970-01-03T12:00:00Z","lastVerb":"watch","requests":2,"userAgent":"a"}]"#,
        "the last first"
    );
}

#[test]
fn the_stored_version_is_told_by_the_bytes() {
    for (bytes, want) in [
        (r#"{"apiVersion":"example.com/v1","kind":"Widget"}"#, "v1"),
        (r#"{"apiVersion":"example.com/v1beta1"}"#, "v1beta1"),
        (r#"{"about":{"apiVersion":"a/v9"},"apiVersion":"example.com/v1","kind":"Widget"}"#, "v1"),
        (r#"{"Alpha":"x","apiVersion":"example.com/v2"}"#, "v2"),
        (r#"{"kind":"Widget"}"#, ""),
        (r#"{"apiVersion":"v1"}"#, ""),
        (r#"{"apiVersion":"#, ""),
        ("", ""),
    ] {
        assert_eq!(stored_version(bytes.as_bytes()), want, "{bytes}");
    }
}
