//! [`ManagedFields`]: `metadata.managedFields` as a value: who manages which places of an object, since when, and by which
//! kind of write.

use revisor_object::{Object, Value};

use super::compare::Comparison;
use super::conflict::Conflict;
use super::field_set::FieldSet;

/// How many entries updates may leave; older ones are merged.
const MAX_UPDATERS: usize = 10;

/// Who stands for the updates that were merged.
const ANCIENT: &str = "ancient-changes";

/// What no one manages because the server does.
const NOBODYS: &[&[&str]] = &[
    &["f:apiVersion"],
    &["f:kind"],
    &["f:metadata"],
    &["f:metadata", "f:name"],
    &["f:metadata", "f:namespace"],
    &["f:metadata", "f:creationTimestamp"],
    &["f:metadata", "f:selfLink"],
    &["f:metadata", "f:uid"],
    &["f:metadata", "f:clusterName"],
    &["f:metadata", "f:generation"],
    &["f:metadata", "f:managedFields"],
    &["f:metadata", "f:resourceVersion"],
];

/// A kind of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Everything else.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// Who writes, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// The name of the manager.
    pub name: String,
    /// The kind of write.
    pub operation: Operation,
    /// The version in which the object is written.
    pub api_version: String,
    /// The subresource that is written to; empty for the object itself.
    pub subresource: String,
}

impl Manager {
    /// Whether writes of both are kept in one entry. Who applies is one whatever the version.
    fn is_same(&self, other: &Manager) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    manager: Manager,
    time: Option<String>,
    fields: FieldSet,
}

/// The entries of an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ManagedFields(Vec<Entry>);

