//! [`CallError`]: why a webhook gave no answer that could be read, in the words that clients of Kubernetes know.
//!
//! Those words are Go's: its network library names the address, the step and the cause, and operators search for them.

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use http::StatusCode;
use revisor_object::BadValue;

use crate::answer::object;
use crate::media_type::media_type;
use crate::{ClientConfigError, UnresolvedService, X509Error};

/// How much of an error's body is shown.
const SHOWN_BYTES: usize = 2048;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The webhook cannot be called as it is configured.
    #[error(transparent)]
    Config(#[from] ClientConfigError),
    /// There was no answer.
    #[error("Post {}: {cause}", BadValue::from(url.as_str()))]
    Net {
        /// Who was asked.
        url: String,
        /// Why.
        cause: NetError,
    },
    /// The answer broke off.
    #[error("unexpected error when reading response body. Please retry. Original error: {0}")]
    Body(NetError),
    /// The answer is larger than the limit.
    #[error("the response is larger than {0} bytes")]
    TooLarge(usize),
    /// The content type is none.
    #[error("Internal error occurred: {0}")]
    ContentType(&'static str),
    /// The answer is an error.
    #[error("{}", .0.message)]
    Status(StatusAnswer),
}

/// An answer with a status below 200 or above 206.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusAnswer {
    /// The status.
    pub code: StatusCode,
    /// What it means: the message of the `Status` that came with it, or a sentence for the code.
    pub message: String,
}

/// What went wrong between here and the webhook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// The host has no address.
    #[error("dial tcp: lookup {0}: no such host")]
    NoSuchHost(String),
    /// The service leads nowhere.
    #[error(transparent)]
    Service(#[from] UnresolvedService),
    /// Nobody listens there.
    #[error("dial tcp {0}: connect: connection refused")]
    Refused(SocketAddr),
    /// There is no way there.
    #[error("dial tcp {address}: connect: {problem}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        problem: String,
    },
    /// The other side's certificate is not to be trusted.
    #[error("tls: failed to verify certificate: {0}")]
    Certificate(X509Error),
    /// The two sides could not agree on a secure connection.
    #[error("{0}")]
    Tls(String),
    /// The other side does not speak TLS.
    #[error("tls: first record does not look like a TLS handshake")]
    NotTls,
    /// The other side speaks HTTP without TLS.
    #[error("http: server gave HTTP response to HTTPS client")]
    PlainHttp,
    /// The handshake took too long.
    #[error("net/http: TLS handshake timeout")]
    HandshakeTimeout,
    /// The call took too long.
    #[error("context deadline exceeded")]
    Timeout,
    /// The other side hung up before it answered.
    #[error("EOF")]
    Eof,
    /// The other side hung up amid its answer.
    #[error("unexpected EOF")]
    UnexpectedEof,
    /// The connection broke.
    #[error("read tcp {local}->{remote}: read: {problem}")]
    Broken {
        /// Our address.
        local: SocketAddr,
        /// That of the webhook.
        remote: SocketAddr,
        /// What the system said.
        problem: String,
    },
    /// The other side does not speak HTTP.
    #[error("net/http: HTTP/1.x transport connection broken: malformed HTTP response")]
    NotHttp,
    /// Any other breach of the protocol.
    #[error("{0}")]
    Protocol(String),
}

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

impl NetError {
    /// What it means that `address` could not be dialled.
    pub(crate) fn connecting(address: SocketAddr, error: &io::Error) -> NetError {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => NetError::Refused(address),
            _ => NetError::Connect { address, problem: system_words(error) },
        }
    }

    /// What it means that reading or writing failed.
    pub(crate) fn transferring(ends: Ends, error: &io::Error) -> NetError {
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return NetError::securing(error);
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof => NetError::Eof,
            _ => NetError::Broken { local: ends.local, remote: ends.remote, problem: system_words(error) },
        }
    }

    /// What it means that the secure connection failed.
    fn securing(error: &rustls::Error) -> NetError {
        match error {
            rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) => {
                match other.0.downcast_ref::<X509Error>() {
                    Some(error) => NetError::Certificate(error.clone()),
                    None => NetError::Tls(format!("tls: failed to verify certificate: {}", other.0)),
                }
            }
            rustls::Error::InvalidMessage(_) => NetError::NotTls,
            rustls::Error::AlertReceived(alert) => NetError::Tls(format!("remote error: tls: {}", alert_words(*alert))),
            other => NetError::Tls(format!("tls: {other}")),
        }
    }

    /// What it means that a request was not answered.
    pub(crate) fn asking(ends: Ends, error: &hyper::Error) -> NetError {
        if let Some(error) = source::<io::Error>(error) {
            return NetError::transferring(ends, error);
        }
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            return NetError::Eof;
        }
        if error.is_parse() {
            return NetError::NotHttp;
        }
        NetError::Protocol(error.source().map_or_else(|| error.to_string(), ToString::to_string))
    }

    /// What it means that an answer broke off.
    pub(crate) fn reading(ends: Ends, error: &hyper::Error) -> NetError {
        match NetError::asking(ends, error) {
            NetError::Eof => NetError::UnexpectedEof,
            other => other,
        }
    }
}

