//! [`Generator`]: valid objects of a version, made from its schema: first those that go to its bounds, then a sample that
//! looks like chance and is the same every time.
//!
//! A value is made for each node by what the node says (`generate/scalars.rs` for what has no parts). What nodes say of
//! each other (`anyOf`, `not`, rules in CEL) is reached by trying: an object that is refused is changed here and there
//! for as long as that makes fewer faults.

mod dice;
mod places;
mod scalars;
mod shrink;

pub use dice::Dice;
pub(crate) use shrink::SHRINKING;
pub use shrink::shrink;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use revisor_object::{FieldPath, Object, Value};
use revisor_schema::{JsonType, ListType, PatternWalk, Structural, Validator};

use crate::path::{Path, Segment};
use crate::schema::{META, VersionSchema, below, is_object, is_open, values};
use places::{places, set};

/// How deep objects are made.
const MAX_DEPTH: usize = 24;

/// How many items a list gets that may have more.
const MAX_ITEMS: usize = 4;

/// How many items a list gets at most because it must.
const MAX_LEAST: usize = 256;

/// How many values an object gets.
const MAX_VALUES: usize = 5000;

/// How many values are looked at altogether to find valid objects.
const MAX_CHECKED: usize = 5_000_000;

/// How often an object is changed that is not valid yet.
const MENDINGS: usize = 40;

/// How much of what is possible an object has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// No more than it must.
    Least,
    /// All that it may.
    Most,
    /// Some.
    Some,
}

/// Makes objects of a version.
#[derive(Debug)]
pub struct Generator<'s> {
    version: &'s VersionSchema,
    /// Values that rules and expressions speak of.
    hints: Vec<Value>,
    dice: Dice,
    walks: HashMap<String, Option<PatternWalk>>,
    /// What is worth a try at each node of the schema, by where the node lies in memory.
    candidates: HashMap<usize, Rc<[Value]>>,
    /// How many values the object at hand has so far.
    made: usize,
    /// How many values were looked at so far to find out whether objects are valid, and how many may be.
    checked: usize,
    most_checked: usize,
    /// Places that come before others.
    focus: Vec<Path>,
    /// Places that the schema does not have.
    extra: Vec<(Path, Structural)>,
    /// The places of the schema, once somebody asked for them.
    known: Option<Rc<[Place<'s>]>>,
}

impl<'s> Generator<'s> {
    /// Makes objects of `version`; `hints` are values that are worth a try. The same seed makes the same objects.
    pub fn new(version: &'s VersionSchema, hints: &[Value], seed: u64) -> Generator<'s> {
        Generator {
            version,
            hints: hints.to_vec(),
            dice: Dice::new(seed),
            walks: HashMap::new(),
            candidates: HashMap::new(),
            made: 0,
            checked: 0,
            most_checked: MAX_CHECKED,
            focus: Vec::new(),
            extra: Vec::new(),
            known: None,
        }
    }

    /// Tries the bounds of these places, of what is in them and of what they are in, before all others.
    pub fn with_focus(mut self, focus: Vec<Path>) -> Generator<'s> {
        self.focus = focus;
        self
    }

