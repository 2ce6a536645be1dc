//! What is written of a request at one stage: an `Event` of `audit.k8s.io/v1`, as JSON or as the one line of the older
//! form. Members come in the original's order.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::time::SystemTime;

use bytes::Bytes;
use revisor_auth::Identity;
use revisor_object::{Status, StatusDetails};
use time::OffsetDateTime;

use crate::{Level, Stage};

/// What every event begins with, in a log; in a list it is left out.
pub(crate) const TYPE: &str = r#""kind":"Event","apiVersion":"audit.k8s.io/v1","#;

/// The annotation of an event from which objects were left out because it was too large.
pub(crate) const TRUNCATED: &str = "audit.k8s.io/truncated";

/// What is known of a request when it comes.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) level: Level,
    pub(crate) audit_id: String,
    pub(crate) uri: String,
    pub(crate) verb: String,
    pub(crate) user: Identity,
    pub(crate) source_ips: Vec<IpAddr>,
    pub(crate) user_agent: String,
    pub(crate) received: SystemTime,
}

/// What is found out while it is served.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) object: Option<ObjectReference>,
    pub(crate) impersonated: Option<Identity>,
    pub(crate) constraint: Option<String>,
    pub(crate) status: Option<ResponseStatus>,
    pub(crate) request_object: Option<Bytes>,
    pub(crate) response_object: Option<Bytes>,
    pub(crate) annotations: Vec<(String, String)>,
}

/// What a request is about. Empty members are not known.
#[derive(Debug, Default, Clone)]
pub(crate) struct ObjectReference {
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource_version: String,
    pub(crate) subresource: String,
}

/// How a request was answered.
#[derive(Debug, Default, Clone)]
pub(crate) struct ResponseStatus {
    pub(crate) status: String,
    pub(crate) message: String,
    pub(crate) reason: String,
    pub(crate) details: Option<StatusDetails>,
    pub(crate) code: u16,
}

impl ResponseStatus {
    pub(crate) fn of(status: &Status) -> ResponseStatus {
        ResponseStatus {
            status: status.status.to_string(),
            message: status.message.clone(),
            reason: status.reason.to_string(),
            details: status.details.clone(),
            code: status.code,
        }
    }
}

/// An event, as it can be written.
pub(crate) struct Event<'a> {
    pub(crate) head: &'a Head,
    pub(crate) findings: &'a Findings,
    pub(crate) stage: Stage,
    pub(crate) at: SystemTime,
}

impl Event<'_> {
    /// All of it in JSON but the opening brace and its kind; without objects if it is too large with them.
    pub(crate) fn members(&self, is_truncated: bool) -> Vec<u8> {
        let Event { head, findings, stage, at } = self;
        let mut out = Members(Vec::with_capacity(1024));
        out.text("level", head.level.name());
        out.text("auditID", &head.audit_id);
        out.text("stage", stage.name());
        out.text("requestURI", &head.uri);
        out.text("verb", &head.verb);
        out.user("user", &head.user);
        if let Some(impersonated) = &findings.impersonated {
            out.user("impersonatedUser", impersonated);
        }
        if let Some(constraint) = &findings.constraint {
            out.object("authenticationMetadata", |out| out.text("impersonationConstraint", constraint));
        }
        if !head.source_ips.is_empty() {
            out.name("sourceIPs");
            out.json(&head.source_ips);
        }
        out.given("userAgent", &head.user_agent);
        if let Some(object) = &findings.object {
            out.object("objectRef", |out| {
                out.given("resource", &object.resource);
                out.given("namespace", &object.namespace);
                out.given("name", &object.name);
                out.given("uid", &object.uid);
                out.given("apiGroup", &object.group);
                out.given("apiVersion", &object.version);
                out.given("resourceVersion", &object.resource_version);
                out.given("subresource", &object.subresource);
            });
        }
        if let Some(status) = &findings.status {
            out.object("responseStatus", |out| {
                out.object("metadata", |_| ());
                out.given("status", &status.status);
                out.given("message", &status.message);
                out.given("reason", &status.reason);
                if let Some(details) = &status.details {
                    out.name("details");
                    out.json(details);
                }
                if status.code != 0 {
                    out.name("code");
                    out.json(&status.code);
                }
            });
        }
        for (name, object) in
            [("requestObject", &findings.request_object), ("responseObject", &findings.response_object)]
        {
            if let Some(object) = object.as_ref().filter(|_| !is_truncated) {
                out.name(name);
                out.0.extend_from_slice(object);
            }
        }
        out.text("requestReceivedTimestamp", &timestamp(head.received));
        out.text("stageTimestamp", &timestamp(if *stage == Stage::RequestReceived { head.received } else { *at }));
        if !findings.annotations.is_empty() || is_truncated {
            out.object("annotations", |out| {
                findings.annotations.iter().for_each(|(key, value)| out.text(key, value));
                if is_truncated {
                    out.text(TRUNCATED, "true");
                }
            });
        }
        out.0.push(b'}');
        out.0
    }

    /// The one line of the older form.
    pub(crate) fn line(&self) -> String {
        let Event { head, findings, stage, .. } = self;
        let groups = |groups: &[String]| groups.iter().map(|group| format!("{group:?}")).collect::<Vec<_>>().join(",");
        let own_groups = if head.user.groups().is_empty() { "<none>".to_owned() } else { groups(head.user.groups()) };
        let impersonated = findings.impersonated.as_ref();
        let namespace = findings.object.as_ref().map(|object| object.namespace.as_str());
        let response =
            findings.status.as_ref().map_or_else(|| "<deferred>".to_owned(), |status| status.code.to_string());
        let address = head.source_ips.first().map_or_else(|| "<unknown>".to_owned(), IpAddr::to_string);
        let mut line = String::new();
        let _ = writeln!(
            line,
            "{} AUDIT: id={:?} stage={:?} ip={:?} method={:?} user={:?} groups={:?} as={:?} asgroups={:?} user-agent={:?} \
             namespace={:?} uri={:?} response={response:?}",
            timestamp(head.received),
            head.audit_id,
            stage.name(),
            address,
            head.verb,
            if head.user.name().is_empty() { "<none>" } else { head.user.name() },
            own_groups,
            impersonated.map_or("<self>", |user| user.name()),
            impersonated.map_or_else(|| "<lookup>".to_owned(), |user| groups(user.groups())),
            head.user_agent,
            namespace.filter(|namespace| !namespace.is_empty()).unwrap_or("<none>"),
            head.uri,
        );
        line
    }
}

