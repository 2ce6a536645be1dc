//! [`ManagedFields`]: `metadata.managedFields` as a value: who manages which places of an object, since when, and by which
//! kind of write.

mod scale;

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;

use revisor_object::{Object, RawJson, Value};

use super::additions::{LeftOut, additions};
use super::compare::Comparison;
use super::conflict::Conflict;
use super::field_set::FieldSet;
use super::kept_set::KeptSet;
use super::versions::{NO_VERSION, Replacement, Unconvertible, Versioned, Versions};

/// How many entries updates may leave; older ones are merged.
const MAX_UPDATERS: usize = 10;

/// Who stands for the updates that were merged.
const ANCIENT: &str = "ancient-changes";

/// Up to so many entries are compared one by one, which is quicker than to hash them.
const FEW: usize = 16;

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

/// Whether there is nothing in a set that is nobody's.
fn is_somebodys(set: &FieldSet) -> bool {
    !NOBODYS.iter().any(|place| set.contains(place))
}

/// A kind of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    /// Whether writes of both are kept in one entry.
    fn is_same(&self, other: &Manager) -> bool {
        self.identity() == other.identity()
    }

    /// What writes must share to be kept in one entry. Who applies is one whatever the version.
    fn identity(&self) -> (&str, Operation, &str, &str) {
        let version = if self.operation == Operation::Apply { "" } else { self.api_version.as_str() };
        (&self.name, self.operation, &self.subresource, version)
    }

    /// What the original sorts managers by where it does not know anything better.
    fn order(&self) -> (&str, Operation, &str, bool, &str) {
        let version = if self.operation == Operation::Apply { "" } else { self.api_version.as_str() };
        (&self.name, self.operation, version, self.subresource.is_empty(), &self.subresource)
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    manager: Manager,
    time: Option<String>,
    fields: KeptSet,
}

impl Entry {
    fn read(entry: Value, read: fn(Value) -> Option<FieldSet>) -> Option<Entry> {
        let Value::Object(mut entry) = entry else { return None };
        let fields = entry.remove("fieldsV1").map_or(Some(KeptSet::default()), |fields| KeptSet::of(fields, read))?;
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
        let manager = Manager { name: text("manager"), operation, api_version, subresource: text("subresource") };
        Some(Entry { manager, time: entry.str("time").map(str::to_owned), fields })
    }
}

/// What a write does to an entry.
pub(crate) enum Touched {
    /// Nothing: it is the writer's own.
    Spared,
    /// It is of a version that is no more, and goes.
    Orphaned,
    /// It loses these of its places to the writer, and those that are no more.
    By { taken: FieldSet, removed: FieldSet },
}

impl Touched {
    fn by(entry: &Entry, losses: &Losses) -> Touched {
        let meets = |set: &FieldSet| if set.is_empty() { FieldSet::new() } else { entry.fields.intersection(set) };
        Touched::By { taken: meets(&losses.taken), removed: meets(&losses.removed) }
    }
}

/// The places that a write takes from everybody.
struct Losses {
    /// Those that are the writer's now.
    taken: FieldSet,
    /// Those that are no more.
    removed: FieldSet,
}

impl Losses {
    fn of(changes: Comparison) -> Losses {
        let mut taken = changes.modified;
        taken.add(changes.added);
        Losses { taken, removed: changes.removed }
    }
}

/// The same as every version shows it, put together once for all entries of the version.
struct LossesByVersion<'w, O> {
    write: Replacement<'w>,
    owned: O,
    /// In the version of the write.
    own: Losses,
    /// In other versions; `None` in those that are no more.
    others: HashMap<String, Option<Losses>>,
}

impl<'w, O: Fn(FieldSet) -> FieldSet> LossesByVersion<'w, O> {
    /// `changes` are those of the write's own version; `owned` says which of those of others count.
    fn of(write: Replacement<'w>, changes: Comparison, owned: O) -> LossesByVersion<'w, O> {
        LossesByVersion { write, owned, own: Losses::of(changes), others: HashMap::new() }
    }

    /// What is lost in a version; `None` if the version is no more.
    fn of_version(&mut self, version: &str) -> Result<Option<&Losses>, String> {
        if version == self.write.version {
            return Ok(Some(&self.own));
        }
        let losses = match self.others.entry(version.to_owned()) {
            MapEntry::Occupied(known) => known.into_mut(),
            MapEntry::Vacant(place) => {
                let seen = self.write.changes_in(version)?;
                place.insert(seen.map(|changes| Losses::of(changes.only(&self.owned))))
            }
        };
        Ok(losses.as_ref())
    }
}

/// The entries of an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ManagedFields(Vec<Entry>);

impl ManagedFields {
    /// Reads the entries of a stored object's metadata; `None` if any of them is none.
    pub fn read(entries: &[Value]) -> Option<ManagedFields> {
        ManagedFields::read_with(entries.to_vec(), FieldSet::read_stored)
    }