    /// Also fills places that the schema does not have, with values of these schemas.
    pub fn with_places(mut self, extra: Vec<(Path, Structural)>) -> Generator<'s> {
        self.extra = extra;
        self
    }

    /// Looks at no more than so many values to find valid objects.
    pub fn look_at_most(&mut self, values: usize) {
        self.most_checked = values.min(MAX_CHECKED);
    }

    /// Hands objects that go to the bounds of the schema to `take`, from the smallest on, until it answers `false`.
    pub fn boundaries(&mut self, take: &mut dyn FnMut(Value) -> bool) {
        let extra = std::mem::take(&mut self.extra);
        self.each_boundary(&extra, take);
        self.extra = extra;
    }

    fn each_boundary(&mut self, extra: &[(Path, Structural)], take: &mut dyn FnMut(Value) -> bool) {
        let (least, most) = (self.object(Measure::Least), self.object(Measure::Most));
        for object in [&least, &most] {
            if !self.offer(object.clone(), take) {
                return;
            }
        }
        let known = self.places();
        let of_schema = known.iter().map(|place| (&place.path, place.schema));
        let mut places: Vec<(&Path, &Structural)> =
            of_schema.chain(extra.iter().map(|(path, schema)| (path, schema))).collect();
        let is_in_focus = |path: &Path| self.focus.iter().any(|other| other.covers(path) || path.covers(other));
        places.sort_by_key(|(path, _)| !is_in_focus(path));
        let candidates: Vec<Rc<[Value]>> = places.iter().map(|(_, schema)| self.candidates(schema)).collect();
        let rounds = candidates.iter().map(|candidates| candidates.len()).max().unwrap_or(0);
        // Every place once, before any place again: there may be more of them than can be tried.
        for round in 0..rounds {
            for ((path, _), candidates) in places.iter().zip(&candidates) {
                let Some(value) = candidates.get(round) else { continue };
                for base in [&least, &most] {
                    let mut object = base.clone();
                    set(self, &mut object, path, value.clone());
                    if !self.offer(object, take) {
                        return;
                    }
                }
                if round == 0 {
                    // Everything but this.
                    let mut object = most.clone();
                    path.clear(&mut object);
                    if !self.offer(object, take) {
                        return;
                    }
                }
            }
        }
    }

    /// An object by chance, if one was found.
    pub fn sample(&mut self) -> Option<Value> {
        let mut object = self.object(Measure::Some);
        if !self.extra.is_empty() {
            let extra = std::mem::take(&mut self.extra);
            let (path, schema) = &extra[self.dice.below(extra.len())];
            let value = self.value(schema, Measure::Some, 4);
            set(self, &mut object, path, value);
            self.extra = extra;
        }
        self.mend(object, None)
    }

    /// A valid object with this value at a path, and little else; nothing if none was found.
    pub fn holding(&mut self, path: &Path, value: &Value) -> Option<Value> {
        for measure in [Measure::Least, Measure::Most, Measure::Some, Measure::Some] {
            let mut object = self.object(measure);
            if !path.is_root() {
                set(self, &mut object, path, value.clone());
            }
            if let Some(object) = self.mend(object, Some(path)).filter(|object| path.find(object).is_some()) {
                return Some(object);
            }
        }
        None
    }

    /// Values that are worth a try where a schema stands: its bounds, and what else makes a difference. All of them are
    /// valid by the schema.
    pub fn values(&mut self, schema: &Structural) -> Vec<Value> {
        self.find_candidates(schema)
    }

    /// The simplest value of a schema.
    pub fn least(&mut self, schema: &Structural) -> Value {
        self.made = 0;
        self.value(schema, Measure::Least, 4)
    }

    fn offer(&mut self, object: Value, take: &mut dyn FnMut(Value) -> bool) -> bool {
        match self.mend(object, None) {
            Some(object) => take(object),
            None => self.checked < self.most_checked,
        }
    }

    fn object(&mut self, measure: Measure) -> Value {
        self.made = 0;
        let mut object = self.version.bare("x");
        let schema = self.version.structural();
        if let Value::Object(made) = self.value(schema, measure, 0) {
            for (name, value) in made.iter().filter(|(name, _)| !META.contains(name)) {
                object.insert(name, value.clone());
            }
        }
        Value::Object(object)
    }

    /// Makes an object valid: by its defaults, and by changing it here and there, but not where it is to stay.
    fn mend(&mut self, mut object: Value, stays: Option<&Path>) -> Option<Value> {
        let mut faults = self.faults(&mut object)?;
        if faults.is_empty() {
            return Some(object);
        }
        let known = self.places();
        let may_change = |place: &&Place<'_>| {
            stays.is_none_or(|stays| stays.is_root() || !place.path.covers(stays) && !stays.covers(&place.path))
        };
        let places: Vec<&Place<'_>> = known.iter().filter(may_change).collect();
        if places.is_empty() {
            return None;
        }
        for _ in 0..MENDINGS {
            let Place { path, schema, .. } = self.place_to_mend(&places, &faults);
            let mut changed = object.clone();
            match self.dice.below(4) {
                0 => path.clear(&mut changed),
                // What is compared with each other is often the same, or next to it.
                1 => {
                    let other = places[self.dice.below(places.len())];
                    let Some(value) = other.path.find(&object).cloned() else { continue };
                    // An object of another shape has members there that nobody knows, which is no fault and yet lost.
                    if matches!(value, Value::Object(_) | Value::Array(_)) && other.schema != *schema {
                        continue;
                    }
                    let step = self.dice.below(3) as i64 - 1;
                    let value = match value {
                        Value::Int(number) => Value::Int(number.saturating_add(step)),
                        other => other,
                    };
                    set(self, &mut changed, path, value);
                }
                _ => {
                    let value = self.value(schema, Measure::Some, 8);
                    set(self, &mut changed, path, value);
                }
            }
            let left = self.faults(&mut changed)?;
            if left.len() <= faults.len() {
                (object, faults) = (changed, left);
            }
            if faults.is_empty() {
                return Some(object);
            }
        }
        None
    }

    /// A place that a change may make fewer faults: most of the time one where there is a fault, or below it. A rule is
    /// told where it stands, and speaks of what is in there.
    fn place_to_mend<'p>(&mut self, places: &[&'p Place<'s>], faults: &[String]) -> &'p Place<'s> {
        if self.dice.below(4) > 0 {
            let fault = &faults[self.dice.below(faults.len())];
            let is_near = |place: &&Place<'_>| {
                let rest = place.name.strip_prefix(fault.as_str());
                rest.is_some_and(|rest| rest.is_empty() || fault.is_empty() || rest.starts_with('.'))
            };
            let near: Vec<&'p Place<'s>> = places.iter().copied().filter(is_near).collect();
            if !near.is_empty() {
                return near[self.dice.below(near.len())];
            }
        }
        places[self.dice.below(places.len())]
    }

    /// The places of the schema.
    fn places(&mut self) -> Rc<[Place<'s>]> {
        let version = self.version;
        Rc::clone(self.known.get_or_insert_with(|| places(version.structural()).into()))
    }

    /// The faults of an object with its defaults, by the names of their places; `None` if too much was looked at already.
    fn faults(&mut self, object: &mut Value) -> Option<Vec<String>> {
        if self.checked >= self.most_checked {
            return None;
        }
        self.checked += size(object);
        self.version.fill_defaults(object);
        Some(self.version.validate(object).iter().map(|error| name_of_field(&error.field)).collect())
    }

    /// Values of a node that are worth a try: its bounds, and what others speak of. All of them are valid by the node.
    /// The node must lie where it does for as long as the generator is used.
    fn candidates(&mut self, schema: &Structural) -> Rc<[Value]> {
        let place = std::ptr::from_ref(schema).addr();
        if let Some(known) = self.candidates.get(&place) {
            return Rc::clone(known);
        }
        let found: Rc<[Value]> = self.find_candidates(schema).into();
        self.candidates.insert(place, Rc::clone(&found));
        found
    }

    fn find_candidates(&mut self, schema: &Structural) -> Vec<Value> {
        self.made = 0;
        let mut found = match schema.kind {
            _ if schema.checks.as_ref().is_some_and(|checks| !checks.allowed.is_empty()) => {
                schema.checks.as_ref().map(|checks| checks.allowed.clone()).unwrap_or_default()
            }
            Some(JsonType::Object) if !schema.is_int_or_string => {
                [Measure::Least, Measure::Most, Measure::Some].map(|measure| self.value(schema, measure, 4)).to_vec()
            }
            Some(JsonType::Array) if !schema.is_int_or_string => self.lists(schema),
            _ => self.scalars(schema),
        };
        if schema.nullable {
            found.push(Value::Null);
        }
        let validator = Validator::compile(schema, u32::MAX);
        let mut seen = BTreeSet::new();
        found.retain(|value| {
            let errors = validator.validate(&FieldPath::none(), value);
            errors.is_empty() && seen.insert(value.to_json())
        });
        found
    }

    fn lists(&mut self, schema: &Structural) -> Vec<Value> {
        let checks = schema.checks.as_deref();
        let (least, most) = span(checks.map(|checks| (checks.min_items, checks.max_items)));
        let mut found = Vec::new();
        for count in [least, least + 1, least + 2, most.min(MAX_ITEMS * 2)] {
            for measure in [Measure::Least, Measure::Some] {
                found.push(self.list(schema, count.min(most), measure, 4));
            }
        }
        found
    }

    fn list(&mut self, schema: &Structural, count: usize, measure: Measure, depth: usize) -> Value {
        let Some(item) = schema.items.as_deref() else { return Value::Array(Vec::new()) };
        let is_distinct = schema.list_type == Some(ListType::Set)
            || schema.checks.as_ref().is_some_and(|checks| checks.unique_items)
            || schema.list_type == Some(ListType::Map);
        let identity = |item: &Value| match (item, schema.list_type) {
            (Value::Object(object), Some(ListType::Map)) => schema
                .list_map_keys
                .iter()
                .map(|key| object.get(key).map(Value::to_json))
                .map(|key| format!("{key:?}"))
                .collect(),
            (item, _) => item.to_json(),
        };
        let mut items: Vec<Value> = Vec::new();
        let mut seen = BTreeSet::new();
        for attempt in 0..count * 8 {
            if items.len() == count {
                break;
            }
            let measure = if attempt == 0 || measure == Measure::Most { measure } else { Measure::Some };
            let made = self.value(item, measure, depth + 1);
            if !is_distinct || seen.insert(identity(&made)) {
                items.push(made);
            }
        }
        Value::Array(items)
    }

    /// A value of a node. An object that becomes too large gets no more than it must, and in the end not even that.
    fn value(&mut self, schema: &Structural, measure: Measure, depth: usize) -> Value {
        let checks = schema.checks.as_deref();
        self.made += 1;
        let measure = if self.made > MAX_VALUES { Measure::Least } else { measure };
        if self.made > 2 * MAX_VALUES {
            return Value::Null;
        }
        if let Some(allowed) = checks.map(|checks| &checks.allowed).filter(|allowed| !allowed.is_empty()) {
            let at = if measure == Measure::Least { 0 } else { self.dice.below(allowed.len()) };
            return allowed[at].clone();
        }
        if schema.nullable && measure == Measure::Some && self.dice.below(8) == 0 {
            return Value::Null;
        }
        match schema.kind {
            Some(JsonType::Object) if !schema.is_int_or_string => Value::Object(self.members(schema, measure, depth)),
            Some(JsonType::Array) if !schema.is_int_or_string => {
                let (least, most) = span(checks.map(|checks| (checks.min_items, checks.max_items)));
                let count = match measure {
                    Measure::Least => least,
                    _ if depth >= MAX_DEPTH => least,
                    Measure::Most => least.max(2).min(most),
                    Measure::Some => (least + self.dice.below(MAX_ITEMS)).min(most),
                };
                self.list(schema, count, measure, depth)
            }
            _ => self.scalar(schema, measure == Measure::Least),
        }
    }

    fn members(&mut self, schema: &Structural, measure: Measure, depth: usize) -> Object {
        let checks = schema.checks.as_deref();
        let mut object = Object::new();
        if schema.is_embedded_resource {
            object.insert("apiVersion", "v1");
            object.insert("kind", "Thing");
            object.object_mut("metadata").insert("name", "x");
        }
        // One of the alternatives, so that it has a chance to hold.
        let alternatives: Vec<&Structural> =
            checks.map(|checks| checks.any_of.iter().chain(&checks.one_of).collect()).unwrap_or_default();
        let alternative = match alternatives.len() {
            0 => None,
            count => Some(alternatives[self.dice.below(count)]),
        };
        let demanded = |name: &str| {
            let demands = |schema: &Structural| {
                schema.checks.as_ref().is_some_and(|checks| checks.required.iter().any(|required| **required == *name))
            };
            demands(schema)
                || alternative.is_some_and(demands)
                || checks.is_some_and(|checks| checks.all_of.iter().any(demands))
        };
        for (name, property) in &schema.properties {
            let is_wanted = demanded(name)
                || match measure {
                    Measure::Least => false,
                    Measure::Most => depth < MAX_DEPTH,
                    Measure::Some => depth < MAX_DEPTH && self.dice.below(3) > 0,
                };
            if !is_wanted || META.contains(&&**name) && schema.is_embedded_resource {
                continue;
            }
            let narrowed = alternative.and_then(|alternative| alternative.property(name));
            let narrowed =
                narrowed.filter(|narrowed| narrowed.checks.as_ref().is_some_and(|checks| !checks.allowed.is_empty()));
            let value = self.value(narrowed.unwrap_or(property), measure, depth + 1);
            object.insert(name, value);
        }
        let (least, most) = span(checks.map(|checks| (checks.min_properties, checks.max_properties)));
        if let Some(member) = values(schema) {
            let wanted = match measure {
                Measure::Least => least,
                Measure::Most => least.max(2),
                Measure::Some => least + self.dice.below(MAX_ITEMS),
            };
            for at in 0..wanted.min(most).min(64) {
                const KEYS: [&str; 6] = ["k", "a", "x.y/z", "", "K1", "é"];
                let key = KEYS.get(at).map_or_else(|| format!("k{at}"), |key| (*key).to_owned());
                let value = self.value(member, measure, depth + 1);
                object.insert(&key, value);
            }
        } else if is_open(schema) && measure != Measure::Least && self.dice.below(2) == 0 {
            object.insert("unknown", Value::Array(vec![Value::Null, Value::Int(1)]));
        }
        for (name, property) in &schema.properties {
            if object.len() >= least {
                break;
            }
            if !object.contains(name) {
                let value = self.value(property, Measure::Least, depth + 1);
                object.insert(name, value);
            }
        }
        for (name, _) in schema.properties.iter().rev() {
            if object.len() > most && !demanded(name) {
                object.remove(name);
            }
        }
        object
    }
}

