//! What requests add to. Resolving labels to series is the slow part of every metrics library, so it happens once
//! per combination; after that a request costs a lookup and a few atomic additions.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts};
use prometheus::{Registry, exponential_buckets};
use smallvec::SmallVec;

use super::registered;

/// The one value of the label `component`: what aggregated servers would report differs here.
pub(crate) const COMPONENT: &str = "apiserver";

/// What stands for every verb, resource or code that is not worth a series of its own.
const OTHER: &str = "other";

/// How many combinations of labels get series of their own. Resources come and go with their definitions; past this
/// bound new ones are counted together.
const MAX_SERIES: usize = 8192;

const DURATION_BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];

/// Without the two shortest, as in the original: the objectives are longer than they.
const SLI_BUCKETS: &[f64] = DURATION_BUCKETS.split_at(2).1;

const VERBS: [&str; 14] = [
    "APPLY",
    "CONNECT",
    "CREATE",
    "DELETE",
    "DELETECOLLECTION",
    "GET",
    "LIST",
    "PATCH",
    "POST",
    "PROXY",
    "PUT",
    "UPDATE",
    "WATCH",
    "WATCHLIST",
];

const SCOPES: [&str; 4] = ["", "resource", "namespace", "cluster"];

/// The codes that get a series, sorted.
const CODES: [(u16, &str); 29] = [
    (200, "200"),
    (201, "201"),
    (202, "202"),
    (204, "204"),
    (206, "206"),
    (301, "301"),
    (302, "302"),
    (304, "304"),
    (307, "307"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (406, "406"),
    (408, "408"),
    (409, "409"),
    (410, "410"),
    (412, "412"),
    (413, "413"),
    (415, "415"),
    (422, "422"),
    (429, "429"),
    (431, "431"),
    (500, "500"),
    (501, "501"),
    (502, "502"),
    (503, "503"),
    (504, "504"),
];

/// What kind of request one is, as metrics see it. Resources must come from the catalog, not from a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestLabels<'a> {
    /// In upper case: `GET`, `LIST`, `WATCH`, `APPLY`, …
    pub verb: &'a str,
    /// The API group; empty for the core group and outside of groups.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The plural name.
    pub resource: &'a str,
    /// The subresource; for requests outside of resources their path, if it is one of the server's own.
    pub subresource: &'a str,
    /// `resource`, `namespace`, `cluster`, or empty.
    pub scope: &'a str,
    /// `All`, `invalid`, or empty.
    pub dry_run: &'a str,
    /// Which part of the program answers: `apiserver`, or empty for its health.
    pub component: &'a str,
}

impl RequestLabels<'_> {
    /// The same labels with everything folded that a client could make up.
    fn cleaned(self) -> Self {
        RequestLabels {
            verb: VERBS.iter().find(|verb| **verb == self.verb).unwrap_or(&OTHER),
            scope: SCOPES.iter().find(|scope| **scope == self.scope).unwrap_or(&""),
            dry_run: match self.dry_run {
                "" => "",
                "All" => "All",
                _ => "invalid",
            },
            ..self
        }
    }

    fn overflowed(self) -> Self {
        RequestLabels { group: OTHER, version: OTHER, resource: OTHER, subresource: OTHER, ..self }
    }

    fn key(&self) -> SmallVec<[u8; 128]> {
        let mut key = SmallVec::new();
        let RequestLabels { verb, group, version, resource, subresource, scope, dry_run, component } = *self;
        for part in [verb, group, version, resource, subresource, scope, dry_run, component] {
            key.extend_from_slice(part.as_bytes());
            // No label value holds this byte, as it never occurs in UTF-8.
            key.push(0xff);
        }
        key
    }
}

pub(super) struct RequestMetrics {
    families: Families,
    series: RwLock<HashMap<SmallVec<[u8; 128]>, Arc<RequestSeries>>>,
}

struct Families {
    total: IntCounterVec,
    duration: HistogramVec,
    sli: HistogramVec,
    terminations: IntCounterVec,
    sizes: HistogramVec,
    long_running: IntGaugeVec,
}

