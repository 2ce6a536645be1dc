//! [`SkewedClients`]: the components that talk to the server although they are too old or too new for it.
//!
//! Every request is asked, so nearly all of them must cost nothing: the first characters of `User-Agent` say whether it
//! is a component at all and of which release (see [`ComponentVersion::from_user_agent`]), which is cheaper than to look
//! anything up. Only those that are not allowed take the lock. What is remembered is bounded, whatever clients call
//! themselves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::HeaderMap;
use http::header::USER_AGENT;
use prometheus::IntCounter;
use revisor_version::{Component, ComponentVersion, EffectiveVersion};
use time::OffsetDateTime;

use crate::Metrics;

/// How many releases of one component are told apart.
const MAX_RELEASES: usize = 16;

/// What the others are together.
const OTHERS: &str = "other";

/// How much of what a client calls itself is remembered.
const MAX_AGENT: usize = 128;

pub(crate) struct SkewedClients {
    server: EffectiveVersion,
    metrics: Arc<Metrics>,
    seen: Mutex<BTreeMap<(Component, String), Seen>>,
}

struct Seen {
    counter: IntCounter,
    last: OffsetDateTime,
    agent: String,
}

/// What is known of the clients of one component and release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkewedClient {
    pub(crate) component: Component,
    /// Its release, or that there were too many to tell apart.
    pub(crate) version: String,
    pub(crate) requests: u64,
    pub(crate) last: OffsetDateTime,
    /// What the last of them called itself.
    pub(crate) agent: String,
}

impl SkewedClients {
    pub(crate) fn new(server: EffectiveVersion, metrics: Arc<Metrics>) -> SkewedClients {
        SkewedClients { server, metrics, seen: Mutex::default() }
    }

    /// Remembers a request, if its sender should not talk to this server.
    pub(crate) fn note(&self, headers: &HeaderMap, now: impl FnOnce() -> OffsetDateTime) {
        let Some(agent) = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()) else { return };
        let Some(client) = ComponentVersion::from_user_agent(agent) else { return };
        if !client.is_allowed(self.server) {
            self.remember(client, agent, now());
        }
    }

    fn remember(&self, client: ComponentVersion, agent: &str, now: OffsetDateTime) {
        let ComponentVersion { component, release } = client;
        let agent = agent.char_indices().nth(MAX_AGENT).map_or(agent, |(end, _)| &agent[..end]);
        let mut seen = self.seen.lock().expect("no holder of the clients panics");
        let mut version = release.to_string();
        let told_apart = || seen.keys().filter(|(known, _)| *known == component).count();
        if !seen.contains_key(&(component, version.clone())) && told_apart() >= MAX_RELEASES {
            version = OTHERS.to_owned();
        }
        let counter = self.metrics.outside_skew(component.name(), &version);
        let known = seen.entry((component, version)).or_insert_with(|| {
            let (oldest, newest) = component.allowed(self.server);
            tracing::warn!(%agent, %oldest, %newest, "a component is too old or too new for this server");
            Seen { counter, last: now, agent: String::new() }
        });
        known.counter.inc();
        known.last = now;
        if known.agent != agent {
            agent.clone_into(&mut known.agent);
        }
    }

    /// All of them, by component and release.
    pub(crate) fn list(&self) -> Vec<SkewedClient> {
        let seen = self.seen.lock().expect("no holder of the clients panics");
        let shown = seen.iter().map(|((component, version), seen)| SkewedClient {
            component: *component,
            version: version.clone(),
            requests: seen.counter.get(),
            last: seen.last,
            agent: seen.agent.clone(),
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use revisor_version::Release;

    use super::*;

    fn clients() -> SkewedClients {
        let server = EffectiveVersion::of(Release { major: 1, minor: 36 });
        SkewedClients::new(server, Arc::new(Metrics::new(Vec::new)))
    }

    fn agent(text: &str) -> HeaderMap {
        HeaderMap::from_iter([(USER_AGENT, text.parse().expect("a header"))])
    }

    fn at(second: i64) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(second).expect("a time")
    }

    #[test]
    fn only_those_who_should_not_talk_to_the_server_are_remembered() {
        let clients = clients();
        for allowed in ["kubectl/v1.36.1 (linux/amd64) kubernetes/a", "kubelet/v1.33.0", "curl/8.5", "kubectl/v0.0.0"] {
            clients.note(&agent(allowed), || panic!("{allowed} costs a look at the clock"));
        }
        clients.note(&HeaderMap::new(), || panic!("nothing said"));
        assert_eq!(clients.list(), []);
        clients.note(&agent("kubectl/v1.30.1 (linux/amd64) kubernetes/a"), || at(1));
        clients.note(&agent("kubectl/v1.30.2 (linux/amd64) kubernetes/b"), || at(2));
        clients.note(&agent("kube-scheduler/v1.37.0 (linux/amd64) kubernetes/c/scheduler"), || at(3));
        let shown: Vec<String> = clients
            .list()
            .into_iter()
            .map(|client| {
                let SkewedClient { component, version, requests, last, agent } = client;
                format!("{component} {version} {requests} {} {agent}", last.unix_timestamp())
            })
            .collect();
        assert_eq!(
            shown,
            [
                "kube-scheduler 1.37 1 3 kube-scheduler/v1.37.0 (linux/amd64) kubernetes/c/scheduler",
                "kubectl 1.30 2 2 kubectl/v1.30.2 (linux/amd64) kubernetes/b",
            ]
        );
        let text = clients.metrics.render();
        assert!(text.contains("revisor_requests_outside_skew_total{component=\"kubectl\",version=\"1.30\"} 2"));
    }

    #[test]
    fn clients_cannot_make_the_server_remember_what_they_send() {
        let clients = clients();
        for minor in 100..200 {
            clients.note(&agent(&format!("kubectl/v1.{minor}.0 {}", "x".repeat(1000))), || at(minor));
        }
        let list = clients.list();
        assert_eq!(list.len(), MAX_RELEASES + 1);
        let last = list.iter().find(|client| client.version == OTHERS).expect("the others are one");
        assert_eq!((last.requests, last.last), (100 - MAX_RELEASES as u64, at(199)));
        assert!(list.iter().all(|client| client.agent.len() <= MAX_AGENT));
    }
}
