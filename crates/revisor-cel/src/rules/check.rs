//! What is wrong with the rules of a definition: [`check_rules`], and [`check_rule_texts`] for what needs no compiler.

use std::collections::HashSet;
use std::sync::Arc;

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath};
use revisor_schema::{Additional, JsonType, ListType, Structural, ValidationRule};

use super::{CompiledRule, MOST_NODES, Outcome, Place, RuleEnvironments, TOO_LARGE, valid_field_path};
use crate::schema_types::{LARGEST_REQUEST, SchemaType};

/// What one rule may cost at most.
const PER_RULE: u64 = 10_000_000;

/// What all rules of a schema may cost at most.
const PER_SCHEMA: u64 = 100_000_000;

/// How many of the costliest rules are named if all of them cost too much.
const NAMED: usize = 4;

/// Why a cause may be given, in the order in which messages list it.
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// How to check the rules of a schema.
#[derive(Debug, Clone, Copy)]
pub struct RuleCheck<'a> {
    /// What rules may speak of.
    pub environments: &'a RuleEnvironments,
    /// The expressions of the definition as it was; they count as stored.
    pub known: &'a KnownExpressions,
    /// Whether a single rule may cost what it likes: if the schema is unchanged.
    pub any_cost: bool,
    /// What is wrong with the schema otherwise. Rules are not looked at where that is at their place or below it.
    pub schema_errors: &'a [FieldError],
}

/// Expressions that a definition had before.
#[derive(Debug, Clone, Default)]
pub struct KnownExpressions {
    rules: HashSet<String>,
    messages: HashSet<String>,
}

impl KnownExpressions {
    /// Adds all expressions in a schema, wherever they are.
    pub fn add(&mut self, schema: &Structural) {
        for rule in &schema.validations {
            self.rules.insert(rule.rule.clone());
            if !rule.message_expression.is_empty() {
                self.messages.insert(rule.message_expression.clone());
            }
        }
        for (_, property) in &schema.properties {
            self.add(property);
        }
        if let Some(Additional::Schema(member)) = &schema.additional {
            self.add(member);
        }
        if let Some(items) = &schema.items {
            self.add(items);
        }
        if let Some(checks) = &schema.checks {
            let alternatives = checks.all_of.iter().chain(&checks.any_of).chain(&checks.one_of);
            for schema in alternatives.chain(checks.not.as_deref()) {
                self.add(schema);
            }
        }
    }
}

/// What is wrong with the rules at one place, apart from what they say. These errors are errors of the schema.
pub fn check_rule_texts(schema: &Structural, path: &FieldPath<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let rules = path.child("x-kubernetes-validations");
    for (index, rule) in schema.validations.iter().enumerate() {
        let at = rules.index(index);
        let message = rule.message.trim();
        let has_breaks = |text: &str| text.contains(['\n', '\r']);
        if rule.rule.trim().is_empty() {
            errors.push(FieldError::required(at.child("rule"), "rule is not specified"));
        } else if !rule.message.is_empty() && message.is_empty() {
            let detail = "must be non-empty if specified";
            errors.push(FieldError::invalid(at.child("message"), rule.message.as_str(), detail));
        } else if has_breaks(message) {
            let detail = "must not contain line breaks";
            errors.push(FieldError::invalid(at.child("message"), rule.message.as_str(), detail));
        } else if has_breaks(rule.rule.trim()) && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(at.child("message"), detail));
        }
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(at.child("messageExpression"), detail));
        }
        if let Some(reason) = &rule.reason
            && !REASONS.contains(&reason.as_str())
        {
            errors.push(FieldError::not_supported(at.child("reason"), reason.as_str(), &REASONS));
        }
        let field_path = at.child("fieldPath");
        let mut wrong_path =
            |detail: &str| errors.push(FieldError::invalid(field_path, rule.field_path.as_str(), detail));
        if !rule.field_path.is_empty() && rule.field_path.trim().is_empty() {
            wrong_path("must be non-empty if specified");
        }
        if has_breaks(&rule.field_path) {
            wrong_path("must not contain line breaks");
        }
        if !rule.field_path.is_empty() && valid_field_path(&rule.field_path, schema, true).is_err() {
            wrong_path("must be a valid path");
        }
    }
    errors
}

