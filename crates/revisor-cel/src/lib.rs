//! CEL as the Kubernetes API speaks it: an [`Environment`] says what an expression may speak of, and turns its text into
//! a [`Program`] or says what is wrong with it, in the words that clients know.
//!
//! The libraries are those that the server's release has. What they declare is in the tables of this crate; what a
//! particular resource lets its expressions speak of is for the callers.
//!
//! Pure (invariant P1): no I/O, no clock, no randomness. An expression costs what its length allows: parsing is linear,
//! and depth, nodes and types are bounded.

mod ast;
mod builder;
mod checker;
mod environment;
mod lexer;
mod libraries;
mod literal_checks;
mod macros;
mod parser;
mod quoted;
mod recovery;
mod source;
#[cfg(test)]
mod tests;
mod token;
mod types;
mod unify;

pub use ast::{Call, Comprehension, Element, Entry, Expr, ExprId, ExprKind, FieldInit, Literal, Select, Struct};
pub use environment::{Environment, Issues, ObjectType, Program, Reference};
pub use libraries::Library;
pub use source::{Issue, Location};
pub use types::{Compound, Param, Shape, Type};
