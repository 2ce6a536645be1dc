//! [`WatchBody`]: a watch as it is sent: one JSON document a line, each made once for all who watch (W3).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prometheus::IntCounter;
use revisor_cache::{EventKind, Expired, WatchItem, Watcher};
use revisor_catalog::Resource;
use revisor_object::Status;
use revisor_version::Revision;
use tokio::time::{Instant, Sleep};

use crate::{ByteSource, LongRunningGuard, WatchEnd};

/// How much is gathered into one write when events come faster than they are sent.
const CHUNK: usize = 32 * 1024;

/// How often a client that asked for bookmarks gets one, if there is news.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// How long before its end a watch sends a last bookmark.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What a watch is like.
pub(crate) struct WatchOptions {
    pub(crate) resource: Arc<Resource>,
    /// Whether the client asked for bookmarks.
    pub(crate) bookmarks: bool,
    /// When it ends by itself.
    pub(crate) lifetime: Duration,
    /// Counts events.
    pub(crate) sent: IntCounter,
    pub(crate) end: WatchEnd,
    pub(crate) guard: LongRunningGuard,
}

/// A watch on its way.
pub(crate) struct WatchBody {
    watcher: Box<Watcher>,
    resource: Arc<Resource>,
    bookmarks: bool,
    deadline: Pin<Box<Sleep>>,
    next_bookmark: Option<Pin<Box<Sleep>>>,
    /// The version that the client knows it has.
    known: Option<Revision>,
    sent: IntCounter,
    end: WatchEnd,
    is_done: bool,
    _guard: LongRunningGuard,
}

impl WatchBody {
    pub(crate) fn new(watcher: Box<Watcher>, options: WatchOptions) -> WatchBody {
        let deadline = Instant::now() + options.lifetime;
        let next_bookmark = options.bookmarks.then(|| Box::pin(tokio::time::sleep_until(next_bookmark_at(deadline))));
        WatchBody {
            watcher,
            resource: options.resource,
            bookmarks: options.bookmarks,
            deadline: Box::pin(tokio::time::sleep_until(deadline)),
            next_bookmark,
            known: None,
            sent: options.sent,
            end: options.end,
            is_done: false,
            _guard: options.guard,
        }
    }

    /// The line for one item of the watch; `None` for what this client is not told.
    fn frame(&mut self, item: WatchItem) -> Option<Bytes> {
        match item {
            WatchItem::State(item) => Some(event_frame("ADDED", item.bytes())),
            WatchItem::Event(kind, delivery) => {
                self.known = Some(delivery.revision());
                let (key, name) = match kind {
                    EventKind::Added => (0, "ADDED"),
                    EventKind::Modified => (1, "MODIFIED"),
                    EventKind::Deleted => (2, "DELETED"),
                };
                Some(delivery.frame(key, || event_frame(name, &delivery.object(kind))))
            }
            WatchItem::InitialEnd(revision) => {
                self.known = Some(revision);
                self.bookmarks.then(|| self.bookmark(revision, true))
            }
            WatchItem::Expired(Expired { asked, oldest }) => {
                self.is_done = true;
                Some(error_frame(&Status::expired(format!("too old resource version: {asked} ({oldest})"))))
            }
        }
    }

    fn bookmark(&self, revision: Revision, ends_initial_events: bool) -> Bytes {
        let annotations = if ends_initial_events {
            format!(",\"annotations\":{{\"{INITIAL_EVENTS_END}\":\"true\"}}")
        } else {
            String::new()
        };
        let object =
            format!("{}\"metadata\":{{\"resourceVersion\":\"{revision}\"{annotations}}}}}", self.resource.type_prefix);
        event_frame("BOOKMARK", object.as_bytes())
    }

    /// A bookmark, if it is time for one and there is something new to say.
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
        let revision = self.watcher.progress().filter(|revision| Some(*revision) > self.known)?;
        self.known = Some(revision);
        Some(self.bookmark(revision, false))
    }
}

impl ByteSource for WatchBody {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.is_done || Pin::new(&mut self.end).poll(cx).is_ready() || self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        let mut first: Option<Bytes> = None;
        let mut chunk = BytesMut::new();
        let mut count = 0;
        while chunk.len() < CHUNK && !self.is_done {
            match self.watcher.poll_next(cx) {
                Poll::Ready(Some(item)) => {
                    let Some(frame) = self.frame(item) else { continue };
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
            None => Poll::Pending,
        }
    }
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
