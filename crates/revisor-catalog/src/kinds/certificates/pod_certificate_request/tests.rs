//! The rules for pod certificate requests, case by case.

use super::*;
use crate::Requester;
use crate::kinds::tests::{check, object};
use rcgen::{
    CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519,
    PublicKeyData, SanType, SigningKey,
};

/// A key of 3072 bits, signatures of `uid` with the longest salt, one as long as a digest and none, and a short key.
const RSA: &str = include_str!("rsa.txt");

const NOW: &str = "2026-01-01T00:01:00Z";
const PROOF_OF: &str = "spec.proofOfPossession";

fn request_with(proof: &str) -> Object {
    object(&format!(
        r#"{{"spec":{{"signerName":"example.com/s","podName":"p","podUID":"uid","serviceAccountName":"s",
            "serviceAccountUID":"u","nodeName":"n","nodeUID":"u","maxExpirationSeconds":86400{proof}}}}}"#
    ))
}

fn signed_request(key: &KeyPair) -> String {
    let request = CertificateParams::default().serialize_request(key).expect("a request");
    format!(r#","stubPKCS10Request":"{}""#, STANDARD.encode(request.der()))
}

fn key_and_proof(key: &str, proof: &str) -> String {
    format!(r#","pkixPublicKey":"{key}","proofOfPossession":"{proof}""#)
}

fn own_proof(key: &KeyPair) -> String {
    let proof = key.sign(b"uid").expect("a signature");
    key_and_proof(&STANDARD.encode(key.subject_public_key_info()), &STANDARD.encode(proof))
}

#[test]
fn the_key_must_be_there() {
    let rsa: Vec<&str> = RSA.lines().collect();
    let key = |algorithm| KeyPair::generate_for(algorithm).expect("a key");
    let elliptic = key(&PKCS_ECDSA_P256_SHA256);
    let mut tampered = CertificateParams::default().serialize_request(&elliptic).expect("a request").der().to_vec();
    *tampered.last_mut().expect("is not empty") ^= 1;
    let at_request = "FieldValueInvalid spec.stubPKCS10Request";
    let (at_key, at_proof) = ("FieldValueInvalid spec.pkixPublicKey", format!("FieldValueInvalid {PROOF_OF}"));
    for (name, proof, want) in [
        ("a signed request", signed_request(&elliptic), vec![]),
        ("a larger curve", signed_request(&key(&PKCS_ECDSA_P384_SHA384)), vec![]),
        ("the largest curve", signed_request(&key(&PKCS_ECDSA_P521_SHA512)), vec![]),
        ("no request", r#","stubPKCS10Request":"aGVsbG8=""#.to_owned(), vec![at_request]),
        ("tampered", format!(r#","stubPKCS10Request":"{}""#, STANDARD.encode(tampered)), vec![at_request]),
        ("nothing", String::new(), vec!["FieldValueInvalid spec"]),
        ("both", signed_request(&elliptic) + &own_proof(&elliptic), vec!["FieldValueInvalid spec"]),
        ("half", format!(r#","pkixPublicKey":"{}""#, rsa[0]), vec!["FieldValueInvalid spec"]),
        ("a curve", own_proof(&elliptic), vec![]),
        ("Edwards' curve", own_proof(&key(&PKCS_ED25519)), vec![]),
        ("the longest salt", key_and_proof(rsa[0], rsa[1]), vec![]),
        ("a usual salt", key_and_proof(rsa[0], rsa[2]), vec![]),
        ("no salt", key_and_proof(rsa[0], rsa[3]), vec![]),
        ("another signature", key_and_proof(rsa[0], rsa[0]), vec![&*at_proof]),
        ("a short key", key_and_proof(rsa[4], rsa[1]), vec![at_key]),
        ("no key", key_and_proof("aGVsbG8=", rsa[1]), vec![at_key]),
    ] {
        check(name, &PodCertificateRequests.validate(&request_with(&proof)), &want);
    }
    let other = key(&PKCS_ED25519).sign(b"another").expect("a signature");
    let proof = key_and_proof(&STANDARD.encode(elliptic.subject_public_key_info()), &STANDARD.encode(other));
    check("somebody else's", &PodCertificateRequests.validate(&request_with(&proof)), &[&*at_proof]);
}

#[test]
fn requests_say_for_whom_and_how_long() {
    let proof = own_proof(&KeyPair::generate().expect("a key"));
    for (change, want) in [
        ("", vec![]),
        (r#","maxExpirationSeconds":3599"#, vec!["FieldValueInvalid spec.maxExpirationSeconds"]),
        (r#","maxExpirationSeconds":7862400"#, vec![]),
        (r#","maxExpirationSeconds":7862401"#, vec!["FieldValueInvalid spec.maxExpirationSeconds"]),
        (
            r#","signerName":"kubernetes.io/s","maxExpirationSeconds":86401"#,
            vec!["FieldValueInvalid spec.maxExpirationSeconds"],
        ),
        (r#","unverifiedUserAnnotations":{"example.com/a":"b"}"#, vec![]),
        (r#","unverifiedUserAnnotations":{"a":"b"}"#, vec!["FieldValueInvalid spec.unverifiedUserAnnotations"]),
        (
            r#","signerName":"","podName":"P","serviceAccountUID":"""#,
            vec![
                "FieldValueRequired spec.signerName",
                "FieldValueInvalid spec.podName",
                "FieldValueInvalid spec.serviceAccountUID",
            ],
        ),
    ] {
        check(change, &PodCertificateRequests.validate(&request_with(&format!("{proof}{change}"))), &want);
    }
}

#[test]
fn an_answer_is_given_once_and_fits_the_request() {
    let (key, other) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let issue = |key: &KeyPair, days: u8, name: &str| {
        let mut params = CertificateParams::default();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 1, 1 + days);
        params.subject_alt_names = vec![SanType::DnsName(name.try_into().expect("is ASCII"))];
        params.self_signed(key).expect("a certificate").pem().replace("\r\n", "\\n").replace('\n', "\\n")
    };
    let good = issue(&key, 1, "a.example.com");
    let old = request_with(&signed_request(&key));
    let with_status = |status: &str| {
        let mut object = old.clone();
        object.insert("status", crate::kinds::tests::object(status));
        object
    };
    let condition = |kind: &str, truth: &str| {
        format!(r#"{{"type":"{kind}","status":"{truth}","reason":"R","lastTransitionTime":"2026-01-01T00:00:00Z"}}"#)
    };
    let answer = |kind: &str, rest: &str| format!(r#"{{"conditions":[{}]{rest}}}"#, condition(kind, "True"));
    let issued = |chain: &str, before: &str, refresh: &str, after: &str| {
        answer(
            "Issued",
            &format!(
                r#","certificateChain":"{chain}","notBefore":"{before}","beginRefreshAt":"{refresh}","notAfter":"{after}""#
            ),
        )
    };
    let (start, noon, end) = ("2026-01-01T00:00:00Z", "2026-01-01T12:00:00Z", "2026-01-02T00:00:00Z");
    let at = |field: &str| format!("FieldValueInvalid status.{field}");
    let before = with_status("{}");
    let done = with_status(&answer("Denied", ""));
    for (name, was, new, now, want) in [
        ("issued", &before, issued(&good, start, noon, end), NOW, vec![]),
        ("a chain", &before, issued(&(good.clone() + &good), start, noon, end), NOW, vec![]),
        ("denied", &before, answer("Denied", ""), NOW, vec![]),
        ("failed", &before, answer("Failed", ""), NOW, vec![]),
        ("nothing", &before, "{}".to_owned(), NOW, vec![]),
        (
            "denied with a time",
            &before,
            answer("Denied", r#","notAfter":"2026-01-01T00:00:00Z""#),
            NOW,
            vec!["FieldValueInvalid status".to_owned()],
        ),
        (
            "only a chain",
            &before,
            r#"{"certificateChain":"x"}"#.to_owned(),
            NOW,
            vec!["FieldValueInvalid status".to_owned()],
        ),
        ("again", &done, answer("Failed", ""), NOW, vec!["FieldValueInvalid status".to_owned()]),
        ("the same", &done, answer("Denied", ""), NOW, vec![]),
        ("no chain", &before, answer("Issued", ""), NOW, vec![at("certificateChain")]),
        (
            "no times",
            &before,
            answer("Issued", &format!(r#","certificateChain":"{good}""#)),
            NOW,
            ["notBefore", "notAfter", "beginRefreshAt"]
                .map(|name| format!("FieldValueRequired status.{name}"))
                .to_vec(),
        ),
        ("another key", &before, issued(&issue(&other, 1, "a"), start, noon, end), NOW, vec![at("certificateChain")]),
        (
            "an odd name",
            &before,
            issued(&issue(&key, 1, ".a..b"), start, noon, end),
            NOW,
            vec![at("certificateChain"), at("certificateChain")],
        ),
        ("another start", &before, issued(&good, noon, noon, end), NOW, vec![at("notBefore")]),
        ("another end", &before, issued(&good, start, noon, noon), NOW, vec![at("notAfter")]),
        ("later", &before, issued(&good, start, noon, end), "2026-01-01T00:05:00Z", vec![at("notBefore")]),
        (
            "too long",
            &before,
            issued(&issue(&key, 2, "a"), start, noon, "2026-01-03T00:00:00Z"),
            NOW,
            vec![at("certificateChain")],
        ),
        ("too soon", &before, issued(&good, start, "2026-01-01T00:09:59Z", end), NOW, vec![at("beginRefreshAt")]),
        ("too late", &before, issued(&good, start, "2026-01-01T23:50:01Z", end), NOW, vec![at("beginRefreshAt")]),
        (
            "odd conditions",
            &before,
            format!(
                r#"{{"conditions":[{},{},{}]}}"#,
                condition("Issued", "False"),
                condition("Denied", "True"),
                condition("Other", "True")
            ),
            NOW,
            vec![
                "FieldValueNotSupported status.conditions.[0].status".to_owned(),
                at("conditions.[1].type"),
                "FieldValueNotSupported status.conditions.[2].type".to_owned(),
            ],
        ),
    ] {
        let circumstances = Circumstances { now, requester: Requester::default() };
        let part = Part::Subresource("status");
        let errors = PodCertificateRequests.validate_update_under(&with_status(&new), was, part, circumstances);
        let want: Vec<&str> = want.iter().map(String::as_str).collect();
        check(name, &errors, &want);
    }
}
