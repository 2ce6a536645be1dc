//! The answer to a pod certificate request: a certificate, a refusal, or that it failed. It is given once.

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::super::pem;
use super::super::public_key::PublicKey;
use super::requested_key;
use crate::kinds::conditions;
use crate::kinds::workload::{given_number, spec, status, text};
use crate::moment::Moment;

const STATUS: FieldPath<'static> = FieldPath::root("status");
const ISSUED: &str = "Issued";
const DENIED: &str = "Denied";
const FAILED: &str = "Failed";
const FINAL: [&str; 3] = [ISSUED, DENIED, FAILED];

const MAX_CHAIN_BYTES: usize = 100 * 1024;

const HOUR: i64 = 60 * 60;
const MINUTE: i64 = 60;

/// What is wrong with a status in place of the old one, at this time.
pub(super) fn validate(object: &Object, old: &Object, now: &str) -> FieldErrors {
    let (new, was) = (status(object), status(old));
    let list = new.array("conditions");
    let mut errors = validate_types(list);
    errors.extend(conditions::validate(STATUS.child("conditions"), list));
    // The conditions say what the rest must be.
    if !errors.is_empty() {
        return errors;
    }
    let frozen = |detail: &str| FieldErrors::from([FieldError::invalid(STATUS, BadValue::Omitted, detail)]);
    if FINAL.iter().any(|kind| is_true(was, kind)) {
        if new == was {
            return FieldErrors::new();
        }
        return frozen("immutable after PodCertificateRequest is issued, denied, or failed");
    }
    if is_true(new, DENIED) || is_true(new, FAILED) {
        if new.iter().all(|(name, value)| name == "conditions" || value.as_str() == Some("")) {
            return FieldErrors::new();
        }
        return frozen("non-condition status fields must be empty when denying or failing the PodCertificateRequest");
    }
    if is_true(new, ISSUED) {
        return validate_issued(new, spec(old), now);
    }
    if new == was {
        return FieldErrors::new();
    }
    frozen("status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"")
}

fn is_true(status: &Object, kind: &str) -> bool {
    let mut conditions = status.array("conditions").iter().filter_map(Value::as_object);
    conditions.any(|condition| text(condition, "type") == kind && text(condition, "status") == "True")
}

/// There is one condition, which is true. The original's paths have a dot in front of the place.
fn validate_types(list: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut count = 0;
    for (at, condition) in list.iter().filter_map(Value::as_object).enumerate() {
        let path = |member: &str| format!("status.conditions.[{at}].{member}");
        let (kind, truth) = (text(condition, "type"), text(condition, "status"));
        if !FINAL.contains(&kind) {
            errors.push(FieldError::not_supported(path("type"), kind, &FINAL));
            continue;
        }
        count += 1;
        if count > 1 {
            let detail = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            errors.push(FieldError::invalid(path("type"), kind, detail));
        }
        if truth != "True" {
            errors.push(FieldError::not_supported(path("status"), truth, &["True"]));
        }
    }
    errors
}

fn validate_issued(status: &Object, spec: &Object, now: &str) -> FieldErrors {
    let path = STATUS.child("certificateChain");
    let chain = text(status, "certificateChain");
    if chain.len() > MAX_CHAIN_BYTES {
        return FieldErrors::from([FieldError::too_long(path, MAX_CHAIN_BYTES)]);
    }
    let invalid = |detail: &str| FieldErrors::from([FieldError::invalid(path, chain, detail)]);
    let mut blocks = pem::blocks(chain);
    let Some(leaf) = blocks.next() else {
        return invalid("issued certificate chain must contain at least one certificate");
    };
    if leaf.label != "CERTIFICATE" {
        return invalid("issued certificate chain must consist entirely of CERTIFICATE PEM blocks");
    }
    let Ok(([], certificate)) = X509Certificate::from_der(&leaf.content) else {
        return invalid("leaf certificate does not parse as valid X.509");
    };
    let mut errors = validate_alternative_names(path, &certificate);
    let issued_to = PublicKey::of(certificate.public_key());
    if issued_to.is_none() || issued_to != requested_key(spec) {
        errors.extend(invalid("leaf certificate was not issued to the requested public key"));
        return errors;
    }
    let times = ["notBefore", "notAfter", "beginRefreshAt"].map(|name| status.str(name).and_then(Moment::parse));
    let [Some(not_before), Some(not_after), Some(refresh)] = times.map(|time| time.and_then(Moment::seconds)) else {
        let details = [
            ("notBefore", "must be present and consistent with the issued certificate"),
            ("notAfter", "must be present and consistent with the issued certificate"),
            ("beginRefreshAt", "must be present and in the range [notbefore+10min, notafter-10min]"),
        ];
        let missing = details.into_iter().zip(times).filter(|(_, time)| time.is_none());
        errors.extend(missing.map(|((name, detail), _)| FieldError::required(STATUS.child(name), detail)));
        return errors;
    };
    if !errors.is_empty() {
        return errors;
    }
    let validity = certificate.validity();
    let (starts, ends) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    let wrong_time = |name: &'static str, detail: &str| {
        let shown = text(status, name);
        FieldErrors::from([FieldError::invalid(STATUS.child(name), shown, detail)])
    };
    let lifetime = ends - starts;
    // Durations are shown as the original counts them.
    let wrong_lifetime =
        |detail: String| FieldErrors::from([FieldError::invalid(path, lifetime.saturating_mul(1_000_000_000), detail)]);
    let is_near =
        |time: i64| Moment::parse(now).and_then(Moment::seconds).is_some_and(|now| (time - now).abs() < 5 * MINUTE);
    let most = given_number(spec, "maxExpirationSeconds").unwrap_or_default();
    if not_before != starts {
        return wrong_time("notBefore", "must be set to the NotBefore time encoded in the leaf certificate");
    }
    if !is_near(not_before) {
        return wrong_time("notBefore", "must be set to within 5 minutes of kube-apiserver's current time");
    }
    if not_after != ends {
        return wrong_time("notAfter", "must be set to the NotAfter time encoded in the leaf certificate");
    }
    if lifetime < HOUR {
        return wrong_lifetime("leaf certificate lifetime must be >= 1 hour".to_owned());
    }
    if lifetime > most {
        let detail = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({most})");
        return wrong_lifetime(detail);
    }
    if refresh < not_before + 10 * MINUTE {
        return wrong_time("beginRefreshAt", "must be at least 10 minutes after status.notBefore");
    }
    if refresh > not_after - 10 * MINUTE {
        return wrong_time("beginRefreshAt", "must be at least 10 minutes before status.notAfter");
    }
    for block in blocks {
        if block.label != "CERTIFICATE" {
            return invalid("issued certificate chain must consist entirely of CERTFICATE PEM blocks");
        }
        if !matches!(X509Certificate::from_der(&block.content), Ok(([], _))) {
            return invalid("intermediate certificate does not parse as valid X.509");
        }
    }
    FieldErrors::new()
}

