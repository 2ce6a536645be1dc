//! [`Stores`]: which store has a key, where some resources have a backend of their own.
//!
//! Each store has its own sequence of revisions and its own history, so nothing that is known of one says anything of
//! another: who waits for a revision, or asks for the newest, does so where the keys are that it is about.

use std::sync::Arc;

use crate::Store;

/// The stores of one server: one for most keys, and others for those that begin with given prefixes.
#[derive(Clone)]
pub struct Stores {
    rest: Arc<dyn Store>,
    parts: Vec<Part>,
}

#[derive(Clone)]
struct Part {
    prefixes: Arc<[String]>,
    store: Arc<dyn Store>,
}

impl Stores {
    /// One store for all keys.
    pub fn new(store: Arc<dyn Store>) -> Stores {
        Stores { rest: store, parts: Vec::new() }
    }

    /// The same, with keys that begin with one of these prefixes in a store of their own.
    #[must_use]
    pub fn with_part(mut self, prefixes: Vec<String>, store: Arc<dyn Store>) -> Stores {
        self.parts.push(Part { prefixes: prefixes.into(), store });
        self
    }

    /// The store that has this key, or all keys that begin so.
    pub fn of(&self, key: &str) -> &Arc<dyn Store> {
        let has_key = |part: &&Part| part.prefixes.iter().any(|prefix| key.starts_with(&**prefix));
        self.parts.iter().find(has_key).map_or(&self.rest, |part| &part.store)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Store>> {
        std::iter::once(&self.rest).chain(self.parts.iter().map(|part| &part.store))
    }

    /// Closes all of them.
    pub async fn close(&self) {
        for store in self.all() {
            store.close().await;
        }
    }
}

impl<S: Store> From<Arc<S>> for Stores {
    fn from(store: Arc<S>) -> Stores {
        Stores::new(store)
    }
}
