//! Checking a value against a schema that was made ready.
//!
//! Of several alternatives that all fail, the faults of the one that came closest are shown: closeness is counted in
//! checks that passed, as the original counts them, so that clients see the same faults.

use std::collections::HashSet;

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use super::super::JsonType;
use super::super::correlation::{Compared, Correlation};
use super::super::value_ref::ValueRef;
use super::finding::{Findings, Notes, Place};
use super::kinds::Kinds;
use super::numbers::Numbers;
use super::{Checks, Node, Others};

/// How many nodes of a schema are checked for one object. A schema with many alternatives and an object with many
/// elements could keep the server busy for hours otherwise.
const MAX_STEPS: u64 = 20_000_000;

/// How many bytes of a text count as a step.
const STEP_BYTES: u64 = 64;

/// How many names or values to compare with count as a step.
const STEP_NAMES: u64 = 8;

/// How a check of one node went.
#[derive(Clone, Copy)]
struct Outcome {
    is_valid: bool,
    /// How many checks passed.
    closeness: u64,
}

impl Outcome {
    fn take(&mut self, other: Outcome) {
        self.is_valid &= other.is_valid;
        self.closeness += other.closeness;
    }

    /// Takes in a check that was made.
    fn made(&mut self, is_valid: bool) {
        self.is_valid &= is_valid;
        self.closeness += 1;
    }
}

pub(super) struct Walk {
    notes: Notes,
    compared: Compared,
    steps: u64,
}

impl Walk {
    pub(super) fn check(
        node: &Node,
        path: &FieldPath<'_>,
        value: ValueRef<'_>,
        correlation: Option<Correlation<'_>>,
    ) -> FieldErrors {
        let mut walk = Walk { notes: Notes::default(), compared: Compared::default(), steps: 0 };
        walk.node(node, value, &Place::START, correlation);
        // Comes first, so that it is told however much else was found.
        let mut errors = FieldErrors::new();
        if walk.steps > MAX_STEPS {
            let detail = format!("checking it against its schema takes more than {MAX_STEPS} steps");
            errors.push(FieldError::forbidden(path, detail));
        }
        errors.extend(walk.notes.into_errors(path));
        errors
    }

    fn node(&mut self, node: &Node, value: ValueRef<'_>, place: &Place<'_>, old: Option<Correlation<'_>>) -> Outcome {
        let mark = self.notes.mark();
        let mut outcome = self.checks(node, value, place, old);
        if !outcome.is_valid && old.is_some_and(|old| old.is_unchanged(&mut self.compared)) {
            self.notes.forget_since(mark);
            outcome.is_valid = true;
        }
        outcome
    }

