//! [`EventStream`]: a watch whose objects can all be sent.
//!
//! Where every object can be shown at once, that is left to who sends it, and made once for all who watch. Where not, each
//! is shown here: at once if it can be, in batches if somebody has to be asked. What cannot be shown ends the watch.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use revisor_cache::{Delivery, EventKind, Footprint, FrameForm, FrameKey, Item, WatchItem, Watcher};
use revisor_catalog::{Catalog, Resource, Unconverted};
use revisor_version::Revision;
use tokio::sync::watch;

use crate::conversion::failed;
use crate::present::{show_item_now, show_now};
use crate::{Registry, RegistryError, Selection};

/// How many events are read ahead while somebody is asked.
const AHEAD: usize = 64;

/// A watch. Where it cannot be left to who sends it, what it yields comes with the bytes that are shown.
pub struct EventStream {
    watcher: Box<Watcher>,
    /// Only where not every object can be shown at once.
    showing: Option<Box<Showing>>,
    /// Resolves when the definition of a custom resource changes: what was promised at the start no longer holds.
    replaced: Option<Mutex<Replaced>>,
    has_ended: bool,
}

/// What a watch yields.
#[derive(Debug)]
pub struct StreamItem {
    /// What happened.
    pub item: WatchItem,
    /// The object as it is shown, where that could not wait until it is sent.
    pub shown: Option<Bytes>,
}

type Replaced = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Showing {
    registry: Arc<Registry>,
    view: View,
    /// What is being asked for. The mutex is never locked: it lets threads share a reference to the stream.
    pending: Option<Mutex<Pending>>,
    ready: VecDeque<StreamItem>,
    has_ended: bool,
}

type Pending = Pin<Box<dyn Future<Output = Result<VecDeque<StreamItem>, RegistryError>> + Send>>;

impl EventStream {
    /// A watch of what the watcher yields. `selection` is asked of what is shown.
    pub(crate) fn new(
        registry: Arc<Registry>,
        resource: Arc<Resource>,
        watcher: Watcher,
        selection: Option<Selection>,
    ) -> EventStream {
        let replaced =
            resource.custom().map(|_| Mutex::new(Box::pin(replaced(registry.served(), resource.clone())) as Replaced));
        let showing = (!resource.is_certain()).then(|| {
            let view = View { resource, selection };
            Box::new(Showing { registry, view, pending: None, ready: VecDeque::new(), has_ended: false })
        });
        EventStream { watcher: Box::new(watcher), showing, replaced, has_ended: false }
    }

    /// What the state costs that comes first, until all of it was taken.
    pub fn initial_footprint(&self) -> Option<Footprint> {
        self.watcher.initial_footprint()
    }

    /// The next item; `None` after the last. An error is the last item.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<StreamItem, RegistryError>>> {
        if let Some(replaced) = &mut self.replaced
            && replaced.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll(cx).is_ready()
        {
            self.replaced = None;
            self.has_ended = true;
        }
        if self.has_ended {
            return Poll::Ready(None);
        }
        match &mut self.showing {
            Some(showing) => showing.poll_next(&mut self.watcher, cx),
            None => self.watcher.poll_next(cx).map(|item| {
                let item = item?;
                let is_readable = check_readable(&item);
                self.has_ended |= is_readable.is_err();
                Some(is_readable.map(|()| StreamItem { item, shown: None }))
            }),
        }
    }

    /// How far the watch has come: everything up to here was yielded or is not for it.
    pub fn progress(&self) -> Option<Revision> {
        let is_idle = self.showing.as_ref().is_none_or(|it| it.pending.is_none() && it.ready.is_empty());
        self.watcher.progress().filter(|_| is_idle)
    }
}

/// Fails if an object is told of that cannot be read.
fn check_readable(item: &WatchItem) -> Result<(), RegistryError> {
    match item {
        WatchItem::State(item) => RegistryError::check_readable(item.entry()),
        WatchItem::Event(_, delivery) => {
            let mut sides = [delivery.old(), delivery.new()].into_iter().flatten();
            sides.try_for_each(|item| RegistryError::check_readable(item.entry()))
        }
        WatchItem::InitialEnd(_) | WatchItem::Expired(_) => Ok(()),
    }
}

impl Showing {
    fn poll_next(
        &mut self,
        watcher: &mut Watcher,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<StreamItem, RegistryError>>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            if let Some(pending) = &mut self.pending {
                let pending = pending.get_mut().unwrap_or_else(PoisonError::into_inner);
                let Poll::Ready(shown) = pending.as_mut().poll(cx) else { return Poll::Pending };
                self.pending = None;
                match shown {
                    Ok(items) => self.ready = items,
                    Err(error) => return self.end_with(error),
                }
                continue;
            }
            if self.has_ended {
                return Poll::Ready(None);
            }
            let item = match watcher.poll_next(cx) {
                Poll::Ready(Some(item)) => item,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            if let Err(error) = check_readable(&item) {
                return self.end_with(error);
            }
            match self.view.show(&item) {
                Ok(Some(item)) => return Poll::Ready(Some(Ok(item))),
                Ok(None) => {}
                Err(error @ Unconverted::Failed(_)) => return self.end_with(failed(error)),
                Err(Unconverted::Asks { .. }) => {
                    let items = self.read_ahead(item, watcher, cx);
                    let (registry, view) = (self.registry.clone(), self.view.clone());
                    self.pending = Some(Mutex::new(Box::pin(registry.show_events(view, items))));
                }
            }
        }
    }

