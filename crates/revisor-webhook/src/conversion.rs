//! Custom objects converted by a webhook: [`WebhookClient::convert`].
//!
//! The webhook is asked with a `ConversionReview`, see `review.rs`. What it answers is believed only as far as it may
//! decide: it may rewrite everything but the identity of an object, and of metadata only labels and annotations, see
//! `converted.rs`.

mod converted;
mod review;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use revisor_object::{Object, Value};

use crate::{CallError, ClientConfig, ClientConfigError, WebhookClient};
use review::ReviewVersion;

/// How large a converted object may be: more than any object that could have been written. A webhook that answers
/// garbage is stopped here, before it is read into something many times as large.
const MAX_CONVERTED_BYTES: usize = 4 << 20;

/// A webhook that converts, as `spec.conversion.webhook` of a definition says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionWebhook {
    /// Where it is.
    pub client: ClientConfig,
    /// The versions of `ConversionReview` that it understands, best first.
    pub review_versions: Vec<String>,
}

impl ConversionWebhook {
    /// Reads `spec.conversion.webhook` of a definition.
    pub fn from_object(webhook: &Object) -> Result<ConversionWebhook, ClientConfigError> {
        let config = webhook.object("clientConfig").ok_or(ClientConfigError::NoTarget)?;
        let versions = webhook.array("conversionReviewVersions").iter();
        Ok(ConversionWebhook {
            client: ClientConfig::from_object(config)?,
            review_versions: versions.filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
        })
    }
}

/// Why objects were not converted. Each is a failure of the server to its client, with these words.
#[derive(Debug, thiserror::Error)]
pub enum ConversionError {
    /// The webhook understands no version of `ConversionReview` that the server speaks.
    #[error("no supported conversion review versions")]
    NoReviewVersion,
    /// The webhook did not answer.
    #[error("conversion webhook for {kind} failed: {cause}")]
    Call {
        /// What was to be converted.
        kind: String,
        /// Why.
        cause: CallError,
    },
    /// The answer is no review, or says that the conversion failed.
    #[error("conversion webhook for {kind} failed: {problem}")]
    Answer {
        /// What was to be converted.
        kind: String,
        /// What is wrong with the answer, or what it says.
        problem: String,
    },
    /// Objects are missing from the answer, or there are too many.
    #[error("conversion webhook for {kind} returned {got} objects, expected {want}")]
    Count {
        /// What was to be converted.
        kind: String,
        /// How many came back.
        got: usize,
        /// How many were sent.
        want: usize,
    },
    /// An object in the answer is not what was asked for.
    #[error("{0}")]
    Object(String),
}

impl WebhookClient {
    /// Has `objects` converted to `desired` (`stable.example.com/v2`), and returns them in the same order.
    ///
    /// Objects that already are in that version are not sent; if none is left, nobody is asked. The others go out in
    /// one request, so their number and size are for the caller to bound. Objects whose conversion fails fail all: the
    /// error is that of the first.
    ///
    /// `uid` identifies the request and must be new.
    pub async fn convert(
        &self,
        webhook: &ConversionWebhook,
        uid: &str,
        desired: &str,
        mut objects: Vec<Object>,
        timeout: Duration,
    ) -> Result<Vec<Object>, ConversionError> {
        let mut sent = Vec::new();
        for (index, object) in objects.iter_mut().enumerate() {
            if object.str("apiVersion") == Some(desired) {
                continue;
            }
            // An object without any content has none to be converted.
            if object.len() == 2 && object.contains("apiVersion") && object.contains("kind") {
                object.insert("apiVersion", desired);
                continue;
            }
            sent.push(index);
        }
        let version = ReviewVersion::first_of(&webhook.review_versions).ok_or(ConversionError::NoReviewVersion)?;
        let Some(first) = sent.first() else { return Ok(objects) };

        let kind = GroupVersionKind::of(&objects[*first]).to_string();
        let malformed = |problem: String| ConversionError::Answer { kind: kind.clone(), problem };
        let body = version.request(uid, desired, sent.iter().map(|index| &objects[*index]).collect());
        let most = sent.len().saturating_mul(MAX_CONVERTED_BYTES);
        let called = self.post_for(&webhook.client, Bytes::from(body), timeout, most).await;
        let answer = called.map_err(|cause| ConversionError::Call { kind: kind.clone(), cause })?;
        let review = answer.object().map_err(|error| malformed(error.to_string()))?;
        let converted = version.converted_objects(review, uid).map_err(malformed)?;
        if converted.len() != sent.len() {
            return Err(ConversionError::Count { kind, got: converted.len(), want: sent.len() });
        }
        for (position, (index, converted)) in sent.into_iter().zip(converted).enumerate() {
            let original = std::mem::take(&mut objects[index]);
            objects[index] =
                converted::check(original, converted, desired, position).map_err(ConversionError::Object)?;
        }
        Ok(objects)
    }
}

/// Group, version and kind, as Kubernetes prints them: `stable.example.com/v1, Kind=Widget`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GroupVersionKind<'o> {
    group: &'o str,
    version: &'o str,
    kind: &'o str,
}

impl<'o> GroupVersionKind<'o> {
    /// That of an object. All is empty if the version cannot be read.
    fn of(object: &'o Object) -> GroupVersionKind<'o> {
        let kind = object.str("kind").unwrap_or_default();
        let api_version = object.str("apiVersion").unwrap_or_default();
        match api_version.split_once('/') {
            _ if api_version == "/" => GroupVersionKind { group: "", version: "", kind },
            None => GroupVersionKind { group: "", version: api_version, kind },
            Some((_, version)) if version.contains('/') => GroupVersionKind { group: "", version: "", kind: "" },
            Some((group, version)) => GroupVersionKind { group, version, kind },
        }
    }

    /// Group and version as an object has them.
    fn api_version(self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

impl fmt::Display for GroupVersionKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_printed_with_group_and_version() {
        for (api_version, kind, want, short) in [
            ("g.io/v1", "Widget", "g.io/v1, Kind=Widget", "g.io/v1"),
            ("v1", "Pod", "/v1, Kind=Pod", "v1"),
            ("", "", "/, Kind=", ""),
            ("/", "X", "/, Kind=X", ""),
            ("a/b/c", "X", "/, Kind=", ""),
        ] {
            let members = vec![("apiVersion".into(), api_version.into()), ("kind".into(), kind.into())];
            let object = Object::from_members(members);
            let found = GroupVersionKind::of(&object);
            assert_eq!((found.to_string().as_str(), found.api_version().as_str()), (want, short), "{api_version}");
        }
    }
}
