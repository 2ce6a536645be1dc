//! gRPC over HTTP/2, as far as etcd needs it: one message there and one back, or streams of them.
//!
//! On `h2` itself, because the whole of it is a prefix of five bytes and two trailers, and because who decides when a
//! call is given up, and with which member it is tried again, must be [`Members`](crate::members::Members).

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::header::{CONTENT_TYPE, InvalidHeaderValue, TE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use prost::Message;

use crate::chunks::Chunks;
use crate::{Code, EtcdError};

/// The longest message that is taken. A page of a list has so much room; etcd's own answers are far shorter.
const MAX_MESSAGE: usize = 1 << 30;

/// How long the caller waits.
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// How many bytes stand before each message.
const PREFIX: usize = 5;

/// One connection to a member, to make calls on.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) sender: SendRequest<Bytes>,
    /// `http://host:port`
    pub(crate) endpoint: Arc<str>,
    /// The same, taken apart.
    pub(crate) origin: Uri,
}

impl Line {
    fn broken(&self, error: &h2::Error) -> EtcdError {
        EtcdError::Broken { endpoint: self.endpoint.clone(), problem: error.to_string() }
    }

    fn unreached(&self, error: &h2::Error) -> EtcdError {
        EtcdError::Unreached { endpoint: self.endpoint.clone(), problem: error.to_string() }
    }

    /// Begins a call. Nothing of it was seen by anybody if this fails.
    async fn begin(
        &self,
        path: &'static str,
        timeout: Option<Duration>,
    ) -> Result<(h2::client::ResponseFuture, SendStream<Bytes>), EtcdError> {
        let invalid =
            |error: http::Error| EtcdError::Unreached { endpoint: self.endpoint.clone(), problem: error.to_string() };
        let mut place = self.origin.clone().into_parts();
        place.path_and_query = Some(PathAndQuery::from_static(path));
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_parts(place).map_err(|error| invalid(error.into()))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        if let Some(timeout) = timeout {
            let timeout = format!("{}m", timeout.as_millis().clamp(1, 99_999_999)).try_into();
            headers.insert(TIMEOUT, timeout.map_err(|error: InvalidHeaderValue| invalid(error.into()))?);
        }
        let mut sender = self.sender.clone().ready().await.map_err(|error| self.unreached(&error))?;
        sender.send_request(request, false).map_err(|error| self.unreached(&error))
    }

    /// One message there and one back.
    pub(crate) async fn call<Q: Message, R: Message + Default>(
        &self,
        path: &'static str,
        request: &Q,
        timeout: Duration,
    ) -> Result<R, EtcdError> {
        let (response, mut sending) = self.begin(path, Some(timeout)).await?;
        sending.send_data(frame(request), true).map_err(|error| self.broken(&error))?;
        let response = response.await.map_err(|error| self.broken(&error))?;
        refuse_status(response.headers())?;
        let mut receiving = Receiving::new(response.into_body(), self.clone());
        let answer = receiving.next().await?;
        // The status comes behind the message.
        match (answer, receiving.end().await) {
            (Some(answer), Ok(())) => Ok(answer),
            (None, Ok(())) => Err(EtcdError::Unreadable("there is no message".to_owned())),
            (_, Err(error)) => Err(error),
        }
    }

    /// Opens a stream in both directions, which begins with `first`. Waits for no answer.
    pub(crate) async fn stream<Q: Message>(
        &self,
        path: &'static str,
        first: &Q,
    ) -> Result<(Sending, PendingReceiving), EtcdError> {
        let (response, mut sending) = self.begin(path, None).await?;
        sending.send_data(frame(first), false).map_err(|error| self.broken(&error))?;
        Ok((Sending { stream: sending, line: self.clone() }, PendingReceiving { response, line: self.clone() }))
    }
}

/// The side of a stream that speaks. To drop it gives the stream up.
pub(crate) struct Sending {
    stream: SendStream<Bytes>,
    line: Line,
}

impl Sending {
    pub(crate) fn send<Q: Message>(&mut self, message: &Q) -> Result<(), EtcdError> {
        self.stream.send_data(frame(message), false).map_err(|error| self.line.broken(&error))
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.stream.send_reset(h2::Reason::CANCEL);
    }
}

