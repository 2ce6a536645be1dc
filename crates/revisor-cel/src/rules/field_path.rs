//! The paths that rules and selectable fields of a schema name: `.spec.list['a key']`.

use revisor_schema::{Additional, Structural};

/// Reads a path that leads through fields and keys of what `schema` describes. Gives the path as field errors write it
/// and the schema at its end, if there is one, or what is wrong with it. With `subscripts`, keys may stand in brackets.
///
/// ```
/// use revisor_cel::valid_field_path;
/// use revisor_schema::{JsonType, Structural};
///
/// let name = Structural { kind: Some(JsonType::String), ..Structural::default() };
/// let schema = Structural { properties: vec![("name".into(), name)], ..Structural::default() };
/// assert_eq!(valid_field_path(".name", &schema, true).map(|(path, _)| path), Ok("name".to_string()));
/// assert!(valid_field_path(".names", &schema, true).is_err());
/// ```
pub fn valid_field_path<'a>(
    text: &str,
    schema: &'a Structural,
    subscripts: bool,
) -> Result<(String, Option<&'a Structural>), String> {
    let ends = || "unexpected end of JSON path".to_string();
    let mut path = String::new();
    let mut at = Some(schema);
    let mut tokens = Tokens(text);
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if !subscripts => return Err("array notation is not allowed".to_string()),
            "[" => {
                let token = tokens.next().ok_or_else(ends)?;
                match token.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
                    Some(quoted) => unquote(quoted)?,
                    None => return Err(format!("expected single quoted string but got {token}")),
                }
            }
            "." => tokens.next().ok_or_else(ends)?.to_string(),
            token => return Err(format!("expected [ or . but got: {token}")),
        };
        let invalid = || "does not refer to a valid field".to_string();
        // Of a member of which anything is allowed nothing is known.
        let around = at.ok_or_else(invalid)?;
        if !around.properties.is_empty() {
            at = Some(around.property(&name).ok_or_else(invalid)?);
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
        } else if let Some(additional) = &around.additional {
            at = match additional {
                Additional::Schema(member) => Some(&**member),
                // The original asks only whether the keyword is there.
                Additional::Allowed(_) => None,
            };
            path.push_str(&format!("[{name}]"));
        } else {
            return Err(invalid());
        }
        if token == "[" {
            match tokens.next() {
                Some("]") => {}
                Some(token) => return Err(format!("expected ] but got {token}")),
                None => return Err(ends()),
            }
        }
    }
    Ok((path, at))
}

/// Dots, brackets, and what stands between them; in quotes they mean nothing.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0;
        let bytes = text.as_bytes();
        let end = match bytes.first()? {
            b'\'' => (1..bytes.len())
                .find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\')
                .map_or(bytes.len(), |at| at + 1),
            b'.' | b'[' | b']' => 1,
            _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

fn unquote(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            plain.push(char);
            continue;
        }
        plain.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') => '\\',
            // Without anything after it, it stands for itself.
            None => '\\',
            Some(other) => return Err(format!("invalid string literal: invalid escape char \\{other}")),
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn paths_are_read_by_the_schema() {
        let text = r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b.c":{"type":"string"}}},
            "m":{"type":"object","additionalProperties":{"type":"object","properties":{"x":{"type":"integer"}}}},
            "l":{"type":"array","items":{"type":"string"}},"any":{"type":"object","additionalProperties":true},
            "none":{"type":"object","additionalProperties":false}}}"#;
        let parsed = parse_json(text.as_bytes()).expect("is JSON").value;
        let schema = Structural::read(parsed.as_object().expect("is an object"));
        for (path, want) in [
            (".a", Ok("a")),
            (".a['b.c']", Ok("a.b.c")),
            ("['a']['b.c']", Ok("a.b.c")),
            (".m.key", Ok("m[key]")),
            (".m['a key'].x", Ok("m[a key].x")),
            (r".m['it\'s']", Ok("m[it's]")),
            (".l", Ok("l")),
            (".any.key", Ok("any[key]")),
            (".none['a key']", Ok("none[a key]")),
            (".any.key.x", Err("does not refer to a valid field")),
            ("", Ok("")),
            (".l[0]", Err("expected single quoted string but got 0")),
            (".l['0']", Err("does not refer to a valid field")),
            (".b", Err("does not refer to a valid field")),
            ("a", Err("expected [ or . but got: a")),
            (".", Err("unexpected end of JSON path")),
            (".a[", Err("unexpected end of JSON path")),
            (".a['b.c'", Err("unexpected end of JSON path")),
            (".a['b.c'.", Err("expected ] but got .")),
            (r".a['\q']", Err(r"invalid string literal: invalid escape char \q")),
            (".a['b", Err("expected single quoted string but got 'b")),
            (".a[']", Err("expected single quoted string but got ']")),
        ] {
            let found = valid_field_path(path, &schema, true).map(|(path, _)| path);
            assert_eq!(found, want.map(str::to_string).map_err(str::to_string), "{path}");
        }
        let refused = valid_field_path(".a['b.c']", &schema, false).map(|(path, _)| path);
        assert_eq!(refused, Err("array notation is not allowed".to_string()));
    }
}
