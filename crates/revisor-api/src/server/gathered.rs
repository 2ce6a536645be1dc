//! [`Gathered`]: the stream of an HTTP/2 connection, whose frames leave together when its turn is over.
//!
//! A connection writes and flushes one frame after the other. Each would be a TLS record and a call into the kernel, which
//! cost more than the frame itself, and whoever watches much on one connection, as controllers do, gets many at a time.
//! Here small ones are put behind each other until there is a full record, or until nobody has more to say.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is put together at most: a TLS record.
const MOST: usize = 16 * 1024;

/// What is as large as this gains nothing by being copied.
const LARGE: usize = 8 * 1024;

/// The largest buffer that an idle connection keeps.
const IDLE_BUFFER: usize = 4 * 1024;

/// One half is the connection's, the other half is of those who drive it.
pub(super) struct Gathered<S>(Arc<Mutex<Gathering<S>>>);

struct Gathering<S> {
    stream: S,
    frames: Vec<u8>,
    /// How much of `frames` the stream has taken.
    taken: usize,
}

impl<S> Gathered<S> {
    pub(super) fn new(stream: S) -> Gathered<S> {
        Gathered(Arc::new(Mutex::new(Gathering { stream, frames: Vec::new(), taken: 0 })))
    }

    /// The same stream, for the connection.
    pub(super) fn share(&self) -> Gathered<S> {
        Gathered(Arc::clone(&self.0))
    }

    /// Never waits: both halves are used by one task.
    fn lock(&self) -> MutexGuard<'_, Gathering<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    /// Runs `connection`, which has the other half, and sends what it has written whenever it waits. Ends when the
    /// stream is broken, too.
    ///
    /// While it `has_several` streams, what they wrote waits until those had their turn that are woken already: most
    /// often they have something to add. The one that woke the connection would otherwise be heard alone, since tokio
    /// runs a task next that was woken by the one before it.
    pub(super) async fn run(&self, mut connection: Pin<&mut impl Future<Output = ()>>, has_several: impl Fn() -> bool) {
        let mut has_waited = false;
        std::future::poll_fn(|cx| {
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut gathering = self.lock();
            has_waited = !has_waited && !gathering.frames.is_empty() && has_several();
            if has_waited {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match gathering.poll_send(cx) {
                Poll::Ready(Err(_)) => Poll::Ready(()),
                Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
            }
        })
        .await;
    }
}

impl<S: AsyncWrite + Unpin> Gathering<S> {
    /// Gives the stream what was gathered.
    fn poll_hand_over(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.taken < self.frames.len() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.frames[self.taken..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.taken += count,
            }
        }
        self.taken = 0;
        self.frames.clear();
        if self.frames.capacity() > IDLE_BUFFER {
            self.frames = Vec::new();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_hand_over(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buffer)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut gathering = self.lock();
        let size: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        if size >= LARGE || gathering.frames.len() + size > MOST {
            ready!(gathering.poll_hand_over(cx))?;
        }
        if size >= LARGE {
            return Pin::new(&mut gathering.stream).poll_write_vectored(cx, buffers);
        }
        buffers.iter().for_each(|buffer| gathering.frames.extend_from_slice(buffer));
        Poll::Ready(Ok(size))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Leaves that to the end of the turn.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.lock();
        ready!(gathering.poll_hand_over(cx))?;
        Pin::new(&mut gathering.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A stream that takes so much and remembers how much it was given at a time.
    struct Counting {
        room: usize,
        writes: Arc<Mutex<Vec<usize>>>,
    }

    impl AsyncWrite for Counting {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
            let count = buffer.len().min(self.room);
            if count == 0 {
                return Poll::Pending;
            }
            self.room -= count;
            self.writes.lock().expect("nobody panics").push(count);
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn counting(room: usize) -> (Gathered<Counting>, Arc<Mutex<Vec<usize>>>) {
        let writes = Arc::default();
        (Gathered::new(Counting { room, writes: Arc::clone(&writes) }), writes)
    }

    /// Lets a future run until it waits.
    async fn waits(mut future: Pin<&mut impl Future<Output = ()>>) {
        let is_over = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await;
        assert!(!is_over);
    }

    #[tokio::test]
    async fn the_frames_of_a_turn_are_written_together() {
        for (name, frame, frames, want) in [
            ("one", 100, 1, vec![100]),
            ("a few", 100, 20, vec![2_000]),
            ("more than fits", 5_000, 5, vec![15_000, 10_000]),
            ("large ones", LARGE, 2, vec![LARGE, LARGE]),
        ] {
            let (gathered, writes) = counting(usize::MAX);
            let mut half = gathered.share();
            let connection = pin!(async {
                for _ in 0..frames {
                    half.write_all(&vec![7; frame]).await.expect("is taken");
                    half.flush().await.expect("is taken");
                }
                std::future::pending().await
            });
            waits(pin!(gathered.run(connection, || false))).await;
            assert_eq!(*writes.lock().expect("nobody panics"), want, "{name}");
        }
    }

    #[tokio::test]
    async fn who_does_not_read_is_not_written_for() {
        let (gathered, writes) = counting(10);
        let mut half = gathered.share();
        let mut written = 0;
        let mut connection = Box::pin(async {
            loop {
                written += half.write(&[7; 1000]).await.expect("is taken");
            }
        });
        waits(pin!(gathered.run(connection.as_mut(), || false))).await;
        drop(connection);
        assert_eq!((written, writes.lock().expect("nobody panics").as_slice()), (16_000, [10].as_slice()));
    }

    #[tokio::test]
    async fn those_who_are_woken_go_before_their_connection() {
        let (gathered, writes) = counting(usize::MAX);
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let mut half = gathered.share();
        let connection = async move {
            while let Some(frame) = receiver.recv().await {
                half.write_all(frame).await.expect("is taken");
            }
        };
        let running = tokio::spawn(async move { gathered.run(pin!(connection), || true).await });
        tokio::task::yield_now().await;
        let woken = Arc::new(tokio::sync::Barrier::new(4));
        let streams = [(); 4].map(|()| {
            let (sender, woken) = (sender.clone(), Arc::clone(&woken));
            tokio::spawn(async move {
                woken.wait().await;
                sender.send(&b"frame"[..]).expect("somebody listens");
            })
        });
        for stream in streams {
            stream.await.expect("does not panic");
        }
        while writes.lock().expect("nobody panics").is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(*writes.lock().expect("nobody panics"), [20]);
        drop(sender);
        running.await.expect("does not panic");
    }

    #[tokio::test]
    async fn what_is_written_last_leaves_before_the_end() {
        let (ours, mut theirs) = tokio::io::duplex(1000);
        let mut half = Gathered::new(ours).share();
        half.write_all(b"the end").await.expect("is taken");
        half.shutdown().await.expect("is taken");
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).await.expect("can be read");
        assert_eq!(read, b"the end");
    }
}
