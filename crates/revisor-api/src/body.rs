//! [`Body`]: what an answer is made of. Either nothing, or bytes that exist already, or a source that makes them
//! while the client reads.
//!
//! A body never fails: what can go wrong is decided before the status line is written. A source that has nothing
//! more to say ends. Back-pressure is the connection's: a source is polled only when there is room to write.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// Makes the bytes of a streamed answer, one chunk per call.
///
/// `Pending` means that the task was registered to be woken; `None` means the end, after which the source is not
/// polled again. Dropping a source is the only sign of a client that went away.
pub trait ByteSource: Send {
    /// The next chunk. An empty chunk is allowed and sends nothing.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;

    /// Whether the chunk that was given last is known to be the last one. If so, it is dropped without being asked.
    fn is_done(&self) -> bool {
        false
    }
}

/// The body of an answer.
#[derive(Default)]
pub enum Body {
    /// No bytes at all.
    #[default]
    Empty,
    /// Bytes that are complete; their length becomes the `Content-Length`.
    Full(Bytes),
    /// Bytes that are made while the client reads.
    Stream(Box<dyn ByteSource>),
    /// A body of which someone wants to know when it ended, see [`Body::on_end`].
    Observed(ObservedBody),
}

impl Body {
    /// A body that takes its bytes from `source`.
    pub fn stream(source: impl ByteSource + 'static) -> Body {
        Body::Stream(Box::new(source))
    }

    /// Calls `observer` once, with the number of bytes that left, when this body is dropped: after its last byte
    /// was handed to the connection, or when the client went away before that.
    ///
    /// What `observer` captures lives as long as the body does, so guards that belong to a request go here.
    #[must_use]
    pub fn on_end(self, observer: impl FnOnce(u64) + Send + 'static) -> Body {
        Body::Observed(ObservedBody(Box::new(Observation { inner: self, bytes: 0, observer: Some(observer) })))
    }

    /// Whether it is all here and no longer than this.
    pub(crate) fn is_within(&self, bytes: u64) -> bool {
        self.hint().exact().is_some_and(|exact| exact <= bytes)
    }

    /// Ends this body when `end` completes, whatever is left of it.
    #[must_use]
    pub fn until(self, end: impl Future<Output = ()> + Send + 'static) -> Body {
        Body::stream(Limited { inner: self, end: Box::pin(end) })
    }

    fn hint(&self) -> SizeHint {
        match self {
            Body::Empty => SizeHint::with_exact(0),
            Body::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Stream(_) => SizeHint::default(),
            Body::Observed(observed) => observed.0.hint(),
        }
    }

    fn ended(&self) -> bool {
        match self {
            Body::Empty => true,
            Body::Full(bytes) => bytes.is_empty(),
            Body::Stream(_) => false,
            Body::Observed(observed) => observed.0.ended(),
        }
    }
}

impl ByteSource for Body {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Body::Empty => Poll::Ready(None),
            Body::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Body::Empty;
                Poll::Ready(Some(bytes).filter(|bytes| !bytes.is_empty()))
            }
            Body::Stream(source) => {
                let chunk = std::task::ready!(source.poll_next(cx));
                if chunk.is_none() || source.is_done() {
                    // What the source holds (a snapshot, a watcher's queue) is released with the last chunk, not
                    // when the connection gets around to dropping the body.
                    *self = Body::Empty;
                }
                Poll::Ready(chunk)
            }
            Body::Observed(observed) => observed.0.poll(cx),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.get_mut().poll_next(cx).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended()
    }

    fn size_hint(&self) -> SizeHint {
        self.hint()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::Full(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::Full(bytes.into())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Body::Full(text.into())
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::Full(Bytes::from_static(text.as_bytes()))
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Body::Empty => f.write_str("Empty"),
            Body::Full(bytes) => write!(f, "Full({} bytes)", bytes.len()),
            Body::Stream(_) => f.write_str("Stream"),
            Body::Observed(_) => f.write_str("Observed"),
        }
    }
}

