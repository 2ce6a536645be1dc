//! Whether shapes alone decide that a step keeps its laws.
//!
//! What is linked and kept comes back by itself, so L1 and L3 hold for everything but expressions and maps that are not
//! one-to-one. What is left is L2: that every value which is allowed at a place is allowed at the place that is the
//! same. A proof that is not found says nothing; then objects are tried.

use revisor_object::{FieldPath, Value};
use revisor_schema::{Additional, Checks, JsonType, ListType, Structural, Validator};

use super::Side;
use super::claims::{Claims, LinkKind};
use crate::path::{Path, Segment};
use crate::schema::{META, below, is_object, is_open, member, values};

impl Claims<'_> {
    /// Whether the step keeps its laws by its shapes.
    pub(super) fn is_proved(&self) -> bool {
        self.computed.is_empty() && Side::BOTH.into_iter().all(|to| self.is_valid_by_shape(to))
    }

    /// Whether all that comes to a side is valid there.
    fn is_valid_by_shape(&self, to: Side) -> bool {
        let from = to.other();
        let root = Path::root();
        let (source, target) = (self.versions[from as usize].shape(), self.versions[to as usize].shape());
        let is_good = |fill: &super::claims::Fill| {
            let schema = self.schema(to, &fill.path);
            schema.is_some_and(|schema| {
                let errors = Validator::compile(schema, u32::MAX).validate(&FieldPath::none(), &fill.value);
                errors.is_empty() && !has_rules(schema) && matches!(schema.list_type, None | Some(ListType::Atomic))
            })
        };
        self.implies(to, &root, source, &root, target)
            && self.links.iter().all(|link| {
                let (left, right) = (&link.ends[from as usize], &link.ends[to as usize]);
                let schemas = (self.schema(from, left), self.schema(to, right));
                let (Some(source), Some(target)) = schemas else { return false };
                match &link.kind {
                    LinkKind::Plain => self.implies(to, left, source, right, target),
                    LinkKind::Values(values) => is_one_to_one(values, source, target, to),
                    LinkKind::List => self.implies_list(to, left, source, right, target),
                }
            })
            && self.fills.iter().filter(|fill| fill.side == to).all(is_good)
    }

    /// Whether a value that is valid at `from` is valid at `at` when it gets there.
    fn implies(&self, to: Side, from: &Path, source: &Structural, at: &Path, target: &Structural) -> bool {
        let has_claims = self.has_claims_below(to.other(), from) || self.has_claims_below(to, at);
        if !has_claims && is_same(source, target) {
            return true;
        }
        let nothing = Checks::default();
        let (had, wanted) =
            (source.checks.as_deref().unwrap_or(&nothing), target.checks.as_deref().unwrap_or(&nothing));
        if !target.validations.is_empty() || target.is_embedded_resource != source.is_embedded_resource {
            return false;
        }
        let has_alternatives =
            !wanted.any_of.is_empty() || !wanted.one_of.is_empty() || !wanted.all_of.is_empty() || wanted.not.is_some();
        if has_alternatives || (source.nullable && !target.nullable) {
            return false;
        }
        if let (Some(source_item), Some(target_item)) = (&source.items, &target.items) {
            let (from, at) = (from.every(), at.every());
            let is_plain = matches!(target.list_type, None | Some(ListType::Atomic)) && !wanted.unique_items;
            let is_claimed = self.claimed(to.other(), &from).is_some() || self.claimed(to, &at).is_some();
            return is_plain
                && !is_claimed
                && is_at_least(had.min_items, wanted.min_items)
                && is_at_most(had.max_items, wanted.max_items)
                && self.implies(to, &from, source_item, &at, target_item);
        }
        if is_object(source) && is_object(target) {
            return wanted.min_properties.is_none()
                && wanted.max_properties.is_none()
                && wanted.allowed.is_empty()
                && self.implies_members(to, from, source, at, target);
        }
        is_weaker(source, had, target, wanted)
    }

    fn implies_members(&self, to: Side, from: &Path, source: &Structural, at: &Path, target: &Structural) -> bool {
        let required = |schema: &Structural, name: &str| {
            schema.checks.as_ref().is_some_and(|checks| checks.required.iter().any(|known| **known == *name))
        };
        let others_hold = match (values(source), values(target)) {
            (Some(ours), Some(theirs)) => {
                let (from, at) = (from.every(), at.every());
                self.claimed(to.other(), &from).is_none()
                    && self.claimed(to, &at).is_none()
                    && self.implies(to, &from, ours, &at, theirs)
            }
            (None, None) => matches!(target.additional, None | Some(Additional::Allowed(true))),
            _ => false,
        };
        let is_meta = |name: &str| at.is_root() && META.contains(&name);
        let member_holds = |(name, theirs): &(Box<str>, Structural)| {
            let (ours, place) = (from.member(name), at.member(name));
            let linked =
                member(source, name).filter(|schema| self.is_same_place((to.other(), &ours, schema), (&place, theirs)));
            match linked {
                Some(schema) => {
                    let is_there =
                        !required(target, name) || required(source, name) || has_default(theirs) || has_default(schema);
                    is_there && (is_meta(name) || self.implies(to, &ours, schema, &place, theirs))
                }
                None => !required(target, name) || has_default(theirs) || self.always_comes(to, &place),
            }
        };
        others_hold && (is_open(source) == is_open(target)) && target.properties.iter().all(member_holds)
    }

    /// Whether something always comes to a place, if what it is in is there.
    fn always_comes(&self, to: Side, place: &Path) -> bool {
        let is_filled = self.fills.iter().any(|fill| {
            let holder = place.first(place.segments().len() - 1);
            fill.side == to && fill.path == *place && self.counterpart(to, &holder).is_some()
        });
        let is_moved = self.links.iter().any(|link| {
            let source = &link.ends[to.other() as usize];
            link.ends[to as usize] == *place
                && !(matches!(link.kind, LinkKind::List) && to == Side::Left)
                && self.is_always_there(to.other(), source)
        });
        is_filled || is_moved
    }

    /// Whether every object, or every item that it is in, has something at a place.
    fn is_always_there(&self, side: Side, path: &Path) -> bool {
        let scope = path.scope().segments().len();
        let mut at = self.versions[side as usize].shape();
        for (depth, segment) in path.segments().iter().enumerate() {
            if let Segment::Name(name) = segment
                && depth >= scope
            {
                let is_required =
                    at.checks.as_ref().is_some_and(|checks| checks.required.iter().any(|known| known == name));
                if !is_required {
                    return false;
                }
            }
            match below(at, segment) {
                Some(next) if !next.nullable => at = next,
                _ => return false,
            }
        }
        true
    }

    /// The same for one value that becomes a list, or the first of a list.
    fn implies_list(&self, to: Side, from: &Path, source: &Structural, at: &Path, target: &Structural) -> bool {
        let nothing = Checks::default();
        match to {
            Side::Right => {
                let wanted = target.checks.as_deref().unwrap_or(&nothing);
                let fits = wanted.min_items.is_none_or(|least| least <= 1)
                    && wanted.max_items.is_none_or(|most| most >= 1)
                    && !source.nullable
                    && target.validations.is_empty()
                    && wanted.any_of.is_empty()
                    && wanted.one_of.is_empty()
                    && wanted.all_of.is_empty()
                    && wanted.not.is_none()
                    && wanted.allowed.is_empty();
                let item = target.items.as_deref();
                fits && item.is_some_and(|item| self.implies(to, from, source, &at.every(), item))
            }
            Side::Left => {
                let item = source.items.as_deref();
                item.is_some_and(|item| self.implies(to, &from.every(), item, at, target))
            }
        }
    }
}

