//! What Go's JSON decoder says about a text that is not JSON.

use serde::de::IgnoredAny;

/// The words for what is wrong with `text`, if anything is.
pub(crate) fn json_problem(text: &[u8]) -> Option<String> {
    let error = serde_json::from_slice::<IgnoredAny>(text).err()?;
    if error.is_eof() {
        return Some("unexpected end of JSON input".to_owned());
    }
    let message = error.to_string();
    let place = PLACES
        .iter()
        .find(|(begin, _)| message.starts_with(begin))
        .map_or("looking for beginning of value", |(_, place)| place);
    Some(format!("invalid character {} {place}", character(text, error.line(), error.column())))
}

/// How the parser's messages begin, and how Go names the same place.
const PLACES: [(&str, &str); 8] = [
    ("trailing characters", "after top-level value"),
    ("expected `,` or `}`", "after object key:value pair"),
    ("expected `,` or `]`", "after array element"),
    ("expected `:`", "after object key"),
    ("key must be a string", "looking for beginning of object key string"),
    ("trailing comma", "looking for beginning of value"),
    ("control character", "in string literal"),
    ("invalid escape", "in string escape code"),
];

/// The character at that place, in single quotes.
fn character(text: &[u8], line: usize, column: usize) -> String {
    let line = text.split(|b| *b == b'\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let rest = String::from_utf8_lossy(line.get(column.saturating_sub(1)..).unwrap_or_default());
    match rest.chars().next() {
        Some('\'') => r"'\''".to_owned(),
        Some('"') => "'\"'".to_owned(),
        Some(c) => format!("'{}'", c.escape_default()),
        None => r"'\n'".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_told_as_go_tells_them() {
        for (text, want) in [
            ("{}", None),
            (r#"{"a":"#, Some("unexpected end of JSON input")),
            ("", Some("unexpected end of JSON input")),
            ("{} x", Some("invalid character 'x' after top-level value")),
            (r#"{"a" 1}"#, Some("invalid character '1' after object key")),
            (r#"{"a":1 "b"}"#, Some("invalid character '\"' after object key:value pair")),
            ("[1 2]", Some("invalid character '2' after array element")),
            ("{1:2}", Some("invalid character '1' looking for beginning of object key string")),
            ("{\"a\":\n?}", Some("invalid character '?' looking for beginning of value")),
        ] {
            assert_eq!(json_problem(text.as_bytes()).as_deref(), want, "{text}");
        }
    }
}
