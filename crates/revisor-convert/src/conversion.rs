//! [`Conversion`]: the steps between the versions of a definition, and what is done with objects by them.
//!
//! An object is stored in one version, and beside it lies what other versions say beyond that ([`Stored`]). Which way an
//! object takes is a matter of the graph alone: the shortest one, and of several the one whose steps come first. What is
//! kept for a version is kept beside its neighbour on the way to the stored one.

use std::collections::BTreeMap;
use std::sync::Arc;

use revisor_cel::Environment;
use revisor_object::{FieldError, FieldErrors, Value};

use crate::canonical::Canonicalizer;
use crate::definition::Definition;
use crate::kept::Kept;
use crate::program::Failure;
use crate::spec::{Spec, Tolerance};
use crate::step::{CompiledStep, Side};
use crate::stored::Stored;

/// The rules of a definition, ready.
#[derive(Debug)]
pub struct Conversion {
    pub(crate) definition: Arc<Definition>,
    pub(crate) steps: Vec<Edge>,
    /// For each version the way to all others: through which step, and from which version.
    ways: Vec<Vec<Option<Hop>>>,
    pub(crate) canonical: Vec<Canonicalizer>,
    pub(crate) tolerate: Vec<Tolerance>,
    computes: bool,
    warnings: Vec<String>,
}

/// A step in the graph of versions.
#[derive(Debug)]
pub(crate) struct Edge {
    /// The versions of its sides.
    pub(crate) ends: [usize; 2],
    pub(crate) step: CompiledStep,
}

/// The last part of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) from: usize,
    pub(crate) edge: usize,
    /// The side of the step that it ends at.
    pub(crate) to: Side,
}

/// A stored object that was read to be written again.
#[derive(Debug)]
pub struct Opened {
    stored: Stored,
    /// What is kept for the version that it is stored in beside the one that it was read in, where that is known.
    beside: Option<(Hop, Option<Kept>)>,
}

impl From<Stored> for Opened {
    fn from(stored: Stored) -> Opened {
        Opened { stored, beside: None }
    }
}

/// What a write comes to.
#[derive(Debug)]
pub struct Written {
    /// What is to be stored.
    pub stored: Stored,
    /// What the version that was written through shows of that, where it was found out on the way.
    pub shown: Option<Value>,
}

/// Why an object cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// An expression failed.
    #[error("{field}: {message}")]
    Expression {
        /// The rule, as a path in the Conversion.
        field: String,
        /// What it says.
        message: String,
    },
    /// There is no such version.
    #[error("{0} has no version {1:?}")]
    NoVersion(String, String),
    /// The object is something else.
    #[error("the object is no {0} of a known version")]
    OtherKind(String),
    /// What is kept beside it cannot be read.
    #[error(transparent)]
    Kept(#[from] crate::kept::KeptError),
}

