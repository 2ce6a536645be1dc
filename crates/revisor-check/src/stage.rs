//! [`Stage`]: one version before and after, on which objects show what a difference does. A client sends an object as it
//! is; what a schema does not know is pruned, defaults are filled in, and what is left is valid or not.

use std::collections::BTreeSet;

use revisor_convert::{Conversion, Generator, Path, Segment, VersionSchema, shrink};
use revisor_object::{FieldError, FieldErrors, Value};
use revisor_schema::Structural;

use crate::budget::Budget;
use crate::crd::{Crd, Version};
use crate::reduction::reduced;

/// How many values are tried at one place.
const MAX_VALUES: usize = 48;

/// How many values of a member are tried beside something that is missing.
const MAX_EACH: usize = 6;

/// How many bytes are looked at to make a witness smaller, and how often that is tried at least.
const SHRINKING: usize = 400_000;
const LEAST_TRIES: usize = 60;

/// A version before and after.
pub(crate) struct Stage<'a> {
    pub(crate) crd: &'a Crd,
    pub(crate) old: &'a Version,
    pub(crate) new: &'a Version,
    pub(crate) conversion: Option<&'a Conversion>,
    pub(crate) budget: &'a Budget,
}

/// What became of an object that was sent.
pub(crate) enum Sent {
    /// It is shown so.
    Shown(Value),
    /// It is refused for these reasons.
    Refused(FieldErrors),
}

/// What a search for a witness came to.
pub(crate) enum Search {
    /// This object shows it.
    Found(Value),
    /// Nothing shows it, though the place can be reached.
    Nothing,
    /// No valid object was found that has the place at all.
    Unreached,
    /// There was no work left to look for it.
    CutShort,
}

impl<'a> Stage<'a> {
    pub(crate) fn before(&self, object: &Value) -> Sent {
        sent(self.old, self.old.schema(self.crd), object)
    }

    pub(crate) fn after(&self, object: &Value) -> Sent {
        sent(self.new, self.new.schema(self.crd), &self.canonical(object))
    }

    /// An object as it is validated after the change.
    pub(crate) fn prepared_after(&self, object: &Value) -> Value {
        prepared(self.new, self.new.schema(self.crd), &self.canonical(object))
    }

    /// The object as rules for what is canonical make it.
    pub(crate) fn canonical(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if let Some(conversion) = self.conversion {
            // What fails is told by those who check the rules.
            let _ = conversion.canonicalize(&self.new.name, &mut object);
        }
        object
    }

    /// Whether there is work left; counts what is asked for.
    pub(crate) fn may(&self) -> bool {
        self.budget.may()
    }

    /// Whether an object was accepted and is refused at `path`.
    pub(crate) fn is_refused_at(&self, object: &Value, path: &Path) -> bool {
        let Sent::Refused(errors) = self.after(object) else { return false };
        errors.iter().any(|error| is_about(error, path)) && matches!(self.before(object), Sent::Shown(_))
    }

    /// Why an object is refused, if it is: what is said of a path goes first.
    pub(crate) fn reason(&self, object: &Value, path: &Path) -> Option<String> {
        let Sent::Refused(errors) = self.after(object) else { return None };
        let error = errors.iter().find(|error| names(&error.field, path)).or(errors.first());
        error.map(ToString::to_string)
    }

    /// Whether an object was accepted before, and shows something else at `path` after. It need not be accepted after:
    /// what is stored is shown all the same, and another change that refuses it must not hide this one.
    pub(crate) fn shows_otherwise(&self, object: &Value, path: &Path) -> bool {
        let Sent::Shown(before) = self.before(object) else { return false };
        all_at(&before, path) != all_at(&self.prepared_after(object), path)
    }

    /// Whether an object is accepted only after the change, and refused at `path` before.
    pub(crate) fn is_newly_accepted(&self, object: &Value, path: &Path) -> bool {
        let Sent::Refused(errors) = self.before(object) else { return false };
        errors.iter().any(|error| is_about(error, path)) && matches!(self.after(object), Sent::Shown(_))
    }

