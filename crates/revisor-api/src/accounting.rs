//! [`Accounting`]: what metrics want to know of an answer beside what its client gets. It travels in the extensions of the
//! response, where there is anything to tell.

use std::time::Duration;

use http::Response;

use crate::Body;

/// What is known of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Accounting {
    /// How long others were waited for who are not the server: webhooks.
    pub(crate) elsewhere: Duration,
    /// Whether the server gave the request up to protect itself (upstream: `RecordRequestTermination`).
    pub(crate) is_terminated: bool,
}

impl Accounting {
    /// What is known of this answer.
    pub(crate) fn of(response: &Response<Body>) -> Accounting {
        response.extensions().get().copied().unwrap_or_default()
    }

    /// The answer, with this known of it.
    pub(crate) fn terminated(mut response: Response<Body>) -> Response<Body> {
        let known = Accounting::of(&response);
        response.extensions_mut().insert(Accounting { is_terminated: true, ..known });
        response
    }

    /// Notes how long webhooks were waited for.
    pub(crate) fn note_elsewhere(response: &mut Response<Body>, elsewhere: Duration) {
        if !elsewhere.is_zero() {
            let known = Accounting::of(response);
            response.extensions_mut().insert(Accounting { elsewhere, ..known });
        }
    }
}
