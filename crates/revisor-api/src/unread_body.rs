//! [`UnreadBody`]: a request's body of which nobody may want all.
//!
//! Many requests are answered before their body was read (A2 demands it of some), but there are clients that send all
//! before they read anything. If the server closed the connection then, they would find it reset under their hands and
//! never see the answer. HTTP/2 can end one request without touching the connection, but the same clients (older curls
//! among them) take the reset of a stream that they still send on for a failure, though the answer came before it. So
//! what is left of a body is still taken from them, beside the answer and within limits.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::EXPECT;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::runtime::Handle;

use crate::inflight::Entrance;

/// The most that is taken only to be forgotten: some times what any request may bring.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// How long that may last.
const MAX_TIME: Duration = Duration::from_secs(5);

/// A request's body that takes care of its rest when it is dropped.
#[derive(Debug)]
pub(crate) struct UnreadBody<B: Rest = Incoming> {
    /// Nothing once it was read to its end, or broke.
    body: Option<B>,
    /// Whether what is left is worth taking.
    takes_rest: bool,
    /// The way that the request takes once this was read, if it has no place before.
    entrance: Option<Entrance>,
}

/// What a body must be for its rest to be taken beside the answer.
pub(crate) trait Rest:
    Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static
{
}

impl<B> Rest for B where B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static {}

impl<B: Rest> UnreadBody<B> {
    /// The same request, with a body that takes care of its rest.
    pub(crate) fn of(request: Request<B>) -> Request<UnreadBody<B>> {
        // A client that waits to be asked for its body has not sent it: reading would be asking.
        let takes_rest = !request.headers().contains_key(EXPECT);
        request.map(|body| UnreadBody { body: Some(body), takes_rest, entrance: None })
    }

    /// Lets the request take this way to its place.
    pub(crate) fn enter_by(&mut self, entrance: Entrance) {
        self.entrance = Some(entrance);
    }

    /// The way that the request has to take to its place; none if it has one.
    pub(crate) fn take_entrance(&mut self) -> Option<Entrance> {
        self.entrance.take()
    }
}

impl<B: Rest> Body for UnreadBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(B::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(B::size_hint).unwrap_or_else(|| SizeHint::with_exact(0))
    }
}

impl<B: Rest> Drop for UnreadBody<B> {
    fn drop(&mut self) {
        let rest = self.body.take().filter(|body| self.takes_rest && !body.is_end_stream());
        if let (Some(rest), Ok(runtime)) = (rest, Handle::try_current()) {
            runtime.spawn(take(rest));
        }
    }
}

/// Reads a body and forgets it. Who sends more or needs longer is cut off.
async fn take(mut body: impl Rest) {
    let mut left = MAX_BYTES;
    let taking = async {
        while let Some(Ok(frame)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            // Frames without data count too, so that this ends.
            let size = frame.data_ref().map_or(0, Bytes::len).max(1) as u64;
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // Being cut off is all that could become of it without this function.
    let _ = tokio::time::timeout(MAX_TIME, taking).await;
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use http::Version;
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::*;

    /// Gives its chunks, then ends or stays silent, and tells when it is dropped.
    struct Scripted {
        chunks: Arc<Mutex<VecDeque<Bytes>>>,
        silent: bool,
        _dropped: oneshot::Sender<()>,
    }

    impl Body for Scripted {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            match self.chunks.lock().expect("no test panics here").pop_front() {
                Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
                None if self.silent => Poll::Pending,
                None => Poll::Ready(None),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_is_taken_within_limits() {
        let large = Bytes::from(vec![0; 1 << 20]);
        let small = Bytes::from_static(b"x");
        let http1 = || Request::builder().version(Version::HTTP_11);
        for (name, request, chunk, chunks, silent, left, seconds) in [
            ("all of it", http1(), &small, 3, false, 0, 0),
            ("a silent client", http1(), &small, 1, true, 0, 5),
            ("a client without end", http1(), &large, 20, false, 3, 0),
            ("frames without end", http1(), &Bytes::new(), 3, false, 0, 0),
            ("a client that waits", http1().header(EXPECT, "100-continue"), &small, 3, false, 3, 0),
            ("HTTP/2", Request::builder().version(Version::HTTP_2), &small, 3, false, 0, 0),
        ] {
            let (sender, dropped) = oneshot::channel();
            let queue = Arc::new(Mutex::new(VecDeque::from(vec![chunk.clone(); chunks])));
            let body = Scripted { chunks: queue.clone(), silent, _dropped: sender };
            let started = Instant::now();
            drop(UnreadBody::of(request.body(body).expect("a request")));
            dropped.await.expect_err("nothing is sent, only dropped");
            assert_eq!(queue.lock().expect("no test panics here").len(), left, "{name}");
            assert_eq!(started.elapsed(), Duration::from_secs(seconds), "{name}");
        }
    }
}
