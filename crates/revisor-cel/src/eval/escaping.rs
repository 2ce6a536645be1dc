//! How names of properties are written in expressions, which take fewer characters than JSON does.
//!
//! `a-b` is written `a__dash__b`, and a word that the language keeps for itself, such as `namespace`, is
//! `__namespace__`.

use std::borrow::Cow;

/// Words that no name in an expression may be.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether no name in an expression may be this word.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// The name of a property as expressions write it; `None` if they cannot.
pub(crate) fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.bytes().all(plain) && !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    let mut escaped = String::with_capacity(name.len() + 16);
    let mut rest = name;
    while let Some(char) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__") {
            escaped.push_str("__underscores__");
            rest = after;
            continue;
        }
        match char {
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            char if char.is_ascii_alphanumeric() || char == '_' => escaped.push(char),
            _ => return None,
        }
        rest = &rest[char.len_utf8()..];
    }
    Some(Cow::Owned(escaped))
}

/// The name of the property that expressions write like this; `None` if they write none so.
pub(crate) fn unescape(written: &str) -> Option<Cow<'_, str>> {
    if !written.contains("__") {
        return Some(Cow::Borrowed(written));
    }
    let mut name = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.find("__") {
        // What stands between two pairs of underscores, without one in it, says what is meant.
        let inner = &rest[at + 2..];
        let end = inner.find('_').unwrap_or(inner.len());
        if end == 0 || !inner[end..].starts_with("__") {
            // Of three underscores in a row, the last two may be the pair.
            name.push_str(&rest[..at + 1]);
            rest = &rest[at + 1..];
            continue;
        }
        name.push_str(&rest[..at]);
        let word = &inner[..end];
        match word {
            "underscores" => name.push_str("__"),
            "dot" => name.push('.'),
            "dash" => name.push('-'),
            "slash" => name.push('/'),
            word if is_reserved(word) && word.len() + 4 == written.len() => name.push_str(word),
            _ => return None,
        }
        rest = &inner[end + 2..];
    }
    name.push_str(rest);
    Some(Cow::Owned(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_back() {
        for (name, escaped) in [
            ("a", "a"),
            ("a_b", "a_b"),
            ("a-b", "a__dash__b"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("namespace", "__namespace__"),
            ("namespaces", "namespaces"),
            ("-", "__dash__"),
            ("var", "__var__"),
            ("a-__-b", "a__dash____underscores____dash__b"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(escaped));
            assert_eq!(unescape(escaped).as_deref(), Some(name));
        }
        for name in ["", "1a", "a b", "ä", "a#"] {
            assert_eq!(escape(name), None, "{name}");
        }
        for written in ["a__b__c", "__namespace__x", "__undersc__"] {
            assert_eq!(unescape(written), None, "{written}");
        }
    }
}
