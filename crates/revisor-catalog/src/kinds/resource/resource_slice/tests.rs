//! The rules for resource slices, case by case.

use super::*;
use crate::kinds::tests::object;

fn slice(rest: &str) -> Object {
    let pool = r#"{"name":"p","resourceSliceCount":1,"generation":1}"#;
    object(&format!(r#"{{"spec":{{"driver":"d.example","pool":{pool}{rest}}}}}"#))
}

fn slices() -> ResourceSlices {
    ResourceSlices
}

fn causes(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect()
}

#[test]
fn what_is_wrong_with_a_slice_is_found() {
    for (rest, want) in [
        (r#","allNodes":true"#, vec![]),
        ("", vec!["Required spec"]),
        (r#","allNodes":true,"nodeName":"n""#, vec!["Invalid spec"]),
        (r#","allNodes":false"#, vec!["Invalid spec.allNodes", "Required spec"]),
        (r#","allNodes":true,"devices":[{"name":"a"},{"name":"a"}]"#, vec!["Duplicate spec.devices[1]"]),
        (
            r#","allNodes":true,"devices":[{"name":"A","nodeName":"n"}]"#,
            vec!["Invalid spec.devices[0].name", "Invalid spec.devices[0]"],
        ),
        (r#","perDeviceNodeSelection":true,"devices":[{"name":"a"}]"#, vec!["Required spec.devices[0]"]),
        (
            r#","allNodes":true,"devices":[{"name":"a","attributes":{"a-b":{"int":1},"x":{"int":1,"bool":true},"v":{"version":"1"}}}]"#,
            vec![
                "Invalid spec.devices[0].attributes",
                "Invalid spec.devices[0].attributes[v].version",
                "Invalid spec.devices[0].attributes[x]",
            ],
        ),
        (
            r#","allNodes":true,"devices":[{"name":"a","taints":[{"key":"k"}],"bindingConditions":["c"]}]"#,
            vec!["Required spec.devices[0].taints[0].effect", "Invalid spec.devices[0].bindingFailureConditions"],
        ),
        (
            r#","allNodes":true,"sharedCounters":[{"name":"s","counters":{"c":{"value":"1"}}},{"name":"t"}]"#,
            vec!["Required spec.sharedCounters[1].counters"],
        ),
        (
            r#","allNodes":true,"devices":[{"name":"a","capacity":{"m":{"value":"4","requestPolicy":{}}}}]"#,
            vec!["Forbidden spec.devices[0].capacity[m].requestPolicy"],
        ),
        (
            r#","allNodes":true,"devices":[{"name":"a","allowMultipleAllocations":true,
               "capacity":{"m":{"value":"4","requestPolicy":{"default":"3","validValues":["1","8"]}}}}]"#,
            vec![
                "Invalid spec.devices[0].capacity[m].requestPolicy.validValues[1]",
                "Invalid spec.devices[0].capacity[m].requestPolicy.validValues",
            ],
        ),
        (
            r#","allNodes":true,"devices":[{"name":"a","allowMultipleAllocations":true,
               "capacity":{"m":{"value":"8","requestPolicy":{"default":"3","validRange":{"min":"1","max":"5","step":"4"}}}}}]"#,
            vec!["Invalid spec.devices[0].capacity[m].requestPolicy.validRange.step"],
        ),
    ] {
        let want: Vec<String> = want.iter().map(|cause| format!("FieldValue{cause}")).collect();
        assert_eq!(causes(&slices().validate(&slice(rest))), want, "{rest}");
    }
}

#[test]
fn taints_are_dated() {
    let mut new = slice(r#","devices":[{"name":"a","taints":[{"key":"k"}]}]"#);
    let circumstances = Circumstances { now: "now", requester: crate::Requester::default() };
    slices().prepare_create(&mut new, circumstances);
    let devices = new.at(&["spec", "devices"]).map(Value::to_json);
    let want = r#"[{"name":"a","taints":[{"key":"k","timeAdded":"now"}]}]"#;
    assert_eq!(devices.as_deref(), Some(want));
}

#[test]
fn where_a_slice_comes_from_is_immutable() {
    let old = slice(r#","nodeName":"n""#);
    let new = object(
        r#"{"spec":{"driver":"e.example","pool":{"name":"q","resourceSliceCount":1,"generation":2},"nodeName":"m"}}"#,
    );
    assert_eq!(
        causes(&slices().validate_update(&new, &old, Part::Whole)),
        ["FieldValueInvalid spec.pool.name", "FieldValueInvalid spec.driver", "FieldValueInvalid spec.nodeName"]
    );
}
