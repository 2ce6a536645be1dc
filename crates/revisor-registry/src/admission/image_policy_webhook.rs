//! ImagePolicyWebhook: another server says which images may run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use revisor_object::{Object, Value};
use revisor_webhook::{ClientConfig, Credentials, ReviewKind, ReviewPatience};
use time::OffsetDateTime;

use super::pod_fields::{annotations, objects, spec, text};
use super::{Admission, Attributes, Operation, Waiting};
use crate::{Registry, RegistryError};

const AUDIT_PREFIX: &str = "imagepolicywebhook.image-policy.k8s.io/";
const ANNOTATION_MARK: &str = ".image-policy.k8s.io/";
const KIND: ReviewKind<'static> = ReviewKind { group: "imagepolicy.k8s.io", version: "v1alpha1", kind: "ImageReview" };

/// Of how many pods the answer is remembered.
const MAX_REMEMBERED: usize = 1024;
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whom to ask and how long to believe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePolicyConfig {
    /// Where the webhook is.
    pub webhook: ClientConfig,
    /// Who the server is there.
    pub credentials: Arc<Credentials>,
    /// How long a consent holds; zero: it is not remembered.
    pub allow_ttl: Duration,
    /// How long a refusal holds.
    pub deny_ttl: Duration,
    /// The first pause before asking again.
    pub retry_backoff: Duration,
    /// Whether images run while nobody can be asked.
    pub default_allow: bool,
}

pub(super) struct ImagePolicyWebhook {
    config: ImagePolicyConfig,
    remembered: Mutex<HashMap<String, (OffsetDateTime, Verdict)>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Verdict {
    is_allowed: bool,
    reason: String,
    notes: Vec<(String, String)>,
}

impl ImagePolicyWebhook {
    pub(super) fn new(config: ImagePolicyConfig) -> ImagePolicyWebhook {
        ImagePolicyWebhook { config, remembered: Mutex::default() }
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<String, (OffsetDateTime, Verdict)>> {
        // Nothing in there panics half way.
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, spec: String, verdict: &Verdict, now: OffsetDateTime) {
        let ttl = if verdict.is_allowed { self.config.allow_ttl } else { self.config.deny_ttl };
        if ttl.is_zero() {
            return;
        }
        let mut remembered = self.remembered();
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, (until, _)| *until > now);
            let soonest = remembered.iter().min_by_key(|(_, (until, _))| *until).map(|(spec, _)| spec.clone());
            if let Some(soonest) = soonest.filter(|_| remembered.len() >= MAX_REMEMBERED) {
                remembered.remove(&soonest);
            }
        }
        remembered.insert(spec, (now + ttl, verdict.clone()));
    }

    /// Asks the webhook, again if it cannot answer now.
    async fn ask(&self, registry: &Registry, attributes: &Attributes<'_>, spec: &str) -> Result<Verdict, String> {
        let ReviewKind { group, version, kind } = KIND;
        let review = format!(
            r#"{{"kind":"{kind}","apiVersion":"{group}/{version}","metadata":{{}},"spec":{spec},"status":{{"allowed":false}}}}"#
        );
        let ImagePolicyConfig { webhook, credentials, retry_backoff: pause, .. } = &self.config;
        let timeout = attributes.time_left().map_or(PATIENCE, |left| left.min(PATIENCE));
        let (kind, patience) = (KIND, ReviewPatience { timeout, pause: *pause });
        let answered = registry.webhooks.ask_for_review(webhook, credentials, review.into(), kind, patience).await;
        answered.map(|review| verdict_of(&review)).map_err(|error| error.to_string())
    }

