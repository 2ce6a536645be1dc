//! One line per request, and the id by which a client, a log and an audit trail speak of the same request.
//!
//! A line holds what is safe to keep: method, path, status, sizes, times, where from. Never a query string, which
//! may hold a token, and never a header.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use uuid::Uuid;

use crate::body::Body;

/// The header that carries a [`RequestId`], both ways.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The longest id that is taken from a client.
const MAX_ID: usize = 64;

/// The most of a path that is logged.
const MAX_PATH: usize = 512;

/// A request that takes longer is worth a line that is seen by default.
const SLOW: Duration = Duration::from_secs(1);

/// The name of one request: taken from the client's `Audit-ID` header if that is usable, made up otherwise, and
/// echoed as `Audit-Id`. The server puts it into the extensions of every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The id that a request with these headers goes by.
    pub fn from_headers(headers: &HeaderMap) -> RequestId {
        match headers.get(AUDIT_ID) {
            // Copied, because the original is a piece of the buffer that the request was read into, and would keep
            // all of that alive as long as the answer lasts.
            Some(value) if usable(value.as_bytes()) => {
                RequestId(HeaderValue::from_bytes(value.as_bytes()).expect("it was a header value"))
            }
            _ => RequestId::random(),
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().expect("ids are visible ASCII by construction")
    }

    fn random() -> RequestId {
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        let text = Uuid::new_v4().hyphenated().encode_lower(&mut text);
        RequestId(HeaderValue::from_str(text).expect("a UUID is visible ASCII"))
    }
}

fn usable(id: &[u8]) -> bool {
    (1..=MAX_ID).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

fn shortened(path: &str) -> &str {
    &path[..path.floor_char_boundary(MAX_PATH)]
}

/// Marks an answer as one that lasts as long as the client wants, by being put into the response's extensions: it
/// is then never called slow, and never compressed.
#[derive(Debug, Clone, Copy)]
pub struct LongRunning;

/// A request under way. Its line is written when this is dropped, so that no way out of a request escapes the log.
pub(crate) struct AccessRecord {
    id: RequestId,
    peer: SocketAddr,
    method: Method,
    /// A copy, for the same reason as the id.
    path: Box<str>,
    started: Instant,
    /// Absent until there is an answer; a client that leaves before that is logged without one.
    status: Option<StatusCode>,
    long_running: bool,
    bytes: u64,
}

impl AccessRecord {
    pub(crate) fn begin<B>(request: &Request<B>, peer: SocketAddr) -> AccessRecord {
        AccessRecord {
            id: RequestId::from_headers(request.headers()),
            peer,
            method: request.method().clone(),
            path: shortened(request.uri().path()).into(),
            started: Instant::now(),
            status: None,
            long_running: false,
            bytes: 0,
        }
    }

    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }

    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// There is an answer, which gets the id into its headers.
    pub(crate) fn answered(&mut self, response: &mut Response<Body>) {
        self.status = Some(response.status());
        self.long_running = response.extensions().get::<LongRunning>().is_some();
        response.headers_mut().insert(AUDIT_ID, self.id.0.clone());
    }

    /// So much of the answer was sent.
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    pub(crate) fn is_long_running(&self) -> bool {
        self.long_running
    }

    fn noteworthy(&self, duration: Duration) -> bool {
        self.status.is_some_and(|status| status.is_server_error()) || (!self.long_running && duration > SLOW)
    }
}

impl Drop for AccessRecord {
    fn drop(&mut self) {
        let duration = self.started.elapsed();
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    id = self.id.as_str(),
                    peer = %self.peer,
                    method = self.method.as_str(),
                    path = self.path(),
                    status = self.status.map(|status| status.as_u16()),
                    bytes = self.bytes,
                    duration_us = duration.as_micros() as u64,
                    "request"
                )
            };
        }
        if self.noteworthy(duration) {
            line!(info);
        } else {
            line!(debug);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_taken_or_made() {
        let long = "x".repeat(MAX_ID + 1);
        for (sent, taken) in
            [("c0ffee-1", true), ("", false), ("two words", false), (long.as_str(), false), (&long[1..], true)]
        {
            let mut headers = HeaderMap::new();
            headers.insert("Audit-ID", HeaderValue::from_str(sent).expect("a header value"));
            let id = RequestId::from_headers(&headers);
            assert_eq!(id.as_str() == sent, taken, "{sent:?}");
            if !taken {
                Uuid::parse_str(id.as_str()).expect("made ids are UUIDs");
            }
        }
        let none = HeaderMap::new();
        assert_ne!(RequestId::from_headers(&none), RequestId::from_headers(&none));
    }

    #[test]
    fn which_requests_are_seen_by_default() {
        let second = Duration::from_secs(1);
        for (name, status, long_running, duration, want) in [
            ("quick", Some(200), false, second / 2, false),
            ("slow", Some(200), false, second * 2, true),
            ("a watch is not slow", Some(200), true, second * 900, false),
            ("client errors are ordinary", Some(404), false, second / 2, false),
            ("server errors are not", Some(500), false, second / 2, true),
            ("the client left", None, false, second / 2, false),
            ("the client gave up", None, false, second * 60, true),
        ] {
            let request = Request::builder().uri("/api/v1/pods?token=secret").body(()).expect("a request");
            let mut record = AccessRecord::begin(&request, ([127, 0, 0, 1], 1).into());
            record.status = status.map(|code| StatusCode::from_u16(code).expect("a status"));
            record.long_running = long_running;
            assert_eq!(record.noteworthy(duration), want, "{name}");
            assert_eq!(record.path(), "/api/v1/pods", "{name}");
        }
    }

    #[test]
    fn answers_carry_the_id() {
        let request = Request::builder().header("Audit-ID", "abc").body(()).expect("a request");
        let mut record = AccessRecord::begin(&request, ([127, 0, 0, 1], 1).into());
        let mut response = Response::new(Body::from("x"));
        record.answered(&mut response);
        assert_eq!(response.headers()["Audit-Id"], "abc");
    }
}
