//! Which writes webhooks and policies are asked about, and what policies say of them.
//!
//! A [`MatchResources`] says what a policy applies to; webhooks share its [`Rule`]s. [`ValidatingPolicy`] and
//! [`MutatingPolicy`] are policies that were compiled, once; they answer for the [`Inputs`] of a write what is to become
//! of it. Where policies, bindings and parameters come from, and who is told of a denial, is for the callers.
//!
//! Pure (invariant P1): no I/O, no clock, no randomness. Every evaluation is within the budget of its policy.

mod activation;
mod binding;
mod environment;
mod expression;
mod failure_policy;
#[cfg(test)]
mod fixture;
mod match_conditions;
mod match_resources;
mod mutating_policy;
mod mutation;
mod request;
mod rule;
mod type_check;
mod validating_policy;

pub use activation::{Inputs, RequestValue, Typed};
pub use binding::{ParamRef, PolicyBinding, ValidationAction};
pub use environment::{AdmissionEnvironment, Scope, VariableTypes, output_problem};
pub use expression::ErrorType;
pub use failure_policy::FailurePolicy;
pub use match_conditions::{ConditionsOutcome, MatchConditions, Matched};
pub use match_resources::{MatchPolicy, MatchResources, Unmatched};
pub use mutating_policy::{MutatingPolicy, Mutation, MutationError, Patch};
pub use mutation::apply_configuration::merge_configuration;
pub use request::{AdmissionRequest, GroupVersionKind, GroupVersionResource, Operation, UserInfo};
pub use rule::{Rule, RuleTarget};
pub use type_check::{CheckedType, ExpressionWarning, MOST_TYPES, TypeCheck};
pub use validating_policy::{Action, AuditAnnotation, Decision, ParamKind, ValidatingPolicy, Verdict};