    async fn judge(&self, registry: &Registry, attributes: &Attributes<'_>, spec: String) -> Result<(), RegistryError> {
        let now = registry.environment.now();
        let known = self.remembered().get(&spec).filter(|(until, _)| *until > now).map(|(_, verdict)| verdict.clone());
        let verdict = match known {
            Some(verdict) => verdict,
            None => match self.ask(registry, attributes, &spec).await {
                Ok(verdict) => {
                    self.remember(spec, &verdict, now);
                    verdict
                }
                Err(error) if self.config.default_allow => {
                    // DIFFERENCE: the original also marks the pod, which nobody may change at this point any more.
                    tracing::warn!(%error, "images were let through, because nobody could be asked about them");
                    attributes.annotate(format!("{AUDIT_PREFIX}failed-open"), "true");
                    return Ok(());
                }
                Err(error) => return Err(attributes.forbidden(error)),
            },
        };
        for (key, value) in verdict.notes {
            attributes.annotate(format!("{AUDIT_PREFIX}{key}"), value);
        }
        match (verdict.is_allowed, verdict.reason) {
            (true, _) => Ok(()),
            (false, reason) if reason.is_empty() => {
                Err(attributes.forbidden("one or more images rejected by webhook backend"))
            }
            (false, reason) => {
                let why = format!("image policy webhook backend denied one or more images: {reason}");
                Err(attributes.forbidden(why))
            }
        }
    }
}

impl Admission for ImagePolicyWebhook {
    fn name(&self) -> &'static str {
        "ImagePolicyWebhook"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn validate_waiting<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
        pod: &'a Object,
    ) -> Option<Waiting<'a>> {
        let lists: &[&str] = if attributes.is_about("", "pods") {
            &["containers", "initContainers"]
        } else if attributes.is_about_part("", "pods", "ephemeralcontainers") {
            &["ephemeralContainers"]
        } else {
            return None;
        };
        let review = review_spec(pod, lists, attributes.namespace.unwrap_or_default());
        Some(Box::pin(self.judge(registry, attributes, review)))
    }
}

/// What is asked about a pod. It is remembered by that, so equal questions must have equal texts.
fn review_spec(pod: &Object, lists: &[&str], namespace: &str) -> String {
    let images = lists.iter().flat_map(|list| objects(spec(pod), list));
    let containers: Vec<Value> = images
        .map(|container| {
            let image = text(container, "image");
            let shown = (!image.is_empty()).then(|| ("image", Value::from(image)));
            Value::from(shown.into_iter().collect::<Object>())
        })
        .collect();
    let noted: Object = annotations(pod)
        .iter()
        .filter(|(name, _)| name.contains(ANNOTATION_MARK))
        .map(|(name, value)| (name, value.clone()))
        .collect();
    let mut spec = Object::new();
    spec.set("containers", (!containers.is_empty()).then(|| Value::from(containers)));
    spec.set("annotations", (!noted.is_empty()).then(|| Value::from(noted)));
    spec.set("namespace", (!namespace.is_empty()).then(|| Value::from(namespace)));
    Value::Object(spec).to_json()
}

fn verdict_of(review: &Object) -> Verdict {
    let empty = Object::new();
    let status = review.object("status").unwrap_or(&empty);
    let notes = status.object("auditAnnotations").into_iter().flat_map(Object::iter);
    Verdict {
        is_allowed: status.get("allowed").and_then(Value::as_bool) == Some(true),
        reason: text(status, "reason").to_owned(),
        notes: notes.filter_map(|(key, value)| Some((key.to_owned(), value.as_str()?.to_owned()))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn a_webhook_is_told_images_and_what_is_meant_for_it() {
        let pod = r#"{"metadata":{"annotations":{"a.image-policy.k8s.io/x":"1","other":"2"}},"spec":{"containers":[{"name":"c","image":"i"}],"initContainers":[{"image":"j"}]}}"#;
        let Value::Object(pod) = parse_json(pod.as_bytes()).expect("is JSON").value else { panic!("an object") };
        assert_eq!(
            review_spec(&pod, &["containers", "initContainers"], "n"),
            r#"{"annotations":{"a.image-policy.k8s.io/x":"1"},"containers":[{"image":"i"},{"image":"j"}],"namespace":"n"}"#
        );
    }

    #[test]
    fn odd_answers_are_no_consent() {
        for (review, want) in [
            (r#"{"status":{"allowed":true}}"#, true),
            (r#"{"status":{"allowed":false,"reason":"no"}}"#, false),
            (r#"{"status":{"allowed":"true"}}"#, false),
            ("{}", false),
        ] {
            let Value::Object(object) = parse_json(review.as_bytes()).expect("is JSON").value else {
                panic!("{review}")
            };
            assert_eq!(verdict_of(&object).is_allowed, want, "{review}");
        }
    }
}
