//! CEL as the Kubernetes API speaks it: an [`Environment`] says what an expression may speak of, and turns its text into
//! a [`Program`] or says what is wrong with it, in the words that clients know.
//!
//! The libraries are those that the server's release has. What they declare is in the tables of this crate; what a
//! particular resource lets its expressions speak of is for the callers.
//!
//! [`Program::evaluate`] answers what an expression is for given values, within a [`Budget`].
//!
//! Pure (invariant P1): no I/O, no clock, no randomness. An expression costs what its length allows: parsing is linear,
//! and depth, nodes and types are bounded.

mod ast;
mod builder;
mod checker;
mod cost;
mod environment;
mod eval;
mod lexer;
mod libraries;
mod literal_checks;
mod macros;
mod parser;
mod quoted;
mod recovery;
mod rules;
mod schema_types;
mod source;
#[cfg(test)]
mod tests;
mod token;
mod types;
mod unify;

pub use ast::{Call, Comprehension, Element, Entry, Expr, ExprId, ExprKind, FieldInit, Literal, Select, Struct};
pub use cost::Range;
pub use environment::{Environment, Issues, ObjectType, Program, Reference};
pub use eval::activation::Activation;
pub use eval::authorization::{Authorization, Authorizer, Decision, Question, ResourceTarget, ServiceAccount, Target};
pub use eval::error::{Budget, EvalError};
pub use eval::escaping::is_reserved;
pub use eval::list::List;
pub use eval::map::Map;
pub use eval::opaque::Opaque;
pub use eval::value::{Blob, CelValue, Structure, Text};
pub use libraries::Library;
pub use rules::{
    CompiledRules, DefaultRules, KnownExpressions, OBJECT_BUDGET, RuleCheck, RuleEnvironments, Subject, Verdict,
    check_rule_texts, check_rules, valid_field_path,
};
pub use schema_types::SchemaType;
pub use source::{Issue, Location};
pub use types::{Compound, Param, Shape, Type};
