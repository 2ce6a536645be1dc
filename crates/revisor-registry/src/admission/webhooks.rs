//! MutatingAdmissionWebhook and ValidatingAdmissionWebhook: programs beside the server that change and refuse writes.
//!
//! Which webhooks there are is in [`book`], which of them want to be asked and what they are asked in [`invocation`],
//! what becomes of their patches in [`patch`]. Nothing is locked or held while a webhook is asked, so that it may call
//! the server itself.

mod book;
mod invocation;
mod patch;
mod webhook;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use revisor_admission::AdmissionEnvironment;
use revisor_cache::ResourceCache;
use revisor_catalog::{Catalog, Resource};
use revisor_object::{Object, Value};
use revisor_webhook::{CredentialBook, Credentials, Target};

use self::book::WebhookBook;
use self::invocation::{Failure, Invocation, Versioned, object_of};
pub(super) use self::webhook::Webhook;
use super::{Admission, AdmissionConfig, Attributes, Operation, Phase, Waiting};
use crate::{Registry, RegistryError};

/// Where notes for the audit stand.
const MUTATION: &str = "mutation.webhook.admission.k8s.io";
const PATCH: &str = "patch.webhook.admission.k8s.io";
const FAILED_OPEN_MUTATING: &str = "failed-open.mutating.webhook.admission.k8s.io";
const FAILED_OPEN_VALIDATING: &str = "failed-open.validating.webhook.admission.k8s.io";

/// The kinds that decide about writes themselves, and about which no stored webhook is asked: else nobody could take one
/// back that refuses everything (upstream: `IsExemptAdmissionConfigurationResource`).
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

fn is_exempt(resource: &Resource) -> bool {
    resource.group == "admissionregistration.k8s.io" && EXEMPT.contains(&&*resource.kind)
}

/// The webhooks that are stored, and those of manifests.
pub(crate) struct Webhooks {
    mutating: WebhookBook,
    validating: WebhookBook,
    /// Who the server is to them.
    mutating_credentials: CredentialBook,
    validating_credentials: CredentialBook,
}

impl Webhooks {
    pub(crate) fn new(
        catalog: &Catalog,
        caches: &HashMap<String, Arc<ResourceCache>>,
        config: &AdmissionConfig,
    ) -> Webhooks {
        Webhooks {
            mutating: WebhookBook::new(catalog, caches, "mutatingwebhookconfigurations"),
            validating: WebhookBook::new(catalog, caches, "validatingwebhookconfigurations"),
            mutating_credentials: config.mutating_webhook_credentials.clone(),
            validating_credentials: config.validating_webhook_credentials.clone(),
        }
    }

    /// What the server shows to a webhook to say who it is.
    fn credentials(&self, mutating: bool, target: &Target) -> Option<&Arc<Credentials>> {
        if mutating { &self.mutating_credentials } else { &self.validating_credentials }.find(target)
    }

    /// Puts the mutating or validating webhooks of manifests in the place of those before.
    pub(super) fn take_static(&self, mutating: bool, webhooks: Arc<[Arc<Webhook>]>) {
        if mutating { &self.mutating } else { &self.validating }.take_static(webhooks);
    }

    /// Whether the rules of a webhook name a write.
    pub(crate) fn may_name(&self, registry: &Registry, attributes: &Attributes<'_>) -> bool {
        [&self.mutating, &self.validating].into_iter().any(|book| named(registry, attributes, book).is_some())
    }

    /// Whether there are webhooks that could change an object.
    pub(crate) fn may_change(&self, environment: &AdmissionEnvironment) -> bool {
        self.mutating.read(environment).is_some()
    }
}

/// The webhooks of a book whose rules name a write; `None` if there are none, or the server itself writes.
fn named(registry: &Registry, attributes: &Attributes<'_>, book: &WebhookBook) -> Option<Vec<Invocation>> {
    let mut webhooks = book.read(&registry.expressions)?;
    if attributes.is_own_write() || attributes.is_outline {
        return None;
    }
    if is_exempt(attributes.resource) {
        webhooks = book.read_static()?;
    }
    let named = Invocation::all(registry, attributes, &webhooks);
    (!named.is_empty()).then_some(named)
}

pub(super) struct MutatingAdmissionWebhook;

impl Admission for MutatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "MutatingAdmissionWebhook"
    }

    fn handles(&self, _: Operation) -> bool {
        true
    }

    fn looks_at_deleted(&self, registry: &Registry) -> bool {
        registry.admission_webhooks.mutating.read(&registry.expressions).is_some()
    }

    fn admit_waiting<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
        object: &'a mut Object,
    ) -> Option<Waiting<'a>> {
        let named = named(registry, attributes, &registry.admission_webhooks.mutating)?;
        Some(Box::pin(async move {
            if let Some(passes) = attributes.reinvocation {
                passes.begin(self.name(), object);
            }
            for invocation in &named {
                self.invoke(registry, attributes, invocation, object).await?;
            }
            if let Some(passes) = attributes.reinvocation {
                passes.end(self.name(), object);
            }
            Ok(())
        }))
    }
}