    /// Looks for an object of `side` with one of these values at a path, for which `shows` holds.
    pub(crate) fn search(&self, side: Side, path: &Path, values: &[Value], shows: &dyn Fn(&Value) -> bool) -> Search {
        let version = match side {
            Side::Old => self.old,
            Side::New => self.new,
        };
        let small = version.with_structural(reduced(&version.structural, path, &BTreeSet::new()), self.crd);
        let mut is_reached = false;
        // What a part of the schema says may be too little to make objects that the whole takes.
        for (schema, most) in [(&small, MAX_VALUES), (version.schema(self.crd), 8)] {
            let mut generator = Generator::new(schema, &[], 1).with_focus(vec![path.clone()]);
            generator.look_at_most(40_000);
            for value in values.iter().take(most) {
                if !self.may() {
                    return Search::CutShort;
                }
                let Some(object) = generator.holding(path, value) else { continue };
                is_reached = true;
                if shows(&object) {
                    return Search::Found(self.smallest(object, shows));
                }
            }
            if is_reached {
                break;
            }
        }
        if !is_reached {
            is_reached = self.reaches(&small, path);
        }
        if is_reached { Search::Nothing } else { Search::Unreached }
    }

    /// Looks for an object that has `path` without the member `name` in it, for which `shows` holds.
    pub(crate) fn search_without(
        &self,
        side: Side,
        holder: &Path,
        name: &str,
        shows: &dyn Fn(&Value) -> bool,
    ) -> Search {
        let version = match side {
            Side::Old => self.old,
            Side::New => self.new,
        };
        let member = holder.member(name);
        let small = version.with_structural(reduced(&version.structural, holder, &BTreeSet::new()), self.crd);
        let mut is_reached = false;
        for schema in [&small, version.schema(self.crd)] {
            let mut generator = Generator::new(schema, &[], 1);
            generator.look_at_most(40_000);
            let Some(at) = schema_at(schema.structural(), holder) else { continue };
            for value in holders(&mut generator, at, name) {
                if !self.may() {
                    return Search::CutShort;
                }
                let Some(mut object) = generator.holding(holder, &value) else { continue };
                is_reached = true;
                if !shows(&object) {
                    // A default may have come by.
                    member.clear(&mut object);
                }
                if shows(&object) {
                    return Search::Found(self.smallest(object, shows));
                }
            }
            if is_reached {
                break;
            }
        }
        if is_reached { Search::Nothing } else { Search::Unreached }
    }

    /// Whether a valid object with anything at a path can be made.
    fn reaches(&self, schema: &VersionSchema, path: &Path) -> bool {
        let mut generator = Generator::new(schema, &[], 2);
        generator.look_at_most(40_000);
        let Some(at) = schema_at(schema.structural(), path) else { return false };
        let values = generator.values(at);
        values.iter().take(16).any(|value| generator.holding(path, value).is_some())
    }

    /// The smallest object that still shows it.
    pub(crate) fn smallest(&self, object: Value, shows: &dyn Fn(&Value) -> bool) -> Value {
        // The larger it is, the longer each try takes.
        let attempts = (SHRINKING / object.to_json().len().max(1)).max(LEAST_TRIES);
        shrink(object, attempts, &mut |object| shows(object))
    }
}

/// Objects of a schema without one of their members: one with no more than it must have, and some with a member more.
fn holders(generator: &mut Generator<'_>, schema: &Structural, without: &str) -> Vec<Value> {
    let mut least = generator.least(schema);
    if let Value::Object(members) = &mut least {
        members.remove(without);
    }
    let mut found = vec![least.clone()];
    for (name, property) in schema.properties.iter().filter(|(name, _)| **name != *without) {
        for value in generator.values(property).into_iter().take(MAX_EACH) {
            if let Value::Object(mut members) = least.clone() {
                members.insert(name, value);
                found.push(Value::Object(members));
            }
        }
    }
    found.truncate(MAX_VALUES);
    found
}

/// Whose objects are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Those of before.
    Old,
    /// Those of after.
    New,
}

fn sent(version: &Version, schema: &VersionSchema, object: &Value) -> Sent {
    let object = prepared(version, schema, object);
    let errors = schema.validate(&object);
    if errors.is_empty() { Sent::Shown(object) } else { Sent::Refused(errors) }
}

