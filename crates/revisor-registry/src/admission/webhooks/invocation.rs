//! [`Invocation`]: one webhook that wants to be asked about a write, the question to it, and what its answer means.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use revisor_admission::{
    AdmissionRequest, GroupVersionKind, GroupVersionResource, Inputs, Matched, RequestValue, Typed, UserInfo,
};
use revisor_catalog::Resource;
use revisor_object::{Object, Status, Value, compact_json, push_json_text, push_json_value};
use revisor_schema::is_spelled;
use revisor_webhook::{AdmissionAnswer, AdmissionQuestion, AdmissionReviewError};

use super::Webhook;
use crate::admission::{Attributes, Conditioned, ExpressionAuthorizer, Operation, Phase, WebhookCall, resource_of};
use crate::present::is_shown_as_stored;
use crate::{Registry, RegistryError};

/// A webhook whose rules name a write, and the version of the resource by which they name it.
#[derive(Clone)]
pub(super) struct Invocation {
    pub(super) webhook: Arc<Webhook>,
    /// Its place among all webhooks.
    pub(super) at: usize,
    pub(super) meant: Arc<Resource>,
}

/// A write as one version of its resource shows it.
pub(super) struct Versioned<'o> {
    pub(super) object: Option<Cow<'o, Object>>,
    pub(super) old: Option<Cow<'o, Object>>,
    /// Both as JSON with their type.
    pub(super) encoded: [Option<Bytes>; 2],
}

/// Why a webhook does not let a write go on, or could not be asked.
pub(super) enum Failure {
    /// It could not be asked (upstream: `ErrCallingWebhook`), told by this code in metrics.
    Calling { why: String, code: u16 },
    /// It says no (upstream: `ErrWebhookRejection`).
    Rejection(Box<Status>),
    /// The server cannot do what it says.
    Other(RegistryError),
}

impl Invocation {
    /// Those of the webhooks whose rules name a write.
    pub(super) fn all(registry: &Registry, attributes: &Attributes<'_>, webhooks: &[Arc<Webhook>]) -> Vec<Invocation> {
        let target = attributes.rule_target();
        // All versions are looked for once somebody asks for another than that of the write.
        let equivalents: OnceCell<Vec<Arc<Resource>>> = OnceCell::new();
        let meant = |webhook: &Webhook| {
            if webhook.resources.meant(&target, &[]).is_some() {
                return Some(attributes.shown.clone());
            }
            let equivalents = equivalents.get_or_init(|| registry.equivalents(attributes));
            let named: Vec<GroupVersionResource<'_>> =
                equivalents.iter().map(|resource| resource_of(resource)).collect();
            let meant = webhook.resources.meant(&target, &named)?;
            let same = equivalents.iter().find(|resource| resource_of(resource) == meant);
            Some(same.unwrap_or(attributes.shown).clone())
        };
        let invocation = |(at, webhook): (usize, &Arc<Webhook>)| {
            let meant = Some(webhook).filter(|webhook| webhook.resources.has_rules()).and_then(|it| meant(it))?;
            Some(Invocation { webhook: webhook.clone(), at, meant })
        };
        webhooks.iter().enumerate().filter_map(invocation).collect()
    }