fn has_default(schema: &Structural) -> bool {
    schema.default.as_ref().is_some_and(|default| !default.is_null())
}

/// Whether values of one are those of the other, one by one, and all of them.
fn is_one_to_one(map: &[(Value, Value)], source: &Structural, target: &Structural, to: Side) -> bool {
    let allowed = |schema: &Structural| schema.checks.as_ref().map(|checks| checks.allowed.clone()).unwrap_or_default();
    let (had, wanted) = (allowed(source), allowed(target));
    let pairs: Vec<(&Value, &Value)> = match to {
        Side::Right => map.iter().map(|(left, right)| (left, right)).collect(),
        Side::Left => map.iter().map(|(left, right)| (right, left)).collect(),
    };
    let becomes =
        |value: &Value| pairs.iter().find(|(from, _)| *from == value).map_or(value.clone(), |(_, to)| (*to).clone());
    let images: Vec<Value> = had.iter().map(becomes).collect();
    let is_distinct = images.iter().enumerate().all(|(at, image)| !images[..at].contains(image));
    !had.is_empty()
        && is_distinct
        && had.len() == wanted.len()
        && images.iter().all(|image| wanted.contains(image))
        && (!source.nullable || target.nullable)
        && !has_rules(target)
        && target.checks.as_ref().is_none_or(|checks| {
            let only = Checks { allowed: checks.allowed.clone(), ..Checks::default() };
            **checks == only
        })
}

