//! Rules in CEL that are new: an object that the others let pass and this one does not, found by a search. A rule about
//! changes (`oldSelf`) is shown by two objects.

use std::collections::BTreeSet;

use revisor_cel::{CompiledRules, OBJECT_BUDGET, Subject};
use revisor_convert::{Generator, Path};
use revisor_object::{FieldPath, Value};
use revisor_schema::{Additional, Structural, ValidationRule};

use crate::Class;
use crate::reduction::reduced;
use crate::stage::{Sent, all_at};
use crate::walk::Walk;

/// How many objects are made for each that is tried at their bounds before chance has its turn.
const BOUNDARIES: usize = 3;

/// How many objects take the place of each other to show what a rule about changes refuses.
const POOL: usize = 24;

impl Walk<'_, '_> {
    /// Compares the rules of a node.
    pub(crate) fn rules(&mut self, path: &Path, old: &Structural, new: &Structural) {
        let is_known = |rule: &ValidationRule, among: &[ValidationRule]| {
            let same = |other: &&ValidationRule| {
                (&other.rule, other.optional_old_self) == (&rule.rule, rule.optional_old_self)
            };
            among.iter().find(same).cloned()
        };
        for rule in &new.validations {
            match is_known(rule, &old.validations) {
                None => self.rule(path, old, new, rule),
                Some(known) if known != *rule => {
                    self.additive(path, format!("the rule {} says otherwise why it refuses", told(rule)));
                }
                Some(_) => {}
            }
        }
        for rule in old.validations.iter().filter(|rule| is_known(rule, &new.validations).is_none()) {
            self.additive(path, format!("the rule {} is gone", told(rule)));
        }
    }

    fn rule(&mut self, path: &Path, old: &Structural, new: &Structural, rule: &ValidationRule) {
        let stage = &self.stage;
        let mut alone = new.clone();
        without_rules(&mut alone);
        alone.validations = vec![rule.clone()];
        let Some(compiled) = CompiledRules::compile(&alone, path.is_root(), &stage.crd.environment) else { return };
        let refuses = |value: &Value| {
            let subject = Subject { schema: &alone, object: value, old: None, ratcheting: false };
            !compiled.validate(&subject, &FieldPath::none(), OBJECT_BUDGET).errors.is_empty()
        };
        let shows = |object: &Value| {
            let prepared = stage.prepared_after(object);
            all_at(&prepared, path).into_iter().any(refuses)
                && matches!(stage.before(object), Sent::Shown(_))
                && matches!(stage.after(object), Sent::Refused(_))
        };
        let mut spoken_of = words(&rule.rule);
        let mut hints = literals(&rule.rule);
        for other in &old.validations {
            spoken_of.extend(words(&other.rule));
            hints.extend(literals(&other.rule));
        }
        let small = reduced(&stage.old.structural, path, &spoken_of);
        let small = stage.old.with_structural(small, stage.crd);
        let whole = stage.old.schema(stage.crd);
        let most = self.effort.objects_of_rule;
        let (mut tried, mut found, mut pool, mut is_cut_short) = (0, None, Vec::new(), false);
        for (schema, most) in [(&small, most), (whole, most / 4)] {
            let mut generator = Generator::new(schema, &hints, 7).with_focus(vec![path.clone()]);
            generator.look_at_most(most * 200);
            let mut of_schema = 0;
            let mut look = |object: Value| {
                is_cut_short |= !stage.may();
                of_schema += 1;
                if !is_cut_short && found.is_none() {
                    tried += 1;
                    if pool.len() < POOL && !pool.contains(&object) {
                        pool.push(object.clone());
                    }
                    found = shows(&object).then_some(object);
                }
                found.is_none() && !is_cut_short && of_schema < most
            };
            let mut at_bounds = 0;
            generator.boundaries(&mut |object| {
                at_bounds += 1;
                look(object) && at_bounds < most / BOUNDARIES
            });
            let mut misses = 0;
            while misses < 40 {
                match generator.sample() {
                    Some(object) if look(object.clone()) => {}
                    Some(_) => break,
                    None => misses += 1,
                }
            }
            if found.is_some() || is_cut_short || tried > 0 && !path.is_root() && of_schema > 20 {
                break;
            }
        }
        let message = format!("there is a new rule: {}", told(rule));
        if let Some(object) = found {
            let witness = stage.smallest(object, &shows);
            return self.broken(path, Class::BreaksWriters, message, Some(witness));
        }
        if is_transition(rule) {
            return self.transition(path, rule, &pool, message);
        }
        let message = match is_cut_short || tried < most {
            true => format!("{message}; it is untested: the search was cut short after {tried} objects"),
            false => format!("{message}; none of {tried} objects was found that it refuses"),
        };
        self.additive(path, message);
    }

