//! [`Delivery`]: one request and its answer, up to the last byte; and the [`Piece`]s in which that byte leaves.
//!
//! What a connection is given it keeps until the client takes it, which may be never. So an answer is given to it in
//! pieces, each of which tells when it has left, and who does not take a piece in time is not served any further.
//! Upholds B1.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::Response;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::rooms::Guest;
use crate::access_log::AccessRecord;
use crate::body::{Body, ByteSource};
use crate::cut_off::CutOff;

/// The most that is handed to a connection at once: what a client has to take before its time is over.
pub(crate) const PIECE: usize = 128 * 1024;

/// A request that is being answered.
pub(super) struct Delivery {
    guest: Arc<Guest>,
    /// Which request of its connection it is.
    number: u64,
    /// How many pieces the connection was given, and how many of them have left it.
    handed: AtomicUsize,
    left: AtomicUsize,
    bytes: AtomicU64,
    answered: OnceLock<Answered>,
    /// What is left of a body when all of it was handed over: those who want to know when it ended.
    remains: Mutex<Option<Body>>,
}

/// What is known about a request once there is an answer.
struct Answered {
    record: AccessRecord,
    cut_off: Option<CutOff>,
    /// When the last byte must have left; absent for what lasts as long as the client wants.
    deadline: Option<Instant>,
}

impl Delivery {
    /// A request has come.
    pub(super) fn begin(guest: &Arc<Guest>) -> Arc<Delivery> {
        Arc::new(Delivery {
            guest: Arc::clone(guest),
            number: guest.activity.begun(),
            handed: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            answered: OnceLock::new(),
            remains: Mutex::default(),
        })
    }

    /// The answer, in pieces. One that is not long-running must have left before `deadline`. The line of `record` is
    /// written at the end.
    pub(super) fn answer(
        self: Arc<Self>,
        mut record: AccessRecord,
        mut response: Response<Body>,
        deadline: Instant,
    ) -> Response<OutgoingBody> {
        record.answered(&mut response);
        let cut_off = response.extensions_mut().remove();
        let deadline = (!record.is_long_running()).then_some(deadline);
        let is_first = self.answered.set(Answered { record, cut_off, deadline }).is_ok();
        debug_assert!(is_first, "a request is answered once");
        response.map(|body| OutgoingBody { body, rest: Bytes::new(), delivery: self })
    }

    /// Counts bytes that were sent past the connection.
    pub(super) fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn hand_over(self: &Arc<Self>, bytes: Bytes) -> Piece {
        self.handed.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Piece { bytes, period: self.guest.unread.add(), delivery: Arc::clone(self) }
    }

    /// How far the client has come: in which request of the connection, and how many pieces of its answer it has taken.
    fn progress(&self) -> (u64, usize) {
        (self.number, self.left.load(Ordering::Relaxed))
    }

    /// Whether the connection has pieces that the client did not take yet.
    fn is_unread(&self) -> bool {
        self.left.load(Ordering::Relaxed) != self.handed.load(Ordering::Relaxed)
    }

    fn deadline(&self) -> Option<Instant> {
        self.answered.get().and_then(|answered| answered.deadline)
    }

    /// Ready when somebody ends the answer.
    pub(super) fn poll_cut_off(&self, cx: &Context<'_>) -> Poll<()> {
        match self.answered.get().and_then(|answered| answered.cut_off.as_ref()) {
            Some(cut_off) => cut_off.poll(cx),
            None => Poll::Pending,
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.guest.activity.end();
        if let Some(answered) = self.answered.get_mut() {
            answered.record.sent(*self.bytes.get_mut());
        }
    }
}

/// A part of an answer that the connection has to send. To drop it is to say that it has left.
pub(super) struct Piece {
    bytes: Bytes,
    /// When it was handed over, as the connection's [`Unread`] counts.
    period: usize,
    delivery: Arc<Delivery>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.delivery.guest.unread.remove(self.period);
        self.delivery.left.fetch_add(1, Ordering::Relaxed);
    }
}

