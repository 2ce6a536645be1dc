//! [`KeySet`]: the keys that tokens are checked with at some time, and which of them others are told of.

use std::time::Instant;

use crate::VerifyingKey;

/// For how long others may keep keys that never change.
const LASTING_SECONDS: u64 = 3600;

/// Keys that belong together.
#[derive(Debug, Default)]
pub(super) struct KeySet {
    /// All that tokens may be signed with.
    pub(super) keys: Vec<VerifyingKey>,
    /// Those that others are told of who check tokens by themselves.
    pub(super) published: Vec<VerifyingKey>,
    /// Another one for every other set.
    pub(super) generation: u64,
    /// Until when it is not looked whether there are others; `None` if there never are.
    pub(super) fresh_until: Option<Instant>,
}

impl KeySet {
    /// Keys that stay as they are.
    pub(super) fn lasting(keys: Vec<VerifyingKey>) -> KeySet {
        KeySet { published: keys.clone(), keys, ..KeySet::default() }
    }

    /// Whether a token can be checked that names its key so; one that names none can, if there is any.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.keys.iter().any(|key| id.is_empty() || key.id() == id)
    }

    /// For how many seconds others may keep what they are told (`GetCacheAgeMaxSeconds`).
    pub(super) fn max_age(&self) -> u64 {
        match self.fresh_until {
            None => LASTING_SECONDS,
            Some(until) => until.saturating_duration_since(Instant::now()).as_secs(),
        }
    }
}
