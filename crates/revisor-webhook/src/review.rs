//! [`WebhookClient::ask_for_review`]: reviews other than those of admission and conversion: of tokens, of access, of
//! images. Who answers them is asked again after failures that pass (upstream: `GenericWebhook`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use revisor_object::Object;

use crate::{AnswerError, CallError, ClientConfig, Credentials, NetError, WebhookClient};

/// Far more than such a review needs.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// How often one is asked, and by how much the pauses in between grow.
const ATTEMPTS: u32 = 5;
const GROWTH: f64 = 1.5;

/// What kind of review is asked for.
#[derive(Debug, Clone, Copy)]
pub struct ReviewKind<'a> {
    /// The group.
    pub group: &'a str,
    /// The version in which it is asked.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

/// How one is waited for.
#[derive(Debug, Clone, Copy)]
pub struct ReviewPatience {
    /// How long one answer may take.
    pub timeout: Duration,
    /// How long the first pause is before asking again.
    pub pause: Duration,
}

/// Why there is no review.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// There was no answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// What was answered cannot be read.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// What was answered is something else.
    #[error("converting ({found}) to ({wanted}): unknown conversion")]
    Kind {
        /// Its version and kind.
        found: String,
        /// Those that were asked for.
        wanted: String,
    },
}

impl WebhookClient {
    /// Posts a review and gives back what was answered. Failures that pass are waited out.
    pub async fn ask_for_review(
        &self,
        config: &ClientConfig,
        credentials: &Arc<Credentials>,
        review: Bytes,
        kind: ReviewKind<'_>,
        patience: ReviewPatience,
    ) -> Result<Object, ReviewError> {
        let ReviewPatience { timeout, mut pause } = patience;
        let mut attempt = 1;
        loop {
            match self.post_as(config, Some(credentials), review.clone(), timeout, MAX_ANSWER_BYTES).await {
                Ok(answer) => return kind.check(answer.object()?),
                Err(error) if attempt < ATTEMPTS && passes(&error) => {
                    tokio::time::sleep(pause).await;
                    (pause, attempt) = (pause.mul_f64(GROWTH), attempt + 1);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl ReviewKind<'_> {
    /// The answer, if it is one of this kind or does not say what it is.
    fn check(self, answer: Object) -> Result<Object, ReviewError> {
        let text = |name| answer.str(name).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_version = api_version.is_empty() || (group, version) == (self.group, self.version);
        if is_version && (kind.is_empty() || kind == self.kind) {
            return Ok(answer);
        }
        Err(ReviewError::Kind { found: format!("{version}.{kind}"), wanted: format!("{}.{}", self.version, self.kind) })
    }
}

/// Whether it may be otherwise a moment later (upstream: `DefaultShouldRetry`). A webhook that says when to ask again was
/// asked again already.
fn passes(error: &CallError) -> bool {
    match error {
        CallError::Net { cause: NetError::Broken { problem, .. }, .. } => problem.contains("connection reset"),
        CallError::Status(answer) => matches!(
            answer.code,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::INTERNAL_SERVER_ERROR | StatusCode::GATEWAY_TIMEOUT
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::{Value, parse_json};

    use super::*;
    use crate::StatusAnswer;

    #[test]
    fn an_answer_must_be_of_the_kind_that_was_asked_for() {
        let kind = ReviewKind { group: "authorization.k8s.io", version: "v1", kind: "SubjectAccessReview" };
        for (answer, want) in [
            ("{}", Ok(())),
            (r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview"}"#, Ok(())),
            (
                r#"{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview"}"#,
                Err("converting (v1beta1.SubjectAccessReview) to (v1.SubjectAccessReview): unknown conversion"),
            ),
            (
                r#"{"apiVersion":"v1","kind":"Pod"}"#,
                Err("converting (v1.Pod) to (v1.SubjectAccessReview): unknown conversion"),
            ),
        ] {
            let Value::Object(object) = parse_json(answer.as_bytes()).expect(answer).value else { panic!("{answer}") };
            let got = kind.check(object).map(drop).map_err(|error| error.to_string());
            assert_eq!(got.as_ref().map_err(String::as_str), want.as_ref().map_err(|error| *error), "{answer}");
        }
    }

    #[test]
    fn what_passes_is_tried_again_and_nothing_else() {
        let status = |code| {
            let code = StatusCode::from_u16(code).expect("it is a status");
            CallError::Status(StatusAnswer { code, message: String::new() })
        };
        let net = |cause| CallError::Net { url: "https://a".to_owned(), cause };
        let ends = |problem: &str| NetError::Broken {
            local: ([127, 0, 0, 1], 2).into(),
            remote: ([127, 0, 0, 1], 3).into(),
            problem: problem.to_owned(),
        };
        for (error, want) in [
            (status(500), true),
            (status(504), true),
            (status(429), true),
            (status(503), false),
            (status(404), false),
            (net(ends("connection reset by peer")), true),
            (net(ends("broken pipe")), false),
            (net(NetError::Refused(([127, 0, 0, 1], 1).into())), false),
            (net(NetError::Timeout), false),
            (CallError::TooLarge(1), false),
        ] {
            assert_eq!(passes(&error), want, "{error}");
        }
    }
}
