//! How a body is written: what `Content-Type` says, and what is read of it.

use std::collections::HashSet;

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

/// What is told who sends a patch in another type.
pub(crate) fn unsupported_patch(is_custom: bool, has_cbor: bool) -> Box<Status> {
    let mut possible = if is_custom { CUSTOM_PATCHES } else { PATCHES }.to_vec();
    possible.extend(has_cbor.then_some(CBOR_PATCH));
    Box::new(Status::unsupported_media_type(&possible))
}

/// Whether the route of a built-in kind takes a patch at all: it looks for its types among all that are named, of which the
/// whole text must be one later (upstream: `matchesContentType` of go-restful). Routes of custom resources take everything.
pub(crate) fn is_routed_patch(headers: &HeaderMap, has_cbor: bool) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut named = value.split(',').map(|named| named.split(';').next().unwrap_or_default().trim_matches(' '));
    named.any(|named| PATCHES.contains(&named) || has_cbor && named == CBOR_PATCH)
}

/// What is told who is refused at the route, which names no types.
pub(crate) fn unrouted_patch() -> Box<Status> {
    let mut status = Status::unsupported_media_type(&[]);
    "415: Unsupported Media Type".clone_into(&mut status.message);
    status.details = Some(StatusDetails::default());
    Box::new(status)
}

/// The type without its parameters, in small letters. One with parameters that are none is no type (upstream:
/// `mime.ParseMediaType`).
fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (media_type, parameters) = value.split_at(value.find(';').unwrap_or(value.len()));
    are_parameters(parameters).then(|| media_type.trim().to_ascii_lowercase())
}

/// Whether this is nothing, or each time a semicolon, a name and a value. The last semicolon may stand alone.
fn are_parameters(mut rest: &str) -> bool {
    let is_token = |letter: char| letter.is_ascii_graphic() && !"()<>@,;:\\\"/[]?=".contains(letter);
    let mut names = HashSet::new();
    loop {
        rest = rest.trim_start();
        let Some(parameter) = rest.strip_prefix(';').map(str::trim_start) else { return rest.is_empty() };
        if parameter.is_empty() {
            return true;
        }
        let (name, value) = parameter.split_at(parameter.find(|letter| !is_token(letter)).unwrap_or(parameter.len()));
        let Some(value) = value.trim_start().strip_prefix('=').map(str::trim_start) else { return false };
        let end = match value.strip_prefix('"') {
            Some(quoted) => end_of_quoted(quoted).map(|end| end + 1),
            None => Some(value.find(|letter| !is_token(letter)).unwrap_or(value.len())),
        };
        match end {
            Some(end) if end > 0 && !name.is_empty() && names.insert(name.to_ascii_lowercase()) => rest = &value[end..],
            _ => return false,
        }
    }
}

/// Where a text that began with a quotation mark ends, behind the other one.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.find(|letter| {
        let ends = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    });
    end.map(|end| end + 1)
}

/// How the body is written; JSON if the client does not say. `None` for a type that is not read.
pub(crate) fn body_format(headers: &HeaderMap, has_cbor: bool) -> Option<Format> {
    // A header that says something else than a type is not silence.
    if headers.get(CONTENT_TYPE).is_none_or(|value| value.as_bytes().trim_ascii().is_empty()) {
        return Some(Format::Json);
    }
    match media_type(headers)?.as_str() {
        "application/json" => Some(Format::Json),
        "application/yaml" => Some(Format::Yaml),
        "application/vnd.kubernetes.protobuf" => Some(Format::Protobuf),
        "application/cbor" if has_cbor => Some(Format::Cbor),
        _ => None,
    }
}

/// How the patch is written. `None` for a type that is not read.
pub(crate) fn patch_kind(headers: &HeaderMap, has_cbor: bool) -> Option<PatchKind> {
    // As in the original, which looks for the exact text, unlike for the types of bodies.
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match value.split(';').next().unwrap_or_default() {
        "application/merge-patch+json" => Some(PatchKind::Merge),
        "application/json-patch+json" => Some(PatchKind::Json),
        "application/strategic-merge-patch+json" => Some(PatchKind::Strategic),
        "application/apply-patch+yaml" => Some(PatchKind::Apply),
        CBOR_PATCH if has_cbor => Some(PatchKind::ApplyCbor),
        _ => None,
    }
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
            (Some("application/json;"), Some(Format::Json)),
            (Some("application/json; a=b; c=\"d;\\\"\" "), Some(Format::Json)),
            (Some("application/json; a"), None),
            (Some("application/json; a="), None),
            (Some("application/json; a=b; A=c"), None),
            (Some("application/json; a=\"b"), None),
            (Some("application/json;; a=b"), None),
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
