//! [`Path`]: a place in the objects of a version, or many of them: `.spec.rules[*].port`, `.spec["odd.name"]`.

use std::fmt;

use revisor_object::Value;

/// How long the text of a path may be.
const MAX_BYTES: usize = 1024;

/// How many steps a path may have.
const MAX_STEPS: usize = 64;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// The member with this name.
    Name(Box<str>),
    /// Every item of a list, or every value of a map.
    Every,
}

/// The way from an object, or from an item of a list, to a place in it.
///
/// ```
/// use revisor_convert::Path;
///
/// let path: Path = r#".spec["rules"][*]["odd.name"]"#.parse().unwrap();
/// assert_eq!(path.to_string(), r#".spec.rules[*]["odd.name"]"#);
/// assert!("spec".parse::<Path>().unwrap_err().to_string().contains("at character 1"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path(Vec<Segment>);

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at character {at} of {text:?})")]
pub struct PathError {
    /// The text, or its beginning.
    text: String,
    /// The character, counted from one.
    at: usize,
    problem: &'static str,
}

impl Path {
    /// The path that leads nowhere: to the object itself.
    pub const fn root() -> Path {
        Path(Vec::new())
    }

    /// The steps.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Whether it leads nowhere.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// This path and one more step.
    pub fn then(&self, segment: Segment) -> Path {
        let mut path = self.clone();
        path.0.push(segment);
        path
    }

    /// This path and the step to a member.
    pub fn member(&self, name: &str) -> Path {
        self.then(Segment::Name(name.into()))
    }

    /// This path and the step to every item.
    pub fn every(&self) -> Path {
        self.then(Segment::Every)
    }

    /// This path and then another one.
    pub fn join(&self, other: &Path) -> Path {
        Path(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// The first so many steps.
    pub fn first(&self, steps: usize) -> Path {
        Path(self.0[..steps.min(self.0.len())].to_vec())
    }

    /// What follows the first so many steps.
    pub(crate) fn after(&self, steps: usize) -> Path {
        Path(self.0[steps.min(self.0.len())..].to_vec())
    }

    /// Whether this path leads to `other` or to something that `other` is in.
    pub fn covers(&self, other: &Path) -> bool {
        other.0.starts_with(&self.0)
    }

    /// How many steps lead to every item of something.
    pub(crate) fn stars(&self) -> usize {
        self.0.iter().filter(|segment| **segment == Segment::Every).count()
    }

    /// The beginning that ends with the last step to every item; nothing if there is none.
    pub(crate) fn scope(&self) -> Path {
        let end = self.0.iter().rposition(|segment| *segment == Segment::Every).map_or(0, |at| at + 1);
        self.first(end)
    }

    /// The names of a path that has no other steps.
    pub(crate) fn names(&self) -> Box<[Box<str>]> {
        let name = |segment: &Segment| match segment {
            Segment::Name(name) => name.clone(),
            Segment::Every => Box::default(),
        };
        self.0.iter().map(name).collect()
    }

    /// The first value of an object that stands at this path.
    pub fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |at, segment| match (segment, at) {
            (Segment::Name(name), Value::Object(object)) => object.get(name),
            (Segment::Every, Value::Array(items)) => items.first(),
            (Segment::Every, Value::Object(object)) => object.iter().next().map(|(_, value)| value),
            _ => None,
        })
    }

    /// Takes away everything that stands at this path.
    pub fn clear(&self, value: &mut Value) {
        clear(&self.0, value);
    }
}

fn clear(segments: &[Segment], value: &mut Value) {
    match (segments, value) {
        ([Segment::Name(name)], Value::Object(object)) => {
            object.remove(name);
        }
        ([Segment::Every], Value::Array(items)) => items.clear(),
        ([Segment::Every], Value::Object(object)) => object.retain(|_, _| false),
        ([Segment::Name(name), rest @ ..], Value::Object(object)) => {
            if let Some(member) = object.get_mut(name) {
                clear(rest, member);
            }
        }
        ([Segment::Every, rest @ ..], Value::Array(items)) => items.iter_mut().for_each(|item| clear(rest, item)),
        ([Segment::Every, rest @ ..], Value::Object(object)) => {
            object.iter_mut().for_each(|(_, value)| clear(rest, value))
        }
        _ => {}
    }
}