impl Conversion {
    /// Makes the rules of a Conversion ready. Answers everything that keeps them from being carried out; whether they
    /// keep the laws is another question, see [`check`](Conversion::check).
    pub fn compile(
        definition: Arc<Definition>,
        spec: &Spec,
        environment: &Environment,
    ) -> Result<Conversion, FieldErrors> {
        let (mut steps, mut errors, mut warnings) = (Vec::<Edge>::new(), FieldErrors::new(), Vec::new());
        for step in &spec.steps {
            let found = [&step.from, &step.to].map(|name| definition.number(name));
            let ([Some(left), Some(right)], versions) = (found, definition.versions()) else {
                let missing = if found[0].is_none() { &step.from } else { &step.to };
                warnings.push(format!("{}: {} has no version {missing} yet", step.field, definition.name()));
                continue;
            };
            let is_known = |edge: &&Edge| edge.ends == [left, right] || edge.ends == [right, left];
            if let Some(other) = steps.iter().find(is_known) {
                let detail = format!("{} leads between these versions already", other.step.field);
                errors.push(FieldError::invalid(&step.field, format!("{} to {}", step.from, step.to), detail));
                continue;
            }
            match CompiledStep::compile(step, [&versions[left], &versions[right]], environment) {
                Ok(step) => steps.push(Edge { ends: [left, right], step }),
                Err(found) => errors.extend(found),
            }
        }
        let mut canonical: Vec<Canonicalizer> = Vec::new();
        for entry in &spec.canonicalize {
            let Some(version) = definition.number(&entry.version) else {
                warnings.push(format!("{}: {} has no version {} yet", entry.field, definition.name(), entry.version));
                continue;
            };
            if canonical.iter().any(|other| other.version() == version) {
                errors.push(FieldError::duplicate(format!("{}.version", entry.field), entry.version.as_str()));
                continue;
            }
            match Canonicalizer::compile(entry, version, &definition.versions()[version], environment) {
                Ok(rules) => canonical.push(rules),
                Err(found) => errors.extend(found),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let count = definition.versions().len();
        let ways: Vec<_> = (0..count).map(|from| ways_from(from, count, &steps)).collect();
        warnings.extend(steps.iter().flat_map(|edge| edge.step.warnings.iter().cloned()));
        let mut conversion = Conversion {
            definition,
            steps,
            ways,
            canonical,
            tolerate: spec.tolerate.clone(),
            computes: spec.computes(),
            warnings,
        };
        let unreached = conversion.unreached().join(", ");
        if !unreached.is_empty() {
            conversion.warnings.push(format!("no step reaches {unreached}: shown by name only, as with strategy None"));
        }
        Ok(conversion)
    }

    /// The definition that it belongs to.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// What its author should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether expressions have a part in it. Without them no conversion can fail, and metadata stays as it is.
    pub fn computes(&self) -> bool {
        self.computes
    }

    /// The versions that no step reaches from where objects are stored, or if none leads from there, from where the
    /// first step begins.
    pub fn unreached(&self) -> Vec<&str> {
        let versions = self.definition.versions();
        let storage = self.definition.number(self.definition.storage().name());
        let leads_on = |number: &usize| self.steps.iter().any(|edge| edge.ends.contains(number));
        let start = storage.filter(leads_on).or_else(|| self.steps.first().map(|edge| edge.ends[0]));
        let is_reached =
            |number: usize| start.is_some_and(|start| start == number || self.ways[start][number].is_some());
        let is_alone = |number: &usize| versions.len() > 1 && !is_reached(*number);
        (0..versions.len()).filter(is_alone).map(|number| versions[number].name()).collect()
    }

    /// How many steps there are between versions of the definition.
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// Whether steps lead from one version to another.
    pub fn connects(&self, from: &str, to: &str) -> bool {
        let (from, to) = (self.definition.number(from), self.definition.number(to));
        from.zip(to).is_some_and(|(from, to)| from == to || self.ways[from][to].is_some())
    }

    /// Whether there are rules for what is canonical in a version.
    pub fn canonicalizes(&self, version: &str) -> bool {
        let number = self.definition.number(version);
        self.canonical.iter().any(|rules| Some(rules.version()) == number)
    }

    /// Brings an object of a version into its canonical form, before anything is pruned. Answers whether it changed.
    pub fn canonicalize(&self, version: &str, object: &mut Value) -> Result<bool, ConvertError> {
        let number = self.definition.number(version);
        match self.canonical.iter().find(|rules| Some(rules.version()) == number) {
            Some(rules) => rules.run(object).map_err(|failure| rules.error(&failure)),
            None => Ok(false),
        }
    }

    /// What an object, stored as it is, looks like in another version.
    pub fn read(&self, stored: &Stored, version: &str) -> Result<Value, ConvertError> {
        let (at, to) = (self.number_of(&stored.object)?, self.number(version)?);
        self.read_at(stored, at, to)
    }

    /// What a stored object looks like in another version through which it is going to be written. What the write needs
    /// to know of the old object is found out while what leads there is at hand.
    pub fn open(&self, stored: Stored, version: &str) -> Result<(Value, Opened), ConvertError> {
        let (at, to) = (self.number_of(&stored.object)?, self.number(version)?);
        let (Some(hop), Some(back)) = (self.ways[at][to], self.ways[to][at]) else {
            return Ok((self.read_at(&stored, at, to)?, Opened::from(stored)));
        };
        if hop.from != at {
            return Ok((self.read_at(&stored, at, to)?, Opened::from(stored)));
        }
        let made = self.made(hop, &stored.object)?;
        // If the way back fails, so will the write; what is there can be read.
        let beside = self.kept_beside(back, &stored.object, &made).ok().map(|kept| (back, kept));
        let shown = self.restored(hop, made, stored.kept.get(version));
        Ok((shown, Opened { stored, beside }))
    }

    /// What is to be stored in the version `storage` when `new` is written, in whichever version it is, in place of `old`.
    /// Only that changes which the version of `new` can say.
    pub fn write(&self, old: Option<&Stored>, new: Value, storage: &str) -> Result<Stored, ConvertError> {
        let old = old.cloned().map(Opened::from);
        Ok(self.replace(old.as_ref(), new, storage)?.stored)
    }

    /// The same in place of an object that was [opened](Conversion::open).
    pub fn replace(&self, old: Option<&Opened>, new: Value, storage: &str) -> Result<Written, ConvertError> {
        let (written, storage) = (self.number_of(&new)?, self.number(storage)?);
        let old = match old {
            Some(old) => Some((old, self.number_of(&old.stored.object)?)),
            None => None,
        };
        let objects = BTreeMap::from([(written, new)]);
        let mut write = Write { conversion: self, old, written, storage, objects };
        write.object(storage)?;
        let (mut kept, mut shown) = (BTreeMap::new(), None);
        for version in 0..self.ways.len() {
            let Some(hop) = self.ways[storage][version] else { continue };
            let has_kept = old.is_some_and(|(old, _)| old.stored.kept.contains_key(self.name(version)));
            let moved = old.is_some_and(|(_, at)| self.ways[at][version] != Some(hop));
            let same_way = write.hop(version) == Some(hop);
            if version != written && !has_kept && !moved && same_way {
                continue;
            }
            write.object(version)?;
            write.object(hop.from)?;
            let made = self.made(hop, &write.objects[&hop.from])?;
            let parts = self.steps[hop.edge].step.difference(hop.to, &write.objects[&version], &made);
            if version == written && hop.from == storage {
                shown = Some(self.restored(hop, made, parts.as_ref()));
            }
            if let Some(parts) = parts {
                kept.insert(self.name(version).to_owned(), parts);
            }
        }
        let object = write.objects.remove(&storage).unwrap_or_default();
        Ok(Written { stored: Stored { object, kept }, shown })
    }

    /// Converts an object that carries what its version cannot say in an annotation.
    pub fn convert(&self, object: Value, version: &str) -> Result<Value, ConvertError> {
        let stored = Stored::unpack(object)?;
        Ok(self.restore_as(&stored, version)?.pack())
    }

    /// The same object, stored in another version.
    pub fn restore_as(&self, stored: &Stored, version: &str) -> Result<Stored, ConvertError> {
        let (at, to) = (self.number_of(&stored.object)?, self.number(version)?);
        let mut kept = BTreeMap::new();
        for version in 0..self.ways.len() {
            let (before, after) = (self.ways[at][version], self.ways[to][version]);
            let name = self.name(version);
            match after {
                _ if before == after => {
                    if let Some(parts) = stored.kept.get(name) {
                        kept.insert(name.to_owned(), parts.clone());
                    }
                }
                None => {}
                Some(hop) => {
                    let real = self.read_at(stored, at, version)?;
                    let made = self.made(hop, &self.read_at(stored, at, hop.from)?)?;
                    if let Some(parts) = self.steps[hop.edge].step.difference(hop.to, &real, &made) {
                        kept.insert(name.to_owned(), parts);
                    }
                }
            }
        }
        Ok(Stored { object: self.read_at(stored, at, to)?, kept })
    }

    fn name(&self, version: usize) -> &str {
        self.definition.versions()[version].name()
    }

    fn number(&self, version: &str) -> Result<usize, ConvertError> {
        let unknown = || ConvertError::NoVersion(self.definition.name().to_owned(), version.to_owned());
        self.definition.number(version).ok_or_else(unknown)
    }

    fn number_of(&self, object: &Value) -> Result<usize, ConvertError> {
        let version = object.as_object().and_then(|object| self.definition.version_of(object));
        let number = version.and_then(|version| self.definition.number(version.name()));
        number.ok_or_else(|| ConvertError::OtherKind(self.definition.storage().kind().to_owned()))
    }

    /// The way between two versions, by its parts.
    pub(crate) fn way(&self, from: usize, to: usize) -> Option<Vec<Hop>> {
        let mut hops = Vec::new();
        let mut at = to;
        while at != from {
            let hop = self.ways[from][at]?;
            hops.push(hop);
            at = hop.from;
        }
        hops.reverse();
        Some(hops)
    }

    fn read_at(&self, stored: &Stored, at: usize, to: usize) -> Result<Value, ConvertError> {
        let Some(hops) = self.way(at, to) else { return Ok(self.renamed(&stored.object, to)) };
        let mut made: Option<Value> = None;
        for hop in hops {
            let kept = stored.kept.get(self.name(self.end(hop)));
            let next = self.get(hop, made.as_ref().unwrap_or(&stored.object), kept)?;
            made = Some(next);
        }
        Ok(made.unwrap_or_else(|| stored.object.clone()))
    }

    /// The version that a part of a way leads to.
    pub(crate) fn end(&self, hop: Hop) -> usize {
        self.steps[hop.edge].ends[hop.to as usize]
    }

    /// What a version shows of its neighbour's object.
    pub(crate) fn get(&self, hop: Hop, object: &Value, kept: Option<&Kept>) -> Result<Value, ConvertError> {
        Ok(self.restored(hop, self.made(hop, object)?, kept))
    }

    /// What was made of its neighbour's object, with what is kept.
    fn restored(&self, hop: Hop, made: Value, kept: Option<&Kept>) -> Value {
        let Some(kept) = kept else { return made };
        let mut restored = self.steps[hop.edge].step.restore(hop.to, kept, made);
        self.definition.versions()[self.end(hop)].fill_defaults(&mut restored);
        restored
    }

    /// What comes of its neighbour's object alone.
    pub(crate) fn made(&self, hop: Hop, object: &Value) -> Result<Value, ConvertError> {
        let Edge { ends, step } = &self.steps[hop.edge];
        let version = &self.definition.versions()[ends[hop.to as usize]];
        let mut made = step.run(hop.to, object).map_err(|failure| self.failed(hop.edge, &failure))?;
        if let Value::Object(made) = &mut made {
            made.insert("apiVersion", version.api_version());
        }
        version.fill_defaults(&mut made);
        Ok(made)
    }

    /// What is kept for a version beside its neighbour.
    pub(crate) fn kept(&self, hop: Hop, real: &Value) -> Result<Option<Kept>, ConvertError> {
        if !self.steps[hop.edge].step.keeps(hop.to) {
            return Ok(None);
        }
        let back = Hop { from: self.end(hop), edge: hop.edge, to: hop.to.other() };
        self.kept_beside(hop, real, &self.made(back, real)?)
    }

    /// The same beside what is known to come of it in the neighbour.
    fn kept_beside(&self, hop: Hop, real: &Value, neighbour: &Value) -> Result<Option<Kept>, ConvertError> {
        let step = &self.steps[hop.edge].step;
        if !step.keeps(hop.to) {
            return Ok(None);
        }
        Ok(step.difference(hop.to, real, &self.made(hop, neighbour)?))
    }

    fn failed(&self, edge: usize, failure: &Failure) -> ConvertError {
        let step = &self.steps[edge].step;
        let field = step.rules.get(failure.rule).map_or(&step.field, |rule| &rule.field);
        ConvertError::Expression { field: field.clone(), message: failure.error.to_string() }
    }

    /// An object by another name, without what its version does not know.
    fn renamed(&self, object: &Value, to: usize) -> Value {
        let version = &self.definition.versions()[to];
        let mut object = object.clone();
        if let Value::Object(object) = &mut object {
            object.insert("apiVersion", version.api_version());
        }
        version.prune(&mut object);
        version.fill_defaults(&mut object);
        object
    }
}

/// A write, while the objects of other versions are found out that it changes.
struct Write<'c> {
    conversion: &'c Conversion,
    old: Option<(&'c Opened, usize)>,
    written: usize,
    storage: usize,
    objects: BTreeMap<usize, Value>,
}

impl Write<'_> {
    /// The way to a version: from the written one or, if no steps lead there, from the stored one.
    fn hop(&self, version: usize) -> Option<Hop> {
        let ways = &self.conversion.ways;
        ways[self.written][version].or(ways[self.storage][version])
    }

    /// Finds out what a version shows after the write.
    fn object(&mut self, version: usize) -> Result<(), ConvertError> {
        if self.objects.contains_key(&version) {
            return Ok(());
        }
        let conversion = self.conversion;
        let Some(hop) = self.hop(version) else {
            let renamed = conversion.renamed(&self.objects[&self.written], version);
            self.objects.insert(version, renamed);
            return Ok(());
        };
        self.object(hop.from)?;
        let kept = match self.old {
            Some((Opened { stored, .. }, at)) if conversion.ways[at][version] == Some(hop) => {
                stored.kept.get(conversion.name(version)).cloned()
            }
            Some((Opened { beside: Some((known, kept)), .. }, at)) if at == version && *known == hop => kept.clone(),
            Some((Opened { stored, .. }, at)) if at == version => conversion.kept(hop, &stored.object)?,
            Some((Opened { stored, .. }, at)) => conversion.kept(hop, &conversion.read_at(stored, at, version)?)?,
            None => None,
        };
        let made = conversion.get(hop, &self.objects[&hop.from], kept.as_ref())?;
        self.objects.insert(version, made);
        Ok(())
    }
}

/// The shortest ways from a version to all others.
fn ways_from(from: usize, count: usize, steps: &[Edge]) -> Vec<Option<Hop>> {
    let mut ways: Vec<Option<Hop>> = vec![None; count];
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(&at) = reached.get(next) {
        next += 1;
        for (edge, Edge { ends, .. }) in steps.iter().enumerate() {
            for to in Side::BOTH {
                let end = ends[to as usize];
                if ends[to.other() as usize] == at && !reached.contains(&end) {
                    ways[end] = Some(Hop { from: at, edge, to });
                    reached.push(end);
                }
            }
        }
    }
    ways
}