impl MutatingAdmissionWebhook {
    /// Asks one webhook, if it wants to be asked about the object as it is now.
    async fn invoke(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        invocation: &Invocation,
        object: &mut Object,
    ) -> Result<(), RegistryError> {
        let webhook = &invocation.webhook;
        let passes = attributes.reinvocation;
        if !invocation.is_selected(registry, attributes, object_of(attributes, object))? {
            return Ok(());
        }
        if webhook.conditions.is_empty() && passes.is_some_and(|passes| !passes.is_due(self.name(), &webhook.id)) {
            return Ok(());
        }
        let versioned = invocation.versioned(registry, attributes, object_of(attributes, object)).await?;
        if !invocation.is_meant(registry, attributes, &versioned, Phase::Admit)? {
            return Ok(());
        }
        if passes.is_some_and(|passes| !passes.is_due(self.name(), &webhook.id)) {
            return Ok(());
        }
        let round = usize::from(passes.is_some_and(|passes| passes.is_second()));
        let place = |prefix: &str| format!("{prefix}/round_{round}_index_{}", invocation.at);
        let answered = invocation.call(registry, attributes, &versioned, Phase::Admit).await;
        let patched = match answered {
            Ok(answer) => {
                let made = patch::apply(registry, attributes, invocation, &versioned, &answer).await;
                if let (Ok(Some(_)), Some(patch)) = (&made, patch::as_text(&answer)) {
                    let mut note = note(webhook);
                    note.insert("patch", patch);
                    note.insert("patchType", answer.patch_type.as_str());
                    attributes.annotate_request(place(PATCH), Value::from(note).to_json());
                }
                made
            }
            Err(failure) => Err(failure),
        };
        drop(versioned);
        let has_changed = matches!(&patched, Ok(Some(patched)) if patched.has_changed);
        let mut note = note(webhook);
        note.insert("mutated", has_changed);
        attributes.annotate(place(MUTATION), Value::from(note).to_json());
        if let Some(passes) = passes {
            passes.called(self.name(), &webhook.id, has_changed, webhook.is_reinvoked);
        }
        match patched {
            Ok(None) => Ok(()),
            Ok(Some(patched)) => {
                *object = patched.object;
                Ok(())
            }
            Err(failure) => {
                invocation.settle(registry, attributes, failure, Phase::Admit, &place(FAILED_OPEN_MUTATING))
            }
        }
    }
}

/// Who a note for the audit is about.
fn note(webhook: &Webhook) -> Object {
    [("configuration", webhook.configuration.as_str()), ("webhook", &webhook.name)]
        .into_iter()
        .map(|(name, text)| (name, Value::from(text)))
        .collect()
}

pub(super) struct ValidatingAdmissionWebhook;

impl Admission for ValidatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    fn handles(&self, _: Operation) -> bool {
        true
    }

    fn looks_at_deleted(&self, registry: &Registry) -> bool {
        registry.admission_webhooks.validating.read(&registry.expressions).is_some()
    }

    fn validate_waiting<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
        object: &'a Object,
    ) -> Option<Waiting<'a>> {
        let named = named(registry, attributes, &registry.admission_webhooks.validating)?;
        Some(Box::pin(validate(registry, attributes, named, object_of(attributes, object))))
    }
}

/// Asks all webhooks at the same time. As in the original the first that says no is told of, when all have answered.
async fn validate(
    registry: &Registry,
    attributes: &Attributes<'_>,
    named: Vec<Invocation>,
    object: Option<&Object>,
) -> Result<(), RegistryError> {
    // Most ask for the same version, in which the write is shown once.
    let mut shown: Vec<(Arc<Resource>, Arc<Versioned<'_>>)> = Vec::new();
    let mut relevant = Vec::new();
    for invocation in named {
        if !invocation.is_selected(registry, attributes, object)? {
            continue;
        }
        let known = shown.iter().find(|(version, _)| Arc::ptr_eq(version, &invocation.meant));
        let versioned = match known {
            Some((_, versioned)) => versioned.clone(),
            None => {
                let versioned = Arc::new(invocation.versioned(registry, attributes, object).await?);
                shown.push((invocation.meant.clone(), versioned.clone()));
                versioned
            }
        };
        if invocation.is_meant(registry, attributes, &versioned, Phase::Validate)? {
            relevant.push((invocation, versioned));
        }
    }
    if relevant.is_empty() {
        return Ok(());
    }
    if attributes.time_left().is_some_and(|left| left.is_zero()) {
        return Err(RegistryError::TimedOut);
    }
    let ask = |(at, (invocation, versioned))| ask_to_validate(registry, attributes, at, invocation, versioned);
    if relevant.len() == 1
        && let Some(only) = relevant.pop()
    {
        return ask((0, only)).await;
    }
    let mut asked: FuturesUnordered<_> = relevant.into_iter().enumerate().map(ask).collect();
    let mut first = Ok(());
    while let Some(answered) = asked.next().await {
        first = first.and(answered);
    }
    first
}

/// Asks the webhook at this place among those that want to be asked.
async fn ask_to_validate(
    registry: &Registry,
    attributes: &Attributes<'_>,
    at: usize,
    invocation: Invocation,
    versioned: Arc<Versioned<'_>>,
) -> Result<(), RegistryError> {
    let answered = invocation.call(registry, attributes, &versioned, Phase::Validate).await;
    let place = || format!("{FAILED_OPEN_VALIDATING}/round_0_index_{at}");
    match answered {
        Ok(_) => Ok(()),
        Err(failure) => invocation.settle(registry, attributes, failure, Phase::Validate, &place()),
    }
}
