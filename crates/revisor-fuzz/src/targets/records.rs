//! Records as the store keeps them.

use revisor_store::embedded::reread_record;
use revisor_version::Revision;

/// The checksum at the end of a record.
const CHECKSUM: usize = 4;

/// A record that was read and written again reads as the same record.
pub(super) fn stored(data: &[u8]) {
    let Some(first) = reread_record(Revision::FIRST, data) else { return };
    let body = &first[..first.len() - CHECKSUM];
    assert_eq!(reread_record(Revision::FIRST, body), Some(first.clone()));
}
