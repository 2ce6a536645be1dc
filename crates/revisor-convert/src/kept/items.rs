//! [`Items`]: what is kept of the items of a list, and how they are found again in a list that has changed: by their
//! list-map keys; otherwise those that are equal first, and the rest by where they stand.

use std::collections::HashMap;

use revisor_object::{Object, Value};
use xxhash_rust::xxh3::xxh3_64;

use super::{Keep, Kept};

/// What is kept of the items of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Items {
    /// Whether items are told apart by keys. Then only those are listed of which something is kept; otherwise all of
    /// them, so that one that stays what it was is not taken for another.
    pub(super) by_keys: bool,
    pub(super) entries: Vec<(i64, Option<Kept>)>,
}

impl Items {
    pub(super) fn difference(keep: &Keep, keys: &[Box<str>], real: &[Value], made: &[Value]) -> Option<Items> {
        let by_keys = !keys.is_empty();
        let mut entries: Vec<(i64, Option<Kept>)> = Vec::with_capacity(made.len());
        for (real, made) in real.iter().zip(made) {
            entries.push((0, keep.difference(Some(real), Some(made))));
        }
        if entries.iter().all(|(_, kept)| kept.is_none()) {
            return None;
        }
        for ((identity, _), made) in entries.iter_mut().zip(made) {
            *identity = identify(made, keys);
        }
        if by_keys {
            entries.retain(|(_, kept)| kept.is_some());
        }
        Some(Items { by_keys, entries })
    }

    pub(super) fn restore(&self, keep: &Keep, keys: &[Box<str>], made: &mut [Value]) {
        if self.by_keys == keys.is_empty() {
            // The list is seen in another way since.
            return;
        }
        let identities: Vec<i64> = made.iter().map(|item| identify(item, keys)).collect();
        for (item, entry) in made.iter_mut().zip(self.matches(&identities)) {
            if let Some(kept) = entry.and_then(|at| self.entries[at].1.as_ref()) {
                let mut value = Some(std::mem::take(item));
                keep.restore(kept, &mut value);
                *item = value.unwrap_or_default();
            }
        }
    }

    /// For each item which entry is its own.
    fn matches(&self, identities: &[i64]) -> Vec<Option<usize>> {
        let mut found: Vec<Option<usize>> = vec![None; identities.len()];
        let mut is_taken = vec![false; self.entries.len()];
        if !self.by_keys {
            for (at, identity) in identities.iter().enumerate() {
                if self.entries.get(at).is_some_and(|(known, _)| known == identity) {
                    (found[at], is_taken[at]) = (Some(at), true);
                }
            }
        }
        let mut by_identity: HashMap<i64, Vec<usize>> = HashMap::new();
        for (at, (identity, _)) in self.entries.iter().enumerate().rev() {
            if !is_taken[at] {
                by_identity.entry(*identity).or_default().push(at);
            }
        }
        for (at, identity) in identities.iter().enumerate() {
            if found[at].is_none()
                && let Some(entry) = by_identity.get_mut(identity).and_then(Vec::pop)
            {
                (found[at], is_taken[entry]) = (Some(entry), true);
            }
        }
        if !self.by_keys {
            for at in 0..identities.len().min(is_taken.len()) {
                if found[at].is_none() && !is_taken[at] {
                    (found[at], is_taken[at]) = (Some(at), true);
                }
            }
        }
        found
    }
}

/// A number that tells an item from others: made of its keys, or of all of it. Stored, so it never changes.
fn identify(item: &Value, keys: &[Box<str>]) -> i64 {
    let text = match item {
        Value::Object(object) if !keys.is_empty() => {
            let keys: Object = keys.iter().filter_map(|key| Some((&**key, object.get(key)?.clone()))).collect();
            Value::Object(keys).to_json()
        }
        item => item.to_json(),
    };
    // 48 bits are read back by whatever reads JSON.
    (xxh3_64(text.as_bytes()) >> 16) as i64
}
