//! [`empties`]: every list, map and part of every kind, sent with nothing in it.
//!
//! Nothing and something with nothing in it look the same in a stored object, but not to whoever defaults, validates and
//! tracks what is sent. So all places are gone through, each by itself, in an object that is good otherwise: it is tried
//! as a new object, as an update of one that lacks it, as a patch and as a configuration that is applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use revisor_catalog::{Resource, Verb};
use revisor_fuzz::{Choices, examples};
use revisor_growth::objects::small;
use revisor_object::{Object, Value};
use revisor_schema::{Presence, Shape, StructId, Types};

use super::{Subject, named, resources};
use crate::group::{Group, Step};

/// How many places a group tries.
const PLACES: usize = 8;

/// How many parts that a good object does not have are made around a place.
const MAX_MADE: usize = 2;

/// How deep places may lie, steps into the items of lists and maps included: schemas hold schemas.
const MAX_DEPTH: usize = 14;

/// One step on the way to a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// To a member.
    Member(String),
    /// To the first item of a list.
    Item,
    /// To an item of a map.
    Entry(String),
}

/// A place that may be empty.
#[derive(Debug, Clone)]
struct Place {
    base: Arc<Object>,
    way: Vec<Way>,
    empty: Value,
}

/// The groups of all resources with `only` in their names.
pub fn empties(only: &str) -> impl Iterator<Item = Group> {
    resources(only).into_iter().flat_map(|resource| {
        let places = places(&resource);
        let groups: Vec<Group> = places.chunks(PLACES).map(|places| group(&resource, places)).collect();
        groups
    })
}

fn group(resource: &Arc<Resource>, places: &[Place]) -> Group {
    let subject = Subject::new(resource, Choices::seeded(0));
    let mut steps = Vec::new();
    for place in places {
        let object = place.filled();
        steps.push(Step::new("POST", subject.collection() + "?dryRun=All").object(object));
    }
    if subject.is_storable() {
        steps.extend(life(&subject, places));
    }
    let first = places.first().map_or(String::new(), Place::path);
    Group { title: format!("{} {} empties from {first}", resource.api_version, resource.plural), steps }
}

/// The same in an object that is there.
fn life(subject: &Subject<'_>, places: &[Place]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut stored: Option<&Arc<Object>> = None;
    let path = subject.object_path();
    let has_status = subject.resource.subresources.iter().any(|part| part.name == "status");
    for place in places {
        if !stored.is_some_and(|stored| Arc::ptr_eq(stored, &place.base)) {
            if stored.is_some() && subject.has(Verb::Delete) {
                steps.push(Step::new("DELETE", format!("{path}?gracePeriodSeconds=0")));
            }
            stored = Some(&place.base);
            steps.push(Step::new("POST", subject.collection()).object(named((*place.base).clone())));
        }
        let of_status = has_status && place.way.first() == Some(&Way::Member("status".to_owned()));
        let path = if of_status { format!("{path}/status") } else { path.clone() };
        if subject.has(Verb::Patch) {
            let patch = Value::Object(place.alone());
            let dry = |query: &str| Step::new("PATCH", format!("{path}?dryRun=All{query}"));
            steps.push(dry("").value("application/merge-patch+json", patch.clone()));
            steps.push(dry("").value("application/strategic-merge-patch+json", patch));
            let applied = Value::Object(place.filled());
            steps.push(dry("&fieldManager=a&force=true").value("application/apply-patch+yaml", applied));
        }
        if subject.has(Verb::Update) {
            steps.push(Step::new("PUT", path).object(place.filled()));
        }
    }
    steps
}

impl Place {
    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.way {
            match step {
                Way::Member(name) => path += &format!(".{name}"),
                Way::Item => path += "[0]",
                Way::Entry(key) => path += &format!("[{key}]"),
            }
        }
        path
    }

    /// The good object with nothing in this place.
    fn filled(&self) -> Object {
        let mut object = Value::Object(named((*self.base).clone()));
        put(&mut object, &self.way, &self.empty);
        match object {
            Value::Object(object) => object,
            _ => Object::new(),
        }
    }

    /// Nothing but the way to the place. Where that leads into a list, all of the list.
    fn alone(&self) -> Object {
        let filled = self.filled();
        let mut patch = Object::new();
        let (mut from, mut to) = (&filled, &mut patch);
        for (at, step) in self.way.iter().enumerate() {
            let name = match step {
                Way::Member(name) | Way::Entry(name) => name,
                Way::Item => break,
            };
            let Some(value) = from.get(name) else { break };
            match value {
                Value::Object(inner) if at + 1 < self.way.len() => {
                    to.insert(name, Value::Object(Object::new()));
                    from = inner;
                    let Some(Value::Object(next)) = to.get_mut(name) else { break };
                    to = next;
                }
                other => {
                    to.insert(name, other.clone());
                    break;
                }
            }
        }
        patch
    }
}

