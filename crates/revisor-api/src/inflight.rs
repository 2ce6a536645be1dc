//! [`Inflight`]: how many requests may be served at once, without queues. One too many is told to come back.
//!
//! Long-running requests do not count, because they are bounded elsewhere and would fill the places for hours;
//! callers do not ask for a place for them.

use std::sync::Arc;

use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use prometheus::IntGauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::text;
use crate::body::Body;
use crate::metrics::Metrics;

/// How many requests may be served at once. Zero means that there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InflightLimits {
    /// For requests that change nothing.
    pub read_only: usize,
    /// For requests that do.
    pub mutating: usize,
}

impl Default for InflightLimits {
    fn default() -> InflightLimits {
        InflightLimits { read_only: 400, mutating: 200 }
    }
}

/// Which of the two limits a request counts towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// get, list, watch and everything else that changes nothing.
    ReadOnly,
    /// Everything else.
    Mutating,
}

/// The places for requests that are being served.
#[derive(Debug)]
pub struct Inflight {
    read_only: Places,
    mutating: Places,
}

#[derive(Debug)]
struct Places {
    /// Absent when there is no limit.
    free: Option<Arc<Semaphore>>,
    taken: IntGauge,
}

impl Inflight {
    /// Places within `limits`; how many are taken shows in `metrics`.
    pub fn new(limits: InflightLimits, metrics: &Metrics) -> Inflight {
        let places = |limit: usize, kind| Places {
            free: (limit > 0).then(|| Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)))),
            taken: metrics.inflight(kind),
        };
        Inflight {
            read_only: places(limits.read_only, RequestKind::ReadOnly),
            mutating: places(limits.mutating, RequestKind::Mutating),
        }
    }

    /// A place for a request, for as long as the guard lives.
    ///
    /// A `privileged` request (one by a member of `system:masters`) is always served: whoever must repair an
    /// overloaded server has to be able to speak to it.
    pub fn admit(&self, kind: RequestKind, privileged: bool) -> Result<InflightGuard, TooManyRequests> {
        let places = match kind {
            RequestKind::ReadOnly => &self.read_only,
            RequestKind::Mutating => &self.mutating,
        };
        let place = places.free.as_ref().map(|free| Arc::clone(free).try_acquire_owned());
        let place = match place {
            None => None,
            Some(Ok(place)) => Some(place),
            Some(Err(_)) if privileged => None,
            Some(Err(_)) => return Err(TooManyRequests),
        };
        places.taken.inc();
        Ok(InflightGuard { _place: place, taken: places.taken.clone() })
    }
}

/// A request's place; free again when this is dropped. It belongs to the answer's body, see [`Body::on_end`]: a
/// request is served until its last byte has left.
#[derive(Debug)]
pub struct InflightGuard {
    /// Absent where no limit applied.
    _place: Option<OwnedSemaphorePermit>,
    taken: IntGauge,
}

impl Drop for InflightGuard {
    fn drop(&mut self) {
        self.taken.dec();
    }
}

/// All places are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests are being served")]
pub struct TooManyRequests;

impl TooManyRequests {
    /// How the client is told: in plain text, as the original does, because at this point no encoding was agreed.
    pub fn response(self) -> Response<Body> {
        let message = "Too many requests, please try again later.\n";
        let mut response = text(StatusCode::TOO_MANY_REQUESTS, message);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::RequestKind::{Mutating, ReadOnly};
    use super::*;

    #[test]
    fn places() {
        for (name, limits, taken, asks, privileged, admitted) in [
            ("room", (2, 1), vec![ReadOnly], ReadOnly, false, true),
            ("full", (2, 1), vec![ReadOnly, ReadOnly], ReadOnly, false, false),
            ("full, but privileged", (2, 1), vec![ReadOnly, ReadOnly], ReadOnly, true, true),
            ("writes have their own", (2, 1), vec![ReadOnly, ReadOnly], Mutating, false, true),
            ("writes full", (2, 1), vec![Mutating], Mutating, false, false),
            ("writes full, reads not", (2, 1), vec![Mutating], ReadOnly, false, true),
            ("no limit on reads", (0, 1), vec![ReadOnly; 1000], ReadOnly, false, true),
            ("no limit on writes", (1, 0), vec![Mutating; 1000], Mutating, false, true),
        ] {
            let metrics = Metrics::new(Vec::new);
            let limits = InflightLimits { read_only: limits.0, mutating: limits.1 };
            let inflight = Inflight::new(limits, &metrics);
            let guards: Vec<_> = taken
                .iter()
                .map(|kind| inflight.admit(*kind, false).expect("the table's own places are free"))
                .collect();
            let got = inflight.admit(asks, privileged);
            assert_eq!(got.is_ok(), admitted, "{name}");
            drop((guards, got));
            for kind in [ReadOnly, Mutating] {
                assert_eq!(metrics.inflight(kind).get(), 0, "{name}: {kind:?} after the guards are gone");
                assert!(inflight.admit(kind, false).is_ok(), "{name}: {kind:?} is free again");
            }
        }
    }

    #[test]
    fn the_answer() {
        let response = TooManyRequests.response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        let Body::Full(text) = response.into_body() else { panic!("a text") };
        assert_eq!(text, "Too many requests, please try again later.\n");
    }
}