    fn checks(&mut self, node: &Node, value: ValueRef<'_>, place: &Place<'_>, old: Option<Correlation<'_>>) -> Outcome {
        let mut outcome = Outcome { is_valid: true, closeness: 0 };
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return outcome;
        }
        let checks = node.checks.as_deref();
        if let Some(checks) = checks {
            self.steps += (checks.allowed.len() + checks.required.len()) as u64 / STEP_NAMES;
            if let ValueRef::Scalar(Value::String(text)) = value {
                self.steps += text.len() as u64 / STEP_BYTES;
            }
        }
        let format = checks.and_then(|checks| checks.format.as_ref()).map(|(name, _)| &**name);
        let is_null = value.is_null();
        if node.kinds.says_something(format) {
            match node.kinds.check(node.nullable, format, value) {
                Ok(()) => outcome.closeness += 1,
                Err(wrong) => outcome.is_valid = self.notes.at(place).wrong_type(wrong.wanted, wrong.found),
            }
            outcome.closeness += u64::from(!is_null);
        } else if is_null {
            outcome.closeness += 1;
        }
        if !is_null {
            match checks {
                Some(checks) => outcome.take(self.alternatives(checks, value, place)),
                None => outcome.closeness += 1,
            }
            outcome.closeness += 1;
            match value {
                ValueRef::Scalar(Value::String(text)) => {
                    outcome.made(checks.is_none_or(|checks| check_text(checks, text, &mut self.notes.at(place))));
                    if let Some((name, Some(format))) = checks.and_then(|checks| checks.format.as_ref()) {
                        outcome.made(format.matches(text) || self.notes.at(place).wrong_type(name, text));
                    }
                }
                ValueRef::Scalar(number @ (Value::Int(_) | Value::Float(_))) => {
                    let mut found = self.notes.at(place);
                    outcome.made(match checks {
                        Some(checks) => checks.numbers.as_ref().is_none_or(|numbers| numbers.check(number, &mut found)),
                        None => {
                            let is_integer = node.kinds == Kinds::One(JsonType::Integer);
                            Numbers::check_type_only(is_integer, number, &mut found)
                        }
                    });
                    outcome.closeness += 1;
                }
                ValueRef::Array(items) => {
                    outcome.take(self.items(node, items, place, old));
                    outcome.closeness += 1;
                }
                _ => {}
            }
        }
        if let Some(checks) = checks.filter(|checks| !checks.allowed.is_empty())
            && !checks.allowed.iter().any(|allowed| is_same(value, allowed))
        {
            outcome.is_valid = self.notes.at(place).not_supported(value, &checks.allowed);
        }
        if is_null {
            return outcome;
        }
        outcome.closeness += 1;
        if let ValueRef::Object(object) = value {
            outcome.take(self.members(node, object, place, old));
            outcome.closeness += 1;
        }
        outcome.closeness += 1;
        outcome
    }

    /// What a schema asks by way of other schemas. What stands in them is never tolerated for being unchanged.
    fn alternatives(&mut self, checks: &Checks, value: ValueRef<'_>, place: &Place<'_>) -> Outcome {
        let mut outcome = Outcome { is_valid: true, closeness: 1 };
        if !checks.any_of.is_empty() {
            outcome.take(self.any_of(&checks.any_of, value, place));
        }
        if !checks.one_of.is_empty() {
            outcome.take(self.one_of(&checks.one_of, value, place));
        }
        if !checks.all_of.is_empty() {
            let mut valid = 0;
            for node in &checks.all_of {
                let one = self.node(node, value, place, None);
                valid += usize::from(one.is_valid);
                outcome.take(one);
            }
            if valid < checks.all_of.len() {
                let end = if valid == 0 { ". None validated" } else { "" };
                outcome.is_valid = self.notes.at(place).general(&format!("must validate all the schemas (allOf){end}"));
            }
        }
        if let Some(not) = &checks.not
            && self.quietly(not, value, place).is_valid
        {
            outcome.is_valid = self.notes.at(place).general("must not validate the schema (not)");
        }
        outcome
    }

    fn any_of(&mut self, nodes: &[Node], value: ValueRef<'_>, place: &Place<'_>) -> Outcome {
        let mut closest: Option<(&Node, u64)> = None;
        for node in nodes {
            let outcome = self.quietly(node, value, place);
            if outcome.is_valid {
                return outcome;
            }
            if closest.is_none_or(|(_, closeness)| outcome.closeness > closeness) {
                closest = Some((node, outcome.closeness));
            }
        }
        let is_valid = self.notes.at(place).general("must validate at least one schema (anyOf)");
        self.show_closest(closest, value, place, is_valid)
    }

    fn one_of(&mut self, nodes: &[Node], value: ValueRef<'_>, place: &Place<'_>) -> Outcome {
        let mut closest: Option<(&Node, u64)> = None;
        let mut first = None;
        let mut valid = 0;
        for node in nodes {
            let outcome = self.quietly(node, value, place);
            if outcome.is_valid {
                valid += 1;
                first.get_or_insert(outcome);
                closest = None;
            } else if valid == 0 && closest.is_none_or(|(_, closeness)| outcome.closeness > closeness) {
                closest = Some((node, outcome.closeness));
            }
        }
        let found = match (valid, first) {
            (1, Some(outcome)) => return outcome,
            (0, _) => "Found none valid".to_owned(),
            (several, _) => format!("Found {several} valid alternatives"),
        };
        let mut notes = self.notes.at(place);
        let is_valid = notes.general(&format!("must validate one and only one schema (oneOf). {found}"));
        self.show_closest(closest, value, place, is_valid)
    }

    /// Goes through the alternative that came closest once more, this time to say what is wrong.
    fn show_closest(
        &mut self,
        closest: Option<(&Node, u64)>,
        value: ValueRef<'_>,
        place: &Place<'_>,
        is_valid: bool,
    ) -> Outcome {
        let closeness = match closest {
            Some((node, closeness)) => {
                self.node(node, value, place, None);
                closeness
            }
            None => 0,
        };
        Outcome { is_valid, closeness }
    }

    fn quietly(&mut self, node: &Node, value: ValueRef<'_>, place: &Place<'_>) -> Outcome {
        self.notes.be_quiet();
        let outcome = self.node(node, value, place, None);
        self.notes.be_loud_again();
        outcome
    }

    fn items(&mut self, node: &Node, items: &[Value], place: &Place<'_>, old: Option<Correlation<'_>>) -> Outcome {
        let mut outcome = Outcome { is_valid: true, closeness: 1 };
        if let Some(schema) = &node.items {
            let olds = old.and_then(|old| old.items());
            for (at, item) in items.iter().enumerate() {
                let old = olds.as_ref().and_then(|olds| olds.get(at).copied().flatten());
                outcome.take(self.node(schema, item.into(), &place.index(at), old));
            }
        }
        let Some(checks) = &node.checks else { return outcome };
        let mut found = self.notes.at(place);
        let count = items.len() as i64;
        if let Some(least) = checks.min_items.filter(|least| count < *least) {
            outcome.is_valid =
                found.invalid(count, |place| format!("{place} in body should have at least {least} items"));
        }
        if let Some(most) = checks.max_items.filter(|most| count > *most) {
            outcome.is_valid = found.too_many(items.len(), most);
        }
        if checks.unique_items {
            let mut seen = HashSet::new();
            if !items.iter().all(|item| seen.insert(item.to_json())) {
                outcome.is_valid = found.invalid("", |place| format!("{place} in body shouldn't contain duplicates"));
            }
        }
        outcome
    }

    fn members(&mut self, node: &Node, object: &Object, place: &Place<'_>, old: Option<Correlation<'_>>) -> Outcome {
        let mut outcome = Outcome { is_valid: true, closeness: 0 };
        let count = object.len() as i64;
        if let Some(checks) = &node.checks {
            let mut found = self.notes.at(place);
            if let Some(least) = checks.min_properties.filter(|least| count < *least) {
                outcome.is_valid =
                    found.invalid(count, |place| format!("{place} in body should have at least {least} properties"));
            }
            if let Some(most) = checks.max_properties.filter(|most| count > *most) {
                outcome.is_valid = found.too_many(object.len(), most);
            }
        }
        // The type of a whole object is that of its version, old and new; it is never tolerated.
        let old_of = |name: &str| {
            let is_type = place.is_start() && matches!(name, "kind" | "apiVersion");
            old.filter(|_| !is_type).and_then(|old| old.key(name))
        };
        match &node.additional {
            Some(Others::Forbidden) => {
                for (name, _) in object.iter().filter(|(name, _)| node.property(name).is_none()) {
                    let text = |place: &str| format!("{place}.{name} in body is a forbidden property");
                    outcome.is_valid = self.notes.at(place).invalid(name, text);
                }
            }
            Some(Others::Schema(schema)) => {
                for (name, value) in object.iter().filter(|(name, _)| node.property(name).is_none()) {
                    outcome.take(self.node(schema, value.into(), &place.other(name), old_of(name)));
                }
            }
            Some(Others::Allowed) | None => {}
        }
        if !node.properties.is_empty() {
            for (name, value) in object.iter() {
                if let Some(schema) = node.property(name) {
                    outcome.take(self.node(schema, value.into(), &place.property(name), old_of(name)));
                }
            }
        }
        for name in node.checks.iter().flat_map(|checks| &checks.required) {
            if !object.contains(name) {
                outcome.is_valid = self.notes.at(place).missing(name);
            }
        }
        outcome
    }
}