    /// Reads entries whose fields are read by `read`. Of two entries of one manager the later one counts.
    fn read_with(entries: Vec<Value>, read: fn(Value) -> Option<FieldSet>) -> Option<ManagedFields> {
        let read = entries.into_iter().map(|entry| Entry::read(entry, read)).collect::<Option<Vec<Entry>>>()?;
        // Where the entries stand that count, in the order of the first ones of their managers.
        let mut counting: Vec<usize> = Vec::with_capacity(read.len());
        let mut known: HashMap<_, usize> = HashMap::new();
        for (at, entry) in read.iter().enumerate() {
            let same = |at: &usize| read[*at].manager.is_same(&entry.manager);
            let place = if read.len() <= FEW {
                counting.iter().position(same)
            } else {
                let place = *known.entry(entry.manager.identity()).or_insert(counting.len());
                (place < counting.len()).then_some(place)
            };
            match place {
                Some(place) => counting[place] = at,
                None => counting.push(at),
            }
        }
        let mut read: Vec<Option<Entry>> = read.into_iter().map(Some).collect();
        Some(ManagedFields(counting.into_iter().filter_map(|at| read[at].take()).collect()))
    }

    /// The entries that a write begins with: those that the client sent, if they are any, or those that are stored. A
    /// client that sends an empty list, or one empty entry, wants to begin anew.
    pub fn of_write(sent: Option<Value>, stored: &[Value]) -> ManagedFields {
        let kept = || ManagedFields::read(stored).unwrap_or_default();
        let Some(Value::Array(entries)) = sent else { return kept() };
        match &entries[..] {
            [] => ManagedFields::default(),
            [Value::Object(only)] if only.is_empty() => ManagedFields::default(),
            // Most who change an object send back what they read.
            same if same == stored => ManagedFields::read(stored).unwrap_or_default(),
            _ => ManagedFields::read_with(entries, |fields| FieldSet::read(&fields)).unwrap_or_else(kept),
        }
    }

    fn position(&self, manager: &Manager) -> Option<usize> {
        self.0.iter().position(|entry| entry.manager.is_same(manager))
    }

    /// Whether nobody manages anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records a write at this time. `owned` says which of the places that it changes the writer can change at all.
    ///
    /// # Errors
    /// What clients are told if the object cannot be brought into the version of a manager.
    pub fn update(
        &mut self,
        manager: &Manager,
        write: Replacement<'_>,
        now: &str,
        owned: impl Fn(FieldSet) -> FieldSet,
    ) -> Result<(), String> {
        self.reconcile(write.versions, write.old, write.version)?;
        let changes = write.changes()?.only(&owned);
        if changes.has_nameless {
            // The original cannot make a typed value of such an object.
            return Err("an element of a list omits all key fields".to_owned());
        }
        // Whatever is written anew belongs to the writer, and what is gone belongs to nobody.
        let mut losses = LossesByVersion::of(write, changes, owned);
        for entry in &mut self.0 {
            match losses.of_version(&entry.manager.api_version)? {
                // What the writer manages already is not taken from it only to be given back.
                Some(Losses { taken, removed })
                    if entry.manager == *manager && entry.fields.has_stored(taken) && is_somebodys(taken) =>
                {
                    entry.fields.subtract(removed);
                }
                Some(Losses { taken, removed }) => {
                    entry.fields.subtract(taken);
                    entry.fields.subtract(removed);
                }
                None => entry.fields = KeptSet::default(),
            }
        }
        self.0.retain(|entry| !entry.fields.is_empty());
        self.take(manager, losses.own.taken, now);
        Ok(())
    }

