//! [`CompiledRules`]: the rules of a schema, ready to hold objects against them.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Value, Warnings};
use revisor_schema::{Additional, Compared, JsonType, KeyedList, Structural, ValidationRule};

use super::correlation::Correlation;
use super::{CompiledRule, MOST_NODES, Message, OLD_SELF, Outcome, Place, SELF, TOO_LARGE, has_rules};
use crate::environment::Environment;
use crate::eval::activation::Activation;
use crate::eval::error::{Budget, EvalError};
use crate::eval::escaping::escape;
use crate::eval::value::CelValue;
use crate::schema_types::SchemaType;

/// What all rules may cost together for one object.
pub const OBJECT_BUDGET: i64 = 10_000_000;

/// How long a message that is computed may be, in bytes.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// How many elements an object has of which only the schema is known.
const A_FEW: u64 = 32;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The rules at one place of a schema and below it. Places without rules at or below them are left out.
#[derive(Debug)]
pub struct CompiledRules {
    rules: Vec<(ValidationRule, Outcome)>,
    /// Whether expressions can speak of the values here.
    has_type: bool,
    /// Whether the values here are objects of the API.
    is_resource: bool,
    /// Whether some rule compares with the value as it was.
    uses_old_self: bool,
    properties: Vec<(Box<str>, CompiledRules)>,
    additional: Option<Box<CompiledRules>>,
    items: Option<Box<CompiledRules>>,
}

/// An object, and what is known of it beside.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The schema that the rules were compiled from.
    pub schema: &'a Structural,
    /// The object.
    pub object: &'a Value,
    /// The object as it was.
    pub old: Option<&'a Value>,
    /// Whether what was wrong before and is unchanged is only warned of.
    pub ratcheting: bool,
}

/// What the rules say of an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// What is wrong.
    pub errors: FieldErrors,
    /// What was wrong before as well.
    pub warnings: Warnings,
    /// What is left of the budget; `None` if it did not suffice.
    pub budget: Option<i64>,
}

impl CompiledRules {
    /// Compiles all rules of a schema; nothing if there are none. With `is_resource`, it describes an object of the API,
    /// as the schema of a custom resource does. Rules that make no sense fail for every object: they were checked when
    /// they were stored.
    pub fn compile(schema: &Structural, is_resource: bool, environment: &Environment) -> Option<CompiledRules> {
        Compiler { environment, nodes: 0 }.compile(schema, is_resource, None)
    }

    /// What they may cost together for an object that is small: one with a few elements where it may have many.
    pub fn cost(&self) -> u64 {
        let own = self.rules.iter().map(|(_, outcome)| match outcome {
            Outcome::Compiled(rule) => rule.cost,
            Outcome::Empty | Outcome::Wrong(_) => 0,
        });
        let below = self.properties.iter().map(|(_, rules)| rules.cost());
        let many = [&self.additional, &self.items].into_iter().flatten();
        let many = many.map(|rules| rules.cost().saturating_mul(A_FEW));
        own.chain(below).chain(many).fold(0, u64::saturating_add)
    }

    /// Holds the object at `path` against the rules. They may cost `budget` together.
    pub fn validate(&self, subject: &Subject<'_>, path: &FieldPath<'_>, budget: i64) -> Verdict {
        let Subject { schema, object, old, ratcheting } = *subject;
        let correlation = match old {
            Some(old) if ratcheting => Correlation::root(object, old, schema),
            _ => Correlation::default(),
        };
        let mut walk = Walk { verdict: Verdict::default(), budget, compared: Compared::default() };
        let stopped = walk.node(self, &At { schema, value: object, old, correlation }, path).is_err();
        let Walk { mut verdict, budget, .. } = walk;
        verdict.budget = (!stopped).then_some(budget);
        verdict
    }
}

/// Compiles the rules of a schema.
#[derive(Debug)]
pub(super) struct Compiler<'e> {
    pub(super) environment: &'e Environment,
    /// How many nodes the expressions so far had.
    pub(super) nodes: usize,
}

