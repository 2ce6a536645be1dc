//! CertificateSigningRequests. Who asked is recorded when they ask, and nothing of the request changes after that; the
//! approval goes through one subresource and the certificate through another.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};
use x509_parser::prelude::{FromDer, X509Certificate, X509CertificationRequest};

use super::pem;
use super::public_key::is_self_signed;
use super::signer_name::validate_signer_name;
use crate::checks::{keep, one_of, put_back, required, required_one_of};
use crate::{Circumstances, Part, Places, Strategy};

/// What a certificate may be for, in the order of messages.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
const FAILED: &str = "Failed";

/// The signer of requests from before signers had names.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

/// The shortest time that a certificate can be asked for.
const MIN_EXPIRATION_SECONDS: i64 = 600;

pub(crate) struct CertificateSigningRequests;

impl Strategy for CertificateSigningRequests {
    fn untouched(&self, part: Part<'_>) -> Places {
        match part {
            Part::Whole => &[&["spec"], &["status"]],
            Part::Subresource("approval") => &[&["spec"], &["status", "certificate"]],
            // Those that approve or deny are the conditions that stay; what is said of the others is nobody's either.
            Part::Subresource(_) => &[&["spec"], &["status", "conditions"]],
        }
    }

    fn prepare_create(&self, object: &mut Object, circumstances: Circumstances<'_>) {
        object.remove("status");
        let requester = circumstances.requester;
        let spec = object.object_mut("spec");
        let text = |text: &str| (!text.is_empty()).then(|| Value::from(text));
        let texts = |texts: &[String]| Value::from(texts.iter().map(|text| Value::from(&**text)).collect::<Vec<_>>());
        spec.set("username", text(requester.name));
        spec.set("uid", text(requester.uid));
        spec.set("groups", (!requester.groups.is_empty()).then(|| texts(requester.groups)));
        let extra: Object = requester.extra.iter().map(|(key, values)| (&**key, texts(values))).collect();
        spec.set("extra", (!extra.is_empty()).then(|| extra.into()));
    }

    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, circumstances: Circumstances<'_>) {
        match part {
            Part::Whole => put_back(object, old, self.untouched(part)),
            Part::Subresource("approval") => {
                stamp_conditions(object, old, circumstances.now);
                let conditions = object.object_mut("status").remove("conditions");
                keep(object, old, &["spec", "status"]);
                object.object_mut("status").set("conditions", conditions);
            }
            Part::Subresource(_) => {
                keep(object, old, &["spec"]);
                preserve_conditions(object, old, APPROVED);
                preserve_conditions(object, old, DENIED);
                stamp_conditions(object, old, circumstances.now);
            }
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_request(object, Tolerated::default())
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        let mut errors = validate_request(object, Tolerated::of(object, old));
        let root = FieldPath::root("status");
        let path = root.child("conditions");
        let counts = |kind| (of_type(object, kind).count(), of_type(old, kind).count());
        for kind in [APPROVED, DENIED, FAILED] {
            let (now, before) = counts(kind);
            if now < before {
                let detail = format!("updates may not remove a condition of type {kind:?}");
                errors.push(FieldError::forbidden(path, detail));
            }
        }
        if part != Part::Subresource("approval") {
            for kind in [APPROVED, DENIED] {
                let (now, before) = counts(kind);
                let done = match now.cmp(&before) {
                    std::cmp::Ordering::Greater => "add",
                    std::cmp::Ordering::Equal if !of_type(object, kind).eq(of_type(old, kind)) => "modify",
                    _ => continue,
                };
                let detail = format!("updates may not {done} a condition of type {kind:?}");
                errors.push(FieldError::forbidden(path, detail));
            }
        }
        let (certificate, before) = (certificate(object), certificate(old));
        if certificate != before {
            let path = root.child("certificate");
            if part != Part::STATUS {
                errors.push(FieldError::forbidden(path, "updates may not set certificate content"));
            } else if !before.is_empty() {
                errors.push(FieldError::forbidden(path, "updates may not modify existing certificate content"));
            }
        }
        errors
    }
}

fn conditions(object: &Object) -> &[Value] {
    object.object("status").map(|status| status.array("conditions")).unwrap_or_default()
}

fn certificate(object: &Object) -> &str {
    object.object("status").and_then(|status| status.str("certificate")).unwrap_or_default()
}

fn usages(object: &Object) -> impl Iterator<Item = &str> {
    let usages = object.object("spec").map(|spec| spec.array("usages")).unwrap_or_default();
    usages.iter().map(|usage| usage.as_str().unwrap_or_default())
}

