//! [`WebhookAuthorizer`]: somebody else who decides about requests, asked by SubjectAccessReviews. Answers are remembered
//! for a while; expressions say which requests they are asked about.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use revisor_cel::{Budget, CelValue, Environment, Map, ObjectType, Program, Type};
use revisor_object::{Object, Value};
use revisor_version::Release;
use revisor_webhook::{ClientConfig, Credentials, ReviewKind, ReviewPatience, WebhookClient};
use sha2::{Digest as _, Sha256};

use crate::Attributes;

const PAUSE: Duration = Duration::from_millis(500);
/// How many answers are remembered, and how large a question may be for its answer to be.
const MOST_REMEMBERED: usize = 8_192;
const MOST_QUESTION_BYTES: usize = 10_000;

/// What the webhook said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) opinion: Opinion,
    /// Why; often empty.
    pub(crate) reason: String,
    /// Why it could not be asked or believed.
    pub(crate) error: Option<String>,
}

/// What the webhook thinks of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opinion {
    Allow,
    Deny,
    None,
}

/// What the webhook answered, and for how long that is remembered.
#[derive(Debug)]
struct Review {
    answer: Answer,
    is_allowed: bool,
}

/// How the webhook is asked.
pub struct WebhookAuthorizerOptions {
    /// What it is called.
    pub name: String,
    /// Where it is.
    pub config: ClientConfig,
    /// Who the server is to it.
    pub credentials: Arc<Credentials>,
    /// The version of the reviews: `v1` or `v1beta1`.
    pub version: String,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Whether nobody may what it does not answer.
    pub denies_on_failure: bool,
    /// For how long it is remembered that something is allowed; `None` for not at all.
    pub authorized_ttl: Option<Duration>,
    /// For how long it is remembered that something is not; `None` for not at all.
    pub unauthorized_ttl: Option<Duration>,
    /// All of these must be true of a request for the webhook to be asked.
    pub conditions: Vec<WebhookCondition>,
    /// Whether the selectors of requests are told.
    pub has_selectors: bool,
}

/// An expression about a request.
#[derive(Debug)]
pub struct WebhookCondition {
    text: String,
    program: Program,
}

impl WebhookCondition {
    /// Compiles an expression out of which true or false must come.
    pub fn compile(text: &str, release: Release) -> Result<WebhookCondition, String> {
        let program = environment(release).compile(text).map_err(|issues| format!("compilation failed: {issues}"))?;
        if *program.output_type() != Type::Bool {
            return Err(format!("must evaluate to bool but got {}", program.output_type()));
        }
        match program.flaw() {
            Some(flaw) => Err(format!("program instantiation failed: {flaw}")),
            None => Ok(WebhookCondition { text: text.to_owned(), program }),
        }
    }
}

/// What expressions may speak of: `request`, the spec of a SubjectAccessReview.
fn environment(release: Release) -> Environment {
    let texts = |name: &str, fields: &[&str]| {
        fields.iter().fold(ObjectType::new(name), |object, field| object.with_field(field, Type::String))
    };
    let requirement =
        texts("kubernetes.SelectorRequirement", &["key", "operator"]).with_field("values", Type::list(Type::String));
    let selector = texts("kubernetes.SelectorAttributes", &["rawSelector"])
        .with_field("requirements", Type::list(Type::object("kubernetes.SelectorRequirement")));
    let resource = texts(
        "kubernetes.ResourceAttributes",
        &["namespace", "verb", "group", "version", "resource", "subresource", "name"],
    )
    .with_field("fieldSelector", Type::object("kubernetes.SelectorAttributes"))
    .with_field("labelSelector", Type::object("kubernetes.SelectorAttributes"));
    let request = texts("kubernetes.SubjectAccessReviewSpec", &["user", "uid"])
        .with_field("groups", Type::list(Type::String))
        .with_field("extra", Type::map(Type::String, Type::list(Type::String)))
        .with_field("resourceAttributes", Type::object("kubernetes.ResourceAttributes"))
        .with_field("nonResourceAttributes", Type::object("kubernetes.NonResourceAttributes"));
    Environment::new(release)
        .with_object(requirement)
        .with_object(selector)
        .with_object(resource)
        .with_object(texts("kubernetes.NonResourceAttributes", &["path", "verb"]))
        .with_object(request)
        .with_variable("request", Type::object("kubernetes.SubjectAccessReviewSpec"))
}

