//! `AdmissionReview`: the question to an admission webhook, and its answer ([`WebhookClient::review`]).
//!
//! Which webhooks are asked, in which order, and what becomes of a write whose webhook fails is for the callers.

use std::sync::Arc;
use std::time::Duration;

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use bytes::Bytes;
use revisor_object::{BadValue, Object, Status, Value};

use crate::{AnswerError, CallError, ClientConfig, Credentials, WebhookClient};

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";

/// How large an answer may be: an object that is as large as one can be, in a patch that replaces all of it.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// The versions of `AdmissionReview` that the server speaks. They differ in how much of the answer is checked: the
/// older one never asked for the kind, the uid and the type of the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionReviewVersion {
    /// `v1`
    V1,
    /// `v1beta1`
    V1beta1,
}

impl AdmissionReviewVersion {
    /// The first of these that is one.
    pub fn first_of<'v>(versions: impl IntoIterator<Item = &'v str>) -> Option<AdmissionReviewVersion> {
        versions.into_iter().find_map(|version| match version {
            "v1" => Some(AdmissionReviewVersion::V1),
            "v1beta1" => Some(AdmissionReviewVersion::V1beta1),
            _ => None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            AdmissionReviewVersion::V1 => "v1",
            AdmissionReviewVersion::V1beta1 => "v1beta1",
        }
    }
}

/// What is asked of a webhook. Members of `request` that are JSON already are given as such.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionQuestion<'a> {
    /// Identifies the request and must be new.
    pub uid: &'a str,
    /// What stands between the identity and the objects: `"kind":…,"userInfo":…`.
    pub about: &'a [u8],
    /// The object as JSON, if there is one.
    pub object: Option<&'a [u8]>,
    /// The old object as JSON, if there is one.
    pub old_object: Option<&'a [u8]>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The options of the operation as JSON, if it has some.
    pub options: Option<&'a str>,
}

impl AdmissionQuestion<'_> {
    fn to_json(self, version: AdmissionReviewVersion) -> Vec<u8> {
        let size = |part: Option<&[u8]>| part.map_or(4, <[u8]>::len);
        let mut text = Vec::with_capacity(size(self.object) + size(self.old_object) + self.about.len() + 512);
        let start = format!(
            r#"{{"kind":"{KIND}","apiVersion":"{GROUP}/{}","request":{{"uid":"{}","#,
            version.name(),
            self.uid,
        );
        text.extend_from_slice(start.as_bytes());
        text.extend_from_slice(self.about);
        for (name, part) in [(r#","object":"#, self.object), (r#","oldObject":"#, self.old_object)] {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(part.unwrap_or(b"null"));
        }
        let end = format!(r#","dryRun":{},"options":{}}}}}"#, self.dry_run, self.options.unwrap_or("null"));
        text.extend_from_slice(end.as_bytes());
        text
    }
}

/// What a webhook says of a write.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdmissionAnswer {
    /// Whether it may go on.
    pub allowed: bool,
    /// Why not, in the words of the webhook.
    pub result: Option<Status>,
    /// What is to be changed: the text of a patch, empty if nothing is.
    pub patch: Vec<u8>,
    /// How the patch is written.
    pub patch_type: String,
    /// What is to be noted for the audit, in the order of the keys.
    pub audit_annotations: Vec<(String, String)>,
    /// What the client should be told.
    pub warnings: Vec<String>,
}

/// Why a webhook could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionReviewError {
    /// There was no answer, or none that could be read.
    #[error("failed to call webhook: {0}")]
    Call(CallError),
    /// What was answered is no review.
    #[error("failed to call webhook: {0}")]
    Unreadable(String),
    /// The review is not an answer to the question.
    #[error("received invalid webhook response: {0}")]
    Invalid(String),
}