fn validate_alternative_names(path: FieldPath<'_>, certificate: &X509Certificate<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let names = certificate.subject_alternative_name().ok().flatten();
    for name in names.iter().flat_map(|names| &names.value.general_names) {
        match name {
            GeneralName::DNSName(name) => {
                let faults = [
                    (name.is_empty(), "leaf certificate should not contain empty DNSName"),
                    (name.contains(".."), "leaf certificate's DNSName should not contain '..'"),
                    (
                        name.starts_with('.') || name.ends_with('.'),
                        "leaf certificate's DNSName should not start or end with '.'",
                    ),
                ];
                let found = faults.into_iter().filter(|(is_fault, _)| *is_fault);
                errors.extend(found.map(|(_, detail)| FieldError::invalid(path, *name, detail)));
            }
            GeneralName::RFC822Name(address) if !is_address(address) => {
                let detail = "leaf certificate should not contain invalid EmailAddress";
                errors.push(FieldError::invalid(path, *address, detail));
            }
            _ => {}
        }
    }
    errors
}

/// Whether a text is the address of a mailbox: words with dots between them, an `@`, and a domain.
fn is_address(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
    let is_dotted = |part: &str| part.split('.').all(|word| !word.is_empty() && word.bytes().all(is_letter));
    text.rsplit_once('@').is_some_and(|(local, domain)| {
        let is_literal = domain.starts_with('[') && domain.ends_with(']') && domain.len() > 2;
        is_dotted(local) && (is_literal || is_dotted(domain))
    })
}
