//! [`Alignment`]: which fields of two versions are the same, found by walking both shapes at once.
//!
//! What has the same name at the same place and a type that fits is carried over without a rule. What is left over on
//! either side is matched, best pair first, among all fields of the same scope: the whole object, or the items of one
//! list. Fields that turn out to be the same are walked again, for what differs in them.

use std::collections::BTreeSet;

use revisor_object::{Object, Value};
use revisor_schema::{JsonType, Structural};

use super::names::{differ_in_units, likeness};
use super::shapes::{allowed, is_same, likeness_of, requires, weight};
use super::{Proposal, Sureness};
use crate::generate::Generator;
use crate::path::{Path, Segment};
use crate::schema::{META, VersionSchema, fits, is_object, values};

/// How many fields of one side are compared with those of the other, those that are nearest to the root first.
const MAX_FIELDS: usize = 600;

/// How often what was found is looked into for more.
const MAX_ROUNDS: usize = 12;

/// What it is worth that a pair explains another one in it: more than any of these is worth by itself.
const MEMBER: f64 = 8.0;

/// How many objects are looked at for a value to fill in.
const MAX_SAMPLES: usize = 64;

/// What is known of two versions.
pub(super) struct Alignment<'s> {
    versions: [&'s VersionSchema; 2],
    /// Objects that are the same on both sides.
    same: BTreeSet<[Path; 2]>,
    pub(super) proposals: Vec<Proposal>,
    /// The fields of each side that the other one does not have.
    pub(super) alone: [Vec<Path>; 2],
    pub(super) notes: Vec<String>,
    /// Whether lists on the left became single values on the right, and the other way round.
    pub(super) has_lists: [bool; 2],
}

/// A field that the other side does not have, or not so.
#[derive(Clone)]
struct Field<'s> {
    path: Path,
    schema: &'s Structural,
    parent: Path,
    is_required: bool,
}

/// What is left over of a scope.
#[derive(Default)]
struct Pool<'s> {
    sides: [Vec<Field<'s>>; 2],
}

/// How two fields are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Move,
    /// One on this side is a list on the other.
    List(usize),
}

/// A pair of fields that may be one.
struct Match<'s> {
    ends: [Field<'s>; 2],
    how: How,
    score: f64,
    sureness: Sureness,
    why: String,
}