/// A body that may end before it is complete. Made by [`Body::until`].
struct Limited {
    inner: Body,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl ByteSource for Limited {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.end.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => self.inner.poll_next(cx),
        }
    }
}

/// A body together with whoever wants to know when it ended. Made by [`Body::on_end`].
pub struct ObservedBody(Box<dyn Observed>);

/// Hides the observer's type, so that an observation is one allocation.
trait Observed: Send {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
    fn hint(&self) -> SizeHint;
    fn ended(&self) -> bool;
}

struct Observation<F: FnOnce(u64)> {
    inner: Body,
    bytes: u64,
    /// Taken on drop; present until then.
    observer: Option<F>,
}

impl<F: FnOnce(u64) + Send> Observed for Observation<F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let chunk = std::task::ready!(self.inner.poll_next(cx));
        self.bytes += chunk.as_ref().map_or(0, |bytes| bytes.len() as u64);
        Poll::Ready(chunk)
    }

    fn hint(&self) -> SizeHint {
        self.inner.hint()
    }

    fn ended(&self) -> bool {
        self.inner.ended()
    }
}

impl<F: FnOnce(u64)> Drop for Observation<F> {
    fn drop(&mut self) {
        if let Some(observer) = self.observer.take() {
            observer(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use http_body::Body as _;

    use super::*;

    struct Chunks(Vec<&'static str>);

    impl ByteSource for Chunks {
        fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
            if self.0.is_empty() {
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Bytes::from_static(self.0.remove(0).as_bytes())))
        }
    }

    fn drain(body: &mut Body) -> Vec<Bytes> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut chunks = Vec::new();
        while let Poll::Ready(Some(chunk)) = body.poll_next(&mut cx) {
            chunks.push(chunk);
        }
        chunks
    }

    #[test]
    fn sizes_and_ends() {
        for (name, body, exact, ended, chunks) in [
            ("empty", Body::Empty, Some(0), true, vec![]),
            ("no bytes", Body::from(""), Some(0), true, vec![]),
            ("full", Body::from("abc"), Some(3), false, vec!["abc"]),
            ("stream", Body::stream(Chunks(vec!["a", "bc"])), None, false, vec!["a", "bc"]),
            ("observed full", Body::from("abc").on_end(|_| ()), Some(3), false, vec!["abc"]),
            ("observed empty", Body::Empty.on_end(|_| ()), Some(0), true, vec![]),
            ("observed stream", Body::stream(Chunks(vec!["a"])).on_end(|_| ()), None, false, vec!["a"]),
        ] {
            let mut body = body;
            assert_eq!(body.size_hint().exact(), exact, "{name}");
            assert_eq!(body.is_end_stream(), ended, "{name}");
            assert_eq!(drain(&mut body), chunks, "{name}");
            assert!(body.is_end_stream(), "{name}: after the last chunk");
        }
    }

    #[test]
    fn observers_hear_once_how_much_left() {
        for (name, polls, want) in [("all of it", 3, 3), ("the client left", 1, 1), ("never polled", 0, 0)] {
            let heard = Arc::new(AtomicU64::new(u64::MAX));
            let observer = Arc::clone(&heard);
            let mut body = Body::stream(Chunks(vec!["a", "bc"]))
                .on_end(move |bytes| assert_eq!(observer.swap(bytes, Ordering::SeqCst), u64::MAX));
            let mut cx = Context::from_waker(std::task::Waker::noop());
            for _ in 0..polls {
                assert!(body.poll_next(&mut cx).is_ready(), "{name}");
            }
            assert_eq!(heard.load(Ordering::SeqCst), u64::MAX, "{name}: not before the drop");
            drop(body);
            assert_eq!(heard.load(Ordering::SeqCst), want, "{name}");
        }
    }
}
