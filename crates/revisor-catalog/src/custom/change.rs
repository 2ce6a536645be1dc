//! [`DefinitionChange`]: what a change of a definition does to the objects that are stored.
//!
//! Three things are counted, for each field by which they come about, and told to whoever makes the change:
//!
//! - objects that would *no longer validate*: as some served version shows them after the change they are refused in it,
//!   and before it they were not for that field. Validity is that of a new object. That of an update lets pass what it
//!   does not touch (ratcheting), so an object that is counted here may well be written, as long as its field stays;
//! - objects that would *show less*: a served version shows a field of them now, and not after the change; or the version
//!   is no longer served, and no other shows the field;
//! - objects that would show less *once they are written*: the version that is stored then cannot say the field.
//!
//! Objects are shown as they are to clients, by name or by rules. What only a webhook can convert is looked at in the
//! version in which it is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use compact_str::CompactString;
use revisor_convert::Conversion;
use revisor_object::{FieldPath, Object, Value};
use revisor_schema::CustomSchema;

use super::{CustomConversion, CustomResources};
use crate::kinds::members::{objects, part};
use crate::{Catalog, Definition, Resource};

/// How many fields are told apart for each effect.
const MAX_FIELDS: usize = 64;

/// How many fields, and how many objects for each, are named to clients.
const NAMED: usize = 3;

/// A definition before and after a change, and what that does to the objects that were looked at.
#[derive(Debug)]
pub struct DefinitionChange {
    before: CustomResources,
    after: CustomResources,
    /// For each version that is served after it: which it was before, and whether its schema is the same.
    origins: Vec<Option<Origin>>,
    looked_at: usize,
    /// By [`Effect`].
    found: [Found; 3],
}

/// A state of a definition: its text, and the rules of its Conversion.
#[derive(Debug, Clone)]
pub struct DefinitionState<'a> {
    /// The definition as it is stored, or is to be.
    pub object: &'a Object,
    /// The rules by which its objects are converted, if they are.
    pub rules: Option<Arc<Conversion>>,
}

/// A version before the change.
#[derive(Debug, Clone, Copy)]
struct Origin {
    at: usize,
    has_same_schema: bool,
}

/// How much of what is stored was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Everything,
    /// Some objects in the place of so many.
    Sample(usize),
    /// As many of so many as there was time for.
    CutShort(usize),
}

/// What a change does to the objects that have a field.
#[derive(Debug, Clone, Copy)]
pub struct FoundEffect<'c> {
    /// What befalls them, as the end of a sentence.
    pub what: &'static str,
    /// Whether they are refused; otherwise they show less.
    pub is_refusal: bool,
    /// The field.
    pub path: &'c str,
    /// The versions that it is so in.
    pub versions: &'c [CompactString],
    /// How many objects there are.
    pub objects: usize,
    /// Some of them, with their namespaces.
    pub names: &'c [String],
}

/// What a change does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It would no longer validate.
    Invalid,
    /// A version would not show a field of it any more.
    ShowsLess,
    /// The same, once it is written.
    ShowsLessOnceWritten,
}

/// What a change does to one field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldEffect {
    /// What befalls the object.
    pub effect: Effect,
    /// By which field, as rules write it.
    pub path: String,
    /// In which versions.
    pub versions: Vec<CompactString>,
    /// What whoever writes the object would be told; empty where it is not refused.
    pub refusal: String,
}

/// The objects that one effect befalls.
#[derive(Debug, Default)]
struct Found {
    objects: usize,
    /// In the order in which they were found.
    fields: Vec<FoundField>,
    /// How many more fields there are at least, that nobody tells apart.
    more: usize,
}

/// A field by which an effect comes about.
#[derive(Debug)]
struct FoundField {
    path: String,
    versions: Vec<CompactString>,
    objects: usize,
    names: Vec<String>,
}

