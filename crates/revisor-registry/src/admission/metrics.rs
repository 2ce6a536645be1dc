//! [`AdmissionMetrics`]: how often and for how long the parts of the chain were asked, under the original's names.
//!
//! What every write adds to is an array of atomic numbers. What only webhooks add to is found by name, in a map with a
//! bound. How that is written down is for those who are asked for metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use revisor_admission::{ConditionsOutcome, Matched};

use super::Operation;

/// How many series webhooks may have together. Their names are those of stored configurations.
const MAX_SERIES: usize = 10_000;

/// The largest code that is told.
const MAX_CODE: u16 = 600;

/// Which pass of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The mutating one.
    Admit,
    /// The validating one.
    Validate,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Phase::Admit => "admit",
            Phase::Validate => "validate",
        }
    }

    /// How the series of webhooks call it, for whom the original has another word.
    fn of_webhook(self) -> &'static str {
        match self {
            Phase::Admit => "admit",
            Phase::Validate => "validating",
        }
    }
}

/// A family of series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdmissionFamily {
    /// How long a pass of the chain takes.
    StepDuration,
    /// How long a plugin takes.
    ControllerDuration,
    /// How long a webhook takes.
    WebhookDuration,
    /// How often a webhook kept a write from being done.
    WebhookRejections,
    /// How often a webhook that failed was passed over.
    WebhookFailOpen,
    /// How often a webhook was called.
    WebhookRequests,
    /// How often match conditions had no answer.
    MatchConditionErrors,
    /// How often match conditions kept something from being asked.
    MatchConditionExclusions,
    /// How long match conditions take that do not simply hold.
    MatchConditionDuration,
    /// How often pods were held to a level of security.
    PodSecurityEvaluations,
    /// How often they were not, by exemption.
    PodSecurityExemptions,
    /// How often it could not be said which level counts.
    PodSecurityErrors,
}

impl AdmissionFamily {
    /// The bounds of its buckets in seconds; none if it only counts.
    pub fn buckets(self) -> &'static [f64] {
        const STEP: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
        match self {
            AdmissionFamily::StepDuration | AdmissionFamily::ControllerDuration => &STEP,
            AdmissionFamily::WebhookDuration => &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0],
            AdmissionFamily::MatchConditionDuration => &[0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25],
            AdmissionFamily::WebhookRejections
            | AdmissionFamily::WebhookFailOpen
            | AdmissionFamily::WebhookRequests
            | AdmissionFamily::MatchConditionErrors
            | AdmissionFamily::MatchConditionExclusions
            | AdmissionFamily::PodSecurityEvaluations
            | AdmissionFamily::PodSecurityExemptions
            | AdmissionFamily::PodSecurityErrors => &[],
        }
    }
}

/// One series at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissionSample {
    /// Its family.
    pub family: AdmissionFamily,
    /// The values of its labels, in the order of the family.
    pub labels: Vec<String>,
    /// How often something happened.
    pub count: u64,
    /// How long it took in all.
    pub seconds: f64,
    /// How often it took no longer than each bound of the family.
    pub cumulative: Vec<u64>,
}

/// One call of a webhook.
pub(crate) struct WebhookCall<'a> {
    pub(crate) name: &'a str,
    pub(crate) phase: Phase,
    pub(crate) operation: Operation,
    pub(crate) code: u16,
    pub(crate) is_rejected: bool,
}

/// What has match conditions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conditioned<'a> {
    pub(crate) name: &'a str,
    /// `webhook` or `policy`.
    pub(crate) kind: &'static str,
    pub(crate) phase: Phase,
    pub(crate) operation: Operation,
}

/// A write that pod security looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecuredWrite<'a> {
    pub(crate) operation: Operation,
    /// `pod`, `namespace` or `controller`.
    pub(crate) resource: &'static str,
    pub(crate) subresource: &'a str,
}

impl<'a> Conditioned<'a> {
    fn labels(&self) -> [&'a str; 4] {
        [self.name, self.kind, self.phase.as_str(), self.operation.as_str()]
    }
}

impl SecuredWrite<'_> {
    fn operation(&self) -> &'static str {
        match self.operation {
            Operation::Create => "create",
            Operation::Update => "update",
            Operation::Delete => "delete",
            Operation::Connect => "connect",
        }
    }
}

/// What the chain counts.
pub(crate) struct AdmissionMetrics {
    names: Vec<&'static str>,
    steps: Vec<Durations>,
    /// Of each plugin in the order of the chain.
    controllers: Vec<Durations>,
    named: Mutex<BTreeMap<(AdmissionFamily, Vec<String>), Durations>>,
    /// The new and the changed pods of namespaces that demand nothing: nearly all pods.
    undemanding: [AtomicU64; 2],
}

