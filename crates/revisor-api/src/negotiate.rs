//! What the client sends and wants: media types, and whether a person is reading.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use revisor_registry::{Format, PatchKind};

/// The types that objects can be answered in.
pub(crate) const ANSWERED: &[&str] = &["application/json"];

/// The types that objects can be sent in.
pub(crate) const READ: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The types that patches can be sent in.
pub(crate) const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// Whether one of the types that the client accepts is JSON of whole objects.
pub(crate) fn accepts_json(headers: &HeaderMap) -> bool {
    let mut clauses =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let Some(first) = clauses.next() else { return true };
    std::iter::once(first).chain(clauses).any(|clause| {
        let mut parts = clause.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        // A transformation (`as=Table`) is another representation; who wants only that is not served by the plain one.
        let mut is_plain = true;
        for part in parts {
            is_plain &= !part.starts_with("as=") && part != "q=0" && !part.starts_with("stream=");
        }
        is_plain && (matches!(media_type, "*/*" | "application/json") || (media_type.is_empty() && clause.is_empty()))
    })
}

fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// How the body is written; JSON if the client does not say. `None` for a type that is not read.
pub(crate) fn body_format(headers: &HeaderMap) -> Option<Format> {
    // A header that says something else than a type is not silence.
    if headers.get(CONTENT_TYPE).is_none_or(|value| value.as_bytes().trim_ascii().is_empty()) {
        return Some(Format::Json);
    }
    match media_type(headers) {
        "application/json" => Some(Format::Json),
        "application/yaml" => Some(Format::Yaml),
        "application/vnd.kubernetes.protobuf" => Some(Format::Protobuf),
        _ => None,
    }
}

/// How the patch is written. `None` for a type that is not read.
pub(crate) fn patch_kind(headers: &HeaderMap) -> Option<PatchKind> {
    match media_type(headers) {
        "application/merge-patch+json" => Some(PatchKind::Merge),
        "application/json-patch+json" => Some(PatchKind::Json),
        "application/strategic-merge-patch+json" => Some(PatchKind::Strategic),
        "application/apply-patch+yaml" => Some(PatchKind::Apply),
        _ => None,
    }
}

/// Whether the answer should be laid out for a person: when asked for, or when a browser or curl asks and does not say.
pub(crate) fn is_pretty(headers: &HeaderMap, asked: Option<bool>) -> bool {
    asked.unwrap_or_else(|| {
        let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        ["curl", "Wget", "Mozilla/5.0"].iter().any(|person| agent.starts_with(person))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_served_to_whom_it_suits() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        for (accept, want) in [
            (None, true),
            (Some("application/json"), true),
            (Some("*/*"), true),
            (Some(kubectl), true),
            (Some("application/vnd.kubernetes.protobuf,application/json"), true),
            (Some("application/vnd.kubernetes.protobuf, */*;q=0.8"), true),
            (Some("application/*"), false),
            (Some("application/vnd.kubernetes.protobuf"), false),
            (Some("application/json;as=Table;v=v1;g=meta.k8s.io"), false),
            (Some("text/html"), false),
            (Some("application/json;q=0"), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, accept.parse().expect("a header"));
            }
            assert_eq!(accepts_json(&headers), want, "{accept:?}");
        }
    }

    #[test]
    fn bodies_are_json_unless_the_client_says_otherwise() {
        for (content_type, want) in [
            (None, Some(Format::Json)),
            (Some(""), Some(Format::Json)),
            (Some("application/json; charset=utf-8"), Some(Format::Json)),
            (Some("application/yaml"), Some(Format::Yaml)),
            (Some(";;;"), None),
            (Some("text/plain"), None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(content_type) = content_type {
                headers.insert(CONTENT_TYPE, content_type.parse().expect("a header"));
            }
            assert_eq!(body_format(&headers), want, "{content_type:?}");
        }
    }
}
