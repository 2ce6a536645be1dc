//! The shapes and sentences of every Status.

use super::*;
use crate::field_errors::FieldErrors;

const PODS: ResourceRef<'static> = ResourceRef { group: "", resource: "pods" };
const DEPLOYMENTS: ResourceRef<'static> = ResourceRef { group: "apps", resource: "deployments" };
const NOTHING: ResourceRef<'static> = ResourceRef { group: "", resource: "" };
const DEPLOYMENT: KindRef<'static> = KindRef { group: "apps", kind: "Deployment" };

#[track_caller]
fn check(status: &Status, code: u16, rest: &str) {
    let want =
        format!(r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure",{rest},"code":{code}}}"#);
    let json = String::from_utf8(status.to_json()).expect("JSON is UTF-8");
    assert_eq!(json, want);
    assert_eq!(status.code(), code);
    let read: Status = serde_json::from_str(&json).expect("reads back");
    assert_eq!(&read, status);
}

#[test]
fn answers_about_objects() {
    check(
        &Status::not_found(PODS, "web"),
        404,
        r#""message":"pods \"web\" not found","reason":"NotFound","details":{"name":"web","kind":"pods"}"#,
    );
    check(
        &Status::already_exists(DEPLOYMENTS, "web"),
        409,
        r#""message":"deployments.apps \"web\" already exists","reason":"AlreadyExists","details":{"name":"web","group":"apps","kind":"deployments"}"#,
    );
    check(
        &Status::generate_name_conflict(PODS, "web-x", 1),
        409,
        r#""message":"pods \"web-x\" already exists, the server was not able to generate a unique name for the object","reason":"AlreadyExists","details":{"name":"web-x","kind":"pods","retryAfterSeconds":1}"#,
    );
    check(
        &Status::conflict(DEPLOYMENTS, "web", "why"),
        409,
        r#""message":"Operation cannot be fulfilled on deployments.apps \"web\": why","reason":"Conflict","details":{"name":"web","group":"apps","kind":"deployments"}"#,
    );
    let cause =
        StatusCause { reason: "FieldManagerConflict".into(), message: "taken".to_owned(), field: ".a".to_owned() };
    check(
        &Status::apply_conflict(vec![cause], "conflicts"),
        409,
        r#""message":"conflicts","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"taken","field":".a"}]}"#,
    );
    check(
        &Status::method_not_supported(DEPLOYMENTS, "proxy"),
        405,
        r#""message":"proxy is not supported on resources of kind \"deployments.apps\"","reason":"MethodNotAllowed","details":{"group":"apps","kind":"deployments"}"#,
    );
    check(
        &Status::server_timeout(PODS, "list", 2),
        500,
        r#""message":"The list operation against pods could not be completed at this time, please try again.","reason":"ServerTimeout","details":{"name":"list","kind":"pods","retryAfterSeconds":2}"#,
    );
}

#[test]
fn invalid_objects_list_every_cause() {
    check(
        &Status::invalid(DEPLOYMENT, "", &[]),
        422,
        r#""message":"Deployment.apps \"\" is invalid","reason":"Invalid","details":{"group":"apps","kind":"Deployment"}"#,
    );
    let one = FieldError::required("metadata.name", "name or generateName is required");
    check(
        &Status::invalid(KindRef { group: "", kind: "Pod" }, "x", std::slice::from_ref(&one)),
        422,
        r#""message":"Pod \"x\" is invalid: metadata.name: Required value: name or generateName is required","reason":"Invalid","details":{"name":"x","kind":"Pod","causes":[{"reason":"FieldValueRequired","message":"Required value: name or generateName is required","field":"metadata.name"}]}"#,
    );
    let errors = [one, FieldError::duplicate("a", "b"), FieldError::duplicate("a", "b")];
    let status = Status::invalid(DEPLOYMENT, "x", &errors);
    // The text drops repetitions, the causes keep them.
    assert_eq!(
        status.message,
        r#"Deployment.apps "x" is invalid: [metadata.name: Required value: name or generateName is required, a: Duplicate value: "b"]"#
    );
    assert_eq!(status.details.expect("has details").causes.len(), 3);
}

#[test]
fn forbidden_names_what_it_knows() {
    for (resource, name, want) in [
        (NOTHING, "", "forbidden: why"),
        (DEPLOYMENTS, "", "deployments.apps is forbidden: why"),
        (DEPLOYMENTS, "web", "deployments.apps \"web\" is forbidden: why"),
    ] {
        assert_eq!(Status::forbidden(resource, name, "why").message, want);
    }
    check(
        &Status::forbidden(NOTHING, "", "why"),
        403,
        r#""message":"forbidden: why","reason":"Forbidden","details":{}"#,
    );
}

#[test]
fn answers_about_requests() {
    check(
        &Status::no_such_resource(),
        404,
        r#""message":"the server could not find the requested resource","reason":"NotFound","details":{}"#,
    );
    check(
        &Status::method_not_allowed(),
        405,
        r#""message":"the server does not allow this method on the requested resource","reason":"MethodNotAllowed","details":{}"#,
    );
    check(&Status::bad_request("why"), 400, r#""message":"why","reason":"BadRequest""#);
    check(&Status::unauthorized("Unauthorized"), 401, r#""message":"Unauthorized","reason":"Unauthorized""#);
    check(&Status::unauthorized(""), 401, r#""message":"not authorized","reason":"Unauthorized""#);
    check(
        &Status::not_acceptable(&["a/b", "c/d"]),
        406,
        r#""message":"only the following media types are accepted: a/b, c/d","reason":"NotAcceptable""#,
    );
    check(
        &Status::unsupported_media_type(&["a/b"]),
        415,
        r#""message":"the body of the request was in an unknown format - accepted media types include: a/b","reason":"UnsupportedMediaType""#,
    );
    check(
        &Status::request_entity_too_large("limit is 3"),
        413,
        r#""message":"Request entity too large: limit is 3","reason":"RequestEntityTooLarge""#,
    );
    check(
        &Status::too_many_requests("later", 1),
        429,
        r#""message":"later","reason":"TooManyRequests","details":{"retryAfterSeconds":1}"#,
    );
    check(&Status::timeout("slow", 0), 504, r#""message":"Timeout: slow","reason":"Timeout","details":{}"#);
    check(
        &Status::too_large_resource_version(9, 7, 1),
        504,
        r#""message":"Timeout: Too large resource version: 9, current: 7","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}"#,
    );
    check(
        &Status::expired("too old resource version: 1 (5)"),
        410,
        r#""message":"too old resource version: 1 (5)","reason":"Expired""#,
    );
    check(&Status::gone("gone"), 410, r#""message":"gone","reason":"Gone""#);
    check(
        &Status::internal_error("boom"),
        500,
        r#""message":"Internal error occurred: boom","reason":"InternalError","details":{"causes":[{"message":"boom"}]}"#,
    );
    check(&Status::unexplained("boom"), 500, r#""message":"boom""#);
    check(&Status::service_unavailable("away"), 503, r#""message":"away","reason":"ServiceUnavailable""#);
}

#[test]
fn an_expired_list_can_go_on() {
    let metadata = StatusMetadata { continue_token: "token".to_owned() };
    let json = Status { metadata, ..Status::expired(CONTINUE_EXPIRED) }.to_json();
    let read: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(read["metadata"]["continue"], "token");
    assert_eq!((&read["reason"], &read["code"]), (&"Expired".into(), &410.into()));
}

#[test]
fn success_has_no_code_in_its_body() {
    let details = StatusDetails {
        name: "web".to_owned(),
        kind: "configmaps".to_owned(),
        uid: "u-1".to_owned(),
        ..StatusDetails::default()
    };
    let status = Status::success(details);
    assert_eq!(
        String::from_utf8(status.to_json()).expect("UTF-8"),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"web","kind":"configmaps","uid":"u-1"}}"#
    );
    assert!(status.is_success());
    assert_eq!(status.code(), 200);
}

#[test]
fn foreign_statuses_are_read_leniently() {
    // An admission webhook may answer with as little as this.
    let status: Status = serde_json::from_str(r#"{"message":"no","extra":1}"#).expect("reads");
    assert_eq!((status.message.as_str(), status.code(), status.retry_after()), ("no", 500, None));
    assert_eq!(Status::too_many_requests("", 3).retry_after(), Some(3));
    assert_eq!(Status::too_many_requests("", 0).retry_after(), None);
}

/// The most that any answer has, escapes apart.
const MAX_ANSWER_BYTES: usize = 512 * 1024;

#[test]
fn no_answer_is_much_larger_than_what_people_read() {
    let long = "x".repeat(2 * MAX_MESSAGE_BYTES);
    let resource = ResourceRef { group: &long, resource: &long };
    let kind = KindRef { group: &long, kind: &long };
    let many = || (0..5_000).map(|at| FieldError::invalid(format!("spec.items[{at}]"), "value", "is wrong"));
    let causes: Vec<StatusCause> = many().map(|error| error.cause()).collect();
    let wide = StatusCause { message: long.clone(), field: long.clone(), ..StatusCause::default() };
    for (name, status) in [
        ("success", Status::success(StatusDetails::of_resource(resource, &long))),
        ("not found", Status::not_found(resource, &long)),
        ("already exists", Status::already_exists(resource, &long)),
        ("generated name", Status::generate_name_conflict(resource, &long, 1)),
        ("conflict", Status::conflict(resource, &long, &long)),
        ("apply conflict", Status::apply_conflict(causes, long.as_str())),
        ("one large cause", Status::apply_conflict(vec![wide.clone()], "")),
        ("large causes", Status::apply_conflict(vec![wide; 100], "")),
        ("invalid", Status::invalid(kind, &long, &many().collect::<FieldErrors>())),
        ("invalid, unbounded", Status::invalid(kind, &long, &many().collect::<Vec<_>>())),
        ("forbidden", Status::forbidden(resource, &long, &long)),
        ("method not supported", Status::method_not_supported(resource, &long)),
        ("server timeout", Status::server_timeout(resource, &long, 1)),
        ("bad request", Status::bad_request(long.as_str())),
        ("unauthorized", Status::unauthorized(long.as_str())),
        ("not acceptable", Status::not_acceptable(&[&long])),
        ("unsupported media type", Status::unsupported_media_type(&[&long])),
        ("too large", Status::request_entity_too_large(&long)),
        ("too many requests", Status::too_many_requests(long.as_str(), 1)),
        ("timeout", Status::timeout(&long, 1)),
        ("expired", Status::expired(long.as_str())),
        ("gone", Status::gone(long.as_str())),
        ("internal error", Status::internal_error(&long)),
        ("unexplained", Status::unexplained(long.as_str())),
        ("unavailable", Status::service_unavailable(long.as_str())),
    ] {
        let bytes = status.to_json().len();
        assert!(bytes <= MAX_ANSWER_BYTES, "{name}: {bytes} bytes");
    }
}

#[test]
fn what_is_left_out_is_counted() {
    let errors: FieldErrors =
        (0..MAX_FIELD_ERRORS + 234).map(|at| FieldError::required(format!("spec.items[{at}]"), "")).collect();
    let status = Status::invalid(DEPLOYMENT, "web", &errors);
    assert!(status.message.ends_with("spec.items[999]: Required value, and 234 more errors]"), "{}", status.message);
    let read: Status = serde_json::from_slice(&status.to_json()).expect("reads back");
    assert_eq!(read, status, "what the collector keeps is told");
    let causes = read.details.expect("has details").causes;
    assert_eq!(causes.len(), MAX_FIELD_ERRORS + 1);
    let last = StatusCause { message: "and 234 more errors".to_owned(), ..StatusCause::default() };
    assert_eq!(causes.last(), Some(&last));

    let cause = StatusCause { message: "conflict".to_owned(), field: ".a".to_owned(), ..StatusCause::default() };
    let told = Status::apply_conflict(vec![cause; MAX_FIELD_ERRORS + 3], "conflicts").to_json();
    let read: Status = serde_json::from_slice(&told).expect("reads back");
    let causes = read.details.expect("has details").causes;
    assert_eq!(causes.last().map(|cause| cause.message.as_str()), Some("and 2 more errors"));
}
