//! [`Watcher`]: one watch, from its first state or revision to its end.
//!
//! ```text
//!                        Stored
//!                         ▲ │ before the window
//!                         │ ▼
//!  Unwritten ─▶ State ─▶ CatchUp ─▶ Live ─▶ Ended
//!                          ▲  │       │
//!                          │  └───────┼─▶ Expired
//!                          └──────────┘ queue overrun
//! ```
//!
//! A watcher that does not keep up is not cut off. Its queue fills, it loses its seat, and when it comes back it reads
//! on from the window, in pieces, until it has caught up and takes a seat again. If the window has moved past it, or
//! was never where it begins, it reads from the store, a page at a time, until it meets the window. While it is away
//! it costs nothing but what is in its queue, and nobody waits for it (W2); only if history has moved past it does it
//! end, with [`Expired`]. To drop it at once would be simpler, but its client would come back, list everything again and be
//! slower still: that is how a short burst turns into an overload.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use revisor_store::{EventPage, Key, StoreError};
use revisor_version::Revision;

use crate::history::{Beyond, Expired};
use crate::index::Seat;
use crate::layout::Layout;
use crate::queue::{Queued, Taken};
use crate::resource::Joined;
use crate::stored::{Reading, changes};
use crate::{Delivery, EventKind, Footprint, Item, ResourceCache, Snapshot, Trigger};

/// How many objects or events are looked at before others get a turn.
const LOOK: usize = 512;
/// The largest buffer that an idle watcher keeps, in events.
const IDLE_BUFFER: usize = 64;

/// Which objects a watcher wants to hear of, within its scope. It must not block: the dispatcher calls it too.
pub type Filter = Arc<dyn Fn(&Item) -> bool + Send + Sync>;

/// Which part of a resource is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    All,
    /// The objects that are triggered by one value. The filter has to select them too: what is triggered is found by its
    /// value where that saves asking, and nowhere else.
    Triggered(Trigger),
    /// One namespace.
    Namespace(String),
    /// One object.
    Object(Key),
}

impl Scope {
    /// Whether `key` is in this part, as far as it can tell.
    pub(crate) fn contains(&self, key: &Key, layout: &Layout) -> bool {
        match self {
            Scope::All | Scope::Triggered(_) => true,
            Scope::Namespace(namespace) => layout.namespace_of(key.as_str()) == Some(namespace.as_str()),
            Scope::Object(object) => object == key,
        }
    }
}

/// What to watch and from where.
pub struct WatchRequest {
    /// Which part of the resource.
    pub scope: Scope,
    /// Which objects of that part; all if not given.
    pub filter: Option<Filter>,
    /// What comes first.
    pub start: WatchStart,
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchStart {
    /// With the newest delivered state: its objects, [`WatchItem::InitialEnd`], then the changes after it.
    State,
    /// With the changes after this revision. If it is in the future, nothing comes until there are later ones.
    After(Revision),
}

/// What a watch yields.
#[derive(Debug, Clone)]
pub enum WatchItem {
    /// An object of the initial state.
    State(Arc<Item>),
    /// The initial state is complete; it was the one at this revision.
    InitialEnd(Revision),
    /// A change, and what it means for the selection of this watch.
    Event(EventKind, Arc<Delivery>),
    /// The watch fell so far behind that events are gone. The last item.
    Expired(Expired),
}

/// One watch: every change of its selection once and in order, or an end (W1). To drop it ends it.
pub struct Watcher {
    resource: Arc<ResourceCache>,
    seat: Arc<Seat>,
    phase: Phase,
    /// Events to be yielded before anything else happens.
    ready: VecDeque<Queued>,
    /// The revision that the watch was asked to begin after.
    start: Option<Revision>,
    /// Once `ready` is empty, every event up to here was yielded or is not for this watch.
    seen: Option<Revision>,
    progress: Option<Revision>,
}

type Wait = Pin<Box<dyn Future<Output = bool> + Send>>;

enum Phase {
    /// Nothing was ever written to the store, so there is no revision that the initial state could be of. The mutex
    /// is never locked: it lets threads share a reference to the watcher.
    Unwritten(Mutex<Wait>),
    /// The initial state is being yielded.
    State(InitialState),
    /// Reads the window by itself; every event up to here was taken from it.
    CatchUp(Option<Revision>),
    /// Waits for a page of the store. The mutex is for the same as that of `Unwritten`.
    Stored(Mutex<Reading>),
    /// Has a seat: the dispatcher pushes.
    Live,
    Ended,
}

/// The objects of one snapshot, taken from it piece by piece.
struct InitialState {
    snapshot: Snapshot,
    revision: Revision,
    piece: VecDeque<Arc<Item>>,
    after: Option<Key>,
    is_exhausted: bool,
}

enum Step {
    Again,
    Yield(WatchItem),
    /// There is more to do, but others get a turn first.
    Rest,
    /// There is nothing to do until somebody wakes the task.
    Idle,
    End,
}

impl Watcher {
    pub(crate) fn new(resource: Arc<ResourceCache>, request: WatchRequest) -> Result<Watcher, Expired> {
        let WatchRequest { scope, filter, start } = request;
        let after = match start {
            WatchStart::State => None,
            WatchStart::After(revision) => Some(revision),
        };
        if let Some(after) = after {
            resource.check_kept(after)?;
        }
        resource.enter();
        let phase = match start {
            WatchStart::State => Phase::initial(&resource),
            WatchStart::After(_) => Phase::CatchUp(after),
        };
        let seat = Seat::new(scope, filter, resource.watcher_queue());
        Ok(Watcher { resource, seat, phase, ready: VecDeque::new(), start: after, seen: None, progress: None })
    }

