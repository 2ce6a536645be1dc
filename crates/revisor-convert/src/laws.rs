//! [`Conversion::check`]: whether the rules of a Conversion keep the laws, and if not, for which object.
//!
//! Where the shapes of both sides decide it, a step is proved (`step/proof.rs`). Otherwise objects are made of the
//! schemas, those at their bounds first, converted and compared. The search is bounded by work, not by time, and is the
//! same every time. What is found is made as small as can be.

mod blame;
mod canonical;
mod steps;
mod ways;

use std::fmt;

use revisor_object::{BadValue, FieldError, Value};

use crate::conversion::Conversion;

/// A law of conversions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Law {
    /// There and back again is what it was.
    ThereAndBack,
    /// What comes out is valid.
    Valid,
    /// What is written is what is read, and nothing else has changed.
    Written,
    /// Two ways give the same.
    AnyWay,
    /// To canonicalize twice is to canonicalize once.
    Once,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Law::ThereAndBack => "L1",
            Law::Valid => "L2",
            Law::Written => "L3",
            Law::AnyWay => "L4",
            Law::Once => "L5",
        })
    }
}

/// A law that is broken, and by what.
#[derive(Debug, Clone, PartialEq)]
pub struct Broken {
    /// The law.
    pub law: Law,
    /// The rule or the step that is to blame, as a path in the Conversion.
    pub field: String,
    /// What is wrong.
    pub detail: String,
    /// The smallest object found.
    pub object: Value,
    /// What it becomes.
    pub becomes: Option<Value>,
    /// What comes back, or what the other way or the second time gives.
    pub back: Option<Value>,
}

impl Broken {
    /// What is to be told: the law, what is wrong, and the objects, each on a line of its own.
    pub fn message(&self) -> String {
        let mut text = format!("{}: {}\nobject: {}", self.law, self.detail, self.object.to_json());
        for (label, value) in [("becomes", &self.becomes), ("back", &self.back)] {
            if let Some(value) = value {
                text.push_str(&format!("\n{label}: {}", value.to_json()));
            }
        }
        text
    }

    /// As an error of the Conversion.
    pub fn error(&self) -> FieldError {
        FieldError::invalid(&self.field, BadValue::Omitted, self.message())
    }
}

/// What is known of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The shapes decide it.
    Proved,
    /// No object was found that breaks a law.
    Tested,
    /// The same, apart from what may be lost.
    Tolerated,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Proved => "Proved",
            Verdict::Tested => "Tested",
            Verdict::Tolerated => "Tolerated",
        })
    }
}

/// What is known of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    /// Where it stands in the Conversion.
    pub field: String,
    /// The version on its left.
    pub from: String,
    /// The version on its right.
    pub to: String,
    /// What is known.
    pub verdict: Verdict,
    /// How many objects were tried.
    pub objects: usize,
}

/// What is known of a Conversion.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Of each step.
    pub steps: Vec<StepReport>,
    /// The laws that are broken, each once.
    pub broken: Vec<Broken>,
    /// What its author should know.
    pub warnings: Vec<String>,
}

/// How far to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// How many objects are tried in each direction of a step.
    pub objects: usize,
    /// How many values these have together.
    pub work: usize,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { objects: 1500, work: 300_000 }
    }
}

impl Conversion {
    /// Whether the rules keep the laws.
    pub fn check(&self, effort: Effort) -> Report {
        self.search(effort, &|| false).report()
    }

    /// The same for somebody who may not have the time: nothing once that `is_over`. Asked before each step, which are
    /// bounded by work.
    pub fn check_in_time(&self, effort: Effort, is_over: &dyn Fn() -> bool) -> Option<Report> {
        let search = self.search(effort, is_over);
        (!is_over()).then(|| search.report())
    }

    fn search(&self, effort: Effort, is_over: &dyn Fn() -> bool) -> Search<'_> {
        let mut search = Search::new(self, effort);
        for edge in 0..self.steps.len() {
            if is_over() {
                return search;
            }
            search.step(edge);
        }
        search.two_ways();
        search.canonical();
        search
    }
}

/// The search, and what it has found so far.
struct Search<'c> {
    conversion: &'c Conversion,
    effort: Effort,
    broken: Vec<Broken>,
    reports: Vec<StepReport>,
    /// Which tolerances were needed.
    needed: Vec<bool>,
    warnings: Vec<String>,
}

impl<'c> Search<'c> {
    fn new(conversion: &'c Conversion, effort: Effort) -> Search<'c> {
        let needed = vec![false; conversion.tolerate.len()];
        Search { conversion, effort, broken: Vec::new(), reports: Vec::new(), needed, warnings: Vec::new() }
    }

    fn is_broken(&self, law: Law) -> bool {
        self.broken.iter().any(|broken| broken.law == law)
    }

    /// Whether two objects of a version are the same, apart from what may be lost. If only apart from that, the
    /// tolerances that were needed are answered.
    fn compare(&self, version: usize, one: &Value, other: &Value) -> Comparison {
        if one == other {
            return Comparison::Same;
        }
        let name = self.conversion.definition().versions()[version].name();
        let (mut one, mut other) = (one.clone(), other.clone());
        let mut needed = Vec::new();
        for (number, tolerance) in self.conversion.tolerate.iter().enumerate() {
            if tolerance.version == name {
                let before = (one.clone(), other.clone());
                tolerance.path.clear(&mut one);
                tolerance.path.clear(&mut other);
                let differed = tolerance.path.find(&before.0) != tolerance.path.find(&before.1);
                if differed || before.0 != one || before.1 != other {
                    needed.push(number);
                }
            }
        }
        if one == other { Comparison::Tolerated(needed) } else { Comparison::Different }
    }

    fn report(self) -> Report {
        let Search { conversion, mut broken, mut reports, needed, warnings: found, .. } = self;
        broken.sort_by_key(|broken| broken.law);
        let mut warnings = conversion.warnings().to_vec();
        warnings.extend(found);
        for (tolerance, needed) in conversion.tolerate.iter().zip(needed) {
            if !needed && broken.is_empty() {
                let what = format!("nothing is lost at {} of {}", tolerance.path, tolerance.version);
                warnings.push(format!("{}: {what}, so there is nothing to tolerate", tolerance.field));
            }
        }
        reports.sort_by(|one, other| one.field.cmp(&other.field));
        reports.sort_by_key(|report| conversion.steps.iter().position(|edge| edge.step.field == report.field));
        Report { steps: reports, broken, warnings }
    }
}

enum Comparison {
    Same,
    Tolerated(Vec<usize>),
    Different,
}
