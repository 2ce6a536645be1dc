//! The rules for names that belong to a domain: fully qualified ones, and paths and keys with a domain before them.
//!
//! These may be wrong in one part only, and then that part is what the error shows. So they answer with field errors.

use super::{dns1123_label, dns1123_subdomain, qualified_name};
use crate::field_error::FieldError;
use crate::field_errors::FieldErrors;
use crate::field_path::FieldPath;

/// Checks a DNS name of at least three labels.
///
/// ```
/// use revisor_object::{FieldPath, names::fully_qualified_name};
/// assert!(fully_qualified_name(&FieldPath::root("f"), "a.example.com").is_empty());
/// ```
pub fn fully_qualified_name(path: &FieldPath<'_>, name: &str) -> FieldErrors {
    if name.is_empty() {
        return FieldErrors::from([FieldError::required(path, "")]);
    }
    let problems = dns1123_subdomain(name);
    if !problems.is_empty() {
        return FieldErrors::from([FieldError::invalid(path, name, problems.join(","))]);
    }
    if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        return FieldErrors::from([FieldError::invalid(path, name, detail)]);
    }
    FieldErrors::new()
}

/// Checks a DNS name of at least two labels, after which a dot may stand.
///
/// ```
/// use revisor_object::{FieldPath, names::fully_qualified_domain_name};
/// assert!(fully_qualified_domain_name(&FieldPath::root("f"), "example.com.").is_empty());
/// ```
pub fn fully_qualified_domain_name(path: &FieldPath<'_>, name: &str) -> FieldErrors {
    if name.is_empty() {
        return FieldErrors::from([FieldError::required(path, "")]);
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let problems = dns1123_subdomain(name);
    if !problems.is_empty() {
        return FieldErrors::from([FieldError::invalid(path, name, problems.join(","))]);
    }
    if name.split('.').count() < 2 {
        let detail = "should be a domain with at least two segments separated by dots";
        return FieldErrors::from([FieldError::invalid(path, name, detail)]);
    }
    let wrong = name.split('.').map(|label| (label, dns1123_label(label))).find(|(_, problems)| !problems.is_empty());
    wrong.map(|(label, problems)| FieldError::invalid(path, label, problems.join(","))).into_iter().collect()
}

/// Checks a path with a domain before it, such as `acme.io/foo`.
///
/// ```
/// use revisor_object::{FieldPath, names::domain_prefixed_path};
/// assert!(domain_prefixed_path(&FieldPath::root("f"), "acme.io/foo/bar").is_empty());
/// ```
pub fn domain_prefixed_path(path: &FieldPath<'_>, text: &str) -> FieldErrors {
    if text.is_empty() {
        return FieldErrors::from([FieldError::required(path, "")]);
    }
    let (host, rest) = text.split_once('/').unwrap_or_default();
    if host.is_empty() || rest.is_empty() {
        return FieldErrors::from([FieldError::invalid(
            path,
            text,
            r#"must be a domain-prefixed path (such as "acme.io/foo")"#,
        )]);
    }
    let mut errors: FieldErrors =
        dns1123_subdomain(host).into_iter().map(|problem| FieldError::invalid(path, host, problem)).collect();
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !rest.bytes().all(known) {
        let detail = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
        errors.push(FieldError::invalid(path, rest, detail));
    }
    errors
}

/// Checks a key that must have a domain before it, such as `acme.io/foo`.
///
/// ```
/// use revisor_object::{FieldPath, names::domain_prefixed_key};
/// assert!(domain_prefixed_key(&FieldPath::root("f"), "acme.io/foo").is_empty());
/// ```
pub fn domain_prefixed_key(path: &FieldPath<'_>, key: &str) -> FieldErrors {
    if key.is_empty() {
        return FieldErrors::from([FieldError::required(path, "")]);
    }
    let problems = qualified_name(key);
    if problems.is_empty() && !key.contains('/') {
        return FieldErrors::from([FieldError::invalid(
            path,
            key,
            r#"must be a domain-prefixed key (such as "acme.io/foo")"#,
        )]);
    }
    problems.into_iter().map(|problem| FieldError::invalid(path, key, problem)).collect()
}
