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
        let prefix = resource_of(key);
        let place = Place { prefix, rest: &key[prefix.len()..] };
        let Ok(object) = Decoded::stored(stored) else { return Vec::new() };
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
        let next = NextWrite::of_custom(resource, stored, &self.environment.timestamp());
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
    let newly: Vec<String> = newly.map(|field| format!("{}{}", field.refusal, at(field, has_versions))).collect();
    match (newly.is_empty(), at_every_write) {
        (true, every) => every,
        (false, Some(_)) => Some(clip_joined(newly, "; ")),
        (false, None) => {
            let tolerated = "a write that leaves it as it is is let pass".to_owned();
            Some(clip_joined(newly.into_iter().chain([tolerated]), "; "))
        }
    }
}

/// What is not shown of an object any more.
fn loss(effects: &[FieldEffect], has_versions: bool) -> Option<String> {
    let told = |effect: Effect, when: &str| {
        let fields = effects.iter().filter(|field| field.effect == effect);
        let fields: Vec<String> = fields.map(|field| format!("{}{}", field.path, at(field, has_versions))).collect();
        (!fields.is_empty()).then(|| format!("{} {when}", clip_joined(fields, ", ")))
    };
    let now = told(Effect::ShowsLess, "is no longer shown");
    let later = told(Effect::ShowsLessOnceWritten, "is no longer shown once it is written");
    let parts: Vec<String> = now.into_iter().chain(later).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// In which versions something befalls a field, where that is a question.
fn at(field: &FieldEffect, has_versions: bool) -> String {
    if has_versions { format!(" at {}", field.versions.join(", ")) } else { String::new() }
}

