//! [`DefaultRules`]: whether the defaults of a schema obey its rules.

use revisor_object::{FieldErrors, FieldPath};
use revisor_schema::Structural;

use super::validate::{Compiler, OBJECT_BUDGET, Subject};
use crate::environment::Environment;

/// Holds the defaults of one schema against its rules. What they cost is counted for all of them together.
#[derive(Debug)]
pub struct DefaultRules<'e> {
    compiler: Compiler<'e>,
    /// What is left of the budget; `None` if it did not suffice.
    budget: Option<i64>,
}

impl<'e> DefaultRules<'e> {
    /// Begins with a schema.
    pub fn new(environment: &'e Environment) -> DefaultRules<'e> {
        DefaultRules { compiler: Compiler { environment, nodes: 0 }, budget: Some(OBJECT_BUDGET) }
    }

    /// Whether the budget did not suffice, so that no more defaults can be checked.
    pub fn is_exhausted(&self) -> bool {
        self.budget.is_none()
    }

    /// What is wrong with the default of a node of the schema, by the rules at the node and below it; `path` is that of
    /// the default in the definition. With `is_resource`, the node describes an object of the API.
    ///
    /// A default is there when an object is made and when it is changed, so it has to be right in both cases.
    pub fn check(&mut self, schema: &Structural, is_resource: bool, path: &FieldPath<'_>) -> FieldErrors {
        let Some(default) = schema.default.as_ref().filter(|default| !default.is_null()) else {
            return FieldErrors::new();
        };
        let Some(budget) = self.budget else { return FieldErrors::new() };
        // Only what the default reaches is compiled: there may be a default at each level of a schema.
        let Some(rules) = self.compiler.compile(schema, is_resource, Some(&[default])) else {
            return FieldErrors::new();
        };
        let subject = Subject { schema, object: default, old: Some(default), ratcheting: false };
        let mut verdict = rules.validate(&subject, path, budget);
        if verdict.errors.is_empty() {
            let made = rules.validate(&Subject { old: None, ..subject }, path, budget);
            verdict.errors = made.errors;
            verdict.budget = verdict.budget.min(made.budget);
        }
        self.budget = verdict.budget;
        verdict.errors
    }
}