/// Of what is wrong with a text only the first fault is said.
fn check_text(checks: &Checks, text: &str, found: &mut Findings<'_>) -> bool {
    if checks.max_length.is_some() || checks.min_length.is_some() {
        let length = text.chars().count() as i64;
        if let Some(most) = checks.max_length.filter(|most| length > *most) {
            return found.too_long(most);
        }
        if let Some(least) = checks.min_length.filter(|least| length < *least) {
            return found.invalid(text, |place| format!("{place} in body should be at least {least} chars long"));
        }
    }
    match &checks.pattern {
        None => true,
        Some((shown, Ok(pattern))) => {
            pattern.is_match(text) || found.invalid(text, |place| format!("{place} in body should match '{shown}'"))
        }
        Some((shown, Err(problem))) => found.invalid(text, |place| {
            format!("{place} in body should match '{shown}, but pattern is invalid: {problem}'")
        }),
    }
}

/// Whether a value is one that is allowed. Numbers are first made of the type of the allowed one, and so is a number that
/// stands for a character; null never is one.
fn is_same(value: ValueRef<'_>, allowed: &Value) -> bool {
    let ValueRef::Scalar(scalar) = value else { return value == allowed.into() };
    match (scalar, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Int(number), Value::Float(allowed)) => *number as f64 == *allowed,
        (Value::Float(number), Value::Int(allowed)) => *number as i64 == *allowed,
        (Value::Int(number), Value::String(allowed)) => {
            let character = u32::try_from(*number).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            allowed.chars().eq([character])
        }
        (scalar, allowed) => scalar == allowed,
    }
}
