//! [`Attempts`]: the one way in which what is stored is replaced or removed. The newest state is read, something is made
//! of it, and that is stored if nobody else was faster; or else it begins again with what they left.
//!
//! The first state may be what the cache has, without asking the store whether that is the newest: a write that is stored
//! has shown that it was. What comes of it otherwise counts only if it [`is_current`](Registry::is_current).

use std::sync::Arc;

use revisor_catalog::Resource;
use revisor_store::{Entry, Key, StoreError};

use crate::{Registry, RegistryError};

/// How often a write is tried anew because others changed the object in between. Each time somebody succeeded, so a
/// client that comes to this bound has met a hundred others.
const MAX_ATTEMPTS: usize = 100;

/// The attempts of one write.
pub(crate) struct Attempts<'r> {
    resource: &'r Arc<Resource>,
    name: &'r str,
    key: Key,
    newest: Option<Arc<Entry>>,
    /// Whether that was the newest state at some moment since these attempts began.
    is_current: bool,
    left: usize,
}

impl Registry {
    /// Begins to write to an object, with its newest state.
    pub(crate) async fn attempts<'r>(
        &self,
        resource: &'r Arc<Resource>,
        namespace: Option<&str>,
        name: &'r str,
    ) -> Result<Attempts<'r>, RegistryError> {
        let key = Key::new(resource.key(namespace, name));
        let cache = self.cache_of(resource);
        cache.freshen().await?;
        let newest = cache.get(key.as_str()).map(|item| item.entry().clone());
        Ok(Attempts { resource, name, key, newest, is_current: true, left: MAX_ATTEMPTS })
    }

    /// The same with what the cache has of the object. Where it has nothing that can be read, the store is asked.
    pub(crate) async fn attempts_from_cache<'r>(
        &self,
        resource: &'r Arc<Resource>,
        namespace: Option<&str>,
        name: &'r str,
    ) -> Result<Attempts<'r>, RegistryError> {
        let key = Key::new(resource.key(namespace, name));
        let cached = self.cache_of(resource).get(key.as_str()).map(|item| item.entry().clone());
        match cached.filter(|entry| entry.problem().is_none()) {
            Some(cached) => {
                let newest = Some(cached);
                Ok(Attempts { resource, name, key, newest, is_current: false, left: MAX_ATTEMPTS })
            }
            None => self.attempts(resource, namespace, name).await,
        }
    }

    /// Whether the last attempt began with the newest state. If not, the next one does.
    pub(crate) async fn is_current(&self, attempts: &mut Attempts<'_>) -> Result<bool, RegistryError> {
        if attempts.is_current {
            return Ok(true);
        }
        attempts.is_current = true;
        let cache = self.cache_of(attempts.resource);
        cache.freshen().await?;
        let newest = cache.get(attempts.key.as_str()).map(|item| item.entry().clone());
        let revision = |entry: &Option<Arc<Entry>>| entry.as_ref().map(|entry| entry.revision());
        let was_newest = revision(&newest) == revision(&attempts.newest);
        attempts.newest = newest;
        Ok(was_newest)
    }
}

impl Attempts<'_> {
    /// Where the object is stored.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// What is there now, for the next attempt.
    ///
    /// # Errors
    /// If there is nothing, or nothing that can be read, or if there were too many attempts.
    pub(crate) fn current(&mut self) -> Result<Arc<Entry>, RegistryError> {
        if self.left == 0 {
            return Err(RegistryError::Contended { resource: self.resource.clone(), name: self.name.to_owned() });
        }
        self.left -= 1;
        let newest = self.newest.clone().ok_or_else(|| RegistryError::not_found(self.resource, self.name))?;
        RegistryError::check_readable(&newest)?;
        Ok(newest)
    }

    /// Goes on with another state.
    pub(crate) fn go_on_with(&mut self, newest: Option<Arc<Entry>>) {
        self.newest = newest;
        self.is_current = true;
    }

    /// What was written; `None` if somebody else was faster, and the next attempt begins with what they left.
    pub(crate) fn settle<T>(&mut self, written: Result<T, StoreError>) -> Result<Option<T>, RegistryError> {
        match written {
            Ok(done) => Ok(Some(done)),
            Err(StoreError::Conflict { current, .. }) => {
                self.go_on_with(current);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
