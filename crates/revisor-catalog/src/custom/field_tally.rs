//! [`FieldTally`]: which fields of a version objects set, how many of them, and who manages these fields.
//!
//! The fields are those of the schema, set or not, and beside them what objects keep that no schema names. The items of
//! a list and the values of a map are counted together: `.spec.ports[*].name`. Who manages something in a field manages
//! the field. Where the objects come from, and how they got into this version, is the caller's business.

use std::collections::BTreeMap;

use compact_str::CompactString;
use revisor_convert::Path;
use revisor_object::{Object, Value, parse_json};
use revisor_schema::{Additional, Structural};

/// How many fields are told apart that no schema names; objects may keep anything.
const MAX_UNKNOWN: usize = 10_000;

/// How many managers of a field are remembered: those that wrote last.
const MAX_MANAGERS: usize = 100;

/// What every object has. It is no field of a version.
const COMMON: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The fields of one version, and how they are used.
#[derive(Debug, Clone)]
pub struct FieldTally {
    api_version: String,
    root: Node,
    objects: u64,
    room: usize,
    is_truncated: bool,
}

/// How one field is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldUse {
    /// Where it stands.
    pub path: Path,
    /// How many objects set it.
    pub objects: u64,
    /// Who manages it, and when they last wrote, if that is known; those that wrote last come first.
    pub managers: Vec<(String, Option<String>)>,
}

#[derive(Debug, Clone, Default)]
struct Node {
    objects: u64,
    /// The last object that was counted here: one that sets it in several items counts once.
    last: u64,
    managers: BTreeMap<String, Option<String>>,
    members: BTreeMap<CompactString, Node>,
    /// The items of a list, or the values of a map.
    every: Option<Box<Node>>,
}

impl FieldTally {
    /// No object is counted yet. Objects and managers are of this API version.
    pub fn new(api_version: &str, schema: &Structural) -> FieldTally {
        let mut root = Node::of(schema);
        COMMON.iter().for_each(|name| drop(root.members.remove(*name)));
        FieldTally { api_version: api_version.to_owned(), root, objects: 0, room: MAX_UNKNOWN, is_truncated: false }
    }

    /// Counts an object of this version.
    pub fn count(&mut self, schema: &Structural, object: &Object) {
        self.objects += 1;
        let mut walk = Walk { number: self.objects, room: &mut self.room, is_truncated: &mut self.is_truncated };
        walk.members(&mut self.root, Some(schema), object.iter().filter(|(name, _)| !COMMON.contains(name)));
        let managed = object.object("metadata").map(|metadata| metadata.array("managedFields")).unwrap_or_default();
        for entry in managed.iter().filter_map(Value::as_object) {
            let text = |name| entry.str(name).filter(|text: &&str| !text.is_empty());
            if text("apiVersion") == Some(&self.api_version)
                && let (Some(manager), Some(fields)) = (text("manager"), entry.object("fieldsV1"))
            {
                let mut managed = Managed { manager, time: text("time"), walk: &mut walk };
                let fields = fields.iter().filter_map(|(step, below)| Some((step.strip_prefix("f:")?, below)));
                for (name, below) in fields.filter(|(name, _)| !COMMON.contains(name)) {
                    if let Some((node, schema)) = managed.walk.member(&mut self.root, Some(schema), name) {
                        managed.take(node, schema, object.get(name), below);
                    }
                }
            }
        }
    }

