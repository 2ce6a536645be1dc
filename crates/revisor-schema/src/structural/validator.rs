//! [`Validator`]: a schema made ready for checking values: types and formats looked up, patterns compiled.
//!
//! The words of the errors, their order and their oddities are those that clients of the original know. How values are
//! checked is in [`walk`]; [`numbers`] holds the arithmetic.

mod finding;
mod kinds;
mod numbers;
mod walk;

use std::collections::HashMap;

use revisor_object::{FieldErrors, FieldPath, Value};

use super::correlation::Correlation;
use super::format::{Format, is_known_format};
use super::pattern::{MAX_PATTERN_BYTES, Pattern};
use super::value_ref::ValueRef;
use super::{Additional, Structural};
use kinds::Kinds;
use numbers::Numbers;
use walk::Walk;

/// How much memory all patterns of one schema may take up together.
const MAX_PATTERNS_BYTES: usize = 64 << 20;

/// A schema that values can be checked against.
#[derive(Debug, Clone)]
pub struct Validator {
    root: Node,
}

impl Validator {
    /// Makes a schema ready. `minor` is the release that the server behaves as: it decides which formats are known.
    pub fn compile(schema: &Structural, minor: u32) -> Validator {
        Validator { root: Compiler::new(minor, false).node(schema) }
    }

    /// The same for the default of a schema, which the original checks in another way: formats count also where they
    /// are without meaning, and no type stands for integers and texts. Upstream: `ToKubeOpenAPI` of structural schemas,
    /// without `StripUnsupportedFormatsPostProcessorForVersion`.
    pub fn compile_for_default(schema: &Structural, minor: u32) -> Validator {
        Validator { root: Compiler::new(minor, true).node(schema) }
    }

    /// What is wrong with `value`, which stands at `path`: nothing precedes the path of a whole object.
    pub fn validate<'v>(&self, path: &FieldPath<'_>, value: impl Into<ValueRef<'v>>) -> FieldErrors {
        Walk::check(&self.root, path, value.into(), None)
    }

    /// As [`validate`](Validator::validate), of a value that takes the place of an old one. What was wrong before and is
    /// unchanged is tolerated.
    pub fn validate_update(&self, path: &FieldPath<'_>, correlation: Correlation<'_>) -> FieldErrors {
        let errors = self.validate(path, correlation.new_value());
        // Only faults make it worth to look at what was there before.
        if errors.is_empty() {
            return errors;
        }
        Walk::check(&self.root, path, correlation.new_value(), Some(correlation))
    }

    /// The part for the property `name` of the whole.
    pub(super) fn property(&self, name: &str) -> Option<Validator> {
        self.root.property(name).map(|node| Validator { root: node.clone() })
    }
}

/// One node of a schema, ready.
#[derive(Debug, Clone)]
struct Node {
    kinds: Kinds,
    nullable: bool,
    /// Sorted by name.
    properties: Vec<(Box<str>, Node)>,
    additional: Option<Others>,
    items: Option<Box<Node>>,
    checks: Option<Box<Checks>>,
}

#[derive(Debug, Clone)]
enum Others {
    Allowed,
    Forbidden,
    Schema(Box<Node>),
}

#[derive(Debug, Clone, Default)]
struct Checks {
    /// The name of a format that means something here, and what it means for texts.
    format: Option<(Box<str>, Option<Format>)>,
    numbers: Option<Numbers>,
    min_length: Option<i64>,
    max_length: Option<i64>,
    pattern: Option<(Box<str>, Result<Pattern, String>)>,
    min_items: Option<i64>,
    max_items: Option<i64>,
    unique_items: bool,
    min_properties: Option<i64>,
    max_properties: Option<i64>,
    required: Vec<Box<str>>,
    allowed: Vec<Value>,
    all_of: Vec<Node>,
    any_of: Vec<Node>,
    one_of: Vec<Node>,
    not: Option<Box<Node>>,
}

impl Node {
    fn property(&self, name: &str) -> Option<&Node> {
        let at = self.properties.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        Some(&self.properties[at].1)
    }
}

struct Compiler {
    minor: u32,
    is_for_default: bool,
    /// Schemas repeat their patterns.
    patterns: HashMap<String, Result<Pattern, String>>,
    bytes_left: usize,
}

impl Compiler {
    fn new(minor: u32, is_for_default: bool) -> Compiler {
        Compiler { minor, is_for_default, patterns: HashMap::new(), bytes_left: MAX_PATTERNS_BYTES }
    }

    fn node(&mut self, schema: &Structural) -> Node {
        Node {
            kinds: if self.is_for_default { Kinds::named(schema.kind) } else { Kinds::of(schema) },
            nullable: schema.nullable,
            properties: schema.properties.iter().map(|(name, schema)| (name.clone(), self.node(schema))).collect(),
            additional: schema.additional.as_ref().map(|additional| match additional {
                Additional::Allowed(true) => Others::Allowed,
                Additional::Allowed(false) => Others::Forbidden,
                Additional::Schema(schema) => Others::Schema(Box::new(self.node(schema))),
            }),
            items: schema.items.as_ref().map(|schema| Box::new(self.node(schema))),
            checks: self.checks(schema),
        }
    }

    fn checks(&mut self, schema: &Structural) -> Option<Box<Checks>> {
        let checks = schema.checks.as_deref()?;
        let mut nodes = |schemas: &[Structural]| schemas.iter().map(|schema| self.node(schema)).collect();
        let (all_of, any_of, one_of) = (nodes(&checks.all_of), nodes(&checks.any_of), nodes(&checks.one_of));
        let counts = match self.is_for_default {
            true => !checks.format.is_empty(),
            false => is_known_format(schema.kind, schema.is_int_or_string, &checks.format, self.minor),
        };
        let format = counts.then(|| (checks.format.as_str().into(), Format::named(&checks.format, self.minor)));
        Some(Box::new(Checks {
            numbers: Numbers::of(schema, checks, format.as_ref().map(|(name, _): &(Box<str>, _)| &**name)),
            format,
            min_length: checks.min_length,
            max_length: checks.max_length,
            pattern: (!checks.pattern.is_empty())
                .then(|| (checks.pattern.as_str().into(), self.pattern(&checks.pattern))),
            min_items: checks.min_items,
            max_items: checks.max_items,
            unique_items: checks.unique_items,
            min_properties: checks.min_properties,
            max_properties: checks.max_properties,
            required: checks.required.clone(),
            allowed: checks.allowed.clone(),
            all_of,
            any_of,
            one_of,
            not: checks.not.as_ref().map(|not| Box::new(self.node(not))),
        }))
    }

    fn pattern(&mut self, text: &str) -> Result<Pattern, String> {
        if let Some(known) = self.patterns.get(text) {
            return known.clone();
        }
        let limit = self.bytes_left.min(MAX_PATTERN_BYTES);
        let compiled = Pattern::compile_within(text, limit).map_err(|error| error.to_string());
        if let Ok(pattern) = &compiled {
            self.bytes_left = self.bytes_left.saturating_sub(pattern.bytes());
        }
        self.patterns.insert(text.to_owned(), compiled.clone());
        compiled
    }
}

#[cfg(test)]
mod tests;
