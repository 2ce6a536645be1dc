//! What a change of a definition does to the objects that are stored: found out before it is made, also when it is only
//! tried, and told to whoever makes it. What is counted is a matter of
//! [`DefinitionChange`](revisor_catalog::DefinitionChange); how far is looked is decided here.
//!
//! It is advice and never a refusal, so it is bounded: of many objects a sample is looked at, and of all only as many as
//! there is time for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use revisor_cache::{Item, Snapshot};
use revisor_catalog::{DefinitionChange, DefinitionState, Extent};
use revisor_convert::Conversion;
use revisor_object::Object;
use tokio::task::yield_now;

use crate::admission::Attributes;
use crate::workbench::off_the_workers;
use crate::write::encode;
use crate::{Decoded, Registry, WriteOptions};

/// How many objects are looked at at most; of more than these a sample.
const MOST: usize = 100_000;

/// How long it takes at most. Half of the time that a request has left is kept for the write.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many bytes of objects are looked at in one go, before others get their turn.
const GO: usize = 256 * 1024;

impl Registry {
    /// What whoever changes a definition should know about the objects that are stored. The write is of a definition.
    /// `rules` are those of its Conversion beside what it is to be.
    pub(crate) async fn rehearse(
        &self,
        attributes: &Attributes<'_>,
        new: &Object,
        rules: Option<Arc<Conversion>>,
        options: WriteOptions<'_>,
    ) -> Vec<String> {
        let Some(old) = attributes.old.filter(|_| options.subresource.is_none()) else {
            return Vec::new();
        };
        let Some(stored) = self.defined_objects(attributes.name).filter(|stored| stored.total > 0) else {
            return Vec::new();
        };
        // Compared as what is stored: written and read again.
        let Ok(new) = Decoded::stored(encode(attributes.resource, new).bytes()) else { return Vec::new() };
        let before = DefinitionState { object: old, rules: self.catalog().rules_in_use(old) };
        let after = DefinitionState { object: &new, rules };
        let change = off_the_workers(|| DefinitionChange::between([before, after], &self.catalog));
        let Some(mut change) = change else { return Vec::new() };
        let extent = stored.look(&mut change, MOST, end_of(options.deadline, Instant::now())).await;
        change.warnings(extent)
    }

    /// How many bytes the objects have that a definition is about.
    pub(crate) fn weight_of_objects(&self, definition: &str) -> usize {
        let bytes = self.defined_objects(definition).map_or(0, |stored| stored.snapshot.footprint().bytes());
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// The objects of the definition with this name, if it is served.
    fn defined_objects(&self, definition: &str) -> Option<DefinedObjects> {
        let (plural, group) = definition.split_once('.')?;
        let prefix = format!("/registry/{group}/{plural}/");
        let snapshot = self.custom_cache(&prefix)?.snapshot();
        Some(DefinedObjects { total: snapshot.count(&prefix), snapshot, prefix })
    }
}

/// The stored objects of a definition.
struct DefinedObjects {
    snapshot: Snapshot,
    prefix: String,
    total: usize,
}

impl DefinedObjects {
    /// Shows the objects to a change, or as many as `most` of them, evenly spread, until it is time to end.
    async fn look(&self, change: &mut DefinitionChange, most: usize, end: Instant) -> Extent {
        let stride = self.total.div_ceil(most).max(1);
        let mut wanted = self.snapshot.range(&self.prefix, None).step_by(stride).peekable();
        while wanted.peek().is_some() {
            if Instant::now() >= end {
                return Extent::CutShort(self.total);
            }
            off_the_workers(|| {
                let mut bytes = 0;
                while let Some(item) = wanted.next_if(|_| bytes < GO) {
                    bytes += item.bytes().len();
                    self.look_at(change, item);
                }
            });
            yield_now().await;
        }
        if stride > 1 { Extent::Sample(self.total) } else { Extent::Everything }
    }