    /// The next item; nothing after the end, which comes when the resource is removed or the store closed.
    pub async fn next(&mut self) -> Option<WatchItem> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Like [`next`](Watcher::next), for those who write their own futures.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<WatchItem>> {
        loop {
            if let Some((kind, delivery)) = self.ready.pop_front() {
                self.seen = self.seen.max(Some(delivery.revision()));
                return Poll::Ready(Some(WatchItem::Event(kind, delivery)));
            }
            let step = match &mut self.phase {
                Phase::Unwritten(wait) => match wait.get_mut().expect("it is never locked").as_mut().poll(cx) {
                    Poll::Ready(true) => {
                        self.phase = Phase::initial(&self.resource);
                        Step::Again
                    }
                    Poll::Ready(false) => Step::End,
                    Poll::Pending => Step::Idle,
                },
                Phase::State(state) => match state.next(&self.seat, self.resource.layout()) {
                    Some(step) => step,
                    None => {
                        let revision = state.revision;
                        self.seen = Some(revision);
                        self.phase = Phase::CatchUp(Some(revision));
                        Step::Yield(WatchItem::InitialEnd(revision))
                    }
                },
                Phase::CatchUp(position) => {
                    let position = *position;
                    self.catch_up(position)
                }
                Phase::Stored(reading) => match reading.get_mut().expect("it is never locked").as_mut().poll(cx) {
                    Poll::Ready(page) => self.take_stored(page),
                    Poll::Pending => Step::Idle,
                },
                Phase::Live => self.take(cx),
                Phase::Ended => Step::End,
            };
            return match step {
                Step::Again => continue,
                Step::Yield(item) => Poll::Ready(Some(item)),
                Step::Rest => {
                    // Never behind what was yielded: a bookmark must not take a client back.
                    self.progress = self.progress.max(self.seen);
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Step::Idle => Poll::Pending,
                Step::End => {
                    self.phase = Phase::Ended;
                    Poll::Ready(None)
                }
            };
        }
    }

    /// Right after [`poll_next`](Watcher::poll_next) found nothing: every event up to this revision was yielded, so a
    /// client that is told of it can come back from there. `None` as long as that cannot be said: before the initial
    /// state is complete, and before the store has reached the revision that the watch begins after.
    pub fn progress(&self) -> Option<Revision> {
        self.progress.filter(|_| self.progress >= self.start)
    }

    /// What the state costs that comes first, while it is being yielded.
    pub fn initial_footprint(&self) -> Option<Footprint> {
        match &self.phase {
            Phase::State(state) => Some(state.snapshot.footprint()),
            _ => None,
        }
    }

    /// Takes the next piece of the window, and a seat if there is none.
    fn catch_up(&mut self, mut position: Option<Revision>) -> Step {
        let mut found = Vec::new();
        let looked_at = match self.resource.read_window(&mut position, &self.seat.scope, LOOK, &mut found) {
            Ok(looked_at) => looked_at,
            Err(Beyond::History(expired)) => return self.expire(expired),
            Err(Beyond::Window) => {
                let Some(reading) = self.resource.read_stored(&self.seat.scope, position) else { return Step::End };
                self.phase = Phase::Stored(Mutex::new(reading));
                return Step::Again;
            }
        };
        if looked_at > 0 {
            self.phase = Phase::CatchUp(position);
            let filter = self.seat.filter.as_ref();
            let selected = found.iter().filter_map(|change| Some((change.kind(filter)?, change.delivery())));
            self.ready.extend(selected);
            self.seen = self.seen.max(position);
            if !self.ready.is_empty() {
                return Step::Again;
            }
        }
        if looked_at == LOOK {
            return Step::Rest;
        }
        match self.resource.join(&self.seat, position) {
            Joined::Live => {
                self.phase = Phase::Live;
                Step::Again
            }
            Joined::Behind => Step::Rest,
            Joined::Ended => Step::End,
        }
    }

    /// Takes a page of the store. Upholds W1: it has every event of this watch up to where it ends, and the window, or
    /// the next page, is read from there.
    fn take_stored(&mut self, page: Result<EventPage, StoreError>) -> Step {
        let page = match page {
            Ok(page) => page,
            Err(StoreError::Compacted { asked, oldest }) => return self.expire(Expired { asked, oldest }),
            Err(error) => {
                // Clients come back from the last that they have seen.
                tracing::warn!(prefix = self.resource.prefix(), %error, "a watch ends because history cannot be read");
                return Step::End;
            }
        };
        let Seat { scope, filter, .. } = &*self.seat;
        let own = changes(&page).filter(|change| scope.contains(change.key(), self.resource.layout()));
        self.ready.extend(own.filter_map(|change| Some((change.kind(filter.as_ref())?, change.delivery()))));
        self.seen = self.seen.max(page.through);
        self.phase = Phase::CatchUp(page.through);
        Step::Again
    }

    fn expire(&mut self, expired: Expired) -> Step {
        self.phase = Phase::Ended;
        Step::Yield(WatchItem::Expired(expired))
    }

    /// Takes what the dispatcher has pushed.
    fn take(&mut self, cx: &Context<'_>) -> Step {
        if self.ready.capacity() > IDLE_BUFFER {
            self.ready = VecDeque::new();
        }
        // Before the queue is looked at, see there.
        let settled = self.resource.settled();
        match self.seat.queue.take(&mut self.ready, cx.waker()) {
            Taken::Events => Step::Again,
            Taken::Nothing => {
                self.progress = self.progress.max(self.seen).max(settled);
                Step::Idle
            }
            Taken::Overrun(position) => {
                self.phase = Phase::CatchUp(position);
                Step::Again
            }
            Taken::Closed => Step::End,
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.resource.leave(&self.seat);
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("scope", &self.seat.scope).field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl Phase {
    /// The start with the newest state.
    fn initial(resource: &ResourceCache) -> Phase {
        let snapshot = resource.snapshot();
        match snapshot.revision() {
            Some(revision) => Phase::State(InitialState {
                snapshot,
                revision,
                piece: VecDeque::new(),
                after: None,
                is_exhausted: false,
            }),
            None => {
                let mut progress = resource.progress().clone();
                let wait: Wait = Box::pin(async move { progress.wait_for(Option::is_some).await.is_ok() });
                Phase::Unwritten(Mutex::new(wait))
            }
        }
    }
}

impl InitialState {
    /// What is next; nothing after the last object.
    fn next(&mut self, seat: &Seat, layout: &Layout) -> Option<Step> {
        if self.piece.is_empty() && !self.is_exhausted {
            self.refill(seat, layout);
            if self.piece.is_empty() && !self.is_exhausted {
                return Some(Step::Rest);
            }
        }
        self.piece.pop_front().map(|item| Step::Yield(WatchItem::State(item)))
    }

    /// Looks at some more objects and keeps those that are selected.
    fn refill(&mut self, seat: &Seat, layout: &Layout) {
        let selected = |item: &Item| seat.filter.as_ref().is_none_or(|filter| filter(item));
        let namespace_prefix;
        let prefix = match &seat.scope {
            Scope::All | Scope::Triggered(_) => &*layout.prefix,
            Scope::Namespace(namespace) if layout.namespaced => {
                namespace_prefix = layout.namespace_prefix(namespace);
                &namespace_prefix
            }
            Scope::Namespace(_) => {
                self.is_exhausted = true;
                return;
            }
            Scope::Object(key) => {
                self.is_exhausted = true;
                self.piece.extend(self.snapshot.get(key.as_str()).filter(|item| selected(item)).cloned());
                return;
            }
        };
        let mut looked_at = 0;
        let mut last = None;
        for item in self.snapshot.range(prefix, self.after.as_ref().map(Key::as_str)).take(LOOK) {
            looked_at += 1;
            last = Some(item.key());
            if selected(item) {
                self.piece.push_back(item.clone());
            }
        }
        self.is_exhausted = looked_at < LOOK;
        if last.is_some() {
            self.after = last.cloned();
        }
    }
}
