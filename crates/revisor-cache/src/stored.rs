//! The past of a resource that is longer ago than its window: read from the store, page by page.
//!
//! What is read is not kept. Objects that are still what they were are those of the newest state, so that what was
//! parsed or made of them is there.

use std::pin::Pin;
use std::sync::Arc;

use revisor_store::{EventPage, Key, Page, StoreError};
use revisor_version::Revision;

use crate::delivery::Change;
use crate::history::Expired;
use crate::layout::Layout;
use crate::{Item, ResourceCache, Scope};

/// How many events are read at once.
const PAGE: usize = 512;

/// A page of events on its way.
pub(crate) type Reading = Pin<Box<dyn Future<Output = Result<EventPage, StoreError>> + Send>>;

/// Why the past cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PastError {
    /// It is too long ago.
    #[error(transparent)]
    Expired(#[from] Expired),
    /// The store cannot tell.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for PastError {
    fn from(error: StoreError) -> PastError {
        match error {
            StoreError::Compacted { asked, oldest } => PastError::Expired(Expired { asked, oldest }),
            other => PastError::Store(other),
        }
    }
}

/// Some objects of a past state.
#[derive(Debug, Clone)]
pub struct PastPage {
    /// The objects, in byte order of their keys.
    pub items: Vec<Arc<Item>>,
    /// How many follow.
    pub remaining: usize,
}

impl ResourceCache {
    /// The object at `key` as it was at `revision`, which the store must have reached.
    pub async fn get_at(&self, key: &str, revision: Revision) -> Result<Option<Arc<Item>>, PastError> {
        if let Some(snapshot) = self.snapshot_at(revision)? {
            return Ok(snapshot.get(key).cloned());
        }
        let page = self.page_at(revision, key, None, Some(1)).await?;
        Ok(page.items.into_iter().find(|item| item.key().as_str() == key))
    }

    /// The objects whose keys start with `prefix` as they were at `revision`, strictly after the key `after` and at
    /// most `limit`; read from the store.
    pub async fn page_at(
        &self,
        revision: Revision,
        prefix: &str,
        after: Option<&str>,
        limit: Option<usize>,
    ) -> Result<PastPage, PastError> {
        let store = self.store().ok_or(StoreError::Closed)?;
        let page = Page { after: after.map(Key::new), limit, at: Some(revision) };
        let listing = store.list(prefix, page).await?;
        let newest = self.snapshot();
        let item = |entry: Arc<revisor_store::Entry>| match newest.get(entry.key().as_str()) {
            Some(item) if item.revision() == entry.revision() => item.clone(),
            _ => Item::new(entry),
        };
        Ok(PastPage { items: listing.entries.into_iter().map(item).collect(), remaining: listing.remaining })
    }

    /// The next events of a part of the resource after `position`, as the store has them; nothing if it is gone.
    pub(crate) fn read_stored(&self, scope: &Scope, position: Option<Revision>) -> Option<Reading> {
        let store = self.store()?;
        let prefix = scope.prefix(self.layout());
        Some(Box::pin(async move { store.events(&prefix, position, PAGE).await }))
    }
}

impl Scope {
    /// What the keys of this part start with; other keys may too.
    fn prefix(&self, layout: &Layout) -> String {
        match self {
            Scope::Namespace(namespace) if layout.namespaced => layout.namespace_prefix(namespace),
            Scope::All | Scope::Triggered(_) | Scope::Namespace(_) => layout.prefix.to_string(),
            Scope::Object(key) => key.to_string(),
        }
    }
}

/// Events of the store as changes. They are of those who read them alone.
pub(crate) fn changes(page: &EventPage) -> impl Iterator<Item = Arc<Change>> {
    page.events.iter().map(|event| {
        let [old, new] = [&event.old, &event.new].map(|side| side.clone().map(Item::new));
        Change::new(event.revision, old, new)
    })
}