impl AdmissionReviewError {
    /// The HTTP status by which metrics tell of it.
    pub fn code(&self) -> u16 {
        match self {
            AdmissionReviewError::Call(CallError::Status(answer)) => answer.code.as_u16(),
            AdmissionReviewError::Call(CallError::ContentType(_)) => 500,
            AdmissionReviewError::Call(_) | AdmissionReviewError::Unreadable(_) | AdmissionReviewError::Invalid(_) => {
                503
            }
        }
    }
}

impl WebhookClient {
    /// Asks a webhook about a write; `mutating` says whether it may change the object, and
    /// `credentials` what it is shown.
    pub async fn review(
        &self,
        config: &ClientConfig,
        credentials: Option<&Arc<Credentials>>,
        version: AdmissionReviewVersion,
        question: AdmissionQuestion<'_>,
        mutating: bool,
        timeout: Duration,
    ) -> Result<AdmissionAnswer, AdmissionReviewError> {
        let body = Bytes::from(question.to_json(version));
        let called = self.post_as(config, credentials, body, timeout, MAX_ANSWER_BYTES).await;
        let answer = called.map_err(AdmissionReviewError::Call)?;
        let review =
            answer.object().map_err(|error: AnswerError| AdmissionReviewError::Unreadable(error.to_string()))?;
        read(version, &review, question.uid, mutating)
    }
}

/// Reads an answer (upstream: `VerifyAdmissionResponse`).
fn read(
    version: AdmissionReviewVersion,
    review: &Object,
    uid: &str,
    mutating: bool,
) -> Result<AdmissionAnswer, AdmissionReviewError> {
    let invalid = |problem: String| AdmissionReviewError::Invalid(problem);
    let (api_version, kind) = (review.str("apiVersion").unwrap_or_default(), review.str("kind").unwrap_or_default());
    let is_known = |version: AdmissionReviewVersion| {
        api_version.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix('/')) == Some(version.name())
    };
    let is_ours =
        api_version.is_empty() || is_known(AdmissionReviewVersion::V1) || is_known(AdmissionReviewVersion::V1beta1);
    if !is_ours || !matches!(kind, "" | KIND) {
        return Err(AdmissionReviewError::Unreadable(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \
             \"pkg/util/webhook/client.go:71\""
        )));
    }
    if let (false, Some((_, found))) = (is_known(version), api_version.split_once('/')) {
        let wanted = version.name();
        return Err(AdmissionReviewError::Unreadable(format!(
            "converting ({found}.{KIND}) to ({wanted}.{KIND}): unknown conversion"
        )));
    }
    let response = match review.get("response") {
        Some(Value::Object(response)) => response,
        None | Some(Value::Null) => return Err(invalid("webhook response was absent".to_owned())),
        Some(other) => return Err(mismatch(other, "AdmissionReview.response", "v1.AdmissionResponse")),
    };
    let answer = answer_of(response)?;
    if version == AdmissionReviewVersion::V1 {
        let named = uid_of(response)?;
        if named != uid {
            return Err(invalid(format!("expected response.uid={uid:?}, got {}", BadValue::from(named))));
        }
        if api_version.is_empty() || kind.is_empty() {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            return Err(invalid(format!(
                "expected webhook response of {GROUP}/v1, Kind={KIND}, got {group}/{version}, Kind={kind}"
            )));
        }
        let has_type = !matches!(response.get("patchType"), None | Some(Value::Null));
        let problem = match (mutating, answer.patch.is_empty(), has_type) {
            (true, false, false) => "webhook returned response.patch but not response.patchType",
            (true, true, true) => "webhook returned response.patchType but not response.patch",
            (true, _, true) if answer.patch_type.is_empty() => r#"webhook returned invalid response.patchType of """#,
            (false, false, _) => "validating webhook may not return response.patch",
            (false, _, true) => "validating webhook may not return response.patchType",
            _ => return Ok(answer),
        };
        return Err(invalid(problem.to_owned()));
    }
    // The older version knows one way to write a patch, and nobody checks what is said of it.
    let (patch, patch_type) = match mutating && !answer.patch.is_empty() {
        true => (answer.patch, "JSONPatch".to_owned()),
        false => (Vec::new(), String::new()),
    };
    Ok(AdmissionAnswer { patch, patch_type, ..answer })
}