/// The body of an answer, as the connection takes it.
pub(super) struct OutgoingBody {
    body: Body,
    /// What was taken from the body and not handed over.
    rest: Bytes,
    delivery: Arc<Delivery>,
}

impl http_body::Body for OutgoingBody {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
        // Empty chunks are none: a frame without bytes says nothing, and there are clients that leave after a hundred.
        while self.rest.is_empty() {
            match std::task::ready!(self.body.poll_next(cx)) {
                Some(bytes) => self.rest = bytes,
                None => return Poll::Ready(None),
            }
        }
        let size = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(size);
        Poll::Ready(Some(Ok(Frame::data(self.delivery.hand_over(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.body.size_hint().exact() {
            Some(size) => SizeHint::with_exact(size + self.rest.len() as u64),
            None => SizeHint::default(),
        }
    }
}

impl Drop for OutgoingBody {
    fn drop(&mut self) {
        // A body that has not come to its end has nobody left who wants it; what it holds is given back at once.
        if http_body::Body::is_end_stream(self) {
            let remains = std::mem::take(&mut self.body);
            *self.delivery.remains.lock().unwrap_or_else(PoisonError::into_inner) = Some(remains);
        }
    }
}

/// How long somebody waits for a client to read.
pub(super) struct Patience {
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// How far the client had come when the timer was set.
    progress: (u64, usize),
}

impl Patience {
    /// With clients that take a piece within `timeout`.
    pub(super) fn new(timeout: Duration) -> Patience {
        Patience { timeout, timer: None, progress: (0, 0) }
    }

    /// Ready when the answer has to end: nobody has taken anything of it for too long, its time is over, or somebody
    /// cuts it off. To be polled whenever the connection or stream was, which registers the task.
    ///
    /// There is a timer only while something is unread when this is looked at, and it is set once in a while, so that
    /// short answers cost nothing.
    pub(super) fn poll(&mut self, delivery: &Delivery, cx: &mut Context<'_>) -> Poll<()> {
        if delivery.poll_cut_off(cx).is_ready() {
            return Poll::Ready(());
        }
        // Looked at without the timer: a task that always has something to do does not get to poll one.
        if delivery.deadline().is_some_and(|deadline| Instant::now() >= deadline) {
            return Poll::Ready(());
        }
        loop {
            let Some(timer) = &mut self.timer else {
                if !delivery.is_unread() {
                    return Poll::Pending;
                }
                self.progress = delivery.progress();
                let due = Instant::now() + self.timeout;
                let due = delivery.deadline().map_or(due, |deadline| deadline.min(due));
                self.timer = Some(Box::pin(tokio::time::sleep_until(due)));
                continue;
            };
            std::task::ready!(timer.as_mut().poll(cx));
            self.timer = None;
            let is_late = delivery.deadline().is_some_and(|deadline| Instant::now() >= deadline);
            if is_late || (delivery.is_unread() && delivery.progress() == self.progress) {
                return Poll::Ready(());
            }
        }
    }
}

/// The request that a connection was given last.
#[derive(Clone, Default)]
pub(super) struct Latest(Arc<Mutex<Weak<Delivery>>>);

impl Latest {
    pub(super) fn set(&self, delivery: &Arc<Delivery>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(delivery);
    }

    /// The request, if its answer has not left yet.
    pub(super) fn get(&self) -> Option<Arc<Delivery>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

/// How many pieces of all answers of a connection are unread, by the period in which they were handed over.
///
/// An answer that was handed over completely has nobody any more who could end it alone. If a piece of one stays for
/// too long, all of the connection goes.
#[derive(Debug, Default)]
pub(super) struct Unread {
    period: AtomicUsize,
    pieces: [AtomicUsize; 3],
}

impl Unread {
    fn add(&self) -> usize {
        let period = self.period.load(Ordering::Relaxed);
        self.pieces[period].fetch_add(1, Ordering::Relaxed);
        period
    }

    fn remove(&self, period: usize) {
        self.pieces[period].fetch_sub(1, Ordering::Relaxed);
    }

    /// Completes when a piece was not taken for more than two periods. Single answers end before that.
    pub(super) async fn stays_for(&self, period: Duration) {
        loop {
            tokio::time::sleep(period).await;
            let next = (self.period.load(Ordering::Relaxed) + 1) % self.pieces.len();
            if self.pieces[next].load(Ordering::Relaxed) > 0 {
                return;
            }
            self.period.store(next, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rooms::Rooms;
    use super::*;
    use crate::metrics::Metrics;

    #[tokio::test(start_paused = true)]
    async fn a_piece_that_stays_is_noticed_however_many_others_leave() {
        let unread = Unread::default();
        let period = Duration::from_secs(10);
        let started = Instant::now();
        let busy = async {
            loop {
                let quick = unread.add();
                tokio::time::sleep(Duration::from_secs(3)).await;
                unread.remove(quick);
            }
        };
        tokio::select! {
            () = unread.stays_for(period) => panic!("nothing stays"),
            () = busy => {}
            () = tokio::time::sleep(10 * period) => {}
        }
        let unread = Unread::default();
        unread.add();
        unread.stays_for(period).await;
        assert_eq!(started.elapsed(), 13 * period);
    }

    /// Gives these chunks and ends.
    struct Chunks(Vec<&'static str>);

    impl ByteSource for Chunks {
        fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
            Poll::Ready((!self.0.is_empty()).then(|| Bytes::from_static(self.0.remove(0).as_bytes())))
        }
    }

    #[tokio::test]
    async fn empty_chunks_make_no_frames() {
        let rooms = Rooms::new(1, 1, &Metrics::new(Vec::new));
        let stay = rooms.enter(([127, 0, 0, 1], 1).into());
        stay.guest().activity.begin();
        let body = Body::stream(Chunks(vec!["", "a", "", "", "bc", ""]));
        let mut outgoing = OutgoingBody { body, rest: Bytes::new(), delivery: Delivery::begin(stay.guest()) };
        let mut frames = Vec::new();
        while let Some(frame) =
            std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut outgoing), cx)).await
        {
            let Ok(frame) = frame;
            frames.push(frame.into_data().map(|piece| piece.bytes.clone()).unwrap_or_default());
        }
        assert_eq!(frames, ["a", "bc"]);
    }

    async fn gives_up(patience: &mut Patience, delivery: &Delivery) -> bool {
        std::future::poll_fn(|cx| Poll::Ready(patience.poll(delivery, cx).is_ready())).await
    }

    #[tokio::test(start_paused = true)]
    async fn patience_is_with_one_answer_at_a_time() {
        let rooms = Rooms::new(1, 1, &Metrics::new(Vec::new));
        let stay = rooms.enter(([127, 0, 0, 1], 1).into());
        let begin = || {
            stay.guest().activity.begin();
            Delivery::begin(stay.guest())
        };
        let mut patience = Patience::new(Duration::from_secs(10));
        let first = begin();
        let piece = first.hand_over(Bytes::from_static(b"x"));
        assert!(!gives_up(&mut patience, &first).await, "not at once");
        tokio::time::advance(Duration::from_secs(6)).await;
        drop((piece, first));
        let second = begin();
        let piece = second.hand_over(Bytes::from_static(b"x"));
        tokio::time::advance(Duration::from_secs(6)).await;
        assert!(!gives_up(&mut patience, &second).await, "the time of another answer is over");
        tokio::time::advance(Duration::from_secs(11)).await;
        assert!(gives_up(&mut patience, &second).await, "its own time is over");
        drop(piece);
        assert!(!gives_up(&mut patience, &second).await, "nothing is unread");
    }
}
