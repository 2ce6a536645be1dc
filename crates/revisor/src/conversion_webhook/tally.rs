//! [`Tally`]: what the webhook counts. Labels are names out of files, never what somebody sent.

use prometheus::{HistogramOpts, HistogramTimer, HistogramVec, IntCounterVec, IntGauge, Opts, Registry};

/// How long reviews take: from one object to long lists.
const BUCKETS: [f64; 9] = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

/// What is counted.
pub(super) struct Tally {
    objects: IntCounterVec,
    failures: IntCounterVec,
    seconds: HistogramVec,
    reloads: IntCounterVec,
    definitions: IntGauge,
}

impl Tally {
    /// Nothing yet.
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Tally> {
        let counter = |name: &str, help: &str, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels);
        let tally = Tally {
            objects: counter(
                "revisor_webhook_objects_total",
                "Objects that were converted, by definition and versions",
                &["definition", "from", "to"],
            )?,
            failures: counter(
                "revisor_webhook_failures_total",
                "Reviews that failed, by definition and the version that was asked for",
                &["definition", "to"],
            )?,
            seconds: HistogramVec::new(
                HistogramOpts::new(
                    "revisor_webhook_review_seconds",
                    "How long the objects of a review took, by definition and the version that was asked for",
                )
                .buckets(BUCKETS.to_vec()),
                &["definition", "to"],
            )?,
            reloads: counter(
                "revisor_webhook_reloads_total",
                "How often files that had changed were read, by whether they could be used",
                &["result"],
            )?,
            definitions: IntGauge::new("revisor_webhook_definitions", "Definitions that are in use")?,
        };
        registry.register(Box::new(tally.objects.clone()))?;
        registry.register(Box::new(tally.failures.clone()))?;
        registry.register(Box::new(tally.seconds.clone()))?;
        registry.register(Box::new(tally.reloads.clone()))?;
        registry.register(Box::new(tally.definitions.clone()))?;
        Ok(tally)
    }

    /// Objects were converted.
    pub(super) fn converted(&self, definition: &str, from: &str, to: &str, objects: u64) {
        self.objects.with_label_values(&[definition, from, to]).inc_by(objects);
    }

    /// A review failed.
    pub(super) fn failed(&self, definition: &str, to: &str) {
        self.failures.with_label_values(&[definition, to]).inc();
    }

    /// A review begins.
    pub(super) fn review(&self, definition: &str, to: &str) -> HistogramTimer {
        self.seconds.with_label_values(&[definition, to]).start_timer()
    }

    /// So many definitions are in use from now on.
    pub(super) fn in_use(&self, definitions: usize) {
        self.definitions.set(i64::try_from(definitions).unwrap_or(i64::MAX));
    }

    /// Files that had changed were read.
    pub(super) fn reloaded(&self, is_usable: bool) {
        self.reloads.with_label_values(&[if is_usable { "success" } else { "failure" }]).inc();
    }
}