impl ManagedFields {
    /// Reads the entries of an object's metadata; `None` if any of them is none.
    pub fn read(entries: &[Value]) -> Option<ManagedFields> {
        let read = |entry: &Value| {
            let entry = entry.as_object()?;
            let text = |name: &str| entry.str(name).unwrap_or_default().to_owned();
            let operation = match entry.str("operation")? {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() || entry.str("fieldsType") != Some("FieldsV1") {
                return None;
            }
            let fields = entry.get("fieldsV1").map_or(Some(FieldSet::new()), FieldSet::read)?;
            let manager = Manager { name: text("manager"), operation, api_version, subresource: text("subresource") };
            Some(Entry { manager, time: entry.str("time").map(str::to_owned), fields })
        };
        entries.iter().map(read).collect::<Option<Vec<_>>>().map(ManagedFields)
    }

    /// The entries that a write begins with: those that the client sent, if they are any, or those that are stored. A
    /// client that sends an empty list, or one empty entry, wants to begin anew.
    pub fn of_write(sent: Option<&Value>, stored: &[Value]) -> ManagedFields {
        let stored = || ManagedFields::read(stored).unwrap_or_default();
        match sent.and_then(Value::as_array) {
            None => stored(),
            Some([]) => ManagedFields::default(),
            Some([Value::Object(only)]) if only.is_empty() => ManagedFields::default(),
            Some(entries) => ManagedFields::read(entries).filter(|read| !read.0.is_empty()).unwrap_or_else(stored),
        }
    }

    /// Whether nobody manages anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records an update that made these changes at this time.
    pub fn update(&mut self, manager: &Manager, changes: &Comparison, now: &str) {
        let taken = changes.modified.union(&changes.added);
        for entry in &mut self.0 {
            // Whatever is written anew belongs to the writer, and what is gone belongs to nobody.
            entry.fields = entry.fields.difference(&taken).difference(&changes.removed);
        }
        let mine = taken.difference(&FieldSet::of(NOBODYS));
        if !mine.is_empty() {
            let known = self.0.iter().position(|entry| entry.manager.is_same(manager));
            match known {
                Some(at) => {
                    self.0[at].fields = self.0[at].fields.union(&mine);
                    self.0[at].time = Some(now.to_owned());
                }
                None => {
                    self.0.push(Entry { manager: manager.clone(), time: Some(now.to_owned()), fields: mine });
                }
            }
        }
        self.0.retain(|entry| !entry.fields.is_empty());
        self.merge_ancient();
    }

    /// Takes note of what `manager` applies now; answers what it applied before.
    pub(crate) fn begin_apply(&mut self, manager: &Manager, applied: FieldSet) -> Option<FieldSet> {
        match self.0.iter_mut().find(|entry| entry.manager.is_same(manager)) {
            Some(entry) => {
                entry.manager.api_version.clone_from(&manager.api_version);
                Some(std::mem::replace(&mut entry.fields, applied))
            }
            None => {
                self.0.push(Entry { manager: manager.clone(), time: None, fields: applied });
                None
            }
        }
    }

    /// All places that somebody manages.
    pub(crate) fn all(&self) -> FieldSet {
        self.0.iter().fold(FieldSet::new(), |all, entry| all.union(&entry.fields))
    }

    /// The places of others that these changes give another value, beside those that are allowed.
    pub(crate) fn conflicts(&self, manager: &Manager, changes: &Comparison, allowed: &FieldSet) -> Vec<Conflict> {
        let taken = changes.modified.union(&changes.added).difference(allowed);
        let others = self.0.iter().filter(|entry| !entry.manager.is_same(manager));
        others.flat_map(|entry| Conflict::all(&entry.manager, &entry.fields.intersection(&taken))).collect()
    }

    /// Takes from others what was taken over or removed. `now` is the time, if the object changed.
    pub(crate) fn finish_apply(&mut self, manager: &Manager, changes: &Comparison, now: Option<&str>) {
        let taken = changes.modified.union(&changes.added);
        for entry in &mut self.0 {
            if entry.manager.is_same(manager) {
                entry.fields = entry.fields.difference(&FieldSet::of(NOBODYS));
                if let Some(now) = now {
                    entry.time = Some(now.to_owned());
                }
            } else {
                entry.fields = entry.fields.difference(&taken).difference(&changes.removed);
            }
        }
        self.0.retain(|entry| !entry.fields.is_empty());
    }

    /// Merges the oldest updates of each version until there are few enough.
    fn merge_ancient(&mut self) {
        let is_update = |entry: &Entry| entry.manager.operation == Operation::Update;
        let mut excess = self.0.iter().filter(|entry| is_update(entry)).count().saturating_sub(MAX_UPDATERS);
        if excess == 0 {
            return;
        }
        self.0.sort_by(|one, two| {
            (one.manager.operation, &one.time, &one.manager.name).cmp(&(
                two.manager.operation,
                &two.time,
                &two.manager.name,
            ))
        });
        let mut merged: Vec<Entry> = Vec::with_capacity(self.0.len());
        for entry in std::mem::take(&mut self.0) {
            let bucket = merged.iter().position(|known| {
                is_update(known) && is_update(&entry) && known.manager.api_version == entry.manager.api_version
            });
            match bucket.filter(|_| excess > 0) {
                Some(at) => {
                    let bucket = &mut merged[at];
                    bucket.manager.name = ANCIENT.to_owned();
                    bucket.manager.subresource = String::new();
                    bucket.fields = bucket.fields.union(&entry.fields);
                    bucket.time = entry.time;
                    excess -= 1;
                }
                None => merged.push(entry),
            }
        }
        self.0 = merged;
    }

    /// The entries as metadata shows them; `None` if there are none.
    pub fn into_value(mut self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_by(|one, two| {
            let of = |entry: &Entry| (entry.manager.operation, entry.time.clone(), entry.manager.name.clone());
            of(one)
                .cmp(&of(two))
                .then_with(|| one.manager.api_version.cmp(&two.manager.api_version))
                .then_with(|| one.manager.subresource.cmp(&two.manager.subresource))
        });
        let show = |entry: Entry| {
            let Manager { name, operation, api_version, subresource } = entry.manager;
            let mut shown = Object::new();
            if !name.is_empty() {
                shown.insert("manager", name);
            }
            shown.insert("operation", operation.as_str());
            shown.insert("apiVersion", api_version);
            if let Some(time) = entry.time {
                shown.insert("time", time);
            }
            shown.insert("fieldsType", "FieldsV1");
            shown.insert("fieldsV1", entry.fields.into_value());
            if !subresource.is_empty() {
                shown.insert("subresource", subresource);
            }
            Value::Object(shown)
        };
        Some(Value::Array(self.0.into_iter().map(show).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(name: &str) -> Manager {
        Manager {
            name: name.to_owned(),
            operation: Operation::Update,
            api_version: "v1".to_owned(),
            subresource: String::new(),
        }
    }

    fn modified(places: &[&[&str]]) -> Comparison {
        Comparison { modified: FieldSet::of(places), ..Comparison::default() }
    }

    fn shown(managed: &ManagedFields) -> String {
        let entries = managed.clone().into_value().unwrap_or(Value::Array(Vec::new()));
        let entries = entries.as_array().unwrap_or_default().iter().filter_map(Value::as_object);
        let lines: Vec<String> = entries
            .map(|entry| {
                let fields = entry.get("fieldsV1").map(Value::to_json).unwrap_or_default();
                format!(
                    "{} {} {fields}",
                    entry.str("manager").unwrap_or_default(),
                    entry.str("time").unwrap_or_default()
                )
            })
            .collect();
        lines.join("; ")
    }

    #[test]
    fn who_writes_a_field_last_manages_it() {
        let mut managed = ManagedFields::default();
        managed.update(&manager("a"), &modified(&[&["f:x"], &["f:y"], &["f:metadata", "f:name"]]), "1");
        assert_eq!(shown(&managed), r#"a 1 {"f:x":{},"f:y":{}}"#);
        managed.update(&manager("b"), &modified(&[&["f:y"]]), "2");
        assert_eq!(shown(&managed), r#"a 1 {"f:x":{}}; b 2 {"f:y":{}}"#);
        let removed = Comparison { removed: FieldSet::of(&[&["f:x"]]), ..Comparison::default() };
        managed.update(&manager("b"), &removed, "3");
        assert_eq!(shown(&managed), r#"b 2 {"f:y":{}}"#);
    }

    #[test]
    fn many_updaters_are_merged_into_one() {
        let mut managed = ManagedFields::default();
        for number in 0..12 {
            let field = format!("f:{number:02}");
            managed.update(&manager(&format!("m{number:02}")), &modified(&[&[&field]]), &format!("{number:02}"));
        }
        let text = shown(&managed);
        assert_eq!(text.split("; ").count(), MAX_UPDATERS, "{text}");
        assert!(text.starts_with(r#"ancient-changes 02 {"f:00":{},"f:01":{},"f:02":{}}; m03"#), "{text}");
    }

    #[test]
    fn clients_may_begin_anew_but_not_by_accident() {
        let entry = |operation: &str| {
            let entry: Object = [
                ("manager", Value::from("a")),
                ("operation", Value::from(operation)),
                ("apiVersion", Value::from("v1")),
                ("fieldsType", Value::from("FieldsV1")),
                ("fieldsV1", Value::Object([("f:x", Value::Object(Object::new()))].into_iter().collect())),
            ]
            .into_iter()
            .collect();
            Value::Object(entry)
        };
        let stored = [entry("Update")];
        for (name, sent, is_kept) in [
            ("nothing", None, true),
            ("null", Some(Value::Null), true),
            ("an empty list", Some(Value::Array(vec![])), false),
            ("one empty entry", Some(Value::Array(vec![Value::Object(Object::new())])), false),
            ("something unreadable", Some(Value::Array(vec![entry("Dream")])), true),
        ] {
            assert_eq!(!ManagedFields::of_write(sent.as_ref(), &stored).is_empty(), is_kept, "{name}");
        }
    }
}
