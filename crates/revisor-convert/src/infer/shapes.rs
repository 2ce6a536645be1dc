//! How much alike the schemas of two fields are, whatever they are called.

use revisor_object::Value;
use revisor_schema::{Checks, Structural};

use super::names::likeness;
use crate::schema::{fits, values};

/// How deep shapes are compared. Below that they count as alike.
const MAX_DEPTH: usize = 6;

/// How many members of an object are compared with others of another name.
const MAX_RENAMED: usize = 64;

/// What a type that fits is worth by itself.
const TYPE_ALONE: f64 = 0.7;

/// From 0 for types that do not fit to 1 for shapes that are the same.
pub(super) fn likeness_of(one: &Structural, other: &Structural) -> f64 {
    compare(one, other, 0)
}

fn compare(one: &Structural, other: &Structural, depth: usize) -> f64 {
    if !fits(one, other) {
        return 0.0;
    }
    if depth > MAX_DEPTH {
        return TYPE_ALONE;
    }
    let inner = match (&one.items, &other.items) {
        (Some(one), Some(other)) => Some((&**one, &**other)),
        _ => values(one).zip(values(other)),
    };
    if let Some((one, other)) = inner {
        return 0.3 + 0.7 * compare(one, other, depth + 1);
    }
    if one.properties.is_empty() && other.properties.is_empty() {
        return if has_same_checks(one, other) { 1.0 } else { TYPE_ALONE };
    }
    let total = one.properties.len().max(other.properties.len()) as f64;
    members(one, other, depth) / total
}

fn members(one: &Structural, other: &Structural, depth: usize) -> f64 {
    let mut common = 0.0;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for (name, schema) in &one.properties {
        match other.property(name) {
            Some(same) => common += compare(schema, same, depth + 1),
            None => ours.push((name, schema)),
        }
    }
    theirs.extend(other.properties.iter().filter(|(name, _)| one.property(name).is_none()));
    if ours.len().max(theirs.len()) > MAX_RENAMED {
        return common;
    }
    for (name, schema) in ours {
        let scores = theirs.iter().map(|(other, shape)| match likeness(name, other) {
            like if like >= 0.5 => like * compare(schema, shape, depth + 1),
            _ => 0.0,
        });
        let best = scores.enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other));
        if let Some((at, score)) = best.filter(|(_, score)| *score > 0.0) {
            common += score;
            theirs.remove(at);
        }
    }
    common
}

/// Whether two shapes are the same, apart from what is said of them to people.
pub(super) fn is_same(one: &Structural, other: &Structural) -> bool {
    let same = |one: Option<&Structural>, other: Option<&Structural>| match (one, other) {
        (Some(one), Some(other)) => is_same(one, other),
        (None, None) => true,
        _ => false,
    };
    one.properties.len() == other.properties.len()
        && has_same_checks(one, other)
        && same(one.items.as_deref(), other.items.as_deref())
        && same(values(one), values(other))
        && one
            .properties
            .iter()
            .zip(&other.properties)
            .all(|((name, one), (known, other))| name == known && is_same(one, other))
}

/// Whether values are checked in the same way, apart from what is in them.
fn has_same_checks(one: &Structural, other: &Structural) -> bool {
    let none = Checks::default();
    let checks = |schema: &'_ Structural| schema.checks.as_deref().cloned().unwrap_or_else(|| none.clone());
    one.kind == other.kind
        && one.nullable == other.nullable
        && one.is_int_or_string == other.is_int_or_string
        && one.default == other.default
        && checks(one) == checks(other)
}

/// How much a shape says by itself: nothing if it is one of many texts or numbers, and the more the larger it is.
pub(super) fn weight(schema: &Structural) -> usize {
    let own = schema.checks.as_deref().map_or(0, |checks| {
        let is_bounded = checks.minimum.is_some() || checks.maximum.is_some() || checks.max_length.is_some();
        usize::from(!checks.allowed.is_empty()) * 2
            + usize::from(!checks.pattern.is_empty()) * 2
            + usize::from(is_bounded)
    });
    let inner = schema.items.as_deref().or(values(schema)).map_or(0, |inner| 1 + weight(inner));
    own + inner + schema.properties.iter().map(|(_, member)| 1 + weight(member)).sum::<usize>()
}

/// The texts that a field may have, if it is said.
pub(super) fn allowed(schema: &Structural) -> Option<Vec<&str>> {
    let allowed = &schema.checks.as_deref()?.allowed;
    let texts: Option<Vec<&str>> = allowed.iter().map(Value::as_str).collect();
    texts.filter(|texts| !texts.is_empty())
}

/// Whether an object must have a member.
pub(super) fn requires(schema: &Structural, name: &str) -> bool {
    schema.checks.as_deref().is_some_and(|checks| checks.required.iter().any(|known| &**known == name))
}
