//! [`VersionUsage`]: who asks for which versions of the custom resources.
//!
//! It is counted in memory, and bounded: per version the clients that asked last. A request costs two short locks, of
//! which one is shared and one belongs to its resource, and no memory unless the client is new. What was counted is
//! written down now and then ([`records`]), each server its own, so that it outlives the server and can be summed.

mod records;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

use revisor_cache::ResourceCache;
use revisor_catalog::{Resource, Verb};
use time::OffsetDateTime;

use crate::Registry;

pub(crate) use self::records::RECORDS;

/// How many clients of a version are remembered: those that asked last.
const MAX_CLIENTS: usize = 20;

/// How many versions of a resource are remembered: those that were asked for last. Definitions may change, and what
/// they no longer have is remembered until there are so many.
const MAX_VERSIONS: usize = 32;

/// How much of what a client calls itself is remembered.
const MAX_AGENT: usize = 256;

/// The requests for the versions of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Since when they are remembered.
    pub(crate) since: OffsetDateTime,
    pub(crate) versions: Vec<UsedVersion>,
}

/// The requests for one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsedVersion {
    pub(crate) version: String,
    /// How many there were.
    pub(crate) requests: u64,
    /// When the last one came.
    pub(crate) last: OffsetDateTime,
    /// Those that asked last, in no order.
    pub(crate) clients: Vec<Client>,
}

/// The requests of one client for one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    /// What it calls itself; empty if it does not say.
    pub(crate) agent: String,
    /// How many there were since it is remembered.
    pub(crate) requests: u64,
    /// When the last one came.
    pub(crate) last: OffsetDateTime,
    /// What the last one asked for.
    pub(crate) verb: Verb,
}

impl Usage {
    fn since(since: OffsetDateTime) -> Usage {
        Usage { since, versions: Vec::new() }
    }

    /// Adds requests of a client, or of so many that nobody knows whose they were.
    fn add(&mut self, version: &str, requests: u64, last: OffsetDateTime, client: Option<Client>) {
        let versions = &mut self.versions;
        let at = versions.iter().position(|known| known.version == version).unwrap_or_else(|| {
            forget_oldest(versions, MAX_VERSIONS, |known| known.last);
            versions.push(UsedVersion { version: version.to_owned(), requests: 0, last, clients: Vec::new() });
            versions.len() - 1
        });
        let used = &mut versions[at];
        used.requests = used.requests.saturating_add(requests);
        used.last = last.max(used.last);
        let Some(client) = client else { return };
        match used.clients.iter_mut().find(|known| known.agent == client.agent) {
            Some(known) => {
                known.requests = known.requests.saturating_add(client.requests);
                if client.last >= known.last {
                    known.verb = client.verb;
                }
                known.last = client.last.max(known.last);
            }
            None => {
                forget_oldest(&mut used.clients, MAX_CLIENTS, |known| known.last);
                used.clients.push(client);
            }
        }
    }

    /// Adds what another server counted.
    fn add_all(&mut self, other: Usage) {
        self.since = self.since.min(other.since);
        for used in other.versions {
            self.add(&used.version, used.requests, used.last, None);
            for client in used.clients {
                self.add(&used.version, 0, client.last, Some(client));
            }
        }
    }
}

/// What this server counted for one resource.
struct Counted {
    /// The identity of the definition: another one of the same name begins anew.
    definition: String,
    usage: Usage,
    /// Whether there is something that was not written down yet.
    has_news: bool,
}

/// Who asks for which versions.
pub(crate) struct VersionUsage {
    /// Who this server is among those that write down what they counted.
    server: String,
    /// What all servers have written down.
    records: Arc<ResourceCache>,
    /// By what the keys of a resource begin with. Only those that are served are there.
    resources: RwLock<HashMap<String, Arc<Mutex<Counted>>>>,
}

