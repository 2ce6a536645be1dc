//! How names that may be telling are shown: by their hashes.

use sha2::{Digest, Sha256};

/// The hash of `data` as the original spells it; nothing of nothing.
pub(crate) fn hash(data: &[u8]) -> String {
    if data.is_empty() {
        return String::new();
    }
    let digits: String = Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}
