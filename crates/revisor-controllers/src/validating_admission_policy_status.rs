//! The status of ValidatingAdmissionPolicies: what is odd about their expressions, given the types that they are about.

use std::sync::Arc;
use std::time::Duration;

use revisor_cache::{Feed, News};
use revisor_catalog::Resource;
use revisor_object::{Object, Value, parse_json};
use revisor_registry::{Actor, PatchKind, Place, Registry, RegistryError, WriteOptions};

use crate::Clock;
use crate::controllers::Controller;
use crate::metadata::place;
use crate::work_queue::{Backoff, Outcome, QueueTally, WorkQueue};

/// In whose name the status is written.
const FIELD_MANAGER: &str = "validatingadmissionpolicy-status";

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_secs(300) };

/// Writes the status of policies whose specification has changed.
pub(crate) struct ValidatingAdmissionPolicyStatus {
    registry: Arc<Registry>,
    queue: WorkQueue<String>,
    account: Actor,
}

impl ValidatingAdmissionPolicyStatus {
    pub(crate) fn new(
        registry: Arc<Registry>,
        clock: Arc<dyn Clock>,
        tally: Arc<QueueTally>,
    ) -> ValidatingAdmissionPolicyStatus {
        let (queue, account) =
            (WorkQueue::new(clock, BACKOFF, tally), Controller::ValidatingAdmissionPolicyStatus.actor());
        ValidatingAdmissionPolicyStatus { registry, queue, account }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let group = "admissionregistration.k8s.io";
        let policies = self.registry.built_in().resource(group, "v1", "validatingadmissionpolicies").cloned();
        let Some(policies) = policies else { return };
        tokio::join!(self.follow(&policies), self.queue.work(|name| self.reconcile(&policies, name)));
    }

    async fn follow(&self, policies: &Arc<Resource>) {
        let mut feed = Feed::open(&self.registry.cache_of(policies), None);
        while let Some(news) = feed.next().await {
            if let News::Present(item) | News::Changed { new: item, .. } = news {
                self.queue.add(place(policies, item.key().as_str()).1.to_owned());
            }
            tokio::task::consume_budget().await;
        }
    }

    async fn reconcile(&self, policies: &Arc<Resource>, name: String) -> Outcome {
        match self.try_reconcile(policies, &name).await {
            Ok(()) | Err(RegistryError::NotFound { .. }) => Outcome::Done,
            Err(RegistryError::Conflict { .. }) => Outcome::Retry,
            Err(error) => {
                tracing::warn!(%name, ?error, "cannot write the status of a policy");
                Outcome::Retry
            }
        }
    }

    async fn try_reconcile(&self, policies: &Arc<Resource>, name: &str) -> Result<(), RegistryError> {
        let Some(item) = self.registry.cache_of(policies).get(&policies.key(None, name)) else { return Ok(()) };
        let Ok(parsed) = parse_json(item.bytes()) else { return Ok(()) };
        let Value::Object(policy) = parsed.value else { return Ok(()) };
        let number = |path: &[&str]| policy.at(path).and_then(Value::as_i64).unwrap_or_default();
        let generation = number(&["metadata", "generation"]);
        if generation <= number(&["status", "observedGeneration"]) {
            return Ok(());
        }
        let warning = |(field, warning): (String, String)| {
            Value::Object([("fieldRef", Value::from(field)), ("warning", warning.into())].into_iter().collect())
        };
        let warnings: Vec<Value> = self.registry.policy_warnings(&policy).into_iter().map(warning).collect();
        let mut checking = Object::new();
        if !warnings.is_empty() {
            checking.insert("expressionWarnings", warnings);
        }
        let status: Object =
            [("observedGeneration", Value::from(generation)), ("typeChecking", checking.into())].into_iter().collect();
        let metadata: Object = [("name", Value::from(name))].into_iter().collect();
        let applied: Object = [
            ("apiVersion", Value::from(policies.api_version.as_str())),
            ("kind", policies.kind.as_str().into()),
            ("metadata", metadata.into()),
            ("status", status.into()),
        ]
        .into_iter()
        .collect();
        let options = WriteOptions {
            subresource: Some("status"),
            field_manager: FIELD_MANAGER,
            is_apply: true,
            force: true,
            ..self.account.options()
        };
        let place = Place { resource: policies, namespace: None, name: Some(name) };
        self.registry.patch(place, PatchKind::Apply, Value::from(applied).to_json().as_bytes(), options).await?;
        Ok(())
    }
}