impl DefinitionChange {
    /// The change from one state of a definition to another; `None` if it is none for its objects: what they look like,
    /// in which versions they are shown and stored, and how they get from one to another stays as it is.
    pub fn between(states: [DefinitionState<'_>; 2], catalog: &Catalog) -> Option<DefinitionChange> {
        let [before, after] = &states;
        if matters(before.object) == matters(after.object) {
            return None;
        }
        DefinitionChange::of(states, catalog)
    }

    /// The same, also if it changes nothing; `None` if one of them says of no version that it is stored.
    pub fn of([before, after]: [DefinitionState<'_>; 2], catalog: &Catalog) -> Option<DefinitionChange> {
        // What is only tried is no conversion that anybody asked for, and is not counted as one.
        let catalog = catalog.uncounted();
        let made = |state: DefinitionState<'_>| Definition::read(state.object).resources(&catalog, state.rules);
        let (before, after) = (made(before)?, made(after)?);
        let origin = |resource: &Arc<Resource>| {
            let at = same_version(resource, &before.served)?;
            let [old, new] = [&before.served[at], resource].map(|of| of.custom().map(|custom| custom.schema()));
            let has_same_schema = old.map(CustomSchema::structural) == new.map(CustomSchema::structural);
            Some(Origin { at, has_same_schema })
        };
        let origins = after.served.iter().map(origin).collect();
        Some(DefinitionChange { before, after, origins, looked_at: 0, found: Default::default() })
    }

    /// The resources before the change.
    pub fn before(&self) -> &CustomResources {
        &self.before
    }

    /// The resources after it.
    pub fn after(&self) -> &CustomResources {
        &self.after
    }

    /// Looks at an object as it is stored, and counts what the change does to it.
    pub fn look_at(&mut self, name: &str, stored: &Object) {
        self.looked_at += 1;
        let effects = self.effects_on(stored);
        self.count(name, &effects);
    }

    /// What the change does to an object, as it is stored.
    pub fn effects_on(&self, stored: &Object) -> Vec<FieldEffect> {
        let show = |resources: &CustomResources| -> Vec<Option<Object>> {
            resources.served.iter().map(|resource| shown(resource, stored)).collect()
        };
        let (shown_before, shown_after) = (show(&self.before), show(&self.after));
        let mut effects = Effects::default();
        for ((resource, object), origin) in self.after.served.iter().zip(&shown_after).zip(&self.origins) {
            let Some(object) = object else { continue };
            let before = origin.and_then(|origin| Some((origin, shown_before[origin.at].as_ref()?)));
            if before.is_some_and(|(origin, before)| origin.has_same_schema && before == object) {
                continue;
            }
            let before = before.map(|(origin, object)| (&self.before.served[origin.at], object));
            for (path, refusal) in newly_invalid((resource, object), before) {
                effects.add(Effect::Invalid, path, &resource.version, refusal);
            }
        }
        for (resource, object) in self.before.served.iter().zip(&shown_before) {
            let Some(object) = object else { continue };
            let Some(at) = same_version(resource, &self.after.served) else {
                // Whoever asked for this version will have to ask for another, which may call things by other names.
                let others = self.after.served.iter().zip(&shown_after);
                let others: Option<Vec<Object>> = others
                    .map(|(other, shown)| Some(in_version(other, shown.as_ref()?, &resource.api_version)))
                    .collect();
                let others = others.as_ref().map(|others| others.iter().collect::<Vec<_>>());
                for path in others.map(|others| missing(object, &others)).unwrap_or_default() {
                    effects.add(Effect::ShowsLess, path, &resource.version, String::new());
                }
                continue;
            };
            let Some(after) = &shown_after[at] else { continue };
            let less = missing(object, &[after]);
            for path in less_once_written(stored, (resource, object), (&self.after.served[at], after)) {
                if !less.contains(&path) {
                    effects.add(Effect::ShowsLessOnceWritten, path, &resource.version, String::new());
                }
            }
            for path in less {
                effects.add(Effect::ShowsLess, path, &resource.version, String::new());
            }
        }
        effects.0
    }

    /// What whoever makes the change should know.
    pub fn warnings(&self, extent: Extent) -> Vec<String> {
        let plural = &self.after.storage.plural;
        let has_versions = self.before.served.len().max(self.after.served.len()) > 1;
        let mut warnings = Vec::new();
        if let Extent::CutShort(total) = extent {
            let seen = self.looked_at;
            warnings.push(format!("there was no time to look at all {total} {plural}: only {seen} were looked at"));
        }
        for (found, effect) in self.found.iter().zip(Effect::ALL) {
            if found.objects > 0 {
                let whose = self.counted(found.objects, extent);
                warnings.push(format!("{whose} {effect}: {}", found.told(has_versions), effect = effect.as_str()));
            }
        }
        warnings
    }

    /// How many objects were looked at.
    pub fn looked_at(&self) -> usize {
        self.looked_at
    }

    /// What the change does to the objects, field by field, for those who want no sentences.
    pub fn effects(&self) -> impl Iterator<Item = FoundEffect<'_>> {
        Effect::ALL.into_iter().zip(&self.found).flat_map(|(effect, found)| {
            found.fields.iter().map(move |field| FoundEffect {
                what: effect.as_str(),
                is_refusal: effect == Effect::Invalid,
                path: &field.path,
                versions: &field.versions,
                objects: field.objects,
                names: &field.names,
            })
        })
    }

    /// How many objects something befalls, in words.
    fn counted(&self, objects: usize, extent: Extent) -> String {
        let (plural, seen) = (&self.after.storage.plural, self.looked_at);
        match extent {
            Extent::Everything => format!("{objects} of {seen} {plural}"),
            Extent::Sample(total) => {
                let estimate = (objects as u128 * total as u128).div_ceil(seen.max(1) as u128);
                format!("about {estimate} of {total} {plural} (an estimate: {objects} of {seen} that were looked at)")
            }
            Extent::CutShort(_) => format!("{objects} of {seen} {plural} that were looked at"),
        }
    }

    fn count(&mut self, name: &str, effects: &[FieldEffect]) {
        for effect in Effect::ALL {
            let found = &mut self.found[effect as usize];
            let mut is_counted = false;
            for field in effects.iter().filter(|field| field.effect == effect) {
                is_counted = true;
                found.add(name, &field.path, &field.versions);
            }
            found.objects += usize::from(is_counted);
        }
    }
}

impl Catalog {
    /// The rules by which the objects of a definition are converted now, if they are.
    pub fn rules_in_use(&self, definition: &Object) -> Option<Arc<Conversion>> {
        let Definition { group, accepted, .. } = Definition::read(definition);
        let served = self.versions_of(&group).flat_map(|known| &known.resources);
        let custom = served.filter(|known| known.plural == accepted.plural).find_map(|known| known.custom())?;
        match &custom.family.conversion {
            CustomConversion::ByRules(rules) => Some(rules.clone()),
            CustomConversion::ByName | CustomConversion::ByWebhook(_) | CustomConversion::Impossible(_) => None,
        }
    }
}

impl Effect {
    const ALL: [Effect; 3] = [Effect::Invalid, Effect::ShowsLess, Effect::ShowsLessOnceWritten];

