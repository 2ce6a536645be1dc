//! The names of signers: a domain and a path, `example.com/signer`.

use revisor_object::names::{dns1123_label, dns1123_subdomain};
use revisor_object::{FieldError, FieldErrors, FieldPath};

/// How long the domain of a signer may be.
const MAX_DOMAIN: usize = 253;

/// How long the name of a signer may be: room for a domain, and for a namespace and a name behind it.
const MAX_NAME: usize = MAX_DOMAIN + 1 + 253 + 63 + 1;

/// What is wrong with the name of a signer.
pub(crate) fn validate_signer_name(path: FieldPath<'_>, name: &str) -> FieldErrors {
    if name.is_empty() {
        return FieldErrors::from([FieldError::required(path, "")]);
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return FieldErrors::from([FieldError::invalid(path, name, detail)]);
    };
    let mut errors = FieldErrors::new();
    if domain.len() > MAX_DOMAIN {
        errors.push(FieldError::too_long(path, MAX_DOMAIN));
    }
    // Of the labels only the first bad one is told of: what is wrong with the others would read the same.
    let mut first_bad = |part: &str, check: fn(&str) -> Vec<&'static str>| {
        let found = part.split('.').map(|label| (label, check(label))).find(|(_, problems)| !problems.is_empty());
        for (label, problem) in found.iter().flat_map(|(label, problems)| problems.iter().map(move |one| (label, one)))
        {
            errors.push(FieldError::invalid(path, part, format!("validating label {label:?}: {problem}")));
        }
    };
    first_bad(domain, dns1123_label);
    first_bad(rest, dns1123_subdomain);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, domain, detail));
    }
    if name.len() > MAX_NAME {
        errors.push(FieldError::too_long(path, MAX_NAME));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signer_is_a_domain_and_a_path() {
        let long = format!("example.com/{}", "a.".repeat(300));
        for (name, want) in [
            ("example.com/s", 0),
            ("kubernetes.io/kube-apiserver-client", 0),
            ("example.com/namespace.name", 0),
            ("", 1),
            ("example.com", 1),
            ("example.com/a/b", 1),
            ("example/s", 1),
            ("Example.Com/s", 1),
            ("example.com/S", 1),
            ("EXAMPLE/S", 3),
            (&long, 2),
        ] {
            let errors = validate_signer_name(FieldPath::root("s"), name);
            assert_eq!(errors.len(), want, "{name}: {errors:?}");
        }
    }
}