fn put(value: &mut Value, way: &[Way], empty: &Value) {
    let Some((step, rest)) = way.split_first() else {
        *value = empty.clone();
        return;
    };
    match step {
        Way::Member(name) | Way::Entry(name) => {
            if !matches!(value, Value::Object(_)) {
                *value = Value::Object(Object::new());
            }
            if let Value::Object(object) = value {
                if !object.contains(name) {
                    object.insert(name, Value::Null);
                }
                if let Some(member) = object.get_mut(name) {
                    put(member, rest, empty);
                }
            }
        }
        Way::Item => {
            if !matches!(value, Value::Array(items) if !items.is_empty()) {
                *value = Value::Array(vec![Value::Object(Object::new())]);
            }
            if let Value::Array(items) = value
                && let Some(first) = items.first_mut()
            {
                put(first, rest, empty);
            }
        }
    }
}

/// All places of a resource, each once: in the first of the good objects that lead there without anything made up.
fn places(resource: &Resource) -> Vec<Place> {
    let (types, id) = resource.typed();
    let mut bases = vec![small(resource)];
    bases.extend(examples(&resource.kind).filter(|example| {
        let is_known = |(name, _): (&str, &Value)| name == "kind" || types.get(id).field(name).is_some();
        example.iter().all(is_known)
    }));
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let bases: Vec<Arc<Object>> = bases
        .into_iter()
        .map(|mut base| {
            base.insert("apiVersion", resource.api_version.as_str());
            Arc::new(base)
        })
        .collect();
    for most in 0..=MAX_MADE {
        for base in &bases {
            let mut search = Search { types, base, way: Vec::new(), seen: &mut seen, found: &mut found };
            search.members(id, Some(base), most);
        }
    }
    found
}

struct Search<'a> {
    types: &'a Types,
    base: &'a Arc<Object>,
    way: Vec<Way>,
    seen: &'a mut BTreeSet<Vec<Way>>,
    found: &'a mut Vec<Place>,
}

impl Search<'_> {
    fn members(&mut self, id: StructId, object: Option<&Object>, may_make: usize) {
        if self.way.len() >= MAX_DEPTH {
            return;
        }
        let types = self.types;
        for field in types.get(id).fields.iter() {
            // Who manages what is a matter of its own.
            if &*field.name == "managedFields" {
                continue;
            }
            self.way.push(Way::Member(field.name.to_string()));
            let value = object.and_then(|object| object.get(&field.name));
            self.value(&field.shape, field.presence, value, may_make);
            self.way.pop();
        }
    }

    fn value(&mut self, shape: &Shape, presence: Presence, value: Option<&Value>, may_make: usize) {
        let nothing = || Value::Object(Object::new());
        match shape {
            Shape::List(_) => self.add(Value::Array(Vec::new())),
            Shape::Map(_) | Shape::Any | Shape::Raw | Shape::Either(..) => self.add(nothing()),
            Shape::Bytes => self.add(Value::from("")),
            Shape::Struct(_) if presence != Presence::Always => self.add(nothing()),
            _ => {}
        }
        let is_there = value.is_some_and(|value| !matches!(value, Value::Null));
        let Some(left) = (if is_there { Some(may_make) } else { may_make.checked_sub(1) }) else { return };
        match shape {
            Shape::Struct(id) | Shape::Either(_, id) => {
                self.members(*id, value.and_then(Value::as_object), left);
            }
            Shape::List(element) => {
                self.way.push(Way::Item);
                let first = match value {
                    Some(Value::Array(items)) => items.first(),
                    _ => None,
                };
                self.item(element, first, left);
                self.way.pop();
            }
            Shape::Map(element) => {
                let first = value.and_then(Value::as_object).and_then(|object| object.iter().next());
                self.way.push(Way::Entry(first.map_or("k", |(key, _)| key).to_owned()));
                self.item(element, first.map(|(_, value)| value), left);
                self.way.pop();
            }
            _ => {}
        }
    }

    fn item(&mut self, element: &Shape, value: Option<&Value>, may_make: usize) {
        match element {
            Shape::Struct(id) => self.members(*id, value.and_then(Value::as_object), may_make),
            Shape::List(_) | Shape::Map(_) => self.value(element, Presence::Given, value, may_make),
            _ => {}
        }
    }

    fn add(&mut self, empty: Value) {
        if self.seen.insert(self.way.clone()) {
            self.found.push(Place { base: self.base.clone(), way: self.way.clone(), empty });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_sent_empty_one_by_one_and_what_leads_there_is_made() {
        let bodies = |only: &str| -> Vec<String> {
            let steps = empties(only).flat_map(|group| group.steps);
            steps.filter(|step| step.path.ends_with("?dryRun=All")).filter_map(|step| step.body_text()).collect()
        };
        let maps = bodies("v1/configmaps");
        for part in [r#""data":{}"#, r#""binaryData":{}"#, r#""labels":{}"#, r#""finalizers":[]"#] {
            assert!(maps.iter().any(|body| body.contains(part)), "{part}: {maps:?}");
        }
        let pods = bodies("v1/pods");
        for part in [
            r#""containers":[]"#,
            r#""emptyDir":{}"#,
            r#""nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}}"#,
            r#""ephemeralContainers":[{"ports":[]}]"#,
        ] {
            assert!(pods.iter().any(|body| body.contains(part)), "{part}");
        }
    }
}
