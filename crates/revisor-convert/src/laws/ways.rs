//! L4: steps that lead to where others lead already.

use revisor_object::Value;

use super::blame::first_difference;
use super::{Broken, Comparison, Law, Search, Verdict};
use crate::conversion::Hop;
use crate::generate::{Generator, SHRINKING, shrink};
use crate::step::Side;

/// Two ways between the same versions.
struct Ways {
    direct: Hop,
    around: Vec<Hop>,
}

impl Search<'_> {
    /// Compares every step that closes a ring with the way around.
    pub(super) fn two_ways(&mut self) {
        let conversion = self.conversion;
        for edge in 0..conversion.steps.len() {
            let ends = conversion.steps[edge].ends;
            for to in [Side::Right, Side::Left] {
                let (from, at) = (ends[to.other() as usize], ends[to as usize]);
                let Some(around) = self.around(from, at, edge) else { continue };
                // The ring is looked at once: at the step that closes it.
                if around.iter().any(|hop| hop.edge > edge) || self.is_broken(Law::AnyWay) {
                    continue;
                }
                let ways = Ways { direct: Hop { from, edge, to }, around };
                let objects = self.compare_ways(&ways);
                for hop in ways.around.iter().chain([&ways.direct]) {
                    let field = &conversion.steps[hop.edge].step.field;
                    for report in self.reports.iter_mut().filter(|report| report.field == *field) {
                        report.objects += objects;
                        if report.verdict == Verdict::Proved {
                            report.verdict = Verdict::Tested;
                        }
                    }
                }
            }
        }
    }

    fn compare_ways(&mut self, ways: &Ways) -> usize {
        let conversion = self.conversion;
        let version = &conversion.definition().versions()[ways.direct.from];
        let hints: Vec<Value> =
            ways.around.iter().flat_map(|hop| conversion.steps[hop.edge].step.hints.clone()).collect();
        let mut generator = Generator::new(version, &hints, 1000 + ways.direct.edge as u64);
        let effort = self.effort;
        self.effort.objects = (effort.objects / 4).max(50);
        let objects = self.generate(&mut generator, &mut |search, object| {
            if search.is_broken(Law::AnyWay) {
                return;
            }
            if let Some(object) = search.carried(ways, &object)
                && search.differ(ways, &object).is_some()
            {
                let smallest = shrink(object.clone(), SHRINKING, &mut |smaller| {
                    let is_carried = search.carried(ways, smaller).as_ref() == Some(smaller);
                    is_carried && search.differ(ways, smaller).is_some()
                });
                search.broken.extend(search.differ(ways, &smallest));
            }
        });
        self.effort = effort;
        objects
    }

    /// The part of an object that the versions on the way around can say, if that is an object.
    fn carried(&self, ways: &Ways, object: &Value) -> Option<Value> {
        let there = self.along(&ways.around, object)?;
        let back: Vec<Hop> = ways.around.iter().rev().map(|hop| self.reversed(*hop)).collect();
        let carried = self.along(&back, &there)?;
        self.conversion.definition().versions()[ways.direct.from].is_valid(&carried).then_some(carried)
    }

    fn reversed(&self, hop: Hop) -> Hop {
        Hop { from: self.conversion.end(hop), edge: hop.edge, to: hop.to.other() }
    }

    fn along(&self, hops: &[Hop], object: &Value) -> Option<Value> {
        let mut at = object.clone();
        for hop in hops {
            at = self.conversion.made(*hop, &at).ok()?;
        }
        Some(at)
    }

    fn differ(&self, ways: &Ways, object: &Value) -> Option<Broken> {
        let conversion = self.conversion;
        let becomes = self.along(&[ways.direct], object)?;
        let back = self.along(&ways.around, object)?;
        let end = conversion.end(ways.direct);
        if !matches!(self.compare(end, &becomes, &back), Comparison::Different) {
            return None;
        }
        let versions = conversion.definition().versions();
        let place = first_difference(&becomes, &back).unwrap_or_default();
        let (last, by) = (versions[end].name(), versions[ways.around.last()?.from].name());
        let detail = format!(
            "two ways from {} to {last} give something else at {place}: the direct one, and the one by {by}",
            versions[ways.direct.from].name()
        );
        Some(Broken {
            law: Law::AnyWay,
            field: conversion.steps[ways.direct.edge].step.field.clone(),
            detail,
            object: object.clone(),
            becomes: Some(becomes),
            back: Some(back),
        })
    }

    /// The shortest way between two versions that does not use a step.
    fn around(&self, from: usize, to: usize, without: usize) -> Option<Vec<Hop>> {
        let steps = &self.conversion.steps;
        let mut found: Vec<(usize, Option<Hop>)> = vec![(from, None)];
        let mut next = 0;
        while let Some(&(at, _)) = found.get(next) {
            next += 1;
            for (edge, step) in steps.iter().enumerate().filter(|(edge, _)| *edge != without) {
                for side in Side::BOTH {
                    let end = step.ends[side as usize];
                    if step.ends[side.other() as usize] == at && found.iter().all(|(known, _)| *known != end) {
                        found.push((end, Some(Hop { from: at, edge, to: side })));
                    }
                }
            }
        }
        let hop = |at: usize| found.iter().find(|(known, _)| *known == at).and_then(|(_, hop)| *hop);
        let mut hops: Vec<Hop> = std::iter::successors(hop(to), |last| hop(last.from)).collect();
        hops.reverse();
        (!hops.is_empty()).then_some(hops)
    }
}
