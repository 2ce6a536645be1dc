//! [`ClusterError`]: why a cluster did not do what was asked.

use http::{Method, StatusCode};
use revisor_object::{Object, Value, parse_json};

/// How much is shown of an answer that is no `Status`.
const SHOWN: usize = 400;

/// Why a cluster did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// It was reached, and said no.
    #[error("{method} {url}: {message} ({code})")]
    Refused {
        /// What was done.
        method: Method,
        /// To what.
        url: String,
        /// The status of HTTP.
        code: u16,
        /// The reason of the `Status`, such as `NotFound`; empty if there is none.
        reason: String,
        /// What it says.
        message: String,
        /// The whole `Status`, with its causes.
        status: Option<Object>,
    },
    /// It was not reached, or the answer makes no sense.
    #[error("{url}: {cause}")]
    Net {
        /// What was asked for.
        url: String,
        /// What went wrong.
        cause: String,
    },
}

impl ClusterError {
    pub(super) fn net(url: &str, cause: impl ToString) -> ClusterError {
        ClusterError::Net { url: url.to_owned(), cause: cause.to_string() }
    }

    pub(super) fn refused(method: &Method, url: &str, code: StatusCode, body: &[u8]) -> ClusterError {
        let status = parse_json(body).ok().and_then(|parsed| match parsed.value {
            Value::Object(status) if status.str("kind") == Some("Status") => Some(status),
            _ => None,
        });
        let said = |name: &str| status.as_ref().and_then(|status| status.str(name)).unwrap_or_default().to_owned();
        let (reason, mut message) = (said("reason"), said("message"));
        if message.is_empty() {
            let said: String = String::from_utf8_lossy(body).chars().take(SHOWN).collect();
            message = match said.trim() {
                "" => code.canonical_reason().unwrap_or("no explanation").to_owned(),
                text => text.to_owned(),
            };
        }
        ClusterError::Refused {
            method: method.clone(),
            url: url.to_owned(),
            code: code.as_u16(),
            reason,
            message,
            status,
        }
    }

    /// The status of HTTP, if there was an answer.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            ClusterError::Refused { code, .. } => Some(*code),
            ClusterError::Net { .. } => None,
        }
    }

    /// The reason of the `Status`, such as `NotFound`; empty if there is none.
    pub(crate) fn reason(&self) -> &str {
        match self {
            ClusterError::Refused { reason, .. } => reason,
            ClusterError::Net { .. } => "",
        }
    }

    /// Whether it is because the version that was asked for is not there yet.
    pub(crate) fn is_too_large_version(&self) -> bool {
        let ClusterError::Refused { status: Some(status), .. } = self else { return false };
        let causes = status.object("details").map(|details| details.array("causes")).unwrap_or_default();
        causes.iter().filter_map(Value::as_object).any(|cause| cause.str("reason") == Some("ResourceVersionTooLarge"))
    }
}
