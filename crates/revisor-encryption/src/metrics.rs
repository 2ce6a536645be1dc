//! [`EncryptionMetrics`]: what is counted of encryption at rest. Names, labels and buckets are the original's.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use prometheus::core::Collector;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
    exponential_buckets,
};
use revisor_store::TransformError;

use crate::hash::hash;

/// How many ids of keys are told apart. The oldest is forgotten for a new one.
const MOST_KEY_IDS: usize = 100;

/// Everything that is counted.
pub struct EncryptionMetrics {
    durations: HistogramVec,
    operations: IntCounterVec,
    cache_misses: IntCounter,
    key_generations: Histogram,
    key_generation_failures: IntCounter,
    kms_latency: HistogramVec,
    key_ids: IntCounterVec,
    key_id_times: GaugeVec,
    status_key_id_times: GaugeVec,
    invalid_key_ids: IntCounterVec,
    cache_size: IntGaugeVec,
    reloads: IntCounterVec,
    reload_times: GaugeVec,
    config_info: IntGaugeVec,
    used_ids: Mutex<VecDeque<[String; 3]>>,
    status_ids: Mutex<VecDeque<[String; 2]>>,
    /// The hash of the server's name.
    server: String,
}

impl EncryptionMetrics {
    /// Nothing has happened yet. `server` is the name of this server among others.
    pub fn new(server: &str) -> Arc<EncryptionMetrics> {
        let histogram = |name: &str, help: &str, buckets: (f64, usize)| {
            let (first, count) = buckets;
            let buckets = exponential_buckets(first, 2.0, count).expect("buckets are above zero and grow");
            HistogramOpts::new(name, help).buckets(buckets)
        };
        let made = "the names and labels of metrics are good";
        let counters =
            |name: &str, help: &str, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels).expect(made);
        let gauges =
            |name: &str, help: &str, labels: &[&str]| GaugeVec::new(Opts::new(name, help), labels).expect(made);
        let whole =
            |name: &str, help: &str, labels: &[&str]| IntGaugeVec::new(Opts::new(name, help), labels).expect(made);
        let key_labels = ["transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"];
        Arc::new(EncryptionMetrics {
            durations: HistogramVec::new(
                histogram(
                    "apiserver_storage_transformation_duration_seconds",
                    "How long objects took to be encrypted or decrypted",
                    (5e-6, 25),
                ),
                &["transformation_type", "transformer_prefix"],
            )
            .expect(made),
            operations: counters(
                "apiserver_storage_transformation_operations_total",
                "Objects that were encrypted or decrypted, by how it went",
                &["resource", "transformation_type", "transformer_prefix", "status"],
            ),
            cache_misses: IntCounter::new(
                "apiserver_storage_envelope_transformation_cache_misses_total",
                "Keys that a key service was asked to decrypt",
            )
            .expect(made),
            key_generations: Histogram::with_opts(histogram(
                "apiserver_storage_data_key_generation_duration_seconds",
                "How long data keys took to be made",
                (5e-6, 14),
            ))
            .expect(made),
            key_generation_failures: IntCounter::new(
                "apiserver_storage_data_key_generation_failures_total",
                "Data keys that could not be made",
            )
            .expect(made),
            kms_latency: HistogramVec::new(
                histogram(
                    "apiserver_envelope_encryption_kms_operations_latency_seconds",
                    "How long calls to key services took, by how they went",
                    (0.0001, 20),
                ),
                &["provider_name", "method_name", "grpc_status_code"],
            )
            .expect(made),
            key_ids: counters(
                "apiserver_envelope_encryption_key_id_hash_total",
                "How often a key was used, by the hash of its id",
                &key_labels,
            ),
            key_id_times: gauges(
                "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds",
                "When a key was last used, by the hash of its id",
                &key_labels,
            ),
            status_key_id_times: gauges(
                "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds",
                "When a key service last told of a key, by the hash of its id",
                &["provider_name", "key_id_hash", "apiserver_id_hash"],
            ),
            invalid_key_ids: counters(
                "apiserver_envelope_encryption_invalid_key_id_from_status_total",
                "How often a key service told of a key whose id is none",
                &["provider_name", "error"],
            ),
            cache_size: whole(
                "apiserver_envelope_encryption_dek_source_cache_size",
                "How many data keys of a key service are remembered",
                &["provider_name"],
            ),
            reloads: counters(
                "apiserver_encryption_config_controller_automatic_reloads_total",
                "How often the encryption configuration was read anew, by how it went",
                &["status", "apiserver_id_hash"],
            ),
            reload_times: gauges(
                "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
                "When the encryption configuration was last read anew, by how it went",
                &["status", "apiserver_id_hash"],
            ),
            config_info: whole(
                "apiserver_encryption_config_controller_last_config_info",
                "Which encryption configuration is in force, by its hash",
                &["apiserver_id_hash", "hash"],
            ),
            used_ids: Mutex::default(),
            status_ids: Mutex::default(),
            server: hash(server.as_bytes()),
        })
    }

    /// Has `registry` tell all of this.
    pub fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        let all: [Box<dyn Collector>; 14] = [
            Box::new(self.durations.clone()),
            Box::new(self.operations.clone()),
            Box::new(self.cache_misses.clone()),
            Box::new(self.key_generations.clone()),
            Box::new(self.key_generation_failures.clone()),
            Box::new(self.kms_latency.clone()),
            Box::new(self.key_ids.clone()),
            Box::new(self.key_id_times.clone()),
            Box::new(self.status_key_id_times.clone()),
            Box::new(self.invalid_key_ids.clone()),
            Box::new(self.cache_size.clone()),
            Box::new(self.reloads.clone()),
            Box::new(self.reload_times.clone()),
            Box::new(self.config_info.clone()),
        ];
        all.into_iter().try_for_each(|collector| registry.register(collector))
    }

    /// The configuration with these bytes was read while the server ran, or could not be.
    pub fn reloaded(&self, result: Result<&[u8], ()>) {
        let status = if result.is_ok() { "success" } else { "failure" };
        self.reloads.with_label_values(&[status, &self.server]).inc();
        self.reload_times.with_label_values(&[status, &self.server]).set(now());
        if let Ok(config) = result {
            self.in_force(config);
        }
    }

    /// The configuration with these bytes is in force.
    pub fn in_force(&self, config: &[u8]) {
        self.config_info.reset();
        self.config_info.with_label_values(&[&self.server, &hash(config)]).set(1);
    }

    /// An object was encrypted or decrypted. `tallies` are always those of the same resource and prefix.
    pub(crate) fn succeeded(
        &self,
        tallies: &Tallies,
        resource: &str,
        direction: Direction,
        prefix: &str,
        elapsed: Duration,
    ) {
        let (operations, durations) = tallies.of(direction).get_or_init(|| {
            let operations = self.operations.with_label_values(&[resource, direction.label(), prefix, "OK"]);
            (operations, self.durations.with_label_values(&[direction.label(), prefix]))
        });
        operations.inc();
        durations.observe(elapsed.as_secs_f64());
    }

    /// An object could not be encrypted or decrypted.
    pub(crate) fn failed(&self, resource: &str, direction: Direction, prefix: &str, error: &TransformError) {
        self.operations.with_label_values(&[resource, direction.label(), prefix, error.code()]).inc();
    }

    pub(crate) fn cache_missed(&self) {
        self.cache_misses.inc();
    }

    pub(crate) fn key_generated(&self, result: Result<Duration, ()>) {
        match result {
            Ok(elapsed) => self.key_generations.observe(elapsed.as_secs_f64()),
            Err(()) => self.key_generation_failures.inc(),
        }
    }

    pub(crate) fn kms_called(&self, provider: &str, method: &str, code: &str, elapsed: Duration) {
        self.kms_latency.with_label_values(&[provider, method, code]).observe(elapsed.as_secs_f64());
    }

    pub(crate) fn key_used(&self, direction: Direction, provider: &str, key_id: &str) {
        let id = hash(key_id.as_bytes());
        let labels = [direction.label().to_owned(), provider.to_owned(), id];
        if let Some([direction, provider, id]) = forgotten(&self.used_ids, &labels) {
            // There may be none: then there is nothing to forget.
            let gone = [&*direction, &*provider, &*id, &*self.server];
            let _ = self.key_ids.remove_label_values(&gone);
            let _ = self.key_id_times.remove_label_values(&gone);
        }
        let [direction, provider, id] = &labels;
        let labels = [&**direction, &**provider, &**id, &*self.server];
        self.key_ids.with_label_values(&labels).inc();
        self.key_id_times.with_label_values(&labels).set(now());
    }

    pub(crate) fn key_told(&self, provider: &str, key_id: &str) {
        let labels = [provider.to_owned(), hash(key_id.as_bytes())];
        if let Some([provider, id]) = forgotten(&self.status_ids, &labels) {
            let _ = self.status_key_id_times.remove_label_values(&[&*provider, &*id, &*self.server]);
        }
        self.status_key_id_times.with_label_values(&[provider, &*labels[1], &*self.server]).set(now());
    }

    pub(crate) fn invalid_key_told(&self, provider: &str, error: &str) {
        self.invalid_key_ids.with_label_values(&[provider, error]).inc();
    }

    pub(crate) fn keys_cached(&self, provider: &str, count: usize) {
        self.cache_size.with_label_values(&[provider]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// Where the successes of a provider, or of a key, are counted for one resource: looked up at the first, because to look
/// them up takes longer than to count.
#[derive(Default)]
pub(crate) struct Tallies {
    from_storage: OnceLock<(IntCounter, Histogram)>,
    to_storage: OnceLock<(IntCounter, Histogram)>,
}

impl Tallies {
    fn of(&self, direction: Direction) -> &OnceLock<(IntCounter, Histogram)> {
        match direction {
            Direction::FromStorage => &self.from_storage,
            Direction::ToStorage => &self.to_storage,
        }
    }
}

/// Which way an object goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    FromStorage,
    ToStorage,
}

impl Direction {
    fn label(self) -> &'static str {
        match self {
            Direction::FromStorage => "from_storage",
            Direction::ToStorage => "to_storage",
        }
    }
}

/// Notes `labels` as the newest, and answers those that are one too many for it.
fn forgotten<const N: usize>(known: &Mutex<VecDeque<[String; N]>>, labels: &[String; N]) -> Option<[String; N]> {
    let mut known = known.lock().expect("no holder of the labels panics");
    if let Some(at) = known.iter().position(|other| other == labels) {
        let labels = known.remove(at)?;
        known.push_back(labels);
        return None;
    }
    known.push_back(labels.clone());
    if known.len() > MOST_KEY_IDS { known.pop_front() } else { None }
}

fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
