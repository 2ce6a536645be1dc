//! [`PolicyObjects`]: the objects that policies look at beside those that are written, parsed once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use revisor_cache::Item;
use revisor_object::Object;
use revisor_version::Revision;

use crate::Decoded;

/// How many objects are remembered. Namespaces and parameters are few; if there are more, all are forgotten and read
/// again.
const MOST: usize = 1024;

/// Larger objects are read whenever they are needed.
const LARGEST: usize = 64 * 1024;

/// Remembers what was read of the newest version of each object.
#[derive(Default)]
pub(crate) struct PolicyObjects(Mutex<HashMap<String, (Revision, Arc<Object>)>>);

impl PolicyObjects {
    /// The stored object; `None` if it cannot be read.
    pub(crate) fn read(&self, item: &Item) -> Option<Arc<Object>> {
        // Nothing is left half done in there.
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (key, revision) = (item.key().as_str(), item.revision());
        if let Some((known, object)) = lock().get(key)
            && *known == revision
        {
            return Some(object.clone());
        }
        let object = Arc::new(Decoded::stored(item.bytes()).ok()?);
        if item.bytes().len() <= LARGEST {
            let mut known = lock();
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(key.to_owned(), (revision, object.clone()));
        }
        Some(object)
    }
}
