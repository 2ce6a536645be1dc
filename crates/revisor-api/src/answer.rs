//! What is around an answer, and which `Status` an error is: the one place that decides HTTP statuses (invariant A1). How
//! answers are written is decided by their representation.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, WARNING, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, Response, StatusCode};
use revisor_catalog::Resource;
use revisor_object::{FieldError, KindRef, ResourceRef, Status, StatusCause, StatusDetails, Warnings};
use revisor_registry::RegistryError;
use revisor_store::StoreError;
use revisor_version::Revision;

use crate::encoding::Encoding;
use crate::{Body, pretty};

/// How long a client is told to wait where nothing better is known.
const RETRY_SECONDS: u32 = 1;

/// Says at which version of the state a read was served. Beyond the original.
pub(crate) const SERVED_AT: HeaderName = HeaderName::from_static("servedatresourceversion");

/// An answer in JSON.
pub(crate) fn json(code: StatusCode, body: impl Into<Body>) -> Response<Body> {
    encoded(code, Encoding::Json, body)
}

/// An answer that is written in this encoding.
pub(crate) fn encoded(code: StatusCode, encoding: Encoding, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(encoding.media_type()));
    // Objects change; who keeps a copy must ask.
    response.headers_mut().insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// JSON for people, as the original writes what is no object.
pub(crate) fn raw_json(json: Bytes) -> Response<Body> {
    encoded(StatusCode::OK, Encoding::Json, pretty::prettify(Body::from(json)))
}

/// The answer, which was read at `revision`.
pub(crate) fn served_at(mut response: Response<Body>, revision: Option<Revision>) -> Response<Body> {
    let number = revision.map_or(0, Revision::get);
    response.headers_mut().insert(SERVED_AT, HeaderValue::from(number));
    response
}

