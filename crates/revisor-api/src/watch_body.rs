//! [`WatchBody`]: a watch as it is sent: one frame an event, each made once for all who watch (W3). Of the state that comes
//! first the objects are encoded once; their frames are written straight into what is sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use prometheus::IntCounter;
use revisor_cache::{Delivery, EventKind, Expired, FrameKey, Item, WatchItem};
use revisor_catalog::Moment;
use revisor_object::Status;
use revisor_registry::{EventStream, StreamItem, present, present_item};
use revisor_version::Revision;
use tokio::time::{Instant, Sleep};

use crate::flow_control::TrackedWatch;
use crate::inflight::InflightGuard;
use crate::places::Place;
use crate::representation::EventShape;
use crate::server::PIECE;
use crate::table::INITIAL_EVENTS_END;
use crate::unread_lists::UnreadList;
use crate::{ByteSource, LongRunningGuard, WatchEnd, answer};

/// How much is gathered into one write of what is put together for one client alone.
const CHUNK: usize = 32 * 1024;

/// How much of events that all get, when they come faster than they are sent: what fits into one piece of an answer. To
/// write once more would cost each watcher as much as several events, and the bytes are there once for all.
const SHARED_CHUNK: usize = PIECE - 16 * 1024;

/// How often a client that asked for bookmarks gets one.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// How long before its end a watch sends a last bookmark.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// What a watch is like.
pub(crate) struct WatchOptions {
    /// What the client is shown of objects.
    pub(crate) shape: EventShape,
    /// Whether the client asked for bookmarks.
    pub(crate) bookmarks: bool,
    /// Whether such a client is told when the state that comes first is complete.
    pub(crate) completes_state: bool,
    /// Whether each event is a chunk of its own, for those who get it as a message.
    pub(crate) apart: bool,
    /// When it ends by itself.
    pub(crate) lifetime: Duration,
    /// Counts events.
    pub(crate) sent: IntCounter,
    pub(crate) end: WatchEnd,
    pub(crate) guard: LongRunningGuard,
    /// Its place among all watches.
    pub(crate) place: Place,
    /// Its seats, until the state that comes first was sent.
    pub(crate) seat: Option<InflightGuard>,
    /// Its part in what writes cost.
    pub(crate) tracked: Option<TrackedWatch>,
    /// What is held on to until the state that comes first was sent.
    pub(crate) unread: Option<UnreadList>,
}

/// A watch on its way.
pub(crate) struct WatchBody {
    events: EventStream,
    shape: EventShape,
    bookmarks: bool,
    completes_state: bool,
    apart: bool,
    deadline: Pin<Box<Sleep>>,
    next_bookmark: Option<Pin<Box<Sleep>>>,
    /// The version that the client knows it has.
    known: Option<Revision>,
    sent: IntCounter,
    end: WatchEnd,
    is_done: bool,
    _guard: LongRunningGuard,
    _place: Place,
    seat: Option<InflightGuard>,
    _tracked: Option<TrackedWatch>,
    unread: Option<UnreadList>,
}

impl WatchBody {
    pub(crate) fn new(events: EventStream, options: WatchOptions) -> WatchBody {
        let deadline = Instant::now() + options.lifetime;
        let next_bookmark = Some(deadline).filter(|_| options.bookmarks).and_then(next_bookmark_at);
        let next_bookmark = next_bookmark.map(|at| Box::pin(tokio::time::sleep_until(at)));
        WatchBody {
            events,
            shape: options.shape,
            bookmarks: options.bookmarks,
            completes_state: options.completes_state,
            apart: options.apart,
            deadline: Box::pin(tokio::time::sleep_until(deadline)),
            next_bookmark,
            known: None,
            sent: options.sent,
            end: options.end,
            is_done: false,
            _guard: options.guard,
            _place: options.place,
            seat: options.seat,
            _tracked: options.tracked,
            unread: options.unread,
        }
    }

