//! [`WatchBody`]: a watch as it is sent: one JSON document a line, each made once for all who watch (W3).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use prometheus::IntCounter;
use revisor_cache::{EventKind, Expired, FrameForm, FrameKey, WatchItem};
use revisor_catalog::{Moment, Resource};
use revisor_object::Status;
use revisor_registry::{EventStream, StreamItem, present, present_item};
use revisor_version::Revision;
use tokio::time::{Instant, Sleep};

use crate::places::Place;
use crate::representation::EventShape;
use crate::table::INITIAL_EVENTS_END;
use crate::unread_lists::UnreadList;
use crate::{ByteSource, LongRunningGuard, WatchEnd, answer};

/// How much is gathered into one write when events come faster than they are sent.
const CHUNK: usize = 32 * 1024;

/// How often a client that asked for bookmarks gets one.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// How long before its end a watch sends a last bookmark.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// What a watch is like.
pub(crate) struct WatchOptions {
    pub(crate) resource: Arc<Resource>,
    /// What the client is shown of objects.
    pub(crate) shape: EventShape,
    /// Whether the client asked for bookmarks.
    pub(crate) bookmarks: bool,
    /// Whether such a client is told when the state that comes first is complete.
    pub(crate) completes_state: bool,
    /// When it ends by itself.
    pub(crate) lifetime: Duration,
    /// Counts events.
    pub(crate) sent: IntCounter,
    pub(crate) end: WatchEnd,
    pub(crate) guard: LongRunningGuard,
    /// Its place among all watches.
    pub(crate) place: Place,
    /// What is held on to until the state that comes first was sent.
    pub(crate) unread: Option<UnreadList>,
}

/// A watch on its way.
pub(crate) struct WatchBody {
    events: EventStream,
    resource: Arc<Resource>,
    shape: EventShape,
    bookmarks: bool,
    completes_state: bool,
    deadline: Pin<Box<Sleep>>,
    next_bookmark: Option<Pin<Box<Sleep>>>,
    /// The version that the client knows it has.
    known: Option<Revision>,
    sent: IntCounter,
    end: WatchEnd,
    is_done: bool,
    _guard: LongRunningGuard,
    _place: Place,
    unread: Option<UnreadList>,
}

impl WatchBody {
    pub(crate) fn new(events: EventStream, options: WatchOptions) -> WatchBody {
        let deadline = Instant::now() + options.lifetime;
        let next_bookmark = options.bookmarks.then(|| Box::pin(tokio::time::sleep_until(next_bookmark_at(deadline))));
        WatchBody {
            events,
            resource: options.resource,
            shape: options.shape,
            bookmarks: options.bookmarks,
            completes_state: options.completes_state,
            deadline: Box::pin(tokio::time::sleep_until(deadline)),
            next_bookmark,
            known: None,
            sent: options.sent,
            end: options.end,
            is_done: false,
            _guard: options.guard,
            _place: options.place,
            unread: options.unread,
        }
    }

    /// The line for one item of the watch; `None` for what this client is not told.
    fn frame(&mut self, StreamItem { item, shown }: StreamItem) -> Option<Bytes> {
        match item {
            WatchItem::State(item) => {
                let object = shown.unwrap_or_else(|| present_item(&self.resource, &item).into_owned());
                self.event("ADDED", object)
            }
            WatchItem::Event(kind, delivery) => {
                self.known = Some(delivery.revision());
                let name = match kind {
                    EventKind::Added => "ADDED",
                    EventKind::Modified => "MODIFIED",
                    EventKind::Deleted => "DELETED",
                };
                let object = || shown.unwrap_or_else(|| present(&self.resource, &delivery.object(kind)));
                let Some(number) = self.shape.number() else {
                    let object = object();
                    return self.event(name, object);
                };
                let make = || {
                    let shown = self.shape.object(&self.resource, object(), now());
                    event_frame(name, &shown.expect("a shape with a number can be made"))
                };
                let key = FrameKey { shape: self.resource.shape, kind, form: FrameForm::Sent(number) };
                Some(delivery.frame(key, make))
            }
            WatchItem::InitialEnd(revision) => {
                self.unread = None;
                self.known = Some(revision);
                if self.bookmarks && self.completes_state { self.bookmark(revision, true) } else { None }
            }
            WatchItem::Expired(Expired { asked, oldest }) => {
                self.is_done = true;
                Some(error_frame(&Status::expired(format!("too old resource version: {asked} ({oldest})"))))
            }
        }
    }

