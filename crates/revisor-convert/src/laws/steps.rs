//! L1, L2 and L3: one step, in both directions.

use revisor_object::Value;
use revisor_schema::{JsonType, Structural};

use super::blame::{first_difference, rule_about, rule_of_error};
use super::{Broken, Comparison, Law, Search, StepReport, Verdict};
use crate::conversion::{ConvertError, Hop};
use crate::generate::{Generator, SHRINKING, shrink, size};
use crate::path::{Path, Segment};
use crate::schema::VersionSchema;
use crate::step::Side;

/// How many objects of the other version are written over.
const WRITTEN_OVER: usize = 24;

/// How many values are looked at for each that is tried: it may take a while to find valid ones.
const LOOKS: usize = 16;

impl Search<'_> {
    /// Looks for an object that breaks a law on the way there and back.
    pub(super) fn step(&mut self, edge: usize) {
        let conversion = self.conversion;
        let (ends, step) = (conversion.steps[edge].ends, &conversion.steps[edge].step);
        let versions = ends.map(|end| &conversion.definition().versions()[end]);
        let mut report = StepReport {
            field: step.field.clone(),
            from: versions[0].name().to_owned(),
            to: versions[1].name().to_owned(),
            verdict: Verdict::Proved,
            objects: 0,
        };
        if !step.is_proved {
            report.verdict = Verdict::Tested;
            let mut over: Vec<Value> = Vec::new();
            for side in Side::BOTH {
                let trip = Trip {
                    there: Hop { from: ends[side as usize], edge, to: side.other() },
                    back: Hop { from: ends[side.other() as usize], edge, to: side },
                };
                let mut pool = Vec::new();
                let objects = self.objects(versions[side as usize], edge, side, |search, object| {
                    for law in [Law::ThereAndBack, Law::Valid, Law::Written] {
                        if search.is_broken(law) {
                            continue;
                        }
                        let found = match law {
                            Law::Written => {
                                let other = over.get(pool.len() % over.len().max(1));
                                other.and_then(|other| search.breaks_written(trip, &object, other))
                            }
                            law => search.breaks(law, trip, &object, &mut report),
                        };
                        if let Some(broken) = found {
                            let smallest = search.smallest(trip, broken, over.get(pool.len() % over.len().max(1)));
                            search.broken.push(smallest);
                        }
                    }
                    pool.push(object);
                });
                if objects == 0 {
                    let name = versions[side as usize].name();
                    let what = format!("no valid object of {name} was found, so nothing that comes from it was tried");
                    self.warnings.push(format!("{}: {what}", step.field));
                }
                report.objects += objects;
                pool.dedup();
                let stride = (pool.len() / WRITTEN_OVER).max(1);
                over = pool.into_iter().step_by(stride).collect();
            }
        }
        self.reports.push(report);
    }

    /// Hands objects of a version to `take`, as many as the effort allows; answers how many there were.
    fn objects(
        &mut self,
        version: &VersionSchema,
        edge: usize,
        side: Side,
        mut take: impl FnMut(&mut Self, Value),
    ) -> usize {
        let step = &self.conversion.steps[edge].step;
        let focus: Vec<Path> = step.rules.iter().flat_map(|rule| rule.places[side as usize].clone()).collect();
        let text = Structural { kind: Some(JsonType::String), ..Structural::default() };
        let in_metadata =
            |path: &&Path| matches!(path.segments().first(), Some(Segment::Name(name)) if &**name == "metadata");
        let extra = focus.iter().filter(in_metadata).map(|path| (path.clone(), text.clone())).collect();
        let seed = edge as u64 * 2 + side as u64;
        let mut generator = Generator::new(version, &step.hints, seed).with_focus(focus).with_places(extra);
        self.generate(&mut generator, &mut take)
    }

    /// Hands what a generator makes to `take`; answers how many there were.
    pub(super) fn generate(&mut self, generator: &mut Generator<'_>, take: &mut impl FnMut(&mut Self, Value)) -> usize {
        let (mut objects, mut work) = (0, 0);
        let effort = self.effort;
        generator.look_at_most(effort.work.saturating_mul(LOOKS));
        generator.boundaries(&mut |object| {
            objects += 1;
            work += size(&object);
            take(self, object);
            objects < effort.objects * 2 / 3 && work < effort.work * 2 / 3
        });
        let mut misses = 0;
        while objects < effort.objects && work < effort.work && misses < 100 {
            match generator.sample() {
                Some(object) => {
                    objects += 1;
                    work += size(&object);
                    take(self, object);
                }
                None => misses += 1,
            }
        }
        objects
    }

    /// How an object breaks L1 or L2.
    fn breaks(&mut self, law: Law, trip: Trip, object: &Value, report: &mut StepReport) -> Option<Broken> {
        let (found, needed) = self.examine(law, trip, object);
        if !needed.is_empty() {
            report.verdict = Verdict::Tolerated;
            needed.into_iter().for_each(|number| self.needed[number] = true);
        }
        found
    }

    fn examine(&self, law: Law, trip: Trip, object: &Value) -> (Option<Broken>, Vec<usize>) {
        let conversion = self.conversion;
        let edge = &conversion.steps[trip.there.edge];
        let side = trip.back.to;
        let names = |version: usize| conversion.definition().versions()[version].name();
        let failed = |error: ConvertError, becomes: Option<Value>| {
            let ConvertError::Expression { field, message } = error else { return None };
            let detail = format!("the expression fails: {message}");
            Some(Broken { law: Law::ThereAndBack, field, detail, object: object.clone(), becomes, back: None })
        };
        let becomes = match conversion.made(trip.there, object) {
            Ok(becomes) => becomes,
            Err(error) => return (failed(error, None).filter(|_| law == Law::ThereAndBack), Vec::new()),
        };
        let rules =
            |side: Side| edge.step.rules.iter().map(move |rule| (rule.field.as_str(), &rule.places[side as usize][..]));
        if law == Law::Valid {
            let end = conversion.end(trip.there);
            let errors = conversion.definition().versions()[end].validate(&becomes);
            let Some(first) = errors.first() else { return (None, Vec::new()) };
            let blamed = errors.iter().find_map(|error| rule_of_error(rules(side.other()), error));
            let field = blamed.unwrap_or(&edge.step.field).to_owned();
            let detail = format!("what comes out is not valid in {}: {first}", names(end));
            let (object, becomes) = (object.clone(), Some(becomes));
            return (Some(Broken { law, field, detail, object, becomes, back: None }), Vec::new());
        }
        let made = match conversion.made(trip.back, &becomes) {
            Ok(made) => made,
            Err(error) => return (failed(error, Some(becomes)), Vec::new()),
        };
        let back = self.with_kept(trip.back, object, made);
        match self.compare(conversion.end(trip.back), object, &back) {
            Comparison::Same => (None, Vec::new()),
            Comparison::Tolerated(needed) => (None, needed),
            Comparison::Different => {
                let place = first_difference(object, &back).unwrap_or_default();
                let field = rule_about(rules(side), &place).unwrap_or(&edge.step.field).to_owned();
                let detail = format!("there and back again, {place} is not what it was");
                let (object, becomes, back) = (object.clone(), Some(becomes), Some(back));
                (Some(Broken { law, field, detail, object, becomes, back }), Vec::new())
            }
        }
    }

    /// What `made` is with what is kept of `real`.
    fn with_kept(&self, hop: Hop, real: &Value, made: Value) -> Value {
        let step = &self.conversion.steps[hop.edge].step;
        let Some(kept) = step.difference(hop.to, real, &made) else { return made };
        let mut back = step.restore(hop.to, &kept, made);
        self.conversion.definition().versions()[self.conversion.end(hop)].fill_defaults(&mut back);
        back
    }

    /// How writing an object over one of the other version breaks L3.
    fn breaks_written(&self, trip: Trip, object: &Value, over: &Value) -> Option<Broken> {
        let conversion = self.conversion;
        let kept = conversion.kept(trip.there, over).ok()?;
        let becomes = conversion.get(trip.there, object, kept.as_ref()).ok()?;
        let made = conversion.made(trip.back, &becomes).ok()?;
        let back = self.with_kept(trip.back, object, made);
        if !matches!(self.compare(conversion.end(trip.back), object, &back), Comparison::Different) {
            return None;
        }
        let edge = &conversion.steps[trip.there.edge];
        let side = trip.back.to;
        let rules = edge.step.rules.iter().map(|rule| (rule.field.as_str(), &rule.places[side as usize][..]));
        let place = first_difference(object, &back).unwrap_or_default();
        let field = rule_about(rules, &place).unwrap_or(&edge.step.field).to_owned();
        let detail = format!("{place} is not what was written, over {}", over.to_json());
        let (object, becomes, back) = (object.clone(), Some(becomes), Some(back));
        Some(Broken { law: Law::Written, field, detail, object, becomes, back })
    }

    /// The smallest object that breaks the same law by the same rule.
    fn smallest(&self, trip: Trip, broken: Broken, over: Option<&Value>) -> Broken {
        let version = &self.conversion.definition().versions()[self.conversion.end(trip.back)];
        let examine = |object: &Value| match broken.law {
            Law::Written => over.and_then(|over| self.breaks_written(trip, object, over)),
            law => self.examine(law, trip, object).0,
        };
        let object = shrink(broken.object.clone(), SHRINKING, &mut |object| {
            let mut filled = object.clone();
            version.fill_defaults(&mut filled);
            filled == *object
                && examine(object).is_some_and(|found| found.field == broken.field)
                && version.is_valid(object)
        });
        examine(&object).unwrap_or(broken)
    }
}

/// The way to the other side of a step and back.
#[derive(Clone, Copy)]
struct Trip {
    there: Hop,
    back: Hop,
}
