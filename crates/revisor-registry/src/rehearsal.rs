//! [`Rehearsal`]: what a release, definitions and conversions that are to come would do to the objects that are stored,
//! without a server and without changing anything.
//!
//! Whoever has the objects shows them one after the other, as they are stored: a folder, a live server, later others.
//! What one of them would suffer is told at once; nothing is held. A single change of a definition that a client is about
//! to make is another matter ([`definition_rehearsal`](crate::definition_rehearsal)): that is counted, and bounded in time.

mod finding;
mod next_write;
mod requests;
mod to_come;

pub use finding::{RehearsalEffect, RehearsalFinding};
pub use requests::SeenRequests;
pub use to_come::{Stored, ToCome};

use std::collections::HashMap;
use std::sync::Arc;

use revisor_catalog::{Catalog, DefinitionChange, Effect, FieldEffect, Resource};
use revisor_object::{Object, Value, clip_joined};
use revisor_store::embedded::resource_of;

use self::next_write::NextWrite;
use crate::{Decoded, Environment};

/// What is to come, and what it makes of the objects that it is shown.
pub struct Rehearsal {
    catalog: Arc<Catalog>,
    environment: Environment,
    /// The versions of built-in resources that are served, by what the keys of their objects begin with.
    built_in: HashMap<String, Vec<Arc<Resource>>>,
    /// What becomes of definitions, by the same.
    custom: HashMap<String, DefinitionChange>,
}

/// Which object it is.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    prefix: &'a str,
    /// Behind the prefix: a name, or a namespace and a name.
    rest: &'a str,
    origin: Origin,
}

/// Who has shown an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A store, as it is stored.
    Store,
    /// A live server, in some version.
    Api,
}

impl Rehearsal {
    fn new(catalog: Arc<Catalog>, environment: Environment, custom: HashMap<String, DefinitionChange>) -> Rehearsal {
        let mut built_in: HashMap<String, Vec<Arc<Resource>>> = HashMap::new();
        let resources = catalog.resources().chain([catalog.conversions()]);
        for resource in resources.filter(|resource| resource.is_stored()) {
            built_in.entry(resource.prefix.clone()).or_default().push(resource.clone());
        }
        Rehearsal { catalog, environment, built_in, custom }
    }

    /// Which of the versions that a live server serves of a resource tell all that it shows, best first: one, or all of
    /// them where versions differ by more than their names.
    pub fn telling<'v>(&self, group: &str, plural: &str, served: &[&'v str]) -> Vec<&'v str> {
        let storage = match self.custom.get(&format!("/registry/{group}/{plural}/")) {
            Some(change) => {
                let before = &change.before().storage;
                if before.custom().is_some_and(|custom| !custom.is_by_name()) {
                    return served.to_vec();
                }
                before.version.clone()
            }
            None => {
                let known = self.built_in.values().flatten().filter(|known| known.name() == (group, plural));
                let known: Vec<_> = known.collect();
                let storage = known.first().map(|known| known.storage().version.clone()).unwrap_or_default();
                let is_known = |version: &str| known.iter().any(|known| known.version == version);
                match served.iter().find(|version| **version != storage && is_known(version)) {
                    Some(version) if !served.contains(&&*storage) => return vec![version],
                    _ => storage,
                }
            }
        };
        let best = served.iter().find(|version| **version == storage).or(served.first());
        best.copied().into_iter().collect()
    }

    /// The key under which a folder has the object of a resource, for those who know objects otherwise.
    pub fn key(&self, group: &str, plural: &str, namespace: Option<&str>, name: &str) -> String {
        let known = self.built_in.values().flatten().find(|known| known.name() == (group, plural));
        let prefix = known.map_or_else(|| format!("/registry/{group}/{plural}/"), |known| known.prefix.clone());
        match namespace {
            Some(namespace) => format!("{prefix}{namespace}/{name}"),
            None => format!("{prefix}{name}"),
        }
    }

    /// What becomes of an object, as it is stored under a key. What is stored there and is no object, the server keeps for
    /// itself.
    pub fn look_at(&self, key: &str, stored: &[u8]) -> Vec<RehearsalFinding> {
        let Ok(object) = Decoded::stored(stored) else { return Vec::new() };
        self.look_at_object(key, object, Origin::Store)
    }

    /// The same of an object that a live server shows in some version. How it is stored nobody knows.
    pub fn look_at_shown(&self, key: &str, mut shown: Object) -> Vec<RehearsalFinding> {
        let versions = self.built_in.get(resource_of(key)).map(Vec::as_slice).unwrap_or_default();
        let version = shown.str("apiVersion").unwrap_or_default();
        if let Some(resource) = versions.iter().find(|known| known.api_version == version) {
            resource.to_stored(&mut shown);
            shown.insert("apiVersion", resource.storage().api_version.as_str());
        }
        self.look_at_object(key, shown, Origin::Api)
    }

    fn look_at_object(&self, key: &str, object: Object, origin: Origin) -> Vec<RehearsalFinding> {
        let prefix = resource_of(key);
        let place = Place { prefix, rest: &key[prefix.len()..], origin };
        if let Some(change) = self.custom.get(prefix) {
            return self.look_at_custom(change, place, &object);
        }
        match self.built_in.get(prefix).and_then(|versions| versions.first()) {
            Some(resource) => self.look_at_built_in(resource.working(), place, object),
            None => gone(place, &object).into_iter().collect(),
        }
    }

    fn look_at_custom(&self, change: &DefinitionChange, place: Place<'_>, stored: &Object) -> Vec<RehearsalFinding> {
        let after = change.after();
        let finding = |effect, message| finding(&after.storage, place, effect, message);
        let Some(resource) = after.served.iter().find(|known| known.is_storage()).or(after.served.first()) else {
            let was_served = !change.before().served.is_empty();
            let message = "no version of its definition is served any more".to_owned();
            return was_served.then(|| finding(RehearsalEffect::Gone, message)).into_iter().collect();
        };
        let effects = change.effects_on(stored);
        let next = NextWrite::of_custom(resource, stored, place.origin, &self.environment.timestamp());
        let has_versions = change.before().served.len().max(after.served.len()) > 1;
        let mut found = Vec::new();
        if let Some(message) = refusal(&effects, &next, has_versions) {
            found.push(finding(RehearsalEffect::Refused, message));
        }
        if let Some(message) = loss(&effects, has_versions) {
            found.push(finding(RehearsalEffect::ShowsLess, message));
        }
        next.tell(&mut found, finding);
        found
    }

    fn look_at_built_in(&self, resource: &Arc<Resource>, place: Place<'_>, stored: Object) -> Vec<RehearsalFinding> {
        let finding = |effect, message| finding(resource, place, effect, message);
        let mut found = Vec::new();
        let mut fitted = Value::Object(stored.clone());
        match resource.conform(&mut fitted) {
            Err(why) => return vec![finding(RehearsalEffect::Refused, why)],
            Ok(findings) if !findings.unknown_fields.is_empty() => {
                let fields = findings.unknown_fields.iter().map(|field| format!(".{field}"));
                let message = format!("the release does not know {}", clip_joined(fields, ", "));
                found.push(finding(RehearsalEffect::ShowsLess, message));
            }
            Ok(_) => {}
        }
        let next = NextWrite::of_built_in(resource, &stored, &self.environment.timestamp());
        if let Some(message) = next.refusal() {
            found.push(finding(RehearsalEffect::Refused, message));
        }
        next.tell(&mut found, finding);
        found
    }
}

