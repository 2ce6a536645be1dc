//! Version reports: a resource without storage. Whoever asks is told, for each definition of a custom resource, how many
//! objects are stored in each of its versions, who asks for which, and which of them could be dropped.
//!
//! The counts are exact: the cache keeps them with every write. The requests are those of all servers on the store, as far
//! as they are remembered ([`VersionUsage`](crate::version_usage::VersionUsage)).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use revisor_cache::Item;
use revisor_catalog::{ESTABLISHED, Resource};
use revisor_object::{Object, Value};
use revisor_schema::{Precision, format_timestamp};
use revisor_store::{Draft, Entry, Key};
use time::{Duration, OffsetDateTime};

use crate::present::Presented;
use crate::read::{Got, ListItems, Listed, SharedFilter};
use crate::version_usage::UsedVersion;
use crate::write::encode;
use crate::{Decoded, Registry, RegistryError, Selection};

/// For so long a version counts as used after it was asked for.
const RECENT: Duration = Duration::DAY;

/// What is said of objects whose bytes do not tell their version.
const UNKNOWN: &str = "unknown";

/// Whether these are the reports.
pub(crate) fn is_reports(resource: &Resource) -> bool {
    resource.custom().is_none() && resource.name() == ("versioning.revisor.dev", "versionreports")
}

/// The version in which a custom object is stored. Its members are sorted, so that nearly always the first one tells.
pub(crate) fn stored_version(bytes: &[u8]) -> Cow<'_, str> {
    const START: &[u8] = br#"{"apiVersion":""#;
    let api_version = match bytes.strip_prefix(START) {
        Some(rest) => {
            let end = rest.iter().position(|byte| *byte == b'"').unwrap_or(rest.len());
            String::from_utf8_lossy(&rest[..end])
        }
        None => match sonic_rs::get(bytes, ["apiVersion"]) {
            Ok(text) => Cow::Owned(text.as_raw_str().trim_matches('"').to_owned()),
            Err(_) => Cow::Borrowed(""),
        },
    };
    match api_version {
        Cow::Borrowed(text) => Cow::Borrowed(version_of(text)),
        Cow::Owned(text) => Cow::Owned(version_of(&text).to_owned()),
    }
}

/// `v1` of `example.com/v1`.
pub(crate) fn version_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(_, version)| version)
}

impl Registry {
    /// The report on one definition.
    pub(crate) async fn version_report(&self, resource: &Arc<Resource>, name: &str) -> Result<Got, RegistryError> {
        self.cache.freshen().await?;
        let not_found = || RegistryError::not_found(resource, name);
        let served_at = self.definitions_resource().and_then(|definitions| self.cache_of(definitions).reached());
        let item = self.definition_item(name).ok_or_else(not_found)?;
        let report = self.report_on(&item).ok_or(RegistryError::Unreadable)?;
        Ok(Got { bytes: encode(resource, &report).bytes().clone(), item: None, served_at })
    }

    /// The reports on all definitions that are selected. Versions and limits mean nothing here.
    pub(crate) async fn version_reports(
        &self,
        resource: &Arc<Resource>,
        selection: &Selection,
    ) -> Result<Listed, RegistryError> {
        self.cache.freshen().await?;
        let filter = SharedFilter(selection.filter(resource));
        let definitions = self.definitions_resource().map(|definitions| self.cache_of(definitions).snapshot());
        let known = definitions.iter().flat_map(|definitions| definitions.range("", None));
        let reports = known.filter_map(|item| self.report_on(item)).map(|report| {
            let name = report.object("metadata").and_then(|metadata| metadata.str("name")).unwrap_or_default();
            let key = Key::new(resource.key(None, name));
            let draft = Draft::opaque(encode(resource, &report).bytes().clone());
            Item::new(Arc::new(Entry::new(key, revisor_version::Revision::FIRST, &draft)))
        });
        let items = reports.filter(|item| filter.admits(item)).map(Presented::from).collect();
        Ok(Listed {
            revision: None,
            items: ListItems::Page(items),
            continue_token: None,
            remaining: None,
            footprint: None,
        })
    }

    /// How many objects of a custom resource are stored in each of its versions, those that have none among them.
    pub fn stored_versions(&self, resource: &Resource) -> Vec<(String, u64)> {
        let Some(custom) = resource.custom() else { return Vec::new() };
        let counts = self.cache_of(resource).counts();
        let mut versions: Vec<(String, u64)> =
            custom.api_versions().map(|version| (version_of(version).to_owned(), 0)).collect();
        for (version, objects) in counts {
            match versions.iter_mut().find(|(known, _)| **known == *version) {
                Some((_, known)) => *known = objects,
                None => versions.push((named(version), objects)),
            }
        }
        versions
    }

