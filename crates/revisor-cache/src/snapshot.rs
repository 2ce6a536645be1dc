//! [`Snapshot`]: one state of a resource, cheap to take and to keep for a while; and the [`Table`] that it is made of.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use imbl::OrdMap;
use revisor_store::Key;
use revisor_version::Revision;

use crate::Item;
use crate::layout::Layout;
use crate::ranks::Ranks;

/// All objects of a resource as they were at one revision. A list is one of these, and so are all its pages (C2).
#[derive(Clone)]
pub struct Snapshot {
    table: Table,
    revision: Option<Revision>,
    /// How much was replaced up to the newest state.
    replaced_by_now: Arc<AtomicU64>,
}

/// What an object takes beside its bytes, about.
const OVERHEAD: u64 = 256;

/// What it can cost to hold on to a state: objects that were replaced since stay in memory for it.
#[derive(Debug, Clone)]
pub struct Footprint {
    bytes: u64,
    replaced: u64,
    replaced_by_now: Arc<AtomicU64>,
    /// Whether the objects were read for one reader, who shares them with nobody.
    is_alone: bool,
}

impl Footprint {
    /// A state of so many bytes, which came about when so many were replaced, of those that were replaced by now.
    pub fn new(bytes: u64, replaced: u64, replaced_by_now: Arc<AtomicU64>) -> Footprint {
        Footprint { bytes, replaced, replaced_by_now, is_alone: false }
    }

    /// Objects of so many bytes that are in memory for one reader only.
    pub fn alone(bytes: u64) -> Footprint {
        Footprint { is_alone: true, ..Footprint::new(bytes, 0, Arc::default()) }
    }

    /// The same of a part of the state, of so many bytes.
    #[must_use]
    pub fn of_part(self, bytes: u64) -> Footprint {
        Footprint { bytes: bytes.min(self.bytes), ..self }
    }

    /// The bytes of all objects of the resource that were ever replaced or removed until the state came about. Only
    /// the difference of two of these means something.
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// How many bytes are in memory for this alone, at most: those that were replaced until the next state that
    /// somebody holds on to came about, or until now, and no more than there are.
    pub fn held_until(&self, next: Option<u64>) -> u64 {
        if self.is_alone {
            return self.bytes;
        }
        let next = next.unwrap_or_else(|| self.replaced_by_now.load(Ordering::Relaxed));
        self.bytes.min(next.saturating_sub(self.replaced))
    }

    /// The bytes of all objects.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Snapshot {
    /// The state `table`, which is that at `revision`.
    pub(crate) fn new(table: Table, revision: Option<Revision>, replaced_by_now: Arc<AtomicU64>) -> Snapshot {
        Snapshot { table, revision, replaced_by_now }
    }

    /// What it can cost to hold on to this.
    pub fn footprint(&self) -> Footprint {
        let Table { bytes, replaced, .. } = self.table;
        Footprint::new(bytes, replaced, Arc::clone(&self.replaced_by_now))
    }

    /// The revision whose state this is; `None` while nothing was ever written to the store.
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// The object at `key`.
    pub fn get(&self, key: &str) -> Option<&Arc<Item>> {
        self.table.get(key)
    }

    /// The objects whose keys start with `prefix`, in byte order of their keys, strictly after the key `after`.
    pub fn range<'a>(&'a self, prefix: &str, after: Option<&str>) -> impl Iterator<Item = &'a Arc<Item>> + use<'a> {
        self.table.range(prefix, after)
    }

    /// An object whose key starts with `prefix` and that cannot be read, if there is one.
    pub fn unreadable(&self, prefix: &str) -> Option<&Arc<Item>> {
        if self.table.unreadable == 0 {
            return None;
        }
        self.range(prefix, None).find(|item| item.entry().problem().is_some())
    }

    /// How many objects have keys that start with `prefix`. Nobody has to walk over many of them for that.
    pub fn count(&self, prefix: &str) -> usize {
        self.table.count(prefix, None)
    }

    /// The same of those that come strictly after the key `after`.
    pub fn count_after(&self, prefix: &str, after: &str) -> usize {
        self.table.count(prefix, Some(after))
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("revision", &self.revision).field("len", &self.table.len()).finish()
    }
}