    /// Shows a rule about changes by two objects.
    fn transition(&mut self, path: &Path, rule: &ValidationRule, pool: &[Value], message: String) {
        let stage = &self.stage;
        let (old, new) = (stage.old.schema(stage.crd), stage.new.schema(stage.crd));
        let is_fine = |object: &&Value| {
            matches!(stage.before(object), Sent::Shown(_)) && matches!(stage.after(object), Sent::Shown(_))
        };
        let mut fine: Vec<&Value> = pool.iter().filter(is_fine).collect();
        fine.sort_by_key(|object| object.to_json().len());
        for before in &fine {
            for after in &fine {
                let errors = new.validate_transition(after, before);
                if !errors.is_empty() && old.validate_transition(after, before).is_empty() {
                    let message = format!("{message}; it refuses the witness in the place of {}", before.to_json());
                    return self.broken(path, Class::BreaksWriters, message, Some((*after).clone()));
                }
            }
        }
        let tried = fine.len() * fine.len();
        let message =
            format!("there is a new rule about changes: {}; none of {tried} was found that it refuses", told(rule));
        self.additive(path, message);
    }
}

/// Whether a rule runs only when something takes the place of something else.
fn is_transition(rule: &ValidationRule) -> bool {
    rule.optional_old_self != Some(true) && words(&rule.rule).contains("oldSelf")
}

fn told(rule: &ValidationRule) -> String {
    const MAX: usize = 200;
    let text: String = rule.rule.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// Takes every rule out of a schema.
fn without_rules(schema: &mut Structural) {
    schema.validations.clear();
    schema.properties.iter_mut().for_each(|(_, property)| without_rules(property));
    if let Some(items) = &mut schema.items {
        without_rules(items);
    }
    if let Some(Additional::Schema(values)) = &mut schema.additional {
        without_rules(values);
    }
}

/// The names in an expression.
pub(crate) fn words(expression: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let found = expression.split(|c| !is_part(c)).filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()));
    found.map(str::to_owned).collect()
}

/// The numbers and texts that are written out in an expression.
pub(crate) fn literals(expression: &str) -> Vec<Value> {
    const MAX: usize = 64;
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit() || c == '\'' || c == '"') {
        let is_in_word = rest[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        rest = &rest[at..];
        let quote = rest.chars().next().filter(|c| !c.is_ascii_digit());
        let end = match quote {
            Some(quote) => rest[1..].find(quote).map_or(rest.len(), |end| end + 1),
            None => rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()),
        };
        match quote {
            Some(_) => found.push(Value::from(rest[1..end].to_owned())),
            None if !is_in_word => found.extend(rest[..end].parse().ok().map(Value::Int)),
            None => {}
        }
        rest = rest.get(end + usize::from(quote.is_some())..).unwrap_or_default();
        if found.len() == MAX {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_expression_speaks_of_is_known() {
        let expression = r#"!has(self.size) || self.v2.size < 80 && self.mode in ['a b', "c"] || size(self.x) >= 3"#;
        let found = words(expression);
        assert!(["self", "size", "v2", "mode", "x", "has"].iter().all(|word| found.contains(*word)), "{found:?}");
        let shown: Vec<String> = literals(expression).iter().map(Value::to_json).collect();
        assert_eq!(shown, ["80", r#""a b""#, r#""c""#, "3"]);
        assert!(literals("'unended").len() == 1 && literals("").is_empty());
    }
}