impl RequestMetrics {
    pub(super) fn new(registry: &Registry) -> RequestMetrics {
        let common = ["verb", "group", "version", "resource", "subresource", "scope", "component"];
        let timed = ["verb", "group", "version", "resource", "subresource", "scope", "component", "dry_run"];
        let terminated = ["verb", "group", "version", "resource", "subresource", "scope", "component", "code"];
        let counted = ["verb", "group", "version", "resource", "subresource", "scope", "component", "dry_run", "code"];
        let sizes = exponential_buckets(1000.0, 10.0, 7).expect("the buckets grow");
        let families = Families {
            total: registered(
                registry,
                IntCounterVec::new(
                    Opts::new("apiserver_request_total", "Requests that were answered, by kind and code"),
                    &counted,
                ),
            ),
            duration: registered(
                registry,
                HistogramVec::new(
                    HistogramOpts::new(
                        "apiserver_request_duration_seconds",
                        "Seconds from the head of a request to the end of its answer",
                    )
                    .buckets(DURATION_BUCKETS.to_vec()),
                    &timed,
                ),
            ),
            sli: registered(
                registry,
                HistogramVec::new(
                    HistogramOpts::new(
                        "apiserver_request_sli_duration_seconds",
                        "The same without the time for which webhooks and seats were waited for, and without dry runs",
                    )
                    .buckets(SLI_BUCKETS.to_vec()),
                    &common,
                ),
            ),
            terminations: registered(
                registry,
                IntCounterVec::new(
                    Opts::new(
                        "apiserver_request_terminations_total",
                        "Requests that the server gave up to protect itself",
                    ),
                    &terminated,
                ),
            ),
            sizes: registered(
                registry,
                HistogramVec::new(
                    HistogramOpts::new("apiserver_response_sizes", "Bytes in the answers to reads").buckets(sizes),
                    &common,
                ),
            ),
            long_running: registered(
                registry,
                IntGaugeVec::new(
                    Opts::new("apiserver_longrunning_requests", "Long-running requests that are open now"),
                    &common,
                ),
            ),
        };
        RequestMetrics { families, series: RwLock::default() }
    }

    pub(super) fn resolve(&self, labels: &RequestLabels<'_>) -> Arc<RequestSeries> {
        // The keys are clean, so labels that are found need no cleaning.
        if let Some(series) = self.known(labels) {
            return series;
        }
        // Only clean labels are remembered: what a client makes up must not become a key.
        let clean = labels.cleaned();
        if let Some(series) = self.known(&clean) {
            return series;
        }
        let mut all = self.series.write().unwrap_or_else(PoisonError::into_inner);
        let clean = if all.len() < MAX_SERIES { clean } else { clean.overflowed() };
        Arc::clone(all.entry(clean.key()).or_insert_with(|| Arc::new(RequestSeries::new(&self.families, &clean))))
    }

    fn known(&self, labels: &RequestLabels<'_>) -> Option<Arc<RequestSeries>> {
        // The map is valid after every statement that changes it, so a panic elsewhere does not spoil it.
        self.series.read().unwrap_or_else(PoisonError::into_inner).get(&labels.key()).cloned()
    }
}

/// The series to which requests of one kind add. Cheap to keep, made for being shared.
pub struct RequestSeries {
    total: IntCounterVec,
    labels: [String; 8],
    codes: [OnceLock<IntCounter>; CODES.len() + 1],
    duration: Histogram,
    /// Nobody has to keep to objectives in a dry run, or in what lasts as long as its client likes.
    sli: Option<Histogram>,
    terminations: IntCounterVec,
    /// Only the sizes of reads are interesting.
    sizes: Option<Histogram>,
    long_running: OnceLock<IntGauge>,
    long_running_family: IntGaugeVec,
}

impl RequestSeries {
    fn new(families: &Families, labels: &RequestLabels<'_>) -> RequestSeries {
        let RequestLabels { verb, group, version, resource, subresource, scope, dry_run, component } = *labels;
        let common = [verb, group, version, resource, subresource, scope, component];
        let timed = [verb, group, version, resource, subresource, scope, component, dry_run];
        RequestSeries {
            total: families.total.clone(),
            labels: timed.map(str::to_owned),
            codes: std::array::from_fn(|_| OnceLock::new()),
            duration: families.duration.with_label_values(&timed),
            sli: (dry_run.is_empty() && verb != "WATCH").then(|| families.sli.with_label_values(&common)),
            terminations: families.terminations.clone(),
            sizes: matches!(verb, "GET" | "LIST" | "WATCH").then(|| families.sizes.with_label_values(&common)),
            long_running: OnceLock::new(),
            long_running_family: families.long_running.clone(),
        }
    }

    /// Counts one request that was answered with `code` and `bytes` of body, `duration` after it came, of which it waited
    /// `elsewhere` for others than the server.
    pub fn observe(&self, code: u16, duration: Duration, elsewhere: Duration, bytes: u64) {
        let (slot, code) = slot_of(code);
        let counter = self.codes[slot].get_or_init(|| {
            let mut labels: SmallVec<[&str; 9]> = self.labels.iter().map(String::as_str).collect();
            labels.push(code);
            self.total.with_label_values(&labels)
        });
        counter.inc();
        self.duration.observe(duration.as_secs_f64());
        if let Some(sli) = &self.sli {
            sli.observe(duration.saturating_sub(elsewhere).as_secs_f64());
        }
        if let Some(sizes) = &self.sizes {
            sizes.observe(bytes as f64);
        }
    }