/// Asks a webhook about requests.
pub struct WebhookAuthorizer {
    options: WebhookAuthorizerOptions,
    client: WebhookClient,
    remembered: Mutex<HashMap<[u8; 32], (Answer, Instant)>>,
}

impl WebhookAuthorizer {
    /// A webhook that is called by `client`.
    pub fn new(options: WebhookAuthorizerOptions, client: WebhookClient) -> WebhookAuthorizer {
        WebhookAuthorizer { options, client, remembered: Mutex::default() }
    }

    pub(crate) async fn authorize(&self, asked: &Attributes<'_>) -> Answer {
        let spec = self.spec(asked);
        match self.is_asked(&spec) {
            Ok(true) => {}
            Ok(false) => return Answer { opinion: Opinion::None, reason: String::new(), error: None },
            Err(problem) => return self.failed(problem),
        }
        let question = Value::Object(spec.clone()).to_json();
        let key: [u8; 32] = Sha256::digest(&question).into();
        if let Some(known) = self.recall(&key) {
            return known;
        }
        match self.ask(spec).await {
            Ok(review) => {
                if question.len() <= MOST_QUESTION_BYTES {
                    self.remember(key, &review);
                }
                review.answer
            }
            Err(problem) => self.failed(problem),
        }
    }

    fn failed(&self, problem: String) -> Answer {
        tracing::error!(webhook = self.options.name, problem, "an authorization webhook did not decide");
        let opinion = if self.options.denies_on_failure { Opinion::Deny } else { Opinion::None };
        Answer { opinion, reason: String::new(), error: Some(problem) }
    }

    fn spec(&self, asked: &Attributes<'_>) -> Object {
        let mut spec = Object::new();
        let members = |pairs: &[(&str, &str)]| -> Object {
            let given = pairs.iter().filter(|(_, value)| !value.is_empty());
            given.map(|(name, value)| (*name, Value::from(*value))).collect()
        };
        match &asked.resource {
            Some(target) => {
                let mut attributes = members(&[
                    ("namespace", target.namespace.unwrap_or_default()),
                    ("verb", asked.verb),
                    ("group", target.group),
                    ("version", target.version),
                    ("resource", target.resource),
                    ("subresource", target.subresource.unwrap_or_default()),
                    ("name", target.name.unwrap_or_default()),
                ]);
                if let Some(selectors) = target.selectors.filter(|_| self.options.has_selectors) {
                    for (name, terms) in [
                        ("fieldSelector", selectors.field_requirements()),
                        ("labelSelector", selectors.label_requirements()),
                    ] {
                        if !terms.is_empty() {
                            attributes.object_mut(name).insert("requirements", terms);
                        }
                    }
                }
                spec.insert("resourceAttributes", attributes);
            }
            None => {
                spec.insert("nonResourceAttributes", members(&[("path", asked.path), ("verb", asked.verb)]));
            }
        }
        let texts = |list: &[String]| list.iter().map(|text| Value::from(text.as_str())).collect::<Vec<_>>();
        if !asked.user.name().is_empty() {
            spec.insert("user", asked.user.name());
        }
        if !asked.user.groups().is_empty() {
            spec.insert("groups", texts(asked.user.groups()));
        }
        if !asked.user.extra().is_empty() {
            let extra: Object = asked.user.extra().iter().map(|(key, values)| (&**key, texts(values).into())).collect();
            spec.insert("extra", extra);
        }
        if let Some(uid) = asked.user.uid() {
            spec.insert("uid", uid);
        }
        spec
    }

    /// Whether the webhook is asked about such a request. One condition that is false decides, whatever the others are.
    fn is_asked(&self, spec: &Object) -> Result<bool, String> {
        let mut problems = Vec::new();
        if self.options.conditions.is_empty() {
            return Ok(true);
        }
        let spec = whole(spec);
        for condition in &self.options.conditions {
            let request = CelValue::Map(shown(&spec)?);
            let variables = [("request", request)];
            match condition.program.evaluate(&variables, &mut Budget::default()) {
                Ok(value) if value.as_bool() == Some(false) => return Ok(false),
                Ok(_) => {}
                Err(error) => problems
                    .push(format!("cel evaluation error: expression '{}' resulted in error: {error}", condition.text)),
            }
        }
        if problems.is_empty() { Ok(true) } else { Err(problems.join(", ")) }
    }

