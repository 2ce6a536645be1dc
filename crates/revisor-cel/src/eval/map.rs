//! [`Map`]: objects, and maps that expressions make.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use revisor_object::{Object, Value};

use super::error::EvalError;
use super::escaping;
use super::json::Seen;
use super::value::{CelValue, Text};

/// Up to so many entries are looked through from the first.
const FEW: usize = 8;

/// A map, or an object with fields.
#[derive(Debug, Clone)]
pub struct Map<'a>(Entries<'a>);

#[derive(Debug, Clone)]
enum Entries<'a> {
    Json(&'a Object, Seen<'a>),
    /// An object of the API that is kept without its type, which stands beside it.
    Typed(&'a Object, [(&'static str, &'a str); 2]),
    Made(Arc<Made<'a>>),
}

/// Entries in the order in which they came, and where each key is.
#[derive(Debug, Clone, Default)]
struct Made<'a> {
    entries: Vec<(CelValue<'a>, CelValue<'a>)>,
    places: HashMap<Key<'a>, usize>,
}

/// A key as it is looked up. Numbers of different types are the same key if they are the same number.
#[derive(Debug, Clone)]
enum Key<'a> {
    Bool(bool),
    Number(i128),
    /// A number with a fraction, or too large for all integers.
    Double(u64),
    Text(Text<'a>),
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Key::Bool(one), Key::Bool(other)) => one == other,
            (Key::Number(one), Key::Number(other)) => one == other,
            (Key::Double(one), Key::Double(other)) => one == other,
            (Key::Text(one), Key::Text(other)) => **one == **other,
            _ => false,
        }
    }
}

impl Eq for Key<'_> {}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Key::Bool(truth) => truth.hash(state),
            Key::Number(number) => number.hash(state),
            Key::Double(bits) => bits.hash(state),
            Key::Text(text) => text.hash(state),
        }
    }
}

impl<'a> Key<'a> {
    fn of(value: &CelValue<'a>) -> Option<Key<'a>> {
        Some(match value {
            CelValue::Bool(truth) => Key::Bool(*truth),
            CelValue::Int(number) => Key::Number(i128::from(*number)),
            CelValue::Uint(number) => Key::Number(i128::from(*number)),
            CelValue::Double(number) if number.fract() == 0.0 && number.abs() < 1e30 => Key::Number(*number as i128),
            CelValue::Double(number) => Key::Double(number.to_bits()),
            CelValue::String(text) => Key::Text(text.clone()),
            _ => return None,
        })
    }
}

impl<'a> Map<'a> {
    pub(crate) fn json(object: &'a Object, seen: Seen<'a>) -> Map<'a> {
        Map(Entries::Json(object, seen))
    }

    /// An object of the API that does not say of itself what it is. Nothing is known of its fields.
    pub fn typed(object: &'a Object, api_version: &'a str, kind: &'a str) -> Map<'a> {
        Map(Entries::Typed(object, [("apiVersion", api_version), ("kind", kind)]))
    }

    /// A map without entries.
    pub fn empty() -> Map<'a> {
        Map(Entries::Made(Arc::default()))
    }

