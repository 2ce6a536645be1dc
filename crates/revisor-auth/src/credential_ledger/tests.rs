//! The ledger: written and read again, and what is taken back with what.

use std::time::Duration;

use rcgen::{CertificateParams, DnType, KeyPair, SerialNumber};

use super::*;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn at(second: u64) -> SystemTime {
    NOW + Duration::from_secs(second)
}

fn certificate(key: &KeyPair, serial: &[u8], expires: u64) -> CertificateDer<'static> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "bob");
    params.distinguished_name.push(DnType::OrganizationName, "dev");
    params.serial_number = Some(SerialNumber::from_slice(serial));
    (params.not_before, params.not_after) = (NOW.into(), at(expires).into());
    params.self_signed(key).expect("certificates can be made").der().clone()
}

fn key() -> KeyPair {
    KeyPair::generate().expect("keys can be made")
}

fn credential(key: &KeyPair, serial: &[u8], expires: u64) -> Credential {
    Credential::of(&certificate(key, serial, expires)).expect("the certificate is fine")
}

#[test]
fn serials_are_read_in_the_ways_that_tools_write_them() {
    for (text, want) in [
        ("0A:bc", Some("0ABC")),
        ("0abc", Some("0ABC")),
        ("000abc", Some("0ABC")),
        ("abc", None),
        ("", None),
        ("0x12", None),
        ("é1", None),
        (&"11".repeat(21), None),
    ] {
        assert_eq!(text.parse::<Serial>().ok().map(|serial| serial.to_string()).as_deref(), want, "{text}");
    }
}

#[test]
fn a_ledger_is_what_it_was_when_it_is_read_again() {
    let mut ledger = CredentialLedger::default();
    assert!(ledger.add(credential(&key(), &[0x4f, 1], 100), NOW));
    ledger.revoke(&"4F01".parse().expect("a serial"), at(7)).expect("there is room");
    ledger.revoke(&"1234".parse().expect("a serial"), at(8)).expect("there is room");
    let text = ledger.to_text();
    assert_eq!(CredentialLedger::parse(&text).expect("it was written so"), ledger);
    for part in [r#""serial": "4F01""#, r#""revoked": "1970-01-01T00:00:07Z""#, r#""expires": "1970-01-01T00:01:40Z""#]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(CredentialLedger::parse("{").is_err());
}

#[test]
fn a_key_is_taken_back_with_all_its_certificates_and_nobody_elses() {
    let (mine, others) = (key(), key());
    let mut ledger = CredentialLedger::default();
    for (key, serial) in [(&mine, 1), (&mine, 2), (&others, 3)] {
        assert!(ledger.add(credential(key, &[serial], 100), NOW));
    }
    assert!(!ledger.add(credential(&others, &[3], 100), NOW), "it is known");
    let revoked = ledger.revoke(&"01".parse().expect("a serial"), NOW).expect("there is room");
    assert_eq!(revoked.iter().map(|one| one.serial.to_string()).collect::<Vec<_>>(), ["01", "02"]);
    // One that is issued for it later is as good as gone.
    assert!(ledger.add(credential(&mine, &[4], 100), NOW));
    let states: Vec<_> = ledger.credentials().iter().map(|one| one.state(NOW)).collect();
    assert_eq!(states, ["revoked", "revoked", "valid", "revoked"]);

    let revocations = ledger.revocations();
    for (key, serial, want) in [(&mine, 9, true), (&others, 3, false), (&others, 1, true)] {
        let der = certificate(key, &[serial], 100);
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).expect("the certificate is fine");
        let own = [parsed.issuer().as_raw().to_vec()];
        assert_eq!(revocations.contains(&parsed, &own), want, "{serial}");
        // Another authority may give the same number to somebody else.
        assert_eq!(revocations.contains(&parsed, &[]), want && serial != 1, "{serial}");
    }
}

#[test]
fn what_expired_is_forgotten_and_the_rest_is_bounded() {
    let mut ledger = CredentialLedger::default();
    ledger.add(credential(&key(), &[1], 10), NOW);
    assert_eq!(ledger.credentials()[0].state(at(11)), "expired");
    ledger.add(credential(&key(), &[2], 100), at(50));
    assert_eq!(ledger.credentials().len(), 1);
    let mut number = 0_u32;
    let refused = loop {
        number += 1;
        let serial = Serial::of(&[&[9][..], &number.to_be_bytes()].concat());
        if let Err(refused) = ledger.revoke(&serial, NOW) {
            break refused;
        }
    };
    assert_eq!((refused, ledger.credentials().len()), (TooManyCredentials(MOST), MOST));
}