    /// The entry of who makes a new object, of whom nobody is recorded yet. `not_owned` are the places that the writer cannot
    /// fill at all, with all below them.
    ///
    /// # Errors
    /// As those of [`update`](ManagedFields::update).
    pub fn of_new(
        manager: &Manager,
        write: Replacement<'_>,
        now: &str,
        not_owned: &[&[&str]],
    ) -> Result<ManagedFields, String> {
        let mut managed = ManagedFields::default();
        let owned = |set: FieldSet| not_owned.iter().fold(set, |set, place| set.without_subtree(place));
        let left_out = LeftOut { places: NOBODYS.to_vec(), subtrees: not_owned.to_vec() };
        let (types, id) = write.versions.type_in(write.version).map_err(|_| NO_VERSION.to_owned())?;
        let added = additions(types, id, write.new, &left_out).map(|text| Value::Raw(Box::new(RawJson::own(&text))));
        match added.and_then(|set| KeptSet::of(set, FieldSet::read_stored)) {
            Some(fields) => {
                if !fields.is_empty() {
                    managed.0.push(Entry { manager: manager.clone(), time: Some(now.to_owned()), fields });
                }
                debug_assert_eq!(
                    ManagedFields::default().updated(manager, write, now, owned).as_ref(),
                    Ok(&managed),
                    "two ways come to two things"
                );
            }
            None => managed.update(manager, write, now, owned)?,
        }
        Ok(managed)
    }

    fn updated(
        mut self,
        manager: &Manager,
        write: Replacement<'_>,
        now: &str,
        owned: impl Fn(FieldSet) -> FieldSet,
    ) -> Result<ManagedFields, String> {
        self.update(manager, write, now, owned).map(|()| self)
    }

    /// Credits a manager with these places.
    pub fn take(&mut self, manager: &Manager, mut mine: FieldSet, now: &str) {
        NOBODYS.iter().for_each(|place| mine.take_out(place));
        if !mine.is_empty() {
            match self.position(manager) {
                Some(at) => {
                    let entry = &mut self.0[at];
                    entry.fields.add(mine);
                    entry.time = Some(now.to_owned());
                }
                None => {
                    let time = Some(now.to_owned());
                    self.0.push(Entry { manager: manager.clone(), time, fields: mine.into() });
                }
            }
        }
        self.merge_ancient();
    }

    /// Brings every entry up to what its version says today. Entries of versions that are no more go.
    pub(crate) fn reconcile(&mut self, versions: &dyn Versions, live: &Object, version: &str) -> Result<(), String> {
        // Most entries are of the version of the write.
        let mut others: HashMap<String, bool> = HashMap::new();
        for entry in self.0.iter().filter(|entry| entry.manager.api_version != version) {
            let wanted = &entry.manager.api_version;
            if others.contains_key(wanted) {
                continue;
            }
            let brought = Versioned::new(live, version).to(versions, wanted).map(|_| true);
            let is_there = brought.or_else(|error| match error {
                Unconvertible::NoSuchVersion => Ok(false),
                Unconvertible::Failed(why) => Err(why),
            })?;
            others.insert(wanted.clone(), is_there);
        }
        self.0.retain(|entry| others.get(&entry.manager.api_version).copied().unwrap_or(true));
        for entry in &mut self.0 {
            if let Ok((types, id)) = versions.type_in(&entry.manager.api_version) {
                entry.fields.reconcile(types, id);
            }
        }
        Ok(())
    }

    /// Whether `manager` goes on to apply all that it applied before, in the same version: then nothing is to go.
    pub(crate) fn is_kept(&self, manager: &Manager, applied: &FieldSet) -> bool {
        self.position(manager).is_none_or(|at| {
            let Entry { manager: before, fields, .. } = &self.0[at];
            before.api_version == manager.api_version && fields.read().is_within(applied)
        })
    }

    /// Whether `manager` applies the very places that it applied before, in the same version: then nothing comes of it for
    /// its entry.
    pub(crate) fn has_applied(&self, manager: &Manager, applied: &FieldSet) -> bool {
        self.position(manager).is_some_and(|at| {
            let Entry { manager: before, fields, .. } = &self.0[at];
            before.api_version == manager.api_version && fields.is_stored_as(applied, NOBODYS)
        })
    }

