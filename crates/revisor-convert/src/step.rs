//! [`CompiledStep`]: the rules between two versions, made ready in both directions.
//!
//! Rules claim places: a place of one side that a rule names is that rule's alone (`step/claims.rs`). What is left is
//! linked by itself where both sides have it at the same place with a type that fits, and is kept where only one side
//! has it. From the links follow a program for each direction (`step/links.rs`) and, for each side, at which places
//! something may have to be kept; and whether shapes alone show that nothing is lost (`step/proof.rs`).

mod claims;
mod expressions;
mod links;
mod proof;

use revisor_cel::Environment;
use revisor_object::{FieldErrors, Value};

use crate::kept::{Keep, Kept};
use crate::path::Path;
use crate::program::{Failure, Node};
use crate::schema::VersionSchema;
use crate::spec::Step;

use claims::Claims;
pub(crate) use claims::typed;
pub(crate) use expressions::Expressions;

/// A side of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    /// `from`
    Left,
    /// `to`
    Right,
}

impl Side {
    pub(crate) const BOTH: [Side; 2] = [Side::Left, Side::Right];

    pub(crate) fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

/// The rules between two versions, ready.
#[derive(Debug)]
pub(crate) struct CompiledStep {
    /// Where the step stands in the Conversion.
    pub(crate) field: String,
    /// How to get to each side from the other.
    to: [Node; 2],
    /// What may be kept for each side.
    keep: [Keep; 2],
    /// The rules, with the places that they write on each side.
    pub(crate) rules: Vec<RulePlaces>,
    /// Whether the shapes of both sides decide that it keeps the laws.
    pub(crate) is_proved: bool,
    /// The constants in rules and expressions, which are worth a try.
    pub(crate) hints: Vec<Value>,
    /// What its author should know.
    pub(crate) warnings: Vec<String>,
}

/// A rule and the places that it writes.
#[derive(Debug, Clone)]
pub(crate) struct RulePlaces {
    /// Where it stands in the Conversion.
    pub(crate) field: String,
    pub(crate) places: [Vec<Path>; 2],
}

impl CompiledStep {
    /// Makes a step ready. Answers everything that keeps its rules from being carried out.
    pub(crate) fn compile(
        step: &Step,
        versions: [&VersionSchema; 2],
        environment: &Environment,
    ) -> Result<CompiledStep, FieldErrors> {
        let mut claims = Claims::gather(step, versions, environment)?;
        let keep = Side::BOTH.map(|side| claims.keep_root(side));
        let to = claims.take_programs();
        let errors = claims.unreached();
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(CompiledStep {
            field: step.field.clone(),
            to,
            keep,
            is_proved: claims.is_proved(),
            hints: claims.hints(),
            warnings: claims.warnings(),
            rules: claims.into_rules(),
        })
    }

    /// What the other side's object is on this side, as far as it says.
    pub(crate) fn run(&self, to: Side, object: &Value) -> Result<Value, Failure> {
        self.to[to as usize].run(object)
    }

    /// What `real` says and `made`, which came from the other side, does not.
    pub(crate) fn difference(&self, side: Side, real: &Value, made: &Value) -> Option<Kept> {
        self.keep[side as usize].difference(Some(real), Some(made))
    }

    /// Brings back what is kept.
    pub(crate) fn restore(&self, side: Side, kept: &Kept, made: Value) -> Value {
        let mut place = Some(made);
        self.keep[side as usize].restore(kept, &mut place);
        place.unwrap_or_default()
    }

    /// Whether anything may have to be kept for a side.
    pub(crate) fn keeps(&self, side: Side) -> bool {
        self.keep[side as usize] != Keep::Nothing
    }
}