impl StatusAnswer {
    /// Reads an error's body for what can be told of it.
    pub(crate) fn of(code: StatusCode, content_type: Option<&str>, body: &[u8]) -> StatusAnswer {
        let message = told(body).unwrap_or_else(|| {
            let is_text =
                content_type.is_none_or(|text| media_type(text).is_ok_and(|media| media.starts_with("text/")));
            let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]);
            sentence(code, if is_text { shown.trim() } else { "unknown" })
        });
        StatusAnswer { code, message }
    }
}

/// The message of a `Status` that reports a failure, if the body is one.
fn told(body: &[u8]) -> Option<String> {
    let status = object(body).ok()?;
    let is = |name, want| status.str(name) == Some(want);
    let failed =
        is("kind", "Status") && matches!(status.str("apiVersion"), None | Some("v1")) && is("status", "Failure");
    failed.then(|| status.str("message").unwrap_or_default().to_owned())
}

/// The sentence for a status, given what its body says.
fn sentence(code: StatusCode, said: &str) -> String {
    match code.as_u16() {
        400 => "the server rejected our request for an unknown reason".into(),
        401 => "the server has asked for the client to provide credentials".into(),
        403 | 415 => said.into(),
        404 => "the server could not find the requested resource".into(),
        405 => "the server does not allow this method on the requested resource".into(),
        406 if said.is_empty() || said == "unknown" => {
            "the server was unable to respond with a content type that the client supports".into()
        }
        406 => said.into(),
        409 => "the server reported a conflict".into(),
        422 => "the server rejected our request due to an error in our request".into(),
        429 => "the server has received too many requests and has asked us to try again later".into(),
        503 => "the server is currently unable to handle the request".into(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .into()
        }
        500.. => format!("an error on the server ({}) has prevented the request from succeeding", BadValue::from(said)),
        code => format!("the server responded with the status code {code} but did not return more information"),
    }
}

/// The first `E` among the causes of an error.
fn source<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The system's words for an error, as Go writes them.
fn system_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".into(),
        io::ErrorKind::BrokenPipe => "broken pipe".into(),
        io::ErrorKind::TimedOut => "connection timed out".into(),
        io::ErrorKind::HostUnreachable => "no route to host".into(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".into(),
        _ => {
            let words = error.to_string();
            words.split(" (os error").next().unwrap_or_default().to_lowercase()
        }
    }
}

/// An alert's name in words: `HandshakeFailure` is `handshake failure`.
fn alert_words(alert: rustls::AlertDescription) -> String {
    if alert == rustls::AlertDescription::ProtocolVersion {
        return "protocol version not supported".into();
    }
    let mut words = String::new();
    for c in format!("{alert:?}").chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_by_its_body_or_by_its_code() {
        let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"told so","code":403}"#;
        let success = r#"{"kind":"Status","apiVersion":"v1","status":"Success","message":"fine"}"#;
        for (code, content_type, body, want) in [
            (404, Some("application/json"), status, "told so"),
            (404, Some("application/json"), success, "the server could not find the requested resource"),
            (403, Some("text/plain"), "nope here\n", "nope here"),
            (403, Some("application/json"), "{}", "unknown"),
            (406, None, "", "the server was unable to respond with a content type that the client supports"),
            (302, None, "", "the server responded with the status code 302 but did not return more information"),
            (413, None, "x", "the server responded with the status code 413 but did not return more information"),
            (500, None, "a\"b", r#"an error on the server ("a\"b") has prevented the request from succeeding"#),
            (
                500,
                Some("application/json"),
                "{}",
                r#"an error on the server ("unknown") has prevented the request from succeeding"#,
            ),
            (503, None, "x", "the server is currently unable to handle the request"),
        ] {
            let code = StatusCode::from_u16(code).expect("it is a status");
            assert_eq!(StatusAnswer::of(code, content_type, body.as_bytes()).message, want, "{code} {body}");
        }
    }

    #[test]
    fn alerts_and_system_errors_are_told_in_lower_case() {
        assert_eq!(alert_words(rustls::AlertDescription::HandshakeFailure), "handshake failure");
        assert_eq!(alert_words(rustls::AlertDescription::ProtocolVersion), "protocol version not supported");
        let error = io::Error::from(io::ErrorKind::ConnectionReset);
        let ends = Ends { local: ([127, 0, 0, 1], 2).into(), remote: ([127, 0, 0, 1], 3).into() };
        let text = NetError::transferring(ends, &error).to_string();
        assert_eq!(text, "read tcp 127.0.0.1:2->127.0.0.1:3: read: connection reset by peer");
    }
}
