//! What became of audit events, under the original's names. The auditor counts along; it is asked when someone wants to
//! know.

use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Metric, MetricFamily, MetricType};
use prometheus::{IntCounter, Registry};
use revisor_audit::Auditor;

use super::registered;
use super::resources::pair;

const FAMILIES: [(&str, &str, Option<&str>); 4] = [
    ("apiserver_audit_event_total", "Audit events that were handed to backends", None),
    ("apiserver_audit_error_total", "Audit events that were not written as they should have been", Some("plugin")),
    ("apiserver_audit_level_total", "Requests by how much was to be written of them", Some("level")),
    ("apiserver_audit_requests_rejected_total", "Requests that were refused because they could not be audited", None),
];

/// Where there is no auditor, what it would count stands at nothing.
pub(super) fn register_nothing(registry: &Registry) {
    for (name, help, _) in FAMILIES.into_iter().filter(|(.., label)| label.is_none()) {
        registered(registry, IntCounter::new(name, help));
    }
}

#[derive(Clone)]
pub(super) struct AuditCollector {
    auditor: Arc<Auditor>,
    descriptions: Vec<Desc>,
}

impl AuditCollector {
    pub(super) fn new(auditor: Arc<Auditor>) -> AuditCollector {
        let describe = |(name, help, label): (&str, &str, Option<&str>)| {
            let labels = label.map(str::to_owned).into_iter().collect();
            Desc::new(name.to_owned(), help.to_owned(), labels, Default::default())
                .expect("metric names and labels are valid")
        };
        AuditCollector { auditor, descriptions: FAMILIES.into_iter().map(describe).collect() }
    }
}

impl Collector for AuditCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let sample = self.auditor.sample();
        let used = |counts: [(&'static str, u64); 4]| counts.into_iter().filter(|(_, count)| *count > 0).collect();
        let counts: [Vec<(&str, u64)>; 4] =
            [vec![("", sample.events)], used(sample.errors), used(sample.levels), vec![("", sample.rejected)]];
        let written = FAMILIES.into_iter().zip(counts).map(|((name, help, label), counts)| {
            let mut written = MetricFamily::default();
            written.set_name(name.to_owned());
            written.set_help(help.to_owned());
            written.set_field_type(MetricType::COUNTER);
            let metrics = counts.into_iter().map(|(value, count)| {
                let (mut metric, mut counter) = (Metric::default(), Counter::default());
                metric.set_label(label.map(|label| pair(label, value.to_owned())).into_iter().collect());
                counter.set_value(count as f64);
                metric.set_counter(counter);
                metric
            });
            written.set_metric(metrics.collect());
            written
        });
        // A family without metrics cannot be written down.
        written.filter(|family| !family.get_metric().is_empty()).collect()
    }
}
