//! [`Webhook`]: one webhook of a configuration, read once.

use std::sync::Arc;
use std::time::Duration;

use revisor_admission::{AdmissionEnvironment, FailurePolicy, MatchConditions, MatchResources};
use revisor_object::{Object, Value};
use revisor_webhook::{AdmissionReviewVersion, ClientConfig, ClientConfigError};

/// How long a webhook may take that does not say.
const DEFAULT_TIMEOUT: i64 = 10;

/// One webhook of a configuration.
#[derive(Debug)]
pub(in crate::admission) struct Webhook {
    /// The name of its configuration.
    pub(super) configuration: String,
    /// Its own name.
    pub(super) name: String,
    /// What tells it apart from all others.
    pub(super) id: String,
    pub(super) resources: MatchResources,
    pub(super) conditions: MatchConditions,
    pub(super) failure_policy: FailurePolicy,
    pub(super) client: Result<ClientConfig, ClientConfigError>,
    pub(super) review_version: Option<AdmissionReviewVersion>,
    pub(super) timeout: Duration,
    /// Whether it may be asked about what is not stored; `None` if it does not say.
    pub(super) allows_dry_run: Option<bool>,
    /// Whether it wants to be asked again when others changed the object after it.
    pub(super) is_reinvoked: bool,
}

impl Webhook {
    /// The webhooks of a configuration, in their order.
    pub(super) fn read_all(environment: &AdmissionEnvironment, configuration: &Object) -> Vec<Arc<Webhook>> {
        let name = configuration.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
        let webhooks = configuration.array("webhooks").iter().filter_map(Value::as_object).enumerate();
        webhooks.map(|(at, webhook)| Arc::new(Webhook::read(environment, name, at, webhook))).collect()
    }

    /// Those of a configuration that stands in a file.
    pub(in crate::admission) fn read_static(
        environment: &AdmissionEnvironment,
        configuration: &Object,
    ) -> Vec<Arc<Webhook>> {
        let name = configuration.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
        let webhooks = configuration.array("webhooks").iter().filter_map(Value::as_object).enumerate();
        let read = webhooks.map(|(at, webhook)| Webhook::read(environment, name, at, webhook));
        read.map(|webhook| Arc::new(Webhook { id: format!("manifest/{}", webhook.id), ..webhook })).collect()
    }

    fn read(environment: &AdmissionEnvironment, configuration: &str, at: usize, webhook: &Object) -> Webhook {
        let name = webhook.str("name").unwrap_or_default();
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_TIMEOUT);
        let versions = webhook.array("admissionReviewVersions").iter().filter_map(Value::as_str);
        Webhook {
            configuration: configuration.to_owned(),
            name: name.to_owned(),
            id: format!("{configuration}/{name}/{at}"),
            resources: MatchResources::of_webhook(webhook),
            conditions: MatchConditions::compile(environment, webhook.array("matchConditions")),
            failure_policy: FailurePolicy::read(webhook.str("failurePolicy")),
            client: webhook
                .object("clientConfig")
                .ok_or(ClientConfigError::NoTarget)
                .and_then(ClientConfig::from_object),
            review_version: AdmissionReviewVersion::first_of(versions),
            timeout: Duration::from_secs(seconds.unsigned_abs()),
            allows_dry_run: webhook.str("sideEffects").map(|effects| matches!(effects, "None" | "NoneOnDryRun")),
            is_reinvoked: webhook.str("reinvocationPolicy") == Some("IfNeeded"),
        }
    }

    pub(super) fn fails_open(&self) -> bool {
        self.failure_policy == FailurePolicy::Ignore
    }
}
