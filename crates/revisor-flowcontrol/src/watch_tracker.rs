//! [`WatchTracker`]: how many watches a write has to be told to; what its work is estimated by.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// What a watch is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchKey<'a> {
    /// The group of the resource.
    pub group: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The namespace, if it is limited to one.
    pub namespace: Option<&'a str>,
    /// The name, if it is limited to one.
    pub name: Option<&'a str>,
}

/// Counts watches by what they are about. Two keys whose hashes are the same are counted as one, which at worst makes a
/// write dearer by a seat; so looking one up copies nothing.
#[derive(Debug, Default)]
pub struct WatchTracker {
    hasher: RandomState,
    counts: HashMap<u64, usize>,
}

impl WatchTracker {
    fn hash(&self, key: &WatchKey<'_>) -> u64 {
        let WatchKey { group, resource, namespace, name } = *key;
        self.hasher.hash_one((group, resource, namespace.unwrap_or_default(), name.unwrap_or_default()))
    }

    /// A watch begins. What it is called when it [ends](WatchTracker::end).
    pub fn begin(&mut self, key: &WatchKey<'_>) -> u64 {
        let hash = self.hash(key);
        *self.counts.entry(hash).or_default() += 1;
        hash
    }

    /// A watch ends.
    pub fn end(&mut self, hash: u64) {
        if let Some(count) = self.counts.get_mut(&hash) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&hash);
            }
        }
    }

    /// How many watches a write of this would be told to: those of all objects, of those in the namespace, and of this
    /// one.
    pub fn interested(&self, key: &WatchKey<'_>) -> usize {
        let count = |key: WatchKey<'_>| self.counts.get(&self.hash(&key)).copied().unwrap_or_default();
        let all = count(WatchKey { namespace: None, name: None, ..*key });
        let of_namespace = key.namespace.map_or(0, |_| count(WatchKey { name: None, ..*key }));
        let of_name = key.name.map_or(0, |_| count(*key));
        all + of_namespace + of_name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_around_an_object_are_interested_in_it() {
        let all = WatchKey { group: "", resource: "pods", namespace: None, name: None };
        let here = WatchKey { namespace: Some("a"), ..all };
        let one = WatchKey { name: Some("x"), ..here };
        let mut tracker = WatchTracker::default();
        let begun: Vec<u64> = [all, here, one, one].iter().map(|key| tracker.begin(key)).collect();
        for (key, want) in [
            (one, 4),
            (here, 2),
            (all, 1),
            (WatchKey { namespace: Some("b"), ..one }, 1),
            (WatchKey { name: Some("y"), ..one }, 2),
            (WatchKey { resource: "nodes", ..one }, 0),
        ] {
            assert_eq!(tracker.interested(&key), want, "{key:?}");
        }
        begun.into_iter().for_each(|watch| tracker.end(watch));
        assert_eq!(tracker.interested(&one), 0);
        assert!(tracker.counts.is_empty());
    }
}