fn answer_of(response: &Object) -> Result<AdmissionAnswer, AdmissionReviewError> {
    let of = |name: &str| format!("AdmissionResponse.response.{name}");
    let allowed = match response.get("allowed") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(truth)) => *truth,
        Some(other) => return Err(mismatch(other, &of("allowed"), "bool")),
    };
    let patch = text(response, "patch")?;
    let patch = STANDARD.decode(&patch).map_err(|error| {
        let at = match error {
            DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
            DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => patch.len(),
        };
        AdmissionReviewError::Unreadable(format!("illegal base64 data at input byte {at}"))
    })?;
    let audit_annotations = match response.get("auditAnnotations") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(annotations)) => {
            let texts = annotations.iter().map(|(key, _)| Ok((key.to_owned(), text(annotations, key)?)));
            texts.collect::<Result<_, AdmissionReviewError>>()?
        }
        Some(other) => return Err(mismatch(other, &of("auditAnnotations"), "map[string]string")),
    };
    let warnings = match response.get("warnings") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(warnings)) => {
            let texts = warnings.iter().map(|warning| match warning {
                Value::String(text) => Ok(text.to_string()),
                Value::Null => Ok(String::new()),
                other => Err(mismatch(other, &of("warnings"), "string")),
            });
            texts.collect::<Result<_, _>>()?
        }
        Some(other) => return Err(mismatch(other, &of("warnings"), "[]string")),
    };
    let result = match response.get("status") {
        None | Some(Value::Null) => None,
        Some(Value::Object(status)) => Some(status_of(status)?),
        Some(other) => return Err(mismatch(other, &of("status"), "v1.Status")),
    };
    let patch_type = text(response, "patchType")?;
    Ok(AdmissionAnswer { allowed, result, patch, patch_type, audit_annotations, warnings })
}

/// Why a webhook says no. Its code may be any number of 32 bits; one that is none of HTTP says nothing.
fn status_of(status: &Object) -> Result<Status, AdmissionReviewError> {
    for (name, wanted) in [("status", "string"), ("message", "string"), ("reason", "v1.StatusReason")] {
        text_at(status, name, &format!("Status.response.status.{name}"), wanted)?;
    }
    let code = match status.get("code") {
        None | Some(Value::Null) => 0,
        Some(code) => {
            let number = code.as_i64().and_then(|code| i32::try_from(code).ok());
            number.ok_or_else(|| mismatch(code, "Status.response.status.code", "int32"))?
        }
    };
    let mut readable = status.clone();
    readable.insert("code", i64::from(u16::try_from(code).unwrap_or_default()));
    let read: Result<Status, _> = serde_json::from_str(&Value::Object(readable).to_json());
    read.map_err(|error| AdmissionReviewError::Unreadable(format!("response.status: {error}")))
}

fn uid_of(response: &Object) -> Result<String, AdmissionReviewError> {
    text_at(response, "uid", "AdmissionResponse.response.uid", "types.UID")
}

fn text(object: &Object, name: &str) -> Result<String, AdmissionReviewError> {
    text_at(object, name, &format!("AdmissionResponse.response.{name}"), "string")
}

/// The text of a member, which the original calls so and takes for this type.
fn text_at(object: &Object, name: &str, place: &str, wanted: &str) -> Result<String, AdmissionReviewError> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.to_string()),
        Some(other) => Err(mismatch(other, place, wanted)),
    }
}

