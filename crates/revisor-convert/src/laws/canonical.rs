//! L5, and L2 of what is canonical.

use revisor_object::Value;
use revisor_schema::Structural;

use super::blame::{first_difference, rule_about, rule_of_error};
use super::{Broken, Law, Search};
use crate::canonical::Canonicalizer;
use crate::generate::{Generator, SHRINKING, shrink};
use crate::path::Path;

impl Search<'_> {
    /// Looks for an object that is not canonical after it was made so.
    pub(super) fn canonical(&mut self) {
        let conversion = self.conversion;
        for (number, rules) in conversion.canonical.iter().enumerate() {
            let version = &conversion.definition().versions()[rules.version()];
            // What the schema no longer has looks as what it has become.
            let mut extra: Vec<(Path, Structural)> = Vec::new();
            for rule in rules.rules() {
                let [from, to] = &rule.places;
                if version.at(from).is_none()
                    && let Some(schema) = version.at(to)
                {
                    let one = if rule.makes_list() { schema.items.as_deref() } else { Some(schema) };
                    extra.push((from.clone(), one.cloned().unwrap_or_default()));
                }
            }
            let focus = rules.rules().iter().flat_map(|rule| rule.places.clone()).collect();
            let mut generator =
                Generator::new(version, &rules.hints, 2000 + number as u64).with_focus(focus).with_places(extra);
            self.generate(&mut generator, &mut |search, object| {
                for law in [Law::Once, Law::Valid] {
                    if search.is_broken(law) {
                        continue;
                    }
                    if let Some(broken) = search.breaks_canonical(law, rules, &object) {
                        let smallest = shrink(object.clone(), SHRINKING, &mut |smaller| {
                            version.is_valid(smaller)
                                && search
                                    .breaks_canonical(law, rules, smaller)
                                    .is_some_and(|found| found.field == broken.field)
                        });
                        search.broken.push(search.breaks_canonical(law, rules, &smallest).unwrap_or(broken));
                    }
                }
            });
        }
    }

    fn breaks_canonical(&self, law: Law, rules: &Canonicalizer, object: &Value) -> Option<Broken> {
        let version = &self.conversion.definition().versions()[rules.version()];
        let places = || rules.rules().iter().map(|rule| (rule.field.as_str(), &rule.places[..]));
        let first_rule = || rules.rules().first().map(|rule| rule.field.clone()).unwrap_or_default();
        let broken = |field: Option<&str>, detail: String, becomes: Option<Value>, back: Option<Value>| {
            let field = field.map_or_else(first_rule, str::to_owned);
            Some(Broken { law, field, detail, object: object.clone(), becomes, back })
        };
        let mut once = object.clone();
        if let Err(failure) = rules.run(&mut once) {
            let error = rules.error(&failure).to_string();
            let field = rules.rules().get(failure.rule).map(|rule| rule.field.as_str());
            return (law == Law::Once).then(|| broken(field, format!("the expression fails: {error}"), None, None))?;
        }
        if law == Law::Valid {
            let mut pruned = once.clone();
            version.prune(&mut pruned);
            version.fill_defaults(&mut pruned);
            let errors = version.validate(&pruned);
            let first = errors.first()?;
            let blamed = errors.iter().find_map(|error| rule_of_error(places(), error));
            return broken(
                blamed,
                format!("what comes out is not valid in {}: {first}", version.name()),
                Some(pruned),
                None,
            );
        }
        let mut twice = once.clone();
        rules.run(&mut twice).ok()?;
        if once == twice {
            return None;
        }
        let place = first_difference(&once, &twice).unwrap_or_default();
        let detail = format!("to canonicalize twice is not to canonicalize once: {place} changes again");
        broken(rule_about(places(), &place), detail, Some(once), Some(twice))
    }
}
