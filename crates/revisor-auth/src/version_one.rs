//! Certificates of X.509 version 1, which `openssl x509 -req` makes unless it is told of extensions.
//!
//! The library that verifies chains and handshakes reads version 3 only. The original takes version 1 for clients, as Go
//! does: without extensions a certificate may be used for anything but to vouch for others. So what that library would
//! find out of one is found out here, and of nothing else.

use std::time::SystemTime;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::verify_tls13_signature_with_raw_key;
use rustls::{CertificateError, DigitallySignedStruct};
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use x509_parser::asn1_rs::{Any, FromDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::{OID_PKCS1_SHA1WITHRSA, OID_SHA1_WITH_RSA};
use x509_parser::x509::X509Version;

use crate::crypto_provider;
use crate::validity::Validity;

/// How many certificates may stand between a client's and an authority.
const MAX_INTERMEDIATES: usize = 6;

/// Whether a certificate is one of version 1.
pub(crate) fn is_version_one(certificate: &CertificateDer<'_>) -> bool {
    x509_parser::parse_x509_certificate(certificate).is_ok_and(|(_, parsed)| parsed.version() == X509Version::V1)
}

/// Why a client's certificate of version 1 does not count now, before these authorities.
pub(crate) fn check<'a>(
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    authorities: impl Iterator<Item = &'a CertificateDer<'static>>,
    now: SystemTime,
) -> Result<(), &'static str> {
    let read = |der| x509_parser::parse_x509_certificate(der).ok().map(|(_, parsed)| parsed);
    let leaf = read(leaf).ok_or("the certificate cannot be read")?;
    if !Validity::of(&leaf).contains(now) {
        return Err("the certificate has expired, or is not valid yet");
    }
    let authorities: Vec<X509Certificate<'_>> = authorities.filter_map(|authority| read(authority)).collect();
    let intermediates: Vec<X509Certificate<'_>> =
        intermediates.iter().take(MAX_INTERMEDIATES).filter_map(|certificate| read(certificate)).collect();
    let mut certificate = &leaf;
    for between in 0..=intermediates.len() {
        if authorities.iter().any(|authority| may_sign(authority, between) && has_signed(authority, certificate)) {
            return Ok(());
        }
        let vouches = |other: &&X509Certificate<'_>| {
            other.is_ca()
                && may_sign(other, between)
                && may_vouch_for_clients(other)
                && Validity::of(other).contains(now)
                && has_signed(other, certificate)
        };
        certificate = intermediates.iter().find(vouches).ok_or("nobody whom the server trusts issued it")?;
    }
    Err("nobody whom the server trusts issued it")
}

fn has_signed(authority: &X509Certificate<'_>, certificate: &X509Certificate<'_>) -> bool {
    let is_weak = [OID_PKCS1_SHA1WITHRSA, OID_SHA1_WITH_RSA].contains(&certificate.signature_algorithm.algorithm);
    !is_weak
        && certificate.issuer().as_raw() == authority.subject().as_raw()
        && certificate.verify_signature(Some(authority.public_key())).is_ok()
}

/// Whether one may sign certificates with so many others between it and the client's. Authorities that are trusted may be
/// of version 1 themselves, which says nothing about it.
fn may_sign(authority: &X509Certificate<'_>, between: usize) -> bool {
    let may_use_key = match authority.key_usage() {
        Ok(usage) => usage.is_none_or(|usage| usage.value.key_cert_sign()),
        Err(_) => false,
    };
    let is_authority = match authority.basic_constraints() {
        Ok(Some(constraints)) => {
            let most = constraints.value.path_len_constraint;
            constraints.value.ca && most.is_none_or(|most| between <= most as usize)
        }
        Ok(None) => authority.version() != X509Version::V3,
        Err(_) => false,
    };
    // Whom it may name is not looked at here; one that is restricted vouches for nobody then.
    let is_unrestricted = matches!(authority.name_constraints(), Ok(None));
    may_use_key && is_authority && is_unrestricted
}

fn may_vouch_for_clients(authority: &X509Certificate<'_>) -> bool {
    match authority.extended_key_usage() {
        Ok(usage) => usage.is_none_or(|usage| usage.value.client_auth || usage.value.any),
        Err(_) => false,
    }
}

/// Whether the client owns the key of a certificate of version 1, as TLS 1.3 proves it.
pub(crate) fn verify_tls13_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    dss: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|_| unreadable())?;
    let key = SubjectPublicKeyInfoDer::from(parsed.public_key().raw);
    let known = crypto_provider().signature_verification_algorithms;
    verify_tls13_signature_with_raw_key(message, &key, dss, &known)
}

/// The same as TLS 1.2 proves it.
pub(crate) fn verify_tls12_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    dss: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|_| unreadable())?;
    let key = parsed.public_key();
    // The algorithm of the key as it is encoded, which is how algorithms are known.
    let (_, key_info) = Any::from_der(key.raw).map_err(|_| unreadable())?;
    let (_, algorithm) = Any::from_der(key_info.data).map_err(|_| unreadable())?;
    let known = crypto_provider().signature_verification_algorithms.mapping;
    let of_scheme =
        known.iter().filter(|(scheme, _)| *scheme == dss.scheme).flat_map(|(_, algorithms)| algorithms.iter());
    let mut fitting = of_scheme.filter(|candidate| candidate.public_key_alg_id().as_ref() == algorithm.data);
    let is_good = |candidate: &&dyn rustls_pki_types::SignatureVerificationAlgorithm| {
        candidate.verify_signature(&key.subject_public_key.data, message, dss.signature()).is_ok()
    };
    match fitting.any(is_good) {
        true => Ok(HandshakeSignatureValid::assertion()),
        false => Err(rustls::Error::InvalidCertificate(CertificateError::BadSignature)),
    }
}

fn unreadable() -> rustls::Error {
    rustls::Error::InvalidCertificate(CertificateError::BadEncoding)
}
