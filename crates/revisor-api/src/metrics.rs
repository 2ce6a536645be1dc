//! [`Metrics`]: what the server counts, and the text in which it tells.
//!
//! Names, labels and buckets are the original's, so that dashboards and alerts made for it work here. Four parts:
//! what requests add to while they run ([`RequestSeries`], `access`), what is asked for at scrape time (`resources`, `store`, `conversions`,
//! `policies`, `admission`, `audit`, `flow_control`, `work_queues`), what
//! releases and features are in force (`versions`), and what the operating system knows about the process (`process`).

mod access;
mod admission;
mod audit;
mod conversions;
mod flow_control;
mod manifests;
mod policies;
mod process;
mod requests;
mod resources;
mod sampled;
mod store;
mod streaming;
mod versions;
mod work_queues;

use std::sync::Arc;
use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use revisor_audit::Auditor;
use revisor_catalog::ConversionSample;
use revisor_registry::{AdmissionSample, PolicySample};
use revisor_version::{EffectiveVersion, FeatureGates};

use crate::body::Body;
use crate::flow_control::FlowControl;
use crate::inflight::RequestKind;
use access::AccessMetrics;
pub(crate) use access::{Authentication, Authorization};
use audit::AuditCollector;
use conversions::ConversionCollector;
use manifests::ManifestMetrics;
use policies::PolicyCollector;
use process::ProcessCollector;
pub(crate) use requests::COMPONENT;
use requests::RequestMetrics;
pub use requests::{LongRunningGuard, RequestLabels, RequestSeries};
use resources::ResourceCollector;
pub use resources::ResourceSample;
use store::StoreCollector;
pub use store::StoreSample;
use streaming::StreamingMetrics;
pub(crate) use versions::DeprecatedApi;
use versions::VersionMetrics;
use work_queues::WorkQueueCollector;
pub use work_queues::{Distribution, WorkQueueSample};

/// From half an hour to a year, as in the original.
const CERTIFICATE_BUCKETS: [f64; 14] = [
    0.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];

/// Everything that the server counts. Built once and passed down.
pub struct Metrics {
    registry: Registry,
    requests: RequestMetrics,
    access: AccessMetrics,
    inflight: IntGaugeVec,
    watch_events: IntCounterVec,
    handshake_errors: IntCounter,
    client_certificates: Histogram,
    connections: IntGaugeVec,
    displaced: IntCounterVec,
    cut_off: IntCounter,
    versions: VersionMetrics,
    manifests: ManifestMetrics,
    streaming: StreamingMetrics,
}

impl Metrics {
    /// Metrics in which nothing has happened yet. `resources` is asked at every scrape what is stored and cached.
    pub fn new(resources: impl Fn() -> Vec<ResourceSample> + Send + Sync + 'static) -> Metrics {
        let registry = Registry::new();
        let requests = RequestMetrics::new(&registry);
        let access = AccessMetrics::new(&registry);
        let inflight = registered(
            &registry,
            IntGaugeVec::new(
                Opts::new(
                    "apiserver_current_inflight_requests",
                    "Requests being served, by kind, without long-running ones",
                ),
                &["request_kind"],
            ),
        );
        let watch_events = registered(
            &registry,
            IntCounterVec::new(
                Opts::new("apiserver_watch_events_total", "Events sent to watchers, by resource"),
                &["group", "version", "resource"],
            ),
        );
        let handshake_errors = registered(
            &registry,
            IntCounter::new(
                "apiserver_tls_handshake_errors_total",
                "Connections that ended before they were encrypted, by failure or by timeout",
            ),
        );
        let client_certificates = registered(
            &registry,
            Histogram::with_opts(
                HistogramOpts::new(
                    "apiserver_client_certificate_expiration_seconds",
                    "How long the certificates that requests were made with are still valid",
                )
                .buckets(CERTIFICATE_BUCKETS.to_vec()),
            ),
        );
        let connections = registered(
            &registry,
            IntGaugeVec::new(
                Opts::new("revisor_connections", "Connections, by whether a request has come on them yet"),
                &["state"],
            ),
        );
        let displaced = registered(
            &registry,
            IntCounterVec::new(
                Opts::new("revisor_connections_displaced_total", "Connections that were closed because others came"),
                &["state"],
            ),
        );
        let cut_off = registered(
            &registry,
            IntCounter::new(
                "revisor_answers_cut_off_total",
                "Answers that were broken off because their clients did not read them in time",
            ),
        );
        for kind in [RequestKind::ReadOnly, RequestKind::Mutating] {
            inflight.with_label_values(&[kind_label(kind)]);
        }
        registered(&registry, Ok(ResourceCollector::new(resources)));
        registered(&registry, Ok(ProcessCollector::new()));
        let versions = VersionMetrics::new(&registry);
        let manifests = ManifestMetrics::new(&registry);
        let streaming = StreamingMetrics::new(&registry);
        Metrics {
            registry,
            requests,
            access,
            inflight,
            watch_events,
            handshake_errors,
            client_certificates,
            connections,
            displaced,
            cut_off,
            versions,
            manifests,
            streaming,
        }
    }

