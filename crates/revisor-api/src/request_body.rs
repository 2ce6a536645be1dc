//! Reads a request's body into memory, bounded in size and in time.
//!
//! What the errors mean to a client is the caller's to say: this file knows no statuses.

use std::error::Error;
use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use tokio::time::Instant;

/// The most that a request may bring: what etcd takes in one request, doubled, as the original has it.
pub const MAX_REQUEST_BODY: usize = 3 * 1024 * 1024;

/// The most that is set aside on a client's word for it. A client that announces more has to send it first.
const TRUSTED_CAPACITY: usize = 64 * 1024;

/// How long a client may take for a body of no size, and how many bytes each further second has to bring. Whoever is
/// slower is not sending, but holding on.
const PATIENCE: Duration = Duration::from_secs(10);
const PACE: u64 = 16 * 1024;

/// Why a request's body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RequestBodyError {
    /// The body is, or says it is, larger than allowed.
    #[error("limit is {limit}")]
    TooLarge {
        /// The number of bytes that would have been accepted.
        limit: usize,
    },
    /// The client did not send all of it in time.
    #[error("the request body was not received in time")]
    TimedOut,
    /// The connection ended or broke the protocol.
    #[error("the request body could not be read")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

/// The whole body, if it is at most `limit` bytes and arrives before `deadline`, at a pace that shows that the client
/// means it.
///
/// An announced length over the limit is refused without reading a byte, so a client that waits for
/// `100 Continue` never sends it.
pub async fn read_body<B>(body: B, limit: usize, deadline: Instant) -> Result<Bytes, RequestBodyError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        return Err(RequestBodyError::TooLarge { limit });
    }
    let mut incoming = IncomingBody { body: pin!(body), started: Instant::now(), received: 0, deadline };
    let Some(first) = incoming.next().await? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(RequestBodyError::TooLarge { limit });
    }
    // Most bodies arrive in one piece; those are passed on without a copy.
    let Some(second) = incoming.next().await? else { return Ok(first) };
    let announced = announced as usize;
    let mut whole = BytesMut::with_capacity(announced.min(TRUSTED_CAPACITY).max(first.len() + second.len()));
    whole.extend_from_slice(&first);
    let mut chunk = Some(second);
    while let Some(data) = chunk {
        if data.len() > limit - whole.len() {
            return Err(RequestBodyError::TooLarge { limit });
        }
        whole.extend_from_slice(&data);
        chunk = incoming.next().await?;
    }
    Ok(whole.freeze())
}

/// A body on its way.
struct IncomingBody<'a, B> {
    body: Pin<&'a mut B>,
    started: Instant,
    received: u64,
    deadline: Instant,
}

impl<B> IncomingBody<'_, B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// The next bytes; nothing after the last.
    async fn next(&mut self) -> Result<Option<Bytes>, RequestBodyError> {
        loop {
            // Looked at for every frame: those that bring nothing could otherwise keep this loop busy for ever.
            let due = self.deadline.min(self.started + PATIENCE + Duration::from_secs(self.received / PACE));
            if Instant::now() >= due {
                return Err(RequestBodyError::TimedOut);
            }
            let next = std::future::poll_fn(|cx| self.body.as_mut().poll_frame(cx));
            match tokio::time::timeout_at(due, next).await {
                Err(_) => return Err(RequestBodyError::TimedOut),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(RequestBodyError::Broken(error.into())),
                // Trailers carry nothing that a request to this server could mean.
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => {
                        self.received += data.len() as u64;
                        return Ok(Some(data));
                    }
                    Ok(_) | Err(_) => tokio::task::yield_now().await,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::{Context, Poll};

    use http_body::{Frame, SizeHint};

    use super::*;

    struct Scripted {
        announced: u64,
        chunks: VecDeque<Option<&'static str>>,
        silent: bool,
    }

    impl Body for Scripted {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            match self.chunks.pop_front() {
                Some(Some(text)) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(text.as_bytes()))))),
                Some(None) => Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into()))),
                None if self.silent => Poll::Pending,
                None => Poll::Ready(None),
            }
        }

        fn size_hint(&self) -> SizeHint {
            let mut hint = SizeHint::new();
            hint.set_lower(self.announced);
            hint
        }
    }

    #[tokio::test(start_paused = true)]
    async fn limits() {
        let deadline = Instant::now() + Duration::from_secs(5);
        for (name, announced, chunks, want) in [
            ("empty", 0, vec![], Ok("")),
            ("one piece", 4, vec![Some("abcd")], Ok("abcd")),
            ("pieces", 0, vec![Some("a"), Some(""), Some("bc"), Some("defgh")], Ok("abcdefgh")),
            ("announced too large", 9, vec![], Err("limit is 8")),
            ("first piece too large", 0, vec![Some("abcdefghi")], Err("limit is 8")),
            ("grows too large", 0, vec![Some("abcd"), Some("efgh"), Some("i")], Err("limit is 8")),
            ("breaks", 0, vec![Some("abcd"), None], Err("the request body could not be read")),
        ] {
            let body = Scripted { announced, chunks: chunks.into(), silent: false };
            let got = read_body(body, 8, deadline).await;
            match (got, want) {
                (Ok(bytes), Ok(text)) => assert_eq!(bytes, text, "{name}"),
                (Err(error), Err(text)) => assert_eq!(error.to_string(), text, "{name}"),
                (got, want) => panic!("{name}: {got:?} instead of {want:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_runs_into_the_deadline() {
        let body = Scripted { announced: 8, chunks: vec![Some("abcd")].into(), silent: true };
        let deadline = Instant::now() + Duration::from_secs(5);
        let got = read_body(body, 8, deadline).await;
        assert!(matches!(got, Err(RequestBodyError::TimedOut)), "{got:?}");
        assert_eq!(Instant::now(), deadline);
    }

    /// One byte every `pause`.
    struct Trickle {
        bytes: usize,
        pause: Pin<Box<tokio::time::Sleep>>,
        every: Duration,
    }

    impl Body for Trickle {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            std::task::ready!(self.pause.as_mut().poll(cx));
            let next = Instant::now() + self.every;
            self.pause.as_mut().reset(next);
            Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; self.bytes])))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_has_to_keep_up_a_pace() {
        let second = Duration::from_secs(1);
        for (name, bytes, limit, want, seconds) in [
            ("a byte a second", 1, 1 << 20, "the request body was not received in time", 10),
            ("half the pace", PACE as usize / 2, 1 << 20, "the request body was not received in time", 19),
            ("twice the pace, until it is too much", 2 * PACE as usize, 1 << 20, "limit is 1048576", 33),
        ] {
            let started = Instant::now();
            let body = Trickle { bytes, pause: Box::pin(tokio::time::sleep(second)), every: second };
            let error = read_body(body, limit, started + 60 * second).await.expect_err(name);
            assert_eq!(error.to_string(), want, "{name}");
            assert_eq!(started.elapsed().as_secs(), seconds, "{name}");
        }
    }
}