/// In how many ways a step can end: by phase, operation and whether it was refused.
const WAYS: usize = 16;

fn way(phase: Phase, operation: Operation, is_rejected: bool) -> usize {
    (phase as usize) << 3 | (operation as usize) << 1 | usize::from(is_rejected)
}

/// The labels of all ways, in their order.
fn ways() -> impl Iterator<Item = [String; 3]> {
    let operations = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
    [Phase::Admit, Phase::Validate].into_iter().flat_map(move |phase| {
        operations.into_iter().flat_map(move |operation| {
            [false, true]
                .map(|rejected| [phase.as_str().to_owned(), operation.as_str().to_owned(), rejected.to_string()])
        })
    })
}

impl AdmissionMetrics {
    /// The metrics of a chain of plugins with these names.
    pub(crate) fn new(names: Vec<&'static str>) -> AdmissionMetrics {
        let some = |family: AdmissionFamily, count| (0..count).map(|_| Durations::new(family)).collect();
        AdmissionMetrics {
            steps: some(AdmissionFamily::StepDuration, WAYS),
            controllers: some(AdmissionFamily::ControllerDuration, WAYS * names.len()),
            names,
            named: Mutex::default(),
            undemanding: Default::default(),
        }
    }

    /// A pass of the chain came to its end.
    pub(crate) fn stepped(&self, phase: Phase, operation: Operation, is_rejected: bool, took: Duration) {
        self.steps[way(phase, operation, is_rejected)].add(took);
    }

    /// The plugin at this place in the chain came to its end.
    pub(crate) fn controlled(&self, at: usize, phase: Phase, operation: Operation, is_rejected: bool, took: Duration) {
        self.controllers[at * WAYS + way(phase, operation, is_rejected)].add(took);
    }

    fn count(&self, family: AdmissionFamily, labels: &[&str], took: Duration) {
        let key = (family, labels.iter().map(|label| (*label).to_owned()).collect());
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = named.get(&key) {
            known.add(took);
        } else if named.len() < MAX_SERIES {
            let durations = Durations::new(family);
            durations.add(took);
            named.insert(key, durations);
        }
    }

    /// A webhook was called. Where the write was refused, it is said for which kind of error.
    pub(crate) fn called(&self, call: &WebhookCall<'_>, error_type: Option<&str>, took: Duration) {
        let WebhookCall { name, phase, operation, code, is_rejected } = call;
        let code = (*code).min(MAX_CODE).to_string();
        let rejected = is_rejected.to_string();
        let (phase, operation) = (phase.of_webhook(), operation.as_str());
        self.count(AdmissionFamily::WebhookRequests, &[name, phase, operation, &code, &rejected], Duration::ZERO);
        self.count(AdmissionFamily::WebhookDuration, &[name, phase, operation, &rejected], took);
        if let Some(error_type) = error_type {
            let labels = [name, phase, operation, error_type, &code];
            self.count(AdmissionFamily::WebhookRejections, &labels, Duration::ZERO);
        }
    }

    /// A webhook that could not be asked was passed over.
    pub(crate) fn failed_open(&self, name: &str, phase: Phase) {
        self.count(AdmissionFamily::WebhookFailOpen, &[name, phase.of_webhook()], Duration::ZERO);
    }

    /// Match conditions were evaluated, and so many of them had no answer. As in the original, what simply holds is not
    /// counted.
    pub(crate) fn evaluated_conditions(&self, of: Conditioned<'_>, outcome: &ConditionsOutcome) {
        if outcome.matched == Matched::Yes {
            return;
        }
        let labels = of.labels();
        for _ in 0..outcome.failed {
            self.count(AdmissionFamily::MatchConditionErrors, &labels, Duration::ZERO);
        }
        self.count(AdmissionFamily::MatchConditionDuration, &labels, outcome.elapsed);
    }

    /// They kept the webhook from being asked.
    pub(crate) fn excluded_by_conditions(&self, of: Conditioned<'_>) {
        self.count(AdmissionFamily::MatchConditionExclusions, &of.labels(), Duration::ZERO);
    }