    /// Whether the selectors of the webhook select a write (upstream: `MatchNamespaceSelector`, `MatchObjectSelector`).
    pub(super) fn is_selected(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<bool, RegistryError> {
        // What has no metadata has no labels that could be selected by, not even by their absence.
        let with_metadata = |object: &&Object| object.contains("metadata");
        let objects = [object.filter(with_metadata), attributes.old.filter(with_metadata)];
        registry.is_selected(attributes, &self.webhook.resources, objects)
    }

    /// Shows a write in the version that the webhook asked for.
    pub(super) async fn versioned<'o>(
        &self,
        registry: &Registry,
        attributes: &'o Attributes<'_>,
        object: Option<&'o Object>,
    ) -> Result<Versioned<'o>, RegistryError> {
        let object = self.shown(registry, attributes, object).await?;
        let old = self.shown(registry, attributes, attributes.old).await?;
        let encoded = [
            object.as_deref().map(|object| self.encode(attributes, object)),
            old.as_deref().map(|old| self.encode_old(attributes, old)),
        ];
        Ok(Versioned { object, old, encoded })
    }

    async fn shown<'o>(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        object: Option<&'o Object>,
    ) -> Result<Option<Cow<'o, Object>>, RegistryError> {
        let Some(object) = object else { return Ok(None) };
        let shown = registry.to_version(attributes, &self.meant, object).await;
        shown.map(Some).map_err(|error| RegistryError::Internal(error.to_string()))
    }

    /// What is there already, as JSON with its type. Most often that is how it is stored.
    fn encode_old(&self, attributes: &Attributes<'_>, old: &Object) -> Bytes {
        let is_as_stored = |stored: &&Bytes| {
            attributes.own_kind.is_none() && is_shown_as_stored(&self.meant, stored) && !is_spelled(stored)
        };
        match attributes.stored.filter(is_as_stored) {
            Some(stored) => stored.clone(),
            None => self.encode(attributes, old),
        }
    }

    pub(super) fn encode(&self, attributes: &Attributes<'_>, object: &Object) -> Bytes {
        if attributes.own_kind.is_none() && self.meant.custom().is_none() {
            let bytes = self.meant.encode_as_it_is(object);
            return if is_spelled(&bytes) { compact_json(&bytes).into_owned() } else { bytes }.into();
        }
        let (api_version, kind) = self.object_type(attributes);
        let mut object = object.clone();
        object.insert("apiVersion", api_version);
        object.insert("kind", kind);
        let mut bytes = Vec::with_capacity(1024);
        push_json_value(&Value::Object(object), &mut bytes);
        bytes.into()
    }

    /// The API version and kind of the object.
    pub(super) fn object_type(&self, attributes: &Attributes<'_>) -> (String, String) {
        match attributes.own_kind {
            Some(GroupVersionKind { group: "", version, kind }) => (version.to_owned(), kind.to_owned()),
            Some(GroupVersionKind { group, version, kind }) => (format!("{group}/{version}"), kind.to_owned()),
            None => (self.meant.api_version.clone(), self.meant.kind.to_string()),
        }
    }

    /// Whether the match conditions of the webhook hold.
    pub(super) fn is_meant(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        versioned: &Versioned<'_>,
        phase: Phase,
    ) -> Result<bool, RegistryError> {
        let webhook = &self.webhook;
        if webhook.conditions.is_empty() {
            return Ok(true);
        }
        let options = attributes.options.to_object();
        // As in the original, conditions are told the resource that the client speaks of.
        let request = AdmissionRequest {
            resource: attributes.request_resource(),
            ..attributes.admission_request(&self.meant, options.as_ref())
        };
        let request = RequestValue::new(request);
        let (api_version, kind) = self.object_type(attributes);
        let (object, old) = (&versioned.object, &versioned.old);
        let typed = |object| Typed { object, api_version: &api_version, kind: &kind };
        let authorizer = ExpressionAuthorizer::new(&registry.authorizer, attributes.requester);
        let begun = Instant::now();
        let inputs = Inputs {
            request: &request,
            plain_request: &request,
            object: object.as_deref().map(typed),
            old_object: old.as_deref().map(typed),
            params: None,
            namespace: None,
            authorizer: &authorizer,
            clock: &|| begun.elapsed(),
        };
        let outcome = webhook.conditions.hold(&inputs, webhook.failure_policy);
        let metrics = &registry.admission_metrics;
        let operation = attributes.operation;
        let conditioned = Conditioned { name: &webhook.name, kind: "webhook", phase, operation };
        metrics.evaluated_conditions(conditioned, &outcome);
        match outcome.matched {
            Matched::Yes => Ok(true),
            Matched::No { .. } => {
                metrics.excluded_by_conditions(conditioned);
                Ok(false)
            }
            Matched::Failed(why) => {
                let resource = attributes.shown.clone();
                let name = attributes.name.to_owned();
                Err(RegistryError::Forbidden { resource, name, why, terminating_namespace: None })
            }
        }
    }

    /// Asks the webhook, and tells what it has to say beside its decision to those who should know.
    pub(super) async fn call(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        versioned: &Versioned<'_>,
        phase: Phase,
    ) -> Result<AdmissionAnswer, Failure> {
        let webhook = &self.webhook;
        let begun = Instant::now();
        let asked = self.ask(registry, attributes, versioned, phase == Phase::Admit).await;
        let answered = asked.and_then(|answer| {
            for (key, value) in &answer.audit_annotations {
                attributes.annotate(format!("{}/{key}", webhook.name), value);
            }
            answer.warnings.iter().for_each(|warning| attributes.warn(warning));
            if answer.allowed { Ok(answer) } else { Err(Failure::Rejection(rejection(&webhook.name, answer.result))) }
        });
        let (code, is_rejected, error_type) = match &answered {
            Ok(_) => (200, false, None),
            Err(Failure::Calling { code, .. }) if webhook.fails_open() => (*code, false, None),
            Err(Failure::Calling { code, .. }) => (*code, true, Some("calling_webhook_error")),
            Err(Failure::Rejection(status)) => (status.code(), true, Some("no_error")),
            Err(Failure::Other(_)) => (0, true, Some("apiserver_internal_error")),
        };
        let call = WebhookCall { name: &webhook.name, phase, operation: attributes.operation, code, is_rejected };
        let took = begun.elapsed();
        attributes.waited_for_webhook(phase, took);
        registry.admission_metrics.called(&call, error_type, took);
        answered
    }

    async fn ask(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        versioned: &Versioned<'_>,
        mutating: bool,
    ) -> Result<AdmissionAnswer, Failure> {
        let webhook = &self.webhook;
        if attributes.dry_run {
            match webhook.allows_dry_run {
                Some(true) => {}
                Some(false) => {
                    let why = format!("admission webhook {:?} does not support dry run", webhook.name);
                    return Err(Failure::Other(RegistryError::BadRequest(why)));
                }
                None => return Err(Failure::Calling { why: "Webhook SideEffects is nil".to_owned(), code: 400 }),
            }
        }
        let Some(version) = webhook.review_version else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions \
                       (v1, v1beta1)";
            return Err(Failure::Calling { why: why.to_owned(), code: 400 });
        };
        let client = webhook
            .client
            .as_ref()
            .map_err(|error| Failure::Calling { why: format!("could not get REST client: {error}"), code: 500 })?;
        let uid = registry.environment.uid();
        let options = attributes.options.to_object();
        let about = about(&attributes.admission_request(&self.meant, None));
        let options = options.map(|options| Value::Object(options).to_json());
        let [object, old_object] = versioned.encoded.each_ref().map(|encoded| encoded.as_deref());
        let question = AdmissionQuestion {
            uid: &uid,
            about: &about,
            object,
            old_object,
            dry_run: attributes.dry_run,
            options: options.as_deref(),
        };
        let timeout = attributes.time_left().map_or(webhook.timeout, |left| left.min(webhook.timeout));
        // Webhooks are told whole seconds.
        let timeout = if timeout < webhook.timeout { round_up(timeout) } else { timeout };
        let credentials = registry.admission_webhooks.credentials(mutating, &client.target);
        let asked = registry.webhooks.review(client, credentials, version, question, mutating, timeout).await;
        asked.map_err(|error: AdmissionReviewError| Failure::Calling { why: error.to_string(), code: error.code() })
    }

    /// What becomes of a write whose webhook said no or could not be asked: an error, or nothing if it may be ignored.
    /// `place` is where the audit notes that it was.
    pub(super) fn settle(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        failure: Failure,
        phase: Phase,
        place: &str,
    ) -> Result<(), RegistryError> {
        let webhook = &self.webhook;
        match failure {
            Failure::Calling { why, .. } if webhook.fails_open() => {
                tracing::warn!(webhook = webhook.name, why, "a webhook that failed is passed over");
                registry.admission_metrics.failed_open(&webhook.name, phase);
                attributes.annotate(place, &webhook.name);
                if attributes.time_left() == Some(Duration::ZERO) { Err(RegistryError::TimedOut) } else { Ok(()) }
            }
            Failure::Calling { why, .. } => {
                Err(RegistryError::Internal(format!("failed calling webhook {:?}: {why}", webhook.name)))
            }
            Failure::Rejection(status) => Err(RegistryError::Denied(status)),
            Failure::Other(error) => Err(error),
        }
    }
}

