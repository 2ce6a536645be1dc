//! [`Fields`]: the fields of a type in the order in which they are written, and how they are found by their names.
//!
//! To write or compare an object is to ask it for every field that its type may have, of which it has few. Both the
//! members of an object and an index of the fields are in the order of names, so one walk along both finds all of them:
//! a [`Cursor`] goes along the index.

use std::cmp::Ordering;
use std::ops::{Deref, DerefMut};

use revisor_object::{Object, Value, name_prefix};

use crate::Field;

/// Up to so many fields their values are gathered without an allocation. Few types have more.
const USUAL: usize = 48;

/// The fields of a type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fields {
    fields: Box<[Field]>,
    /// All fields, in the order of their names.
    by_name: Box<[Named]>,
    /// Those of them that are written although they were not given.
    always_written: Box<[Named]>,
}

/// A field in the order of names.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Named {
    prefix: u64,
    at: u32,
}

impl Named {
    fn name(self, fields: &[Field]) -> Name<'_> {
        Name { prefix: self.prefix, text: &fields[self.at as usize].name }
    }

    /// How the field stands to a name. Few fields are looked at for it, because their beginnings differ.
    fn order(self, fields: &[Field], name: Name<'_>) -> Ordering {
        self.prefix.cmp(&name.prefix).then_with(|| (*fields[self.at as usize].name).cmp(name.text))
    }
}

impl Fields {
    /// Tells `see` every field, with the value that an object has for it.
    pub fn for_each<'o>(&self, object: &'o Object, mut see: impl FnMut(&Field, Option<&'o Value>)) {
        self.with_room(|values| {
            self.gather(object, values);
            self.fields.iter().zip(values).for_each(|(field, value)| see(field, *value));
        });
    }

    /// Gives room for a value of each field, at the place of the field.
    pub(crate) fn with_room<T: Copy, R>(&self, work: impl FnOnce(&mut [Option<T>]) -> R) -> R {
        let count = self.fields.len();
        // They stay where they are gathered: to hand them out would be to move them, which costs more than to gather them.
        let mut usual = [None; USUAL];
        match usual.get_mut(..count) {
            Some(usual) => work(usual),
            None => work(&mut vec![None; count]),
        }
    }

    /// Puts the values that an object has to the places of their fields.
    pub(crate) fn gather<'o>(&self, object: &'o Object, values: &mut [Option<&'o Value>]) {
        let mut cursor = self.cursor();
        for (name, value) in object.iter() {
            if let Some(at) = cursor.position(Name::of(name)) {
                values[at] = Some(value);
            }
        }
    }

