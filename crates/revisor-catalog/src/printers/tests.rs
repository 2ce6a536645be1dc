//! Objects and their cells, as the original prints them at 20:05 on that day.

use revisor_object::{Object, Value, parse_json};

use crate::{Columns, Moment, TimedText};

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

/// The cells in JSON. They must be the same from what is remembered of them, then and later.
#[track_caller]
fn cells(columns: &Columns, object: &Object) -> String {
    let print = |now| Value::Array(columns.cells(object, now)).to_json();
    let remembered = TimedText::of(print).expect("no object here has marks");
    for time in ["2026-11-15T20:05:00Z", "2026-11-15T20:05:07.5Z", "2026-11-19T03:00:00Z", "2031-01-01T00:00:00Z"] {
        let time = Moment::parse(time).expect("a time");
        let mut written = String::new();
        remembered.write(time, &mut written).expect("writing to a string does not fail");
        assert_eq!(written, print(time), "{object:?}");
    }
    print(now())
}

#[test]
fn objects_are_printed_as_the_original_prints_them() {
    for line in PRINTED.lines() {
        let case = object(line);
        let (group, resource) = (case.str("group").expect("a group"), case.str("resource").expect("a resource"));
        let columns = Columns::of(group, resource);
        let printed = case.object("object").expect("an object");
        assert_eq!(cells(&columns, printed), case.get("cells").expect("cells").to_json(), "{group}/{resource}: {line}");
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
            "versioning.revisor.dev",
            "conversions",
            r#""spec":{"steps":[{"from":"v1","to":"v2"},{"from":"v2","to":"v3"}]},"status":{"steps":[{"verdict":"Proved"},{"verdict":"Tested"}],"conditions":[{"type":"InUse","status":"True"}]}"#,
            r#"["a","v1,v2,v3","Tested","True","5m"]"#,
        ),
        (
            "versioning.revisor.dev",
            "conversions",
            r#""spec":{"canonicalize":[{"version":"v1"}]}"#,
            r#"["a","v1","<none>","Unknown","5m"]"#,
        ),
        (
            "versioning.revisor.dev",
            "versionreports",
            r#""status":{"storageVersion":"v1","versions":[{"name":"v1","served":true,"objects":3},{"name":"v1beta1","served":true,"objects":12},{"name":"v1alpha1"}],"droppableVersions":["v1alpha1"]}"#,
            r#"["a","v1","v1:3,v1beta1:12","v1,v1beta1","v1alpha1","5m"]"#,
        ),
        (
            "versioning.revisor.dev",
            "versionreports",
            r#""status":{"storageVersion":"v1","versions":[{"name":"v1"}]}"#,
            r#"["a","v1","<none>","<none>","<none>","5m"]"#,
        ),
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
        let cells = cells(&Columns::of(group, resource), &object(&format!("{{{made},{rest}}}")));
        assert_eq!(cells, want, "{group}/{resource}");
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
fn a_job_that_runs_gets_older_in_both_of_its_columns() {
    let job = r#"{"metadata":{"name":"a","creationTimestamp":"2026-11-15T20:00:00Z"},"spec":{"completions":1},"status":{"startTime":"2026-11-15T20:04:00Z"}}"#;
    let printed = cells(&Columns::of("batch", "jobs"), &object(job));
    assert_eq!(printed, r#"["a","Running","0/1","60s","5m","","","<none>"]"#);
}

#[test]
fn flow_schemas_are_ranked() {
    let schema = object(r#"{"spec":{"matchingPrecedence":7}}"#);
    assert_eq!(Columns::of("flowcontrol.apiserver.k8s.io", "flowschemas").rank(&schema), Some(7));
    assert_eq!(Columns::of("", "pods").rank(&schema), None);
}