/// An object as it is validated: pruned, and with its defaults.
fn prepared(version: &Version, schema: &VersionSchema, object: &Value) -> Value {
    let mut object = object.clone();
    if let Value::Object(members) = &mut object
        && !version.is_preserving
    {
        schema.structural().prune_with_nulls(members);
    }
    schema.fill_defaults(&mut object);
    object
}

/// What a schema says at a path.
pub(crate) fn schema_at<'s>(root: &'s Structural, path: &Path) -> Option<&'s Structural> {
    use revisor_schema::Additional;
    path.segments().iter().try_fold(root, |schema, segment| match segment {
        Segment::Every => match (&schema.items, &schema.additional) {
            (Some(items), _) => Some(&**items),
            (None, Some(Additional::Schema(values))) => Some(&**values),
            _ => None,
        },
        Segment::Name(name) => schema.property(name),
    })
}

/// Every value that stands at a path.
pub(crate) fn all_at<'v>(value: &'v Value, path: &Path) -> Vec<&'v Value> {
    let mut found = vec![value];
    for segment in path.segments() {
        found = found
            .into_iter()
            .flat_map(|at| -> Vec<&Value> {
                match (segment, at) {
                    (Segment::Name(name), Value::Object(object)) => object.get(name).into_iter().collect(),
                    (Segment::Every, Value::Array(items)) => items.iter().collect(),
                    (Segment::Every, Value::Object(object)) => object.iter().map(|(_, value)| value).collect(),
                    _ => Vec::new(),
                }
            })
            .collect();
    }
    found
}

/// Whether an error is about what stands at a path. Some are told without a place; but that rules were not run says
/// nothing of any.
fn is_about(error: &FieldError, path: &Path) -> bool {
    let has_place = !error.field.is_empty() && error.field != "<nil>";
    names(&error.field, path) || !has_place && !error.detail.starts_with("some validation rules were not checked")
}

/// Whether the field of an error is a place of a path, or an item of the list that stands there.
fn names(field: &str, path: &Path) -> bool {
    if path.is_root() {
        return field.is_empty() || field == "<nil>";
    }
    match rest_behind(field, path.segments(), true) {
        Some("") => true,
        Some(rest) => rest.starts_with('[') && rest.find(']') == Some(rest.len() - 1),
        None => false,
    }
}

/// What follows a path in the field of an error.
fn rest_behind<'f>(field: &'f str, path: &[Segment], is_first: bool) -> Option<&'f str> {
    let Some((step, path)) = path.split_first() else { return Some(field) };
    match step {
        Segment::Name(name) => {
            let dotted = if is_first { Some(field) } else { field.strip_prefix('.') };
            let rest = dotted.and_then(|field| field.strip_prefix(&**name));
            let rest = rest.or_else(|| field.strip_prefix('[')?.strip_prefix(&**name)?.strip_prefix(']'))?;
            let is_whole = rest.is_empty() || rest.starts_with(['.', '[']);
            is_whole.then(|| rest_behind(rest, path, false)).flatten()
        }
        Segment::Every => {
            if let Some(inside) = field.strip_prefix('[') {
                let (_, rest) = inside.split_once(']')?;
                return rest_behind(rest, path, false);
            }
            let inside = if is_first { field } else { field.strip_prefix('.')? };
            // A key may have dots; the shortest that fits does.
            let ends = inside.match_indices(['.', '[']).map(|(at, _)| at).chain([inside.len()]);
            ends.into_iter().find_map(|end| rest_behind(&inside[end..], path, false).filter(|rest| rest.is_empty()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_of_an_error_is_found_in_its_path() {
        for (field, path, want) in [
            ("spec.size", ".spec.size", true),
            ("spec.sizes", ".spec.size", false),
            ("spec.size.more", ".spec.size", false),
            ("spec.ports[3].name", ".spec.ports[*].name", true),
            ("spec.ports[3]", ".spec.ports", true),
            ("spec.ports[3].name", ".spec.ports", false),
            ("spec.limits[a.b]", ".spec.limits[*]", true),
            ("spec.limits.k.x", ".spec.limits[*].x", true),
            ("spec.limits.a.b.x", ".spec.limits[*].x", true),
            ("<nil>", ".", true),
        ] {
            let path = if path == "." { Path::root() } else { path.parse().expect("is a path") };
            assert_eq!(names(field, &path), want, "{field} {path}");
        }
    }
}