impl Compiler<'_> {
    /// Compiles the rules that are about one of `values`; all of them if none are given.
    pub(super) fn compile(
        &mut self,
        schema: &Structural,
        is_resource: bool,
        values: Option<&[&Value]>,
    ) -> Option<CompiledRules> {
        if !has_rules(schema) {
            return None;
        }
        self.at(schema, SchemaType::of(schema, is_resource).as_ref(), is_resource, values)
    }

    fn rule(&mut self, place: &Place<'_>, rule: &ValidationRule) -> Outcome {
        if self.nodes > MOST_NODES {
            return Outcome::Wrong(TOO_LARGE.to_string());
        }
        let outcome = place.compile(rule, self.environment, self.environment);
        self.nodes = self.nodes.saturating_add(place.nodes.take());
        outcome
    }

    fn at(
        &mut self,
        schema: &Structural,
        kind: Option<&Arc<SchemaType>>,
        is_resource: bool,
        values: Option<&[&Value]>,
    ) -> Option<CompiledRules> {
        if values.is_some_and(<[_]>::is_empty) {
            return None;
        }
        let rules: Vec<(ValidationRule, Outcome)> = match kind {
            Some(kind) => {
                let place = Place::new(schema, kind);
                let compile = |rule: &ValidationRule| (rule.clone(), self.rule(&place, rule));
                schema.validations.iter().map(compile).collect()
            }
            None => Vec::new(),
        };
        let has_type = kind.is_some() || schema.validations.is_empty();
        let element = kind.and_then(|kind| kind.element());
        let items = schema.items.as_deref().and_then(|items| {
            let below = values.map(elements);
            self.at(items, element, items.is_embedded_resource, below.as_deref())
        });
        let additional = match &schema.additional {
            Some(Additional::Schema(member)) => {
                let below = values.map(members);
                self.at(member, element, member.is_embedded_resource, below.as_deref())
            }
            _ => None,
        };
        let mut properties = Vec::new();
        for (name, property) in &schema.properties {
            let own;
            let kind = match (kind.and_then(|kind| kind.property(name)), escape(name)) {
                (Some(found), _) => Some(found),
                // Of what expressions can name but not speak of, nothing is checked.
                (None, Some(_)) => continue,
                (None, None) => {
                    own = SchemaType::of(property, property.is_embedded_resource);
                    own.as_ref()
                }
            };
            let below = values.map(|values| named(values, name));
            if kind.is_some()
                && let Some(rules) = self.at(property, kind, property.is_embedded_resource, below.as_deref())
            {
                properties.push((name.clone(), rules));
            }
        }
        let is_empty = rules.is_empty() && has_type && properties.is_empty() && additional.is_none() && items.is_none();
        let uses_old_self =
            rules.iter().any(|(_, outcome)| matches!(outcome, Outcome::Compiled(rule) if rule.uses_old_self));
        (!is_empty).then(|| CompiledRules {
            rules,
            has_type,
            is_resource,
            uses_old_self,
            properties,
            additional: additional.map(Box::new),
            items: items.map(Box::new),
        })
    }
}

fn elements<'a>(values: &[&'a Value]) -> Vec<&'a Value> {
    values.iter().filter_map(|value| value.as_array()).flatten().collect()
}

fn members<'a>(values: &[&'a Value]) -> Vec<&'a Value> {
    values
        .iter()
        .filter_map(|value| value.as_object())
        .flat_map(|object| object.iter())
        .map(|(_, value)| value)
        .collect()
}

fn named<'a>(values: &[&'a Value], name: &str) -> Vec<&'a Value> {
    values.iter().filter_map(|value| value.as_object()?.get(name)).collect()
}

/// The budget did not suffice.
struct Stop;

/// A value on the way through an object.
#[derive(Clone, Copy)]
struct At<'a> {
    schema: &'a Structural,
    value: &'a Value,
    old: Option<&'a Value>,
    correlation: Correlation<'a>,
}

/// The way through an object.
struct Walk {
    verdict: Verdict,
    budget: i64,
    compared: Compared,
}