    /// The frame for one item of the watch; `None` for what this client is not told, and for what `chunk` has already.
    fn frame(&mut self, StreamItem { item, shown }: StreamItem, chunk: &mut Chunk) -> Option<Bytes> {
        match item {
            WatchItem::State(item) => {
                self.push_state(&item, shown, chunk);
                None
            }
            WatchItem::Event(kind, delivery) => {
                self.known = Some(delivery.revision());
                let resource = self.shape.resource();
                let Some(form) = self.shape.frame_form() else {
                    let object = shown.unwrap_or_else(|| present(resource, &delivery.object(kind)));
                    return self.event(name_of(kind), object, as_cached(&delivery, kind));
                };
                let key = FrameKey { shape: resource.shape, kind, form };
                chunk.push_shared(SharedEvent { key, delivery, shown });
                None
            }
            WatchItem::InitialEnd(revision) => {
                self.unread = None;
                self.seat = None;
                self.known = Some(revision);
                if self.bookmarks && self.completes_state { self.bookmark(revision, true) } else { None }
            }
            WatchItem::Expired(Expired { asked, oldest }) => {
                self.is_done = true;
                let status = Status::expired(format!("too old resource version: {asked} ({oldest})"));
                Some(self.shape.error_frame(&status))
            }
        }
    }

    /// Writes an object of the state that comes first.
    fn push_state(&mut self, item: &Item, shown: Option<Bytes>, chunk: &mut Chunk) {
        let object = shown.unwrap_or_else(|| present_item(self.shape.resource(), item).into_owned());
        if self.shape.push("ADDED", object, item, now(), chunk.open(&self.shape)) {
            chunk.count += 1;
        } else {
            self.is_done = true;
        }
        self.shape.sent();
    }

    /// A frame of this client's own; `None` if its object cannot be shown so, which ends the watch.
    fn event(&mut self, name: &str, object: Bytes, item: Option<&Item>) -> Option<Bytes> {
        let frame = self.shape.frame(name, object, item, now());
        self.shape.sent();
        self.is_done |= frame.is_none();
        frame
    }

    fn bookmark(&mut self, revision: Revision, ends_initial_events: bool) -> Option<Bytes> {
        let annotations = if ends_initial_events {
            format!(",\"annotations\":{{\"{INITIAL_EVENTS_END}\":\"true\"}}")
        } else {
            String::new()
        };
        let prefix = &self.shape.resource().type_prefix;
        let object = format!("{prefix}\"metadata\":{{\"resourceVersion\":\"{revision}\"{annotations}}}}}");
        self.event("BOOKMARK", object.into(), None)
    }

    /// A bookmark, if it is time for one and it does not take the client back.
    fn poll_bookmark(&mut self, cx: &mut Context<'_>) -> Option<Bytes> {
        let timer = self.next_bookmark.as_mut()?;
        if timer.as_mut().poll(cx).is_pending() {
            return None;
        }
        match next_bookmark_at(self.deadline.deadline()) {
            None => self.next_bookmark = None,
            Some(next) => {
                timer.as_mut().reset(next);
                // Registers the task with the timer again; if that is due too, the next turn finds out.
                if timer.as_mut().poll(cx).is_ready() {
                    cx.waker().wake_by_ref();
                }
            }
        }
        let revision = self.events.progress().filter(|revision| Some(*revision) >= self.known)?;
        self.known = Some(revision);
        self.bookmark(revision, false)
    }
}

