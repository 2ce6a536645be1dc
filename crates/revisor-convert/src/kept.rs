//! [`Kept`]: what one version says of an object and its neighbour cannot.
//!
//! It is the difference between an object and what a conversion makes of its neighbour's: a tree in the shape of the
//! version that it is kept for. [`Keep`] says at which places there may be such a difference; at all others the object
//! is what the conversion makes of it, whatever somebody wrote into a stored tree.
//!
//! Parts go with what they are in, if both versions know that: an item that is gone takes its kept parts along. What
//! only the one version has, stays.

mod encoding;
mod items;

pub use encoding::KeptError;
pub use items::Items;

use compact_str::CompactString;
use revisor_object::{Object, Value};

/// What may be kept at a place of a version, and below it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Keep {
    /// Nothing: the neighbour says all of it.
    Nothing,
    /// The value as a whole: only this version has it, or it is filled in.
    Whole,
    /// Parts of an object.
    Object(Box<KeepObject>),
    /// Parts of the items of a list, which are told apart by these members.
    Items(Box<Keep>, Vec<Box<str>>),
    /// All items of a list but the first, and parts of that; and that there is none where a default of the neighbour
    /// came back as one of these alone.
    Tail(Box<Keep>, Vec<Value>),
    /// That there is none where a default of the neighbour came back as one of these, beside what else may be kept.
    Unset(Box<Keep>, Vec<Value>),
}

/// What may be kept of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeepObject {
    /// Sorted by name.
    pub(crate) members: Vec<(Box<str>, Keep)>,
    pub(crate) others: Keep,
    /// Whether only this version has the object, so that it does not go with anything else.
    pub(crate) is_own: bool,
}

impl KeepObject {
    fn member(&self, name: &str) -> &Keep {
        let at = self.members.binary_search_by(|(known, _)| (**known).cmp(name));
        at.map_or(&self.others, |at| &self.members[at].1)
    }
}

/// What is kept at a place and below it.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    /// This value.
    Value(Value),
    /// That there is none, although there would be.
    Absent,
    /// Parts of an object, sorted by name.
    Object(Vec<(CompactString, Kept)>),
    /// Parts of the items of a list.
    Items(Items),
    /// The items of a list from the second on, and parts of the first.
    Tail(Option<Box<Kept>>, Vec<Value>),
}

impl Keep {
    /// What is missing in `made` to be `real`; nothing if no place differs at which something is kept.
    pub(crate) fn difference(&self, real: Option<&Value>, made: Option<&Value>) -> Option<Kept> {
        match self {
            Keep::Nothing => None,
            Keep::Whole if real == made => None,
            Keep::Whole => Some(real.map_or(Kept::Absent, |value| Kept::Value(value.clone()))),
            Keep::Object(keep) => keep.difference(real, made),
            Keep::Items(keep, keys) => {
                let (real, made) = (real?.as_array()?, made?.as_array()?);
                Items::difference(keep, keys, real, made).map(Kept::Items)
            }
            // A list is made of the default of the one value, also where there was none.
            Keep::Tail(_, defaults) if real.is_none() && is_only(made, defaults) => Some(Kept::Absent),
            Keep::Tail(keep, _) => {
                let real = real?.as_array()?;
                let made = made.and_then(Value::as_array);
                let first = real.first().zip(made.and_then(<[_]>::first));
                let first = first.and_then(|(real, made)| keep.difference(Some(real), Some(made)));
                let rest = real.get(1..).unwrap_or_default();
                // An empty list is something else than none.
                let is_same = rest.is_empty() && real.is_empty() == made.is_none_or(<[_]>::is_empty) && made.is_some();
                (!is_same || first.is_some()).then(|| Kept::Tail(first.map(Box::new), rest.to_vec()))
            }
            Keep::Unset(_, defaults) if real.is_none() && is_one(made, defaults) => Some(Kept::Absent),
            Keep::Unset(keep, _) => keep.difference(real, made),
        }
    }

