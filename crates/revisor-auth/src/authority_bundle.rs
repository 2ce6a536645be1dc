//! Authorities as others are told of them: bundles of certificates in PEM that are joined, and rid of what has expired
//! (upstream: `combineCertLists`).

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::validity::Validity;

/// For how long after its end an authority is still told of: clocks differ.
const SLACK: Duration = Duration::from_secs(5 * 60);

/// How many characters stand in a line.
const LINE: usize = 64;

/// The certificates of a bundle, and those that have to be in it, each once. What cannot be read or has expired is left
/// out.
pub fn joined_authorities(bundle: &str, required: &[CertificateDer<'static>], now: SystemTime) -> String {
    let known = CertificateDer::pem_slice_iter(bundle.as_bytes()).filter_map(Result::ok);
    let mut joined: Vec<CertificateDer<'static>> = Vec::new();
    for certificate in known.chain(required.iter().cloned()) {
        let is_good = Validity::read(&certificate).is_ok_and(|validity| validity.until + SLACK > now);
        if is_good && !joined.contains(&certificate) {
            joined.push(certificate);
        }
    }
    joined.iter().map(pem).collect()
}

fn pem(certificate: &CertificateDer<'_>) -> String {
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    let encoded = STANDARD.encode(certificate);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, next) = rest.split_at(rest.len().min(LINE));
        text.push_str(line);
        text.push('\n');
        rest = next;
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(name: &str, until: SystemTime) -> CertificateDer<'static> {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        (params.not_before, params.not_after) = (SystemTime::UNIX_EPOCH.into(), until.into());
        let key = rcgen::KeyPair::generate().expect("keys can be made");
        params.self_signed(&key).expect("certificates can be made").der().clone()
    }

    #[test]
    fn bundles_are_joined_without_what_is_over() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let day = Duration::from_secs(24 * 60 * 60);
        let (old, one, two) = (authority("old", now - day), authority("one", now + day), authority("two", now + day));
        let bundle = pem(&old) + &pem(&one) + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let joined = joined_authorities(&bundle, &[one.clone(), two.clone()], now);
        assert_eq!(joined, pem(&one) + &pem(&two));
        assert_eq!(joined_authorities(&joined, &[one, two], now), joined, "and stay as they are then");
        assert_eq!(joined_authorities("", &[], now), "");
    }
}
