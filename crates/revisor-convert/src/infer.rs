//! [`Inference`]: rules that two shapes suggest, how sure that is, and whether they hold.
//!
//! A proposal is meant to be read by somebody who knows what the fields mean. What breaks a law and was a guess anyway
//! is left out, and said so; what breaks one and looked right stays, with the reason.

mod alignment;
mod names;
mod shapes;

use std::fmt;
use std::sync::Arc;

use revisor_cel::Environment;
use revisor_object::{FieldErrors, Object, Value};

use crate::conversion::Conversion;
use crate::definition::Definition;
use crate::laws::{Effort, Report};
use crate::schema::VersionSchema;
use crate::spec::Spec;
use alignment::Alignment;

/// How often proposals are left out and the rest is looked at again.
const MAX_TRIES: usize = 32;

/// How far is searched before it is known what stays.
const FIRST_LOOK: Effort = Effort { objects: 300, work: 60_000 };

/// How sure a proposal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sureness {
    /// Everything speaks for it.
    Sure,
    /// Much speaks for it.
    Likely,
    /// Nothing speaks against it.
    Guess,
}

impl fmt::Display for Sureness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sureness::Sure => "sure",
            Sureness::Likely => "likely",
            Sureness::Guess => "a guess",
        })
    }
}

/// A rule that is proposed.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The rule, as it stands in a Conversion.
    pub rule: Value,
    /// How sure it is.
    pub sureness: Sureness,
    /// What speaks for it.
    pub why: String,
}

/// A step that is proposed, or the canonical form of one version.
#[derive(Debug, Clone, PartialEq)]
pub struct InferredRules {
    /// The version on the left; that of the canonical form.
    pub from: String,
    /// The version on the right; nothing for a canonical form.
    pub to: Option<String>,
    /// The rules.
    pub proposals: Vec<Proposal>,
    /// What only the left side has, and what only the right side has.
    pub alone: [Vec<String>; 2],
    /// What its author should look at.
    pub notes: Vec<String>,
}

/// What two definitions, or the versions of one, suggest.
#[derive(Debug)]
pub struct Inference {
    /// The name of the definition.
    pub name: String,
    /// The steps.
    pub steps: Vec<InferredRules>,
    /// The versions whose shape has changed without a new name.
    pub canonical: Vec<InferredRules>,
    /// Rules that were thought of and break a law, each with the reason.
    pub left_out: Vec<String>,
    /// Whether what is left holds.
    pub checked: Result<Report, FieldErrors>,
}

impl Inference {
    /// Proposes steps between these pairs of versions, and canonical forms of versions that looked otherwise in `old`.
    pub fn of(
        definition: &Arc<Definition>,
        old: Option<&Definition>,
        pairs: &[(String, String)],
        environment: &Environment,
    ) -> Inference {
        let version = |name: &str| definition.versions().iter().find(|version| version.name() == name);
        let steps = pairs.iter().filter_map(|(from, to)| Some(step(version(from)?, version(to)?)));
        let before = old.map(Definition::versions).unwrap_or_default();
        let canonical = before.iter().filter_map(|before| canonical(before, version(before.name())?));
        let mut inference = Inference {
            name: definition.name().to_owned(),
            steps: steps.collect(),
            canonical: canonical.collect(),
            left_out: Vec::new(),
            checked: Err(FieldErrors::new()),
        };
        inference.settle(definition, environment);
        inference
    }

    /// Whether what is proposed keeps the laws.
    pub fn holds(&self) -> bool {
        matches!(&self.checked, Ok(report) if report.broken.is_empty())
    }

    /// The Conversion that is proposed.
    pub fn conversion(&self) -> Object {
        let text = |text: &str| Value::from(text);
        let object = |members: Vec<(&str, Value)>| Value::Object(members.into_iter().collect());
        let rules = |inferred: &InferredRules| {
            Value::from(inferred.proposals.iter().map(|proposal| proposal.rule.clone()).collect::<Vec<_>>())
        };
        let steps: Vec<Value> = self
            .steps
            .iter()
            .map(|step| {
                let to = step.to.as_deref().unwrap_or_default();
                object(vec![("from", text(&step.from)), ("to", text(to)), ("rules", rules(step))])
            })
            .collect();
        let mut spec = vec![("steps", Value::from(steps))];
        if !self.canonical.is_empty() {
            let form = |form: &InferredRules| object(vec![("version", text(&form.from)), ("rules", rules(form))]);
            spec.push(("canonicalize", Value::from(self.canonical.iter().map(form).collect::<Vec<_>>())));
        }
        let members = [
            ("apiVersion", text("versioning.revisor.dev/v1alpha1")),
            ("kind", text("Conversion")),
            ("metadata", object(vec![("name", text(&self.name))])),
            ("spec", object(spec)),
        ];
        members.into_iter().collect()
    }

