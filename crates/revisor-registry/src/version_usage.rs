//! [`VersionUsage`]: who asks for which versions of the custom resources, since the server started.
//!
//! It is kept in memory only, and bounded: per version the clients that asked last. A request costs two short locks,
//! of which one is shared and one belongs to its resource, and no memory unless the client is new.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

use revisor_catalog::{Resource, Verb};
use time::OffsetDateTime;

use crate::Registry;

/// How many clients of a version are remembered: those that asked last.
const MAX_CLIENTS: usize = 20;

/// How many versions of a resource are remembered: those that were asked for last. Definitions may change, and what
/// they no longer have is remembered until there are so many.
const MAX_VERSIONS: usize = 32;

/// How much of what a client calls itself is remembered.
const MAX_AGENT: usize = 256;

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

type Versions = Arc<Mutex<Vec<UsedVersion>>>;

/// Who asks for which versions.
pub(crate) struct VersionUsage {
    since: OffsetDateTime,
    /// By what the keys of a resource begin with. Only those that are served are there.
    resources: RwLock<HashMap<String, Versions>>,
}

impl VersionUsage {
    /// Nobody has asked for anything yet.
    pub(crate) fn new(since: OffsetDateTime) -> VersionUsage {
        VersionUsage { since, resources: RwLock::default() }
    }

    /// Since when requests are remembered.
    pub(crate) fn since(&self) -> OffsetDateTime {
        self.since
    }

    /// Remembers the requests for a resource from now on.
    pub(crate) fn begin(&self, prefix: &str) {
        let mut resources = self.resources.write().expect("no holder of the resources panics");
        resources.entry(prefix.to_owned()).or_default();
    }

    /// Forgets a resource.
    pub(crate) fn end(&self, prefix: &str) {
        self.resources.write().expect("no holder of the resources panics").remove(prefix);
    }

    /// The requests for the versions of a resource.
    pub(crate) fn of(&self, prefix: &str) -> Vec<UsedVersion> {
        let versions = self.versions(prefix);
        versions.map(|versions| versions.lock().expect("no holder of the versions panics").clone()).unwrap_or_default()
    }

    /// Notes a request.
    pub(crate) fn note(&self, prefix: &str, version: &str, agent: &str, verb: Verb, now: OffsetDateTime) {
        let Some(versions) = self.versions(prefix) else { return };
        let agent = shortened(agent);
        let mut versions = versions.lock().expect("no holder of the versions panics");
        let at = versions.iter().position(|known| known.version == version).unwrap_or_else(|| {
            forget_oldest(&mut versions, MAX_VERSIONS, |known| known.last);
            versions.push(UsedVersion { version: version.to_owned(), requests: 0, last: now, clients: Vec::new() });
            versions.len() - 1
        });
        let UsedVersion { requests, last, clients, .. } = &mut versions[at];
        *requests += 1;
        *last = now.max(*last);
        match clients.iter_mut().find(|client| client.agent == agent) {
            Some(client) => {
                client.requests += 1;
                client.last = now.max(client.last);
                client.verb = verb;
            }
            None => {
                forget_oldest(clients, MAX_CLIENTS, |client| client.last);
                clients.push(Client { agent: agent.to_owned(), requests: 1, last: now, verb });
            }
        }
    }

    fn versions(&self, prefix: &str) -> Option<Versions> {
        self.resources.read().expect("no holder of the resources panics").get(prefix).cloned()
    }
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
mod tests {
    use std::time::Duration;

    use super::*;

    const PREFIX: &str = "/registry/example.com/widgets/";

    fn at(seconds: u64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn usage() -> VersionUsage {
        let usage = VersionUsage::new(at(0));
        usage.begin(PREFIX);
        usage
    }

    #[test]
    fn requests_are_counted_by_version_and_client() {
        let usage = usage();
        for (second, version, agent, verb) in [
            (1, "v1", "kubectl", Verb::Get),
            (2, "v1", "operator", Verb::Watch),
            (3, "v1beta1", "kubectl", Verb::List),
            (4, "v1", "kubectl", Verb::Update),
        ] {
            usage.note(PREFIX, version, agent, verb, at(second));
        }
        let client = |agent: &str, requests, last, verb| Client { agent: agent.to_owned(), requests, last, verb };
        let [v1, v1beta1] = &usage.of(PREFIX)[..] else { panic!("two versions were asked for") };
        assert_eq!((v1.version.as_str(), v1.requests, v1.last), ("v1", 3, at(4)));
        assert_eq!(v1.clients, [client("kubectl", 2, at(4), Verb::Update), client("operator", 1, at(2), Verb::Watch)]);
        assert_eq!((v1beta1.version.as_str(), v1beta1.requests), ("v1beta1", 1));
        assert_eq!(v1beta1.clients, [client("kubectl", 1, at(3), Verb::List)]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let usage = usage();
        for number in 0..100 {
            usage.note(PREFIX, "v1", &format!("client-{number}"), Verb::Get, at(number));
            // One that asks again and again stays.
            usage.note(PREFIX, "v1", "client-0", Verb::Get, at(number));
        }
        let [v1] = &usage.of(PREFIX)[..] else { panic!("one version was asked for") };
        assert_eq!((v1.clients.len(), v1.requests), (MAX_CLIENTS, 200));
        let is_known = |agent: &str| v1.clients.iter().any(|client| client.agent == agent);
        assert!(is_known("client-0") && is_known("client-99") && !is_known("client-50"));

        for number in 0..100 {
            usage.note(PREFIX, &format!("v{number}"), "x", Verb::Get, at(200 + number));
        }
        let versions = usage.of(PREFIX);
        assert_eq!(versions.len(), MAX_VERSIONS);
        assert!(versions.iter().any(|known| known.version == "v99"));

        let long = "ä".repeat(1000);
        usage.note(PREFIX, "v1", &long, Verb::Get, at(1000));
        usage.note(PREFIX, "v1", &long, Verb::Get, at(1000));
        let versions = usage.of(PREFIX);
        let client = versions.iter().flat_map(|known| &known.clients).find(|client| client.agent.starts_with('ä'));
        assert_eq!(client.map(|client| (client.agent.len(), client.requests)), Some((MAX_AGENT, 2)));
    }

    #[test]
    fn nothing_is_remembered_of_what_is_not_served() {
        let usage = usage();
        usage.note("/registry/example.com/gadgets/", "v1", "kubectl", Verb::Get, at(1));
        assert_eq!(usage.of("/registry/example.com/gadgets/"), []);
        usage.note(PREFIX, "v1", "kubectl", Verb::Get, at(1));
        usage.end(PREFIX);
        usage.begin(PREFIX);
        assert_eq!(usage.of(PREFIX), [], "a definition of the same name is another one");
    }

    #[test]
    fn a_clock_that_goes_back_does_not_make_requests_older() {
        let usage = usage();
        usage.note(PREFIX, "v1", "kubectl", Verb::Get, at(9));
        usage.note(PREFIX, "v1", "kubectl", Verb::Get, at(5));
        let [v1] = &usage.of(PREFIX)[..] else { panic!("one version was asked for") };
        assert_eq!((v1.last, v1.clients[0].last), (at(9), at(9)));
    }
}
