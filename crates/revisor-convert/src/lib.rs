//! Conversions between the versions of a custom resource: a handful of rules that lead in both directions, lose nothing,
//! and are checked before they touch an object.
//!
//! A [`Spec`] is what a `Conversion` says. Beside a [`Definition`] it becomes a [`Conversion`], which reads objects in
//! any version and writes them through any version; what the stored version cannot say is kept beside it ([`Stored`]).
//! [`Conversion::check`] looks for objects that break a [`Law`]; a [`Generator`] makes them from the schemas.
//! An [`Inference`] proposes rules from the shapes of two versions.
//!
//! Pure (invariant P1): no I/O, no clock, no randomness. Everything is bounded: the length of paths and expressions, the
//! number of rules, what expressions cost, how far is searched.

mod canonical;
mod conversion;
mod definition;
mod generate;
mod infer;
mod kept;
mod laws;
mod path;
mod program;
mod schema;
mod spec;
mod step;
mod stored;

pub use conversion::{Conversion, ConvertError, Opened, Written};
pub use definition::{Definition, DefinitionError};
pub use generate::{Dice, Generator, shrink};
pub use infer::{Inference, InferredRules, Proposal, Sureness, version_order};
pub use kept::{Items, Kept, KeptError};
pub use laws::{Broken, Effort, Law, Report, StepReport, Verdict};
pub use path::{Path, PathError, Segment};
pub use schema::VersionSchema;
pub use spec::{Action, Canonical, Compute, Filled, Rule, Spec, Step, Tolerance};
pub use stored::{KEPT_ANNOTATION, Stored, read_kept, take_annotation};
