//! The rules of a schema, `x-kubernetes-validations`: compiled at the place where they stand, which is what `self` is.
//!
//! `rules/check.rs` says what is wrong with the rules of a definition; `rules/validate.rs` holds objects against them.

mod check;
mod correlation;
mod defaults;
mod field_path;
#[cfg(test)]
mod tests;
mod validate;

use std::cell::Cell;
use std::sync::Arc;

use revisor_schema::{Structural, ValidationRule};

pub use check::{KnownExpressions, RuleCheck, check_rule_texts, check_rules};
pub use defaults::DefaultRules;
pub use field_path::valid_field_path;
pub use validate::{CompiledRules, OBJECT_BUDGET, Subject, Verdict};

use crate::environment::{Environment, Issues, Program};
use crate::schema_types::SchemaType;
use crate::types::Type;

/// The variable that is the value at hand.
pub(crate) const SELF: &str = "self";

/// The variable that is the value as it was.
pub(crate) const OLD_SELF: &str = "oldSelf";

/// The name that messages have for the type of `self`, if it is an object.
const SELF_TYPE: &str = "selfType0";

/// How many nodes the expressions of a schema may have together. Short texts can become large expressions, and each of
/// them costs time before it is known what it costs to evaluate.
const MOST_NODES: usize = 1_000_000;

/// What is said of more.
const TOO_LARGE: &str = "the expressions of this schema are too large together";

/// What rules may speak of beside the value they are about.
#[derive(Debug, Clone)]
pub struct RuleEnvironments {
    /// For rules that are new. A release that this one may be rolled back to must understand them.
    pub new: Environment,
    /// For rules that are stored already: all that there is.
    pub stored: Environment,
}

/// What became of a rule.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// There was none.
    Empty,
    /// It makes no sense, and this is why.
    Wrong(String),
    /// It makes sense.
    Compiled(Box<CompiledRule>),
}

/// A rule that makes sense.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) program: Program,
    /// Whether it compares with the value as it was.
    pub(crate) uses_old_self: bool,
    /// What it costs at most.
    pub(crate) cost: u64,
    /// The expression that says what is wrong, or why that makes no sense.
    pub(crate) message: Option<Result<Message, String>>,
    /// The path of the fault below the value, as field errors write it.
    pub(crate) field_path: String,
}

/// An expression that says what is wrong.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) program: Program,
    /// What it costs at most.
    pub(crate) cost: u64,
}

/// A place in a schema where rules stand.
pub(crate) struct Place<'a> {
    /// The schema of the value.
    pub(crate) schema: &'a Structural,
    /// The type of the value.
    pub(crate) kind: &'a Arc<SchemaType>,
    /// How many nodes the expressions had that were compiled here.
    pub(crate) nodes: Cell<usize>,
}

impl<'a> Place<'a> {
    pub(crate) fn new(schema: &'a Structural, kind: &'a Arc<SchemaType>) -> Place<'a> {
        Place { schema, kind, nodes: Cell::new(0) }
    }

    /// Compiles a rule with the libraries of one environment and its message with those of another.
    pub(crate) fn compile(&self, rule: &ValidationRule, for_rule: &Environment, for_message: &Environment) -> Outcome {
        if rule.rule.trim().is_empty() {
            return Outcome::Empty;
        }
        let optional = rule.optional_old_self == Some(true);
        let program = match self.expression(&rule.rule, for_rule, optional, &Type::Bool) {
            Ok(program) => program,
            Err(Wrong::Issues(issues)) => return Outcome::Wrong(format!("compilation failed: {issues}")),
            Err(Wrong::Type) => return Outcome::Wrong("cel expression must evaluate to a bool".to_string()),
            Err(Wrong::Program(why)) => return Outcome::Wrong(format!("program instantiation failed: {why}")),
        };
        let cost = program.estimate_cost(Some(self.kind)).max;
        let mut compiled = CompiledRule {
            uses_old_self: program.refers_to(OLD_SELF),
            program,
            cost,
            message: None,
            field_path: String::new(),
        };
        if !rule.message_expression.is_empty() {
            let message = self.message(&rule.message_expression, for_message, optional);
            let is_wrong = message.is_err();
            compiled.message = Some(message);
            if is_wrong {
                return Outcome::Compiled(Box::new(compiled));
            }
        }
        if !rule.field_path.is_empty()
            && let Ok((path, _)) = valid_field_path(&rule.field_path, self.schema, true)
        {
            compiled.field_path = path;
        }
        Outcome::Compiled(Box::new(compiled))
    }

    fn message(&self, text: &str, environment: &Environment, optional: bool) -> Result<Message, String> {
        match self.expression(text, environment, optional, &Type::String) {
            Ok(program) => Ok(Message { cost: program.estimate_cost(Some(self.kind)).max, program }),
            Err(Wrong::Issues(issues)) => Err(format!("messageExpression compilation failed: {issues}")),
            Err(Wrong::Type) => Err("messageExpression must evaluate to a string".to_string()),
            Err(Wrong::Program(why)) => Err(format!("messageExpression instantiation failed: {why}")),
        }
    }

    fn expression(
        &self,
        text: &str,
        environment: &Environment,
        optional: bool,
        wanted: &Type,
    ) -> Result<Program, Wrong> {
        let kind = self.kind.kind(SELF_TYPE);
        let old = if optional { Type::optional(kind.clone()) } else { kind.clone() };
        let environment = environment
            .clone()
            .with_schema(SELF_TYPE, self.kind)
            .with_variable(SELF, kind)
            .with_variable(OLD_SELF, old);
        let compiled = environment.compile(text);
        let nodes = compiled.as_ref().map_or_else(Issues::nodes, Program::nodes);
        self.nodes.set(self.nodes.get().saturating_add(nodes));
        let program = compiled.map_err(|issues| Wrong::Issues(issues.to_string()))?;
        if program.output_type() != wanted {
            return Err(Wrong::Type);
        }
        if let Some(name) = program.unknown_type() {
            return Err(Wrong::Program(format!("reference to undefined type: {name}")));
        }
        match program.flaw() {
            Some(flaw) => Err(Wrong::Program(flaw.to_string())),
            None => Ok(program),
        }
    }
}

/// Why an expression cannot be used.
enum Wrong {
    Issues(String),
    /// Something else than wanted comes out.
    Type,
    /// Nothing can evaluate it.
    Program(String),
}

/// Whether there are rules at this place or below it.
pub(crate) fn has_rules(schema: &Structural) -> bool {
    !schema.validations.is_empty()
        || schema.items.as_deref().is_some_and(has_rules)
        || matches!(&schema.additional, Some(revisor_schema::Additional::Schema(member)) if has_rules(member))
        || schema.properties.iter().any(|(_, property)| has_rules(property))
}
