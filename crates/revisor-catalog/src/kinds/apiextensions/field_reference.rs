//! Simple paths such as `.spec.replicas` or `.spec['a.b']` that name a field of a schema.

use revisor_object::Object;

/// A field of a schema that a path leads to.
#[derive(Debug, PartialEq)]
pub(super) struct FieldReference<'a> {
    /// The path as errors would show it; the same for all ways to write it.
    pub(super) path: String,
    /// Its first step.
    pub(super) root: String,
    /// The schema there.
    pub(super) schema: Option<&'a Object>,
}

/// Finds the field that a path names. The error says why there is none.
pub(super) fn find<'a>(path: &str, schema: &'a Object, allows_brackets: bool) -> Result<FieldReference<'a>, String> {
    let mut found = FieldReference { path: String::new(), root: String::new(), schema: Some(schema) };
    let mut tokens = Tokens(path);
    while let Some(token) = tokens.next() {
        match token {
            "[" if !allows_brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let token = tokens.next().ok_or("unexpected end of JSON path")?;
                let name = token
                    .strip_prefix('\'')
                    .and_then(|token| token.strip_suffix('\''))
                    .ok_or_else(|| format!("expected single quoted string but got {token}"))?;
                found.enter(&name.replace("\\'", "'").replace("\\\\", "\\"))?;
                match tokens.next().ok_or("unexpected end of JSON path")? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => found.enter(tokens.next().ok_or("unexpected end of JSON path")?)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

impl FieldReference<'_> {
    fn enter(&mut self, name: &str) -> Result<(), String> {
        const NO_FIELD: &str = "does not refer to a valid field";
        let schema = self.schema.ok_or(NO_FIELD)?;
        let (step, next) = match schema.object("properties") {
            Some(properties) => (format!(".{name}"), Some(properties.object(name).ok_or(NO_FIELD)?)),
            None if schema.contains("additionalProperties") => {
                (format!("[{name}]"), schema.object("additionalProperties"))
            }
            None => return Err(NO_FIELD.to_owned()),
        };
        self.schema = next;
        if self.path.is_empty() {
            self.path = step.trim_start_matches('.').to_owned();
            self.root = self.path.clone();
        } else {
            self.path.push_str(&step);
        }
        Ok(())
    }
}

/// A path in pieces: dots, brackets, quoted texts, and what is between them.
struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let text = self.0;
        let first = *text.as_bytes().first()?;
        let end = match first {
            b'.' | b'[' | b']' => 1,
            b'\'' => {
                let quotes = text.match_indices('\'').skip(1);
                let mut ends = quotes.filter(|(at, _)| text.as_bytes()[at - 1] != b'\\');
                ends.next().map_or(text.len(), |(at, _)| at + 1)
            }
            _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn fields_are_found_by_their_path() {
        let schema = object(
            r#"{"properties":{"spec":{"properties":{"a.b":{"type":"string"},
                "m":{"additionalProperties":{"type":"integer"}},"t":{"additionalProperties":true}}}}}"#,
        );
        for (path, want) in [
            (".spec", Ok("spec")),
            (".spec['a.b']", Ok("spec.a.b")),
            (".spec.m.x", Ok("spec.m[x]")),
            (".spec.t.x", Ok("spec.t[x]")),
            (".spec.t.x.y", Err("does not refer to a valid field")),
            (".spec.none", Err("does not refer to a valid field")),
            (".spec.m.x.y", Err("does not refer to a valid field")),
            ("spec", Err("expected [ or . but got: spec")),
            (".", Err("unexpected end of JSON path")),
            (".spec['a.b'", Err("unexpected end of JSON path")),
            (".spec[0]", Err("expected single quoted string but got 0")),
        ] {
            let found = find(path, &schema, true).map(|found| found.path);
            assert_eq!(found, want.map(str::to_owned).map_err(str::to_owned), "{path}");
        }
        assert_eq!(find(".spec['m']", &schema, false), Err("array notation is not allowed".to_owned()));
        assert_eq!(find(".spec.m", &schema, false).map(|found| found.root), Ok("spec".to_owned()));
    }
}