impl std::str::FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Path, PathError> {
        let fail = |rest: &str, problem| {
            let at = text[..text.len() - rest.len()].chars().count() + 1;
            Err(PathError { text: text.chars().take(100).collect(), at, problem })
        };
        if text.len() > MAX_BYTES {
            return fail(text, "a path has at most 1024 bytes");
        }
        let mut segments = Vec::new();
        let mut rest = text;
        if text == "." {
            return Ok(Path::root());
        }
        if !text.starts_with(['.', '[']) {
            return fail(text, "a path begins with a dot");
        }
        while !rest.is_empty() {
            if let Some(behind) = rest.strip_prefix("[*]") {
                segments.push(Segment::Every);
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix('[') {
                let Some((name, behind)) = quoted(behind) else {
                    return fail(behind, "in brackets stands a star or a name in double quotes");
                };
                let Some(behind) = behind.strip_prefix(']') else { return fail(behind, "a bracket is not closed") };
                segments.push(Segment::Name(name.into()));
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix('.') {
                let end = behind.find(['.', '[', ']', '"', '*', ' ']).unwrap_or(behind.len());
                let (name, after) = behind.split_at(end);
                if name.is_empty() {
                    return fail(behind, "behind a dot stands a name; put odd names into [\"…\"]");
                }
                if !after.is_empty() && !after.starts_with(['.', '[']) {
                    return fail(after, "this character stands in [\"…\"] only");
                }
                segments.push(Segment::Name(name.into()));
                rest = after;
            } else {
                return fail(rest, "a dot or a bracket is missing");
            }
            if segments.len() > MAX_STEPS {
                return fail(rest, "a path has at most 64 steps");
            }
        }
        let path = Path(segments);
        // Escapes can make it longer as it is written than as it was read.
        if path.to_string().len() > MAX_BYTES {
            return fail(rest, "a path has at most 1024 bytes");
        }
        Ok(path)
    }
}

/// A text in double quotes, as JSON has it, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut is_escaped = false;
    let end = inner.char_indices().find_map(|(at, character)| {
        let ends = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        ends.then_some(at)
    })?;
    let literal = &text[..end + 2];
    let parsed = revisor_object::parse_json(literal.as_bytes()).ok()?;
    Some((parsed.value.as_str()?.to_owned(), &text[literal.len()..]))
}

fn is_plain(name: &str) -> bool {
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$';
    let is_inner = |byte: u8| is_first(byte) || byte.is_ascii_digit() || byte == b'-';
    name.bytes().next().is_some_and(is_first) && name.bytes().all(is_inner)
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        for segment in &self.0 {
            match segment {
                Segment::Every => f.write_str("[*]")?,
                Segment::Name(name) if is_plain(name) => write!(f, ".{name}")?,
                Segment::Name(name) => write!(f, "[{}]", Value::from(&**name).to_json())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_and_shown_in_one_way() {
        for (text, shown) in [
            (".", "."),
            (".spec.a", ".spec.a"),
            (".spec.a[*].b[*]", ".spec.a[*].b[*]"),
            (r#".spec["a"]"#, ".spec.a"),
            (r#"["odd.name"]["c d"]"#, r#"["odd.name"]["c d"]"#),
            (r#".a["q\"]x"].b"#, r#".a["q\"]x"].b"#),
            (".a.b/c", r#".a["b/c"]"#),
        ] {
            let path: Path = text.parse().expect(text);
            assert_eq!(path.to_string(), shown, "{text}");
            assert_eq!(shown.parse(), Ok(path), "{text}");
        }
        for (text, at, word) in [
            ("", 1, "dot"),
            ("spec.a", 1, "begins with a dot"),
            (".a..b", 4, "name"),
            (".a[b]", 4, "double quotes"),
            (".a[\"b]", 4, "double quotes"),
            (".a[\"b\"", 7, "closed"),
            (".a]", 3, "only"),
            (".a[*]b", 6, "missing"),
            (".é.", 4, "name"),
        ] {
            let error = text.parse::<Path>().expect_err(text);
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.to_string().contains(word), "{text}: {error}");
        }
        assert!(".a".repeat(65).parse::<Path>().is_err());
        assert!(format!(".{}", "a".repeat(1024)).parse::<Path>().is_err());
    }

    #[test]
    fn what_stands_at_a_path_is_found_and_taken_away() {
        let parse = |text: &str| revisor_object::parse_json(text.as_bytes()).expect("is JSON").value;
        let mut value = parse(r#"{"a":[{"b":1,"c":2},{"b":3}],"m":{"x":{"d":4},"y":{}}}"#);
        let path = |text: &str| text.parse::<Path>().expect(text);
        assert_eq!(path(".a[*].b").find(&value), Some(&Value::Int(1)));
        assert_eq!(path(".m[*].d").find(&value), Some(&Value::Int(4)));
        assert_eq!(path(".a.b").find(&value), None);
        path(".a[*].b").clear(&mut value);
        path(".m[*].d").clear(&mut value);
        assert_eq!(value.to_json(), r#"{"a":[{"c":2},{}],"m":{"x":{},"y":{}}}"#);
    }
}
