//! The rules for certificate signing requests, case by case.

use super::*;
use crate::Requester;
use crate::kinds::tests::{check, object};

const REQUEST: &str = include_str!("request.pem");
const CERTIFICATE: &str = include_str!("certificate.pem");

fn request(spec: &str, status: &str) -> Object {
    let pem = STANDARD.encode(REQUEST);
    let status = status.replace("CERTIFICATE", &STANDARD.encode(CERTIFICATE));
    object(&format!(
        r#"{{"spec":{{"request":"{pem}","signerName":"example.com/s","usages":["client auth"]{spec}}},"status":{{{status}}}}}"#
    ))
}

#[test]
fn requests_are_checked_down_to_their_signature() {
    let with_pem = |pem: &str| format!(r#","request":"{}""#, STANDARD.encode(pem));
    let tampered = {
        let mut der = pem::blocks(REQUEST).next().expect("is PEM").content;
        let last = der.len() - 1;
        der[last] ^= 1;
        format!("-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n", STANDARD.encode(der))
    };
    for (name, spec, want) in [
        ("good", String::new(), &[][..]),
        ("no PEM", with_pem("hello"), &["FieldValueInvalid spec.request"]),
        ("a certificate", with_pem(CERTIFICATE), &["FieldValueInvalid spec.request"]),
        ("another signature", with_pem(&tampered), &["FieldValueInvalid spec.request"]),
        ("no usages", r#","usages":[]"#.to_owned(), &["FieldValueRequired spec.usages"]),
        (
            "odd usages",
            r#","usages":["any","fun","any"]"#.to_owned(),
            &["FieldValueNotSupported spec.usages[1]", "FieldValueDuplicate spec.usages[2]"],
        ),
        ("too short", r#","expirationSeconds":599"#.to_owned(), &["FieldValueInvalid spec.expirationSeconds"]),
        (
            "legacy",
            r#","signerName":"kubernetes.io/legacy-unknown""#.to_owned(),
            &["FieldValueInvalid spec.signerName"],
        ),
    ] {
        check(name, &CertificateSigningRequests.validate(&request(&spec, "")), want);
    }
}

#[test]
fn who_asks_is_recorded_and_the_status_is_not_theirs() {
    let mut object = request(r#","username":"liar","extra":{"a":["b"]}"#, r#""certificate":"CERTIFICATE""#);
    let groups = ["g".to_owned()];
    let requester = Requester { name: "jane", uid: "", groups: &groups, extra: &[] };
    CertificateSigningRequests.prepare_create(&mut object, Circumstances { now: "", requester });
    let spec = object.object("spec").expect("is kept");
    assert_eq!((spec.str("username"), spec.get("extra"), spec.array("groups").len()), (Some("jane"), None, 1));
    assert!(!object.contains("status"));
}

#[test]
fn each_subresource_changes_its_part_only() {
    let approved = r#""conditions":[{"type":"Approved","status":"True"}]"#;
    let denied = r#""conditions":[{"type":"Approved","status":"True"},{"type":"Denied","status":"True"}]"#;
    let issued = r#""certificate":"CERTIFICATE""#;
    let nonsense = r#""certificate":"aGVsbG8=""#;
    let conditions = "FieldValueForbidden status.conditions";
    let certificate = "FieldValueForbidden status.certificate";
    for (name, part, old, new, want) in [
        ("approve", "approval", "", approved, &[][..]),
        ("approve as status", "status", "", approved, &[conditions]),
        ("deny too", "approval", approved, denied, &["FieldValueInvalid status.conditions"]),
        ("take back", "approval", approved, "", &[conditions]),
        ("issue", "status", "", issued, &[]),
        ("issue nonsense", "status", "", nonsense, &["FieldValueInvalid status.certificate"]),
        ("issue with the approval", "approval", "", issued, &[]),
        ("take the certificate back", "status", issued, "", &[certificate]),
        (
            "an odd condition",
            "status",
            "",
            r#""conditions":[{"type":"Failed","status":"False"},{"type":"","status":"Maybe"}]"#,
            &[
                "FieldValueNotSupported status.conditions[0].status",
                "FieldValueNotSupported status.conditions[1].status",
                "FieldValueRequired status.conditions[1].type",
            ],
        ),
    ] {
        let old = request("", old);
        let mut new = request("", new);
        let circumstances = Circumstances { now: "2024-01-02T03:04:05Z", requester: Requester::default() };
        let part = Part::Subresource(part);
        CertificateSigningRequests.prepare_update(&mut new, &old, part, circumstances);
        check(name, &CertificateSigningRequests.validate_update(&new, &old, part), want);
    }
}

#[test]
fn conditions_are_stamped_once() {
    let old = request("", r#""conditions":[{"type":"A","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z"}]"#);
    let mut new = request("", r#""conditions":[{"type":"A","status":"True"},{"type":"B","status":"True"}]"#);
    stamp_conditions(&mut new, &old, "2024-01-02T03:04:05Z");
    let times: Vec<_> = conditions(&new)
        .iter()
        .filter_map(Value::as_object)
        .map(|condition| (condition.str("lastTransitionTime"), condition.str("lastUpdateTime")))
        .collect();
    let now = Some("2024-01-02T03:04:05Z");
    assert_eq!(times, [(Some("2020-01-01T00:00:00Z"), now), (now, now)]);
}