    /// The definition with this name.
    pub(crate) fn definition_item(&self, name: &str) -> Option<Arc<Item>> {
        let definitions = self.definitions_resource()?;
        self.cache_of(definitions).get(&definitions.key(None, name))
    }

    pub(crate) fn definitions_resource(&self) -> Option<&Arc<Resource>> {
        self.catalog.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    }

    fn report_on(&self, definition: &Item) -> Option<Object> {
        let definition = Decoded::stored(definition.bytes()).ok()?;
        let text = |path: &[&str]| definition.at(path).and_then(Value::as_str).unwrap_or_default();
        let (group, plural) = (text(&["spec", "group"]), text(&["status", "acceptedNames", "plural"]));
        let prefix = format!("/registry/{group}/{plural}/");
        let counts = is_established(&definition).then(|| self.custom_cache(&prefix)).flatten();
        let usage = self.usage.of(&prefix);
        let facts = Facts {
            definition: &definition,
            counts: counts.map(|cache| cache.counts()),
            since: usage.as_ref().map(|usage| usage.since),
            used: usage.map(|usage| usage.versions).unwrap_or_default(),
            now: self.environment.now(),
        };
        Some(facts.report())
    }
}

fn is_established(definition: &Object) -> bool {
    let conditions = definition.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let is = |condition: &&Object| condition.str("type") == Some(ESTABLISHED);
    conditions.iter().filter_map(Value::as_object).find(is).is_some_and(|found| found.str("status") == Some("True"))
}

fn named(version: Box<str>) -> String {
    if version.is_empty() { UNKNOWN.to_owned() } else { version.into() }
}

/// All that a report is made from.
struct Facts<'a> {
    definition: &'a Object,
    /// How many objects are stored in which versions; `None` if nobody counts them.
    counts: Option<Vec<(Box<str>, u64)>>,
    used: Vec<UsedVersion>,
    /// Since when requests are known; `None` if nobody counts them.
    since: Option<OffsetDateTime>,
    now: OffsetDateTime,
}

/// A version, as its definition has it.
struct Version<'a> {
    name: &'a str,
    is_served: bool,
    is_storage: bool,
}