    /// Counts a request that the server gave up with this code to protect itself.
    pub fn terminated(&self, code: u16) {
        let mut labels: SmallVec<[&str; 8]> = self.labels[..7].iter().map(String::as_str).collect();
        labels.push(slot_of(code).1);
        self.terminations.with_label_values(&labels).inc();
    }

    /// Counts a long-running request as open while the guard lives.
    pub fn long_running(&self) -> LongRunningGuard {
        let gauge = self.long_running.get_or_init(|| {
            let labels: SmallVec<[&str; 7]> = self.labels[..7].iter().map(String::as_str).collect();
            self.long_running_family.with_label_values(&labels)
        });
        gauge.inc();
        LongRunningGuard(gauge.clone())
    }
}

/// Where the counter of a code is, and how it is labelled.
fn slot_of(code: u16) -> (usize, &'static str) {
    match CODES.binary_search_by_key(&code, |(known, _)| *known) {
        Ok(slot) => (slot, CODES[slot].1),
        Err(_) => (CODES.len(), OTHER),
    }
}

/// A long-running request that is open.
#[derive(Debug)]
pub struct LongRunningGuard(IntGauge);

impl Drop for LongRunningGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_labels_are_folded() {
        let pods = RequestLabels { verb: "GET", resource: "pods", ..RequestLabels::default() };
        for (name, labels, verb, scope, dry_run) in [
            ("known", pods, "GET", "", ""),
            ("verb", RequestLabels { verb: "BREW", ..pods }, "other", "", ""),
            ("lower case", RequestLabels { verb: "get", ..pods }, "other", "", ""),
            ("scope", RequestLabels { scope: "galaxy", ..pods }, "GET", "", ""),
            ("dry run", RequestLabels { dry_run: "All", ..pods }, "GET", "", "All"),
            ("dry run, but how", RequestLabels { dry_run: "Some", ..pods }, "GET", "", "invalid"),
        ] {
            let clean = labels.cleaned();
            assert_eq!((clean.verb, clean.scope, clean.dry_run), (verb, scope, dry_run), "{name}");
            assert_eq!(clean.resource, "pods", "{name}");
        }
    }

    #[test]
    fn codes_are_sorted_and_unknown_ones_folded() {
        assert!(CODES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(CODES.iter().all(|(code, text)| code.to_string() == *text));
        let registry = Registry::new();
        let metrics = RequestMetrics::new(&registry);
        let series = metrics.resolve(&RequestLabels { verb: "GET", ..RequestLabels::default() });
        for code in [200, 599, 299, 0, u16::MAX, 504] {
            series.observe(code, Duration::ZERO, Duration::ZERO, 0);
        }
        let seen: Vec<(String, u64)> = registry
            .gather()
            .iter()
            .filter(|family| family.name() == "apiserver_request_total")
            .flat_map(|family| family.get_metric())
            .map(|metric| {
                let code = metric.get_label().iter().find(|label| label.name() == "code").expect("a code");
                (code.value().to_owned(), metric.get_counter().get_value() as u64)
            })
            .collect();
        assert_eq!(seen, [("200".to_owned(), 1), ("504".to_owned(), 1), ("other".to_owned(), 4)]);
    }

    #[test]
    fn series_are_shared_and_bounded() {
        let registry = Registry::new();
        let metrics = RequestMetrics::new(&registry);
        let labels = RequestLabels { verb: "GET", resource: "pods", ..RequestLabels::default() };
        assert!(Arc::ptr_eq(&metrics.resolve(&labels), &metrics.resolve(&labels)));
        let made_up = |verb| metrics.resolve(&RequestLabels { verb, ..labels });
        assert!(Arc::ptr_eq(&made_up("BREW"), &made_up("WHEN")));
        assert_eq!(metrics.series.read().expect("not poisoned").len(), 2);
        for at in 0..MAX_SERIES + 10 {
            metrics.resolve(&RequestLabels { resource: &format!("kind{at}"), ..labels });
        }
        let late = metrics.resolve(&RequestLabels { resource: "late", ..labels });
        assert_eq!(late.labels[3], "other");
        assert!(metrics.series.read().expect("not poisoned").len() <= MAX_SERIES + VERBS.len());
    }
}
