//! Questions that are answered and not stored: who somebody is, and what they may do. What may be asked is the
//! catalog's; the answers come from those who know: the authenticator and the authorizer.

use std::time::SystemTime;

use bytes::Bytes;
use revisor_auth::{
    AccessRules, Attributes, AuthenticationNotes, Claims, Explanation, Identity, NotAllowed, PolicyRule,
    ResourceAttributes, Selectors, Unauthenticated,
};
use revisor_catalog::{ObjectRoute, Resource};
use revisor_object::{
    FieldOperator, FieldSelector, FieldTerm, KindRef, LabelOperator, LabelSelector, Object, Requirement, Status, Value,
};
use revisor_registry::{Operation, Place, UnstoredWrite, WriteOptions};
use revisor_schema::{Precision, format_timestamp};

use crate::Api;
use crate::objects::Refusal;

impl Api {
    /// The answer to a question, in the shape of the question.
    pub(crate) async fn review(
        &self,
        route: &ObjectRoute,
        user: &Identity,
        mut question: Object,
        options: WriteOptions<'_>,
    ) -> Result<Bytes, Refusal> {
        let resource = &route.resource;
        take_namespace(&mut question, route.namespace.as_deref())?;
        let name = question.at(&["metadata", "name"]).and_then(Value::as_str).map(str::to_owned);
        let place = Place { resource, namespace: route.namespace.as_deref(), name: name.as_deref() };
        let write = UnstoredWrite { place, own_kind: None, operation: Operation::Create, options };
        let registry = &self.options.registry;
        registry.record_sender(resource, &mut question, options).await;
        registry.admit_unstored(&write, &mut question).await?;
        let errors = resource.quoting_internal_values(resource.strategy.validate(&question));
        if !errors.is_empty() {
            // As in the original, such a refusal does not name the kind.
            return Err(Box::new(Status::invalid(KindRef { group: &resource.group, kind: "" }, "", &errors)).into());
        }
        registry.validate_unstored(&write, &question).await?;
        let answer = match resource.plural.as_str() {
            "selfsubjectreviews" => self.who_am_i(user),
            "tokenreviews" => self.whose_token(question).await?,
            "selfsubjectaccessreviews" => self.may(user, question).await,
            "subjectaccessreviews" | "localsubjectaccessreviews" => self.may(&subject(&question), question).await,
            "selfsubjectrulesreviews" => self.what_may(user, &question)?,
            _ => return Err(Box::new(Status::method_not_allowed()).into()),
        };
        Ok(encode(resource, &answer))
    }

    fn who_am_i(&self, user: &Identity) -> Object {
        let now = format_timestamp(SystemTime::now().into(), Precision::Seconds);
        let metadata: Object = [("creationTimestamp", Value::from(now))].into_iter().collect();
        let status: Object = [("userInfo", Value::from(user_info(user)))].into_iter().collect();
        [("metadata", Value::from(metadata)), ("status", status.into())].into_iter().collect()
    }

    async fn whose_token(&self, mut question: Object) -> Result<Object, Box<Status>> {
        let spec = question.object("spec");
        let token = spec.and_then(|spec| spec.str("token")).unwrap_or_default();
        if token.is_empty() {
            return Err(Box::new(Status::bad_request("token is required for TokenReview in authentication")));
        }
        let audiences = spec.map(|spec| spec.array("audiences")).unwrap_or_default();
        let wanted: Vec<String> = audiences.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let now = SystemTime::now();
        let mut notes = AuthenticationNotes::default();
        let authenticator = &self.options.authenticator;
        let known = authenticator.authenticate_token(token, &wanted, now, &mut notes).await;
        let status: Object = match known {
            Ok(known) => [
                ("authenticated", Value::from(true)),
                ("user", user_info(&known.identity).into()),
                ("audiences", texts(&known.audiences)),
            ]
            .into_iter()
            .collect(),
            Err(Unauthenticated::NoCredentials) => Object::new(),
            Err(error) => [("error", Value::from(error.to_string()))].into_iter().collect(),
        };
        question.insert("status", status);
        Ok(question)
    }