    /// How many objects were counted.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// Whether objects keep more fields than are told apart.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// What is told of the version: its name, how many objects there are, and its fields.
    pub fn shown(&self) -> Object {
        let number = |count: u64| Value::from(i64::try_from(count).unwrap_or(i64::MAX));
        let name = self.api_version.rsplit_once('/').map_or(&*self.api_version, |(_, name)| name);
        let mut version = Object::new();
        version.insert("name", name);
        version.insert("objects", number(self.objects));
        if self.is_truncated {
            version.insert("truncated", true);
        }
        let fields = self.fields().into_iter().map(|field| {
            let managers = field.managers.into_iter().map(|(manager, time)| {
                let mut shown = Object::new();
                shown.insert("manager", manager);
                shown.set("lastWriteTime", time.map(Value::from));
                Value::Object(shown)
            });
            let mut shown = Object::new();
            shown.insert("path", field.path.to_string());
            shown.insert("objects", number(field.objects));
            shown.insert("managers", managers.collect::<Vec<_>>());
            Value::Object(shown)
        });
        version.insert("fields", fields.collect::<Vec<_>>());
        version
    }

    /// All fields, each before those in it.
    pub fn fields(&self) -> Vec<FieldUse> {
        let mut fields = Vec::new();
        self.root.tell(&Path::root(), &mut fields);
        fields
    }
}

impl Node {
    fn of(schema: &Structural) -> Node {
        let every = match (&schema.items, &schema.additional) {
            (Some(items), _) => Some(&**items),
            (None, Some(Additional::Schema(values))) => Some(&**values),
            _ => None,
        };
        Node {
            members: schema.properties.iter().map(|(name, schema)| ((&**name).into(), Node::of(schema))).collect(),
            every: every.map(|schema| Box::new(Node::of(schema))),
            ..Node::default()
        }
    }

    fn tell(&self, path: &Path, fields: &mut Vec<FieldUse>) {
        for (name, node) in &self.members {
            let path = path.member(name);
            let mut managers: Vec<_> = node.managers.clone().into_iter().collect();
            managers.sort_by(|one, other| (&other.1, &one.0).cmp(&(&one.1, &other.0)));
            fields.push(FieldUse { path: path.clone(), objects: node.objects, managers });
            node.tell(&path, fields);
        }
        if let Some(every) = &self.every {
            every.tell(&path.every(), fields);
        }
    }

    fn note(&mut self, manager: &str, time: Option<&str>) {
        match self.managers.get_mut(manager) {
            Some(known) if known.as_deref() < time => *known = time.map(str::to_owned),
            Some(_) => {}
            None => {
                if self.managers.len() >= MAX_MANAGERS {
                    let oldest = self.managers.iter().min_by_key(|(_, time)| *time).map(|(name, _)| name.clone());
                    oldest.and_then(|oldest| self.managers.remove(&oldest));
                }
                self.managers.insert(manager.to_owned(), time.map(str::to_owned));
            }
        }
    }
}

/// Whether the members of what this schema describes are named by data rather than by the schema.
fn is_map(schema: &Structural) -> bool {
    matches!(schema.additional, Some(Additional::Schema(_) | Additional::Allowed(true)))
}

/// The way through one object.
struct Walk<'a> {
    number: u64,
    room: &'a mut usize,
    is_truncated: &'a mut bool,
}