    /// The registry behind these metrics, for what other parts of the program want to tell.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The series to which requests of this kind add. Unknown label values are folded into fixed ones, so clients
    /// cannot make the server remember what they send.
    pub fn requests(&self, labels: &RequestLabels<'_>) -> Arc<RequestSeries> {
        self.requests.resolve(labels)
    }

    /// The counter of events sent to watchers of one resource. Watches keep it rather than ask per event.
    pub fn watch_events(&self, group: &str, version: &str, resource: &str) -> IntCounter {
        self.watch_events.with_label_values(&[group, version, resource])
    }

    /// How many requests of a kind are being served.
    pub(crate) fn inflight(&self, kind: RequestKind) -> IntGauge {
        self.inflight.with_label_values(&[kind_label(kind)])
    }

    /// Has the store asked at every scrape what it holds.
    pub fn ask_store(&self, store: impl Fn() -> StoreSample + Send + Sync + 'static) {
        registered(&self.registry, Ok(StoreCollector::new(store)));
    }

    /// Has the catalog asked at every scrape how custom objects were converted.
    pub fn ask_conversions(&self, conversions: impl Fn() -> Vec<ConversionSample> + Send + Sync + 'static) {
        registered(&self.registry, Ok(ConversionCollector::new(conversions)));
    }

    /// Has the registry asked at every scrape how validating and mutating policies were evaluated.
    pub fn ask_policies(&self, policies: impl Fn() -> [Vec<PolicySample>; 2] + Send + Sync + 'static) {
        registered(&self.registry, Ok(PolicyCollector::new(policies)));
    }

    /// Has the registry asked at every scrape how admission went.
    pub fn ask_admission(&self, admission: impl Fn() -> Vec<AdmissionSample> + Send + Sync + 'static) {
        registered(&self.registry, Ok(admission::collector(admission)));
    }

    /// Has the auditor asked at every scrape what became of its events.
    pub fn ask_audit(&self, auditor: Arc<Auditor>) {
        registered(&self.registry, Ok(AuditCollector::new(auditor)));
    }

    /// Says that there is no auditor: no event is handed to anybody.
    pub fn tell_no_audit(&self) {
        audit::register_nothing(&self.registry);
    }

    /// Remembers how it went to find out who makes a request.
    pub(crate) fn authenticated(&self, authentication: Authentication<'_>, took: Duration) {
        self.access.authenticated(authentication, took);
    }

    /// Remembers how it went to find out whether a request may go on.
    pub(crate) fn authorized(&self, authorization: Authorization, took: Duration) {
        self.access.authorized(authorization, took);
    }

    /// Has priority and fairness asked at every scrape what became of requests.
    pub fn ask_flow_control(&self, flow_control: FlowControl) {
        registered(&self.registry, Ok(flow_control::collector(move || flow_control.samples())));
    }

    /// Says what the server is, `binary` with all that belongs to its version, and which features are on.
    pub fn tell_version(&self, binary: &str, version: EffectiveVersion, gates: &FeatureGates) {
        self.versions.tell(binary, version, gates);
    }

    /// Says of what the server was built: what `/version` answers.
    pub fn tell_build(&self, version: &serde_json::Value) {
        self.versions.tell_build(version);
    }

    /// Has the queues of controllers asked at every scrape what became of their keys.
    pub fn ask_work_queues(&self, queues: impl Fn() -> Vec<WorkQueueSample> + Send + Sync + 'static) {
        registered(&self.registry, Ok(WorkQueueCollector::new(queues)));
    }

    /// Remembers that the admission manifests of a plugin were read by a server of this name: with this hash, or that
    /// they could not be used.
    pub fn manifests_reloaded(&self, plugin: &str, server: &str, hash: Option<&str>) {
        self.manifests.reloaded(plugin, server, hash, std::time::SystemTime::now());
    }

    /// Remembers how a request ended that was translated from WebSocket to SPDY.
    pub(crate) fn stream_translated(&self, code: u16) {
        self.streaming.translated(code);
    }