    fn end_with(&mut self, error: RegistryError) -> Poll<Option<Result<StreamItem, RegistryError>>> {
        self.has_ended = true;
        Poll::Ready(Some(Err(error)))
    }

    /// The item, and what has come behind it.
    fn read_ahead(&mut self, item: WatchItem, watcher: &mut Watcher, cx: &mut Context<'_>) -> Vec<WatchItem> {
        let mut items = vec![item];
        while items.len() < AHEAD {
            match watcher.poll_next(cx) {
                Poll::Ready(Some(item)) => items.push(item),
                Poll::Ready(None) => {
                    self.has_ended = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        items
    }
}

/// How a watch sees objects.
#[derive(Clone)]
struct View {
    resource: Arc<Resource>,
    /// Which of them it is about, where only that can be told which is shown.
    selection: Option<Selection>,
}

impl View {
    /// What is to be sent of an item, if that can be told at once; nothing if the watch is not about it.
    fn show(&self, item: &WatchItem) -> Result<Option<StreamItem>, Unconverted> {
        Ok(match item {
            WatchItem::State(object) => {
                let shown = show_item_now(&self.resource, object)?;
                let is_selected = self.selects(object, &shown);
                is_selected.then(|| StreamItem { item: WatchItem::State(object.clone()), shown: Some(shown) })
            }
            WatchItem::Event(kind, delivery) => match self.kind(*kind, delivery)? {
                Some(kind) => {
                    let shown = Some(self.object(kind, delivery)?);
                    Some(StreamItem { item: WatchItem::Event(kind, delivery.clone()), shown })
                }
                None => None,
            },
            WatchItem::InitialEnd(revision) => Some(WatchItem::InitialEnd(*revision).into()),
            WatchItem::Expired(expired) => Some(WatchItem::Expired(*expired).into()),
        })
    }

    /// What an event of a watch of everything means to this one.
    fn kind(&self, kind: EventKind, delivery: &Delivery) -> Result<Option<EventKind>, Unconverted> {
        if self.selection.is_none() {
            return Ok(Some(kind));
        }
        let is_selected = |item: Option<&Arc<Item>>| match item {
            Some(item) => show_item_now(&self.resource, item).map(|shown| self.selects(item, &shown)),
            None => Ok(false),
        };
        Ok(EventKind::of(is_selected(delivery.old())?, is_selected(delivery.new())?))
    }

    /// The object of an event.
    fn object(&self, kind: EventKind, delivery: &Delivery) -> Result<Bytes, Unconverted> {
        match (kind, delivery.new()) {
            (EventKind::Added | EventKind::Modified, Some(new)) => show_item_now(&self.resource, new),
            // What was deleted reads as it did, at the revision of its deletion: nobody has seen that yet.
            _ => {
                let key = self.key_of(kind);
                match delivery.made(key) {
                    Some(shown) => Ok(shown),
                    None => {
                        let shown = show_now(&self.resource, &delivery.object(kind))?;
                        Ok(delivery.frame(key, || shown))
                    }
                }
            }
        }
    }

    /// Under which key an event remembers the object that it shows.
    fn key_of(&self, kind: EventKind) -> FrameKey {
        FrameKey { shape: self.resource.shape, kind, form: FrameForm::Object }
    }

    fn selects(&self, item: &Item, shown: &Bytes) -> bool {
        self.selection.as_ref().is_none_or(|selection| selection.admits(&self.resource, item, shown))
    }
}

impl From<WatchItem> for StreamItem {
    fn from(item: WatchItem) -> StreamItem {
        StreamItem { item, shown: None }
    }
}

/// Resolves when this very resource is no longer served.
async fn replaced(mut served: watch::Receiver<Arc<Catalog>>, resource: Arc<Resource>) {
    let (group, plural) = resource.name();
    let is_served = |catalog: &Arc<Catalog>| {
        catalog.resource(group, &resource.version, plural).is_some_and(|known| Arc::ptr_eq(known, &resource))
    };
    // Without a registry that changes it nothing changes.
    if served.wait_for(|catalog| !is_served(catalog)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Registry {
    /// Has those objects of a watch converted that somebody has to be asked for, and shows all.
    async fn show_events(
        self: Arc<Self>,
        view: View,
        items: Vec<WatchItem>,
    ) -> Result<VecDeque<StreamItem>, RegistryError> {
        let mut objects: Vec<Arc<Item>> = Vec::new();
        for item in &items {
            match item {
                WatchItem::State(item) => objects.push(item.clone()),
                WatchItem::Event(kind, delivery) => {
                    objects.extend(delivery.new().filter(|_| *kind != EventKind::Deleted).cloned());
                    // What an event means to who selects depends on the object before it, too.
                    objects.extend(delivery.old().filter(|_| view.selection.is_some()).cloned());
                }
                WatchItem::InitialEnd(_) | WatchItem::Expired(_) => {}
            }
        }
        self.show_items(&view.resource, &objects).await?;
        let mut ready = VecDeque::with_capacity(items.len());
        for item in &items {
            if let WatchItem::Event(kind, delivery) = item
                && view.kind(*kind, delivery).map_err(failed)? == Some(EventKind::Deleted)
                && delivery.made(view.key_of(EventKind::Deleted)).is_none()
            {
                let shown = self.show(&view.resource, &delivery.object(EventKind::Deleted)).await?;
                delivery.frame(view.key_of(EventKind::Deleted), || shown);
            }
            ready.extend(view.show(item).map_err(failed)?);
        }
        Ok(ready)
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("progress", &self.progress()).finish_non_exhaustive()
    }
}
