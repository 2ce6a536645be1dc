//! How a body is written: what `Content-Type` says, and what is read of it.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use revisor_object::{Status, StatusDetails};
use revisor_registry::{Format, PatchKind};

/// The types that patches can be sent in.
pub(crate) const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The types that patches of custom objects can be sent in: only built-in kinds have a strategy for merging.
pub(crate) const CUSTOM_PATCHES: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// How a configuration that is applied is written in CBOR.
pub(crate) const CBOR_PATCH: &str = "application/apply-patch+cbor";

/// What is told who sends a patch in another type. Built-in kinds are refused at their route, which names none.
pub(crate) fn unsupported_patch(is_custom: bool, has_cbor: bool) -> Box<Status> {
    let mut possible = CUSTOM_PATCHES.to_vec();
    possible.extend(has_cbor.then_some(CBOR_PATCH));
    let mut status = Status::unsupported_media_type(&possible);
    if !is_custom {
        "415: Unsupported Media Type".clone_into(&mut status.message);
        status.details = Some(StatusDetails::default());
    }
    Box::new(status)
}

/// The type without its parameters, in small letters.
fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// How the body is written; JSON if the client does not say. `None` for a type that is not read.
pub(crate) fn body_format(headers: &HeaderMap, has_cbor: bool) -> Option<Format> {
    // A header that says something else than a type is not silence.
    if headers.get(CONTENT_TYPE).is_none_or(|value| value.as_bytes().trim_ascii().is_empty()) {
        return Some(Format::Json);
    }
    match media_type(headers).as_str() {
        "application/json" => Some(Format::Json),
        "application/yaml" => Some(Format::Yaml),
        "application/vnd.kubernetes.protobuf" => Some(Format::Protobuf),
        "application/cbor" if has_cbor => Some(Format::Cbor),
        _ => None,
    }
}

/// How the patch is written. `None` for a type that is not read.
pub(crate) fn patch_kind(headers: &HeaderMap, has_cbor: bool) -> Option<SentPatch> {
    let kind = match media_type(headers).as_str() {
        "application/merge-patch+json" => Some(PatchKind::Merge),
        "application/json-patch+json" => Some(PatchKind::Json),
        "application/strategic-merge-patch+json" => Some(PatchKind::Strategic),
        "application/apply-patch+yaml" => Some(PatchKind::Apply),
        CBOR_PATCH if has_cbor => return Some(SentPatch { kind: PatchKind::Apply, is_cbor: true }),
        _ => None,
    };
    kind.map(|kind| SentPatch { kind, is_cbor: false })
}

/// A patch as it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentPatch {
    pub(crate) kind: PatchKind,
    pub(crate) is_cbor: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_unless_the_client_says_otherwise() {
        for (content_type, want) in [
            (None, Some(Format::Json)),
            (Some(""), Some(Format::Json)),
            (Some("application/json; charset=utf-8"), Some(Format::Json)),
            (Some("application/yaml"), Some(Format::Yaml)),
            (Some("Application/Vnd.Kubernetes.Protobuf;stream=watch"), Some(Format::Protobuf)),
            (Some(";;;"), None),
            (Some("text/plain"), None),
            (Some("application/protobuf"), None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(content_type) = content_type {
                headers.insert(CONTENT_TYPE, content_type.parse().expect("a header"));
            }
            assert_eq!(body_format(&headers, true), want, "{content_type:?}, with CBOR");
            assert_eq!(body_format(&headers, false), want, "{content_type:?}");
        }
    }
}
