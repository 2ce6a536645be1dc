//! [`Key`]: where in the store an object lives.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The place of one object: `/registry/<group>/<resource>/<namespace>/<name>`, as Kubernetes lays it out.
///
/// Cheap to clone: the state, the event window and the indexes of the cache share one allocation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The key spelled by `text`.
    pub fn new(text: impl Into<Arc<str>>) -> Key {
        Key(text.into())
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