    /// Goes through the members of two objects in the order of their names, and through the fields that are always
    /// written.
    pub fn pairs<'f>(&'f self, old: Option<&'f Object>, new: Option<&'f Object>) -> impl Iterator<Item = Pair<'f>> {
        let members = |object: Option<&'f Object>| {
            let members = object.into_iter().flat_map(Object::iter);
            members.map(|(name, value)| (Name::of(name), value)).peekable()
        };
        let (mut olds, mut news) = (members(old), members(new));
        let mut always_written = self.always_written.iter().map(|named| named.name(&self.fields)).peekable();
        let mut cursor = self.cursor();
        std::iter::from_fn(move || {
            let names = [olds.peek().map(|(name, _)| *name), news.peek().map(|(name, _)| *name)];
            let name = names.into_iter().flatten().chain(always_written.peek().copied()).min()?;
            always_written.next_if(|next| *next == name);
            let old = olds.next_if(|(next, _)| *next == name).map(|(_, value)| value);
            let new = news.next_if(|(next, _)| *next == name).map(|(_, value)| value);
            Some(Pair { name: name.text, field: cursor.find_name(name), old, new })
        })
    }

    /// The same where there is no other object.
    pub fn members<'f>(&'f self, object: Option<&'f Object>) -> impl Iterator<Item = Member<'f>> {
        let mut members = object.into_iter().flat_map(Object::iter).map(|(name, value)| (Name::of(name), value));
        let mut always_written = self.always_written.iter().map(|named| named.name(&self.fields));
        let (mut next_member, mut next_written) = (members.next(), always_written.next());
        let mut cursor = self.cursor();
        std::iter::from_fn(move || {
            let name = match (&next_member, &next_written) {
                (Some((member, _)), Some(written)) if written < member => *written,
                (Some((member, _)), _) => *member,
                (None, written) => (*written)?,
            };
            if next_written == Some(name) {
                next_written = always_written.next();
            }
            let value = match next_member {
                Some((member, value)) if member == name => {
                    next_member = members.next();
                    Some(value)
                }
                _ => None,
            };
            Some(Member { name: name.text, field: cursor.find_name(name), value })
        })
    }

    /// The fields that are written although they were not given.
    pub(crate) fn always_written(&self) -> impl Iterator<Item = &Field> {
        self.always_written.iter().map(|named| &self.fields[named.at as usize])
    }

    /// The places of all fields, in the order of their names.
    pub(crate) fn places_by_name(&self) -> impl Iterator<Item = usize> {
        self.by_name.iter().map(|named| named.at as usize)
    }

    /// Finds the fields of names that are asked for in their order.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor { fields: &self.fields, rest: &self.by_name }
    }

    /// The field `name`.
    pub fn find(&self, name: &str) -> Option<&Field> {
        self.position(name).map(|at| &self.fields[at])
    }

    /// The same, to be changed in everything but its name and presence.
    pub(crate) fn find_mut(&mut self, name: &str) -> Option<&mut Field> {
        self.position(name).map(|at| &mut self.fields[at])
    }

    fn position(&self, name: &str) -> Option<usize> {
        let name = Name::of(name);
        let found = self.by_name.binary_search_by(|named| named.order(&self.fields, name)).ok()?;
        Some(self.by_name[found].at as usize)
    }
}

/// What stands under one name in two objects.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'f> {
    /// The name.
    pub name: &'f str,
    /// The field with this name.
    pub field: Option<&'f Field>,
    /// The value in the first object.
    pub old: Option<&'f Value>,
    /// The value in the second one.
    pub new: Option<&'f Value>,
}

/// What stands under one name in an object.
#[derive(Debug, Clone, Copy)]
pub struct Member<'f> {
    /// The name.
    pub name: &'f str,
    /// The field with this name.
    pub field: Option<&'f Field>,
    /// The value.
    pub value: Option<&'f Value>,
}

/// A name, and its beginning as a number in the same order: names are compared only where their beginnings are the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name<'n> {
    prefix: u64,
    text: &'n str,
}

impl<'n> Name<'n> {
    fn of(text: &'n str) -> Name<'n> {
        Name { prefix: name_prefix(text), text }
    }
}

/// How far the names of an object have been looked up.
pub(crate) struct Cursor<'f> {
    fields: &'f [Field],
    rest: &'f [Named],
}

impl<'f> Cursor<'f> {
    /// The field `name`, which comes behind all names that were asked for before.
    pub(crate) fn find(&mut self, name: &str) -> Option<&'f Field> {
        self.find_name(Name::of(name))
    }

    fn find_name(&mut self, name: Name<'_>) -> Option<&'f Field> {
        self.position(name).map(|at| &self.fields[at])
    }

    fn position(&mut self, name: Name<'_>) -> Option<usize> {
        while let Some((first, others)) = self.rest.split_first() {
            let order = first.order(self.fields, name);
            if order.is_gt() {
                break;
            }
            self.rest = others;
            if order.is_eq() {
                return Some(first.at as usize);
            }
        }
        None
    }
}

impl From<Vec<Field>> for Fields {
    fn from(fields: Vec<Field>) -> Fields {
        let named = |(at, field): (usize, &Field)| Named { prefix: Name::of(&field.name).prefix, at: at as u32 };
        let mut by_name: Box<[Named]> = fields.iter().enumerate().map(named).collect();
        by_name.sort_by(|one, other| fields[one.at as usize].name.cmp(&fields[other.at as usize].name));
        let is_always_written = |named: &&Named| fields[named.at as usize].is_always_written();
        let always_written = by_name.iter().filter(is_always_written).copied().collect();
        Fields { fields: fields.into(), by_name, always_written }
    }
}

impl Deref for Fields {
    type Target = [Field];

    fn deref(&self) -> &[Field] {
        &self.fields
    }
}

