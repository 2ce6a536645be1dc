//! [`Metrics`]: what a reflector has done so far.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::ResourceVersion;

/// What a reflector counts while it works.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) lists: AtomicU64,
    pub(crate) watches: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) bookmarks: AtomicU64,
    pub(crate) stale: AtomicU64,
    pub(crate) expired: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) moves: AtomicU64,
}

impl Counters {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Metrics {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Metrics {
            objects: 0,
            version: None,
            silent_for: Duration::ZERO,
            lists: number(&self.lists),
            watches: number(&self.watches),
            events: number(&self.events),
            bookmarks: number(&self.bookmarks),
            stale_events: number(&self.stale),
            expired_watches: number(&self.expired),
            errors: number(&self.errors),
            moves: number(&self.moves),
        }
    }
}

/// What a reflector has done so far, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// How many objects the store has.
    pub objects: usize,
    /// How far it is.
    pub version: Option<ResourceVersion>,
    /// For how long the server has said nothing; healthy servers send bookmarks about once a minute.
    pub silent_for: Duration,
    /// How many whole lists it has received.
    pub lists: u64,
    /// How many watches it has opened.
    pub watches: u64,
    /// How many changes it has received.
    pub events: u64,
    /// How many bookmarks it has received.
    pub bookmarks: u64,
    /// How many events it passed over because they were not newer than what it knew.
    pub stale_events: u64,
    /// How often a server no longer knew the version to go on from, so that everything was listed anew.
    pub expired_watches: u64,
    /// How many requests and watches failed.
    pub errors: u64,
    /// How often it went on at another server.
    pub moves: u64,
}

impl Metrics {
    /// The metrics in the text format of Prometheus, with the label `resource`.
    ///
    /// ```no_run
    /// # async fn example(store: revisor_client::Store<k8s_openapi::api::core::v1::ConfigMap>) {
    /// let text = store.metrics().to_prometheus("configmaps");
    /// assert!(text.contains("revisor_client_lists_total{resource=\"configmaps\"}"));
    /// # }
    /// ```
    pub fn to_prometheus(&self, resource: &str) -> String {
        let resource = resource.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let mut text = String::new();
        let mut tell = |name: &str, kind: &str, help: &str, value: String| {
            let _ = writeln!(text, "# HELP revisor_client_{name} {help}\n# TYPE revisor_client_{name} {kind}");
            let _ = writeln!(text, "revisor_client_{name}{{resource=\"{resource}\"}} {value}");
        };
        tell("objects", "gauge", "Objects in the store.", self.objects.to_string());
        if let Some(version) = self.version.as_ref().filter(|version| version.is_comparable()) {
            tell("resource_version", "gauge", "The version up to which the store has everything.", version.to_string());
        }
        let silent = format!("{:.3}", self.silent_for.as_secs_f64());
        tell("silent_seconds", "gauge", "How long the server has said nothing.", silent);
        for (name, help, value) in [
            ("lists_total", "Whole lists received.", self.lists),
            ("watches_total", "Watches opened.", self.watches),
            ("events_total", "Changes received.", self.events),
            ("bookmarks_total", "Bookmarks received.", self.bookmarks),
            ("stale_events_total", "Events that were not newer than what was known.", self.stale_events),
            ("expired_watches_total", "Watches whose version the server no longer knew.", self.expired_watches),
            ("errors_total", "Requests and watches that failed.", self.errors),
            ("moves_total", "Moves to another server.", self.moves),
        ] {
            tell(name, "counter", help, value.to_string());
        }
        text
    }
}
