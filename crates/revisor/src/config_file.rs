//! Configuration files with a kind and a version, read as strictly as the original reads them: what does not belong there
//! is an error that names the place.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::bail;
use revisor_object::{Object, Parsed, Value, parse_json, parse_yaml};

/// Far above any real configuration; a wrong path must not fill the memory.
const MAX_BYTES: u64 = 1 << 20;

/// A kind of configuration.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) versions: &'static [&'static str],
    /// Its members, beside kind and version.
    pub(crate) members: &'static [Member],
}

/// A member of an object: its name, what it must be, and the members of the objects in it.
pub(crate) struct Member(pub(crate) &'static str, pub(crate) Type, pub(crate) &'static [Member]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    Bool,
    Number,
    Object,
    /// A list of objects.
    List,
    /// A list of texts.
    Texts,
    /// Whatever it is, it is not looked at here.
    Any,
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    read_at_most(path, MAX_BYTES)
}

/// The text of a file that may be so long.
pub(crate) fn read_at_most(path: &Path, max: u64) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(max + 1).read_to_end(&mut text)?;
    anyhow::ensure!(text.len() as u64 <= max, "it is longer than {max} bytes");
    Ok(text)
}

/// What a text holds, in JSON or YAML.
pub(crate) fn parse(text: &[u8]) -> anyhow::Result<Parsed> {
    anyhow::ensure!(!text.is_empty(), "empty config data");
    Ok(match parse_json(text) {
        Ok(parsed) => parsed,
        Err(error) if text.trim_ascii_start().starts_with(b"{") => return Err(error.into()),
        Err(_) => parse_yaml(text)?,
    })
}

impl Kind {
    /// The object that a text holds, with no member that does not belong there.
    pub(crate) fn decode(&self, text: &[u8]) -> anyhow::Result<Object> {
        strictly(self.decode_leniently(text)?)
    }

    /// The same of a value that was parsed already.
    pub(crate) fn decode_value(&self, value: Value) -> anyhow::Result<Object> {
        strictly(self.check(value, Vec::new())?)
    }

    /// The object that a text holds, and what does not belong there: for kinds that the original reads so.
    pub(crate) fn decode_leniently(&self, text: &[u8]) -> anyhow::Result<(Object, Vec<String>)> {
        let Parsed { value, duplicates } = parse(text)?;
        let duplicates: Vec<String> = duplicates.iter().map(|name| format!("duplicate field {name:?}")).collect();
        self.check(value, duplicates)
    }

    /// The same of a value that was parsed already, without a word on what does not belong there.
    pub(crate) fn decode_value_leniently(&self, value: Value) -> anyhow::Result<Object> {
        Ok(self.check(value, Vec::new())?.0)
    }

    /// Whether an object says that it is one of this kind.
    pub(crate) fn is_kind_of(&self, object: &Object) -> bool {
        let (kind, version) = (object.str("kind").unwrap_or_default(), object.str("apiVersion").unwrap_or_default());
        kind == self.name && self.versions.contains(&version)
    }

    fn check(&self, value: Value, mut problems: Vec<String>) -> anyhow::Result<(Object, Vec<String>)> {
        let Value::Object(object) = value else {
            bail!("couldn't get version/kind: it is a {} and no object", value.type_name());
        };
        let (kind, version) = (object.str("kind").unwrap_or_default(), object.str("apiVersion").unwrap_or_default());
        anyhow::ensure!(!kind.is_empty(), "Object 'Kind' is missing");
        if !self.is_kind_of(&object) {
            bail!("no kind {kind:?} is registered for version {version:?}");
        }
        check_members(&object, self.members, self.name, "", &mut problems)?;
        Ok((object, problems))
    }
}

/// An object in which there is nothing that does not belong there.
fn strictly((object, problems): (Object, Vec<String>)) -> anyhow::Result<Object> {
    anyhow::ensure!(problems.is_empty(), "{}", strict_error(&problems));
    Ok(object)
}

/// What is said of members that do not belong where they are.
pub(crate) fn strict_error(problems: &[String]) -> String {
    format!("strict decoding error: {}", problems.join(", "))
}

/// Notes members that do not belong there; one that is of another type is an error at once.
fn check_members(
    object: &Object,
    members: &[Member],
    kind: &str,
    path: &str,
    problems: &mut Vec<String>,
) -> anyhow::Result<()> {
    let mismatch = |value: &Value, place: &str| {
        format!("json: cannot unmarshal {} into Go struct field {kind}.{place}", value.type_name())
    };
    for (name, value) in object.iter() {
        let place = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        if path.is_empty() && matches!(name, "kind" | "apiVersion") {
            continue;
        }
        let Some(Member(_, wanted, inner)) = members.iter().find(|Member(known, ..)| *known == name) else {
            problems.push(format!("unknown field {place:?}"));
            continue;
        };
        match (wanted, value) {
            (_, Value::Null) | (Type::Any, _) | (Type::Text, Value::String(_)) | (Type::Bool, Value::Bool(_)) => {}
            (Type::Number, number) if number.as_i64().is_some() => {}
            (Type::Object, Value::Object(object)) => check_members(object, inner, kind, &place, problems)?,
            (Type::List, Value::Array(items)) => {
                for (number, item) in items.iter().enumerate() {
                    let place = format!("{place}[{number}]");
                    let Value::Object(item) = item else { bail!(mismatch(item, &place)) };
                    check_members(item, inner, kind, &place, problems)?;
                }
            }
            (Type::Texts, Value::Array(items)) => {
                if let Some(odd) = items.iter().find(|item| item.as_str().is_none()) {
                    bail!(mismatch(odd, &place));
                }
            }
            (_, other) => bail!(mismatch(other, &place)),
        }
    }
    Ok(())
}