    /// A line of this client's own; `None` if its object cannot be shown so, which ends the watch.
    fn event(&mut self, name: &str, object: Bytes) -> Option<Bytes> {
        let shown = self.shape.object(&self.resource, object, now());
        self.shape.sent();
        self.is_done |= shown.is_none();
        shown.map(|shown| event_frame(name, &shown))
    }

    fn bookmark(&mut self, revision: Revision, ends_initial_events: bool) -> Option<Bytes> {
        let annotations = if ends_initial_events {
            format!(",\"annotations\":{{\"{INITIAL_EVENTS_END}\":\"true\"}}")
        } else {
            String::new()
        };
        let object =
            format!("{}\"metadata\":{{\"resourceVersion\":\"{revision}\"{annotations}}}}}", self.resource.type_prefix);
        self.event("BOOKMARK", object.into())
    }

    /// A bookmark, if it is time for one and it does not take the client back.
    fn poll_bookmark(&mut self, cx: &mut Context<'_>) -> Option<Bytes> {
        let timer = self.next_bookmark.as_mut()?;
        if timer.as_mut().poll(cx).is_pending() {
            return None;
        }
        let deadline = self.deadline.deadline();
        if deadline - Instant::now() <= BOOKMARK_BEFORE_END {
            self.next_bookmark = None;
        } else {
            timer.as_mut().reset(next_bookmark_at(deadline));
            // Registers the task with the timer again; if that is due too, the next turn finds out.
            if timer.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
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
        let mut first: Option<Bytes> = None;
        let mut chunk = BytesMut::new();
        let mut count = 0;
        while chunk.len() < CHUNK && !self.is_done {
            match self.events.poll_next(cx) {
                Poll::Ready(Some(item)) => {
                    let frame = match item {
                        Ok(item) => self.frame(item),
                        Err(error) => {
                            self.is_done = true;
                            Some(error_frame(&answer::error_status(&error)))
                        }
                    };
                    let Some(frame) = frame else { continue };
                    count += 1;
                    match first.take() {
                        // One event is sent as it is; only those that come in a row are copied together.
                        None if chunk.is_empty() => first = Some(frame),
                        earlier => {
                            chunk.extend_from_slice(earlier.as_deref().unwrap_or_default());
                            chunk.extend_from_slice(&frame);
                        }
                    }
                }
                Poll::Ready(None) => self.is_done = true,
                Poll::Pending => break,
            }
        }
        self.sent.inc_by(count);
        if let Some(only) = first {
            return Poll::Ready(Some(only));
        }
        if !chunk.is_empty() {
            return Poll::Ready(Some(chunk.freeze()));
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

fn next_bookmark_at(deadline: Instant) -> Instant {
    let now = Instant::now();
    let last = deadline.checked_sub(BOOKMARK_BEFORE_END).unwrap_or(now).max(now);
    last.min(now + BOOKMARK_INTERVAL)
}

/// One event as a line.
fn event_frame(kind: &str, object: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(object.len() + 40);
    frame.extend_from_slice(b"{\"type\":\"");
    frame.extend_from_slice(kind.as_bytes());
    frame.extend_from_slice(b"\",\"object\":");
    frame.extend_from_slice(object);
    frame.extend_from_slice(b"}\n");
    frame.freeze()
}

/// The event that ends a watch which went wrong.
pub(crate) fn error_frame(status: &Status) -> Bytes {
    event_frame("ERROR", &status.to_json())
}