    fn look_at(&self, change: &mut DefinitionChange, item: &Item) {
        let key = item.key().as_str();
        // What cannot be read is shown and written by nobody, before as after.
        if let Ok(object) = Decoded::stored(item.bytes()) {
            change.look_at(key.strip_prefix(&self.prefix).unwrap_or(key), &object);
        }
    }
}

/// When to stop looking.
fn end_of(deadline: Option<Instant>, now: Instant) -> Instant {
    let left = deadline.map_or(PATIENCE, |deadline| deadline.saturating_duration_since(now) / 2);
    now + left.min(PATIENCE)
}

#[cfg(test)]
mod tests {
    use revisor_cache::{Cache, CacheOptions};
    use revisor_catalog::Catalog;
    use revisor_object::{Value, parse_json};
    use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
    use revisor_store::{Change, Draft, Expect, Key, Write};

    use super::*;

    #[test]
    fn half_of_the_time_is_left_for_the_write() {
        let now = Instant::now();
        for (left, want) in [(None, 10), (Some(60), 10), (Some(8), 4), (Some(0), 0)] {
            let deadline = left.map(|seconds| now + Duration::from_secs(seconds));
            assert_eq!(end_of(deadline, now), now + Duration::from_secs(want), "{left:?}");
        }
    }

    fn object(text: &str) -> Object {
        match parse_json(text.as_bytes()).expect("is JSON").value {
            Value::Object(object) => object,
            other => panic!("no object: {other:?}"),
        }
    }

    /// A definition of boats no larger than this.
    fn boats(maximum: u32) -> Object {
        let names = r#"{"plural":"boats","singular":"boat","kind":"Boat","listKind":"BoatList"}"#;
        object(&format!(
            r#"{{"metadata":{{"name":"boats.sea"}},"spec":{{"group":"sea","scope":"Cluster","names":{names},
                "versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object",
                    "properties":{{"size":{{"type":"integer","maximum":{maximum}}}}}}}}}}}]}},
                "status":{{"acceptedNames":{names}}}}}"#
        ))
    }

    #[tokio::test]
    async fn of_many_objects_a_sample_is_looked_at_and_of_all_those_there_is_time_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = EmbeddedStore::open(EmbeddedOptions::new(folder.path().join("store"))).await.expect("a new store");
        let cache = Cache::start(Arc::new(store), CacheOptions::default());
        let prefix = "/registry/sea/boats/".to_owned();
        let boats_cache = cache.add(&prefix, false).await.expect("can be followed");
        for size in 0..10 {
            let boat = format!(r#"{{"apiVersion":"sea/v1","kind":"Boat","size":{size}}}"#);
            let change = Change::Put(Draft::opaque(boat));
            let key = Key::new(format!("{prefix}b{size}"));
            cache.write(Write { key, expect: Expect::Absent, change }).await.expect("is stored");
        }
        let snapshot = boats_cache.snapshot();
        let stored = DefinedObjects { total: snapshot.count(&prefix), snapshot, prefix };
        let now = Instant::now();
        let later = now + Duration::from_secs(3600);
        for (name, most, end, want) in [
            ("all", 10, later, &["5 of 10 boats would no longer validate: .size (b5, b6, b7)"][..]),
            (
                "every other one",
                5,
                later,
                &[
                    "about 4 of 10 boats (an estimate: 2 of 5 that were looked at) would no longer validate: .size (b6, b8)",
                ],
            ),
            ("no time", 10, now, &["there was no time to look at all 10 boats: only 0 were looked at"]),
        ] {
            let (before, after) = (boats(100), boats(4));
            let states = [&before, &after].map(|object| DefinitionState { object, rules: None });
            let mut change = DefinitionChange::between(states, &Catalog::default()).expect("something changes");
            let extent = stored.look(&mut change, most, end).await;
            assert_eq!(change.warnings(extent), want, "{name}");
        }
    }
}
