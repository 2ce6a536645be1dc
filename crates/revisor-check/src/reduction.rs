//! A schema without what has nothing to do with a place: so much as an object must have to have the place at all. Objects
//! that are made from it are small, and found in no time, however large the whole is.

use std::collections::BTreeSet;

use revisor_convert::{Path, Segment};
use revisor_schema::{Additional, Checks, JsonType, Structural};

use crate::rules::words;

/// How many levels below a place are kept because rules speak of them.
const MAX_DEPTH: usize = 12;

/// How many properties an object may have to be kept with all of them, where it is what matters.
const A_FEW: usize = 8;

/// A schema with the way to `path`, what is required, what is called by one of `names`, and what rules on the way speak of.
pub(crate) fn reduced(root: &Structural, path: &Path, names: &BTreeSet<String>) -> Structural {
    reduce(root, Some(path.segments()), names, &[], 0)
}

fn reduce(
    schema: &Structural,
    way: Option<&[Segment]>,
    spoken_of: &BTreeSet<String>,
    keys: &[Box<str>],
    depth: usize,
) -> Structural {
    let checks = schema.checks.as_deref();
    let mut spoken_of = spoken_of.clone();
    for rule in &schema.validations {
        spoken_of.extend(words(&rule.rule));
    }
    let mut demanded: BTreeSet<&str> = keys.iter().map(|key| &**key).collect();
    if let Some(checks) = checks {
        demands(checks, &mut demanded, 0);
    }
    let is_target = way.is_some_and(<[Segment]>::is_empty);
    let is_small = is_target && schema.properties.len() <= A_FEW;
    let next = |segment: &Segment| match way.and_then(<[Segment]>::split_first) {
        Some((first, rest)) if first == segment => Some(rest),
        _ => None,
    };
    let properties = schema.properties.iter().filter_map(|(name, property)| {
        let rest = next(&Segment::Name(name.clone()));
        let is_kept = rest.is_some()
            || demanded.contains(&**name)
            || is_small
            || depth < MAX_DEPTH && spoken_of.contains(&**name);
        is_kept.then(|| (name.clone(), reduce(property, rest, &spoken_of, &[], depth + 1)))
    });
    Structural {
        properties: properties.collect(),
        items: schema
            .items
            .as_deref()
            .map(|items| Box::new(reduce(items, next(&Segment::Every), &spoken_of, &schema.list_map_keys, depth + 1))),
        additional: schema.additional.as_ref().map(|additional| match additional {
            Additional::Schema(values) => {
                Additional::Schema(Box::new(reduce(values, next(&Segment::Every), &spoken_of, &[], depth + 1)))
            }
            other => other.clone(),
        }),
        ..shallow(schema)
    }
}

/// The properties that alternatives and conditions of a schema name.
fn demands<'c>(checks: &'c Checks, demanded: &mut BTreeSet<&'c str>, depth: usize) {
    demanded.extend(checks.required.iter().map(|name| &**name));
    let alternatives = [&checks.all_of, &checks.any_of, &checks.one_of].into_iter().flatten();
    for schema in alternatives.chain(checks.not.as_deref()) {
        demanded.extend(schema.properties.iter().map(|(name, _)| &**name));
        if let Some(checks) = schema.checks.as_deref().filter(|_| depth < MAX_DEPTH) {
            demands(checks, demanded, depth + 1);
        }
    }
}

/// A schema without what it says to people alone.
pub(crate) fn silent(schema: &Structural) -> Structural {
    let properties = schema.properties.iter().map(|(name, property)| (name.clone(), silent(property)));
    Structural {
        properties: properties.collect(),
        items: schema.items.as_deref().map(|items| Box::new(silent(items))),
        additional: schema.additional.as_ref().map(|additional| match additional {
            Additional::Schema(values) => Additional::Schema(Box::new(silent(values))),
            other => other.clone(),
        }),
        ..shallow(schema)
    }
}

/// A node without what is below it.
pub(crate) fn shallow(schema: &Structural) -> Structural {
    Structural {
        kind: schema.kind,
        default: schema.default.clone(),
        nullable: schema.nullable,
        preserves_unknown_fields: schema.preserves_unknown_fields,
        is_embedded_resource: schema.is_embedded_resource,
        is_int_or_string: schema.is_int_or_string,
        list_type: schema.list_type,
        list_map_keys: schema.list_map_keys.clone(),
        is_atomic_map: schema.is_atomic_map,
        validations: schema.validations.clone(),
        checks: schema.checks.clone(),
        ..Structural::default()
    }
}

/// A node that lets everything be below it, for what it says of itself alone.
pub(crate) fn bare(schema: &Structural) -> Structural {
    let is_object = schema.kind == Some(JsonType::Object);
    let mut bare = shallow(schema);
    bare.additional = is_object.then_some(Additional::Allowed(true));
    bare.validations.clear();
    if let Some(checks) = &mut bare.checks {
        checks.required.clear();
    }
    bare
}