/// A plain text.
pub(crate) fn text(code: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The path cannot be read. The original's server says so before anything of its own is asked, and hangs up.
pub(crate) fn unreadable_path() -> Response<Body> {
    let mut response = Response::new("400 Bad Request".into());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// There is nothing at the path, which could be anything.
pub(crate) fn no_such_page() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// Adds what the client should be told beside its answer. Warnings of one answer share their room, whoever gives them:
/// when there is no more, those that are told already are cut as well.
pub(crate) fn add_warnings(response: &mut Response<Body>, warnings: impl IntoIterator<Item = String>) {
    let mut warnings = warnings.into_iter().peekable();
    if warnings.peek().is_none() {
        return;
    }
    let mut all: Warnings = response.extensions_mut().remove().unwrap_or_default();
    all.extend(warnings);
    tell(response, all);
}

/// Tells that a version is deprecated, before everything else.
pub(crate) fn add_deprecation(response: &mut Response<Body>, resource: &Resource) {
    let Some(notice) = &resource.deprecation else { return };
    let before: Warnings = response.extensions_mut().remove().unwrap_or_default();
    tell(response, std::iter::once(notice.warning.clone()).chain(before).collect());
}

fn tell(response: &mut Response<Body>, all: Warnings) {
    response.headers_mut().remove(WARNING);
    for warning in all.told() {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response.extensions_mut().insert(all);
}

fn resource_ref(resource: &Resource) -> ResourceRef<'_> {
    ResourceRef { group: &resource.group, resource: &resource.plural }
}

/// What a client is told about an error: the exhaustive match of invariant A1.
pub(crate) fn error_status(error: &RegistryError) -> Status {
    match error {
        RegistryError::NotFound { resource, name } => Status::not_found(resource_ref(resource), name),
        RegistryError::NoSuchNamespace(name) => {
            Status::not_found(ResourceRef { group: "", resource: "namespaces" }, name)
        }
        RegistryError::NoSuchComponent(name) => {
            Status::not_found(ResourceRef { group: "", resource: "componentstatus" }, name)
        }
        RegistryError::VersionRequired { resource, name } => {
            let missing = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            // As in the original, the resource stands where the kind is expected.
            Status::invalid(KindRef { group: &resource.group, kind: &resource.plural }, name, &[missing])
        }
        RegistryError::AlreadyExists { resource, name, being_deleted, is_generated } => {
            let mut status = if *is_generated {
                Status::generate_name_conflict(resource_ref(resource), name, RETRY_SECONDS)
            } else {
                Status::already_exists(resource_ref(resource), name)
            };
            if *being_deleted {
                status.message.insert_str(0, "object is being deleted: ");
            }
            status
        }
        RegistryError::Conflict { resource, name, why, is_by_kind: true } => {
            Status::conflict(ResourceRef { group: &resource.group, resource: &resource.kind }, name, why)
        }
        RegistryError::Conflict { resource, name, why, .. } => Status::conflict(resource_ref(resource), name, why),
        RegistryError::SubresourceConflict { resource, subresource, name, why } => {
            let part = format!("{}/{subresource}", resource.plural);
            Status::conflict(ResourceRef { group: &resource.group, resource: &part }, name, why)
        }
        RegistryError::BudgetExhausted { message, cause, retry_seconds } => {
            let mut status = Status::too_many_requests(*message, *retry_seconds);
            if let Some(details) = &mut status.details {
                details.causes.push(StatusCause {
                    reason: "DisruptionBudget".into(),
                    message: cause.clone(),
                    field: String::new(),
                });
            }
            status
        }
        RegistryError::ManyBudgets
        | RegistryError::Conversion(_)
        | RegistryError::Undecided(_)
        | RegistryError::Untyped { .. } => Status::unexplained(error.to_string()),
        RegistryError::OtherType { group, kind, name, errors } => {
            Status::invalid(KindRef { group, kind }, name, errors)
        }
        RegistryError::Invalid { resource, name, errors } => {
            Status::invalid(KindRef { group: &resource.group, kind: &resource.kind }, name, errors)
        }
        RegistryError::InvalidOptions { kind, errors } => {
            let group = if kind.is_empty() { "" } else { "meta.k8s.io" };
            Status::invalid(KindRef { group, kind }, "", errors)
        }
        RegistryError::BadRequest(message) => Status::bad_request(message.clone()),
        RegistryError::Denied(status) => (**status).clone(),
        RegistryError::Forbidden { resource, name, why, terminating_namespace } => {
            let mut status = Status::forbidden(resource_ref(resource), name, why);
            if let (Some(namespace), Some(details)) = (terminating_namespace, &mut status.details) {
                details.causes.push(StatusCause {
                    reason: "NamespaceTerminating".into(),
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".to_owned(),
                });
            }
            status
        }
        RegistryError::ForbiddenBecause { resource, name, why, cause } => {
            let mut status = Status::forbidden(resource_ref(resource), name, why);
            if let Some(details) = &mut status.details {
                let (message, field) = (String::new(), String::new());
                details.causes.push(StatusCause { reason: (*cause).into(), message, field });
            }
            status
        }
        RegistryError::TooManyRequests(_) => {
            let mut status = Status::too_many_requests(error.to_string(), 0);
            status.details = None;
            status
        }
        RegistryError::Expired { message, continue_token } => {
            let mut status = Status::expired(message.clone());
            status.metadata.continue_token = continue_token.clone().unwrap_or_default();
            status
        }
        RegistryError::TooLargeResourceVersion { asked, current } => {
            Status::too_large_resource_version(*asked, *current, RETRY_SECONDS)
        }
        RegistryError::PatchTooLarge(message) => Status::request_entity_too_large(message.clone()),
        RegistryError::PatchNotApplicable(message) => {
            let mut status = Status::invalid(KindRef { group: "", kind: "" }, "", &[]);
            status.message = message.clone();
            status
        }
        RegistryError::ApplyConflict(conflicts) => {
            let mut status = Status::conflict(ResourceRef::default(), "", "");
            status.message = error.to_string();
            let causes = conflicts.iter().map(|conflict| StatusCause {
                reason: "FieldManagerConflict".into(),
                message: format!("conflict with {}", conflict.manager),
                field: conflict.place.clone(),
            });
            status.details = Some(StatusDetails { causes: causes.collect(), ..StatusDetails::default() });
            status
        }
        RegistryError::Contended { resource, name } => Status::conflict(
            resource_ref(resource),
            name,
            "the object kept changing while it was being written; please try again",
        ),
        RegistryError::TimedOut => Status::timeout(error.to_string(), 1),
        RegistryError::Unreadable | RegistryError::Internal(_) => Status::internal_error(error),
        RegistryError::Store(error) => store_status(error),
    }
}

fn store_status(error: &StoreError) -> Status {
    match error {
        StoreError::Overloaded => {
            Status::too_many_requests("the server is busy writing, please try again later", RETRY_SECONDS)
        }
        StoreError::ReadOnly(_) | StoreError::Closed => Status::service_unavailable(error.to_string()),
        StoreError::Compacted { .. } => Status::expired(error.to_string()),
        StoreError::Future { asked, newest } => {
            Status::too_large_resource_version(asked.get(), newest.map_or(0, Revision::get), RETRY_SECONDS)
        }
        StoreError::TooLarge { .. } => Status::request_entity_too_large(error.to_string()),
        // DIFFERENCE: the original answers 500 and what its database said. The words by which that is known are kept.
        StoreError::NoSpace { .. } => Status::insufficient_storage(format!(
            "database space exceeded: {error}; delete objects, or give the server a larger --quota-backend-bytes"
        )),
        StoreError::Conflict { .. } | StoreError::Transform { .. } | StoreError::Backend(_) => {
            Status::internal_error(error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use revisor_catalog::Catalog;
    use revisor_object::FieldErrors;

    use super::*;

    /// Invariant A1.
    #[test]
    fn every_error_has_its_status() {
        let leases = Catalog::default().resource("coordination.k8s.io", "v1", "leases").expect("is served").clone();
        let name = || "a".to_owned();
        let resource = || leases.clone();
        let errors = || FieldErrors::from([FieldError::required("spec", "")]);
        let revision = Revision::FIRST;
        for (error, code, reason, message) in [
            (
                RegistryError::NotFound { resource: resource(), name: name() },
                404,
                "NotFound",
                "leases.coordination.k8s.io \"a\" not found",
            ),
            (RegistryError::NoSuchNamespace(name()), 404, "NotFound", "namespaces \"a\" not found"),
            (
                RegistryError::AlreadyExists {
                    resource: resource(),
                    name: name(),
                    being_deleted: true,
                    is_generated: false,
                },
                409,
                "AlreadyExists",
                "object is being deleted: leases.coordination.k8s.io \"a\" already exists",
            ),
            (
                RegistryError::AlreadyExists {
                    resource: resource(),
                    name: name(),
                    being_deleted: false,
                    is_generated: true,
                },
                409,
                "AlreadyExists",
                "leases.coordination.k8s.io \"a\" already exists, the server was not able to generate a unique name \
                 for the object",
            ),
            (
                RegistryError::VersionRequired { resource: resource(), name: name() },
                422,
                "Invalid",
                "leases.coordination.k8s.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
                 specified for an update",
            ),
            (RegistryError::NoSuchComponent(name()), 404, "NotFound", "componentstatus \"a\" not found"),
            (
                RegistryError::Conflict {
                    resource: resource(),
                    name: name(),
                    why: "why".to_owned(),
                    is_by_kind: false,
                },
                409,
                "Conflict",
                "Operation cannot be fulfilled on leases.coordination.k8s.io \"a\": why",
            ),
            (
                RegistryError::Conflict { resource: resource(), name: name(), why: "why".to_owned(), is_by_kind: true },
                409,
                "Conflict",
                "Operation cannot be fulfilled on Lease.coordination.k8s.io \"a\": why",
            ),
            (
                RegistryError::SubresourceConflict {
                    resource: resource(),
                    subresource: "part",
                    name: name(),
                    why: "why".to_owned(),
                },
                409,
                "Conflict",
                "Operation cannot be fulfilled on leases/part.coordination.k8s.io \"a\": why",
            ),
            (
                RegistryError::BudgetExhausted { message: "no more", cause: "why".to_owned(), retry_seconds: 0 },
                429,
                "TooManyRequests",
                "no more",
            ),
            (
                RegistryError::ManyBudgets,
                500,
                "",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ),
            (
                RegistryError::Contended { resource: resource(), name: name() },
                409,
                "Conflict",
                "Operation cannot be fulfilled on leases.coordination.k8s.io \"a\": the object kept changing while it \
                 was being written; please try again",
            ),
            (
                RegistryError::Invalid { resource: resource(), name: name(), errors: errors() },
                422,
                "Invalid",
                "Lease.coordination.k8s.io \"a\" is invalid: spec: Required value",
            ),
            (
                RegistryError::InvalidOptions { kind: "ListOptions", errors: errors() },
                422,
                "Invalid",
                "ListOptions.meta.k8s.io \"\" is invalid: spec: Required value",
            ),
            (RegistryError::BadRequest("why".to_owned()), 400, "BadRequest", "why"),
            (
                RegistryError::Forbidden {
                    resource: resource(),
                    name: name(),
                    why: "why".to_owned(),
                    terminating_namespace: None,
                },
                403,
                "Forbidden",
                "leases.coordination.k8s.io \"a\" is forbidden: why",
            ),
            (
                RegistryError::ForbiddenBecause {
                    resource: resource(),
                    name: name(),
                    why: "why".to_owned(),
                    cause: "NodeCapacity",
                },
                403,
                "Forbidden",
                "leases.coordination.k8s.io \"a\" is forbidden: why",
            ),
            (RegistryError::TooManyRequests("slower".to_owned()), 429, "TooManyRequests", "Too many requests: slower"),
            (RegistryError::Undecided("odd".to_owned()), 500, "", "odd"),
            (RegistryError::Expired { message: "too old".to_owned(), continue_token: None }, 410, "Expired", "too old"),
            (
                RegistryError::TooLargeResourceVersion { asked: 9, current: 5 },
                504,
                "Timeout",
                "Timeout: Too large resource version: 9, current: 5",
            ),
            (
                RegistryError::PatchTooLarge("many".to_owned()),
                413,
                "RequestEntityTooLarge",
                "Request entity too large: many",
            ),
            (RegistryError::PatchNotApplicable("does not fit".to_owned()), 422, "Invalid", "does not fit"),
            (RegistryError::TimedOut, 504, "Timeout", "Timeout: request did not complete within the allotted timeout"),
            (RegistryError::Internal("full".to_owned()), 500, "InternalError", "Internal error occurred: full"),
            (
                RegistryError::Unreadable,
                500,
                "InternalError",
                "Internal error occurred: the stored object cannot be read",
            ),
            (
                StoreError::Overloaded.into(),
                429,
                "TooManyRequests",
                "the server is busy writing, please try again later",
            ),
            (
                StoreError::NoSpace { used: 9, quota: 10 }.into(),
                507,
                "InsufficientStorage",
                "database space exceeded: the store is full: its objects take 9 bytes of a quota of 10; delete \
                 objects, or give the server a larger --quota-backend-bytes",
            ),
            (StoreError::Closed.into(), 503, "ServiceUnavailable", "the store is closed"),
            (
                StoreError::Compacted { asked: revision, oldest: revision.next() }.into(),
                410,
                "Expired",
                "revision 1 was compacted, the oldest is 2",
            ),
            (
                StoreError::Backend(Arc::new(std::io::Error::other("disk"))).into(),
                500,
                "InternalError",
                "Internal error occurred: the backend failed",
            ),
        ] {
            let status = error_status(&error);
            assert_eq!((status.code(), &*status.reason, &*status.message), (code, reason, message), "{error:?}");
        }
    }

    #[test]
    fn every_warning_is_given_once() {
        let mut response = text(StatusCode::OK, "");
        for warnings in [["a", "b", "a"], ["c", "b", "c"]] {
            add_warnings(&mut response, warnings.map(str::to_owned));
        }
        let told: Vec<&[u8]> = response.headers().get_all(WARNING).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(told, [br#"299 - "a""#, br#"299 - "b""#, br#"299 - "c""#]);
    }

    #[test]
    fn warnings_are_quoted() {
        let mut response = json(StatusCode::OK, Body::Empty);
        add_warnings(&mut response, ["unknown field \"a\\b\"".to_owned()]);
        let warning = response.headers().get(http::header::WARNING).expect("is there");
        assert_eq!(warning.as_bytes(), br#"299 - "unknown field \"a\\b\"""#);
    }
}
