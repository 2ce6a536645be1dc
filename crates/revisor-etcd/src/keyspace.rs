//! [`Keyspace`]: which keys of etcd are those of the store.

use bytes::Bytes;
use revisor_store::Key;
use revisor_version::Revision;

use crate::client::prefix_end;

/// The part of etcd's keys that a store has: those below a prefix, which stands in place of the root of its own keys.
#[derive(Debug, Clone)]
pub(crate) struct Keyspace {
    root: Box<str>,
    prefix: Box<str>,
}

impl Keyspace {
    /// The keys below `root` are below `prefix` in etcd. A prefix without a slash before it gets one, as in the original.
    pub(crate) fn new(root: &str, prefix: &str) -> Keyspace {
        let parts: Vec<&str> = prefix.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let prefix: String = parts.iter().map(|part| format!("/{part}")).collect();
        Keyspace { root: root.into(), prefix: prefix.into() }
    }

    /// Where etcd has a key, or keys that begin so.
    pub(crate) fn to_etcd(&self, key: &str) -> Bytes {
        let below = key.strip_prefix(&*self.root).unwrap_or(key);
        let mut whole = Vec::with_capacity(self.prefix.len() + below.len());
        whole.extend_from_slice(self.prefix.as_bytes());
        whole.extend_from_slice(below.as_bytes());
        whole.into()
    }

    /// The key of the store that etcd has here; nothing if it is not one of the store's.
    pub(crate) fn key_at(&self, key: &[u8]) -> Option<Key> {
        let below = std::str::from_utf8(key).ok()?.strip_prefix(&*self.prefix)?;
        if !below.starts_with('/') {
            return None;
        }
        if self.root == self.prefix {
            return std::str::from_utf8(key).ok().map(Key::new);
        }
        Some(Key::new(format!("{}{below}", self.root)))
    }

    /// The range of all keys that begin with `prefix`, and are below the store's own.
    pub(crate) fn range_of(&self, prefix: &str) -> (Bytes, Bytes) {
        let whole = self.all().0;
        let start = self.to_etcd(prefix);
        if start.len() < whole.len() { self.all() } else { (start.clone(), prefix_end(&start)) }
    }

    /// The range of all keys of the store.
    pub(crate) fn all(&self) -> (Bytes, Bytes) {
        let start = Bytes::from(format!("{}/", self.prefix));
        (start.clone(), prefix_end(&start))
    }
}

/// A revision as etcd counts. An etcd to which nothing was ever written is at 1.
pub(crate) fn revision_of(number: i64) -> Option<Revision> {
    u64::try_from(number).ok().filter(|number| *number > 1).and_then(Revision::new)
}

/// The number of a revision for etcd.
pub(crate) fn number_of(revision: Revision) -> i64 {
    i64::try_from(revision.get()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_below_the_prefix_and_come_back() {
        for (given, key, etcd) in [
            ("/registry", "/registry/pods/a/b", "/registry/pods/a/b"),
            ("registry/", "/registry/pods/a/b", "/registry/pods/a/b"),
            ("other/regi", "/registry/pods/a/b", "/other/regi/pods/a/b"),
            ("", "/registry/pods/", "/pods/"),
        ] {
            let keys = Keyspace::new("/registry", given);
            assert_eq!(keys.to_etcd(key), etcd, "{given}");
            assert_eq!(keys.key_at(etcd.as_bytes()).expect("is one").as_str(), key, "{given}");
        }
        let keys = Keyspace::new("/registry", "/reg");
        for foreign in [&b"/registry/pods/a"[..], b"compact_rev_key", b"/reg", b"/reg/\xff"] {
            assert_eq!(keys.key_at(foreign), None, "{}", String::from_utf8_lossy(foreign));
        }
    }
}