fn type_of(condition: &Value) -> &str {
    condition.as_object().and_then(|condition| condition.str("type")).unwrap_or_default()
}

fn of_type<'a>(object: &'a Object, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    conditions(object).iter().filter(move |condition| type_of(condition) == kind)
}

/// Puts back the conditions of a type if there are as many as before. If not, validation says so.
fn preserve_conditions(object: &mut Object, old: &Object, kind: &str) {
    if of_type(object, kind).count() != of_type(old, kind).count() {
        return;
    }
    let mut before = of_type(old, kind);
    for condition in object.object_mut("status").array_mut("conditions").into_iter().flatten() {
        if type_of(condition) == kind
            && let Some(preserved) = before.next()
        {
            *condition = preserved.clone();
        }
    }
}

/// Says when conditions were set, where nobody has said so.
fn stamp_conditions(object: &mut Object, old: &Object, now: &str) {
    let was_set = |condition: &Object| {
        let same =
            |member: &Object, name| member.str(name).unwrap_or_default() == condition.str(name).unwrap_or_default();
        let mut before = conditions(old).iter().filter_map(Value::as_object);
        before
            .find(|member| same(member, "type") && same(member, "status") && member.str("lastTransitionTime").is_some())
    };
    let conditions = object.object_mut("status").array_mut("conditions");
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        if condition.str("lastUpdateTime").is_none() {
            condition.insert("lastUpdateTime", now);
        }
        if condition.str("lastTransitionTime").is_none() {
            let before = was_set(condition).and_then(|before| before.get("lastTransitionTime")).cloned();
            condition.insert("lastTransitionTime", before.unwrap_or_else(|| now.into()));
        }
    }
}

/// Faults that may stay because the object was stored with them.
#[derive(Default)]
struct Tolerated {
    approved_and_denied: bool,
    legacy_signer: bool,
    conditions_twice: bool,
    empty_condition_type: bool,
    any_certificate: bool,
    unknown_usages: bool,
    usages_twice: bool,
}

impl Tolerated {
    fn of(object: &Object, old: &Object) -> Tolerated {
        let has = |kind| of_type(old, kind).next().is_some();
        Tolerated {
            approved_and_denied: has(APPROVED) && has(DENIED),
            legacy_signer: old.at(&["spec", "signerName"]).and_then(Value::as_str) == Some(LEGACY_SIGNER),
            conditions_twice: first_repeated(conditions(old).iter().map(type_of)).is_some(),
            empty_condition_type: has(""),
            any_certificate: certificate(object) == certificate(old) || certificate_problem(certificate(old)).is_some(),
            unknown_usages: usages(old).any(|usage| !USAGES.contains(&usage)),
            usages_twice: first_repeated(usages(old)).is_some(),
        }
    }
}

/// The place of the first text that occurred before.
fn first_repeated<'a>(texts: impl Iterator<Item = &'a str>) -> Option<usize> {
    let mut seen = std::collections::HashSet::new();
    texts.enumerate().find(|(_, text)| !seen.insert(*text)).map(|(at, _)| at)
}

fn validate_request(object: &Object, tolerated: Tolerated) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let path = FieldPath::root("spec");
    let spec = object.object("spec");
    let text = |name| spec.and_then(|spec| spec.str(name)).unwrap_or_default();
    if let Some(problem) = request_problem(text("request")) {
        let shown = BadValue::of(&spec.and_then(|spec| spec.get("request")));
        errors.push(FieldError::invalid(path.child("request"), shown, problem));
    }
    let at_usages = path.child("usages");
    if usages(object).next().is_none() {
        errors.push(FieldError::required(at_usages, ""));
    }
    let mut seen = std::collections::HashSet::new();
    for (at, usage) in usages(object).enumerate() {
        if !tolerated.unknown_usages {
            errors.extend(one_of(at_usages.index(at), usage, &USAGES));
        }
        if !seen.insert(usage) && !tolerated.usages_twice {
            errors.push(FieldError::duplicate(at_usages.index(at), usage));
        }
    }
    let at_signer = path.child("signerName");
    if text("signerName") == LEGACY_SIGNER && !tolerated.legacy_signer {
        let detail = "the legacy signerName is not allowed via this API version";
        errors.push(FieldError::invalid(at_signer, LEGACY_SIGNER, detail));
    } else {
        errors.extend(validate_signer_name(at_signer, text("signerName")));
    }
    let seconds = spec.and_then(|spec| spec.get("expirationSeconds")).and_then(Value::as_i64);
    if let Some(seconds) = seconds.filter(|seconds| *seconds < MIN_EXPIRATION_SECONDS) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(path.child("expirationSeconds"), seconds, detail));
    }
    validate_conditions(object, &tolerated, &mut errors);
    if !tolerated.any_certificate
        && let Some(problem) = certificate_problem(certificate(object))
    {
        errors.push(FieldError::invalid("status.certificate", "<certificate data>", problem));
    }
    errors
}