impl std::fmt::Debug for Rehearsal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rehearsal").field("definitions", &self.custom.len()).finish_non_exhaustive()
    }
}

fn finding(resource: &Resource, place: Place<'_>, effect: RehearsalEffect, message: String) -> RehearsalFinding {
    RehearsalFinding::new(resource.qualified_name(), place.rest, effect, message)
}

/// That nothing serves an object any more.
fn gone(place: Place<'_>, stored: &Object) -> Option<RehearsalFinding> {
    let (version, kind) = (stored.str("apiVersion")?, stored.str("kind")?);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let plural = place.prefix.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let resource = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let message = format!("no version of {kind} ({version}) is served");
    Some(RehearsalFinding::new(resource, place.rest, RehearsalEffect::Gone, message))
}

/// Why the next write of an object is refused: for what is new about it, whoever writes it, or for what is wrong with
/// every write.
fn refusal(effects: &[FieldEffect], next: &NextWrite, has_versions: bool) -> Option<String> {
    let at_every_write = next.refusal();
    let newly = effects.iter().filter(|field| field.effect == Effect::Invalid);
    let newly: Vec<String> = newly.map(|field| format!("{}{}", at(field, has_versions, ": "), field.refusal)).collect();
    match (newly.is_empty(), at_every_write) {
        (true, every) => every,
        (false, Some(_)) => Some(clip_joined(newly, "; ")),
        (false, None) => Some(format!("{} (a write that leaves the field alone passes)", clip_joined(newly, "; "))),
    }
}

/// What is not shown of an object any more.
fn loss(effects: &[FieldEffect], has_versions: bool) -> Option<String> {
    let told = |effect: Effect, when: &str| {
        let fields = effects.iter().filter(|field| field.effect == effect);
        let fields: Vec<String> =
            fields.map(|field| format!("{}{}", at(field, has_versions, " "), field.path)).collect();
        (!fields.is_empty()).then(|| format!("{} {when}", clip_joined(fields, ", ")))
    };
    let now = told(Effect::ShowsLess, "is no longer shown");
    let later = told(Effect::ShowsLessOnceWritten, "is no longer shown once it is written");
    let parts: Vec<String> = now.into_iter().chain(later).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// In which versions something befalls a field, where that is a question.
fn at(field: &FieldEffect, has_versions: bool, joint: &str) -> String {
    if has_versions { format!("at {}{joint}", field.versions.join(", ")) } else { String::new() }
}