/// What an object takes in memory, about.
fn weight(item: &Item) -> u64 {
    item.bytes().len() as u64 + OVERHEAD
}

/// A persistent map of objects: a clone shares all nodes, and a write after it copies one path.
#[derive(Clone)]
pub(crate) struct Table {
    layout: Arc<Layout>,
    objects: OrdMap<Key, Arc<Item>>,
    // Beside the objects, so that "how many remain" on a page of a list does not walk over all that do.
    ranks: Ranks,
    /// How many of them cannot be read. Nearly always none, so that nobody has to look.
    unreadable: usize,
    /// See [`Footprint`].
    bytes: u64,
    replaced: u64,
}

impl Table {
    /// The table of a resource without objects.
    pub(crate) fn empty(layout: Arc<Layout>) -> Table {
        Table { layout, objects: OrdMap::new(), ranks: Ranks::default(), unreadable: 0, bytes: 0, replaced: 0 }
    }

    /// See [`Footprint::replaced`].
    pub(crate) fn replaced(&self) -> u64 {
        self.replaced
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// All objects, in the order of their keys.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.objects.values()
    }

    /// The object at `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Item>> {
        self.objects.get(key)
    }

    /// Puts `item` in its place and answers what was there.
    pub(crate) fn put(&mut self, item: Arc<Item>) -> Option<Arc<Item>> {
        let key = item.key().clone();
        self.bytes += weight(&item);
        self.unreadable += usize::from(item.entry().problem().is_some());
        let old = self.objects.insert(key.clone(), item);
        self.count_replaced(old.as_deref());
        if old.is_none() {
            self.ranks.add(&key, &self.objects);
        }
        old
    }

    /// Removes the object at `key` and answers what was there.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Arc<Item>> {
        let old = self.objects.remove(key)?;
        self.count_replaced(Some(&old));
        self.ranks.take(key);
        Some(old)
    }

    fn count_replaced(&mut self, old: Option<&Item>) {
        self.unreadable -= usize::from(old.is_some_and(|old| old.entry().problem().is_some()));
        let weight = old.map_or(0, weight);
        self.bytes -= weight;
        self.replaced += weight;
    }

    fn range<'a>(&'a self, prefix: &str, after: Option<&str>) -> impl Iterator<Item = &'a Arc<Item>> + use<'a> {
        let range = bounds(prefix, after, |start, end| {
            self.objects.range::<_, str>((start, end.map_or(Bound::Unbounded, Bound::Excluded)))
        });
        range.into_iter().flatten().map(|(_, item)| item)
    }

    fn count(&self, prefix: &str, after: Option<&str>) -> usize {
        if after.is_none() && self.layout.prefix.starts_with(prefix) {
            return self.objects.len();
        }
        bounds(prefix, after, |start, end| self.ranks.count(&self.objects, start, end)).unwrap_or(0)
    }
}

/// Where the keys are that start with `prefix` and come strictly after the key `after`, for `find`; `None` if no key does.
fn bounds<T>(prefix: &str, after: Option<&str>, find: impl FnOnce(Bound<&str>, Option<&str>) -> T) -> Option<T> {
    let start = match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ => Bound::Included(prefix),
    };
    let end = first_beyond(prefix);
    let is_empty = matches!((start, &end), (Bound::Excluded(after), Some(end)) if after >= end.as_str());
    (!is_empty).then(|| find(start, end.as_deref()))
}

