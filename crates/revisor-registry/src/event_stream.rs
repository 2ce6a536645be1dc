//! [`EventStream`]: a watch whose objects can all be presented.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use revisor_cache::{EventKind, Footprint, Item, WatchItem, Watcher};
use revisor_catalog::{Catalog, Resource};
use revisor_version::Revision;
use tokio::sync::watch;

use crate::present::{converted_key, needs_memory};
use crate::read::SharedFilter;
use crate::{Registry, RegistryError};

/// How many events are read ahead while a webhook converts.
const AHEAD: usize = 64;

/// A watch. Where a webhook has to convert what it yields, that was done before it yields it.
pub struct EventStream {
    watcher: Box<Watcher>,
    /// Only where a webhook may be needed.
    converting: Option<Box<Converting>>,
    /// Resolves when the definition of a custom resource changes: what was promised at the start no longer holds.
    replaced: Option<Mutex<Replaced>>,
    has_ended: bool,
}

type Replaced = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Converting {
    registry: Arc<Registry>,
    resource: Arc<Resource>,
    /// Which objects the watch is about, where that cannot be told before they are converted.
    filter: SharedFilter,
    /// The conversion that is under way. The mutex is never locked: it lets threads share a reference to the stream.
    pending: Option<Mutex<Pending>>,
    ready: VecDeque<WatchItem>,
    has_ended: bool,
}

type Pending = Pin<Box<dyn Future<Output = Result<VecDeque<WatchItem>, RegistryError>> + Send>>;

impl EventStream {
    /// A watch of what the watcher yields. `filter` is asked after conversion.
    pub(crate) fn new(
        registry: Arc<Registry>,
        resource: Arc<Resource>,
        watcher: Watcher,
        filter: SharedFilter,
    ) -> EventStream {
        let replaced =
            resource.custom().map(|_| Mutex::new(Box::pin(replaced(registry.served(), resource.clone())) as Replaced));
        let converting = needs_memory(&resource).then(|| {
            Box::new(Converting { registry, resource, filter, pending: None, ready: VecDeque::new(), has_ended: false })
        });
        EventStream { watcher: Box::new(watcher), converting, replaced, has_ended: false }
    }

    /// What the state costs that comes first, until all of it was taken.
    pub fn initial_footprint(&self) -> Option<Footprint> {
        self.watcher.initial_footprint()
    }

    /// The next item; `None` after the last. An error is the last item.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<WatchItem, RegistryError>>> {
        if let Some(replaced) = &mut self.replaced
            && replaced.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll(cx).is_ready()
        {
            self.replaced = None;
            self.has_ended = true;
        }
        if self.has_ended {
            return Poll::Ready(None);
        }
        let Some(converting) = &mut self.converting else { return self.watcher.poll_next(cx).map(|item| item.map(Ok)) };
        loop {
            if let Some(item) = converting.ready.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            if let Some(pending) = &mut converting.pending {
                let pending = pending.get_mut().unwrap_or_else(PoisonError::into_inner);
                let Poll::Ready(converted) = pending.as_mut().poll(cx) else { return Poll::Pending };
                converting.pending = None;
                match converted {
                    Ok(items) => converting.ready = items,
                    Err(error) => {
                        converting.has_ended = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                continue;
            }
            if converting.has_ended {
                return Poll::Ready(None);
            }
            let mut items = VecDeque::new();
            while items.len() < AHEAD {
                match self.watcher.poll_next(cx) {
                    Poll::Ready(Some(item)) => items.push_back(item),
                    Poll::Ready(None) => {
                        converting.has_ended = true;
                        break;
                    }
                    Poll::Pending if items.is_empty() => return Poll::Pending,
                    Poll::Pending => break,
                }
            }
            let Converting { registry, resource, filter, .. } = &**converting;
            let conversion = registry.clone().convert_events(resource.clone(), filter.clone(), items);
            converting.pending = Some(Mutex::new(Box::pin(conversion)));
        }
    }

    /// How far the watch has come: everything up to here was yielded or is not for it.
    pub fn progress(&self) -> Option<Revision> {
        let is_idle = self.converting.as_ref().is_none_or(|it| it.pending.is_none() && it.ready.is_empty());
        self.watcher.progress().filter(|_| is_idle)
    }
}

/// What an item of a watch of everything is to who selects by a filter; nothing if it is not selected.
fn selected(item: WatchItem, filter: &SharedFilter) -> Option<WatchItem> {
    match item {
        WatchItem::State(item) => filter.admits(&item).then_some(WatchItem::State(item)),
        WatchItem::Event(_, delivery) => delivery.kind(filter.0.as_ref()).map(|kind| WatchItem::Event(kind, delivery)),
        other @ (WatchItem::InitialEnd(_) | WatchItem::Expired(_)) => Some(other),
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
    /// Has the objects of some items of a watch converted, and leaves out those that it is not about.
    async fn convert_events(
        self: Arc<Self>,
        resource: Arc<Resource>,
        filter: SharedFilter,
        mut items: VecDeque<WatchItem>,
    ) -> Result<VecDeque<WatchItem>, RegistryError> {
        let mut objects: Vec<Arc<Item>> = Vec::new();
        for item in &items {
            match item {
                WatchItem::State(item) => objects.push(item.clone()),
                WatchItem::Event(kind, delivery) => {
                    objects.extend(delivery.new().filter(|_| *kind != EventKind::Deleted).cloned());
                    // What an event means to who selects depends on the object before it, too.
                    objects.extend(delivery.old().filter(|_| filter.0.is_some()).cloned());
                }
                WatchItem::InitialEnd(_) | WatchItem::Expired(_) => {}
            }
        }
        self.show_items(&resource, &objects).await?;
        if filter.0.is_some() {
            items = items.into_iter().filter_map(|item| selected(item, &filter)).collect();
        }
        for item in &items {
            let WatchItem::Event(kind, delivery) = item else { continue };
            let key = converted_key(&resource, *kind);
            let shown = match (kind, delivery.new()) {
                (EventKind::Added | EventKind::Modified, Some(new)) => crate::present_item(&resource, new),
                // What was deleted reads as it did, at the revision of its deletion: nobody has seen that yet.
                _ => self.show(&resource, &delivery.object(*kind)).await?,
            };
            delivery.frame(key, || shown);
        }
        Ok(items)
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("progress", &self.progress()).finish_non_exhaustive()
    }
}