impl<'s> Alignment<'s> {
    /// Compares two versions.
    pub(super) fn of(left: &'s VersionSchema, right: &'s VersionSchema) -> Alignment<'s> {
        let mut alignment = Alignment {
            versions: [left, right],
            same: BTreeSet::new(),
            proposals: Vec::new(),
            alone: Default::default(),
            notes: Vec::new(),
            has_lists: [false; 2],
        };
        alignment.scope([Path::root(), Path::root()], [left.structural(), right.structural()]);
        alignment
    }

    /// Compares what stands for the same thing on both sides, apart from all that surrounds it.
    fn scope(&mut self, paths: [Path; 2], schemas: [&'s Structural; 2]) {
        let mut pool = Pool::default();
        self.walk(paths, schemas, &mut pool);
        self.settle(pool);
    }

    fn walk(&mut self, paths: [Path; 2], schemas: [&'s Structural; 2], pool: &mut Pool<'s>) {
        let [one, other] = schemas;
        let inner = match (&one.items, &other.items) {
            (Some(one), Some(other)) => Some([&**one, &**other]),
            _ => values(one).zip(values(other)).map(|(one, other)| [one, other]),
        };
        if let Some(inner) = inner {
            let items = [paths[0].every(), paths[1].every()];
            self.compare_values(&items, inner);
            return self.scope(items, inner);
        }
        if !is_object(one) || !is_object(other) {
            return;
        }
        self.same.insert(paths.clone());
        let is_root = paths[0].is_root();
        let is_own = |name: &str| !(is_root && META.contains(&name));
        let field = |side: usize, name: &str, schema: &'s Structural| Field {
            path: paths[side].member(name),
            schema,
            parent: paths[side].clone(),
            is_required: requires(schemas[side], name),
        };
        for (name, schema) in one.properties.iter().filter(|(name, _)| is_own(name)) {
            match other.property(name) {
                Some(same) if fits(schema, same) => {
                    let ends = [paths[0].member(name), paths[1].member(name)];
                    self.compare_values(&ends, [schema, same]);
                    self.walk(ends, [schema, same], pool);
                }
                Some(unfit) => {
                    pool.sides[0].push(field(0, name, schema));
                    pool.sides[1].push(field(1, name, unfit));
                }
                None => pool.sides[0].push(field(0, name, schema)),
            }
        }
        let is_new = |name: &str| one.property(name).is_none() && is_own(name);
        let new = other.properties.iter().filter(|(name, _)| is_new(name));
        pool.sides[1].extend(new.map(|(name, schema)| field(1, name, schema)));
    }

    /// Proposes other names for values of a field that may have some only.
    fn compare_values(&mut self, ends: &[Path; 2], schemas: [&Structural; 2]) {
        if let Some((rule, sureness, why)) = self.values_rule(ends, schemas) {
            self.proposals.push(Proposal { rule, sureness, why });
        }
    }

    fn values_rule(&mut self, ends: &[Path; 2], schemas: [&Structural; 2]) -> Option<(Value, Sureness, String)> {
        let (one, other) = (allowed(schemas[0])?, allowed(schemas[1])?);
        let renamed = Renamed::of(&one, &other)?;
        let [left, right] = self.versions.map(VersionSchema::name);
        for (values, path, version, missing) in
            [(&renamed.alone[0], &ends[0], left, right), (&renamed.alone[1], &ends[1], right, left)]
        {
            if !values.is_empty() {
                let note = format!("{path} may be {} in {version}, for which {missing} has no name", values.join(", "));
                self.notes.push(note);
            }
        }
        let map = renamed.map.iter().map(|(one, other)| (*one, Value::from(*other))).collect::<Object>();
        if map.iter().all(|(one, other)| other.as_str() == Some(one)) {
            return None;
        }
        let mut body = vec![("path", Value::from(ends[0].to_string()))];
        if ends[0] != ends[1] {
            body.push(("to", Value::from(ends[1].to_string())));
        }
        body.push(("map", Value::Object(map)));
        Some((rule("values", body), renamed.sureness, renamed.why.to_owned()))
    }

    /// Matches what is left over of a scope until nothing more is found.
    fn settle(&mut self, mut pool: Pool<'s>) {
        for _ in 0..MAX_ROUNDS {
            let found = self.matches(&pool);
            if found.is_empty() {
                break;
            }
            for found in found {
                self.take(found, &mut pool);
            }
        }
        self.leave(&pool);
    }

    /// The pairs of this round, best first, of which none is in the way of another.
    fn matches(&self, pool: &Pool<'s>) -> Vec<Match<'s>> {
        let fields = [0, 1].map(|side| candidates(&pool.sides[side]));
        let mut found: Vec<Match<'s>> = Vec::new();
        for one in &fields[0] {
            found.extend(fields[1].iter().filter_map(|other| self.judge(one, other, &fields, pool)));
        }
        found.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.order().cmp(&other.order())));
        let mut taken: Vec<Match<'s>> = Vec::new();
        for candidate in found {
            let overlaps = |other: &Match<'_>| {
                [0, 1].iter().any(|side| {
                    let (one, other) = (&candidate.ends[*side].path, &other.ends[*side].path);
                    one.covers(other) || other.covers(one)
                })
            };
            if !taken.iter().any(overlaps) {
                taken.push(candidate);
            }
        }
        taken
    }

    /// Whether two fields may be one, and how sure that is.
    fn judge(
        &self,
        one: &Field<'s>,
        other: &Field<'s>,
        fields: &[Vec<Field<'s>>; 2],
        pool: &Pool<'s>,
    ) -> Option<Match<'s>> {
        let name = likeness(one.name(), other.name());
        let is_sibling = self.same.contains(&[one.parent.clone(), other.parent.clone()]);
        let made = |how, score: f64, sureness, why: &str| {
            let sibling = if is_sibling { 0.5 } else { 0.0 };
            let ends = [one.clone(), other.clone()];
            Some(Match { ends, how, score: score + sibling, sureness, why: why.to_owned() })
        };
        if !fits(one.schema, other.schema) {
            let list =
                [(one, other, 0), (other, one, 1)].into_iter().find(|(single, list, _)| is_list_of(list, single));
            let (_, _, side) = list?;
            return match (name, is_sibling) {
                (name, true) if name >= 0.8 => {
                    made(How::List(side), 2.0 + name, Sureness::Sure, "one value became a list of the same name")
                }
                (name, _) if name >= 0.8 => {
                    made(How::List(side), 1.5 + name, Sureness::Likely, "one value became a list")
                }
                (name, true) if name >= 0.5 => {
                    made(How::List(side), 1.0 + name, Sureness::Likely, "one value became a list of a similar name")
                }
                _ => None,
            };
        }
        let shape = likeness_of(one.schema, other.schema);
        let is_same = is_same(one.schema, other.schema);
        let weight = weight(one.schema).min(weight(other.schema));
        let is_described = !one.schema.description.is_empty() && one.schema.description == other.schema.description;
        // Objects that are one explain all that is in them, so they come before each of their members.
        let explained = shape * one.schema.properties.len().max(other.schema.properties.len()) as f64;
        let described = if is_described { 1.0 } else { 0.0 };
        let score = 3.0 * shape + 2.0 * name + described + (weight.min(20) as f64) / 20.0 + MEMBER * explained;
        let is_only = || [one, other].iter().zip(fields).all(|(field, fields)| twins(field, fields) == 1);
        if shape < 0.5 {
            return None;
        }
        if name == 1.0 {
            let sureness = if is_same { Sureness::Sure } else { Sureness::Likely };
            return made(How::Move, score, sureness, "the same name at another place");
        }
        if is_same && weight > 0 && is_only() {
            let (sureness, why) = match is_sibling || name >= 0.5 || weight > 2 {
                true => (Sureness::Sure, "the same shape, which no other field has"),
                false => (Sureness::Likely, "the same shape, which no other field has, at another place"),
            };
            return made(How::Move, score + 0.5, sureness, why);
        }
        if name >= 0.5 {
            let is_sure = is_same && (is_described || (is_sibling && name >= 0.8));
            let sureness = if is_sure { Sureness::Sure } else { Sureness::Likely };
            return made(How::Move, score, sureness, "a similar name and a shape that fits");
        }
        if is_described {
            return made(How::Move, score, Sureness::Likely, "the same description and a shape that fits");
        }
        if weight > 1 && is_sibling && shape >= 0.7 {
            return made(How::Move, score, Sureness::Likely, "a similar shape at the same place");
        }
        // The last of its type on each side of an object: that may be one field, or one that went and one that came.
        let is_alone = |side: usize, field: &Field<'s>| {
            let others = pool.sides[side].iter().filter(|other| other.parent == field.parent);
            let mut fitting = others.filter(|other| fits(other.schema, field.schema));
            fitting.next().is_some_and(|only| only.path == field.path) && fitting.next().is_none()
        };
        if is_sibling
            && shape >= 0.7
            && is_alone(0, one)
            && is_alone(1, other)
            && !differ_in_units(one.name(), other.name())
        {
            return made(How::Move, score, Sureness::Guess, "nothing else of this type went or came here");
        }
        None
    }

    /// Proposes a rule for a pair, and looks for what differs in it.
    fn take(&mut self, found: Match<'s>, pool: &mut Pool<'s>) {
        let Match { ends, how, sureness, why, .. } = found;
        let paths = [ends[0].path.clone(), ends[1].path.clone()];
        let schemas = [ends[0].schema, ends[1].schema];
        for (side, fields) in pool.sides.iter_mut().enumerate() {
            split(fields, &paths[side]);
        }
        let places = || vec![("from", Value::from(paths[0].to_string())), ("to", Value::from(paths[1].to_string()))];
        match how {
            How::List(side) => {
                self.has_lists[side] = true;
                // Only one value on the left can become a list on the right: otherwise the step is turned round.
                if side == 0 {
                    self.proposals.push(Proposal { rule: rule("list", places()), sureness, why });
                }
            }
            How::Move => {
                match self.values_rule(&paths, schemas) {
                    Some((rule, by_values, _)) => {
                        let why = format!("{why}; values have other names");
                        self.proposals.push(Proposal { rule, sureness: sureness.max(by_values), why });
                    }
                    None => self.proposals.push(Proposal { rule: rule("move", places()), sureness, why }),
                }
                self.walk(paths, schemas, pool);
            }
        }
    }

    /// Deals with what nothing was found for.
    fn leave(&mut self, pool: &Pool<'s>) {
        for side in [0, 1] {
            for field in &pool.sides[side] {
                let version = self.versions[side];
                let needs_value = field.is_required && field.schema.default.is_none();
                let filled = if needs_value { sample(version, &field.path) } else { None };
                let Some(value) = filled else {
                    self.alone[side].push(field.path.clone());
                    continue;
                };
                let what = if side == 0 { "remove" } else { "add" };
                let body = vec![("path", Value::from(field.path.to_string())), ("value", value)];
                let why = format!("{} requires it; choose the value that others get", version.name());
                self.proposals.push(Proposal { rule: rule(what, body), sureness: Sureness::Guess, why });
            }
        }
        let [left, right] = self.versions.map(VersionSchema::name);
        for one in &pool.sides[0] {
            for other in pool.sides[1].iter().filter(|other| differ_in_units(one.name(), other.name())) {
                let (one, other) = (&one.path, &other.path);
                let note =
                    format!("{one} of {left} and {other} of {right} may be one value in other units: see compute");
                self.notes.push(note);
            }
            for other in pool.sides[1].iter().filter(|other| other.path == one.path) {
                let path = &other.path;
                let note =
                    format!("{path} has another type in {right}: each version keeps its own, unless a rule says how");
                self.notes.push(note);
            }
        }
    }
}