fn round_up(timeout: Duration) -> Duration {
    let rest = u64::from(timeout.subsec_nanos() > 0);
    Duration::from_secs(timeout.as_secs() + rest)
}

/// Why a webhook says no, as its client is told (upstream: `ToStatusErr`).
fn rejection(webhook: &str, result: Option<Status>) -> Box<Status> {
    let mut status = result.unwrap_or_default();
    status.code = status.code.max(400);
    if matches!(&*status.status, "" | "Success") {
        status.status = "Failure".into();
    }
    let denied = format!("admission webhook {webhook:?} denied the request");
    status.message = match (status.message.as_str(), &*status.reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    Box::new(status)
}

/// The members of a review between its identity and its objects.
fn about(request: &AdmissionRequest<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let AdmissionRequest { kind, resource, request_kind, request_resource, subresource, .. } = *request;
    push_kind(&mut out, r#""kind":"#, kind);
    push_resource(&mut out, r#","resource":"#, resource);
    push_given(&mut out, r#","subResource":"#, subresource);
    push_kind(&mut out, r#","requestKind":"#, request_kind);
    push_resource(&mut out, r#","requestResource":"#, request_resource);
    push_given(&mut out, r#","requestSubResource":"#, subresource);
    push_given(&mut out, r#","name":"#, request.name);
    push_given(&mut out, r#","namespace":"#, request.namespace);
    push_text(&mut out, r#","operation":"#, request.operation.as_str());
    out.extend_from_slice(br#","userInfo":"#);
    push_json_value(&Value::Object(user_info(&request.user)), &mut out);
    out
}

/// Appends what is written before a text, and the text.
fn push_text(out: &mut Vec<u8>, before: &str, text: &str) {
    out.extend_from_slice(before.as_bytes());
    push_json_text(text, out);
}

/// The same of a text that may be missing.
fn push_given(out: &mut Vec<u8>, before: &str, text: &str) {
    if !text.is_empty() {
        push_text(out, before, text);
    }
}

fn push_kind(out: &mut Vec<u8>, before: &str, kind: GroupVersionKind<'_>) {
    out.extend_from_slice(before.as_bytes());
    push_text(out, r#"{"group":"#, kind.group);
    push_text(out, r#","version":"#, kind.version);
    push_text(out, r#","kind":"#, kind.kind);
    out.push(b'}');
}

fn push_resource(out: &mut Vec<u8>, before: &str, resource: GroupVersionResource<'_>) {
    out.extend_from_slice(before.as_bytes());
    push_text(out, r#"{"group":"#, resource.group);
    push_text(out, r#","version":"#, resource.version);
    push_text(out, r#","resource":"#, resource.resource);
    out.push(b'}');
}

fn user_info(user: &UserInfo<'_>) -> Object {
    let texts = |list: &[String]| Value::from(list.iter().map(|one| Value::from(one.as_str())).collect::<Vec<_>>());
    let extra: Object = user.extra.iter().map(|(key, values)| (key.as_str(), texts(values))).collect();
    let mut info = Object::new();
    info.set("extra", (!extra.is_empty()).then(|| Value::from(extra)));
    info.set("groups", (!user.groups.is_empty()).then(|| texts(user.groups)));
    info.set("uid", (!user.uid.is_empty()).then(|| Value::from(user.uid)));
    info.set("username", (!user.username.is_empty()).then(|| Value::from(user.username)));
    info
}

/// The object of a write, if its operation has one.
pub(super) fn object_of<'o>(attributes: &Attributes<'_>, object: &'o Object) -> Option<&'o Object> {
    (attributes.operation != Operation::Delete).then_some(object)
}