impl DerefMut for Fields {
    fn deref_mut(&mut self) -> &mut [Field] {
        &mut self.fields
    }
}

impl<'f> IntoIterator for &'f Fields {
    type Item = &'f Field;
    type IntoIter = std::slice::Iter<'f, Field>;

    fn into_iter(self) -> Self::IntoIter {
        self.fields.iter()
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;
    use crate::Types;

    /// Names that begin alike, that are parts of others, and that are in no order.
    const TABLE: &str = "type,field,shape,presence,number,merge
T,terminationMessagePath,string,nonzero,,
T,b,string,nonzero,,
T,terminationMessagePolicy,string,nonzero,,
T,terminat,string,nonzero,,
T,a,string,nonzero,,
T,terminationGrace,string,nonzero,,
T,é,string,nonzero,,
";

    fn types() -> Types {
        Types::parse(TABLE).expect("a good table")
    }

    #[test]
    fn every_field_finds_its_value_and_no_other() {
        let types = types();
        let fields = &types.get(types.id("T").expect("is there")).fields;
        let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
        // Each choice of fields, with members beside them that the type does not know.
        for chosen in 0..1_u32 << names.len() {
            let is_chosen = |at: usize| chosen & (1 << at) != 0;
            let known = names.iter().enumerate().filter(|(at, _)| is_chosen(*at)).map(|(_, name)| *name);
            let strange = ["", "a\0", "aa", "terminate", "terminationMessage", "terminationMessagePath2", "zz"];
            let object: Object = known.chain(strange).map(|name| (name, Value::from(name))).collect();
            let mut found: Vec<Option<&str>> = Vec::new();
            fields.for_each(&object, |_, value| found.push(value.and_then(Value::as_str)));
            let want: Vec<Option<&str>> =
                names.iter().enumerate().map(|(at, name)| is_chosen(at).then_some(*name)).collect();
            assert_eq!(found, want, "{chosen:b}");
        }
    }

    #[test]
    fn two_objects_are_gone_through_together() {
        let table = "type,field,shape,presence,number,merge\nT,b,string,always,,\nT,a,string,nonzero,,\n";
        let types = Types::parse(table).expect("a good table");
        let fields = &types.get(types.id("T").expect("is there")).fields;
        let object = |names: &[&str]| -> Object { names.iter().map(|name| (*name, Value::from(*name))).collect() };
        let (old, new) = (object(&["a", "terminationMessagePath", "x"]), object(&["a", "terminationMessagePolicy"]));
        let show = |pair: Pair<'_>| {
            let marks = [pair.field.is_some(), pair.old.is_some(), pair.new.is_some()].map(u8::from);
            format!("{} {marks:?}", pair.name)
        };
        let pairs = |old, new| fields.pairs(old, new).map(show).collect::<Vec<_>>();
        assert_eq!(
            pairs(Some(&old), Some(&new)),
            [
                "a [1, 1, 1]",
                "b [1, 0, 0]",
                "terminationMessagePath [0, 1, 0]",
                "terminationMessagePolicy [0, 0, 1]",
                "x [0, 1, 0]"
            ]
        );
        assert_eq!(pairs(None, None), ["b [1, 0, 0]"]);
        for object in [Some(&old), Some(&new), None] {
            let alone: Vec<_> =
                fields.members(object).map(|found| (found.name, found.field.is_some(), found.value)).collect();
            let paired: Vec<_> =
                fields.pairs(None, object).map(|pair| (pair.name, pair.field.is_some(), pair.new)).collect();
            assert_eq!(alone, paired);
        }
    }

    #[test]
    fn fields_are_found_by_their_names_alone() {
        let types = types();
        let fields = &types.get(types.id("T").expect("is there")).fields;
        for field in fields {
            assert_eq!(fields.find(&field.name).map(|found| &found.name), Some(&field.name));
        }
        for strange in ["", "A", "a\0", "terminate", "terminationMessage", "\u{10ffff}"] {
            assert!(fields.find(strange).is_none(), "{strange:?}");
        }
        let Value::Object(empty) = parse_json(b"{}").expect("is JSON").value else { panic!("an object") };
        fields.for_each(&empty, |field, value| assert!(value.is_none(), "{}", field.name));
    }
}
