//! [`AuditRecord`]: what is found out about one request, until it was answered.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use revisor_auth::{Attributes, Identity};
use revisor_object::{Object, Status, Value, parse_json};

use crate::event::{Event, Findings, Head, ObjectReference, ResponseStatus};
use crate::{Auditor, Level, RequestAudit, Stage, Submitted};

/// The largest object that an event holds. A larger one is left out, as a larger event is that has to be truncated.
pub const MAX_OBJECT: usize = 16 << 20;

/// How many annotations an event has at most; more than all plugins and a thousand policies make.
const MAX_ANNOTATIONS: usize = 1024;

/// The longest name of a program that is written down.
const MAX_USER_AGENT: usize = 1024;

/// What is known of a request when it comes.
#[derive(Debug)]
pub struct AuditedRequest<'a> {
    /// Who asks for what.
    pub attributes: &'a Attributes<'a>,
    /// By what the request is known.
    pub audit_id: &'a str,
    /// Its path and query.
    pub uri: String,
    /// What the program calls itself.
    pub user_agent: &'a str,
    /// Where it comes from: what proxies say, and then the address that is sure.
    pub source_ips: Vec<IpAddr>,
    /// When it came.
    pub received: SystemTime,
}

/// A request that is written down. Clones are the same.
#[derive(Debug, Clone)]
pub struct AuditRecord(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    auditor: Arc<Auditor>,
    audit: RequestAudit,
    head: Head,
    findings: Mutex<Findings>,
}

impl AuditRecord {
    pub(crate) fn new(auditor: Arc<Auditor>, audit: RequestAudit, request: AuditedRequest<'_>) -> AuditRecord {
        let attributes = request.attributes;
        let object = attributes.resource.map(|target| ObjectReference {
            resource: target.resource.to_owned(),
            namespace: target.namespace.unwrap_or_default().to_owned(),
            name: target.name.unwrap_or_default().to_owned(),
            group: target.group.to_owned(),
            version: target.version.to_owned(),
            subresource: target.subresource.unwrap_or_default().to_owned(),
            ..ObjectReference::default()
        });
        let agent = request.user_agent;
        let cut = agent.floor_char_boundary(MAX_USER_AGENT);
        let suffix = if cut < agent.len() { "...TRUNCATED" } else { "" };
        let head = Head {
            level: audit.level,
            audit_id: request.audit_id.to_owned(),
            uri: request.uri,
            verb: attributes.verb.to_owned(),
            user: attributes.user.clone(),
            source_ips: request.source_ips,
            user_agent: format!("{}{suffix}", &agent[..cut]),
            received: request.received,
        };
        let findings = Mutex::new(Findings { object, ..Findings::default() });
        AuditRecord(Arc::new(Inner { auditor, audit, head, findings }))
    }

    /// How much is written of it.
    pub fn level(&self) -> Level {
        self.0.audit.level
    }

    fn findings(&self) -> MutexGuard<'_, Findings> {
        self.0.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something. What was noted first stays.
    pub fn annotate(&self, key: &str, value: &str) {
        let annotations = &mut self.findings().annotations;
        if annotations.len() < MAX_ANNOTATIONS && !annotations.iter().any(|(known, _)| known == key) {
            annotations.push((key.to_owned(), value.to_owned()));
        }
    }

    /// The user acts as somebody else, within this constraint, if there is one.
    pub fn impersonates(&self, user: &Identity, constraint: Option<String>) {
        let mut findings = self.findings();
        findings.impersonated = Some(user.clone());
        findings.constraint = constraint;
    }

    /// The metadata of the object that was sent; what the request itself did not say is completed from it.
    pub fn sent_metadata(&self, object: &Object) {
        let text = |name: &str| object.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default();
        let mut findings = self.findings();
        let reference = findings.object.get_or_insert_default();
        for (known, said) in [
            (&mut reference.namespace, text("namespace")),
            (&mut reference.name, text("name")),
            (&mut reference.uid, text("uid")),
            (&mut reference.resource_version, text("resourceVersion")),
        ] {
            if known.is_empty() {
                known.push_str(said);
            }
        }
    }

    /// Whether what was sent is written down.
    pub fn wants_request(&self) -> bool {
        self.level() >= Level::Request
    }

    /// Whether what was answered is written down.
    pub fn wants_response(&self) -> bool {
        self.level() >= Level::RequestResponse
    }

    /// What was sent, in JSON.
    pub fn sent(&self, json: Bytes) {
        if self.wants_request() {
            let object = self.fitting(json);
            self.findings().request_object = object;
        }
    }

    /// What was answered, in JSON.
    pub fn answered(&self, json: Bytes) {
        if self.wants_response() {
            let object = self.fitting(json);
            self.findings().response_object = object;
        }
    }

    /// The answer is more than is written down.
    pub fn too_large(&self) {
        self.annotate(crate::event::TRUNCATED, "true");
    }

    /// An answer that says how it went.
    pub fn answered_status(&self, status: &Status) {
        self.findings().status = Some(ResponseStatus::of(status));
        if self.wants_response() {
            self.answered(status.to_json().into());
        }
    }

    /// The code of the answer.
    pub fn answered_code(&self, code: u16) {
        self.findings().status.get_or_insert_default().code = code;
    }

    /// Nobody was answered.
    pub fn unanswered(&self) {
        let status = &mut self.findings().status;
        if status.is_none() {
            let (outcome, message) = ("Success".to_owned(), "Connection closed early".to_owned());
            *status = Some(ResponseStatus { status: outcome, message, code: 200, ..ResponseStatus::default() });
        }
    }

    /// Serving it ended in a panic.
    pub fn panicked(&self) {
        let (outcome, reason) = ("Failure".to_owned(), "InternalError".to_owned());
        let message = "APIServer panic'd".to_owned();
        self.findings().status =
            Some(ResponseStatus { status: outcome, message, reason, code: 500, ..ResponseStatus::default() });
    }

    /// Writes down what is known at this stage.
    pub fn reach(&self, stage: Stage) -> Submitted {
        let Inner { auditor, audit, head, .. } = &*self.0;
        if audit.omit_stages.contains(stage) {
            return Submitted::Done(true);
        }
        let findings = self.findings();
        auditor.submit(&Event { head, findings: &findings, stage, at: SystemTime::now() })
    }

    /// An object as it is written: on one line, without managed fields if they are not wanted, and not too large.
    fn fitting(&self, json: Bytes) -> Option<Bytes> {
        let omits = self.0.audit.omit_managed_fields;
        if json.len() > MAX_OBJECT {
            self.too_large();
            return None;
        }
        let is_one_line = !json.trim_ascii_end().contains(&b'\n');
        if !omits && is_one_line {
            let length = json.trim_ascii_end().len();
            return Some(json.slice(..length)).filter(|json| !json.is_empty());
        }
        let mut value = parse_json(&json).ok()?.value;
        if omits && let Some(object) = value.as_object_mut() {
            forget_managers(object);
        }
        Some(value.to_json().into())
    }
}

fn forget_managers(object: &mut Object) {
    fn forget(object: &mut Object) {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
    forget(object);
    for item in object.array_mut("items").into_iter().flatten().filter_map(Value::as_object_mut) {
        forget(item);
    }
    for row in object.array_mut("rows").into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(object) = row.get_mut("object").and_then(Value::as_object_mut) {
            forget(object);
        }
    }
}
