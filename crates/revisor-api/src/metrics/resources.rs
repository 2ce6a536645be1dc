//! What is stored and cached, per resource. Nobody counts along: the owners are asked when someone wants to know.

use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

/// One resource at the time of a scrape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceSample {
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural name.
    pub resource: String,
    /// How many objects there are.
    pub objects: u64,
    /// How many watches are open.
    pub watchers: u64,
    /// How many events the window holds.
    pub window_events: u64,
    /// The newest revision that the cache has seen.
    pub resource_version: u64,
    /// Of a custom resource: how many objects are stored in each of its versions.
    pub stored_versions: Vec<(String, u64)>,
}

impl ResourceSample {
    fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.resource.clone(),
            group => format!("{}.{group}", self.resource),
        }
    }
}

/// A family of gauges: name, help, whether it is labelled by the qualified name alone, and where its values come from.
struct Row(&'static str, &'static str, bool, fn(&ResourceSample) -> u64);

const ROWS: [Row; 5] = [
    Row("apiserver_storage_objects", "Objects stored, by qualified resource", true, |s| s.objects),
    Row("apiserver_resource_objects", "Objects stored", false, |s| s.objects),
    Row("apiserver_registered_watchers", "Watches that are open", false, |s| s.watchers),
    Row("apiserver_watch_cache_window_events", "Events that the watch window holds", false, |s| s.window_events),
    Row("apiserver_watch_cache_resource_version", "Newest version that the cache has seen", false, |s| {
        s.resource_version
    }),
];

/// The family that tells the versions of custom resources apart.
const STORED_VERSIONS: (&str, &str) =
    ("revisor_custom_resource_stored_objects", "Objects of custom resources, by the version in which they are stored");

#[derive(Clone)]
pub(super) struct ResourceCollector {
    source: Arc<dyn Fn() -> Vec<ResourceSample> + Send + Sync>,
    descriptions: Vec<Desc>,
}

impl ResourceCollector {
    pub(super) fn new(source: impl Fn() -> Vec<ResourceSample> + Send + Sync + 'static) -> ResourceCollector {
        let labels = |by_name| {
            if by_name { vec!["resource".to_owned()] } else { vec!["group".to_owned(), "resource".to_owned()] }
        };
        let describe = |Row(name, help, by_name, _): &Row| {
            Desc::new((*name).to_owned(), (*help).to_owned(), labels(*by_name), Default::default())
                .expect("metric names and labels are valid")
        };
        let (name, help) = STORED_VERSIONS;
        let versioned = ["group", "resource", "version"].map(str::to_owned).to_vec();
        let versioned = Desc::new(name.to_owned(), help.to_owned(), versioned, Default::default())
            .expect("metric names and labels are valid");
        let descriptions = ROWS.iter().map(describe).chain([versioned]).collect();
        ResourceCollector { source: Arc::new(source), descriptions }
    }
}

impl Collector for ResourceCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let samples = (self.source)();
        let versions = stored_versions(&samples);
        ROWS.iter().map(|row| family(row, &samples)).chain(versions).collect()
    }
}

fn family(Row(name, help, by_name, value): &Row, samples: &[ResourceSample]) -> MetricFamily {
    let metrics = samples.iter().map(|sample| {
        let labels = if *by_name {
            vec![pair("resource", sample.qualified())]
        } else {
            vec![pair("group", sample.group.clone()), pair("resource", sample.resource.clone())]
        };
        metric(MetricType::GAUGE, value(sample) as f64, labels)
    });
    gauges(name, help, metrics.collect())
}

/// `None` where there are no custom resources: a family without metrics cannot be written down.
fn stored_versions(samples: &[ResourceSample]) -> Option<MetricFamily> {
    let of = |sample: &ResourceSample, (version, objects): &(String, u64)| {
        let labels = vec![
            pair("group", sample.group.clone()),
            pair("resource", sample.resource.clone()),
            pair("version", version.clone()),
        ];
        metric(MetricType::GAUGE, *objects as f64, labels)
    };
    let metrics: Vec<Metric> =
        samples.iter().flat_map(|sample| sample.stored_versions.iter().map(move |stored| of(sample, stored))).collect();
    let (name, help) = STORED_VERSIONS;
    (!metrics.is_empty()).then(|| gauges(name, help, metrics))
}

pub(super) fn gauges(name: &str, help: &str, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(MetricType::GAUGE);
    family.set_metric(metrics);
    family
}

/// A counter or a gauge with this value.
pub(super) fn metric(kind: MetricType, value: f64, labels: Vec<LabelPair>) -> Metric {
    let mut metric = Metric::default();
    metric.set_label(labels);
    if kind == MetricType::COUNTER {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
    }
    metric
}

pub(super) fn pair(name: &str, value: String) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value);
    pair
}