impl Facts<'_> {
    fn report(&self) -> Object {
        let versions = self.versions();
        let storage = versions.iter().find(|version| version.is_storage).map_or("", |version| version.name);
        let uses: Vec<Object> = versions.iter().map(|version| self.version_use(version, storage)).collect();
        let droppable: Vec<Value> = (uses.iter())
            .filter(|of| of.get("droppable").and_then(Value::as_bool) == Some(true))
            .filter_map(|of| of.get("name").cloned())
            .collect();
        let at = |path: &[&str]| self.definition.at(path).cloned();
        let objects: u64 = self.counts.iter().flatten().map(|(_, objects)| objects).sum();

        let mut report = Object::new();
        let metadata = report.object_mut("metadata");
        metadata.set("name", at(&["metadata", "name"]));
        metadata.set("creationTimestamp", at(&["metadata", "creationTimestamp"]));
        let status = report.object_mut("status");
        status.set("group", at(&["spec", "group"]));
        status.set("resource", at(&["spec", "names", "plural"]));
        status.insert("storageVersion", storage);
        status.insert("storedVersions", self.stored_versions().map(Value::from).collect::<Vec<_>>());
        status.insert("objects", number(objects));
        status.insert("droppableVersions", droppable);
        status.set("requestsSince", self.since.map(time));
        status.insert("versions", uses.into_iter().map(Value::Object).collect::<Vec<_>>());
        report
    }

    /// The versions of the definition, then those in which something is or may be stored nevertheless.
    fn versions(&self) -> Vec<Version<'_>> {
        let defined = self.definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
        let truth = |version: &Object, name: &str| version.get(name).and_then(Value::as_bool) == Some(true);
        let mut versions: Vec<Version<'_>> = (defined.iter().filter_map(Value::as_object))
            .map(|version| Version {
                name: version.str("name").unwrap_or_default(),
                is_served: truth(version, "served"),
                is_storage: truth(version, "storage"),
            })
            .collect();
        let counted = self.counts.iter().flatten().map(|(version, _)| &**version);
        for name in counted.chain(self.stored_versions()) {
            if !versions.iter().any(|known| known.name == name) {
                versions.push(Version { name, is_served: false, is_storage: false });
            }
        }
        versions
    }

    fn stored_versions(&self) -> impl Iterator<Item = &str> {
        let stored = self.definition.at(&["status", "storedVersions"]).and_then(Value::as_array).unwrap_or_default();
        stored.iter().filter_map(Value::as_str)
    }

    fn objects_in(&self, version: &str) -> u64 {
        let known = self.counts.iter().flatten().find(|(known, _)| **known == *version);
        known.map_or(0, |(_, objects)| *objects)
    }

    fn version_use(&self, version: &Version<'_>, storage: &str) -> Object {
        let used = self.used.iter().find(|used| used.version == version.name);
        let obstacles = self.obstacles(version, used, storage);
        let mut shown = Object::new();
        shown.insert("name", named(version.name.into()));
        shown.insert("served", version.is_served);
        shown.insert("storage", version.is_storage);
        shown.insert("objects", number(self.objects_in(version.name)));
        shown.insert("requests", number(used.map_or(0, |used| used.requests)));
        shown.set("lastRequestTime", used.map(|used| time(used.last)));
        shown.insert("droppable", obstacles.is_empty());
        let obstacles = obstacles.into_iter().map(|(reason, message)| {
            let mut obstacle = Object::new();
            obstacle.insert("reason", reason);
            obstacle.insert("message", message);
            Value::Object(obstacle)
        });
        shown.insert("obstacles", obstacles.collect::<Vec<_>>());
        let mut clients: Vec<_> = used.into_iter().flat_map(|used| &used.clients).collect();
        clients.sort_by_key(|client| (Reverse(client.last), &client.agent));
        let clients = clients.into_iter().map(|client| {
            let mut shown = Object::new();
            shown.insert("userAgent", client.agent.as_str());
            shown.insert("requests", number(client.requests));
            shown.insert("lastRequestTime", time(client.last));
            shown.insert("lastVerb", client.verb.as_str());
            Value::Object(shown)
        });
        shown.insert("clients", clients.collect::<Vec<_>>());
        shown
    }

    /// What stands in the way of dropping a version, in one word and for people.
    fn obstacles(
        &self,
        version: &Version<'_>,
        used: Option<&UsedVersion>,
        storage: &str,
    ) -> Vec<(&'static str, String)> {
        let mut obstacles = Vec::new();
        if version.is_storage {
            obstacles.push(("StorageVersion", "objects are stored in it whenever they are written".to_owned()));
        }
        match self.objects_in(version.name) {
            _ if self.counts.is_none() => {
                obstacles
                    .push(("NotCounted", "the definition is not established, so nobody counts its objects".into()));
            }
            0 if !version.is_storage && self.stored_versions().any(|stored| stored == version.name) => {
                let message = "no object is stored in it any more, but status.storedVersions of the definition still \
                               names it; remove it there first";
                obstacles.push(("InStoredVersions", message.to_owned()));
            }
            0 => {}
            objects => {
                let are = if objects == 1 { "object is" } else { "objects are" };
                let cure = if version.is_storage {
                    String::new()
                } else {
                    format!("; each is stored in {storage} when it is written next")
                };
                obstacles.push(("ObjectsStored", format!("{objects} {are} stored in it{cure}")));
            }
        }
        // Who asked for what is not served any more is served no worse without it.
        if let Some(message) = used.filter(|_| version.is_served).and_then(|used| self.recent_requests(used)) {
            obstacles.push(("RecentRequests", message));
        }
        obstacles
    }

    /// Who asked for a version lately, if anybody did.
    fn recent_requests(&self, used: &UsedVersion) -> Option<String> {
        let is_recent = |last: OffsetDateTime| self.now - last < RECENT;
        let recent: Vec<_> = used.clients.iter().filter(|client| is_recent(client.last)).collect();
        let last = recent.iter().max_by_key(|client| client.last)?;
        let who = if last.agent.is_empty() { "a client without a name" } else { &last.agent };
        let others = match recent.len() - 1 {
            0 => String::new(),
            1 => ", and 1 other client within the last day".to_owned(),
            others => format!(", and {others} other clients within the last day"),
        };
        Some(format!("{who} asked for it at {}{others}", format_timestamp(last.last, Precision::Seconds)))
    }
}

fn number(count: u64) -> Value {
    Value::from(i64::try_from(count).unwrap_or(i64::MAX))
}

fn time(time: OffsetDateTime) -> Value {
    Value::from(format_timestamp(time, Precision::Seconds))
}

#[cfg(test)]
mod tests;
