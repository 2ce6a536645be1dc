//! How often and for how long the admission chain was asked. The registry counts along; it is asked when someone wants to
//! know.

use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Counter, Histogram, Metric, MetricFamily, MetricType, Summary};
use revisor_registry::{AdmissionFamily, AdmissionSample};

use super::resources::pair;

/// A family as it is written down.
struct Family {
    of: AdmissionFamily,
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    kind: MetricType,
}

const STEP: &[&str] = &["type", "operation", "rejected"];
const NAMED: &[&str] = &["name", "type", "operation", "rejected"];
const CONDITION: &[&str] = &["name", "kind", "type", "operation"];

const SECURED: &[&str] = &["request_operation", "resource", "subresource"];

const FAMILIES: [Family; 13] = [
    Family {
        of: AdmissionFamily::StepDuration,
        name: "apiserver_admission_step_admission_duration_seconds",
        help: "Seconds that a pass of the admission chain took, by operation and type (validate or admit)",
        labels: STEP,
        kind: MetricType::HISTOGRAM,
    },
    Family {
        of: AdmissionFamily::StepDuration,
        name: "apiserver_admission_step_admission_duration_seconds_summary",
        help: "Seconds that passes of the admission chain took, by operation and type (validate or admit)",
        labels: STEP,
        kind: MetricType::SUMMARY,
    },
    Family {
        of: AdmissionFamily::ControllerDuration,
        name: "apiserver_admission_controller_admission_duration_seconds",
        help: "Seconds that a plugin of the admission chain took, by its name, operation and type (validate or admit)",
        labels: NAMED,
        kind: MetricType::HISTOGRAM,
    },
    Family {
        of: AdmissionFamily::WebhookDuration,
        name: "apiserver_admission_webhook_admission_duration_seconds",
        help: "Seconds that an admission webhook took, by its name, operation and type (validating or admit)",
        labels: NAMED,
        kind: MetricType::HISTOGRAM,
    },
    Family {
        of: AdmissionFamily::WebhookRejections,
        name: "apiserver_admission_webhook_rejection_count",
        help: "Writes that an admission webhook kept from being done, by its name, type, operation, kind of error and code",
        labels: &["name", "type", "operation", "error_type", "rejection_code"],
        kind: MetricType::COUNTER,
    },
    Family {
        of: AdmissionFamily::WebhookFailOpen,
        name: "apiserver_admission_webhook_fail_open_count",
        help: "Failures of admission webhooks that were passed over, by name and type",
        labels: &["name", "type"],
        kind: MetricType::COUNTER,
    },
    Family {
        of: AdmissionFamily::WebhookRequests,
        name: "apiserver_admission_webhook_request_total",
        help: "Calls of admission webhooks, by name, type, operation, code and whether the write was refused",
        labels: &["name", "type", "operation", "code", "rejected"],
        kind: MetricType::COUNTER,
    },
    Family {
        of: AdmissionFamily::MatchConditionErrors,
        name: "apiserver_admission_match_condition_evaluation_errors_total",
        help: "Match conditions that had no answer, by what they belong to, type and operation",
        labels: CONDITION,
        kind: MetricType::COUNTER,
    },
    Family {
        of: AdmissionFamily::MatchConditionExclusions,
        name: "apiserver_admission_match_condition_exclusions_total",
        help: "Writes that match conditions kept something from being asked about, by what they belong to",
        labels: CONDITION,
        kind: MetricType::COUNTER,
    },
    Family {
        of: AdmissionFamily::MatchConditionDuration,
        name: "apiserver_admission_match_condition_evaluation_seconds",
        help: "Seconds that the evaluation of match conditions took, by what they belong to",
        labels: CONDITION,
        kind: MetricType::HISTOGRAM,
    },
    Family {
        of: AdmissionFamily::PodSecurityEvaluations,
        name: "pod_security_evaluations_total",
        help: "Times that pods were held to a level of security, by decision, level, version, mode and request",
        labels: &["decision", "policy_level", "policy_version", "mode", "request_operation", "resource", "subresource"],
        kind: MetricType::COUNTER,
    },
    Family {
        of: AdmissionFamily::PodSecurityExemptions,
        name: "pod_security_exemptions_total",
        help: "Times that pods were not held to any level of security, by exemption",
        labels: SECURED,
        kind: MetricType::COUNTER,
    },
    Family {
        of: AdmissionFamily::PodSecurityErrors,
        name: "pod_security_errors_total",
        help: "Times that it could not be said which level of security counts",
        labels: &["fatal", "request_operation", "resource", "subresource"],
        kind: MetricType::COUNTER,
    },
];

#[derive(Clone)]
pub(super) struct AdmissionCollector {
    source: Arc<dyn Fn() -> Vec<AdmissionSample> + Send + Sync>,
    descriptions: Vec<Desc>,
}

impl AdmissionCollector {
    pub(super) fn new(source: impl Fn() -> Vec<AdmissionSample> + Send + Sync + 'static) -> AdmissionCollector {
        let describe = |family: &Family| {
            let labels = family.labels.iter().map(|label| (*label).to_owned()).collect();
            Desc::new(family.name.to_owned(), family.help.to_owned(), labels, Default::default())
                .expect("metric names and labels are valid")
        };
        AdmissionCollector { source: Arc::new(source), descriptions: FAMILIES.iter().map(describe).collect() }
    }
}

impl Collector for AdmissionCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let samples = (self.source)();
        let written = FAMILIES.iter().map(|family| {
            let mut written = MetricFamily::default();
            written.set_name(family.name.to_owned());
            written.set_help(family.help.to_owned());
            written.set_field_type(family.kind);
            let ours = samples.iter().filter(|sample| sample.family == family.of);
            written.set_metric(ours.map(|sample| metric(family, sample)).collect());
            written
        });
        // A family without metrics cannot be written down.
        written.filter(|family| !family.get_metric().is_empty()).collect()
    }
}

fn metric(family: &Family, sample: &AdmissionSample) -> Metric {
    let mut metric = Metric::default();
    let mut labels: Vec<_> = family.labels.iter().zip(&sample.labels).collect();
    // As in the original, labels are told in the order of their names.
    labels.sort();
    metric.set_label(labels.into_iter().map(|(name, value)| pair(name, value.clone())).collect());
    match family.kind {
        MetricType::HISTOGRAM => {
            let mut histogram = Histogram::default();
            histogram.set_sample_count(sample.count);
            histogram.set_sample_sum(sample.seconds);
            let bounds = family.of.buckets().iter().zip(&sample.cumulative);
            let buckets = bounds.map(|(bound, count)| {
                let mut bucket = Bucket::default();
                bucket.set_upper_bound(*bound);
                bucket.set_cumulative_count(*count);
                bucket
            });
            histogram.set_bucket(buckets.collect());
            metric.set_histogram(histogram);
        }
        MetricType::SUMMARY => {
            let mut summary = Summary::default();
            summary.set_sample_count(sample.count);
            summary.set_sample_sum(sample.seconds);
            metric.set_summary(summary);
        }
        _ => {
            let mut counter = Counter::default();
            counter.set_value(sample.count as f64);
            metric.set_counter(counter);
        }
    }
    metric
}