    /// Remembers what a request was answered with that asked for SPDY inside of WebSocket.
    pub(crate) fn stream_tunneled(&self, code: u16) {
        self.streaming.tunneled(code);
    }

    /// Remembers that somebody asked for a way into a pod, and whether its kubelet speaks WebSocket.
    pub(crate) fn stream_routed(&self, subresource: &str, to_kubelet: bool) {
        self.streaming.routed(subresource, to_kubelet);
    }

    /// Remembers that somebody asked for a deprecated API.
    pub(crate) fn deprecated_api_requested(&self, api: &DeprecatedApi<'_>) {
        self.versions.deprecated(api);
    }

    /// The counter of requests of components of a release that is too old or too new. Whoever asks for it bounds how
    /// many releases there are.
    pub(crate) fn outside_skew(&self, component: &str, version: &str) -> IntCounter {
        self.versions.outside_skew(component, version)
    }

    /// How many connections there are in a state.
    pub(crate) fn connections(&self, state: ConnectionState) -> IntGauge {
        self.connections.with_label_values(&[state.label()])
    }

    /// How many connections in a state had to give way to others.
    pub(crate) fn displaced_connections(&self, state: ConnectionState) -> IntCounter {
        self.displaced.with_label_values(&[state.label()])
    }

    /// How many answers were broken off.
    pub(crate) fn cut_off(&self) -> IntCounter {
        self.cut_off.clone()
    }

    pub(crate) fn handshake_failed(&self) {
        self.handshake_errors.inc();
    }

    /// Remembers that a request was made with a certificate that is valid for so long.
    pub(crate) fn client_certificate(&self, remaining: Duration) {
        self.client_certificates.observe(remaining.as_secs_f64());
    }

    /// All metrics as text, in Prometheus' exposition format 0.0.4.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(64 * 1024);
        // Writing to memory fails only on a family without metrics or a name, and the registry yields neither.
        TextEncoder::new()
            .encode_utf8(&self.registry.gather(), &mut text)
            .expect("gathered families have a name and metrics");
        text
    }

    /// The answer to a scrape.
    pub fn response(&self) -> Response<Body> {
        exposition(self.render())
    }
}

/// Numbers in the form in which they are scraped.
pub(crate) fn exposition(text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// No request has come on it.
    New,
    /// Requests have come on it.
    Serving,
}

impl ConnectionState {
    fn label(self) -> &'static str {
        match self {
            ConnectionState::New => "new",
            ConnectionState::Serving => "serving",
        }
    }
}

fn kind_label(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::ReadOnly => "readOnly",
        RequestKind::Mutating => "mutating",
    }
}

/// The metric, known to the registry. Names and labels are constants of this crate, so a failure is a mistake in it.
fn registered<C: prometheus::core::Collector + Clone + 'static>(registry: &Registry, made: prometheus::Result<C>) -> C {
    let collector = made.expect("metric names and labels are valid");
    registry.register(Box::new(collector.clone())).expect("metric names are distinct");
    collector
}

#[cfg(test)]
mod tests {
    use revisor_catalog::ConversionWay;

    use super::*;