/// What is wrong with what the rules of a schema say, or with what they cost. The schema stands at `path` and is sound.
pub fn check_rules(root: &Structural, path: &FieldPath<'_>, how: &RuleCheck<'_>) -> FieldErrors {
    let mut checker = Checker { how, errors: FieldErrors::new(), total: 0, costliest: Vec::new(), nodes: 0 };
    let place = Around { kind: Kind::NotNeeded, count: Some(1), uncorrelatable: None, is_root: true };
    checker.check(root, path, &place);
    let Checker { mut errors, total, costliest, .. } = checker;
    if total > PER_SCHEMA {
        for (rule, _) in costliest {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            errors.push(FieldError::forbidden(rule, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, too_costly(what, total, PER_SCHEMA)));
    }
    errors
}

/// The type of a value, where rules at its place or above need it.
#[derive(Clone)]
enum Kind {
    NotNeeded,
    /// What its own schema says: those above do not know of it.
    Own,
    Known(Arc<SchemaType>),
    /// Expressions cannot speak of such a value.
    None,
}

/// What the schemas above a place make of it.
struct Around {
    /// The type of the value as the schemas above see it.
    kind: Kind,
    /// How often there is such a value at most, if the schemas say so.
    count: Option<u64>,
    /// The first place above at which values cannot be compared with what they were.
    uncorrelatable: Option<Arc<str>>,
    is_root: bool,
}

struct Checker<'a> {
    how: &'a RuleCheck<'a>,
    errors: FieldErrors,
    total: u64,
    /// Where the costliest rules are, and what they cost.
    costliest: Vec<(String, u64)>,
    /// How many nodes the expressions so far had.
    nodes: usize,
}