impl Walk<'_> {
    /// The node of a member, and its schema; nothing if there is no room for another.
    fn member<'n, 's>(
        &mut self,
        node: &'n mut Node,
        schema: Option<&'s Structural>,
        name: &str,
    ) -> Option<(&'n mut Node, Option<&'s Structural>)> {
        let properties = schema.map(|schema| &schema.properties[..]).unwrap_or_default();
        if let Ok(at) = properties.binary_search_by(|(known, _)| (**known).cmp(name)) {
            return Some((node.members.entry(name.into()).or_default(), Some(&properties[at].1)));
        }
        if schema.is_some_and(is_map) {
            return Some(self.every(node, schema));
        }
        if !node.members.contains_key(name) {
            if *self.room == 0 {
                *self.is_truncated = true;
                return None;
            }
            *self.room -= 1;
        }
        Some((node.members.entry(name.into()).or_default(), None))
    }

    /// The node of all items or values, and their schema.
    fn every<'n, 's>(
        &mut self,
        node: &'n mut Node,
        schema: Option<&'s Structural>,
    ) -> (&'n mut Node, Option<&'s Structural>) {
        let of_values = schema.and_then(|schema| match &schema.additional {
            Some(Additional::Schema(values)) => Some(&**values),
            _ => None,
        });
        let of_items = schema.and_then(|schema| schema.items.as_deref());
        (node.every.get_or_insert_default(), of_items.or(of_values))
    }

    fn members<'v>(
        &mut self,
        node: &mut Node,
        schema: Option<&Structural>,
        members: impl Iterator<Item = (&'v str, &'v Value)>,
    ) {
        for (name, value) in members {
            if let Some((node, schema)) = self.member(node, schema, name) {
                self.value(node, schema, value);
            }
        }
    }

    fn value(&mut self, node: &mut Node, schema: Option<&Structural>, value: &Value) {
        if node.last != self.number {
            node.last = self.number;
            node.objects += 1;
        }
        match value {
            Value::Object(object) => self.members(node, schema, object.iter()),
            Value::Array(items) if items.iter().any(|item| matches!(item, Value::Object(_) | Value::Array(_))) => {
                let (node, schema) = self.every(node, schema);
                items.iter().for_each(|item| self.value(node, schema, item));
            }
            _ => {}
        }
    }
}

/// The way through what one manager manages of an object.
struct Managed<'w, 'a> {
    manager: &'w str,
    time: Option<&'w str>,
    walk: &'w mut Walk<'a>,
}

impl Managed<'_, '_> {
    /// Follows the steps of a set of managed fields; `value` is what the object has there, if it has something.
    fn steps<'v>(
        &mut self,
        node: &mut Node,
        schema: Option<&Structural>,
        value: Option<&Value>,
        steps: impl Iterator<Item = (&'v str, &'v Value)>,
    ) {
        for (step, below) in steps {
            let (at, value) = match step.split_once(':') {
                Some(("f", name)) => {
                    (self.walk.member(node, schema, name), value.and_then(|value| member(value, name)))
                }
                Some(("k", keys)) => (Some(self.walk.every(node, schema)), value.and_then(|value| keyed(value, keys))),
                Some(("v" | "i", _)) => (Some(self.walk.every(node, schema)), None),
                _ => (None, None),
            };
            if let Some((node, schema)) = at {
                self.take(node, schema, value, below);
            }
        }
    }

    /// Takes a place and what is managed below it.
    fn take(&mut self, node: &mut Node, schema: Option<&Structural>, value: Option<&Value>, below: &Value) {
        node.note(self.manager, self.time);
        match below.as_object().filter(|below| !below.is_empty()) {
            Some(below) => self.steps(node, schema, value, below.iter()),
            // What is managed as one value is managed with everything in it.
            None => self.everything_in(node, schema, value),
        }
    }

    fn everything_in(&mut self, node: &mut Node, schema: Option<&Structural>, value: Option<&Value>) {
        match value {
            Some(Value::Object(object)) => {
                for (name, value) in object.iter() {
                    if let Some((node, schema)) = self.walk.member(node, schema, name) {
                        node.note(self.manager, self.time);
                        self.everything_in(node, schema, Some(value));
                    }
                }
            }
            Some(Value::Array(items)) => {
                for item in items.iter().filter(|item| matches!(item, Value::Object(_) | Value::Array(_))) {
                    let (node, schema) = self.walk.every(node, schema);
                    self.everything_in(node, schema, Some(item));
                }
            }
            _ => {}
        }
    }
}

fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.as_object().and_then(|object| object.get(name))
}

/// The item of a list that has these keys.
fn keyed<'v>(value: &'v Value, keys: &str) -> Option<&'v Value> {
    let keys = parse_json(keys.as_bytes()).ok()?.value;
    let keys = keys.as_object()?;
    let has_keys = |item: &&Value| keys.iter().all(|(name, key)| member(item, name) == Some(key));
    value.as_array()?.iter().find(has_keys)
}

#[cfg(test)]
mod tests;
