//! [`Status`]: the answer to a request that has no object to show, above all to one that failed.
//!
//! One constructor for each reason that the API knows, with the texts and codes of Kubernetes: clients branch on the
//! reason, people search for the text. Which error becomes which status is decided where errors are answered.
//!
//! However a status came about, it is brought within bounds when it is encoded, so no answer is forgotten.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bad_value::Quoted;
use crate::clip::{MAX_TEXT_BYTES, clip, clip_at};
use crate::field_error::{FieldError, aggregate_message};
use crate::field_errors::{MAX_FIELD_ERROR_BYTES, MAX_FIELD_ERRORS};

/// How long a message is: all errors of an invalid object fit in, with what stands around and between them.
const MAX_MESSAGE_BYTES: usize = MAX_FIELD_ERROR_BYTES + MAX_TEXT_BYTES;

/// How long each text of a cause is: an error has three parts, which are clipped already.
const MAX_CAUSE_BYTES: usize = 4 * MAX_TEXT_BYTES;

/// The outcome of a request, as an object of the kind `Status`.
///
/// ```
/// use revisor_object::{ResourceRef, Status};
///
/// let status = Status::not_found(ResourceRef { group: "apps", resource: "deployments" }, "web");
/// assert_eq!(status.message, "deployments.apps \"web\" not found");
/// assert_eq!(status.code(), 404);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    kind: Cow<'static, str>,
    api_version: Cow<'static, str>,
    /// Metadata of the answer.
    pub metadata: StatusMetadata,
    /// Whether the request succeeded.
    #[serde(skip_serializing_if = "is_empty")]
    pub status: Cow<'static, str>,
    /// What happened, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What happened, in one word for programs. Empty if there is no such word.
    #[serde(skip_serializing_if = "is_empty")]
    pub reason: Cow<'static, str>,
    /// What it happened to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// The HTTP status, or zero if the body does not carry one. Read it through [`Status::code`].
    #[serde(skip_serializing_if = "is_zero_code")]
    pub code: u16,
}

/// Metadata of a [`Status`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusMetadata {
    /// Where a list can be resumed whose snapshot is gone.
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    pub continue_token: String,
}

/// What a [`Status`] is about. Empty fields say nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// The name of the object, or for a server timeout the operation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group of the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The plural of the resource or, for invalid objects, the kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The uid of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Every fault by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// When to try again. Zero if nothing is said about that.
    #[serde(skip_serializing_if = "is_zero_seconds")]
    pub retry_after_seconds: u32,
}

/// One fault among those that a [`Status`] lists.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// The sort of fault, in one word for programs.
    #[serde(skip_serializing_if = "is_empty")]
    pub reason: Cow<'static, str>,
    /// The fault, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field at fault.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// A resource as messages name it: `deployments.apps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceRef<'a> {
    /// The API group, empty for the core group.
    pub group: &'a str,
    /// The plural.
    pub resource: &'a str,
}

/// A kind as messages name it: `Deployment.apps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KindRef<'a> {
    /// The API group, empty for the core group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
}

impl fmt::Display for ResourceRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, self.resource, self.group)
    }
}

impl fmt::Display for KindRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, self.kind, self.group)
    }
}

fn write_qualified(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    if group.is_empty() { f.write_str(name) } else { write!(f, "{name}.{group}") }
}

fn is_empty(text: &str) -> bool {
    text.is_empty()
}

fn is_zero_code(code: &u16) -> bool {
    *code == 0
}

fn is_zero_seconds(seconds: &u32) -> bool {
    *seconds == 0
}

impl Default for Status {
    /// A failure of which nothing is known.
    fn default() -> Status {
        Status {
            kind: Cow::Borrowed("Status"),
            api_version: Cow::Borrowed("v1"),
            metadata: StatusMetadata::default(),
            status: Cow::Borrowed("Failure"),
            message: String::new(),
            reason: Cow::Borrowed(""),
            details: None,
            code: 0,
        }
    }
}

impl StatusDetails {
    fn of_resource(resource: ResourceRef<'_>, name: &str) -> StatusDetails {
        StatusDetails {
            name: name.to_owned(),
            group: resource.group.to_owned(),
            kind: resource.resource.to_owned(),
            ..StatusDetails::default()
        }
    }

    fn retry_after(seconds: u32) -> StatusDetails {
        StatusDetails { retry_after_seconds: seconds, ..StatusDetails::default() }
    }

    fn is_bounded(&self) -> bool {
        let names = [&self.name, &self.group, &self.kind, &self.uid];
        let texts = self.causes.iter().flat_map(|cause| [&cause.message, &cause.field]);
        names.into_iter().all(|name| name.len() <= MAX_TEXT_BYTES)
            && texts.into_iter().all(|text| text.len() <= MAX_CAUSE_BYTES)
            && self.bounded_causes() == self.causes.len()
    }