/// The least and the most that may be there. More than some is not made, whatever the schema asks for.
fn span(bounds: Option<(Option<i64>, Option<i64>)>) -> (usize, usize) {
    let (least, most) = bounds.unwrap_or_default();
    let bound = |bound: Option<i64>| bound.map(|count| usize::try_from(count).unwrap_or(0));
    (bound(least).unwrap_or(0).min(MAX_LEAST), bound(most).unwrap_or(usize::MAX))
}

/// How many values there are in a value.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(object) => 1 + object.iter().map(|(_, value)| size(value)).sum::<usize>(),
        _ => 1,
    }
}

/// What a schema says at a path.
fn schema_at<'s>(root: &'s Structural, path: &[Segment]) -> Option<&'s Structural> {
    path.iter().try_fold(root, below)
}

/// The value that must be there for something in it to be set.
fn holder(generator: &mut Generator<'_>, path: &[Segment]) -> Value {
    let version = generator.version;
    let Some(schema) = schema_at(version.structural(), path) else { return Value::Object(Object::new()) };
    let made = generator.value(schema, Measure::Least, 4);
    match (&made, is_object(schema)) {
        (Value::Null, true) => Value::Object(Object::new()),
        _ => made,
    }
}

/// A place of a schema.
#[derive(Debug)]
struct Place<'s> {
    path: Path,
    schema: &'s Structural,
    /// Its path as fields are named in errors, without what stands in brackets.
    name: String,
}

impl<'s> Place<'s> {
    fn new(path: Path, schema: &'s Structural) -> Place<'s> {
        let names = path.segments().iter().filter_map(|segment| match segment {
            Segment::Name(name) => Some(&**name),
            Segment::Every => None,
        });
        let name = names.collect::<Vec<_>>().join(".");
        Place { path, schema, name }
    }
}

/// The field of an error without what stands in brackets.
fn name_of_field(field: &str) -> String {
    let mut pieces = field.split('[');
    let first = pieces.next().unwrap_or_default();
    let behind = pieces.map(|piece| piece.split_once(']').map_or("", |(_, rest)| rest));
    let name: String = std::iter::once(first).chain(behind).collect();
    if name == "<nil>" { String::new() } else { name }
}

#[cfg(test)]
mod tests;
