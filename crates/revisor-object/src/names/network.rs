//! The rules for what networks are told: DNS names beyond the usual ones, ports, headers, percentages.

use super::{AT_MOST_253_CHARACTERS, Problems, SUBDOMAIN_MAX, is_dns1123_subdomain};

/// Checks a DNS name whose first label is `*`.
///
/// ```
/// use revisor_object::names::wildcard_dns1123_subdomain;
/// assert!(wildcard_dns1123_subdomain("*.example.com").is_empty());
/// assert_eq!(wildcard_dns1123_subdomain("example.com").len(), 1);
/// ```
pub fn wildcard_dns1123_subdomain(text: &str) -> Problems {
    let mut problems = Problems::new();
    if text.len() > SUBDOMAIN_MAX {
        problems.push(AT_MOST_253_CHARACTERS);
    }
    if !text.strip_prefix("*.").is_some_and(is_dns1123_subdomain) {
        problems.push(concat!(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must ",
            "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character ",
            "(e.g. '*.example.com', regex used for validation is '\\*\\.",
            label_pattern!(),
            "(\\.",
            label_pattern!(),
            ")*')"
        ));
    }
    problems
}

/// Checks a DNS name whose labels may contain and begin with underscores, as those of services do.
///
/// ```
/// use revisor_object::names::dns1123_subdomain_with_underscore;
/// assert!(dns1123_subdomain_with_underscore("_http._tcp.example.com").is_empty());
/// ```
pub fn dns1123_subdomain_with_underscore(text: &str) -> Problems {
    let mut problems = Problems::new();
    if text.len() > SUBDOMAIN_MAX {
        problems.push(AT_MOST_253_CHARACTERS);
    }
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        super::is_framed(label, alphanumeric, |byte| alphanumeric(byte) || matches!(byte, b'-' | b'_'))
    };
    if !text.split('.').all(is_label) {
        problems.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and \
             must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')",
        );
    }
    problems
}

/// Checks a DNS name in which capital letters are allowed. The names of drivers are such.
///
/// ```
/// use revisor_object::names::dns1123_subdomain_caseless;
/// assert!(dns1123_subdomain_caseless("CSI.example.com").is_empty());
/// ```
pub fn dns1123_subdomain_caseless(text: &str) -> Problems {
    let mut problems = Problems::new();
    if text.len() > SUBDOMAIN_MAX {
        problems.push("must be no more than 253 bytes");
    }
    if !is_dns1123_subdomain(&text.to_ascii_lowercase()) {
        problems.push(concat!(
            "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with ",
            "an alphanumeric character (e.g. 'Example.com', regex used for validation is '",
            label_pattern!(),
            "(\\.",
            label_pattern!(),
            ")*')"
        ));
    }
    problems
}

/// Checks the number of a port.
///
/// ```
/// use revisor_object::names::port_number;
/// assert!(port_number(443).is_empty());
/// assert_eq!(port_number(0), ["must be between 1 and 65535, inclusive"]);
/// ```
pub fn port_number(port: i64) -> Problems {
    if (1..=65535).contains(&port) { Problems::new() } else { vec!["must be between 1 and 65535, inclusive"] }
}

/// Checks the name of a port.
///
/// ```
/// use revisor_object::names::port_name;
/// assert!(port_name("https").is_empty());
/// assert_eq!(port_name("443"), ["must contain at least one letter (a-z)"]);
/// ```
pub fn port_name(text: &str) -> Problems {
    let mut problems = Problems::new();
    if text.len() > 15 {
        problems.push("must be no more than 15 characters");
    }
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || !text.bytes().all(known) {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)");
    }
    if text.contains("--") {
        problems.push("must not contain consecutive hyphens");
    }
    if text.starts_with('-') || text.ends_with('-') {
        problems.push("must not begin or end with a hyphen");
    }
    problems
}

/// Checks the name of an HTTP header.
///
/// ```
/// use revisor_object::names::http_header_name;
/// assert!(http_header_name("X-Forwarded-For").is_empty());
/// assert_eq!(http_header_name("X_Y").len(), 1);
/// ```
pub fn http_header_name(text: &str) -> Problems {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Problems::new();
    }
    vec![
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for \
         validation is '[-A-Za-z0-9]+')",
    ]
}

/// Checks a percentage.
///
/// ```
/// use revisor_object::names::percent;
/// assert!(percent("25%").is_empty());
/// assert_eq!(percent("25").len(), 1);
/// ```
pub fn percent(text: &str) -> Problems {
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if text.strip_suffix('%').is_some_and(is_number) {
        return Problems::new();
    }
    vec![
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
         for validation is '[0-9]+%')",
    ]
}