impl VersionUsage {
    /// Goes on where the server with this name left off.
    pub(crate) fn new(server: String, records: Arc<ResourceCache>) -> VersionUsage {
        VersionUsage { server, records, resources: RwLock::default() }
    }

    /// Remembers the requests for a resource from now on, if it does not already. `definition` is the identity of what
    /// defines it.
    pub(crate) fn begin(&self, prefix: &str, definition: &str, now: OffsetDateTime) {
        let mut resources = self.resources.write().expect("no holder of the resources panics");
        let known = resources.get(prefix).map(|counted| locked(counted).definition.clone());
        if known.as_deref() != Some(definition) {
            let own = self.record(prefix, &self.server).filter(|record| record.definition == definition);
            let usage = own.map_or_else(|| Usage::since(now), |record| record.usage);
            let counted = Counted { definition: definition.to_owned(), usage, has_news: false };
            resources.insert(prefix.to_owned(), Arc::new(Mutex::new(counted)));
        }
    }

    /// Forgets a resource.
    pub(crate) fn end(&self, prefix: &str) {
        self.resources.write().expect("no holder of the resources panics").remove(prefix);
    }

    /// The requests for the versions of a resource, those that other servers counted among them; nothing if it is not
    /// served.
    pub(crate) fn of(&self, prefix: &str) -> Option<Usage> {
        let (definition, mut usage) = {
            let counted = self.counted(prefix)?;
            let counted = locked(&counted);
            (counted.definition.clone(), counted.usage.clone())
        };
        for record in self.others(prefix).filter(|record| record.definition == definition) {
            usage.add_all(record.usage);
        }
        Some(usage)
    }

    /// Notes a request.
    pub(crate) fn note(&self, prefix: &str, version: &str, agent: &str, verb: Verb, now: OffsetDateTime) {
        let Some(counted) = self.counted(prefix) else { return };
        let agent = shortened(agent);
        let mut counted = locked(&counted);
        counted.has_news = true;
        // Nearly always it is known, and then nothing is copied.
        let used = counted.usage.versions.iter_mut().find(|known| known.version == version);
        if let Some(used) = used
            && let Some(known) = used.clients.iter_mut().find(|known| known.agent == agent)
        {
            used.requests = used.requests.saturating_add(1);
            used.last = now.max(used.last);
            known.requests = known.requests.saturating_add(1);
            known.last = now.max(known.last);
            known.verb = verb;
            return;
        }
        let client = Client { agent: agent.to_owned(), requests: 1, last: now, verb };
        counted.usage.add(version, 1, now, Some(client));
    }

    fn counted(&self, prefix: &str) -> Option<Arc<Mutex<Counted>>> {
        self.resources.read().expect("no holder of the resources panics").get(prefix).cloned()
    }
}

fn locked(counted: &Mutex<Counted>) -> std::sync::MutexGuard<'_, Counted> {
    counted.lock().expect("no holder of what is counted panics")
}

/// Makes room for one more.
fn forget_oldest<T>(known: &mut Vec<T>, most: usize, last: impl Fn(&T) -> OffsetDateTime) {
    if known.len() >= most
        && let Some((at, _)) = known.iter().enumerate().min_by_key(|(_, one)| last(one))
    {
        known.swap_remove(at);
    }
}

/// What is remembered of a client's name for itself.
fn shortened(agent: &str) -> &str {
    let mut end = agent.len().min(MAX_AGENT);
    while !agent.is_char_boundary(end) {
        end -= 1;
    }
    &agent[..end]
}

impl Registry {
    /// Notes that a client, by what it calls itself, was let ask for a version of a resource. Those of custom resources
    /// are remembered, for the reports on their versions.
    pub fn note_request(&self, resource: &Resource, verb: Verb, user_agent: &str) {
        if resource.custom().is_some() {
            let now = self.environment.now();
            self.usage.note(&resource.prefix, &resource.version, user_agent, verb, now);
        }
    }
}

#[cfg(test)]
mod tests;
