//! [`Anonymous`]: which requests without credentials are let in, as `system:anonymous`.

use std::collections::BTreeSet;

/// Which requests without credentials are let in. What they may do then is for authorization to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anonymous {
    /// None.
    Nowhere,
    /// All.
    Everywhere,
    /// Those for exactly these paths.
    At(BTreeSet<String>),
}

impl Anonymous {
    /// Whether a request for `path` is let in.
    pub fn admits(&self, path: &str) -> bool {
        match self {
            Anonymous::Nowhere => false,
            Anonymous::Everywhere => true,
            Anonymous::At(paths) => paths.contains(path),
        }
    }
}
