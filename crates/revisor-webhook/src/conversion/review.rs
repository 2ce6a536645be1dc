//! `ConversionReview`: the question to a converting webhook, and its answer.

use revisor_object::{BadValue, Object, Value};
use serde::Serialize;

use super::GroupVersionKind;

const GROUP: &str = "apiextensions.k8s.io";

/// The versions of `ConversionReview` that the server speaks. They differ in how much of the answer is checked: the
/// older one never asked for the kind and the uid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1beta1,
}

#[derive(Serialize)]
struct Review<'r> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: String,
    request: Request<'r>,
    response: EmptyResponse,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'r> {
    uid: &'r str,
    #[serde(rename = "desiredAPIVersion")]
    desired: &'r str,
    objects: Vec<&'r Object>,
}

/// The response within a request. Kubernetes sends one without content, and webhooks may have come to fill it in.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct EmptyResponse {
    uid: &'static str,
    converted_objects: Option<()>,
    result: EmptyResult,
}

#[derive(Serialize, Default)]
struct EmptyResult {
    metadata: NoMembers,
}

#[derive(Serialize, Default)]
struct NoMembers {}

impl ReviewVersion {
    /// The first of these that is one.
    pub(super) fn first_of(versions: &[String]) -> Option<ReviewVersion> {
        versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "v1",
            ReviewVersion::V1beta1 => "v1beta1",
        }
    }

    /// The question whether these objects can be converted.
    pub(super) fn request(self, uid: &str, desired: &str, objects: Vec<&Object>) -> Vec<u8> {
        let request = Request { uid, desired, objects };
        let api_version = format!("{GROUP}/{}", self.name());
        let review = Review { kind: "ConversionReview", api_version, request, response: EmptyResponse::default() };
        serde_json::to_vec(&review).expect("only keys that are not strings cannot be written, and there are none")
    }

    /// The converted objects in the answer to the request `uid`, or what is wrong with it.
    pub(super) fn converted_objects(self, mut review: Object, uid: &str) -> Result<Vec<Value>, String> {
        text(&review, "apiVersion").map_err(|found| not_a_head(found, "apiVersion"))?;
        text(&review, "kind").map_err(|found| not_a_head(found, "kind"))?;
        self.check_kind(&review)?;
        let mut response = match review.remove("response") {
            None | Some(Value::Null) => return Err("no response provided".into()),
            Some(Value::Object(response)) => response,
            Some(other) => return Err(unfit(&other, "ConversionReview.response", "v1.ConversionResponse", self)),
        };
        let is = text(&response, "uid")
            .map_err(|found| unfit(found, "ConversionResponse.response.uid", "types.UID", self))?;
        if self == ReviewVersion::V1 && is != uid {
            return Err(format!("expected response.uid={}, got {}", BadValue::from(uid), BadValue::from(is)));
        }
        check_result(response.get("result"), self)?;
        match response.remove("convertedObjects") {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(objects)) => Ok(objects),
            Some(other) => {
                Err(unfit(&other, "ConversionResponse.response.convertedObjects", "[]runtime.RawExtension", self))
            }
        }
    }

    /// Whether this is a review in this version, or lacks what it takes to tell.
    fn check_kind(self, review: &Object) -> Result<(), String> {
        let found = GroupVersionKind::of(review);
        let wanted = GroupVersionKind { group: GROUP, version: self.name(), kind: "ConversionReview" };
        if found == wanted {
            return Ok(());
        }
        if is_known(found) {
            let (from, kind, to) = (found.version, found.kind, wanted.version);
            return Err(format!("converting ({from}.{kind}) to ({to}.ConversionReview): unknown conversion"));
        }
        if found.kind.is_empty() || (found.group.is_empty() && found.version.is_empty()) {
            // What is not said is taken to be right until it is checked, which only the newer version does.
            return match self {
                ReviewVersion::V1 => Err(format!("expected webhook response of {wanted}, got {found}")),
                ReviewVersion::V1beta1 => Ok(()),
            };
        }
        let (kind, version) = (BadValue::from(found.kind), BadValue::from(found.api_version()));
        Err(format!("no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\""))
    }
}

/// Whether the kind is one that Kubernetes would read here, only to find that it is no review.
fn is_known(found: GroupVersionKind<'_>) -> bool {
    match (found.group, found.version) {
        ("", "v1") => found.kind == "Status",
        (GROUP, "v1" | "v1beta1") => {
            matches!(found.kind, "ConversionReview" | "CustomResourceDefinition" | "CustomResourceDefinitionList")
        }
        _ => false,
    }
}

/// Whether the result is a success.
fn check_result(result: Option<&Value>, version: ReviewVersion) -> Result<(), String> {
    let none = Object::new();
    let result = match result {
        None | Some(Value::Null) => &none,
        Some(Value::Object(result)) => result,
        Some(other) => return Err(unfit(other, "ConversionResponse.response.result", "v1.Status", version)),
    };
    let part = |name: &str| {
        text(result, name).map_err(|found| unfit(found, &format!("Status.response.result.{name}"), "string", version))
    };
    let (status, message) = (part("status")?, part("message")?);
    match (status, message) {
        ("Success", _) => Ok(()),
        (status, "") => Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => Err(message.to_owned()),
    }
}

/// The string of this name, which may be missing.
fn text<'o>(object: &'o Object, name: &str) -> Result<&'o str, &'o Value> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(other),
    }
}

