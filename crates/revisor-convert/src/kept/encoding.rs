//! Kept parts as JSON, for the annotation in which they are stored: `{"v2":{".spec":{".mode":["fast"]}}}`.
//!
//! A list of one is a value, an empty one says that there is none, members have a dot before their names, `*` and `#`
//! hold items by position and by key, `+` the items behind the first.

use revisor_object::{Object, Value};

use super::Kept;
use super::items::Items;

/// Why a text holds no kept parts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeptError {
    /// It is not JSON.
    #[error("what is kept of the object is damaged: {0}")]
    NotJson(String),
    /// It is something else.
    #[error("what is kept of the object is damaged: {0} is none of its forms")]
    Malformed(String),
}

impl Kept {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Kept::Value(value) => Value::Array(vec![value.clone()]),
            Kept::Absent => Value::Array(Vec::new()),
            Kept::Object(parts) => {
                let members = parts.iter().map(|(name, kept)| (format!(".{name}").into(), kept.to_json()));
                Value::Object(Object::from_members(members.collect()))
            }
            Kept::Items(items) => {
                let entry = |(identity, kept): &(i64, Option<Kept>)| match kept {
                    Some(kept) => Value::Array(vec![Value::Int(*identity), kept.to_json()]),
                    None => Value::Int(*identity),
                };
                let entries = Value::Array(items.entries.iter().map(entry).collect());
                Value::Object([(if items.by_keys { "#" } else { "*" }, entries)].into_iter().collect())
            }
            Kept::Tail(first, rest) => {
                let mut object: Object = [("+", Value::Array(rest.clone()))].into_iter().collect();
                object.set("0", first.as_ref().map(|kept| kept.to_json()));
                Value::Object(object)
            }
        }
    }

    /// Reads what [`to_json`](Kept::to_json) wrote.
    pub fn read(json: &Value) -> Result<Kept, KeptError> {
        let malformed = || KeptError::Malformed(json.to_json().chars().take(100).collect());
        match json {
            Value::Array(values) => match values.as_slice() {
                [] => Ok(Kept::Absent),
                [value] => Ok(Kept::Value(value.clone())),
                _ => Err(malformed()),
            },
            Value::Object(object) => {
                if let Some(rest) = object.get("+") {
                    let rest = rest.as_array().ok_or_else(malformed)?.to_vec();
                    let first = object.get("0").map(Kept::read).transpose()?.map(Box::new);
                    return Ok(Kept::Tail(first, rest));
                }
                for (name, by_keys) in [("*", false), ("#", true)] {
                    if let Some(entries) = object.get(name) {
                        let entries = entries.as_array().ok_or_else(malformed)?.iter();
                        let entries = entries.map(|entry| read_entry(entry).ok_or_else(malformed)?);
                        return Ok(Kept::Items(Items { by_keys, entries: entries.collect::<Result<_, _>>()? }));
                    }
                }
                let part = |(name, kept): (&str, &Value)| {
                    Ok((name.strip_prefix('.').ok_or_else(malformed)?.into(), Kept::read(kept)?))
                };
                Ok(Kept::Object(object.iter().map(part).collect::<Result<_, _>>()?))
            }
            _ => Err(malformed()),
        }
    }
}

type Entry = (i64, Option<Kept>);

fn read_entry(entry: &Value) -> Option<Result<Entry, KeptError>> {
    match entry {
        Value::Int(identity) => Some(Ok((*identity, None))),
        Value::Array(pair) => match pair.as_slice() {
            [Value::Int(identity), kept] => Some(Kept::read(kept).map(|kept| (*identity, Some(kept)))),
            _ => None,
        },
        _ => None,
    }
}
