//! Reads a request's body into memory, bounded in size and in time.
//!
//! What the errors mean to a client is the caller's to say: this file knows no statuses.

use std::error::Error;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use tokio::time::Instant;

/// The most that a request may bring: what etcd takes in one request, doubled, as the original has it.
pub const MAX_REQUEST_BODY: usize = 3 * 1024 * 1024;

/// The most that is set aside on a client's word for it. A client that announces more has to send it first.
const TRUSTED_CAPACITY: usize = 64 * 1024;

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

/// The whole body, if it is at most `limit` bytes and arrives before `deadline`.
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
    match tokio::time::timeout_at(deadline, collect(body, limit, announced as usize)).await {
        Ok(result) => result,
        Err(_) => Err(RequestBodyError::TimedOut),
    }
}

async fn collect<B>(body: B, limit: usize, announced: usize) -> Result<Bytes, RequestBodyError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut body = pin!(body);
    let mut next = async || loop {
        match std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            None => return Ok(None),
            Some(Err(error)) => return Err(RequestBodyError::Broken(error.into())),
            // Trailers carry nothing that a request to this server could mean.
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                // Giving way lets the deadline be looked at: empty frames could otherwise keep this loop busy for ever.
                Ok(_) | Err(_) => tokio::task::yield_now().await,
            },
        }
    };
    let Some(first) = next().await? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(RequestBodyError::TooLarge { limit });
    }
    // Most bodies arrive in one piece; those are passed on without a copy.
    let Some(second) = next().await? else { return Ok(first) };
    let mut whole = BytesMut::with_capacity(announced.min(TRUSTED_CAPACITY).max(first.len() + second.len()));
    whole.extend_from_slice(&first);
    let mut chunk = Some(second);
    while let Some(data) = chunk {
        if data.len() > limit - whole.len() {
            return Err(RequestBodyError::TooLarge { limit });
        }
        whole.extend_from_slice(&data);
        chunk = next().await?;
    }
    Ok(whole.freeze())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

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
}
