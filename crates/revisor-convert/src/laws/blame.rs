//! Which rule is to blame for a difference or an error.

use revisor_object::{FieldError, Value};

use crate::path::{Path, Segment};

/// The first place at which two values differ.
pub(super) fn first_difference(one: &Value, other: &Value) -> Option<Path> {
    difference(one, other, Path::root())
}

fn difference(one: &Value, other: &Value, at: Path) -> Option<Path> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.iter().chain(other.iter()).map(|(name, _)| name);
            let mut names: Vec<&str> = names.collect();
            names.sort_unstable();
            names.dedup();
            names.into_iter().find_map(|name| match (one.get(name), other.get(name)) {
                (Some(one), Some(other)) => difference(one, other, at.member(name)),
                _ => Some(at.member(name)),
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            one.iter().zip(other).find_map(|(one, other)| difference(one, other, at.every()))
        }
        (one, other) => (one != other).then_some(at),
    }
}

/// The first of the rules that is about a place, or about something in it or around it.
pub(super) fn rule_about<'r>(rules: impl Iterator<Item = (&'r str, &'r [Path])>, place: &Path) -> Option<&'r str> {
    let touches = |rule: &Path| {
        let (rule, place) = (rule.segments(), place.segments());
        rule.iter().zip(place).all(|(one, other)| one == other || *one == Segment::Every)
    };
    let mut rules = rules.filter(|(_, places)| places.iter().any(touches));
    rules.next().map(|(field, _)| field)
}

/// The rule that wrote what an error is about.
pub(super) fn rule_of_error<'r>(
    rules: impl Iterator<Item = (&'r str, &'r [Path])>,
    error: &FieldError,
) -> Option<&'r str> {
    let steps: Vec<&str> = error.field.split(['.', '[']).map(|step| step.trim_end_matches(']')).collect();
    let covers = |rule: &Path| {
        let rule = rule.segments();
        let is_step = |(one, step): (&Segment, &&str)| match one {
            Segment::Every => true,
            Segment::Name(name) => **name == **step,
        };
        rule.len() <= steps.len() && rule.iter().zip(&steps).all(is_step)
    };
    let depth = |places: &[Path]| places.iter().filter(|place| covers(place)).map(|place| place.segments().len()).max();
    rules
        .filter_map(|(field, places)| Some((depth(places)?, field)))
        .max_by_key(|(depth, _)| *depth)
        .map(|(_, field)| field)
}
