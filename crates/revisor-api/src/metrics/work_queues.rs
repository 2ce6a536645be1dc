//! What becomes of the keys in the queues of controllers. Nobody counts along: the queues are asked when someone wants to
//! know.

use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Histogram, Metric, MetricFamily, MetricType};

use super::resources::{metric, pair};

/// One queue at the time of a scrape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkQueueSample {
    /// Whose queue it is.
    pub name: &'static str,
    /// How many keys wait.
    pub depth: u64,
    /// How many were added.
    pub adds: u64,
    /// How many came again because the work on them failed.
    pub retries: u64,
    /// How many seconds keys waited.
    pub waited: Distribution,
    /// How many seconds the work on them took.
    pub worked: Distribution,
    /// For how many seconds the keys are worked on that are worked on now, in all.
    pub unfinished: f64,
    /// For how many seconds the one of them is worked on that is worked on longest.
    pub longest: f64,
}

/// Numbers by their size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    /// Bounds, and how many numbers are not above each.
    pub buckets: Vec<(f64, u64)>,
    /// How many there are.
    pub count: u64,
    /// What they add up to.
    pub sum: f64,
}

/// A number of a queue.
enum Value {
    Counter(fn(&WorkQueueSample) -> u64),
    Gauge(fn(&WorkQueueSample) -> f64),
    Histogram(fn(&WorkQueueSample) -> &Distribution),
}

/// A family: name, help, and where its values come from.
struct Row(&'static str, &'static str, Value);

const ROWS: [Row; 7] = [
    Row("workqueue_adds_total", "Keys that were added to a queue", Value::Counter(|queue| queue.adds)),
    Row("workqueue_depth", "Keys that wait in a queue", Value::Gauge(|queue| queue.depth as f64)),
    Row(
        "workqueue_longest_running_processor_seconds",
        "For how long the key is worked on that is worked on longest",
        Value::Gauge(|queue| queue.longest),
    ),
    Row("workqueue_queue_duration_seconds", "How long keys wait in a queue", Value::Histogram(|queue| &queue.waited)),
    Row(
        "workqueue_retries_total",
        "Keys that came again because the work on them failed",
        Value::Counter(|queue| queue.retries),
    ),
    Row(
        "workqueue_unfinished_work_seconds",
        "For how long keys are worked on that are worked on now, in all",
        Value::Gauge(|queue| queue.unfinished),
    ),
    Row("workqueue_work_duration_seconds", "How long the work on keys takes", Value::Histogram(|queue| &queue.worked)),
];

impl Row {
    fn kind(&self) -> MetricType {
        match self.2 {
            Value::Counter(_) => MetricType::COUNTER,
            Value::Gauge(_) => MetricType::GAUGE,
            Value::Histogram(_) => MetricType::HISTOGRAM,
        }
    }

    fn metric(&self, queue: &WorkQueueSample) -> Metric {
        let labels = vec![pair("name", queue.name.to_owned())];
        match self.2 {
            Value::Counter(value) => metric(MetricType::COUNTER, value(queue) as f64, labels),
            Value::Gauge(value) => metric(MetricType::GAUGE, value(queue), labels),
            Value::Histogram(value) => {
                let mut metric = Metric::default();
                metric.set_label(labels);
                metric.set_histogram(histogram(value(queue)));
                metric
            }
        }
    }
}

fn histogram(numbers: &Distribution) -> Histogram {
    let bucket = |(bound, count): &(f64, u64)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(*count);
        bucket
    };
    let mut histogram = Histogram::default();
    histogram.set_bucket(numbers.buckets.iter().map(bucket).collect());
    histogram.set_sample_count(numbers.count);
    histogram.set_sample_sum(numbers.sum);
    histogram
}

#[derive(Clone)]
pub(super) struct WorkQueueCollector {
    source: Arc<dyn Fn() -> Vec<WorkQueueSample> + Send + Sync>,
    descriptions: Vec<Desc>,
}

impl WorkQueueCollector {
    pub(super) fn new(source: impl Fn() -> Vec<WorkQueueSample> + Send + Sync + 'static) -> WorkQueueCollector {
        let describe = |Row(name, help, _): &Row| {
            Desc::new((*name).to_owned(), (*help).to_owned(), vec!["name".to_owned()], Default::default())
                .expect("metric names and labels are valid")
        };
        WorkQueueCollector { source: Arc::new(source), descriptions: ROWS.iter().map(describe).collect() }
    }
}

impl Collector for WorkQueueCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let queues = (self.source)();
        // A family without metrics cannot be written down.
        if queues.is_empty() {
            return Vec::new();
        }
        let family = |row: &Row| {
            let mut family = MetricFamily::default();
            family.set_name(row.0.to_owned());
            family.set_help(row.1.to_owned());
            family.set_field_type(row.kind());
            family.set_metric(queues.iter().map(|queue| row.metric(queue)).collect());
            family
        };
        ROWS.iter().map(family).collect()
    }
}

#[cfg(test)]
mod tests {
    use prometheus::{Registry, TextEncoder};

    use super::*;

    #[test]
    fn queues_are_told_of_by_name() {
        let numbers = Distribution { buckets: vec![(0.1, 1), (1.0, 2)], count: 3, sum: 4.5 };
        let sample = WorkQueueSample {
            name: "namespace",
            depth: 2,
            adds: 5,
            retries: 1,
            waited: numbers.clone(),
            worked: numbers,
            unfinished: 0.5,
            longest: 0.25,
        };
        let registry = Registry::new();
        let queues = WorkQueueCollector::new(move || vec![sample.clone()]);
        registry.register(Box::new(queues)).expect("names are distinct");
        let text = TextEncoder::new().encode_to_string(&registry.gather()).expect("families have names");
        for line in [
            "workqueue_adds_total{name=\"namespace\"} 5",
            "workqueue_depth{name=\"namespace\"} 2",
            "workqueue_retries_total{name=\"namespace\"} 1",
            "workqueue_queue_duration_seconds_bucket{name=\"namespace\",le=\"1\"} 2",
            "workqueue_queue_duration_seconds_bucket{name=\"namespace\",le=\"+Inf\"} 3",
            "workqueue_work_duration_seconds_sum{name=\"namespace\"} 4.5",
            "workqueue_unfinished_work_seconds{name=\"namespace\"} 0.5",
            "workqueue_longest_running_processor_seconds{name=\"namespace\"} 0.25",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
        }
    }
}