    /// A new or changed pod is in a namespace that demands nothing.
    pub(crate) fn undemanding(&self, write: SecuredWrite<'_>) {
        let count = |counter: &AtomicU64| {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        match (write.operation, write.subresource) {
            (Operation::Create, "") => count(&self.undemanding[0]),
            (Operation::Update, "") => count(&self.undemanding[1]),
            _ => self.evaluated_security(write, true, ["privileged", "latest", "enforce"]),
        }
    }

    /// A pod was held to a level of a version, in this mode.
    pub(crate) fn evaluated_security(&self, write: SecuredWrite<'_>, allowed: bool, how: [&str; 3]) {
        let [level, version, mode] = how;
        let decision = if allowed { "allow" } else { "deny" };
        let labels = [decision, level, version, mode, write.operation(), write.resource, write.subresource];
        self.count(AdmissionFamily::PodSecurityEvaluations, &labels, Duration::ZERO);
    }

    /// A pod was not, by exemption.
    pub(crate) fn exempted_from_security(&self, write: SecuredWrite<'_>) {
        let labels = [write.operation(), write.resource, write.subresource];
        self.count(AdmissionFamily::PodSecurityExemptions, &labels, Duration::ZERO);
    }

    /// What its namespace demands cannot be understood.
    pub(crate) fn failed_security(&self, write: SecuredWrite<'_>) {
        let labels = ["false", write.operation(), write.resource, write.subresource];
        self.count(AdmissionFamily::PodSecurityErrors, &labels, Duration::ZERO);
    }

    /// Every series in which something happened.
    pub(crate) fn samples(&self) -> Vec<AdmissionSample> {
        let mut samples: Vec<AdmissionSample> = Vec::new();
        for (durations, labels) in self.steps.iter().zip(ways()) {
            samples.extend(durations.sample(AdmissionFamily::StepDuration, labels.to_vec()));
        }
        for (name, ways_of_one) in self.names.iter().zip(self.controllers.chunks(WAYS)) {
            for (durations, labels) in ways_of_one.iter().zip(ways()) {
                let labels = std::iter::once((*name).to_owned()).chain(labels).collect();
                samples.extend(durations.sample(AdmissionFamily::ControllerDuration, labels));
            }
        }
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        samples.extend(named.iter().filter_map(|((family, labels), it)| it.sample(*family, labels.clone())));
        for (operation, count) in ["create", "update"].into_iter().zip(&self.undemanding) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let labels = ["allow", "privileged", "latest", "enforce", operation, "pod", ""];
                let labels = labels.map(str::to_owned).to_vec();
                let family = AdmissionFamily::PodSecurityEvaluations;
                samples.push(AdmissionSample { family, labels, count, seconds: 0.0, cumulative: Vec::new() });
            }
        }
        samples
    }
}

/// How often something happened and how long it took.
struct Durations {
    bounds: &'static [f64],
    /// By the bound that it did not pass; the last for what passed them all.
    buckets: Vec<AtomicU64>,
    nanoseconds: AtomicU64,
}

impl Durations {
    fn new(family: AdmissionFamily) -> Durations {
        let bounds = family.buckets();
        Durations {
            bounds,
            buckets: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            nanoseconds: AtomicU64::new(0),
        }
    }

    fn add(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let at = self.bounds.iter().position(|bound| seconds <= *bound).unwrap_or(self.bounds.len());
        self.buckets[at].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    fn sample(&self, family: AdmissionFamily, labels: Vec<String>) -> Option<AdmissionSample> {
        let mut count = 0;
        let mut cumulative = Vec::with_capacity(self.buckets.len());
        for bucket in &self.buckets {
            count += bucket.load(Ordering::Relaxed);
            cumulative.push(count);
        }
        cumulative.pop();
        let seconds = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        (count > 0).then_some(AdmissionSample { family, labels, count, seconds, cumulative })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_told_by_name_and_by_time() {
        let metrics = AdmissionMetrics::new(vec!["A", "B"]);
        metrics.stepped(Phase::Validate, Operation::Delete, true, Duration::from_millis(30));
        metrics.controlled(1, Phase::Admit, Operation::Create, false, Duration::from_micros(1));
        let call = WebhookCall {
            name: "w",
            phase: Phase::Validate,
            operation: Operation::Update,
            code: 700,
            is_rejected: true,
        };
        metrics.called(&call, Some("no_error"), Duration::from_secs(30));
        let shown: Vec<String> = metrics
            .samples()
            .iter()
            .map(|sample| {
                format!("{:?} {} {} {:?}", sample.family, sample.labels.join(" "), sample.count, sample.cumulative)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "StepDuration validate DELETE true 1 [0, 0, 1, 1, 1, 1]",
                "ControllerDuration B admit CREATE false 1 [1, 1, 1, 1, 1, 1]",
                "WebhookDuration w validating UPDATE true 1 [0, 0, 0, 0, 0, 0, 0, 0]",
                "WebhookRejections w validating UPDATE no_error 600 1 []",
                "WebhookRequests w validating UPDATE 600 true 1 []",
            ]
        );
    }
}
