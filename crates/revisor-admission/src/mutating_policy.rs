//! [`MutatingPolicy`]: a MutatingAdmissionPolicy that was compiled, and the patches that it makes for writes.

use std::time::Duration;

use revisor_cel::Type;
use revisor_merge::JsonPatch;
use revisor_object::{Object, Value};

use crate::activation::{Inputs, Phase, View};
use crate::environment::{AdmissionEnvironment, Scope};
use crate::expression::{ErrorType, Expression};
use crate::failure_policy::FailurePolicy;
use crate::match_conditions::ConditionsOutcome;
use crate::match_resources::MatchResources;
use crate::mutation::apply_configuration::configuration_of;
use crate::mutation::json_patch::patch_of;
use crate::validating_policy::{BUDGET, Common, ParamKind};

/// A policy whose expressions say how writes are changed.
#[derive(Debug)]
pub struct MutatingPolicy {
    name: String,
    common: Common,
    mutations: Vec<Mutation>,
    reinvoked: bool,
}

/// One change.
#[derive(Debug)]
pub struct Mutation {
    sort: Sort,
    expression: Expression,
}

#[derive(Debug, Clone, Copy)]
enum Sort {
    JsonPatch,
    ApplyConfiguration,
}

/// What is to be done to an object.
#[derive(Debug, Clone)]
pub enum Patch {
    /// These operations.
    Json(JsonPatch),
    /// This is to be laid over it: see [`merge_configuration`](crate::merge_configuration).
    Configuration(Object),
}

/// Why there is no patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MutationError {
    /// What happened.
    pub message: String,
}

impl MutationError {
    /// The error with this message.
    pub fn new(message: impl Into<String>) -> MutationError {
        MutationError { message: message.into() }
    }

    /// What it is counted as.
    pub fn kind(&self) -> ErrorType {
        ErrorType::of_message(&self.message)
    }
}

impl MutatingPolicy {
    /// Compiles a policy. Expressions that make no sense fail when they are evaluated.
    pub fn compile(environment: &AdmissionEnvironment, name: &str, object: &Object) -> MutatingPolicy {
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        let common = Common::compile(environment, spec);
        let scope = Scope { patch: true, ..common.scope };
        let mutation = |mutation: &Object| {
            let (sort, member, wanted) = match mutation.str("patchType")? {
                "JSONPatch" => (Sort::JsonPatch, "jsonPatch", Type::list(Type::object("JSONPatch"))),
                "ApplyConfiguration" => (Sort::ApplyConfiguration, "applyConfiguration", Type::object("Object")),
                _ => return None,
            };
            let text = mutation.object(member)?.str("expression").unwrap_or_default();
            let expression = Expression::compile(environment, text, scope, Some(&common.types), &[wanted]);
            Some(Mutation { sort, expression })
        };
        MutatingPolicy {
            name: name.to_owned(),
            mutations: spec.array("mutations").iter().filter_map(Value::as_object).filter_map(mutation).collect(),
            reinvoked: spec.str("reinvocationPolicy") == Some("IfNeeded"),
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

    /// Whether it is asked again when others have changed the object since.
    pub fn is_reinvoked(&self) -> bool {
        self.reinvoked
    }

    /// Its changes, in the order in which they are made.
    pub fn mutations(&self) -> &[Mutation] {
        &self.mutations
    }

    /// Whether its match conditions hold.
    pub fn conditions_hold(&self, inputs: &Inputs<'_>) -> ConditionsOutcome {
        self.common.conditions.hold_with(inputs, &self.common.variables, self.failure_policy())
    }

    /// What one of its mutations does to the object at hand, and how long it took to find that out.
    pub fn patch(&self, mutation: &Mutation, inputs: &Inputs<'_>) -> (Result<Patch, MutationError>, Duration) {
        if let Err(problem) = &mutation.expression.program {
            return (Err(MutationError::new(problem.as_str())), Duration::ZERO);
        }
        let view = View { authorizer: true, namespace: true, plain_request: false };
        let evaluated = match Phase::new(inputs, view, &self.common.variables, BUDGET).evaluate(&mutation.expression) {
            Ok(evaluated) => evaluated,
            Err(spent) => return (Err(MutationError::new(spent.to_string())), Duration::ZERO),
        };
        let patch = evaluated.value.and_then(|value| match mutation.sort {
            Sort::JsonPatch => patch_of(&value).map(Patch::Json),
            Sort::ApplyConfiguration => configuration_of(&value).map(Patch::Configuration),
        });
        (patch.map_err(MutationError::new), evaluated.elapsed)
    }
}

#[cfg(test)]
mod tests;