fn mismatch(found: &Value, place: &str, wanted: &str) -> AdmissionReviewError {
    let found = found.type_name();
    AdmissionReviewError::Unreadable(format!(
        "json: cannot unmarshal {found} into Go struct field {place} of type {wanted}"
    ))
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    const V1: &str = r#""apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview""#;

    fn object(text: &str) -> Object {
        match parse_json(text.as_bytes()).expect("is JSON").value {
            Value::Object(object) => object,
            other => panic!("no object: {other:?}"),
        }
    }

    #[test]
    fn a_question_has_all_members_in_their_order() {
        let question = AdmissionQuestion {
            uid: "u",
            about: br#""kind":{"group":"","version":"v1","kind":"ConfigMap"},"operation":"CREATE""#,
            object: Some(br#"{"kind":"ConfigMap"}"#),
            old_object: None,
            dry_run: false,
            options: Some(r#"{"kind":"CreateOptions"}"#),
        };
        let want = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","kind":{"group":"","version":"v1","kind":"ConfigMap"},"operation":"CREATE","object":{"kind":"ConfigMap"},"oldObject":null,"dryRun":false,"options":{"kind":"CreateOptions"}}}"#;
        assert_eq!(String::from_utf8_lossy(&question.to_json(AdmissionReviewVersion::V1)), want);
    }

    #[test]
    fn an_answer_must_be_one_to_the_question() {
        let v1 = |rest: &str| format!("{{{V1},{rest}}}");
        let beta = r#""apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview""#;
        for (review, mutating, want) in [
            (v1(r#""response":{"uid":"u","allowed":true}"#), false, "allowed"),
            (v1(r#""response":{"uid":"u"}"#), false, "denied"),
            (v1(r#""response":null"#), false, "received invalid webhook response: webhook response was absent"),
            (
                format!(r#"{{{beta},"response":{{"uid":"u"}}}}"#),
                false,
                "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
            ),
            (
                v1(r#""response":{"uid":"x"}"#),
                false,
                r#"received invalid webhook response: expected response.uid="u", got "x""#,
            ),
            (
                r#"{"response":{"uid":"u"}}"#.to_owned(),
                false,
                "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
            ),
            (
                v1(r#""response":{"uid":"u","patch":"e3!="}"#),
                true,
                "failed to call webhook: illegal base64 data at input byte 2",
            ),
            (
                v1(r#""response":{"uid":"u","patch":"e30="}"#),
                false,
                "received invalid webhook response: validating webhook may not return response.patch",
            ),
            (
                v1(r#""response":{"uid":"u","patch":"e30="}"#),
                true,
                "received invalid webhook response: webhook returned response.patch but not response.patchType",
            ),
            (
                v1(r#""response":{"uid":"u","patchType":"JSONPatch"}"#),
                true,
                "received invalid webhook response: webhook returned response.patchType but not response.patch",
            ),
            (
                v1(r#""response":{"uid":"u","allowed":"yes"}"#),
                true,
                "failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
            ),
            (v1(r#""response":{"uid":"u","status":{"code":-1,"message":"no"}}"#), true, "denied"),
            (
                v1(r#""response":{"uid":"u","status":{"code":"x"}}"#),
                true,
                "failed to call webhook: json: cannot unmarshal string into Go struct field Status.response.status.code of type int32",
            ),
            (
                v1(r#""response":{"uid":5}"#),
                true,
                "failed to call webhook: json: cannot unmarshal number into Go struct field AdmissionResponse.response.uid of type types.UID",
            ),
            (
                r#"{"apiVersion":"v1","kind":"AdmissionReview"}"#.to_owned(),
                true,
                r#"failed to call webhook: no kind "AdmissionReview" is registered for version "v1" in scheme "pkg/util/webhook/client.go:71""#,
            ),
        ] {
            let shown = match read(AdmissionReviewVersion::V1, &object(&review), "u", mutating) {
                Ok(answer) => if answer.allowed { "allowed" } else { "denied" }.to_owned(),
                Err(error) => error.to_string(),
            };
            assert_eq!(shown, want, "{review}");
        }
        let old = read(
            AdmissionReviewVersion::V1beta1,
            &object(r#"{"response":{"allowed":true,"patch":"W10="}}"#),
            "u",
            true,
        );
        assert_eq!(old.expect("nothing of it is checked").patch_type, "JSONPatch");
    }
}