/// The side of a stream that hears, before the other side has said anything.
pub(crate) struct PendingReceiving {
    response: h2::client::ResponseFuture,
    line: Line,
}

impl PendingReceiving {
    pub(crate) async fn open(self) -> Result<Receiving, EtcdError> {
        let response = self.response.await.map_err(|error| self.line.broken(&error))?;
        refuse_status(response.headers())?;
        Ok(Receiving::new(response.into_body(), self.line))
    }
}

/// The side of a stream that hears.
pub(crate) struct Receiving {
    stream: RecvStream,
    line: Line,
    read: Chunks,
}

impl Receiving {
    fn new(stream: RecvStream, line: Line) -> Receiving {
        Receiving { stream, line, read: Chunks::default() }
    }

    /// The next message; nothing at the end. Nothing is lost if the wait for it is given up.
    pub(crate) async fn next<R: Message + Default>(&mut self) -> Result<Option<R>, EtcdError> {
        loop {
            if let Some(length) = self.message()? {
                // What cannot be read ends the call or the stream, so that nobody looks at what is left of it.
                let message = R::decode((&mut self.read).take(length));
                return message.map(Some).map_err(|error| EtcdError::Unreadable(error.to_string()));
            }
            let Some(data) = self.stream.data().await else {
                if !self.read.has_remaining() {
                    return Ok(None);
                }
                return Err(EtcdError::Unreadable("a message ends too early".to_owned()));
            };
            let data = data.map_err(|error| self.line.broken(&error))?;
            // What cannot be given back is of a connection that is gone.
            let _ = self.stream.flow_control().release_capacity(data.len());
            self.read.push(data);
        }
    }

    /// The status with which the stream ended.
    pub(crate) async fn end(&mut self) -> Result<(), EtcdError> {
        match self.stream.trailers().await {
            Ok(Some(trailers)) => refuse_status(&trailers),
            Ok(None) => Ok(()),
            Err(error) => Err(self.line.broken(&error)),
        }
    }

    /// The length of a message all of which is there, when that comes next.
    fn message(&mut self) -> Result<Option<usize>, EtcdError> {
        let Some([compressed, a, b, c, d]) = self.read.peek() else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if compressed != 0 {
            return Err(EtcdError::Unreadable("a message is compressed, which nobody asked for".to_owned()));
        }
        if length > MAX_MESSAGE {
            // As every client of gRPC says it.
            let message = format!("grpc: received message larger than max ({length} vs. {MAX_MESSAGE})");
            return Err(EtcdError::Status { code: Code::ResourceExhausted, message });
        }
        if self.read.remaining() < length + PREFIX {
            return Ok(None);
        }
        self.read.advance(PREFIX);
        Ok(Some(length))
    }
}

fn frame<Q: Message>(message: &Q) -> Bytes {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(length + PREFIX);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode_raw(&mut frame);
    frame.freeze()
}

/// Fails if headers or trailers tell of a failure.
fn refuse_status(headers: &HeaderMap) -> Result<(), EtcdError> {
    let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    match text("grpc-status") {
        None | Some("0") => Ok(()),
        Some(code) => Err(EtcdError::Status {
            code: Code::new(code.parse().unwrap_or(2)),
            message: text("grpc-message").map(percent_decoded).unwrap_or_default(),
        }),
    }
}

/// Messages of statuses have bytes that are no letters as `%XX`.
fn percent_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if first == b'%' => {
                decoded.push(byte);
                rest = &after[2..];
            }
            _ => {
                decoded.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_status_says_can_be_read() {
        for (said, want) in [
            (
                "etcdserver: mvcc: required revision has been compacted",
                "etcdserver: mvcc: required revision has been compacted",
            ),
            ("100%25 f%C3%BCll", "100% füll"),
            ("%", "%"),
            ("%zz", "%zz"),
        ] {
            assert_eq!(percent_decoded(said), want);
        }
    }

    #[test]
    fn a_message_has_its_length_before_it() {
        let request = crate::messages::CompactionRequest { revision: 5, physical: true };
        assert_eq!(&frame(&request)[..], [0, 0, 0, 0, 4, 8, 5, 16, 1]);
    }
}