/// The members of an object in JSON, behind its opening brace.
struct Members(Vec<u8>);

impl Members {
    fn name(&mut self, name: &str) {
        if !matches!(self.0.last(), None | Some(b'{')) {
            self.0.push(b',');
        }
        self.json(name);
        self.0.push(b':');
    }

    fn json(&mut self, value: &(impl serde::Serialize + ?Sized)) {
        // Writing to memory does not fail, and what is written has a form in JSON.
        let _ = serde_json::to_writer(&mut self.0, value);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        self.json(text);
    }

    /// A text that is left out if there is none.
    fn given(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.text(name, text);
        }
    }

    fn object(&mut self, name: &str, fill: impl FnOnce(&mut Members)) {
        self.name(name);
        self.0.push(b'{');
        fill(self);
        self.0.push(b'}');
    }

    fn user(&mut self, name: &str, user: &Identity) {
        self.object(name, |out| {
            out.given("username", user.name());
            out.given("uid", user.uid().unwrap_or_default());
            if !user.groups().is_empty() {
                out.name("groups");
                out.json(user.groups());
            }
            if !user.extra().is_empty() {
                out.object("extra", |out| {
                    for (key, values) in user.extra() {
                        out.name(key);
                        out.json(values);
                    }
                });
            }
        });
    }
}

/// A time with microseconds, as events have it.
fn timestamp(time: SystemTime) -> String {
    let time = OffsetDateTime::from(time);
    let mut text = Vec::with_capacity(32);
    let _ = write!(
        text,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.microsecond()
    );
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use revisor_auth::Claims;

    use super::*;

    #[test]
    fn events_are_what_readers_of_the_original_expect() {
        let received = SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_042);
        let user = Identity::exactly(Claims {
            name: "bob".to_owned(),
            uid: Some("u".to_owned()),
            groups: vec!["g".to_owned()],
            extra: vec![("k".to_owned(), vec!["v".to_owned()])],
        });
        let head = Head {
            level: Level::RequestResponse,
            audit_id: "id".to_owned(),
            uri: "/api/v1/pods?a=\"b\"".to_owned(),
            verb: "create".to_owned(),
            user,
            source_ips: vec![[127, 0, 0, 1].into()],
            user_agent: "me/1".to_owned(),
            received,
        };
        let findings = Findings {
            object: Some(ObjectReference { resource: "pods".to_owned(), name: "p".to_owned(), ..Default::default() }),
            status: Some(ResponseStatus { code: 201, ..ResponseStatus::default() }),
            request_object: Some(Bytes::from_static(b"{\"a\":1}")),
            annotations: vec![("key".to_owned(), "value".to_owned())],
            ..Findings::default()
        };
        let at = received + Duration::from_millis(1);
        let event = Event { head: &head, findings: &findings, stage: Stage::ResponseComplete, at };
        let members = String::from_utf8(event.members(false)).expect("text");
        assert_eq!(
            members,
            r#""level":"RequestResponse","auditID":"id","stage":"ResponseComplete","requestURI":"/api/v1/pods?a=\"b\"","#
                .to_owned()
                + r#""verb":"create","user":{"username":"bob","uid":"u","groups":["g"],"extra":{"k":["v"]}},"#
                + r#""sourceIPs":["127.0.0.1"],"userAgent":"me/1","objectRef":{"resource":"pods","name":"p"},"#
                + r#""responseStatus":{"metadata":{},"code":201},"requestObject":{"a":1},"#
                + r#""requestReceivedTimestamp":"2023-11-14T22:13:20.000042Z","#
                + r#""stageTimestamp":"2023-11-14T22:13:20.001042Z","annotations":{"key":"value"}}"#
        );
        let truncated = String::from_utf8(event.members(true)).expect("text");
        assert!(!truncated.contains("requestObject") && truncated.contains(r#""audit.k8s.io/truncated":"true""#));
        assert_eq!(
            event.line(),
            "2023-11-14T22:13:20.000042Z AUDIT: id=\"id\" stage=\"ResponseComplete\" ip=\"127.0.0.1\" method=\"create\" \
             user=\"bob\" groups=\"\\\"g\\\"\" as=\"<self>\" asgroups=\"<lookup>\" user-agent=\"me/1\" namespace=\"<none>\" \
             uri=\"/api/v1/pods?a=\\\"b\\\"\" response=\"201\"\n"
        );
    }
}