    fn bounded(mut self) -> StatusDetails {
        for name in [&mut self.name, &mut self.group, &mut self.kind, &mut self.uid] {
            *name = clip(std::mem::take(name));
        }
        for cause in &mut self.causes {
            for text in [&mut cause.message, &mut cause.field] {
                *text = clip_at(std::mem::take(text), MAX_CAUSE_BYTES);
            }
        }
        let kept = self.bounded_causes();
        let more = self.causes.len() - kept;
        if more > 0 {
            self.causes.truncate(kept);
            self.causes.push(FieldError::left_out(more).cause());
        }
        self
    }

    /// How many of the causes may be told. Those of an invalid object all may, with the one that counts the others.
    fn bounded_causes(&self) -> usize {
        let mut bytes = 0;
        let fits = |cause: &&StatusCause| {
            bytes += cause.message.len() + cause.field.len();
            bytes <= MAX_MESSAGE_BYTES
        };
        self.causes.iter().take(MAX_FIELD_ERRORS + 1).take_while(fits).count()
    }
}

/// Answers about one resource or object.
/// What a client is told when the snapshot of its paged list is gone. With the token that comes with it, the list goes on
/// with the newest state.
pub const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You \
    can start a new list without the continue parameter, or use the continue token in this response to retrieve the \
    remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
    created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

impl Status {
    fn failure(code: u16, reason: &'static str, message: impl Into<String>) -> Status {
        Status { code, reason: Cow::Borrowed(reason), message: message.into(), ..Status::default() }
    }

    fn with_details(self, details: StatusDetails) -> Status {
        Status { details: Some(details), ..self }
    }

    /// The request did what it asked for. The body carries no code, as in Kubernetes.
    pub fn success(details: StatusDetails) -> Status {
        Status { status: Cow::Borrowed("Success"), details: Some(details), ..Status::default() }
    }

    /// There is no such object.
    pub fn not_found(resource: ResourceRef<'_>, name: &str) -> Status {
        Status::failure(404, "NotFound", format!("{resource} {} not found", Quoted(name)))
            .with_details(StatusDetails::of_resource(resource, name))
    }

    /// There is such an object already.
    pub fn already_exists(resource: ResourceRef<'_>, name: &str) -> Status {
        Status::failure(409, "AlreadyExists", format!("{resource} {} already exists", Quoted(name)))
            .with_details(StatusDetails::of_resource(resource, name))
    }

    /// Every generated name that was tried is taken.
    pub fn generate_name_conflict(resource: ResourceRef<'_>, name: &str, retry_after_seconds: u32) -> Status {
        let message = format!(
            "{resource} {} already exists, the server was not able to generate a unique name for the object",
            Quoted(name)
        );
        Status::failure(409, "AlreadyExists", message)
            .with_details(StatusDetails { retry_after_seconds, ..StatusDetails::of_resource(resource, name) })
    }

    /// The object is not in the state that the request expects.
    pub fn conflict(resource: ResourceRef<'_>, name: &str, why: impl fmt::Display) -> Status {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", Quoted(name));
        Status::failure(409, "Conflict", message).with_details(StatusDetails::of_resource(resource, name))
    }

    /// An apply asks for fields that others own.
    pub fn apply_conflict(causes: Vec<StatusCause>, message: impl Into<String>) -> Status {
        Status::failure(409, "Conflict", message).with_details(StatusDetails { causes, ..StatusDetails::default() })
    }

    /// The object breaks rules. Each error becomes a cause.
    pub fn invalid(kind: KindRef<'_>, name: &str, errors: &[FieldError]) -> Status {
        let mut message = format!("{kind} {} is invalid", Quoted(name));
        if !errors.is_empty() {
            message.push_str(": ");
            message.push_str(&aggregate_message(errors));
        }
        Status::failure(422, "Invalid", message).with_details(StatusDetails {
            name: name.to_owned(),
            group: kind.group.to_owned(),
            kind: kind.kind.to_owned(),
            causes: errors.iter().map(FieldError::cause).collect(),
            ..StatusDetails::default()
        })
    }

    /// The client may not do this. Without a resource the message is about the request as such, without a name about
    /// the resource.
    pub fn forbidden(resource: ResourceRef<'_>, name: &str, why: impl fmt::Display) -> Status {
        let message = if resource == ResourceRef::default() {
            format!("forbidden: {why}")
        } else if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} {} is forbidden: {why}", Quoted(name))
        };
        Status::failure(403, "Forbidden", message).with_details(StatusDetails::of_resource(resource, name))
    }

    /// The resource exists but does not know this action.
    pub fn method_not_supported(resource: ResourceRef<'_>, action: &str) -> Status {
        let message = format!("{action} is not supported on resources of kind {}", Quoted(&resource.to_string()));
        Status::failure(405, "MethodNotAllowed", message).with_details(StatusDetails::of_resource(resource, ""))
    }

    /// The operation failed for a reason that will pass.
    pub fn server_timeout(resource: ResourceRef<'_>, operation: &str, retry_after_seconds: u32) -> Status {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        // Code 500 and not 504: clients know it by its reason.
        Status::failure(500, "ServerTimeout", message)
            .with_details(StatusDetails { retry_after_seconds, ..StatusDetails::of_resource(resource, operation) })
    }
}

