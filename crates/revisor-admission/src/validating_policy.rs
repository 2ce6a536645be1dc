//! [`ValidatingPolicy`]: a ValidatingAdmissionPolicy that was compiled, and what it decides about writes.

use std::time::Duration;

use revisor_cel::{CelValue, Type};
use revisor_object::{Object, Value};

use crate::activation::{Inputs, Phase, Variable, View};
use crate::environment::{AdmissionEnvironment, Scope, VariableTypes};
use crate::expression::{ErrorType, Expression, OutOfBudget};
use crate::failure_policy::FailurePolicy;
use crate::match_conditions::{ConditionsOutcome, MatchConditions, Matched};
use crate::match_resources::MatchResources;

/// What the validations of one policy may cost together, for one binding and its parameters.
pub(crate) const BUDGET: u64 = 10_000_000;

/// The longest message that an expression may make, in bytes.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// The longest value of an annotation, in bytes.
const LONGEST_ANNOTATION: usize = 10 * 1024;

/// The kind of a policy's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamKind {
    /// Its API version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

impl ParamKind {
    pub(crate) fn read(spec: &Object) -> Option<ParamKind> {
        let kind = spec.object("paramKind")?;
        let text = |name| kind.str(name).unwrap_or_default().to_owned();
        Some(ParamKind { api_version: text("apiVersion"), kind: text("kind") })
    }

    /// Its group and version.
    pub fn group_version(&self) -> (&str, &str) {
        self.api_version.split_once('/').unwrap_or(("", &self.api_version))
    }
}

/// What both sorts of policy have.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) failure_policy: FailurePolicy,
    pub(crate) constraints: Option<MatchResources>,
    pub(crate) param_kind: Option<ParamKind>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) types: VariableTypes,
    pub(crate) conditions: MatchConditions,
    pub(crate) scope: Scope,
}

impl Common {
    pub(crate) fn compile(environment: &AdmissionEnvironment, spec: &Object) -> Common {
        let param_kind = ParamKind::read(spec);
        let scope = Scope { params: param_kind.is_some(), authorizer: true, patch: false };
        let mut types = VariableTypes::default();
        let mut variables = Vec::new();
        for variable in spec.array("variables").iter().filter_map(Value::as_object) {
            let name = variable.str("name").unwrap_or_default();
            let text = variable.str("expression").unwrap_or_default();
            let program = environment
                .compile(text, scope, Some(&types))
                .map_err(|issues| format!("compilation failed: {issues}"))
                .and_then(|program| match program.flaw() {
                    Some(flaw) => Err(format!("program instantiation failed: {flaw}")),
                    None => Ok(program),
                });
            types.declare(name, program.as_ref().ok().map(|program| program.output_type()));
            let expression = Expression { text: text.to_owned(), program };
            variables.push(Variable { name: name.to_owned(), expression });
        }
        let conditions = MatchConditions::composed(environment, spec.array("matchConditions"), scope, Some(&types));
        Common {
            failure_policy: FailurePolicy::read(spec.str("failurePolicy")),
            constraints: spec.object("matchConstraints").map(MatchResources::read),
            param_kind,
            variables,
            types,
            conditions,
            scope,
        }
    }
}

/// A policy whose expressions writes must satisfy.
#[derive(Debug)]
pub struct ValidatingPolicy {
    name: String,
    common: Common,
    validations: Vec<Validation>,
    annotations: Vec<Annotation>,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: String,
}

#[derive(Debug)]
struct Annotation {
    key: String,
    expression: Expression,
}

/// Whether a validation lets a write pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It does.
    Admit,
    /// It does not.
    Deny,
}

/// What became of one validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the write may pass.
    pub action: Action,
    /// Which of the validations it is.
    pub index: usize,
    /// Why it may not pass, or what went wrong.
    pub message: String,
    /// The reason of the status; `Invalid` if none is given.
    pub reason: String,
    /// What it is counted as.
    pub error: ErrorType,
    /// How long it took.
    pub elapsed: Duration,
}

