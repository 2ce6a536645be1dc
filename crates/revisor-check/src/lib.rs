//! What a change of a custom resource breaks, and for whom: [`Crd::compare`] holds two definitions against each other and
//! answers [`Finding`]s, each with a [`Class`] and, where an object can show it, a witness: the smallest object found that
//! was accepted and is not any more, or that shows something else.
//!
//! A difference of two schemas is only suspected of breaking something (`keywords.rs`, `walk.rs`); whether it does is
//! shown by an object or is not so (`stage.rs`). Patterns are compared as automata, rules in CEL by a search.
//!
//! Pure (invariant P1), and bounded: see [`Effort`].

mod budget;
mod crd;
mod facets;
mod finding;
mod keywords;
mod pairs;
mod reduction;
mod rules;
mod semver;
mod stage;
mod v1beta1;
mod values;
mod walk;

pub use crd::{Crd, CrdError};
pub use finding::{Class, Finding, Report, SemverStep};
pub use semver::{Declared, SEMVER_ANNOTATION, SEMVER_POLICY_ANNOTATION, SemverError, declared, enforces_semver};
pub use v1beta1::to_v1;

/// How far is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// How many objects are held against the schemas altogether.
    pub objects: usize,
    /// How many of them for one rule in CEL.
    pub objects_of_rule: usize,
    /// How many findings are told.
    pub findings: usize,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { objects: 60_000, objects_of_rule: 1200, findings: 1000 }
    }
}