    /// Whether `user` may do what is asked.
    async fn may(&self, user: &Identity, mut question: Object) -> Object {
        let mut problems = Vec::new();
        let explained = {
            let empty = Object::new();
            let spec = question.object("spec").unwrap_or(&empty);
            let asked = spec.object("resourceAttributes");
            let bare = spec.object("nonResourceAttributes").unwrap_or(&empty);
            let text = |name| asked.unwrap_or(bare).str(name).unwrap_or_default();
            let given = |name| Some(text(name)).filter(|text| !text.is_empty());
            let selectors = asked.and_then(selectors_of);
            let resource = asked.map(|asked| {
                problems = unread_selectors(asked);
                ResourceAttributes {
                    group: text("group"),
                    version: given("version").unwrap_or("*"),
                    resource: text("resource"),
                    subresource: given("subresource"),
                    namespace: given("namespace"),
                    name: given("name"),
                    selectors: selectors.as_ref(),
                }
            });
            let attributes = Attributes { user, verb: text("verb"), path: text("path"), resource };
            self.options.authorizer.explain(&attributes).await
        };
        let mut status = Object::new();
        let reason = match explained {
            Explanation::Allow(reason) => {
                status.insert("allowed", true);
                reason.into()
            }
            Explanation::Forbidden(NotAllowed { reason, is_denied, error }) => {
                status.insert("allowed", false);
                if is_denied {
                    status.insert("denied", true);
                }
                problems.splice(0..0, error);
                reason
            }
        };
        if !reason.is_empty() {
            status.insert("reason", &*reason);
        }
        if !problems.is_empty() {
            status.insert("evaluationError", problems.join("; "));
        }
        question.insert("status", status);
        question
    }

    /// All that `user` may do.
    fn what_may(&self, user: &Identity, question: &Object) -> Result<Object, Box<Status>> {
        let namespace = question.object("spec").and_then(|spec| spec.str("namespace")).unwrap_or_default();
        if namespace.is_empty() {
            return Err(Box::new(Status::bad_request("no namespace on request")));
        }
        let AccessRules { rules, is_incomplete, problem } = self.options.authorizer.rules_of(user, namespace);
        let shown = |rule: PolicyRule| Value::from(rule.to_object());
        let of_resources = rules.iter().filter(|rule| !rule.resources.is_empty());
        let of_resources = of_resources.map(|rule| shown(PolicyRule { paths: Vec::new(), ..rule.clone() }));
        let of_paths = rules.iter().filter(|rule| !rule.paths.is_empty());
        let of_paths = of_paths.map(|rule| {
            let (verbs, paths) = (rule.verbs.clone(), rule.paths.clone());
            shown(PolicyRule { verbs, paths, ..PolicyRule::default() })
        });
        let mut status: Object = [
            ("resourceRules", Value::from(of_resources.collect::<Vec<_>>())),
            ("nonResourceRules", of_paths.collect::<Vec<_>>().into()),
            ("incomplete", is_incomplete.into()),
        ]
        .into_iter()
        .collect();
        if !problem.is_empty() {
            status.insert("evaluationError", problem);
        }
        Ok([("status", Value::from(status))].into_iter().collect())
    }
}

