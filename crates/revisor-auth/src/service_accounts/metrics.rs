//! What is counted of the tokens of service accounts, and of calls to those who sign them elsewhere. Names, labels and
//! buckets are the original's (`pkg/serviceaccount/metrics.go`, `pkg/serviceaccount/externaljwt/metrics`).

use std::time::{Duration, SystemTime};

use prometheus::core::Collector;
use prometheus::{Gauge, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};

const MADE: &str = "the names and labels of metrics are good";

fn counter(name: &str, help: &str) -> IntCounter {
    IntCounter::new(name, help).expect(MADE)
}

/// How often tokens of each sort were shown.
#[derive(Debug)]
pub struct ServiceAccountMetrics {
    pub(super) legacy: IntCounter,
    pub(super) stale: IntCounter,
    pub(super) manual: IntCounter,
    pub(super) generated: IntCounter,
    pub(super) invalid: IntCounter,
    pub(super) valid: IntCounter,
}

impl Default for ServiceAccountMetrics {
    fn default() -> ServiceAccountMetrics {
        ServiceAccountMetrics {
            legacy: counter("serviceaccount_legacy_tokens_total", "Tokens that were shown and name no audience"),
            stale: counter("serviceaccount_stale_tokens_total", "Tokens that were shown after they should be replaced"),
            manual: counter(
                "serviceaccount_legacy_manual_token_uses_total",
                "Tokens that were shown of secrets that somebody made",
            ),
            generated: counter(
                "serviceaccount_legacy_auto_token_uses_total",
                "Tokens that were shown of secrets that were made with their accounts",
            ),
            invalid: counter(
                "serviceaccount_invalid_legacy_auto_token_uses_total",
                "Tokens that were shown of secrets that are marked as invalid",
            ),
            valid: counter(
                "serviceaccount_valid_tokens_total",
                "Tokens that were shown before they should be replaced",
            ),
        }
    }
}

impl ServiceAccountMetrics {
    /// Shows them to whoever asks this registry.
    pub fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        for counter in [&self.legacy, &self.stale, &self.manual, &self.generated, &self.invalid, &self.valid] {
            registry.register(Box::new(counter.clone()))?;
        }
        Ok(())
    }
}

/// What is counted of calls to a signer elsewhere.
#[derive(Debug)]
pub(super) struct ExternalSignerMetrics {
    fetched: Gauge,
    data: Gauge,
    fetches: IntCounterVec,
    signatures: IntCounterVec,
    durations: HistogramVec,
}

impl Default for ExternalSignerMetrics {
    fn default() -> ExternalSignerMetrics {
        let gauge = |name: &str, help: &str| Gauge::new(name, help).expect(MADE);
        let counters = |name: &str, help: &str| IntCounterVec::new(Opts::new(name, help), &["code"]).expect(MADE);
        let buckets = vec![0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
        let durations = HistogramOpts::new(
            "apiserver_externaljwt_request_duration_seconds",
            "How long calls to the signer of tokens took",
        );
        ExternalSignerMetrics {
            fetched: gauge(
                "apiserver_externaljwt_fetch_keys_success_timestamp",
                "When the keys of the signer of tokens were last fetched, in seconds since 1970",
            ),
            data: gauge(
                "apiserver_externaljwt_fetch_keys_data_timestamp",
                "From when the keys are that the signer of tokens told last, in seconds since 1970",
            ),
            fetches: counters("apiserver_externaljwt_fetch_keys_request_total", "Attempts to fetch keys"),
            signatures: counters("apiserver_externaljwt_sign_request_total", "Attempts to have tokens signed"),
            durations: HistogramVec::new(durations.buckets(buckets), &["method", "code"]).expect(MADE),
        }
    }
}

impl ExternalSignerMetrics {
    pub(super) fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        let collectors: [Box<dyn Collector>; 5] = [
            Box::new(self.fetched.clone()),
            Box::new(self.data.clone()),
            Box::new(self.fetches.clone()),
            Box::new(self.signatures.clone()),
            Box::new(self.durations.clone()),
        ];
        collectors.into_iter().try_for_each(|collector| registry.register(collector))
    }

    pub(super) fn called(&self, method: &str, code: &str, took: Duration) {
        self.durations.with_label_values(&[method, code]).observe(took.as_secs_f64());
    }

    /// Keys were fetched that are from this time, or it failed with this code.
    pub(super) fn fetched(&self, outcome: Result<f64, &str>) {
        self.fetches.with_label_values(&[outcome.err().unwrap_or("OK")]).inc();
        if let Ok(data) = outcome {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            self.fetched.set(now.as_secs_f64());
            self.data.set(data);
        }
    }

    /// A token was to be signed, and it failed with this code, or did not.
    pub(super) fn signed(&self, code: &str) {
        self.signatures.with_label_values(&[code]).inc();
    }
}