    /// Brings back what is kept into what a conversion made.
    pub(crate) fn restore(&self, kept: &Kept, place: &mut Option<Value>) {
        match (self, kept) {
            (Keep::Whole, Kept::Value(value)) => *place = Some(value.clone()),
            (Keep::Whole, Kept::Absent) => *place = None,
            (Keep::Object(keep), kept) => keep.restore(kept, place),
            (Keep::Unset(_, defaults), Kept::Absent) if is_one(place.as_ref(), defaults) => *place = None,
            (Keep::Unset(keep, _), kept) => keep.restore(kept, place),
            (Keep::Items(keep, keys), Kept::Items(items)) => {
                if let Some(Value::Array(made)) = place {
                    items.restore(keep, keys, made);
                }
            }
            (Keep::Tail(_, defaults), Kept::Absent) if is_only(place.as_ref(), defaults) => *place = None,
            (Keep::Tail(keep, defaults), Kept::Tail(first, rest)) => match place {
                // Of a list that has something at least one of these is kept, so there was nothing in it.
                Some(Value::Array(made)) if first.is_none() && rest.is_empty() && is_one(made.first(), defaults) => {
                    made.clear();
                }
                Some(Value::Array(made)) => {
                    made.truncate(1);
                    if let (Some(kept), Some(only)) = (first, made.first_mut()) {
                        let mut item = Some(std::mem::take(only));
                        keep.restore(kept, &mut item);
                        *only = item.unwrap_or_default();
                    }
                    made.extend(rest.iter().cloned());
                }
                // The one value is gone, and the others with it.
                None if rest.is_empty() => *place = Some(Value::Array(Vec::new())),
                _ => {}
            },
            _ => {}
        }
    }

    /// Takes away what was only filled in; answers whether nothing is left.
    fn strip(&self, value: &mut Value) -> bool {
        match (self, value) {
            (Keep::Whole, _) => true,
            (Keep::Unset(_, defaults), value) => defaults.contains(value),
            (Keep::Tail(_, defaults), value) => is_only(Some(value), defaults),
            (Keep::Object(keep), Value::Object(object)) => {
                object.retain(|name, value| !keep.member(name).strip(value));
                object.is_empty()
            }
            _ => false,
        }
    }
}

fn is_one(value: Option<&Value>, defaults: &[Value]) -> bool {
    value.is_some_and(|value| defaults.contains(value))
}

/// Whether a value is a list of one of these alone.
fn is_only(value: Option<&Value>, defaults: &[Value]) -> bool {
    matches!(value.and_then(Value::as_array), Some([only]) if defaults.contains(only))
}

impl KeepObject {
    fn difference(&self, real: Option<&Value>, made: Option<&Value>) -> Option<Kept> {
        let nothing = Object::new();
        let (real, made, was_made) = match (real, made) {
            (None, None) => return None,
            (None, Some(_)) => return Some(Kept::Absent),
            (Some(Value::Object(real)), Some(Value::Object(made))) => (real, made, true),
            (Some(Value::Object(real)), _) => (real, &nothing, false),
            (Some(real), made) if Some(real) == made => return None,
            (Some(real), _) => return self.is_own.then(|| Kept::Value(real.clone())),
        };
        let mut parts = Vec::new();
        let mut part = |name: &str, real: Option<&Value>, made: Option<&Value>| {
            if let Some(kept) = self.member(name).difference(real, made) {
                parts.push((CompactString::from(name), kept));
            }
        };
        for (name, value) in real.iter() {
            part(name, Some(value), made.get(name));
        }
        for (name, value) in made.iter().filter(|(name, _)| !real.contains(name)) {
            part(name, None, Some(value));
        }
        parts.sort_by(|(one, _), (other, _)| one.cmp(other));
        // One that both know may be empty in this version and not be there in the other: it was there only for the sake
        // of what a rule has elsewhere, and that was taken out of it.
        let is_missing = !was_made && (self.is_own || real.is_empty());
        (!parts.is_empty() || is_missing).then_some(Kept::Object(parts))
    }

    fn restore(&self, kept: &Kept, place: &mut Option<Value>) {
        match kept {
            Kept::Absent => {
                let is_empty = place.as_mut().is_some_and(|value| match value {
                    Value::Object(object) => {
                        object.retain(|name, value| !self.member(name).strip(value));
                        object.is_empty()
                    }
                    _ => false,
                });
                if is_empty {
                    *place = None;
                }
            }
            Kept::Value(value) if self.is_own => *place = Some(value.clone()),
            Kept::Object(parts) => {
                if place.is_none() && (self.is_own || parts.is_empty()) {
                    *place = Some(Value::Object(Object::new()));
                }
                let Some(Value::Object(object)) = place else { return };
                for (name, kept) in parts {
                    let mut member = object.remove(name);
                    self.member(name).restore(kept, &mut member);
                    object.set(name, member);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