    #[test]
    fn text() {
        let metrics = Metrics::new(|| {
            vec![ResourceSample {
                group: "apps".to_owned(),
                resource: "deployments".to_owned(),
                objects: 7,
                watchers: 3,
                window_events: 40,
                resource_version: 1234,
                stored_versions: vec![("v1".to_owned(), 5), ("v1beta1".to_owned(), 2)],
            }]
        });
        metrics.ask_store(|| StoreSample { state: 70, history: 20, disk: 300, quota: Some(100), is_full: true });
        metrics.ask_conversions(|| {
            let way = ConversionWay {
                from: "v1".to_owned(),
                to: "v2".to_owned(),
                way: "rules",
                count: 3,
                time: Duration::from_millis(500),
            };
            vec![ConversionSample { definition: "a.b".to_owned(), ways: vec![way], kept_bytes: 11 }]
        });
        let labels = RequestLabels {
            verb: "GET",
            group: "apps",
            version: "v1",
            resource: "deployments",
            subresource: "",
            scope: "resource",
            dry_run: "",
            component: COMPONENT,
        };
        let served = metrics.requests(&labels);
        served.observe(200, Duration::from_millis(130), Duration::from_millis(100), 1500);
        served.terminated(504);
        metrics.client_certificate(Duration::from_secs(7000));
        let watch = RequestLabels { verb: "WATCH", scope: "cluster", ..labels };
        let _long_running = metrics.requests(&watch).long_running();
        metrics.watch_events("apps", "v1", "deployments").inc_by(9);
        metrics.handshake_failed();
        let text = metrics.render();
        for line in [
            "apiserver_request_total{code=\"200\",component=\"apiserver\",dry_run=\"\",group=\"apps\",\
             resource=\"deployments\",scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\"} 1",
            "apiserver_request_duration_seconds_bucket{component=\"apiserver\",dry_run=\"\",group=\"apps\",\
             resource=\"deployments\",scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\",le=\"0.1\"} 0",
            "apiserver_request_duration_seconds_bucket{component=\"apiserver\",dry_run=\"\",group=\"apps\",\
             resource=\"deployments\",scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\",le=\"0.2\"} 1",
            "apiserver_request_sli_duration_seconds_bucket{component=\"apiserver\",group=\"apps\",\
             resource=\"deployments\",scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\",le=\"0.05\"} 1",
            "apiserver_request_terminations_total{code=\"504\",component=\"apiserver\",group=\"apps\",\
             resource=\"deployments\",scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\"} 1",
            "apiserver_client_certificate_expiration_seconds_bucket{le=\"3600\"} 0",
            "apiserver_client_certificate_expiration_seconds_bucket{le=\"7200\"} 1",
            "apiserver_response_sizes_bucket{component=\"apiserver\",group=\"apps\",resource=\"deployments\",\
             scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\",le=\"10000\"} 1",
            "apiserver_longrunning_requests{component=\"apiserver\",group=\"apps\",resource=\"deployments\",\
             scope=\"cluster\",subresource=\"\",verb=\"WATCH\",version=\"v1\"} 1",
            "apiserver_current_inflight_requests{request_kind=\"mutating\"} 0",
            "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 0",
            "apiserver_watch_events_total{group=\"apps\",resource=\"deployments\",version=\"v1\"} 9",
            "apiserver_tls_handshake_errors_total 1",
            "apiserver_storage_objects{resource=\"deployments.apps\"} 7",
            "apiserver_resource_objects{group=\"apps\",resource=\"deployments\"} 7",
            "apiserver_registered_watchers{group=\"apps\",resource=\"deployments\"} 3",
            "apiserver_watch_cache_window_events{group=\"apps\",resource=\"deployments\"} 40",
            "apiserver_watch_cache_resource_version{group=\"apps\",resource=\"deployments\"} 1234",
            "revisor_custom_resource_stored_objects{group=\"apps\",resource=\"deployments\",version=\"v1\"} 5",
            "revisor_custom_resource_stored_objects{group=\"apps\",resource=\"deployments\",version=\"v1beta1\"} 2",
            "apiserver_storage_size_bytes{storage_cluster_id=\"embedded\"} 300",
            "revisor_store_bytes{part=\"state\"} 70",
            "revisor_store_bytes{part=\"history\"} 20",
            "revisor_conversions_total{definition=\"a.b\",from=\"v1\",to=\"v2\",way=\"rules\"} 3",
            "revisor_conversion_seconds_total{definition=\"a.b\",from=\"v1\",to=\"v2\",way=\"rules\"} 0.5",
            "revisor_conversion_kept_bytes_total{definition=\"a.b\"} 11",
            "revisor_store_quota_bytes 100",
            "revisor_store_alarm 1",
            "# TYPE apiserver_request_duration_seconds histogram",
        ] {
            assert!(text.lines().any(|got| got == line), "{line}\nis not in\n{text}");
        }
        for name in ["process_start_time_seconds", "process_resident_memory_bytes", "process_open_fds"] {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).expect(name);
            let value: f64 = line.split(' ').nth(1).and_then(|value| value.parse().ok()).expect(line);
            assert!(value > 0.0, "{line}");
        }
        assert!(text.contains("\nprocess_cpu_seconds_total "));
        let kind = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
        assert_eq!(metrics.response().headers()[CONTENT_TYPE], kind);
    }

    #[test]
    fn long_running_requests_go_down_again() {
        let metrics = Metrics::new(Vec::new);
        let labels = RequestLabels {
            verb: "WATCH",
            resource: "pods",
            version: "v1",
            component: COMPONENT,
            ..RequestLabels::default()
        };
        let guards: Vec<_> = (0..3).map(|_| metrics.requests(&labels).long_running()).collect();
        let line = |count: u8| {
            format!(
                "apiserver_longrunning_requests{{component=\"apiserver\",group=\"\",resource=\"pods\",scope=\"\",\
                 subresource=\"\",verb=\"WATCH\",version=\"v1\"}} {count}"
            )
        };
        assert!(metrics.render().contains(&line(3)));
        drop(guards);
        assert!(metrics.render().contains(&line(0)));
    }
}