    /// A map of these; of two with one key the last is kept.
    pub fn made(entries: impl IntoIterator<Item = (CelValue<'a>, CelValue<'a>)>) -> Result<Map<'a>, EvalError> {
        let mut made = Made::default();
        for (key, value) in entries {
            made.set(key, value)?;
        }
        Ok(Map(Entries::Made(Arc::new(made))))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Entries::Json(object, _) => object.len(),
            Entries::Typed(object, beside) => {
                object.len() + beside.iter().filter(|(name, _)| !object.contains(name)).count()
            }
            Entries::Made(made) => made.entries.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key, if there is one. Fails if it is not what the schema promises, or the key is of a type that
    /// no key has.
    pub fn get(&self, key: &CelValue<'a>) -> Result<Option<CelValue<'a>>, EvalError> {
        match (&self.0, key) {
            (Entries::Json(..) | Entries::Typed(..), CelValue::String(name)) => self.field(name),
            (Entries::Json(_, Seen::Dynamic) | Entries::Typed(..), _) => Ok(None),
            (Entries::Json(..), _) => Err(EvalError::no_such_overload()),
            (Entries::Made(made), key) => {
                Ok(Key::of(key).and_then(|key| made.places.get(&key)).map(|at| made.entries[*at].1.clone()))
            }
        }
    }

    /// The value of a field or a key that is text.
    pub fn field(&self, name: &str) -> Result<Option<CelValue<'a>>, EvalError> {
        let (object, seen) = match &self.0 {
            Entries::Json(object, seen) => (*object, *seen),
            Entries::Typed(object, beside) => {
                return Ok(match beside.iter().find(|(beside, _)| *beside == name) {
                    Some((_, text)) => Some(CelValue::String(Text::Borrowed(text))),
                    None => object.get(name).map(CelValue::dynamic),
                });
            }
            Entries::Made(made) if made.entries.len() <= FEW => {
                let entry = made.entries.iter().find(|(key, _)| key.as_str() == Some(name));
                return Ok(entry.map(|(_, value)| value.clone()));
            }
            // The lookup borrows no longer than this call, which the type of the key cannot say.
            Entries::Made(made) => {
                let key = Key::Text(Text::Owned(name.into()));
                return Ok(made.places.get(&key).map(|at| made.entries[*at].1.clone()));
            }
        };
        if !seen.has_fields() {
            let Some(value) = object.get(name) else { return Ok(None) };
            return seen.member(name).map(|seen| seen.read(value)).transpose();
        }
        let Some(name) = escaping::unescape(name) else { return Ok(None) };
        // An absent field and one that is null are the same.
        let Some(value) = object.get(&name).filter(|value| !value.is_null()) else { return Ok(None) };
        seen.member(&name).map(|seen| seen.read(value)).transpose()
    }

    /// All keys, fields as expressions write them.
    pub fn keys(&self) -> Vec<CelValue<'a>> {
        match &self.0 {
            Entries::Json(object, seen) => object
                .iter()
                .filter(|(name, _)| seen.member(name).is_some())
                .map(|(name, _)| match seen.has_fields().then(|| escaping::escape(name)).flatten() {
                    Some(std::borrow::Cow::Owned(escaped)) => CelValue::text(escaped),
                    _ => CelValue::String(Text::Borrowed(name)),
                })
                .collect(),
            Entries::Typed(object, beside) => {
                let beside = beside.iter().map(|(name, _)| *name).filter(|name| !object.contains(name));
                beside.chain(object.iter().map(|(name, _)| name)).map(|name| CelValue::String(name.into())).collect()
            }
            Entries::Made(made) => made.entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }

    /// The members and what is known of them, if it is an object.
    pub(crate) fn as_json(&self) -> Option<(&'a Object, Seen<'a>)> {
        match &self.0 {
            Entries::Json(object, seen) => Some((object, *seen)),
            Entries::Typed(..) | Entries::Made(_) => None,
        }
    }

    /// This map with one more entry; `None` if the key is there already. A map that nobody else holds grows in place.
    pub(crate) fn inserted(self, key: CelValue<'a>, value: CelValue<'a>) -> Result<Option<Map<'a>>, EvalError> {
        if self.get(&key)?.is_some() {
            return Ok(None);
        }
        let mut made = match self.0 {
            Entries::Made(made) => made,
            Entries::Json(..) | Entries::Typed(..) => {
                let mut made = Made::default();
                for key in self.keys() {
                    if let Some(value) = self.get(&key)? {
                        made.set(key, value)?;
                    }
                }
                Arc::new(made)
            }
        };
        Arc::make_mut(&mut made).set(key, value)?;
        Ok(Some(Map(Entries::Made(made))))
    }
}

impl<'a> Made<'a> {
    fn set(&mut self, key: CelValue<'a>, value: CelValue<'a>) -> Result<(), EvalError> {
        let Some(place) = Key::of(&key) else {
            return Err(EvalError::failed(format!("unsupported key type: {}", key.type_name())));
        };
        match self.places.get(&place) {
            Some(at) => self.entries[*at].1 = value,
            None => {
                self.places.insert(place, self.entries.len());
                self.entries.push((key, value));
            }
        }
        Ok(())
    }
}

/// Whether two values of objects are the same, whatever a schema says of them.
pub(crate) fn same_json(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_json(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other.iter())
                    .all(|((name, one), (other_name, other))| name == other_name && same_json(one, other))
        }
        _ => one == other,
    }
}