fn has_rules(schema: &Structural) -> bool {
    !schema.validations.is_empty()
        || schema.items.as_deref().is_some_and(has_rules)
        || values(schema).is_some_and(has_rules)
        || schema.properties.iter().any(|(_, property)| has_rules(property))
}

/// Whether two schemas say the same of their values.
fn is_same(one: &Structural, other: &Structural) -> bool {
    plain(one) == plain(other)
}

/// A schema without what only people read.
fn plain(schema: &Structural) -> Structural {
    let mut plain = schema.clone();
    simplify(&mut plain);
    plain
}

fn simplify(schema: &mut Structural) {
    (schema.title, schema.description, schema.notes) = (String::new(), String::new(), None);
    for rule in &mut schema.validations {
        (rule.message, rule.message_expression) = (String::new(), String::new());
    }
    schema.properties.iter_mut().for_each(|(_, property)| simplify(property));
    if let Some(items) = &mut schema.items {
        simplify(items);
    }
    if let Some(Additional::Schema(values)) = &mut schema.additional {
        simplify(values);
    }
}

fn is_at_least(had: Option<i64>, wanted: Option<i64>) -> bool {
    wanted.is_none_or(|wanted| wanted <= 0 || had.is_some_and(|had| had >= wanted))
}

fn is_at_most(had: Option<i64>, wanted: Option<i64>) -> bool {
    wanted.is_none_or(|wanted| had.is_some_and(|had| had <= wanted))
}

/// Whether a node without parts takes all that another one takes.
fn is_weaker(source: &Structural, had: &Checks, target: &Structural, wanted: &Checks) -> bool {
    let same_type = source.kind == target.kind && source.is_int_or_string == target.is_int_or_string;
    let is_number = matches!((source.kind, target.kind), (Some(JsonType::Integer), Some(JsonType::Number)));
    let low = wanted.minimum.is_none_or(|wanted_low| {
        had.minimum.is_some_and(|low| {
            low > wanted_low || (low == wanted_low && (had.exclusive_minimum || !wanted.exclusive_minimum))
        })
    });
    let high = wanted.maximum.is_none_or(|wanted_high| {
        had.maximum.is_some_and(|high| {
            high < wanted_high || (high == wanted_high && (had.exclusive_maximum || !wanted.exclusive_maximum))
        })
    });
    (same_type || (is_number && wanted == &Checks::default()))
        && target.kind.is_some()
        && !matches!(target.kind, Some(JsonType::Object | JsonType::Array))
        && low
        && high
        && (wanted.multiple_of.is_none() || wanted.multiple_of == had.multiple_of)
        && (wanted.format.is_empty() || wanted.format == had.format)
        && (wanted.pattern.is_empty() || wanted.pattern == had.pattern)
        && is_at_least(had.min_length, wanted.min_length)
        && is_at_most(had.max_length, wanted.max_length)
        && (wanted.allowed.is_empty()
            || (!had.allowed.is_empty() && had.allowed.iter().all(|value| wanted.allowed.contains(value))))
}