/// The least text that is greater than every text with this prefix; `None` if there is no such text. A bound that is
/// found once, so that walking a range need not look into every key.
fn first_beyond(prefix: &str) -> Option<String> {
    let mut beyond = prefix.to_owned();
    while let Some(last) = beyond.pop() {
        // The byte order of UTF-8 is that of the code points. The range of `char` skips the surrogates.
        if let Some(next) = (last..=char::MAX).nth(1) {
            beyond.push(next);
            return Some(beyond);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use revisor_store::{Draft, Entry};

    use super::*;

    fn table(namespaced: bool, keys: &[&str]) -> Table {
        let mut table = Table::empty(Arc::new(Layout { prefix: "/r/pods/".into(), namespaced }));
        for key in keys {
            put(&mut table, key);
        }
        table
    }

    fn put(table: &mut Table, key: &str) {
        let entry = Entry::new(Key::new(key), Revision::FIRST, &Draft::opaque(&b"x"[..]));
        table.put(Item::new(Arc::new(entry)));
    }

    #[test]
    fn ranges_are_bounded_by_prefix_and_by_the_last_key() {
        let keys = ["/r/pods/a/x", "/r/pods/a/y", "/r/pods/a-b/x", "/r/pods/b/x", "/r/pods/é/x"];
        let snapshot = Snapshot::new(table(true, &keys), None, Arc::default());
        for (name, prefix, after, want) in [
            (
                "everything in byte order",
                "/r/pods/",
                None,
                &["/r/pods/a-b/x", "/r/pods/a/x", "/r/pods/a/y", "/r/pods/b/x", "/r/pods/é/x"][..],
            ),
            ("one namespace, not its neighbour", "/r/pods/a/", None, &["/r/pods/a/x", "/r/pods/a/y"]),
            ("after a key that is there", "/r/pods/a/", Some("/r/pods/a/x"), &["/r/pods/a/y"]),
            ("after a key that is gone", "/r/pods/a/", Some("/r/pods/a/xx"), &["/r/pods/a/y"]),
            ("after the last key", "/r/pods/a/", Some("/r/pods/a/y"), &[]),
            ("after a key beyond the prefix", "/r/pods/a/", Some("/r/pods/b/x"), &[]),
            ("after a key before the prefix", "/r/pods/b/", Some("/r/pods/a/x"), &["/r/pods/b/x"]),
            ("beyond one byte", "/r/pods/é", None, &["/r/pods/é/x"]),
            ("an empty prefix", "", Some("/r/pods/b/"), &["/r/pods/b/x", "/r/pods/é/x"]),
            ("another resource", "/r/nodes/", None, &[]),
        ] {
            let found: Vec<_> = snapshot.range(prefix, after).map(|item| item.key().as_str()).collect();
            assert_eq!(found, want, "{name}");
        }
    }

    #[test]
    fn counts_agree_with_ranges_also_after_removals() {
        let mut table = table(true, &["/r/pods/a/x", "/r/pods/a/y", "/r/pods/b/x"]);
        put(&mut table, "/r/pods/a/x");
        let before = Snapshot::new(table.clone(), None, Arc::default());
        table.remove("/r/pods/b/x");
        table.remove("/r/pods/b/x");
        let after = Snapshot::new(table.clone(), None, Arc::default());
        for prefix in ["", "/r/", "/r/pods/", "/r/pods/a/", "/r/pods/b/", "/r/pods/c/", "/r/pods/a", "/r/pods/a/x"] {
            for (name, snapshot) in [("before", &before), ("after", &after)] {
                assert_eq!(snapshot.count(prefix), snapshot.range(prefix, None).count(), "{prefix} {name}");
                for place in ["", "/r/pods/a/", "/r/pods/a/x", "/r/pods/a/xx", "/r/pods/b/x", "/s"] {
                    let walked = snapshot.range(prefix, Some(place)).count();
                    assert_eq!(snapshot.count_after(prefix, place), walked, "{prefix} after {place} {name}");
                }
            }
        }
    }

    #[test]
    fn the_first_text_beyond_a_prefix() {
        for (prefix, want) in [
            ("/a/", Some("/a0")),
            ("a\u{10FFFF}", Some("b")),
            ("\u{D7FF}", Some("\u{E000}")),
            ("", None),
            ("\u{10FFFF}\u{10FFFF}", None),
        ] {
            assert_eq!(first_beyond(prefix).as_deref(), want, "{prefix:?}");
        }
    }
}
