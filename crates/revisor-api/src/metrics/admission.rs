//! How often and for how long the admission chain was asked. The registry counts along; it is asked when someone wants to
//! know.

use prometheus::proto::MetricType;
use revisor_registry::{AdmissionFamily, AdmissionSample};

use super::sampled::{Family, Reading, Sample, SampledCollector};

const STEP: &[&str] = &["type", "operation", "rejected"];
const NAMED: &[&str] = &["name", "type", "operation", "rejected"];
const CONDITION: &[&str] = &["name", "kind", "type", "operation"];

const SECURED: &[&str] = &["request_operation", "resource", "subresource"];

const FAMILIES: &[Family<AdmissionFamily>] = &[
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

/// What the registry counts, written down.
pub(super) fn collector(
    source: impl Fn() -> Vec<AdmissionSample> + Send + Sync + 'static,
) -> SampledCollector<AdmissionSample> {
    SampledCollector::new(FAMILIES, source)
}

impl Sample for AdmissionSample {
    type Family = AdmissionFamily;

    fn family(&self) -> &AdmissionFamily {
        &self.family
    }

    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn reading(&self) -> Reading<'_> {
        let bounds = self.family.buckets();
        Reading::Measured { count: self.count, sum: self.seconds, bounds, cumulative: &self.cumulative }
    }
}