impl Field<'_> {
    fn name(&self) -> &str {
        match self.path.segments().last() {
            Some(Segment::Name(name)) => name,
            Some(Segment::Every) | None => "",
        }
    }
}

impl Match<'_> {
    fn order(&self) -> (usize, &Path, &Path) {
        (self.ends[0].path.segments().len(), &self.ends[0].path, &self.ends[1].path)
    }
}

/// The fields and all that is in them, without what is in lists: those that are nearest to the root first.
fn candidates<'s>(fields: &[Field<'s>]) -> Vec<Field<'s>> {
    let mut found = fields.to_vec();
    let mut next = 0;
    while next < found.len() && found.len() < MAX_FIELDS {
        let Field { path, schema, .. } = found[next].clone();
        if is_object(schema) {
            found.extend(members(&path, schema));
        }
        next += 1;
    }
    found.truncate(MAX_FIELDS);
    found
}

fn members<'s>(path: &Path, schema: &'s Structural) -> impl Iterator<Item = Field<'s>> {
    schema.properties.iter().map(move |(name, member)| Field {
        path: path.member(name),
        schema: member,
        parent: path.clone(),
        // Whether it is needed is decided by whether what it is in is there.
        is_required: false,
    })
}

/// Takes a field away. Of one that it was in, all others are left.
fn split(fields: &mut Vec<Field<'_>>, taken: &Path) {
    let mut at = 0;
    while at < fields.len() {
        if fields[at].path == *taken {
            fields.remove(at);
        } else if fields[at].path.covers(taken) {
            let outer = fields.remove(at);
            fields.extend(members(&outer.path, outer.schema));
        } else {
            at += 1;
        }
    }
}