/// What is to be noted in the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditAnnotation {
    /// Its key, below the name of the policy.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// What a policy says of a write.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What became of the validations that do not simply admit the write.
    pub decisions: Vec<Decision>,
    /// What is to be noted.
    pub annotations: Vec<AuditAnnotation>,
    /// Annotations that could not be made. Each denies the write, whatever the binding says.
    pub failed_annotations: Vec<Decision>,
    /// What its match conditions came to, if they do not simply hold.
    pub conditions: Option<ConditionsOutcome>,
}

impl ValidatingPolicy {
    /// Compiles a policy. Expressions that make no sense fail when they are evaluated.
    pub fn compile(environment: &AdmissionEnvironment, name: &str, object: &Object) -> ValidatingPolicy {
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        let common = Common::compile(environment, spec);
        let compile = |text: &str, scope: Scope, wanted: &[Type]| {
            Expression::compile(environment, text, scope, Some(&common.types), wanted)
        };
        let message_scope = Scope { authorizer: false, ..common.scope };
        let validation = |validation: &Object| {
            let text = |name| validation.str(name).unwrap_or_default();
            Validation {
                expression: compile(text("expression"), common.scope, &[Type::Bool]),
                message: text("message").trim().to_owned(),
                message_expression: Some(text("messageExpression"))
                    .filter(|text| !text.is_empty())
                    .map(|text| compile(text, message_scope, &[Type::String])),
                reason: validation.str("reason").unwrap_or("Invalid").to_owned(),
            }
        };
        let annotation = |annotation: &Object| Annotation {
            key: annotation.str("key").unwrap_or_default().to_owned(),
            expression: compile(
                annotation.str("valueExpression").unwrap_or_default(),
                common.scope,
                &[Type::String, Type::Null],
            ),
        };
        let objects = |name| spec.array(name).iter().filter_map(Value::as_object);
        ValidatingPolicy {
            name: name.to_owned(),
            validations: objects("validations").map(validation).collect(),
            annotations: objects("auditAnnotations").map(annotation).collect(),
            common,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What becomes of a write when it has no answer.
    pub fn failure_policy(&self) -> FailurePolicy {
        self.common.failure_policy
    }

    /// What it applies to.
    pub fn constraints(&self) -> Option<&MatchResources> {
        self.common.constraints.as_ref()
    }

    /// The kind of its parameters.
    pub fn param_kind(&self) -> Option<&ParamKind> {
        self.common.param_kind.as_ref()
    }

    /// What it says of a write that it applies to.
    pub fn validate(&self, inputs: &Inputs<'_>) -> Verdict {
        let mut verdict = Verdict::default();
        let conditions = self.common.conditions.hold_with(inputs, &self.common.variables, self.failure_policy());
        match &conditions.matched {
            Matched::Yes => {}
            Matched::No { .. } => return Verdict { conditions: Some(conditions), ..verdict },
            Matched::Failed(why) => {
                let failed = self.failed_altogether(why.clone());
                return Verdict { conditions: Some(conditions), ..failed };
            }
        }
        if let Err(spent) = self.decide(inputs, &mut verdict).and_then(|()| self.annotate(inputs, &mut verdict)) {
            return self.failed_altogether(spent.to_string());
        }
        verdict
    }

    fn failed(&self, index: usize, message: String, elapsed: Duration) -> Decision {
        let action = match self.failure_policy() {
            FailurePolicy::Ignore => Action::Admit,
            FailurePolicy::Fail => Action::Deny,
        };
        let error = ErrorType::of_message(&message);
        Decision { action, index, message, reason: String::new(), error, elapsed }
    }

    fn failed_altogether(&self, why: String) -> Verdict {
        Verdict { decisions: vec![self.failed(0, why, Duration::ZERO)], ..Verdict::default() }
    }

    fn decide(&self, inputs: &Inputs<'_>, verdict: &mut Verdict) -> Result<(), OutOfBudget> {
        let view = View { authorizer: true, namespace: true, plain_request: false };
        let mut phase = Phase::new(inputs, view, &self.common.variables, BUDGET);
        for (index, validation) in self.validations.iter().enumerate() {
            let evaluated = phase.evaluate(&validation.expression)?;
            match evaluated.value {
                Ok(CelValue::Bool(true)) => {}
                Ok(_) => verdict.decisions.push(Decision {
                    action: Action::Deny,
                    index,
                    message: String::new(),
                    reason: validation.reason.clone(),
                    error: ErrorType::InvalidError,
                    elapsed: evaluated.elapsed,
                }),
                Err(why) => verdict.decisions.push(self.failed(index, why, evaluated.elapsed)),
            }
        }
        self.explain(inputs, phase.remaining(), verdict);
        Ok(())
    }

    /// Says why validations were not satisfied.
    ///
    /// DIFFERENCE: the original evaluates the message expressions of all validations, also of those that are satisfied,
    /// and denies a write only because they cost too much together.
    fn explain(&self, inputs: &Inputs<'_>, budget: u64, verdict: &mut Verdict) {
        let view = View { authorizer: false, namespace: true, plain_request: false };
        let mut phase = Phase::new(inputs, view, &self.common.variables, budget);
        let mut spent = None;
        for decision in verdict.decisions.iter_mut().filter(|decision| decision.message.is_empty()) {
            let validation = &self.validations[decision.index];
            let mut made = String::new();
            if let Some(expression) = validation.message_expression.as_ref().filter(|_| spent.is_none()) {
                match phase.evaluate(expression) {
                    Ok(evaluated) => made = evaluated.value.map_or_else(|_| String::new(), |value| message_of(&value)),
                    Err(out_of_budget) => spent = Some(out_of_budget),
                }
            }
            decision.message = match () {
                () if !made.is_empty() => made,
                () if !validation.message.is_empty() => validation.message.clone(),
                () => format!("failed expression: {}", validation.expression.text.trim()),
            };
        }
        if let Some(out_of_budget) = spent {
            for decision in &mut verdict.decisions {
                let message = format!("failed messageExpression: {out_of_budget}");
                *decision = self.failed(decision.index, message, decision.elapsed);
            }
        }
    }

    fn annotate(&self, inputs: &Inputs<'_>, verdict: &mut Verdict) -> Result<(), OutOfBudget> {
        let view = View { authorizer: false, namespace: true, plain_request: false };
        let mut phase = Phase::new(inputs, view, &self.common.variables, BUDGET);
        for (index, annotation) in self.annotations.iter().enumerate() {
            let evaluated = phase.evaluate(&annotation.expression)?;
            match evaluated.value {
                Ok(CelValue::String(text)) => {
                    let value = clipped(text.trim(), LONGEST_ANNOTATION);
                    if !value.is_empty() {
                        let (key, value) = (annotation.key.clone(), value.to_owned());
                        verdict.annotations.push(AuditAnnotation { key, value });
                    }
                }
                Ok(CelValue::Null) => {}
                Ok(other) => {
                    let message = format!(
                        "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either string \
                         or null.",
                        annotation.expression.text,
                        other.type_name()
                    );
                    let failed = self.failed(index, message, evaluated.elapsed);
                    verdict.failed_annotations.push(Decision { action: Action::Deny, ..failed });
                }
                Err(_) if self.failure_policy() == FailurePolicy::Ignore => {}
                Err(why) => verdict.failed_annotations.push(self.failed(index, why, evaluated.elapsed)),
            }
        }
        Ok(())
    }
}

/// The message that an expression makes; nothing if it is none that can be shown.
fn message_of(value: &CelValue<'_>) -> String {
    let text = value.as_str().unwrap_or_default().trim();
    if text.len() > LONGEST_MESSAGE || text.contains('\n') { String::new() } else { text.to_owned() }
}

/// The beginning of a text that has at most so many bytes.
fn clipped(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests;
