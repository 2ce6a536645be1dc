//! Questions that are answered and not stored: who somebody is, and what they may do. What may be asked is the
//! catalog's; the answers come from those who know: the authenticator and the authorizer.

use std::time::SystemTime;

use bytes::Bytes;
use revisor_auth::{Attributes, Claims, Decision, Identity, ResourceAttributes};
use revisor_catalog::{ObjectRoute, Resource};
use revisor_object::{KindRef, Object, Status, Value};
use revisor_schema::{Precision, format_timestamp};

use crate::Api;

impl Api {
    /// The answer to a question, in the shape of the question.
    pub(crate) fn review(
        &self,
        route: &ObjectRoute,
        user: &Identity,
        mut question: Object,
    ) -> Result<Bytes, Box<Status>> {
        let resource = &route.resource;
        take_namespace(&mut question, route.namespace.as_deref())?;
        let errors = resource.strategy.validate(&question);
        if !errors.is_empty() {
            // As in the original, such a refusal does not name the kind.
            return Err(Box::new(Status::invalid(KindRef { group: &resource.group, kind: "" }, "", &errors)));
        }
        let answer = match resource.plural.as_str() {
            "selfsubjectreviews" => self.who_am_i(user),
            "tokenreviews" => self.whose_token(question)?,
            "selfsubjectaccessreviews" => self.may(user, question),
            "subjectaccessreviews" | "localsubjectaccessreviews" => self.may(&subject(&question), question),
            "selfsubjectrulesreviews" => self.what_may(user, &question)?,
            _ => return Err(Box::new(Status::method_not_allowed())),
        };
        Ok(encode(resource, &answer))
    }

    fn who_am_i(&self, user: &Identity) -> Object {
        let now = format_timestamp(SystemTime::now().into(), Precision::Seconds);
        let metadata: Object = [("creationTimestamp", Value::from(now))].into_iter().collect();
        let status: Object = [("userInfo", Value::from(user_info(user)))].into_iter().collect();
        [("metadata", Value::from(metadata)), ("status", status.into())].into_iter().collect()
    }

    fn whose_token(&self, mut question: Object) -> Result<Object, Box<Status>> {
        let spec = question.object("spec");
        let token = spec.and_then(|spec| spec.str("token")).unwrap_or_default();
        if token.is_empty() {
            return Err(Box::new(Status::bad_request("token is required for TokenReview in authentication")));
        }
        let audiences = spec.map(|spec| spec.array("audiences")).unwrap_or_default();
        let wanted: Vec<String> = audiences.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let now = SystemTime::now();
        let status: Object = match self.options.authenticator.authenticate_token(token.as_bytes(), &wanted, now) {
            Ok(known) => [
                ("authenticated", Value::from(true)),
                ("user", user_info(&known.identity).into()),
                ("audiences", texts(&known.audiences)),
            ]
            .into_iter()
            .collect(),
            Err(error) => [("error", Value::from(error.to_string()))].into_iter().collect(),
        };
        question.insert("status", status);
        Ok(question)
    }

    /// Whether `user` may do what is asked.
    fn may(&self, user: &Identity, mut question: Object) -> Object {
        let decision = {
            let empty = Object::new();
            let spec = question.object("spec").unwrap_or(&empty);
            let given = |object: &Object, name| object.str(name).filter(|text| !text.is_empty()).map(str::to_owned);
            match spec.object("resourceAttributes") {
                Some(asked) => {
                    let text = |name| asked.str(name).unwrap_or_default();
                    let (namespace, name, subresource) =
                        (given(asked, "namespace"), given(asked, "name"), given(asked, "subresource"));
                    let resource = ResourceAttributes {
                        group: text("group"),
                        version: text("version"),
                        resource: text("resource"),
                        subresource: subresource.as_deref(),
                        namespace: namespace.as_deref(),
                        name: name.as_deref(),
                    };
                    let attributes = Attributes { user, verb: text("verb"), path: "", resource: Some(resource) };
                    self.options.authorizer.authorize(&attributes)
                }
                None => {
                    let asked = spec.object("nonResourceAttributes").unwrap_or(&empty);
                    let text = |name| asked.str(name).unwrap_or_default();
                    let attributes = Attributes { user, verb: text("verb"), path: text("path"), resource: None };
                    self.options.authorizer.authorize(&attributes)
                }
            }
        };
        let mut status = Object::new();
        status.insert("allowed", decision == Decision::Allow);
        if let Decision::Forbidden { reason } = decision
            && !reason.is_empty()
        {
            status.insert("reason", reason.into_owned());
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
        let rules = self.options.authorizer.rules_of(user);
        let of_resources = rules.resources.iter().map(|rule| {
            let members = [
                ("verbs", texts(&rule.verbs)),
                ("apiGroups", texts(&rule.groups)),
                ("resources", texts(&rule.resources)),
            ];
            Value::from(members.into_iter().collect::<Object>())
        });
        let of_paths = rules.paths.iter().map(|rule| {
            let members = [("verbs", texts(&rule.verbs)), ("nonResourceURLs", texts(&rule.paths))];
            Value::from(members.into_iter().collect::<Object>())
        });
        let status: Object = [
            ("resourceRules", Value::from(of_resources.collect::<Vec<_>>())),
            ("nonResourceRules", of_paths.collect::<Vec<_>>().into()),
            ("incomplete", false.into()),
        ]
        .into_iter()
        .collect();
        Ok([("status", Value::from(status))].into_iter().collect())
    }
}

/// What is about a namespace is asked in it: there may be no other in the object.
pub(crate) fn take_namespace(question: &mut Object, namespace: Option<&str>) -> Result<(), Box<Status>> {
    let Some(namespace) = namespace else { return Ok(()) };
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
