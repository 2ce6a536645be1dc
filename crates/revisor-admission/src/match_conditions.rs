//! [`MatchConditions`]: expressions that narrow down what a webhook or policy is asked about.

use std::time::Duration;

use revisor_cel::Type;
use revisor_object::{Object, Value};

use crate::activation::{Inputs, Phase, Variable, View};
use crate::environment::{AdmissionEnvironment, Scope, VariableTypes};
use crate::expression::Expression;
use crate::failure_policy::FailurePolicy;

/// What the conditions of one webhook or policy may cost together.
const BUDGET: u64 = 2_500_000;

/// Expressions that must all be true.
#[derive(Debug)]
pub struct MatchConditions(Vec<Condition>);

#[derive(Debug)]
struct Condition {
    name: String,
    expression: Expression,
}

/// Whether the conditions hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    /// All of them do.
    Yes,
    /// One does not, or there is no answer and that is to be ignored.
    No {
        /// The name of the first that does not; empty if there is no answer.
        condition: String,
    },
    /// There is no answer.
    Failed(String),
}

/// What the evaluation of conditions came to, and what it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionsOutcome {
    /// Whether they hold.
    pub matched: Matched,
    /// How many had no answer before one decided.
    pub failed: usize,
    /// How long it took.
    pub elapsed: Duration,
}

impl ConditionsOutcome {
    const UNCONDITIONAL: ConditionsOutcome =
        ConditionsOutcome { matched: Matched::Yes, failed: 0, elapsed: Duration::ZERO };
}

impl MatchConditions {
    /// The conditions of a webhook, which has no parameters.
    pub fn compile(environment: &AdmissionEnvironment, conditions: &[Value]) -> MatchConditions {
        MatchConditions::composed(environment, conditions, Scope { authorizer: true, ..Scope::default() }, None)
    }

    pub(crate) fn composed(
        environment: &AdmissionEnvironment,
        conditions: &[Value],
        scope: Scope,
        variables: Option<&VariableTypes>,
    ) -> MatchConditions {
        let compile = |condition: &Object| Condition {
            name: condition.str("name").unwrap_or_default().to_owned(),
            expression: Expression::compile(
                environment,
                condition.str("expression").unwrap_or_default(),
                scope,
                variables,
                &[Type::Bool],
            ),
        };
        MatchConditions(conditions.iter().filter_map(Value::as_object).map(compile).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether they hold for a write. One that is false decides, whatever the others are.
    pub fn hold(&self, inputs: &Inputs<'_>, failure_policy: FailurePolicy) -> ConditionsOutcome {
        self.hold_with(inputs, &[], failure_policy)
    }

    pub(crate) fn hold_with(
        &self,
        inputs: &Inputs<'_>,
        variables: &[Variable],
        failure_policy: FailurePolicy,
    ) -> ConditionsOutcome {
        if self.0.is_empty() {
            return ConditionsOutcome::UNCONDITIONAL;
        }
        let begun = (inputs.clock)();
        let view = View { authorizer: true, namespace: false, plain_request: true };
        let mut phase = Phase::new(inputs, view, variables, BUDGET);
        let (mut errors, mut refusal, mut failed) = (Vec::new(), None, 0);
        for condition in &self.0 {
            match phase.evaluate(&condition.expression) {
                Err(spent) => {
                    errors = vec![spent.to_string()];
                    refusal = None;
                    failed = 0;
                    break;
                }
                Ok(evaluated) => match evaluated.value {
                    Err(error) => {
                        failed += usize::from(refusal.is_none());
                        if !errors.contains(&error) {
                            errors.push(error);
                        }
                    }
                    Ok(value) if value.as_bool() == Some(false) && refusal.is_none() => refusal = Some(&condition.name),
                    _ => {}
                },
            }
        }
        let matched = match (refusal, failure_policy) {
            (Some(condition), _) => Matched::No { condition: condition.clone() },
            (None, _) if errors.is_empty() => Matched::Yes,
            (None, FailurePolicy::Ignore) => Matched::No { condition: String::new() },
            (None, FailurePolicy::Fail) => Matched::Failed(match errors.as_slice() {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            }),
        };
        ConditionsOutcome { matched, failed, elapsed: (inputs.clock)().saturating_sub(begun) }
    }
}
