//! The names that the group has rules of its own for.

use revisor_object::names::{c_identifier, dns1123_label, dns1123_subdomain};
use revisor_object::{FieldError, FieldErrors, FieldPath};

use crate::checks::problems;
pub(super) use crate::kinds::core::persistent_volume::csi_driver_name as driver;

/// The longest identifier.
const MAX_ID: usize = 32;

/// The longest name of a pool.
const MAX_POOL: usize = 253;

/// The longest key that errors show in full: a domain, a slash and an identifier.
const MAX_SHOWN_KEY: usize = 63 + 1 + MAX_ID;

/// The name of a request or a device.
pub(super) fn label(path: FieldPath<'_>, name: &str) -> FieldErrors {
    problems(path, name, dns1123_label(name))
}

/// The name of a class.
pub(super) fn class(path: FieldPath<'_>, name: &str) -> FieldErrors {
    if name.is_empty() {
        return FieldErrors::from([FieldError::required(path, "")]);
    }
    problems(path, name, dns1123_subdomain(name))
}

/// The name of a pool: domains with slashes between them.
pub(super) fn pool(path: FieldPath<'_>, name: &str) -> FieldErrors {
    if name.is_empty() {
        return FieldErrors::from([FieldError::required(path, "")]);
    }
    let mut errors = FieldErrors::new();
    if name.len() > MAX_POOL {
        errors.push(FieldError::too_long(path, MAX_POOL));
    }
    for part in name.split('/') {
        errors.extend(problems(path, part, dns1123_subdomain(part)));
    }
    errors
}

fn identifier(path: FieldPath<'_>, id: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if id.len() > MAX_ID {
        errors.push(FieldError::too_long(path, MAX_ID));
    }
    errors.extend(problems(path, id, c_identifier(id)));
    errors
}

/// The name of an attribute or a capacity: an identifier, with or without a domain.
pub(super) fn qualified(path: FieldPath<'_>, name: &str) -> FieldErrors {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        [id] => identifier(path, id),
        [domain, id] => {
            let mut errors = match domain {
                "" => FieldErrors::from([FieldError::invalid(path, "", "the domain must not be empty")]),
                domain => driver(path, domain),
            };
            errors.extend(match id {
                "" => FieldErrors::from([FieldError::invalid(path, "", "the name must not be empty")]),
                id => identifier(path, id),
            });
            errors
        }
        // The original lets names with more slashes pass.
        _ => FieldErrors::new(),
    }
}

/// The name of an attribute with its domain.
pub(super) fn fully_qualified(path: FieldPath<'_>, name: &str) -> FieldErrors {
    let mut errors = qualified(path, name);
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

/// A key as errors show it: the middle of a long one is left out.
pub(super) fn shown_key(key: &str) -> String {
    if key.len() <= MAX_SHOWN_KEY {
        return key.to_owned();
    }
    let left = MAX_SHOWN_KEY - 3;
    // Keys are cut by bytes; what is cut in half is shown as unknown.
    let (bytes, head, tail) = (key.as_bytes(), left.div_ceil(2), left / 2);
    let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
    format!("{}...{}", text(&bytes[..head]), text(&bytes[bytes.len() - tail..]))
}

/// The identity of a share: a UUID in its usual form.
pub(super) fn uid(path: FieldPath<'_>, uid: &str) -> Option<FieldError> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_plain = |text: &str| {
        let groups: Vec<&str> = text.split('-').collect();
        groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) && groups.iter().all(|group| digits(group))
    };
    let fault = match uid.len() {
        36 if is_plain(uid) => None,
        45 if !uid.get(..9).is_some_and(|prefix| prefix.eq_ignore_ascii_case("urn:uuid:")) => {
            Some(format!("invalid urn prefix: {:?}", uid.get(..9).unwrap_or_default()))
        }
        45 if uid.get(9..).is_some_and(is_plain) => None,
        38 if !(uid.starts_with('{') && uid.ends_with('}')) => Some("invalid bracketed UUID format".to_owned()),
        38 if uid.get(1..37).is_some_and(is_plain) => None,
        32 if digits(uid) => None,
        32 | 36 | 38 | 45 => Some("invalid UUID format".to_owned()),
        length => Some(format!("invalid UUID length: {length}")),
    };
    let detail = match fault {
        Some(fault) => format!("error validating uid: {fault}"),
        None if uid.len() != 36 || uid.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
             hexadecimal characters"
                .to_owned()
        }
        None => return None,
    };
    Some(FieldError::invalid(path, uid, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_plain_identities() {
        let path = FieldPath::root("x");
        let good = "123e4567-e89b-12d3-a456-426614174000";
        for (text, is_good) in [
            (good.to_owned(), true),
            (good.to_uppercase(), false),
            (format!("urn:uuid:{good}"), false),
            (format!("{{{good}}}"), false),
            (good.replace('-', ""), false),
            ("short".to_owned(), false),
        ] {
            assert_eq!(uid(path, &text).is_none(), is_good, "{text}");
        }
    }

    #[test]
    fn long_keys_are_cut_in_the_middle() {
        assert_eq!(shown_key("short"), "short");
        let long = "a".repeat(100) + &"b".repeat(100);
        let shown = shown_key(&long);
        assert_eq!(shown.len(), MAX_SHOWN_KEY);
        assert!(shown.starts_with("aaa") && shown.contains("...") && shown.ends_with("bbb"));
    }
}
