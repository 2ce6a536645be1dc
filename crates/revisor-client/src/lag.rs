//! [`Lag`]: how far a store is behind its server.

use std::time::Duration;

use crate::ResourceVersion;

/// How far a store is behind its server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lag {
    /// Where the server was when it was asked.
    pub server: ResourceVersion,
    /// Where the store was then.
    pub store: Option<ResourceVersion>,
    /// For how long the server has told the store nothing.
    pub silent_for: Duration,
}

impl Lag {
    /// How many versions the store is behind, an upper bound for the changes that it misses: servers number the writes of
    /// many resources in one sequence, and a store hears of the numbers of others by bookmarks only. `None` if versions
    /// do not compare, or there is no list yet.
    pub fn versions(&self) -> Option<u128> {
        self.server.since(self.store.as_ref()?)
    }
}