    /// Takes note of what `manager` applies now; answers what it applied before, and in which version.
    pub(crate) fn begin_apply(&mut self, manager: &Manager, applied: FieldSet) -> Option<(FieldSet, String)> {
        match self.position(manager) {
            Some(at) => {
                let entry = &mut self.0[at];
                let version = std::mem::replace(&mut entry.manager.api_version, manager.api_version.clone());
                Some((std::mem::replace(&mut entry.fields, applied.into()).into_read(), version))
            }
            None => {
                self.0.push(Entry { manager: manager.clone(), time: None, fields: applied.into() });
                None
            }
        }
    }

    /// All places that somebody manages, by version; those of `first` come first.
    pub(crate) fn by_version(&self, first: &str) -> Vec<(&str, FieldSet)> {
        // Entries of versions that are no more are gone, so these are few.
        let mut all: Vec<(&str, Vec<Cow<'_, FieldSet>>)> = Vec::new();
        for Entry { manager, fields, .. } in &self.0 {
            match all.iter_mut().find(|(version, _)| *version == manager.api_version) {
                Some((_, sets)) => sets.push(fields.read()),
                None => all.push((&manager.api_version, vec![fields.read()])),
            }
        }
        all.sort_by_key(|(version, _)| *version != first);
        let union =
            |sets: Vec<Cow<'_, FieldSet>>| FieldSet::union_of(&sets.iter().map(|set| &**set).collect::<Vec<_>>());
        all.into_iter().map(|(version, sets)| (version, union(sets))).collect()
    }

    /// What a write does to every entry but that of `writer`. `changes` are those of the write's own version.
    pub(crate) fn touched(
        &self,
        writer: &Manager,
        write: Replacement<'_>,
        changes: Comparison,
        owned: impl Fn(FieldSet) -> FieldSet,
    ) -> Result<Vec<Touched>, String> {
        let mut losses = LossesByVersion::of(write, changes, owned);
        let touched = |entry: &Entry| {
            if entry.manager.is_same(writer) {
                return Ok(Touched::Spared);
            }
            let losses = losses.of_version(&entry.manager.api_version)?;
            Ok(losses.map_or(Touched::Orphaned, |losses| Touched::by(entry, losses)))
        };
        self.0.iter().map(touched).collect()
    }

    /// Takes from every entry what a write takes from it.
    pub(crate) fn give_way(&mut self, touched: &[Touched]) {
        for (entry, touched) in self.0.iter_mut().zip(touched) {
            match touched {
                Touched::Spared => {}
                Touched::Orphaned => entry.fields = KeptSet::default(),
                Touched::By { taken, removed } => {
                    entry.fields.subtract(taken);
                    entry.fields.subtract(removed);
                }
            }
        }
        self.0.retain(|entry| !entry.fields.is_empty());
    }

    /// The conflicts of a write that touches entries so, beside those that are allowed.
    pub(crate) fn conflicts(&self, touched: &[Touched], allowed: &FieldSet) -> Vec<Conflict> {
        let mut found: Vec<(&Manager, Vec<Conflict>)> = Vec::new();
        for (entry, touched) in self.0.iter().zip(touched) {
            if let Touched::By { taken, .. } = touched
                && !taken.is_empty()
            {
                found.push((&entry.manager, Conflict::all(&entry.manager, &taken.difference(allowed))));
            }
        }
        found.sort_by_key(|(manager, _)| manager.order());
        found.into_iter().flat_map(|(_, conflicts)| conflicts).collect()
    }

    /// Ends an apply; `now` is the time, if the object changed.
    pub(crate) fn finish_apply(&mut self, manager: &Manager, now: Option<&str>) {
        if let Some(at) = self.position(manager) {
            let entry = &mut self.0[at];
            entry.fields.take_out(NOBODYS);
            if let Some(now) = now {
                entry.time = Some(now.to_owned());
            }
            if entry.fields.is_empty() {
                self.0.remove(at);
            }
        }
    }

    /// Merges the oldest updates of each version until there are few enough.
    fn merge_ancient(&mut self) {
        let updaters = || self.0.iter().filter(|entry| entry.manager.operation == Operation::Update);
        let mut excess = updaters().count().saturating_sub(MAX_UPDATERS);
        if excess == 0 {
            return;
        }
        let mut updaters: Vec<(Option<String>, Manager)> =
            updaters().map(|entry| (entry.time.clone(), entry.manager.clone())).collect();
        updaters.sort_by(|(one_time, one), (two_time, two)| (one_time, one.order()).cmp(&(two_time, two.order())));
        let mut entries: Vec<Option<Entry>> = std::mem::take(&mut self.0).into_iter().map(Some).collect();
        let identity = |manager: &Manager| {
            let (name, operation, subresource, version) = manager.identity();
            (name.to_owned(), operation, subresource.to_owned(), version.to_owned())
        };
        let managers = entries.iter().flatten().map(|entry| identity(&entry.manager)).enumerate();
        let mut places: HashMap<_, usize> = managers.map(|(at, manager)| (manager, at)).collect();
        // What each entry is to get, put together at the end: one after the other, each would copy all before.
        let mut gathered: HashMap<usize, Vec<FieldSet>> = HashMap::new();
        let mut firsts: HashMap<String, Manager> = HashMap::new();
        for (time, updater) in updaters {
            if excess == 0 {
                break;
            }
            let Some(first) = firsts.get(&updater.api_version) else {
                firsts.insert(updater.api_version.clone(), updater);
                continue;
            };
            let bucket = Manager { name: ANCIENT.to_owned(), subresource: String::new(), ..updater.clone() };
            if !places.contains_key(&identity(&bucket))
                && let Some(at) = places.remove(&identity(first))
            {
                places.insert(identity(&bucket), at);
                entries[at].iter_mut().for_each(|entry| entry.manager = bucket.clone());
            }
            let merged = places.remove(&identity(&updater)).and_then(|at| entries[at].take());
            // Where the bucket itself is merged, as one that is not the oldest, the original loses it.
            if let Some(at) = places.get(&identity(&bucket)) {
                gathered.entry(*at).or_default().extend(merged.map(|entry| entry.fields.into_read()));
                entries[*at].iter_mut().for_each(|entry| entry.time = time.clone());
            }
            excess -= 1;
        }
        for (at, sets) in gathered {
            if let Some(entry) = &mut entries[at] {
                let before = entry.fields.read();
                let all: Vec<&FieldSet> = std::iter::once(&*before).chain(&sets).collect();
                entry.fields = FieldSet::union_of(&all).into();
            }
        }
        self.0 = entries.into_iter().flatten().collect();
    }

    /// The entries as metadata shows them; `None` if there are none.
    pub fn into_value(mut self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_by(|one, two| {
            let (one_by, two_by) = (&one.manager, &two.manager);
            (one_by.operation.cmp(&two_by.operation))
                .then_with(|| one.time.cmp(&two.time))
                .then_with(|| one_by.name.cmp(&two_by.name))
                .then_with(|| one_by.api_version.cmp(&two_by.api_version))
                .then_with(|| one_by.subresource.cmp(&two_by.subresource))
        });
        let show = |entry: Entry| {
            let Manager { name, operation, api_version, subresource } = entry.manager;
            let given = |text: String| Some(text).filter(|text| !text.is_empty()).map(Value::from);
            // In the order of their names.
            let members = [
                ("apiVersion", Some(Value::from(api_version))),
                ("fieldsType", Some(Value::from("FieldsV1"))),
                ("fieldsV1", Some(entry.fields.into_value())),
                ("manager", given(name)),
                ("operation", Some(Value::from(operation.as_str()))),
                ("subresource", given(subresource)),
                ("time", entry.time.map(Value::from)),
            ];
            Value::Object(members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
        };
        Some(Value::Array(self.0.into_iter().map(show).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::versions::OneVersion;
    use revisor_object::{parse_json, parse_stored, push_json_value};
    use revisor_schema::Types;

    fn manager(name: &str) -> Manager {
        Manager {
            name: name.to_owned(),
            operation: Operation::Update,
            api_version: "v1".to_owned(),
            subresource: String::new(),
        }
    }

    const TABLE: &str = "type,field,shape,presence,number,merge,list,required,default\nT,data,map:string,nonzero,,\n";

    /// Records that `name` put an object with one set of data in place of another.
    fn update(managed: &mut ManagedFields, name: &str, old: &[&str], new: &[&str], now: &str) {
        let types = Types::parse(TABLE).expect("a good table");
        let versions = OneVersion { version: "v1", types: &types, id: types.id("T").expect("is there") };
        let object = |data: &[&str]| -> Object {
            let data: Object = data.iter().map(|pair| pair.split_at(1)).map(|(k, v)| (k, Value::from(v))).collect();
            [("data", Value::Object(data))].into_iter().collect()
        };
        let write = Replacement { versions: &versions, version: "v1", old: &object(old), new: &object(new) };
        managed.update(&manager(name), write, now, |fields| fields).expect("there is one version");
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
        update(&mut managed, "a", &[], &["x1", "y1"], "1");
        assert_eq!(shown(&managed), r#"a 1 {"f:data":{"f:x":{},"f:y":{}}}"#);
        update(&mut managed, "b", &["x1", "y1"], &["x1", "y2"], "2");
        assert_eq!(shown(&managed), r#"a 1 {"f:data":{"f:x":{}}}; b 2 {"f:data":{"f:y":{}}}"#);
        update(&mut managed, "b", &["x1", "y2"], &["y2"], "3");
        assert_eq!(shown(&managed), r#"b 2 {"f:data":{"f:y":{}}}"#);
    }

    /// The same entries as they are read once they were stored, and those that are read altogether.
    fn stored(managed: &ManagedFields) -> [ManagedFields; 2] {
        let mut object = Object::new();
        object.object_mut("metadata").set("managedFields", managed.clone().into_value());
        let mut text = Vec::new();
        push_json_value(&Value::Object(object), &mut text);
        [parse_stored(&text).expect("is JSON"), parse_json(&text).expect("is JSON").value].map(|value| {
            let metadata = value.as_object().and_then(|object| object.object("metadata")).expect("is there");
            ManagedFields::read(metadata.array("managedFields")).expect("are entries")
        })
    }

    #[test]
    fn sets_that_are_not_read_change_as_those_that_are() {
        let mut managed = ManagedFields::default();
        let mut old: &[&str] = &[];
        for (at, (name, new)) in [
            ("a", &["x1", "y1", "\"1"][..]),
            ("a", &["x2", "y1", "\"1"]),
            ("b", &["x2", "y2", "\"1"]),
            ("b", &["x2", "y3", "\"1"]),
            ("b", &["x2", "y3", "\"2", "z1"]),
            ("a", &["y3", "\"2", "z1"]),
            ("c", &["y3", "\"2", "z1"]),
            ("a", &[]),
            ("b", &["x1"]),
        ]
        .into_iter()
        .enumerate()
        {
            let [mut unread, mut read] = stored(&managed);
            assert!(unread.0.iter().all(|entry| matches!(entry.fields, KeptSet::Stored(_))));
            let now = at.to_string();
            for managed in [&mut managed, &mut unread, &mut read] {
                update(managed, name, old, new, &now);
            }
            assert_eq!(shown(&unread), shown(&read), "{name} {new:?}");
            assert_eq!(shown(&managed), shown(&read), "{name} {new:?}");
            old = new;
        }
    }

    #[test]
    fn many_updaters_are_merged_into_one() {
        let mut managed = ManagedFields::default();
        for number in 0..12 {
            let field = format!("f:{number:02}");
            managed.take(&manager(&format!("m{number:02}")), FieldSet::of(&[&[&field]]), &format!("{number:02}"));
        }
        let text = shown(&managed);
        assert_eq!(text.split("; ").count(), MAX_UPDATERS, "{text}");
        assert!(text.starts_with(r#"ancient-changes 02 {"f:00":{},"f:01":{},"f:02":{}}; m03"#), "{text}");
    }

    #[test]
    fn of_two_entries_of_one_manager_the_later_counts() {
        let entry = |version: &str, fields: &str| {
            let text = format!(
                r#"{{"manager":"a","operation":"Apply","apiVersion":"{version}","fieldsType":"FieldsV1","fieldsV1":{fields}}}"#
            );
            parse_json(text.as_bytes()).expect("is JSON").value
        };
        let sent = Value::Array(vec![entry("v1", r#"{"f:x":{}}"#), entry("v2", r#"{"f:y":{}}"#)]);
        assert_eq!(shown(&ManagedFields::of_write(Some(sent), &[])), r#"a  {"f:y":{}}"#);
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
            assert_eq!(!ManagedFields::of_write(sent, &stored).is_empty(), is_kept, "{name}");
        }
    }
}
