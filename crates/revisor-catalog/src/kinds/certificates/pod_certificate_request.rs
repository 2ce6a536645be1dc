//! Pod certificate requests: a kubelet asks for a certificate for a pod, with proof that it has the key. A signer
//! answers once, in the status; see [`status`].

mod status;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use revisor_object::names::{dns1123_subdomain, domain_prefixed_key};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object};
use x509_parser::prelude::{FromDer, X509CertificationRequest};

use super::public_key::{PublicKey, Weakness, is_self_signed};
use super::signer_name::validate_signer_name;
use crate::checks::{immutable, keep_metadata, problems, put_back};
use crate::kinds::workload::{given_number, spec, text};
use crate::metadata::MAX_ANNOTATION_BYTES;
use crate::strategy::spec_or_status;
use crate::{Circumstances, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const MAX_UID_BYTES: usize = 128;

/// How long keys, proofs and requests may be.
const MAX_KEY_BYTES: usize = 10 * 1024;

/// How long certificates may be asked for, in seconds: at least, at most, and at most from Kubernetes' own signers.
const MIN_LIFETIME: i64 = 60 * 60;
const MAX_LIFETIME: i64 = 91 * 24 * 60 * 60;
const MAX_OWN_LIFETIME: i64 = 24 * 60 * 60;

const REQUEST: &str = "stubPKCS10Request";
const KEY: &str = "pkixPublicKey";
const PROOF: &str = "proofOfPossession";

pub(crate) struct PodCertificateRequests;

impl Strategy for PodCertificateRequests {
    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, _: Circumstances<'_>) {
        put_back(object, old, self.untouched(part));
        if part == Part::STATUS {
            // Who tries to change it is recorded all the same, unlike with other kinds.
            keep_metadata(object, old);
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let spec = spec(object);
        let mut errors = validate_signer_name(SPEC.child("signerName"), text(spec, "signerName"));
        if let Some(annotations) = spec.object("unverifiedUserAnnotations") {
            errors.extend(validate_annotations(SPEC.child("unverifiedUserAnnotations"), annotations));
        }
        for (name, uid) in [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")]
        {
            let given = text(spec, name);
            errors.extend(problems(SPEC.child(name), given, dns1123_subdomain(given)));
            errors.extend(match text(spec, uid) {
                "" => Some(FieldError::invalid(SPEC.child(uid), "", "must not be empty")),
                given => (given.len() > MAX_UID_BYTES).then(|| FieldError::too_long(SPEC.child(uid), MAX_UID_BYTES)),
            });
        }
        let path = SPEC.child("maxExpirationSeconds");
        let Some(seconds) = given_number(spec, "maxExpirationSeconds") else {
            errors.push(FieldError::required(path, "must be set"));
            return errors;
        };
        let most = if is_kubernetes_signer(text(spec, "signerName")) { MAX_OWN_LIFETIME } else { MAX_LIFETIME };
        if !(MIN_LIFETIME..=most).contains(&seconds) {
            let detail = format!("must be in the range [{MIN_LIFETIME}, {most}]");
            errors.push(FieldError::invalid(path, seconds, detail));
        }
        errors.extend(key_problem(spec));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        immutable(SPEC, object.get("spec"), old.get("spec")).into_iter().collect()
    }

    fn validate_update_under(
        &self,
        object: &Object,
        old: &Object,
        part: Part<'_>,
        circumstances: Circumstances<'_>,
    ) -> FieldErrors {
        match part {
            Part::Whole => self.validate_update(object, old, part),
            Part::Subresource(_) => status::validate(object, old, circumstances.now),
        }
    }
}

fn is_kubernetes_signer(signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    domain == "kubernetes.io" || domain.ends_with(".kubernetes.io")
}

fn validate_annotations(path: FieldPath<'_>, annotations: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut size = 0;
    for (key, value) in annotations.iter() {
        size += key.len() + value.as_str().unwrap_or_default().len();
        errors.extend(domain_prefixed_key(&path, &key.to_lowercase()));
    }
    if size > MAX_ANNOTATION_BYTES {
        errors.push(FieldError::too_long(path, MAX_ANNOTATION_BYTES));
    }
    errors
}

fn bytes(spec: &Object, name: &str) -> Vec<u8> {
    // What is no base64 does not get this far.
    STANDARD.decode(text(spec, name)).unwrap_or_default()
}

/// The key that a certificate is asked for, as far as it can be read.
fn requested_key(spec: &Object) -> Option<PublicKey> {
    if text(spec, REQUEST).is_empty() {
        return PublicKey::from_der(&bytes(spec, KEY));
    }
    match X509CertificationRequest::from_der(&bytes(spec, REQUEST)) {
        Ok(([], request)) => PublicKey::of(&request.certification_request_info.subject_pki),
        _ => None,
    }
}

/// The first problem of what proves that the key is there: a signed request, or a key and a signature of its own.
fn key_problem(spec: &Object) -> Option<FieldError> {
    match [REQUEST, KEY, PROOF].map(|name| !text(spec, name).is_empty()) {
        [true, false, false] => signed_request_problem(spec),
        [false, true, true] => proof_problem(spec),
        _ => {
            let detail = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
            Some(FieldError::invalid(SPEC, BadValue::Omitted, detail))
        }
    }
}

fn signed_request_problem(spec: &Object) -> Option<FieldError> {
    let path = SPEC.child(REQUEST);
    let der = bytes(spec, REQUEST);
    if der.len() > MAX_KEY_BYTES {
        return Some(FieldError::too_long(path, MAX_KEY_BYTES));
    }
    let invalid = |detail: &str| Some(FieldError::invalid(path, BadValue::Omitted, detail));
    let Ok(([], request)) = X509CertificationRequest::from_der(&der) else {
        return invalid("must be a valid PKCS#10 CSR");
    };
    let Some(key) = PublicKey::of(&request.certification_request_info.subject_pki) else {
        return invalid("must be a valid PKCS#10 CSR");
    };
    if let Some(weakness) = key.weakness() {
        return Some(weak(path, weakness, BadValue::Omitted, "P256, P384, or P521"));
    }
    if is_self_signed(&request) { None } else { invalid("invalid signature") }
}

fn proof_problem(spec: &Object) -> Option<FieldError> {
    let (path, key, proof) = (SPEC.child(KEY), bytes(spec, KEY), bytes(spec, PROOF));
    for (path, bytes) in [(path, &key), (SPEC.child(PROOF), &proof)] {
        if bytes.len() > MAX_KEY_BYTES {
            return Some(FieldError::too_long(path, MAX_KEY_BYTES));
        }
    }
    let shown = || BadValue::from(text(spec, KEY));
    let key = match PublicKey::from_der(&key) {
        None | Some(PublicKey::Unknown) => {
            return Some(FieldError::invalid(path, shown(), "must be a valid PKIX-serialized public key"));
        }
        Some(key) => key,
    };
    if let Some(weakness) = key.weakness() {
        return Some(weak(path, weakness, shown(), "P256 or P384"));
    }
    (!key.verifies(text(spec, "podUID").as_bytes(), &proof)).then(|| {
        let detail = "could not verify proof-of-possession signature";
        FieldError::invalid(SPEC.child(PROOF), BadValue::Omitted, detail)
    })
}

/// The error that a key is too weak. `shown` is what stands for a key of another kind.
fn weak(path: FieldPath<'_>, weakness: Weakness, shown: BadValue, curves: &str) -> FieldError {
    match weakness {
        Weakness::Curve(curve) => {
            FieldError::invalid(path, curve, format!("elliptic public keys must use curve {curves}"))
        }
        Weakness::Modulus(size) => FieldError::invalid(path, size, "RSA keys must have modulus size 3072 or 4096"),
        Weakness::Kind => {
            let detail = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";
            FieldError::invalid(path, shown, detail)
        }
    }
}

#[cfg(test)]
mod tests;
