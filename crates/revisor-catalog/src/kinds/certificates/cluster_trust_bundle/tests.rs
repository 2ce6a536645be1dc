//! The rules for cluster trust bundles, case by case.

use super::*;
use crate::kinds::tests::{check, object};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

fn certificate(is_ca: IsCa) -> String {
    let mut params = CertificateParams::default();
    params.is_ca = is_ca;
    params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate").pem()
}

fn authority() -> String {
    certificate(IsCa::Ca(BasicConstraints::Unconstrained))
}

#[test]
fn bundles_are_authorities_each_of_them_once() {
    let (one, two, leaf) = (authority(), authority(), certificate(IsCa::NoCa));
    let malformed = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    let with_headers = one.replacen("-----\n", "-----\nName: value\n\n", 1);
    let key = "-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n";
    for (bundle, want) in [
        (one.clone(), vec![]),
        (format!("first\n{one}\nsecond\n{two}"), vec![]),
        (String::new(), vec!["at least one trust anchor must be provided"]),
        ("hello".to_owned(), vec!["at least one trust anchor must be provided"]),
        (format!("{one}{two}{one}"), vec!["duplicate trust anchor (indices [0 2])"]),
        (format!("{one}{leaf}"), vec!["entry 1 does not have the CA bit set"]),
        (
            format!("{malformed}{key}"),
            vec!["entry 0 does not parse as X.509", "entry 1 has bad block type: PRIVATE KEY"],
        ),
        (with_headers, vec!["entry 0 has PEM block headers"]),
    ] {
        let errors = validate_bundle(FieldPath::root("b"), &bundle);
        let details: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
        assert_eq!(details, want, "{bundle}");
    }
    check("long", &validate_bundle(FieldPath::root("b"), &" ".repeat(MAX_BYTES + 1)), &["FieldValueTooLong b"]);
}

#[test]
fn a_bundle_of_a_signer_is_named_after_it() {
    for (signer, name, is_prefix, want) in [
        ("", "a", false, 0),
        ("", "a:b", false, 1),
        ("", "A", false, 1),
        ("", "a-", true, 0),
        ("example.com/s", "example.com:s:a", false, 0),
        ("example.com/s", "example.com:s:A", false, 1),
        ("example.com/s", "example.com:s:", false, 1),
        ("example.com/s", "a", false, 1),
        ("example.com/s", "example.com:s:a-", true, 0),
    ] {
        assert_eq!(name_problems(signer, name, is_prefix).len(), want, "{signer} {name}");
    }
}

#[test]
fn the_signer_stays_and_an_old_bundle_is_not_read_again() {
    let bundle = |signer: &str, pem: &str| {
        object(&format!(
            r#"{{"metadata":{{"name":"example.com:{signer}:a"}},"spec":{{"signerName":"example.com/{signer}","trustBundle":"{pem}"}}}}"#
        ))
    };
    for (new, want) in [
        (bundle("s", "old"), vec![]),
        (bundle("s", "new"), vec!["FieldValueInvalid spec.trustBundle"]),
        (bundle("t", "old"), vec!["FieldValueInvalid spec.signerName"]),
    ] {
        let errors = ClusterTrustBundles.validate_update(&new, &bundle("s", "old"), Part::Whole);
        check(&format!("{new:?}"), &errors, &want);
    }
}