/// How many of these have the same shape, the field itself counted.
fn twins(field: &Field<'_>, fields: &[Field<'_>]) -> usize {
    let is_apart = |other: &&Field<'_>| other.path == field.path || !other.path.covers(&field.path);
    fields.iter().filter(is_apart).filter(|other| is_same(field.schema, other.schema)).count()
}

fn is_list_of(list: &Field<'_>, single: &Field<'_>) -> bool {
    list.schema.kind == Some(JsonType::Array)
        && list.schema.items.as_ref().is_some_and(|item| fits(item, single.schema))
}

/// Something that may stand at a place.
fn sample(version: &VersionSchema, path: &Path) -> Option<Value> {
    let (mut found, mut tries) = (None, 0);
    Generator::new(version, &[], 1).boundaries(&mut |object| {
        tries += 1;
        found = path.find(&object).cloned();
        found.is_none() && tries < MAX_SAMPLES
    });
    found
}

fn rule(name: &str, body: Vec<(&str, Value)>) -> Value {
    let body: Object = body.into_iter().collect();
    Value::Object([(name, Value::Object(body))].into_iter().collect())
}

/// Values of one field by the names that they have in two versions.
struct Renamed<'v> {
    map: Vec<(&'v str, &'v str)>,
    alone: [Vec<&'v str>; 2],
    sureness: Sureness,
    why: &'static str,
}

impl<'v> Renamed<'v> {
    /// Nothing if the values are the same.
    fn of(one: &[&'v str], other: &[&'v str]) -> Option<Renamed<'v>> {
        let plain =
            |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
        let mut left: Vec<&str> = other.to_vec();
        let (mut map, mut alone) = (Vec::new(), Vec::new());
        // The same name first: another one that only looks like it is another value.
        for is_exact in [true, false] {
            let open: Vec<&str> = if is_exact { one.to_vec() } else { std::mem::take(&mut alone) };
            for value in open {
                let fits = |other: &&str| if is_exact { **other == *value } else { plain(other) == plain(value) };
                match left.iter().position(fits) {
                    Some(at) => map.push((value, left.remove(at))),
                    None => alone.push(value),
                }
            }
        }
        let (mut sureness, mut why) = (Sureness::Sure, "the same values, written otherwise");
        if let ([one], [other]) = (&alone[..], &left[..]) {
            map.push((one, other));
            (alone, left) = (Vec::new(), Vec::new());
            (sureness, why) = (Sureness::Guess, "one value went and one came");
        } else if !alone.is_empty() || !left.is_empty() {
            sureness = Sureness::Likely;
        }
        let has_changed = map.iter().any(|(one, other)| one != other) || !alone.is_empty() || !left.is_empty();
        has_changed.then_some(Renamed { map, alone: [alone, left], sureness, why })
    }
}