impl ByteSource for WatchBody {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.is_done || Pin::new(&mut self.end).poll(cx).is_ready() || self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        if let Some(unread) = &self.unread {
            unread.read();
        }
        let mut chunk = Chunk::default();
        while chunk.has_room() && !self.is_done && !(self.apart && chunk.count > 0) {
            match self.events.poll_next(cx) {
                Poll::Ready(Some(item)) => {
                    let frame = match item {
                        Ok(item) => self.frame(item, &mut chunk),
                        Err(error) => {
                            self.is_done = true;
                            Some(self.shape.error_frame(&answer::error_status(&error)))
                        }
                    };
                    if let Some(frame) = frame {
                        chunk.push(frame, &self.shape);
                    }
                }
                Poll::Ready(None) => self.is_done = true,
                Poll::Pending => break,
            }
        }
        self.sent.inc_by(chunk.count);
        if let Some(bytes) = chunk.finish(&self.shape) {
            return Poll::Ready(Some(bytes));
        }
        if self.is_done {
            return Poll::Ready(None);
        }
        match self.poll_bookmark(cx) {
            Some(bookmark) => Poll::Ready(Some(bookmark)),
            None if self.is_done => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

fn now() -> Moment {
    Moment::from(SystemTime::now())
}

/// When the next bookmark is due; `None` if the watch is over too soon for another (upstream: `nextBookmarkTime`).
fn next_bookmark_at(deadline: Instant) -> Option<Instant> {
    let now = Instant::now();
    let last = deadline.checked_sub(BOOKMARK_BEFORE_END).filter(|last| *last > now)?;
    Some(last.min(now + BOOKMARK_INTERVAL))
}

fn name_of(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Added => "ADDED",
        EventKind::Modified => "MODIFIED",
        EventKind::Deleted => "DELETED",
    }
}

/// The object of an event, if it is shown as it is in the cache. What is deleted is shown as it reads at its deletion.
fn as_cached(delivery: &Delivery, kind: EventKind) -> Option<&Item> {
    delivery.new().filter(|_| kind != EventKind::Deleted).map(Arc::as_ref)
}

/// An event whose frame is the same for all who see it like this.
struct SharedEvent {
    key: FrameKey,
    delivery: Arc<Delivery>,
    shown: Option<Bytes>,
}

impl SharedEvent {
    /// The frame, made once for all (W3).
    fn frame(&self, shape: &EventShape) -> Bytes {
        let SharedEvent { key, delivery, shown } = self;
        delivery.frame(*key, || {
            let object = shown.clone().unwrap_or_else(|| present(shape.resource(), &delivery.object(key.kind)));
            let frame = shape.frame(name_of(key.kind), object, as_cached(delivery, key.kind), now());
            frame.expect("a shape that is shared can be made")
        })
    }
}

/// Frames that are sent together.
#[derive(Default)]
struct Chunk {
    /// What is alone is sent as it is; only what comes in a row is copied together.
    first: Option<Bytes>,
    bytes: BytesMut,
    /// Events that come behind these, in a row that others get too.
    run: Vec<SharedEvent>,
    /// About how many bytes those have.
    run_bytes: usize,
    count: u64,
}

impl Chunk {
    /// Whether more fits. What is sent as it is does not count: there is room behind it.
    fn has_room(&self) -> bool {
        self.bytes.len() < CHUNK && self.bytes.len() + self.run_bytes < SHARED_CHUNK
    }

    fn push_shared(&mut self, event: SharedEvent) {
        let sides = [event.delivery.new(), event.delivery.old()];
        self.run_bytes += sides.into_iter().flatten().next().map_or(0, |item| item.bytes().len());
        self.count += 1;
        self.run.push(event);
    }

    /// Where frames are written behind those that are there.
    fn open(&mut self, shape: &EventShape) -> &mut BytesMut {
        self.end_run(shape);
        if let Some(first) = self.first.take() {
            self.bytes.extend_from_slice(&first);
        }
        &mut self.bytes
    }

    fn push(&mut self, frame: Bytes, shape: &EventShape) {
        self.end_run(shape);
        self.count += 1;
        self.append(frame);
    }

    fn append(&mut self, frames: Bytes) {
        if self.first.is_none() && self.bytes.is_empty() {
            self.first = Some(frames);
            return;
        }
        if let Some(first) = self.first.take() {
            self.bytes.reserve(first.len() + frames.len());
            self.bytes.extend_from_slice(&first);
        }
        self.bytes.extend_from_slice(&frames);
    }

    /// Puts the events that came in a row behind the others, together once for all who get the same.
    fn end_run(&mut self, shape: &EventShape) {
        let run = std::mem::take(&mut self.run);
        self.run_bytes = 0;
        match &*run {
            [] => {}
            [alone] => self.append(alone.frame(shape)),
            [.., last] => {
                let keys: Vec<_> = run.iter().map(|event| (event.delivery.revision(), event.key)).collect();
                self.append(last.delivery.run(&keys, || {
                    let frames: Vec<_> = run.iter().map(|event| event.frame(shape)).collect();
                    frames.concat().into()
                }));
            }
        }
    }

    fn finish(mut self, shape: &EventShape) -> Option<Bytes> {
        self.end_run(shape);
        self.first.or_else(|| Some(self.bytes.freeze()).filter(|bytes| !bytes.is_empty()))
    }
}