    /// Leaves out what cannot be carried out and guesses that break a law, until the rest holds or nothing of it is
    /// a guess.
    fn settle(&mut self, definition: &Arc<Definition>, environment: &Environment) {
        let compile = |inference: &Inference| {
            Conversion::compile(Arc::clone(definition), &Spec::read(&inference.conversion())?, environment)
        };
        for _ in 0..MAX_TRIES {
            let blamed: Vec<(String, String)> = match compile(self) {
                Err(errors) => errors.iter().map(|error| (error.field.to_string(), error.to_string())).collect(),
                Ok(conversion) => {
                    let broken = conversion.check(FIRST_LOOK).broken;
                    let is_guess = |field: &str| {
                        self.proposal(field).is_some_and(|(list, at)| list[at].sureness == Sureness::Guess)
                    };
                    let guesses = broken.iter().filter(|broken| is_guess(&broken.field));
                    guesses.map(|broken| (broken.field.clone(), format!("{}: {}", broken.law, broken.detail))).collect()
                }
            };
            // One at a time: with it the numbers of the others change.
            let Some((field, why)) = blamed.into_iter().next() else { break };
            let Some((list, at)) = self.proposal_mut(&field) else { break };
            let removed = list.remove(at);
            self.left_out.push(format!("{}: {why}", removed.rule.to_json()));
        }
        self.checked = compile(self).map(|conversion| conversion.check(Effort::default()));
    }

    fn proposal(&self, field: &str) -> Option<(&Vec<Proposal>, usize)> {
        let (is_step, entry, at) = place(field)?;
        let list = if is_step { &self.steps } else { &self.canonical };
        list.get(entry).map(|entry| (&entry.proposals, at)).filter(|(list, at)| *at < list.len())
    }

    fn proposal_mut(&mut self, field: &str) -> Option<(&mut Vec<Proposal>, usize)> {
        let (is_step, entry, at) = place(field)?;
        let list = if is_step { &mut self.steps } else { &mut self.canonical };
        list.get_mut(entry).map(|entry| (&mut entry.proposals, at)).filter(|(list, at)| *at < list.len())
    }
}

/// Which rule a path in a Conversion names: whether it is one of a step, of which, and which one.
fn place(field: &str) -> Option<(bool, usize, usize)> {
    let steps = field.strip_prefix("spec.steps[").map(|rest| (true, rest));
    let (is_step, rest) = steps.or_else(|| field.strip_prefix("spec.canonicalize[").map(|rest| (false, rest)))?;
    let (entry, rest) = rest.split_once(']')?;
    let (rule, _) = rest.strip_prefix(".rules[")?.split_once(']')?;
    Some((is_step, entry.parse().ok()?, rule.parse().ok()?))
}

/// The step between two versions. It is turned round if that is the only way to make one value of a list.
fn step(left: &VersionSchema, right: &VersionSchema) -> InferredRules {
    let mut ends = [left, right];
    let mut found = Alignment::of(left, right);
    if found.has_lists == [false, true] {
        ends.reverse();
        found = Alignment::of(right, left);
    } else if found.has_lists == [true, true] {
        let (left, right) = (left.name(), right.name());
        found.notes.push(format!("lists of {left} are single values in {right}, and others the other way round: a step has rules for one of both only"));
    }
    inferred(ends[0].name(), Some(ends[1].name()), found)
}

/// The rules for objects that look as a version did before.
fn canonical(before: &VersionSchema, after: &VersionSchema) -> Option<InferredRules> {
    let mut found = inferred(after.name(), None, Alignment::of(before, after));
    // What is missing is no fault of objects that are there.
    found.proposals.retain(|proposal| {
        let is_renaming = |rule: &Object| !rule.contains("add") && !rule.contains("remove");
        proposal.rule.as_object().is_some_and(is_renaming)
    });
    (!found.proposals.is_empty()).then_some(found)
}

fn inferred(from: &str, to: Option<&str>, found: Alignment<'_>) -> InferredRules {
    let Alignment { proposals, alone, notes, .. } = found;
    InferredRules {
        from: from.to_owned(),
        to: to.map(str::to_owned),
        proposals,
        alone: alone.map(|paths| paths.iter().map(ToString::to_string).collect()),
        notes,
    }
}

/// The order in which versions come about: v1alpha1, v1beta1, v1, v2. Others come before, as they stand.
pub fn version_order(name: &str) -> (u32, u8, u32) {
    let read = || -> Option<(u32, u8, u32)> {
        let rest = name.strip_prefix('v')?;
        let (major, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        let (stability, minor) = match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
            (Some(minor), _) => (0, minor.parse().ok()?),
            (_, Some(minor)) => (1, minor.parse().ok()?),
            _ if rest.is_empty() => (2, 0),
            _ => return None,
        };
        Some((major.parse().ok()?, stability, minor))
    };
    read().unwrap_or_default()
}
