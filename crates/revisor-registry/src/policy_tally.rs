//! [`PolicyTally`]: how often and for how long policies were evaluated, counted as the original counts it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The upper ends of the buckets of durations, in seconds.
pub const POLICY_BUCKETS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];

/// How many series there are at most. Names of policies are made by clients, and who makes ever new ones must not fill
/// the memory.
const MOST: usize = 10_000;

/// What was counted of one sort of outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicySample {
    /// The policy, the binding, the error type, and for validating policies what was done about it.
    pub labels: Vec<String>,
    /// How often.
    pub count: u64,
    /// For how long together.
    pub time: Duration,
    /// How often it took no longer than each of [`POLICY_BUCKETS`].
    pub within: [u64; POLICY_BUCKETS.len()],
}

/// Counts the evaluations of policies.
#[derive(Debug, Default)]
pub(crate) struct PolicyTally {
    validating: Mutex<Series>,
    mutating: Mutex<Series>,
}

type Series = HashMap<Vec<String>, Counted>;

#[derive(Debug, Default, Clone)]
struct Counted {
    count: u64,
    time: Duration,
    within: [u64; POLICY_BUCKETS.len()],
}

impl PolicyTally {
    /// A validation that did not simply let a write pass: policy, binding, error type and what was done about it.
    pub(crate) fn validated(&self, labels: [&str; 4], elapsed: Duration) {
        count(&self.validating, &labels, elapsed);
    }

    /// A mutation: policy, binding and error type.
    pub(crate) fn mutated(&self, labels: [&str; 3], elapsed: Duration) {
        count(&self.mutating, &labels, elapsed);
    }

    pub(crate) fn samples(&self) -> [Vec<PolicySample>; 2] {
        [&self.validating, &self.mutating].map(|series| {
            let series = series.lock().unwrap_or_else(PoisonError::into_inner);
            let mut samples: Vec<PolicySample> = series
                .iter()
                .map(|(labels, Counted { count, time, within })| PolicySample {
                    labels: labels.clone(),
                    count: *count,
                    time: *time,
                    within: *within,
                })
                .collect();
            samples.sort_by(|one, other| one.labels.cmp(&other.labels));
            samples
        })
    }
}

fn count(series: &Mutex<Series>, labels: &[&str], elapsed: Duration) {
    // Each number is whole whenever it can be seen.
    let mut series = series.lock().unwrap_or_else(PoisonError::into_inner);
    let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
    if series.len() >= MOST && !series.contains_key(&labels) {
        return;
    }
    let counted = series.entry(labels).or_default();
    counted.count += 1;
    counted.time += elapsed;
    for (bound, within) in POLICY_BUCKETS.iter().zip(&mut counted.within) {
        *within += u64::from(elapsed.as_secs_f64() <= *bound);
    }
}
