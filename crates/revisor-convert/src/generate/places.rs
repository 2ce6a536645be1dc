//! The places of a schema, and how something is put there into an object.

use revisor_object::Value;
use revisor_schema::Structural;

use super::{Generator, Place, holder};
use crate::path::{Path, Segment};
use crate::schema::{META, values};

/// How many places of a schema are looked at.
const MAX_PLACES: usize = 500;

/// How deep they are.
const MAX_DEPTH: usize = 12;

/// All places below a schema, the outer ones first.
pub(super) fn places(root: &Structural) -> Vec<Place<'_>> {
    let mut found: Vec<Place<'_>> = Vec::new();
    let mut ahead: std::collections::VecDeque<(Path, &Structural)> = [(Path::root(), root)].into();
    while let Some((path, schema)) = ahead.pop_front() {
        let depth = path.segments().len();
        if depth < MAX_DEPTH {
            for (name, property) in &schema.properties {
                if depth > 0 || !META.contains(&&**name) {
                    ahead.push_back((path.member(name), property));
                }
            }
            if let Some(below) = schema.items.as_deref().or_else(|| values(schema)) {
                ahead.push_back((path.every(), below));
            }
        }
        if depth > 0 {
            found.push(Place::new(path, schema));
        }
        if found.len() == MAX_PLACES {
            break;
        }
    }
    found
}

/// Puts a value at a place; what it has to be in is made.
pub(super) fn set(generator: &mut Generator<'_>, object: &mut Value, path: &Path, value: Value) {
    put(generator, object, path.segments(), 0, value);
}

fn put(generator: &mut Generator<'_>, at: &mut Value, path: &[Segment], depth: usize, value: Value) {
    let Some(step) = path.get(depth) else {
        *at = value;
        return;
    };
    let is_last = depth + 1 == path.len();
    let fresh = |generator: &mut Generator<'_>| match is_last {
        true => Value::Null,
        false => holder(generator, &path[..=depth]),
    };
    match (step, at) {
        (Segment::Name(name), Value::Object(object)) => {
            let mut member = match object.remove(name).filter(|member| !member.is_null()) {
                Some(member) => member,
                None => fresh(generator),
            };
            put(generator, &mut member, path, depth + 1, value);
            object.insert(name, member);
        }
        (Segment::Every, Value::Array(items)) => {
            if items.is_empty() {
                let item = fresh(generator);
                items.push(item);
            }
            put(generator, &mut items[0], path, depth + 1, value);
        }
        (Segment::Every, Value::Object(object)) => {
            let name = object.iter().next().map_or("k", |(name, _)| name).to_owned();
            let mut member = match object.remove(&name) {
                Some(member) => member,
                None => fresh(generator),
            };
            put(generator, &mut member, path, depth + 1, value);
            object.insert(&name, member);
        }
        _ => {}
    }
}
