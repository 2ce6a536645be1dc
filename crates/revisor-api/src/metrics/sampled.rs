//! [`SampledCollector`]: metrics whose owner counts along and is asked when someone wants to know.

use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, Metric, MetricFamily, MetricType, Summary};

use super::resources::pair;

/// A family as it is written down.
pub(super) struct Family<F> {
    /// Whose samples it has.
    pub(super) of: F,
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) labels: &'static [&'static str],
    pub(super) kind: MetricType,
}

/// One series at one moment.
pub(super) trait Sample: 'static {
    /// What tells its family.
    type Family: PartialEq + Send + Sync + 'static;

    fn family(&self) -> &Self::Family;

    /// The values of its labels, in the order of the family.
    fn labels(&self) -> &[String];

    fn reading(&self) -> Reading<'_>;
}

/// What a sample says.
pub(super) enum Reading<'a> {
    Number(f64),
    /// How often something was measured, what it came to in all, and how often to no more than each bound.
    Measured {
        count: u64,
        sum: f64,
        bounds: &'a [f64],
        cumulative: &'a [u64],
    },
}

/// Families of metrics, and who has their samples.
#[derive(Clone)]
pub(super) struct SampledCollector<S: Sample> {
    families: &'static [Family<S::Family>],
    source: Arc<dyn Fn() -> Vec<S> + Send + Sync>,
    descriptions: Vec<Desc>,
}

impl<S: Sample> SampledCollector<S> {
    pub(super) fn new(
        families: &'static [Family<S::Family>],
        source: impl Fn() -> Vec<S> + Send + Sync + 'static,
    ) -> SampledCollector<S> {
        let describe = |family: &Family<S::Family>| {
            let labels = family.labels.iter().map(|label| (*label).to_owned()).collect();
            Desc::new(family.name.to_owned(), family.help.to_owned(), labels, Default::default())
                .expect("metric names and labels are valid")
        };
        SampledCollector { families, source: Arc::new(source), descriptions: families.iter().map(describe).collect() }
    }
}

impl<S: Sample> Collector for SampledCollector<S> {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let samples = (self.source)();
        let written = self.families.iter().map(|family| {
            let mut written = MetricFamily::default();
            written.set_name(family.name.to_owned());
            written.set_help(family.help.to_owned());
            written.set_field_type(family.kind);
            let ours = samples.iter().filter(|sample| *sample.family() == family.of);
            written.set_metric(ours.map(|sample| metric(family, sample)).collect());
            written
        });
        // A family without metrics cannot be written down.
        written.filter(|family| !family.get_metric().is_empty()).collect()
    }
}

fn metric<S: Sample>(family: &Family<S::Family>, sample: &S) -> Metric {
    let mut metric = Metric::default();
    let mut labels: Vec<_> = family.labels.iter().zip(sample.labels()).collect();
    // As in the original, labels are told in the order of their names.
    labels.sort();
    metric.set_label(labels.into_iter().map(|(name, value)| pair(name, value.clone())).collect());
    match (family.kind, sample.reading()) {
        (MetricType::HISTOGRAM, Reading::Measured { count, sum, bounds, cumulative }) => {
            let mut histogram = Histogram::default();
            histogram.set_sample_count(count);
            histogram.set_sample_sum(sum);
            histogram.set_bucket(bounds.iter().zip(cumulative).map(bucket).collect());
            metric.set_histogram(histogram);
        }
        (MetricType::SUMMARY, Reading::Measured { count, sum, .. }) => {
            let mut summary = Summary::default();
            summary.set_sample_count(count);
            summary.set_sample_sum(sum);
            metric.set_summary(summary);
        }
        (MetricType::GAUGE, reading) => {
            let mut gauge = Gauge::default();
            gauge.set_value(reading.number());
            metric.set_gauge(gauge);
        }
        (_, reading) => {
            let mut counter = Counter::default();
            counter.set_value(reading.number());
            metric.set_counter(counter);
        }
    }
    metric
}

fn bucket((bound, count): (&f64, &u64)) -> Bucket {
    let mut bucket = Bucket::default();
    bucket.set_upper_bound(*bound);
    bucket.set_cumulative_count(*count);
    bucket
}

impl Reading<'_> {
    fn number(&self) -> f64 {
        match self {
            Reading::Number(number) => *number,
            Reading::Measured { count, .. } => *count as f64,
        }
    }
}
