//! What the store holds and may hold. Nobody counts along: the store is asked when someone wants to know.

use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{MetricFamily, MetricType};

use super::resources::{gauges, metric, pair};

/// The store at the time of a scrape.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreSample {
    /// Bytes of the newest state.
    pub state: u64,
    /// Bytes of history.
    pub history: u64,
    /// Bytes that the files of the store take.
    pub disk: u64,
    /// How many bytes state and history may take; `None` for any number.
    pub quota: Option<u64>,
    /// Whether writes are refused because the store is full.
    pub is_full: bool,
}

/// A family of gauges: name, help, the name of its label if it has one, and its numbers with the values of the label.
struct Row(&'static str, &'static str, Option<&'static str>, fn(&StoreSample) -> Vec<(&'static str, u64)>);

const ROWS: [Row; 4] = [
    Row("apiserver_storage_size_bytes", "Bytes that the files of the store take", Some("storage_cluster_id"), |s| {
        vec![("embedded", s.disk)]
    }),
    Row("revisor_store_bytes", "Bytes of the newest state and of history", Some("part"), |s| {
        vec![("state", s.state), ("history", s.history)]
    }),
    Row("revisor_store_quota_bytes", "Bytes that state and history may take together", None, |s| {
        s.quota.map(|quota| ("", quota)).into_iter().collect()
    }),
    Row("revisor_store_alarm", "Whether writes are refused because the store is full", None, |s| {
        vec![("", u64::from(s.is_full))]
    }),
];

#[derive(Clone)]
pub(super) struct StoreCollector {
    source: Arc<dyn Fn() -> StoreSample + Send + Sync>,
    descriptions: Vec<Desc>,
}

impl StoreCollector {
    pub(super) fn new(source: impl Fn() -> StoreSample + Send + Sync + 'static) -> StoreCollector {
        let describe = |Row(name, help, label, _): &Row| {
            let labels = label.iter().map(|label| (*label).to_owned()).collect();
            Desc::new((*name).to_owned(), (*help).to_owned(), labels, Default::default())
                .expect("metric names and labels are valid")
        };
        StoreCollector { source: Arc::new(source), descriptions: ROWS.iter().map(describe).collect() }
    }
}

impl Collector for StoreCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let sample = (self.source)();
        let families = ROWS.iter().map(|Row(name, help, label, numbers)| {
            let metrics = numbers(&sample).into_iter().map(|(value, number)| {
                let labels = label.iter().map(|label| pair(label, value.to_owned())).collect();
                metric(MetricType::GAUGE, number as f64, labels)
            });
            gauges(name, help, metrics.collect())
        });
        // A family without metrics cannot be written down.
        families.filter(|family| !family.get_metric().is_empty()).collect()
    }
}
