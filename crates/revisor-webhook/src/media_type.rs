//! The media type of an answer, as far as its text decides anything: that it is one, and whether it says text.

/// The media type in a `Content-Type`, in lower case, or what Go says about a text that is none.
pub(crate) fn media_type(content_type: &str) -> Result<String, &'static str> {
    let base = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (kind, rest) = token(&base);
    if kind.is_empty() {
        return Err("mime: no media type");
    }
    if rest.is_empty() {
        return Ok(base);
    }
    let Some(rest) = rest.strip_prefix('/') else { return Err("mime: expected slash after first token") };
    match token(rest) {
        ("", _) => Err("mime: expected token after slash"),
        (_, "") => Ok(base),
        _ => Err("mime: unexpected content after media subtype"),
    }
}

/// The longest token that `text` begins with, and what follows it.
fn token(text: &str) -> (&str, &str) {
    let is_token = |b: u8| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b);
    text.split_at(text.bytes().position(|b| !is_token(b)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_two_tokens() {
        for (text, want) in [
            ("application/json", Ok("application/json".to_owned())),
            ("Text/HTML; charset=utf-8", Ok("text/html".to_owned())),
            ("json", Ok("json".to_owned())),
            ("///;;", Err("mime: no media type")),
            (";", Err("mime: no media type")),
            ("a b/c", Err("mime: expected slash after first token")),
            ("a/", Err("mime: expected token after slash")),
            ("a/b c", Err("mime: unexpected content after media subtype")),
        ] {
            assert_eq!(media_type(text), want, "{text}");
        }
    }
}
