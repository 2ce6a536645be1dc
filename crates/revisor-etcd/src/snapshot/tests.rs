//! Snapshots that a real etcd made, and what becomes of damaged ones. They are the seeds of the fuzz target.

use super::*;

/// Keys were written, changed and deleted, two of them together, and the last thing was a deletion.
const HISTORY: &[u8] = include_bytes!("../../../revisor-fuzz/seeds/etcd_snapshot/history");

/// The same after all that was compacted.
const COMPACTED: &[u8] = include_bytes!("../../../revisor-fuzz/seeds/etcd_snapshot/compacted");

fn open(bytes: &[u8], check: HashCheck) -> Result<Snapshot, SnapshotError> {
    Snapshot::of_bytes(Bytes::copy_from_slice(bytes), check)
}

#[test]
fn the_last_of_every_key_is_read() {
    for bytes in [HISTORY, COMPACTED] {
        let snapshot = open(bytes, HashCheck::Demanded).expect("etcd made it");
        assert_eq!(snapshot.revision().map(Revision::get), Some(10));
        let all = snapshot.range(b"/registry/", b"/registry0", 100).expect("can be read");
        let found: Vec<(&[u8], i64, usize)> =
            all.iter().map(|kv| (&kv.key[..], kv.mod_revision, kv.value.len())).collect();
        let want: [(&[u8], i64, usize); 4] = [
            (b"/registry/configmaps/a/x", 3, 3),
            (b"/registry/large", 8, 9000),
            (b"/registry/pair/a", 6, 8),
            (b"/registry/pair/b", 6, 8),
        ];
        assert_eq!(found, want);
        assert_eq!(all[0].value, "two");
        assert_eq!(snapshot.count(b"/registry/", b"/registry0"), 4);
        let page = snapshot.range(b"/registry/large", b"", 1).expect("can be read");
        assert_eq!(page.len(), 1);
    }
}

#[test]
fn damage_is_refused_and_named() {
    let cut = &HISTORY[..HISTORY.len() - 100];
    assert_eq!(open(cut, HashCheck::Demanded).expect_err("it is cut"), SnapshotError::NoHash);
    let mut changed = HISTORY.to_vec();
    changed[20_000] ^= 1;
    assert_eq!(open(&changed, HashCheck::Demanded).expect_err("it is changed"), SnapshotError::WrongHash);
    for foreign in [&b""[..], b"text", &[0; 8192]] {
        let refused = open(foreign, HashCheck::Skipped).expect_err("it is no database");
        assert!(matches!(refused, SnapshotError::Foreign(_)), "{refused}");
    }
    // Without the hash, what the pages say is all there is: half of them are missing.
    let half = &HISTORY[..12288];
    let refused = open(half, HashCheck::Skipped).expect_err("pages are missing");
    assert!(matches!(refused, SnapshotError::Damaged(_)), "{refused}");
}

#[test]
fn one_sound_meta_page_is_enough() {
    let at = |byte: usize| {
        let mut changed = HISTORY.to_vec();
        changed[byte] ^= 0xff;
        open(&changed, HashCheck::Skipped).map(|snapshot| snapshot.revision().map(Revision::get))
    };
    // One of the two was written by an earlier transaction.
    for meta in [16 + 20, 4096 + 16 + 20] {
        assert!(at(meta).is_ok_and(|revision| revision <= Some(10)), "{meta}");
    }
}
