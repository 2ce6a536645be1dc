//! What is wrong with a certificate and its private key, as `X509KeyPair` of the original tells it.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
};
use aws_lc_rs::signature::{EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RsaKeyPair};
use x509_parser::oid_registry::{OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::kinds::certificates::pem;

const CURVES: [&EcdsaSigningAlgorithm; 3] =
    [&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P384_SHA384_ASN1_SIGNING, &ECDSA_P521_SHA512_ASN1_SIGNING];

/// Why these are no pair, if they are none.
pub(super) fn problem(certificate: &str, key: &str) -> Option<String> {
    let (found, skipped) = first_block(certificate, |label| label == "CERTIFICATE");
    let Some(certificate) = found else {
        return Some(match &*skipped {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [only] if only.ends_with("PRIVATE KEY") => {
                "tls: failed to find certificate PEM data in certificate input, \
                                                        but did find a private key; PEM inputs may have been switched"
                    .to_owned()
            }
            _ => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
                 following types: [{}]",
                skipped.join(" ")
            ),
        });
    };
    let (found, skipped) = first_block(key, |label| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY"));
    let Some(key) = found else {
        return Some(match &*skipped {
            [] => "tls: failed to find any PEM data in key input".to_owned(),
            [only] if *only == "CERTIFICATE" => {
                "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
            }
            _ => format!(
                "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM \
                 blocks of the following types: [{}]",
                skipped.join(" ")
            ),
        });
    };
    let Ok((_, certificate)) = X509Certificate::from_der(&certificate) else {
        return Some("x509: malformed certificate".to_owned());
    };
    let Some((kind, public)) = public_part(&key) else { return Some("tls: failed to parse private key".to_owned()) };
    let certified = certificate.public_key();
    let algorithm = &certified.algorithm.algorithm;
    let certified_kind = if *algorithm == OID_PKCS1_RSAENCRYPTION {
        Kind::Rsa
    } else if *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY {
        Kind::Ec
    } else if *algorithm == OID_SIG_ED25519 {
        Kind::Ed25519
    } else {
        return Some("tls: unknown public key algorithm".to_owned());
    };
    if kind != certified_kind {
        return Some("tls: private key type does not match public key type".to_owned());
    }
    let is_same = *certified.subject_public_key.data == *public;
    (!is_same).then(|| "tls: private key does not match public key".to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rsa,
    Ec,
    Ed25519,
}

/// The content of the first block that is wanted, and the labels of those before it.
fn first_block(text: &str, is_wanted: impl Fn(&str) -> bool) -> (Option<Vec<u8>>, Vec<&str>) {
    let mut skipped = Vec::new();
    for block in pem::blocks(text) {
        if is_wanted(block.label) {
            return (Some(block.content), skipped);
        }
        skipped.push(block.label);
    }
    (None, skipped)
}

/// The public key that belongs to a private one, as certificates hold it: in PKCS #1, PKCS #8 or SEC 1.
fn public_part(key: &[u8]) -> Option<(Kind, Vec<u8>)> {
    if let Ok(pair) = RsaKeyPair::from_der(key).or_else(|_| RsaKeyPair::from_pkcs8(key)) {
        return Some((Kind::Rsa, pair.public_key().as_ref().to_vec()));
    }
    if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key) {
        return Some((Kind::Ed25519, pair.public_key().as_ref().to_vec()));
    }
    let of_curve =
        |curve| EcdsaKeyPair::from_pkcs8(curve, key).or_else(|_| EcdsaKeyPair::from_private_key_der(curve, key));
    let pair = CURVES.into_iter().find_map(|curve| of_curve(curve).ok())?;
    Some((Kind::Ec, pair.public_key().as_ref().to_vec()))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair as NewKey, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256};

    use super::*;

    fn certificate(key: &NewKey) -> String {
        CertificateParams::default().self_signed(key).expect("a certificate").pem()
    }

    #[test]
    fn a_pair_is_what_belongs_together() {
        let new = || NewKey::generate().expect("a key");
        let (one, other) = (new(), new());
        let rsa = NewKey::generate_for(&PKCS_RSA_SHA256).expect("a key");
        let edwards = NewKey::generate_for(&PKCS_ED25519).expect("a key");
        let large = NewKey::generate_for(&PKCS_ECDSA_P384_SHA384).expect("a key");
        let (text, key) = (certificate(&one), one.serialize_pem());
        let request = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n".to_owned();
        let broken = text.replace("-----BEGIN CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\nAAAA");
        let broken_key = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n";
        for (name, certificate, key, want) in [
            ("a pair", text.clone(), key.clone(), None),
            ("RSA", certificate(&rsa), rsa.serialize_pem(), None),
            ("Ed25519", certificate(&edwards), edwards.serialize_pem(), None),
            ("another curve", certificate(&large), large.serialize_pem(), None),
            ("nothing", String::new(), String::new(), Some("tls: failed to find any PEM data in certificate input")),
            ("no key", text.clone(), "x".to_owned(), Some("tls: failed to find any PEM data in key input")),
            (
                "switched",
                key.clone(),
                text.clone(),
                Some(
                    "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM \
                     inputs may have been switched",
                ),
            ),
            (
                "two certificates",
                text.clone(),
                text.clone(),
                Some("tls: found a certificate rather than a key in the PEM for the private key"),
            ),
            (
                "a request",
                request.clone(),
                key.clone(),
                Some(
                    "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of \
                     the following types: [CERTIFICATE REQUEST]",
                ),
            ),
            (
                "a request for a key",
                text.clone(),
                request,
                Some(
                    "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM \
                     blocks of the following types: [CERTIFICATE REQUEST]",
                ),
            ),
            ("a broken one", broken, key, Some("x509: malformed certificate")),
            ("a broken key", text.clone(), broken_key.to_owned(), Some("tls: failed to parse private key")),
            ("another key", text.clone(), other.serialize_pem(), Some("tls: private key does not match public key")),
            ("another kind", text, rsa.serialize_pem(), Some("tls: private key type does not match public key type")),
        ] {
            assert_eq!(problem(&certificate, &key).as_deref(), want, "{name}");
        }
    }
}