impl Walk {
    fn node<'a>(&mut self, rules: &CompiledRules, at: &At<'a>, path: &FieldPath<'_>) -> Result<(), Stop> {
        if at.value.is_null() {
            return Ok(());
        }
        self.rules(rules, at, path)?;
        match at.value {
            Value::Array(elements) => self.elements(rules, at, elements, path),
            Value::Object(_) => self.members(rules, at, path),
            _ => Ok(()),
        }
    }

    fn elements<'a>(
        &mut self,
        rules: &CompiledRules,
        at: &At<'a>,
        elements: &'a [Value],
        path: &FieldPath<'_>,
    ) -> Result<(), Stop> {
        let (Some(rules), Some(schema)) = (&rules.items, &at.schema.items) else { return Ok(()) };
        let before = KeyedList::of(at.schema, at.old.and_then(Value::as_array).unwrap_or_default());
        for (index, value) in elements.iter().enumerate() {
            let old = before.as_ref().and_then(|before| before.get(value));
            let correlation = at.correlation.below(old.map(|old| (value, old)), schema);
            self.node(rules, &At { schema, value, old, correlation }, &path.index(index))?;
        }
        Ok(())
    }

    fn members<'a>(&mut self, rules: &CompiledRules, at: &At<'a>, path: &FieldPath<'_>) -> Result<(), Stop> {
        let Some(object) = at.value.as_object() else { return Ok(()) };
        let before = at.old.and_then(Value::as_object);
        let additional = match &at.schema.additional {
            Some(Additional::Schema(schema)) => rules.additional.as_deref().map(|rules| (rules, &**schema)),
            _ => None,
        };
        for (name, value) in object.iter() {
            let old = before.and_then(|before| before.get(name));
            let mut member = |rules: &CompiledRules, schema: &'a Structural, path: FieldPath<'_>| {
                let correlation = at.correlation.member(name, old.map(|old| (value, old)), schema);
                let old = old.filter(|old| !old.is_null());
                self.node(rules, &At { schema, value, old, correlation }, &path)
            };
            if let Some((rules, schema)) = additional {
                member(rules, schema, path.key(name))?;
            }
            if let Ok(found) = rules.properties.binary_search_by(|(known, _)| (**known).cmp(name))
                && let Some(schema) = at.schema.property(name)
            {
                member(&rules.properties[found].1, schema, path.child(name))?;
            }
        }
        Ok(())
    }

    fn rules<'a>(&mut self, here: &CompiledRules, at: &At<'a>, path: &FieldPath<'_>) -> Result<(), Stop> {
        let kind = at.schema.kind.map_or("", JsonType::as_str);
        if !here.has_type {
            let why = "rule compiler initialization error: failed to convert to declType for CEL validation rules";
            self.verdict.errors.push(FieldError::invalid(path, kind, why));
            return Ok(());
        }
        if here.rules.is_empty() {
            return Ok(());
        }
        if self.budget <= 0 {
            self.verdict.errors.push(FieldError::invalid(path, kind, OUT_OF_BUDGET));
            return Err(Stop);
        }
        let see = |value: &'a Value| match here.is_resource {
            true => CelValue::resource(value, at.schema),
            false => CelValue::with_schema(value, at.schema),
        };
        let old = at.old.filter(|_| here.uses_old_self);
        let values = Values { new: see(at.value), old: old.map(see) };
        // A list or an object that may be absent comes without its schema: it is what it looks like.
        let perhaps = match old {
            Some(old @ (Value::Array(_) | Value::Object(_))) => Ok(CelValue::some(CelValue::dynamic(old))),
            Some(old) => see(old).map(CelValue::some),
            None => Ok(CelValue::Optional(None)),
        };
        let optional = Values { new: values.new.clone(), old: Some(perhaps) };
        for (rule, outcome) in &here.rules {
            let compiled = match outcome {
                Outcome::Empty => continue,
                Outcome::Wrong(why) => {
                    self.verdict.errors.push(FieldError::invalid(path, kind, format!("rule compile error: {why}")));
                    continue;
                }
                Outcome::Compiled(compiled) => compiled,
            };
            let is_optional = rule.optional_old_self == Some(true);
            if compiled.uses_old_self && at.old.is_none() && !is_optional {
                continue;
            }
            // The original checks the message of such a rule with an old value that may be absent, as the rule, and
            // evaluates it with the plain one, as all others. What asks whether there is one fails.
            let of_rule = if is_optional { &optional } else { &values };
            self.rule(rule, compiled, [of_rule, &values], at, path)?;
        }
        Ok(())
    }

    fn rule<'a>(
        &mut self,
        rule: &ValidationRule,
        compiled: &CompiledRule,
        [values, values_of_message]: [&Values<'a>; 2],
        at: &At<'a>,
        path: &FieldPath<'_>,
    ) -> Result<(), Stop> {
        let kind = at.schema.kind.map_or("", JsonType::as_str);
        let mut budget = Budget::default();
        let answer = compiled.program.evaluate(values, &mut budget);
        if !self.pay(budget.spent()) {
            self.verdict.errors.push(FieldError::invalid(path, kind, OUT_OF_BUDGET));
            return Err(Stop);
        }
        let text = shown(rule);
        match answer {
            Ok(answer) if answer.as_bool() == Some(true) => return Ok(()),
            Ok(_) => {}
            Err(error @ EvalError::OverBudget) => {
                let why = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {text}"
                );
                self.verdict.errors.push(FieldError::invalid(path, kind, why));
                return Err(Stop);
            }
            Err(error) => {
                let why = match error.is_no_such_overload() {
                    true => format!(
                        "'{error}': call arguments did not match a supported operator, function or macro signature \
                         for rule: {text}"
                    ),
                    false => format!("{error} evaluating rule: {text}"),
                };
                self.verdict.errors.push(FieldError::invalid(path, kind, why));
                return Ok(());
            }
        }
        let path = match compiled.field_path.is_empty() {
            true => *path,
            false => path.child(&compiled.field_path),
        };
        let mut stopped = Ok(());
        let error = match self.message(rule, compiled, values_of_message) {
            Ok(detail) => {
                let value = match at.schema.kind {
                    Some(JsonType::Object | JsonType::Array) => BadValue::Omitted,
                    _ => BadValue::of(at.value),
                };
                match rule.reason.as_deref() {
                    Some("FieldValueForbidden") => FieldError::forbidden(path, detail),
                    Some("FieldValueRequired") => FieldError::required(path, detail),
                    Some("FieldValueDuplicate") => FieldError::duplicate(path, value),
                    _ => FieldError::invalid(path, value, detail),
                }
            }
            Err(why) => {
                stopped = Err(Stop);
                FieldError::invalid(path, kind, why)
            }
        };
        if !compiled.uses_old_self && at.correlation.is_unchanged(&mut self.compared) {
            self.verdict.warnings.push(error.to_string());
        } else {
            self.verdict.errors.push(error);
        }
        stopped
    }

    /// Takes a cost from the budget, if it suffices.
    fn pay(&mut self, cost: u64) -> bool {
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.budget => {
                self.budget -= cost;
                true
            }
            _ => false,
        }
    }

    /// What to say of a rule that failed; an error if the budget did not suffice to say it.
    fn message<'a>(
        &mut self,
        rule: &ValidationRule,
        compiled: &CompiledRule,
        values: &Values<'a>,
    ) -> Result<String, String> {
        let otherwise = || match rule.message.is_empty() {
            true => format!("failed rule: {}", shown(rule)),
            false => rule.message.trim().to_string(),
        };
        let Some(Ok(Message { program, .. })) = &compiled.message else { return Ok(otherwise()) };
        let mut budget = Budget::default();
        let answer = program.evaluate(values, &mut budget);
        if !self.pay(budget.spent()) {
            return Err(
                "messageExpression evaluation failed due to running out of cost budget, no further validation \
                        rules will be run"
                    .to_string(),
            );
        }
        match answer {
            Err(EvalError::OverBudget) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                BadValue::from(rule.message_expression.as_str())
            )),
            Err(_) => Ok(otherwise()),
            Ok(answer) => {
                let text = answer.as_str().unwrap_or_default().trim();
                let fits = !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
                Ok(if fits { text.to_string() } else { otherwise() })
            }
        }
    }
}

/// What messages call a rule.
fn shown(rule: &ValidationRule) -> &str {
    if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() }
}

/// The variables of rules.
struct Values<'a> {
    new: Result<CelValue<'a>, EvalError>,
    old: Option<Result<CelValue<'a>, EvalError>>,
}

impl<'a> Activation<'a> for Values<'a> {
    fn variable(&self, name: &str) -> Option<Result<CelValue<'a>, EvalError>> {
        match name {
            SELF => Some(self.new.clone()),
            OLD_SELF => self.old.clone(),
            _ => None,
        }
    }
}