impl Checker<'_> {
    fn check(&mut self, schema: &Structural, path: &FieldPath<'_>, around: &Around) {
        let kind = match &around.kind {
            Kind::NotNeeded if schema.validations.is_empty() => Kind::NotNeeded,
            Kind::NotNeeded | Kind::Own => {
                let is_resource = around.is_root || schema.is_embedded_resource;
                SchemaType::of(schema, is_resource).map_or(Kind::None, Kind::Known)
            }
            kind => kind.clone(),
        };
        // What the child is by the type of this.
        let below = |child: fn(&SchemaType, &str) -> Option<Arc<SchemaType>>, name: &str| match &kind {
            Kind::Known(kind) => child(kind, name).map_or(Kind::Own, Kind::Known),
            other => other.clone(),
        };
        let count = most_below(schema).and_then(|most| Some(around.count?.saturating_mul(most)));
        let inside = |kind: Kind| Around { kind, count, uncorrelatable: around.uncorrelatable.clone(), is_root: false };
        if let Some(Additional::Schema(member)) = &schema.additional {
            let around = inside(below(|kind, _| kind.element().cloned(), ""));
            self.check(member, &path.child("additionalProperties"), &around);
        }
        let properties = path.child("properties");
        for (name, property) in &schema.properties {
            let around = inside(below(|kind, name| kind.property(name).cloned(), name));
            self.check(property, &properties.key(name), &around);
        }
        if let Some(items) = &schema.items {
            let mut around = inside(below(|kind, _| kind.element().cloned(), ""));
            if schema.list_type != Some(ListType::Map) && around.uncorrelatable.is_none() {
                around.uncorrelatable = Some(path.to_string().into());
            }
            self.check(items, &path.child("items"), &around);
        }
        if schema.validations.is_empty() || self.is_broken(path) {
            return;
        }
        let rules = path.child("x-kubernetes-validations");
        let Kind::Known(kind) = kind else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                          unable to convert structural schema to CEL declarations";
            self.errors.push(FieldError::internal(rules, detail));
            return;
        };
        let place = Place::new(schema, &kind);
        // Values that are not counted are as many as fit into a request, with a comma between them.
        let count = around.count.unwrap_or((LARGEST_REQUEST / kind.smallest.saturating_add(1)) as u64);
        for (index, rule) in schema.validations.iter().enumerate() {
            // That it is too much is said once.
            if self.nodes > MOST_NODES {
                return;
            }
            let before = self.nodes;
            self.rule(rule, &rules.index(index), &place, count, around.uncorrelatable.as_deref());
            self.nodes = before.saturating_add(place.nodes.take());
            if self.nodes > MOST_NODES {
                self.errors.push(FieldError::forbidden(rules.index(index), TOO_LARGE));
            }
        }
    }

    /// Whether something else is wrong at this place or below it.
    fn is_broken(&self, path: &FieldPath<'_>) -> bool {
        if self.how.schema_errors.is_empty() {
            return false;
        }
        let path = path.to_string();
        self.how.schema_errors.iter().any(|error| {
            error.field.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    fn rule(
        &mut self,
        rule: &ValidationRule,
        path: &FieldPath<'_>,
        place: &Place<'_>,
        count: u64,
        uncorrelatable: Option<&str>,
    ) {
        let RuleEnvironments { new, stored } = self.how.environments;
        let known = self.how.known;
        let for_rule = if known.rules.contains(&rule.rule) { stored } else { new };
        let for_message = if known.messages.contains(&rule.message_expression) { stored } else { new };
        let outcome = place.compile(rule, for_rule, for_message);
        let mut uses_old_self = false;
        match &outcome {
            Outcome::Empty => {}
            Outcome::Wrong(why) => self.errors.push(FieldError::invalid(path.child("rule"), shown(rule), why.as_str())),
            Outcome::Compiled(compiled) => {
                uses_old_self = compiled.uses_old_self;
                self.costs(rule, path, compiled, count);
            }
        }
        if !uses_old_self && let Some(optional) = rule.optional_old_self {
            let detail = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(path.child("optionalOldSelf"), optional, detail));
        }
        if uses_old_self && let Some(place) = uncorrelatable {
            let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {place}");
            self.errors.push(FieldError::invalid(path.child("rule"), rule.rule.as_str(), detail));
        }
    }

    fn costs(&mut self, rule: &ValidationRule, path: &FieldPath<'_>, compiled: &CompiledRule, count: u64) {
        self.cost(path.child("rule"), "estimated rule cost", compiled.cost.saturating_mul(count));
        let at = path.child("messageExpression");
        match &compiled.message {
            None => {}
            Some(Ok(message)) => self.cost(at, "estimated messageExpression cost", message.cost),
            Some(Err(why)) => self.errors.push(FieldError::invalid(at, shown(rule), why.as_str())),
        }
    }

    fn cost(&mut self, path: FieldPath<'_>, what: &str, cost: u64) {
        if !self.how.any_cost && cost > PER_RULE {
            self.errors.push(FieldError::forbidden(path, too_costly(what, cost, PER_RULE)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= PER_SCHEMA / 100 {
            self.costliest.push((path.to_string(), cost));
            self.costliest.sort_by(|(_, one), (_, other)| other.cmp(one));
            self.costliest.truncate(NAMED);
        }
    }
}

/// How many values there are below one value of this schema, at each place.
fn most_below(schema: &Structural) -> Option<u64> {
    let checks = schema.checks.as_deref();
    let most = match schema.kind {
        Some(JsonType::Object) if schema.additional.is_some() => checks.and_then(|checks| checks.max_properties)?,
        Some(JsonType::Array) => checks.and_then(|checks| checks.max_items)?,
        _ => 1,
    };
    Some(u64::try_from(most).unwrap_or(0))
}

fn too_costly(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_string()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule as messages show it.
fn shown(rule: &ValidationRule) -> BadValue {
    // Inside a list a text is quoted as JSON has it.
    let quoted = |text: &str| {
        let listed = BadValue::of(&[text]).to_string();
        listed[1..listed.len() - 1].to_string()
    };
    BadValue::Text(format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        quoted(&rule.rule),
        quoted(&rule.message),
        quoted(&rule.message_expression),
        rule.reason.as_deref().map_or("null".to_string(), quoted),
        quoted(&rule.field_path),
        rule.optional_old_self.map_or("null".to_string(), |optional| optional.to_string()),
    ))
}
