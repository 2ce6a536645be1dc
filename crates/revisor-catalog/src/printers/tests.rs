//! Objects and their cells, as the original prints them at 20:05 on that day.

use revisor_object::{Object, Value, parse_json};

use crate::{Columns, Moment};

/// One object a line, as the original stored it, with the cells it printed.
const PRINTED: &str = include_str!("tests/printed.jsonl");

fn now() -> Moment {
    Moment::parse("2026-11-15T20:05:00Z").expect("a time")
}

fn object(json: &str) -> Object {
    match parse_json(json.as_bytes()).expect("JSON").value {
        Value::Object(object) => object,
        other => panic!("{other:?} is no object"),
    }
}

#[test]
fn objects_are_printed_as_the_original_prints_them() {
    for line in PRINTED.lines() {
        let case = object(line);
        let (group, resource) = (case.str("group").expect("a group"), case.str("resource").expect("a resource"));
        let columns = Columns::of(group, resource);
        let printed = case.object("object").expect("an object");
        let cells = Value::Array(columns.cells(printed, now()));
        assert_eq!(cells.to_json(), case.get("cells").expect("cells").to_json(), "{group}/{resource}: {line}");
        let completed = columns.completion(printed).map(|completion| completion.reason);
        assert_eq!(completed, case.str("completed"), "{line}");
    }
}

#[test]
fn what_the_original_does_not_serve_by_default_is_printed_too() {
    let made = r#""metadata":{"name":"a","creationTimestamp":"2026-11-15T20:00:00Z"}"#;
    for (group, resource, rest, want) in [
        (
            "",
            "componentstatuses",
            r#""conditions":[{"type":"Healthy","status":"True","message":"ok"}]"#,
            r#"["a","Healthy","ok",""]"#,
        ),
        ("", "componentstatuses", r#""conditions":[]"#, r#"["a","Unknown","",""]"#),
        (
            "certificates.k8s.io",
            "certificatesigningrequests",
            r#""status":{"conditions":[{"type":"Approved"},{"type":"Failed"}],"certificate":"eA=="}"#,
            r#"["a","5m","<none>","","<none>","Approved,Failed,Issued"]"#,
        ),
        ("certificates.k8s.io", "clustertrustbundles", r#""spec":{}"#, r#"["a","<none>"]"#),
        (
            "certificates.k8s.io",
            "podcertificaterequests",
            r#""spec":{"podName":"p","serviceAccountName":"s","nodeName":"n","signerName":"e.com/s"},"status":{"conditions":[{"type":"Issued"}]}"#,
            r#"["a","p","s","n","e.com/s","Issued","<none>"]"#,
        ),
        (
            "coordination.k8s.io",
            "leasecandidates",
            r#""spec":{"leaseName":"l","binaryVersion":"1.36","emulationVersion":"1.35"}"#,
            r#"["a","l","1.36","1.35","5m"]"#,
        ),
        (
            "internal.apiserver.k8s.io",
            "storageversions",
            r#""status":{"storageVersions":[{"apiServerID":"x","encodingVersion":"v1"}]}"#,
            r#"["a","<unset>","x=v1","5m"]"#,
        ),
        (
            "resource.k8s.io",
            "devicetaintrules",
            r#""spec":{"taint":{"key":"k","effect":"NoExecute","timeAdded":"2026-11-15T20:04:00Z"}}"#,
            r#"["a","k","","NoExecute","60s","5m"]"#,
        ),
        (
            "resource.k8s.io",
            "resourcepoolstatusrequests",
            r#""spec":{"driver":"d"},"status":{"poolCount":3,"pools":[{"totalDevices":4,"availableDevices":1},{"totalDevices":2,"validationError":"x"}],"conditions":[{"type":"Complete","status":"True","lastTransitionTime":"2026-11-15T20:04:00Z"}]}"#,
            r#"["a","d","6","1","0","0","1",3,"Complete (2/3 pools)","60s"]"#,
        ),
        (
            "resource.k8s.io",
            "resourcepoolstatusrequests",
            r#""spec":{"driver":"d"}"#,
            r#"["a","d","-","-","-","-","-",0,"Pending","<none>"]"#,
        ),
        (
            "storagemigration.k8s.io",
            "storageversionmigrations",
            r#""spec":{"resource":{"group":"apps","resource":"deployments"}},"status":{"conditions":[{"type":"Running","status":"False"},{"type":"Succeeded","status":"True"}]}"#,
            r#"["a","deployments.apps","Succeeded"]"#,
        ),
        (
            "scheduling.k8s.io",
            "podgroups",
            r#""spec":{"schedulingPolicy":{"gang":{}},"podGroupTemplateRef":{"workload":{"workloadName":"w"}}},"status":{"conditions":[{"type":"PodGroupScheduled","status":"False"}]}"#,
            r#"["a","Gang","w","Unschedulable","5m"]"#,
        ),
        ("autoscaling", "scales", r#""spec":{"replicas":3},"status":{"replicas":1}"#, r#"["a",3,1,"5m"]"#),
        (
            "admissionregistration.k8s.io",
            "mutatingadmissionpolicies",
            r#""spec":{"mutations":[{}]}"#,
            r#"["a",1,"<unset>","5m"]"#,
        ),
    ] {
        let cells = Columns::of(group, resource).cells(&object(&format!("{{{made},{rest}}}")), now());
        assert_eq!(Value::Array(cells).to_json(), want, "{group}/{resource}");
    }
}

#[test]
fn selectors_that_make_no_sense_are_named_as_such() {
    let selector = r#""spec":{"selector":{"matchExpressions":[{"key":"a","operator":"In"}]}}"#;
    for (resource, column, want) in [("replicasets", 7, "<error>"), ("deployments", 7, "<invalid>")] {
        let cells = Columns::of("apps", resource).cells(&object(&format!("{{{selector}}}")), now());
        assert_eq!(cells[column], Value::from(want), "{resource}");
    }
}

#[test]
fn flow_schemas_are_ranked() {
    let schema = object(r#"{"spec":{"matchingPrecedence":7}}"#);
    assert_eq!(Columns::of("flowcontrol.apiserver.k8s.io", "flowschemas").rank(&schema), Some(7));
    assert_eq!(Columns::of("", "pods").rank(&schema), None);
}
