//! Names of iSCSI initiators and targets, as volumes of pods and persistent volumes have them.

/// Whether a text is such a name in the form that it begins with; `None` if it begins with none of the three.
pub(super) fn is_initiator_name(name: &str) -> Option<bool> {
    Some(match name.get(..3)? {
        "iqn" => is_qualified(name),
        "eui" => is_numbered(name, 16),
        "naa" => is_numbered(name, 32),
        _ => return None,
    })
}

/// `iqn.YEAR-MONTH.DOMAIN:NAME`, at the end of the text.
fn is_qualified(name: &str) -> bool {
    name.match_indices("iqn.").any(|(at, prefix)| {
        // Bytes, because a character may lie across any place that is counted off.
        let rest = &name.as_bytes()[at + prefix.len()..];
        let [y1, y2, y3, y4, b'-', m1, m2, b'.', rest @ ..] = rest else { return false };
        let is_date = [y1, y2, y3, y4, m1, m2].iter().all(|byte| byte.is_ascii_digit());
        let Some(colon) = rest.iter().position(|byte| *byte == b':') else { return false };
        let (domain, own) = (&rest[..colon], &rest[colon + 1..]);
        let is_domain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        let is_excluded = |byte: &u8| {
            matches!(byte, b',' | b';' | b'*' | b'&' | b'$' | b'|' | b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
        };
        is_date && !domain.is_empty() && domain.iter().all(is_domain) && !own.is_empty() && !own.iter().any(is_excluded)
    })
}

/// Three letters, any character, and a number of letters and digits.
fn is_numbered(name: &str, digits: usize) -> bool {
    let mut rest = name.chars();
    rest.nth(3).is_some_and(|separator| separator != '\n')
        && rest.as_str().len() == digits
        && rest.all(|character| character.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_what_only_begins_like_one() {
        for (name, want) in [
            ("iqn.2001-04.com.example:storage", Some(true)),
            ("iqn.iqn.2001-04.com.example:ä", Some(true)),
            ("iqn.2001-4.com.example:storage", Some(false)),
            ("iqn.2001-04.com.example:a b", Some(false)),
            ("iqn.2001-04.com.example:", Some(false)),
            ("iqn.200ä-04.com.example:storage", Some(false)),
            ("iqn.2001-0€com.example:storage", Some(false)),
            ("iqn.", Some(false)),
            ("eui.0123456789abcdef", Some(true)),
            ("eui€0123456789abcdef", Some(true)),
            ("eui.0123456789abcde", Some(false)),
            ("naa.0123456789abcdef0123456789abcdef", Some(true)),
            ("naa", Some(false)),
            ("iq€", None),
            ("ä", None),
            ("", None),
        ] {
            assert_eq!(is_initiator_name(name), want, "{name}");
        }
    }
}