/// The selectors that a review asks about, as far as they can be read.
fn selectors_of(asked: &Object) -> Option<Selectors> {
    let values = |term: &Object| -> Vec<String> {
        term.array("values").iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let terms = |name: &str| {
        let selector = asked.object(name);
        let terms = selector.map(|selector| selector.array("requirements")).unwrap_or_default();
        let raw = selector.and_then(|selector| selector.str("rawSelector")).unwrap_or_default();
        (terms.iter().filter_map(Value::as_object).collect::<Vec<_>>(), raw.to_owned())
    };
    let (fields, raw_fields) = terms("fieldSelector");
    let field = |term: &&Object| {
        let operator = match term.str("operator")? {
            "In" => FieldOperator::Equals,
            "NotIn" => FieldOperator::NotEquals,
            _ => return None,
        };
        let [value] = <[String; 1]>::try_from(values(term)).ok()?;
        Some(FieldTerm { field: term.str("key").unwrap_or_default().to_owned(), operator, value })
    };
    let (labels, raw_labels) = terms("labelSelector");
    let label = |term: &&Object| Requirement::new(term.str("key")?, label_operator(term)?, values(term)).ok();
    let selectors = Selectors {
        fields: match fields.is_empty() {
            true => raw_fields.parse().unwrap_or_default(),
            false => FieldSelector::new(fields.iter().filter_map(field).collect()),
        },
        labels: match labels.is_empty() {
            true => raw_labels.parse().unwrap_or_default(),
            false => LabelSelector::new(labels.iter().filter_map(label).collect()),
        },
    };
    (!selectors.is_everything()).then_some(selectors)
}

fn label_operator(term: &Object) -> Option<LabelOperator> {
    Some(match term.str("operator")? {
        "In" => LabelOperator::In,
        "NotIn" => LabelOperator::NotIn,
        "Exists" => LabelOperator::Exists,
        "DoesNotExist" => LabelOperator::DoesNotExist,
        _ => return None,
    })
}

/// What is said of selectors that cannot be read, or not all of them.
fn unread_selectors(asked: &Object) -> Vec<String> {
    let mut problems = Vec::new();
    let mut note = |name: &str, is_readable: &dyn Fn(&str) -> bool, is_term: &dyn Fn(&Object) -> bool| {
        let Some(selector) = asked.object(name) else { return };
        let terms = selector.array("requirements");
        let raw = selector.str("rawSelector").unwrap_or_default();
        let good = terms.iter().filter(|term| term.as_object().is_some_and(is_term)).count();
        let is_whole = if terms.is_empty() { raw.is_empty() || is_readable(raw) } else { good == terms.len() };
        if !is_whole {
            let how_much = if good > 0 { "partially ignored" } else { "ignored" };
            problems.push(format!("spec.resourceAttributes.{name} {how_much} due to parse error"));
        }
    };
    note("fieldSelector", &|raw| raw.parse::<FieldSelector>().is_ok(), &|term| {
        matches!(term.str("operator"), Some("In" | "NotIn")) && term.array("values").len() == 1
    });
    note("labelSelector", &|raw| raw.parse::<LabelSelector>().is_ok(), &|term| {
        let Some(operator) = label_operator(term) else { return false };
        let values = term.array("values").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Requirement::new(term.str("key").unwrap_or_default(), operator, values).is_ok()
    });
    problems
}

/// What is about a namespace is asked in it: there may be no other in the object. What is about none says none (upstream:
/// `EnsureObjectNamespaceMatchesRequestNamespace`).
pub(crate) fn take_namespace(question: &mut Object, namespace: Option<&str>) -> Result<(), Box<Status>> {
    let Some(namespace) = namespace else {
        if question.at(&["metadata", "namespace"]).is_some() {
            question.object_mut("metadata").remove("namespace");
        }
        return Ok(());
    };
    let metadata = question.object_mut("metadata");
    match metadata.str("namespace").unwrap_or_default() {
        "" => {
            metadata.insert("namespace", namespace);
            Ok(())
        }
        same if same == namespace => Ok(()),
        _ => {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            Err(Box::new(Status::bad_request(message)))
        }
    }
}

/// Whom a review of access is about.
fn subject(question: &Object) -> Identity {
    let empty = Object::new();
    let spec = question.object("spec").unwrap_or(&empty);
    let strings = |values: &[Value]| values.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    let extra = spec.object("extra").into_iter().flat_map(Object::iter);
    Identity::exactly(Claims {
        name: spec.str("user").unwrap_or_default().to_owned(),
        uid: spec.str("uid").map(str::to_owned),
        groups: strings(spec.array("groups")),
        extra: extra
            .map(|(key, values)| (key.to_lowercase(), strings(values.as_array().unwrap_or_default())))
            .collect(),
    })
}

fn user_info(user: &Identity) -> Object {
    let mut info = Object::new();
    info.insert("username", user.name());
    if let Some(uid) = user.uid() {
        info.insert("uid", uid);
    }
    if !user.groups().is_empty() {
        info.insert("groups", texts(user.groups()));
    }
    if !user.extra().is_empty() {
        info.insert("extra", user.extra().iter().map(|(key, values)| (&**key, texts(values))).collect::<Object>());
    }
    info
}

fn texts(texts: &[String]) -> Value {
    texts.iter().map(|text| Value::from(&**text)).collect::<Vec<_>>().into()
}

fn encode(resource: &Resource, object: &Object) -> Bytes {
    resource.encode(object).bytes.into()
}
