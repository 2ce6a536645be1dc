//! How often and for how long admission policies were evaluated. The registry counts along; it is asked when someone
//! wants to know.

use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Histogram, Metric, MetricFamily, MetricType};
use revisor_registry::{POLICY_BUCKETS, PolicySample};

use super::resources::{metric, pair};

/// The labels of what is told. Of mutating policies the last is missing: what they deny is not said by them.
const LABELS: [&str; 4] = ["policy", "policy_binding", "error_type", "enforcement_action"];

/// What is told of one sort of policy.
struct Family {
    count: (&'static str, &'static str),
    time: (&'static str, &'static str),
    labels: &'static [&'static str],
}

const FAMILIES: [Family; 2] = [
    Family {
        count: (
            "apiserver_validating_admission_policy_check_total",
            "Validations that did not simply let a write pass, by policy, binding and what was done about it",
        ),
        time: (
            "apiserver_validating_admission_policy_check_duration_seconds",
            "Seconds that these validations took, each by itself",
        ),
        labels: &LABELS,
    },
    Family {
        count: (
            "apiserver_mutating_admission_policy_check_total",
            "Mutations of writes by policies, by policy and binding",
        ),
        time: (
            "apiserver_mutating_admission_policy_check_duration_seconds",
            "Seconds that these mutations took, each by itself",
        ),
        labels: LABELS.split_at(3).0,
    },
];

#[derive(Clone)]
pub(super) struct PolicyCollector {
    source: Arc<dyn Fn() -> [Vec<PolicySample>; 2] + Send + Sync>,
    descriptions: Vec<Desc>,
}

impl PolicyCollector {
    pub(super) fn new(source: impl Fn() -> [Vec<PolicySample>; 2] + Send + Sync + 'static) -> PolicyCollector {
        let describe = |family: &Family| {
            [family.count, family.time].map(|(name, help)| {
                let labels = family.labels.iter().map(|label| (*label).to_owned()).collect();
                Desc::new(name.to_owned(), help.to_owned(), labels, Default::default())
                    .expect("metric names and labels are valid")
            })
        };
        PolicyCollector { source: Arc::new(source), descriptions: FAMILIES.iter().flat_map(describe).collect() }
    }
}

impl Collector for PolicyCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let samples = (self.source)();
        // A family without metrics cannot be written down.
        let told = FAMILIES.iter().zip(samples).filter(|(_, samples)| !samples.is_empty());
        told.flat_map(|(family, samples)| families(family, &samples)).collect()
    }
}

fn families(told: &Family, samples: &[PolicySample]) -> [MetricFamily; 2] {
    let labels = |sample: &PolicySample| {
        told.labels.iter().zip(&sample.labels).map(|(label, value)| pair(label, value.clone())).collect::<Vec<_>>()
    };
    let counts = samples.iter().map(|sample| metric(MetricType::COUNTER, sample.count as f64, labels(sample)));
    let times = samples.iter().map(|sample| {
        let bucket = |(bound, within): (&f64, &u64)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(*within);
            bucket
        };
        let mut histogram = Histogram::default();
        histogram.set_sample_count(sample.count);
        histogram.set_sample_sum(sample.time.as_secs_f64());
        histogram.set_bucket(POLICY_BUCKETS.iter().zip(&sample.within).map(bucket).collect());
        let mut metric = Metric::default();
        metric.set_label(labels(sample));
        metric.set_histogram(histogram);
        metric
    });
    [
        family(told.count, MetricType::COUNTER, counts.collect()),
        family(told.time, MetricType::HISTOGRAM, times.collect()),
    ]
}

fn family((name, help): (&str, &str), kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}