    fn as_str(self) -> &'static str {
        match self {
            Effect::Invalid => "would no longer validate",
            Effect::ShowsLess => "would show less",
            Effect::ShowsLessOnceWritten => "would show less once they are written",
        }
    }
}

/// What a change does to one object: by which fields, and in which versions.
#[derive(Default)]
struct Effects(Vec<FieldEffect>);

impl Effects {
    fn add(&mut self, effect: Effect, path: String, version: &CompactString, refusal: String) {
        match self.0.iter_mut().find(|known| known.effect == effect && known.path == path) {
            Some(known) if known.versions.contains(version) => {}
            Some(known) => known.versions.push(version.clone()),
            None => self.0.push(FieldEffect { effect, path, versions: vec![version.clone()], refusal }),
        }
    }
}

impl Found {
    fn add(&mut self, name: &str, path: &str, versions: &[CompactString]) {
        let at = match self.fields.iter().position(|known| known.path == path) {
            Some(at) => at,
            None if self.fields.len() == MAX_FIELDS => {
                self.more += 1;
                return;
            }
            None => {
                let (path, versions, names) = (path.to_owned(), Vec::new(), Vec::new());
                self.fields.push(FoundField { path, versions, objects: 0, names });
                self.fields.len() - 1
            }
        };
        let field = &mut self.fields[at];
        field.objects += 1;
        if field.names.len() < NAMED {
            field.names.push(name.to_owned());
        }
        for version in versions {
            if !field.versions.contains(version) {
                field.versions.push(version.clone());
            }
        }
    }

    /// The fields that most objects have, and some of these.
    fn told(&self, has_versions: bool) -> String {
        let mut fields: Vec<&FoundField> = self.fields.iter().collect();
        fields.sort_by_key(|field| std::cmp::Reverse(field.objects));
        let is_alone = fields.len() == 1 && self.more == 0;
        let mut told: Vec<String> = (fields.iter().take(NAMED))
            .map(|field| {
                let FoundField { path, versions, objects, names } = field;
                let count = if is_alone { String::new() } else { format!("{objects} by ") };
                let at = if has_versions { format!(" at {}", versions.join(", ")) } else { String::new() };
                format!("{count}{path}{at} ({})", names.join(", "))
            })
            .collect();
        match (fields.len().saturating_sub(NAMED), self.more) {
            (0, _) => {}
            (more, 0) => told.push(format!("{more} more fields")),
            (more, _) => told.push(format!("more than {more} more fields")),
        }
        told.join(", ")
    }
}

/// What of a definition matters to its objects.
fn matters(definition: &Object) -> (Vec<[Option<&Value>; 4]>, [Option<&Value>; 2]) {
    let spec = part(definition, "spec");
    let of_version = ["name", "served", "storage", "schema"];
    let versions = objects(spec, "versions").map(|(_, version)| of_version.map(|name| version.get(name)));
    (versions.collect(), ["preserveUnknownFields", "conversion"].map(|name| spec.get(name)))
}