/// That a value does not fit its field, in the words of Go's decoder.
fn unfit(found: &Value, field: &str, kind: &str, version: ReviewVersion) -> String {
    let kind = match kind {
        "v1.ConversionResponse" => format!("{}.ConversionResponse", version.name()),
        kind => kind.to_owned(),
    };
    format!("json: cannot unmarshal {} into Go struct field {field} of type {kind}", found.type_name())
}

/// That a value does not fit the head of an object.
fn not_a_head(found: &Value, name: &str) -> String {
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{name} of type string",
        found.type_name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    fn converted(version: ReviewVersion, text: &str) -> String {
        let Value::Object(review) = parse_json(text.as_bytes()).expect("the test's JSON is valid").value else {
            panic!("not an object: {text}")
        };
        match version.converted_objects(review, "u") {
            Ok(objects) => Value::from(objects).to_json(),
            Err(problem) => problem,
        }
    }

    #[test]
    fn the_request_carries_whole_objects() {
        let object = Object::from_members(vec![("a".into(), 1.into())]);
        let body = ReviewVersion::V1.request("u", "g.io/v2", vec![&object]);
        let want = r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"g.io/v2","objects":[{"a":1}]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}"#;
        assert_eq!(String::from_utf8(body).as_deref(), Ok(want));
    }

    #[test]
    fn the_first_version_that_is_spoken_is_used() {
        for (versions, want) in [
            (&["v9", "v1beta1", "v1"][..], Some(ReviewVersion::V1beta1)),
            (&["v1", "v1beta1"], Some(ReviewVersion::V1)),
            (&["v2"], None),
            (&[], None),
        ] {
            let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
            assert_eq!(ReviewVersion::first_of(&versions), want, "{versions:?}");
        }
    }

    #[test]
    fn an_answer_is_checked_before_it_is_believed() {
        const HEAD: &str = r#""apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview""#;
        let with = |response: &str| format!(r#"{{{HEAD},"response":{response}}}"#);
        for (text, want) in [
            (with(r#"{"uid":"u","result":{"status":"Success"},"convertedObjects":[{}]}"#), "[{}]"),
            (with(r#"{"uid":"u","result":{"status":"Success"},"convertedObjects":null}"#), "[]"),
            (format!("{{{HEAD}}}"), "no response provided"),
            (with("null"), "no response provided"),
            (
                with("\"x\""),
                "json: cannot unmarshal string into Go struct field ConversionReview.response of type v1.ConversionResponse",
            ),
            (with(r#"{"uid":"other"}"#), r#"expected response.uid="u", got "other""#),
            (with("{}"), r#"expected response.uid="u", got """#),
            (
                with(r#"{"uid":5}"#),
                "json: cannot unmarshal number into Go struct field ConversionResponse.response.uid of type types.UID",
            ),
            (with(r#"{"uid":"u","result":{"status":"Failure","message":"I do not want to"}}"#), "I do not want to"),
            (
                with(r#"{"uid":"u","result":{"status":"Failure"}}"#),
                "response.result.status was 'Failure', not 'Success'",
            ),
            (with(r#"{"uid":"u"}"#), "response.result.status was '', not 'Success'"),
            (
                with(r#"{"uid":"u","result":"Success"}"#),
                "json: cannot unmarshal string into Go struct field ConversionResponse.response.result of type v1.Status",
            ),
            (
                with(r#"{"uid":"u","result":{"status":"Success"},"convertedObjects":"x"}"#),
                "json: cannot unmarshal string into Go struct field ConversionResponse.response.convertedObjects of type []runtime.RawExtension",
            ),
            ("{}".into(), "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="),
            (
                r#"{"kind":"ConversionReview"}"#.into(),
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=ConversionReview",
            ),
            (
                r#"{"apiVersion":"apiextensions.k8s.io/v1"}"#.into(),
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=",
            ),
            (
                r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"Foo"}"#.into(),
                r#"no kind "Foo" is registered for version "apiextensions.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111""#,
            ),
            (
                r#"{"apiVersion":"foo.io/v1","kind":"ConversionReview"}"#.into(),
                r#"no kind "ConversionReview" is registered for version "foo.io/v1" in scheme "pkg/runtime/scheme.go:111""#,
            ),
            (
                r#"{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview"}"#.into(),
                "converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
            ),
            (
                r#"{"apiVersion":5}"#.into(),
                "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string",
            ),
            (
                r#"{"apiVersion":"v1","kind":"Status","status":"Failure","message":"told"}"#.into(),
                "converting (v1.Status) to (v1.ConversionReview): unknown conversion",
            ),
        ] {
            assert_eq!(converted(ReviewVersion::V1, &text), want, "{text}");
        }
    }

    #[test]
    fn the_older_version_checks_neither_kind_nor_uid() {
        let response = r#""response":{"uid":"other","result":{"status":"Success"},"convertedObjects":[1]}"#;
        for (text, want) in [
            (format!("{{{response}}}"), "[1]"),
            (format!(r#"{{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview",{response}}}"#), "[1]"),
            (
                format!(r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",{response}}}"#),
                "converting (v1.ConversionReview) to (v1beta1.ConversionReview): unknown conversion",
            ),
            ("{}".to_owned(), "no response provided"),
        ] {
            assert_eq!(converted(ReviewVersion::V1beta1, &text), want, "{text}");
        }
    }
}
