//! [`Finding`]: one thing that a change does, and [`Report`]: all of them.

use std::fmt;

use revisor_object::Value;

/// Whom a change breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Nobody.
    Additive,
    /// Who writes: something that was accepted is refused.
    BreaksWriters,
    /// Who reads: something is gone or means something else.
    BreaksReaders,
    /// Everybody.
    BreaksAll,
}

impl Class {
    /// All of them, the worst first.
    pub const ALL: [Class; 4] = [Class::BreaksAll, Class::BreaksReaders, Class::BreaksWriters, Class::Additive];

    /// How large a step of the semantic version it calls for.
    pub fn step(self) -> SemverStep {
        match self {
            Class::Additive => SemverStep::Patch,
            Class::BreaksWriters | Class::BreaksReaders => SemverStep::Minor,
            Class::BreaksAll => SemverStep::Major,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Additive => "additive",
            Class::BreaksWriters => "breaks writers",
            Class::BreaksReaders => "breaks readers",
            Class::BreaksAll => "breaks all",
        })
    }
}

/// A step from one semantic version to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SemverStep {
    /// The same version.
    None,
    /// The third number.
    Patch,
    /// The second.
    Minor,
    /// The first.
    Major,
}

impl fmt::Display for SemverStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SemverStep::None => "none",
            SemverStep::Patch => "patch",
            SemverStep::Minor => "minor",
            SemverStep::Major => "major",
        })
    }
}

/// One thing that a change does.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The name of the definition.
    pub definition: String,
    /// The version that it concerns; none if all of them.
    pub version: Option<String>,
    /// The field as rules write it (`.spec.ports[*].name`), or the place in the definition (`spec.scope`).
    pub path: String,
    /// Whom it breaks.
    pub class: Class,
    /// What is different, and whom that concerns.
    pub message: String,
    /// An object that shows it.
    pub witness: Option<Value>,
}

/// What a change does.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The worst first.
    pub findings: Vec<Finding>,
    /// How many more there are that are not told.
    pub left_out: usize,
}

impl Report {
    /// The largest step that a finding calls for.
    pub fn step(&self) -> SemverStep {
        self.findings.iter().map(|finding| finding.class.step()).max().unwrap_or(SemverStep::None)
    }

    /// Whether anybody is broken.
    pub fn breaks(&self) -> bool {
        self.step() > SemverStep::Patch
    }
}