fn validate_conditions(object: &Object, tolerated: &Tolerated, errors: &mut FieldErrors) {
    let status = FieldPath::root("status");
    let path = status.child("conditions");
    let mut seen = std::collections::HashSet::new();
    for (at, condition) in conditions(object).iter().enumerate() {
        let path_here = path.index(at);
        let kind = type_of(condition);
        if !tolerated.empty_condition_type {
            errors.extend(required(path_here.child("type"), kind));
        }
        let is_final = matches!(kind, APPROVED | DENIED | FAILED);
        let allowed: &[&str] = if is_final { &["True"] } else { &["False", "True", "Unknown"] };
        let truth = condition.as_object().and_then(|condition| condition.str("status")).unwrap_or_default();
        errors.extend(required_one_of(path_here.child("status"), truth, allowed));
        let opposite = match kind {
            APPROVED => Some(DENIED),
            DENIED => Some(APPROVED),
            _ => None,
        };
        if !tolerated.approved_and_denied && opposite.is_some_and(|opposite| seen.contains(opposite)) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(path, BadValue::from(kind), detail));
        }
        if !seen.insert(kind) && !tolerated.conditions_twice {
            errors.push(FieldError::duplicate(path_here.child("type"), kind));
        }
    }
}

/// What is wrong with a request in PEM in base64: it must be signed with the key that it is about.
fn request_problem(base64: &str) -> Option<String> {
    let bytes = STANDARD.decode(base64).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let Some(block) = pem::blocks(&text).next().filter(|block| block.label == "CERTIFICATE REQUEST") else {
        return Some("PEM block type must be CERTIFICATE REQUEST".to_owned());
    };
    match X509CertificationRequest::from_der(&block.content) {
        Ok(([], request)) => (!is_self_signed(&request)).then(|| "signature verification error".to_owned()),
        Ok(_) => Some("asn1: syntax error: trailing data".to_owned()),
        Err(error) => Some(format!("x509: malformed certificate request: {error}")),
    }
}

/// In whose name a certificate is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestedSubject {
    /// The user; the last one that is named.
    pub common_name: String,
    /// The groups.
    pub organizations: Vec<String>,
}

impl RequestedSubject {
    /// Reads the subject of a request in PEM in base64 (upstream: `ParseCSR`).
    pub fn of(base64: &str) -> Result<RequestedSubject, String> {
        let bytes = STANDARD.decode(base64).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let Some(block) = pem::blocks(&text).next().filter(|block| block.label == "CERTIFICATE REQUEST") else {
            return Err("PEM block type must be CERTIFICATE REQUEST".to_owned());
        };
        let (rest, request) = X509CertificationRequest::from_der(&block.content)
            .map_err(|error| format!("x509: malformed certificate request: {error}"))?;
        if !rest.is_empty() {
            return Err("asn1: syntax error: trailing data".to_owned());
        }
        let subject = &request.certification_request_info.subject;
        let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            // A text that is of no known kind is compared by its bytes, so that nothing is overlooked.
            attribute
                .as_str()
                .map_or_else(|_| String::from_utf8_lossy(attribute.as_slice()).into_owned(), str::to_owned)
        };
        Ok(RequestedSubject {
            common_name: subject.iter_common_name().last().map(text).unwrap_or_default(),
            organizations: subject.iter_organization().map(text).collect(),
        })
    }
}

/// What is wrong with certificates in PEM in base64. None at all is fine.
fn certificate_problem(base64: &str) -> Option<String> {
    if base64.is_empty() {
        return None;
    }
    let bytes = STANDARD.decode(base64).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut is_empty = true;
    for block in pem::blocks(&text) {
        if block.label != "CERTIFICATE" {
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.label));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".to_owned());
        }
        if block.content.is_empty() {
            return Some("found CERTIFICATE PEM block containing 0 certificates".to_owned());
        }
        // A block may hold several certificates, one behind the other.
        let mut rest = &block.content[..];
        while !rest.is_empty() {
            match X509Certificate::from_der(rest) {
                Ok((behind, _)) => rest = behind,
                Err(error) => return Some(format!("x509: malformed certificate: {error}")),
            }
        }
        is_empty = false;
    }
    is_empty.then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

#[cfg(test)]
mod tests;