fn same_version(resource: &Resource, among: &[Arc<Resource>]) -> Option<usize> {
    among.iter().position(|other| other.version == resource.version)
}

/// A stored object as clients of `resource` see it; `None` if only a webhook knows, or nobody.
fn shown(resource: &Resource, stored: &Object) -> Option<Object> {
    resource.custom()?.show(stored.clone()).ok()
}

/// What a version says of an object, in the words of another one; in its own if nothing is known of that.
fn in_version(resource: &Resource, shown: &Object, api_version: &str) -> Object {
    let converted = resource.custom().and_then(|custom| custom.convert(shown.clone(), api_version).ok());
    converted.unwrap_or_else(|| shown.clone())
}

/// What a version shows of a stored object once that was written through it; `None` if that is the same, or not known.
fn rewritten(resource: &Resource, stored: &Object) -> Option<Object> {
    let custom = resource.custom().filter(|custom| custom.storage_version() != resource.api_version)?;
    let (shown, beneath) = custom.show_to_write(stored.clone());
    custom.show(custom.lay_down(shown.ok()?, &beneath).ok()?.stored).ok()
}

/// The fields that a version would show after the change and not once the object is written, beside those that it would
/// not show either if it were written before the change.
fn less_once_written(
    stored: &Object,
    (resource_before, before): (&Resource, &Object),
    (resource_after, after): (&Resource, &Object),
) -> Vec<String> {
    let lost = |resource: &Resource, shown: &Object| {
        rewritten(resource, stored).map(|written| missing(shown, &[&written])).unwrap_or_default()
    };
    let mut fields = lost(resource_after, after);
    if !fields.is_empty() {
        let lost_anyway = lost(resource_before, before);
        fields.retain(|path| !lost_anyway.contains(path));
    }
    fields
}

/// The fields for which an object is refused, and was not before, each with what is wrong with it.
fn newly_invalid(
    (resource, object): (&Arc<Resource>, &Object),
    before: Option<(&Arc<Resource>, &Object)>,
) -> Vec<(String, String)> {
    let faults = |resource: &Resource, object: &Object| -> BTreeMap<String, String> {
        let mut fields = BTreeMap::new();
        for error in &resource.strategy.validate(object) {
            fields.entry(general(&error.field)).or_insert_with(|| error.to_string());
        }
        fields
    };
    let mut found: Vec<(String, String)> = faults(resource, object).into_iter().collect();
    if let Some((resource, object)) = before.filter(|_| !found.is_empty()) {
        let known = faults(resource, object);
        found.retain(|(path, _)| !known.contains_key(path));
    }
    found.truncate(MAX_FIELDS + 1);
    found
}

/// The path of a field as rules write it, the same for all items of a list: `.spec.ports[*].name`.
fn general(field: &str) -> String {
    let mut path = String::with_capacity(field.len() + 1);
    if field.is_empty() || field == "<nil>" {
        return ".".to_owned();
    }
    if !field.starts_with('[') {
        path.push('.');
    }
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('[') {
        path.push_str(before);
        let Some((inside, behind)) = after.split_once(']') else {
            path.push('[');
            rest = after;
            continue;
        };
        let is_number = !inside.is_empty() && inside.bytes().all(|byte| byte.is_ascii_digit());
        path.push_str(&if is_number { "[*]".to_owned() } else { format!("[{inside}]") });
        rest = behind;
    }
    path.push_str(rest);
    path
}

/// The fields of an object that none of the others has, beside its metadata and its type.
fn missing(object: &Object, others: &[&Object]) -> Vec<String> {
    let mut paths = Vec::new();
    if others.contains(&object) {
        return paths;
    }
    let root = FieldPath::none();
    for (name, value) in object.iter().filter(|(name, _)| !["apiVersion", "kind", "metadata"].contains(name)) {
        let theirs: Vec<&Value> = others.iter().filter_map(|other| other.get(name)).collect();
        look_for(value, &theirs, &root.child(name), &mut paths);
    }
    paths
}

fn look_for(value: &Value, theirs: &[&Value], path: &FieldPath<'_>, paths: &mut Vec<String>) {
    if theirs.is_empty() {
        let path = general(&path.to_string());
        // One more than is told apart, so that it is known that there are more.
        if paths.len() <= MAX_FIELDS && !paths.contains(&path) {
            paths.push(path);
        }
        return;
    }
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter() {
                let theirs: Vec<&Value> = theirs.iter().filter_map(|other| other.as_object()?.get(name)).collect();
                look_for(value, &theirs, &path.child(name), paths);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let theirs: Vec<&Value> = theirs.iter().filter_map(|other| other.as_array()?.get(at)).collect();
                look_for(item, &theirs, &path.index(at), paths);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
