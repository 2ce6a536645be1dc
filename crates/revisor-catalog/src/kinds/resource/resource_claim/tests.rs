//! The rules for resource claims, case by case.

use revisor_object::{FieldError, Value};

use super::*;
use crate::kinds::tests::{object, terms};

fn claims() -> ResourceClaims {
    ResourceClaims { selectors: Selectors::new(&terms()), features: terms().features }
}

fn causes(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect()
}

const REQUEST: &str = r#"{"name":"r","exactly":{"deviceClassName":"c","allocationMode":"ExactCount","count":1}}"#;

fn claim(devices: &str, status: &str) -> Object {
    object(&format!(r#"{{"spec":{{"devices":{devices}}},"status":{status}}}"#))
}

#[test]
fn requests_are_checked() {
    for (devices, want) in [
        (format!(r#"{{"requests":[{REQUEST}]}}"#), vec![]),
        (format!(r#"{{"requests":[{REQUEST},{REQUEST}]}}"#), vec!["Duplicate spec.devices.requests[1]"]),
        (r#"{"requests":[{"name":"r"}]}"#.to_owned(), vec!["Required spec.devices.requests[0]"]),
        (
            r#"{"requests":[{"name":"R","exactly":{"allocationMode":"All","count":2}}]}"#.to_owned(),
            vec![
                "Invalid spec.devices.requests[0].name",
                "Required spec.devices.requests[0].exactly.deviceClassName",
                "Invalid spec.devices.requests[0].exactly.count",
            ],
        ),
        (
            format!(r#"{{"requests":[{REQUEST}],"constraints":[{{"requests":["x"]}}],"config":[{{"requests":["r/s"]}}]}}"#),
            vec![
                "Invalid spec.devices.constraints[0].requests[0]",
                "Required spec.devices.constraints[0]",
                "Invalid spec.devices.config[0].requests[0]",
                "Required spec.devices.config[0].opaque",
            ],
        ),
        (
            r#"{"requests":[{"name":"r","firstAvailable":[{"name":"a","deviceClassName":"c","allocationMode":"Most"}]}],
                "constraints":[{"requests":["r/a"],"matchAttribute":"size"}]}"#
                .to_owned(),
            vec![
                "NotSupported spec.devices.requests[0].firstAvailable[0].allocationMode",
                "Invalid spec.devices.constraints[0].matchAttribute",
            ],
        ),
    ] {
        let want: Vec<String> = want.iter().map(|cause| format!("FieldValue{cause}")).collect();
        assert_eq!(causes(&claims().validate(&claim(&devices, "{}"))), want, "{devices}");
    }
}

#[test]
fn one_device_is_asked_for_if_nothing_is_said() {
    let mut claim = claim(
        r#"{"requests":[{"name":"r","exactly":{"allocationMode":"ExactCount"},"firstAvailable":[{"allocationMode":"All"}]}]}"#,
        "{}",
    );
    claims().default(&mut claim);
    let requests = claim.at(&["spec", "devices", "requests"]).map(Value::to_json);
    let want = r#"[{"exactly":{"allocationMode":"ExactCount","count":1},"firstAvailable":[{"allocationMode":"All"}],"name":"r"}]"#;
    assert_eq!(requests.as_deref(), Some(want));
}

#[test]
fn a_status_is_allocated_then_reserved() {
    let devices = format!(r#"{{"requests":[{REQUEST}]}}"#);
    let allocation = r#"{"devices":{"results":[{"request":"r","driver":"d.example","pool":"p","device":"v"}]}}"#;
    let consumer = r#"[{"resource":"pods","name":"p","uid":"u"}]"#;
    let device = |name: &str| format!(r#"[{{"driver":"d.example","pool":"p","device":"{name}"}}]"#);
    let bare = claim(&devices, "{}");
    let full = claim(&devices, &format!(r#"{{"allocation":{allocation},"reservedFor":{consumer}}}"#));
    for (name, old, status, want) in [
        (
            "reserved before it is allocated",
            &bare,
            format!(r#"{{"reservedFor":{consumer}}}"#),
            vec!["Forbidden status.reservedFor"],
        ),
        (
            "allocated for an unknown request",
            &bare,
            format!(r#"{{"allocation":{}}}"#, allocation.replace("\"r\"", "\"x\"")),
            vec!["Invalid status.allocation.devices.results[0].request"],
        ),
        ("allocated and reserved", &bare, format!(r#"{{"allocation":{allocation},"reservedFor":{consumer}}}"#), vec![]),
        (
            "allocated otherwise",
            &full,
            format!(r#"{{"allocation":{}}}"#, allocation.replace("\"v\"", "\"w\"")),
            vec!["Invalid status.allocation"],
        ),
        ("a known device", &full, format!(r#"{{"allocation":{allocation},"devices":{}}}"#, device("v")), vec![]),
        (
            "an unknown device",
            &full,
            format!(r#"{{"allocation":{allocation},"devices":{}}}"#, device("w")),
            vec!["Invalid status.devices[0]"],
        ),
    ] {
        let want: Vec<String> = want.iter().map(|cause| format!("FieldValue{cause}")).collect();
        let new = claim(&devices, &status);
        assert_eq!(causes(&claims().validate_update(&new, old, Part::Subresource("status"))), want, "{name}");
    }
    let unknown = claim(&devices, &format!(r#"{{"allocation":{allocation},"devices":{}}}"#, device("w")));
    let errors = claims().validate_update(&unknown, &full, Part::Subresource("status"));
    let told = errors.first().map(ToString::to_string).unwrap_or_default();
    let shown =
        r#"{"Driver":"d.example","Pool":"p","Device":"w","ShareID":""}: must be an allocated device in the claim"#;
    assert!(told.ends_with(shown), "{told}");
    let reported = claim(&devices, &format!(r#"{{"allocation":{allocation},"devices":{}}}"#, device("v")));
    let mut freed = claim(&devices, &format!(r#"{{"devices":{}}}"#, device("v")));
    status::forget_deallocated(&mut freed, &reported);
    assert_eq!(freed.at(&["status", "devices"]), None);
}