/// Answers about the request as such.
impl Status {
    /// The path names no resource that is served.
    pub fn no_such_resource() -> Status {
        Status::failure(404, "NotFound", "the server could not find the requested resource")
            .with_details(StatusDetails::default())
    }

    /// The path does not know this HTTP method.
    pub fn method_not_allowed() -> Status {
        Status::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_details(StatusDetails::default())
    }

    /// The request cannot be understood.
    pub fn bad_request(why: impl Into<String>) -> Status {
        Status::failure(400, "BadRequest", why)
    }

    /// The client did not prove who it is.
    pub fn unauthorized(why: impl Into<String>) -> Status {
        let why = why.into();
        Status::failure(401, "Unauthorized", if why.is_empty() { "not authorized".to_owned() } else { why })
    }

    /// None of the encodings that the client accepts is on offer.
    pub fn not_acceptable(offered: &[&str]) -> Status {
        let message = format!("only the following media types are accepted: {}", offered.join(", "));
        Status::failure(406, "NotAcceptable", message)
    }

    /// The body is in an encoding that is not understood.
    pub fn unsupported_media_type(understood: &[&str]) -> Status {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            understood.join(", ")
        );
        Status::failure(415, "UnsupportedMediaType", message)
    }

    /// The body is too large.
    pub fn request_entity_too_large(why: impl fmt::Display) -> Status {
        Status::failure(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
    }

    /// The server has more to do than it can, or than this client may ask for.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Status {
        Status::failure(429, "TooManyRequests", message).with_details(StatusDetails::retry_after(retry_after_seconds))
    }

    /// The request took too long. What it asked for may still happen.
    pub fn timeout(message: impl fmt::Display, retry_after_seconds: u32) -> Status {
        Status::failure(504, "Timeout", format!("Timeout: {message}"))
            .with_details(StatusDetails::retry_after(retry_after_seconds))
    }

    /// The request asks for a state that the server has not reached.
    pub fn too_large_resource_version(asked: u64, current: u64, retry_after_seconds: u32) -> Status {
        let cause = StatusCause {
            reason: Cow::Borrowed("ResourceVersionTooLarge"),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let details = StatusDetails { causes: vec![cause], ..StatusDetails::retry_after(retry_after_seconds) };
        Status::timeout(format_args!("Too large resource version: {asked}, current: {current}"), 0)
            .with_details(details)
    }

    /// The request asks for a state that the server no longer has.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::failure(410, "Expired", message)
    }

    /// What the request asks for is gone and will not come back.
    pub fn gone(message: impl Into<String>) -> Status {
        Status::failure(410, "Gone", message)
    }

    /// The server failed and the client is not to blame.
    pub fn internal_error(error: impl fmt::Display) -> Status {
        let error = error.to_string();
        let message = format!("Internal error occurred: {error}");
        let cause = StatusCause { message: error, ..StatusCause::default() };
        Status::failure(500, "InternalError", message)
            .with_details(StatusDetails { causes: vec![cause], ..StatusDetails::default() })
    }

    /// The server failed in a way that has no word for programs.
    pub fn unexplained(message: impl Into<String>) -> Status {
        Status::failure(500, "", message)
    }

    /// The server keeps as much as it may. To ask again does not help, to delete does.
    pub fn insufficient_storage(why: impl Into<String>) -> Status {
        Status::failure(507, "InsufficientStorage", why)
    }

    /// A service that the request needs does not answer.
    pub fn service_unavailable(why: impl Into<String>) -> Status {
        Status::failure(503, "ServiceUnavailable", why)
    }
}

impl Status {
    /// The HTTP status of the answer.
    pub fn code(&self) -> u16 {
        match self.code {
            0 if self.is_success() => 200,
            0 => 500,
            code => code,
        }
    }

    /// Whether the request did what it asked for.
    pub fn is_success(&self) -> bool {
        self.status == "Success"
    }

    /// After how many seconds the client should try again, if that is said.
    pub fn retry_after(&self) -> Option<u32> {
        let seconds = self.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then_some(seconds)
    }

    /// The body of the answer in JSON, fields in the order in which Kubernetes writes them.
    pub fn to_json(&self) -> Vec<u8> {
        let bounded: Cow<'_, Status> =
            if self.is_bounded() { Cow::Borrowed(self) } else { Cow::Owned(self.clone().bounded()) };
        serde_json::to_vec(&*bounded).expect("a struct of texts and numbers always has a form in JSON")
    }

    fn is_bounded(&self) -> bool {
        self.message.len() <= MAX_MESSAGE_BYTES && self.details.as_ref().is_none_or(StatusDetails::is_bounded)
    }

    /// The status as far as it may be told.
    fn bounded(self) -> Status {
        let message = clip_at(self.message, MAX_MESSAGE_BYTES);
        Status { message, details: self.details.map(StatusDetails::bounded), ..self }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests;