    async fn ask(&self, spec: Object) -> Result<Review, String> {
        let version = &self.options.version;
        let mut spec = spec;
        if version == "v1beta1"
            && let Some(groups) = spec.remove("groups")
        {
            // The first version called them otherwise.
            spec.insert("group", groups);
        }
        let review: Object = [
            ("kind", Value::from("SubjectAccessReview")),
            ("apiVersion", Value::from(format!("authorization.k8s.io/{version}"))),
            ("metadata", Object::from_iter([("creationTimestamp", Value::Null)]).into()),
            ("spec", spec.into()),
            ("status", Object::from_iter([("allowed", Value::Bool(false))]).into()),
        ]
        .into_iter()
        .collect();
        let body = Value::Object(review).to_json().into();
        let WebhookAuthorizerOptions { config, credentials, timeout, .. } = &self.options;
        let kind = ReviewKind { group: "authorization.k8s.io", version, kind: "SubjectAccessReview" };
        let patience = ReviewPatience { timeout: *timeout, pause: PAUSE };
        let answer = self.client.ask_for_review(config, credentials, body, kind, patience).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let empty = Object::new();
        let status = answer.object("status").unwrap_or(&empty);
        let truth = |name: &str| status.get(name).and_then(Value::as_bool) == Some(true);
        let (opinion, error) = match (truth("allowed"), truth("denied")) {
            (true, true) => {
                let both = "webhook subject access review returned both allow and deny response";
                (Opinion::Deny, Some(both.to_owned()))
            }
            (false, true) => (Opinion::Deny, None),
            (true, false) => (Opinion::Allow, None),
            (false, false) => (Opinion::None, None),
        };
        let reason = status.str("reason").unwrap_or_default().to_owned();
        Ok(Review { answer: Answer { opinion, reason, error }, is_allowed: truth("allowed") })
    }

    fn recall(&self, key: &[u8; 32]) -> Option<Answer> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(key).filter(|(_, until)| *until > Instant::now()).map(|(answer, _)| answer.clone())
    }

    fn remember(&self, key: [u8; 32], review: &Review) {
        let Review { answer, is_allowed } = review;
        let ttl = if *is_allowed { self.options.authorized_ttl } else { self.options.unauthorized_ttl };
        let Some(ttl) = ttl.filter(|ttl| !ttl.is_zero()) else { return };
        let now = Instant::now();
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MOST_REMEMBERED {
            remembered.retain(|_, (_, until)| *until > now);
        }
        if remembered.len() < MOST_REMEMBERED {
            remembered.insert(key, (answer.clone(), now + ttl));
        }
    }
}

impl std::fmt::Debug for WebhookAuthorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookAuthorizer").field("name", &self.options.name).finish_non_exhaustive()
    }
}

/// The spec with all fields that expressions may speak of without asking whether they are there
/// (`convertObjectToUnstructured`).
fn whole(spec: &Object) -> Object {
    let mut whole = spec.clone();
    let fill = |object: &mut Object, names: &[&str]| {
        for name in names {
            if !object.contains(name) {
                object.insert(name, "");
            }
        }
    };
    fill(&mut whole, &["user", "uid"]);
    if !whole.contains("groups") {
        whole.insert("groups", Vec::<Value>::new());
    }
    if whole.contains("resourceAttributes") {
        let names = ["namespace", "verb", "group", "version", "resource", "subresource", "name"];
        fill(whole.object_mut("resourceAttributes"), &names);
    }
    if whole.contains("nonResourceAttributes") {
        fill(whole.object_mut("nonResourceAttributes"), &["path", "verb"]);
    }
    whole
}

/// A review as expressions see it.
fn shown(object: &Object) -> Result<Map<'_>, String> {
    let members = object.iter().map(|(name, value)| Ok((CelValue::text(name), of_value(value)?)));
    Map::made(members.collect::<Result<Vec<_>, String>>()?).map_err(|error| error.to_string())
}

fn of_value(value: &Value) -> Result<CelValue<'_>, String> {
    Ok(match value {
        Value::String(text) => CelValue::text(text.as_str()),
        Value::Array(items) => CelValue::list(items.iter().map(of_value).collect::<Result<_, _>>()?),
        Value::Object(object) => CelValue::Map(shown(object)?),
        Value::Bool(truth) => CelValue::from(*truth),
        _ => CelValue::Null,
    })
}
