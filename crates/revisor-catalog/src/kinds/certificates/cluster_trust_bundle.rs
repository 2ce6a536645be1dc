//! Cluster trust bundles: the roots that are trusted, for one signer or for none in particular.

use std::collections::HashMap;

use revisor_object::names::NameRule;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::pem;
use super::signer_name::validate_signer_name;
use crate::checks::problems;
use crate::kinds::workload::{NOTHING, spec, text};
use crate::{Part, Strategy};

const METADATA: FieldPath<'static> = FieldPath::root("metadata");
const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// How long a bundle may be.
const MAX_BYTES: usize = 1024 * 1024;

/// Bundles are too long to be quoted.
const OMITTED: &str = "<value omitted>";

pub(crate) struct ClusterTrustBundles;

impl Strategy for ClusterTrustBundles {
    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_names(object);
        errors.extend(validate_bundle(SPEC.child("trustBundle"), text(spec(object), "trustBundle")));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = validate_names(object);
        let (bundle, was) = (text(spec(object), "trustBundle"), text(spec(old), "trustBundle"));
        // What was good once stays so.
        if bundle != was {
            errors.extend(validate_bundle(SPEC.child("trustBundle"), bundle));
        }
        let (signer, was) = (text(spec(object), "signerName"), text(spec(old), "signerName"));
        if signer != was {
            errors.push(FieldError::invalid(SPEC.child("signerName"), signer, "field is immutable"));
        }
        errors
    }
}

/// A bundle of a signer is named after it.
fn validate_names(object: &Object) -> FieldErrors {
    let signer = text(spec(object), "signerName");
    let metadata = object.object("metadata").unwrap_or(NOTHING);
    let mut errors = FieldErrors::new();
    for (member, is_prefix) in [("generateName", true), ("name", false)] {
        let name = text(metadata, member);
        if !name.is_empty() {
            errors.extend(problems(METADATA.child(member), name, name_problems(signer, name, is_prefix)));
        }
    }
    if !signer.is_empty() {
        errors.extend(validate_signer_name(SPEC.child("signerName"), signer));
    }
    errors
}

/// What is wrong with the name of a bundle of this signer; of none in particular if it is empty.
pub(crate) fn name_problems(signer: &str, name: &str, is_prefix: bool) -> Vec<String> {
    let rest = if signer.is_empty() {
        if name.contains(':') {
            return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()];
        }
        name
    } else {
        let prefix = signer.replace('/', ":") + ":";
        match name.strip_prefix(&prefix) {
            Some(rest) => rest,
            None => {
                return vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")];
            }
        }
    };
    let rule = NameRule::Dns1123Subdomain;
    let found = if is_prefix { rule.check_prefix(rest) } else { rule.check(rest) };
    found.into_iter().map(str::to_owned).collect()
}

/// A bundle is certificates of authorities in PEM, each of them once.
fn validate_bundle(path: FieldPath<'_>, bundle: &str) -> FieldErrors {
    if bundle.len() > MAX_BYTES {
        return FieldErrors::from([FieldError::too_long(path, MAX_BYTES)]);
    }
    let invalid = |detail: String| FieldError::invalid(path, OMITTED, detail);
    let mut errors = FieldErrors::new();
    let mut anchors: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (at, block) in pem::blocks(bundle).enumerate() {
        match anchor_problem(&block) {
            Some(problem) => errors.push(invalid(format!("entry {at} {problem}"))),
            None => anchors.entry(block.content).or_default().push(at),
        }
    }
    // What is malformed may be what is missing.
    if !errors.is_empty() {
        return errors;
    }
    if anchors.is_empty() {
        errors.push(invalid("at least one trust anchor must be provided".to_owned()));
    }
    let mut repeated: Vec<Vec<usize>> = anchors.into_values().filter(|entries| entries.len() > 1).collect();
    repeated.sort();
    for entries in repeated {
        let entries: Vec<String> = entries.iter().map(usize::to_string).collect();
        errors.push(invalid(format!("duplicate trust anchor (indices [{}])", entries.join(" "))));
    }
    errors
}

fn anchor_problem(block: &pem::Block<'_>) -> Option<String> {
    if block.label != "CERTIFICATE" {
        return Some(format!("has bad block type: {}", block.label));
    }
    if block.has_headers {
        return Some("has PEM block headers".to_owned());
    }
    let Ok(([], certificate)) = X509Certificate::from_der(&block.content) else {
        return Some("does not parse as X.509".to_owned());
    };
    (!certificate.is_ca()).then(|| "does not have the CA bit set".to_owned())
}

#[cfg(test)]
mod tests;
