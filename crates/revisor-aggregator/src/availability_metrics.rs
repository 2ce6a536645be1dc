//! [`AvailabilityMetrics`]: what is counted of whether API servers are available. Names and labels are the original's.

use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};

use crate::availability::Availability;

/// Which APIServices are not available now, and how often they came not to be.
#[derive(Debug, Clone)]
pub struct AvailabilityMetrics {
    unavailable: IntGaugeVec,
    lost: IntCounterVec,
}

impl Default for AvailabilityMetrics {
    fn default() -> AvailabilityMetrics {
        let unavailable = Opts::new("aggregator_unavailable_apiservice", "Whether an APIService is not available");
        let lost = Opts::new(
            "aggregator_unavailable_apiservice_total",
            "How often an APIService came not to be available, by the reason",
        );
        AvailabilityMetrics {
            unavailable: IntGaugeVec::new(unavailable, &["name"]).expect("the name and the label are well-formed"),
            lost: IntCounterVec::new(lost, &["name", "reason"]).expect("the name and the labels are well-formed"),
        }
    }
}

impl AvailabilityMetrics {
    /// Lets a registry tell of them.
    pub fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        registry.register(Box::new(self.unavailable.clone()))?;
        registry.register(Box::new(self.lost.clone()))
    }

    /// An APIService was found to be this.
    pub(crate) fn found(&self, name: &str, found: &Availability, was_available: bool) {
        self.unavailable.with_label_values(&[name]).set(i64::from(!found.is_available));
        if was_available && !found.is_available {
            self.lost.with_label_values(&[name, found.reason]).inc();
        }
    }

    /// An APIService is this server's own, which is always available.
    pub(crate) fn own(&self, name: &str) {
        self.unavailable.with_label_values(&[name]).set(0);
    }

    /// An APIService is gone.
    pub(crate) fn forget(&self, name: &str) {
        // Of one that was never found to be anything nothing is known.
        let _ = self.unavailable.remove_label_values(&[name]);
    }
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    #[test]
    fn what_is_the_servers_own_is_available() {
        let (registry, metrics) = (Registry::new(), AvailabilityMetrics::default());
        metrics.register(&registry).expect("the names are distinct");
        metrics.own("v1.");
        let mut text = String::new();
        TextEncoder::new().encode_utf8(&registry.gather(), &mut text).expect("can be written");
        assert!(text.contains("aggregator_unavailable_apiservice{name=\"v1.\"} 0\n"), "{text}");
        metrics.forget("v1.");
        assert!(registry.gather().is_empty());
    }
}
