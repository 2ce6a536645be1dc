//! How custom objects were converted between their versions. The catalog counts along; it is asked when someone wants to
//! know.

use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Metric, MetricFamily, MetricType};
use revisor_catalog::ConversionSample;

use super::resources::{metric, pair};

/// The labels of what is told of each way between two versions.
const LABELS: [&str; 4] = ["definition", "from", "to", "way"];

/// Name and help of the families.
const COUNT: (&str, &str) = ("revisor_conversions_total", "Custom objects that were converted, by versions and by way");
const TIME: (&str, &str) = ("revisor_conversion_seconds_total", "Seconds that conversions of custom objects took");
const KEPT: (&str, &str) =
    ("revisor_conversion_kept_bytes_total", "Bytes written of what other versions keep beside custom objects");

#[derive(Clone)]
pub(super) struct ConversionCollector {
    source: Arc<dyn Fn() -> Vec<ConversionSample> + Send + Sync>,
    descriptions: Vec<Desc>,
}

impl ConversionCollector {
    pub(super) fn new(source: impl Fn() -> Vec<ConversionSample> + Send + Sync + 'static) -> ConversionCollector {
        let describe = |((name, help), labels): ((&str, &str), &[&str])| {
            let labels = labels.iter().map(|label| (*label).to_owned()).collect();
            Desc::new(name.to_owned(), help.to_owned(), labels, Default::default())
                .expect("metric names and labels are valid")
        };
        let families = [(COUNT, &LABELS[..]), (TIME, &LABELS[..]), (KEPT, &LABELS[..1])];
        ConversionCollector { source: Arc::new(source), descriptions: families.map(describe).to_vec() }
    }
}

impl Collector for ConversionCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let samples = (self.source)();
        let (mut count, mut time, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for ConversionSample { definition, ways, kept_bytes } in &samples {
            for way in ways {
                let values = [definition, &way.from, &way.to, way.way];
                let labels = || LABELS.iter().zip(values).map(|(label, value)| pair(label, value.to_owned())).collect();
                count.push(metric(MetricType::COUNTER, way.count as f64, labels()));
                time.push(metric(MetricType::COUNTER, way.time.as_secs_f64(), labels()));
            }
            kept.push(metric(MetricType::COUNTER, *kept_bytes as f64, vec![pair(LABELS[0], definition.clone())]));
        }
        // A family without metrics cannot be written down.
        let families = [(COUNT, count), (TIME, time), (KEPT, kept)].into_iter();
        families.filter(|(_, metrics)| !metrics.is_empty()).map(|(family, metrics)| counters(family, metrics)).collect()
    }
}

fn counters((name, help): (&str, &str), metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(MetricType::COUNTER);
    family.set_metric(metrics);
    family
}
