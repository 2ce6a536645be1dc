//! Snapshots of etcd.

use revisor_etcd::read_whole_snapshot;

/// A file that can be read is read the same again, and one that cannot says why.
pub(super) fn etcd(data: &[u8]) {
    assert_eq!(read_whole_snapshot(data), read_whole_snapshot(data));
}
