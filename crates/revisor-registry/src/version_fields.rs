//! The fields of a version report: how many objects set each field of each version, and who manages it.
//!
//! Every object is looked at in every version, so the counts are exact; it is done a few objects at a time, where it
//! holds up nobody (R2). What cannot be shown in a version fails the whole, as it fails a list.

use std::sync::Arc;

use revisor_cache::{Item, Snapshot};
use revisor_catalog::{Custom, FieldTally, Resource, Unconverted};
use revisor_object::{Object, Value};
use tokio::task::yield_now;

use crate::conversion::BATCH;
use crate::read::Got;
use crate::workbench::off_the_workers;
use crate::{Decoded, Registry, RegistryError};

/// How many bytes of objects are looked at in one go, before others get their turn.
const GO: usize = 256 * 1024;

/// A version, what was counted of it, and the objects that somebody else has to convert first.
struct Counting {
    custom: Custom,
    tally: FieldTally,
    unconverted: Vec<Unconverted>,
}

impl Registry {
    /// How the fields of each version of a definition are used.
    pub async fn version_fields(&self, reports: &Arc<Resource>, name: &str) -> Result<Got, RegistryError> {
        self.cache.freshen().await?;
        let served_at = self.definitions_resource().and_then(|definitions| self.cache_of(definitions).reached());
        let definition = self.definition_item(name).ok_or_else(|| RegistryError::not_found(reports, name))?;
        let definition = Decoded::stored(definition.bytes())?;
        let mut counted = Vec::new();
        if let Some((storage, snapshot)) = self.objects_of(&definition) {
            let customs = storage.custom().map(Custom::every_version).unwrap_or_default();
            let mut counting: Vec<Counting> = customs.into_iter().map(Counting::begin).collect();
            self.count_fields(&mut counting, &snapshot, &storage.prefix).await?;
            counted = counting;
        }
        let versions =
            off_the_workers(|| counted.iter().map(|counting| Value::Object(counting.tally.shown())).collect());
        let mut shown = Object::new();
        shown.insert("apiVersion", reports.api_version.as_str());
        shown.insert("kind", "VersionFields");
        let metadata = shown.object_mut("metadata");
        metadata.insert("name", name);
        metadata.set("creationTimestamp", definition.at(&["metadata", "creationTimestamp"]).cloned());
        shown.insert("versions", Value::Array(versions));
        Ok(Got { bytes: off_the_workers(|| Value::Object(shown).to_json()).into(), item: None, served_at })
    }

    /// How much it is to look at the fields of a definition's objects, in bytes.
    pub fn version_fields_weight(&self, name: &str) -> usize {
        self.weight_of_objects(name)
    }

    fn objects_of(&self, definition: &Object) -> Option<(Arc<Resource>, Snapshot)> {
        let text = |path: &[&str]| definition.at(path).and_then(Value::as_str).unwrap_or_default();
        let (group, plural) = (text(&["spec", "group"]), text(&["status", "acceptedNames", "plural"]));
        self.custom_storage(&format!("/registry/{group}/{plural}/"))
    }

    async fn count_fields(
        &self,
        counting: &mut [Counting],
        objects: &Snapshot,
        prefix: &str,
    ) -> Result<(), RegistryError> {
        let mut items = objects.range(prefix, None).peekable();
        while items.peek().is_some() {
            off_the_workers(|| {
                let mut bytes = 0;
                while let Some(item) = items.next_if(|_| bytes < GO) {
                    bytes += item.bytes().len();
                    look_at(counting, item)?;
                }
                Ok::<(), RegistryError>(())
            })?;
            for one in counting.iter_mut().filter(|one| one.unconverted.len() >= BATCH) {
                self.count_converted(one).await?;
            }
            yield_now().await;
        }
        for one in counting.iter_mut() {
            self.count_converted(one).await?;
        }
        Ok(())
    }

    /// Counts the objects that somebody else converts.
    async fn count_converted(&self, counting: &mut Counting) -> Result<(), RegistryError> {
        let Counting { custom, tally, unconverted } = counting;
        while !unconverted.is_empty() {
            let batch = unconverted.drain(..unconverted.len().min(BATCH)).collect();
            let version = custom.api_version().to_owned();
            for mut object in self.await_converted(custom, batch, &version).await? {
                custom.take_in(&mut object);
                tally.count(custom.schema().structural(), &object);
            }
        }
        Ok(())
    }
}

fn look_at(counting: &mut [Counting], item: &Item) -> Result<(), RegistryError> {
    let stored = Decoded::stored(item.bytes())?;
    for Counting { custom, tally, unconverted } in counting {
        match custom.show(stored.clone()) {
            Ok(object) => tally.count(custom.schema().structural(), &object),
            Err(asks @ Unconverted::Asks { .. }) => unconverted.push(asks),
            Err(Unconverted::Failed(why)) => return Err(RegistryError::Conversion(why)),
        }
    }
    Ok(())
}

impl Counting {
    fn begin(custom: Custom) -> Counting {
        let tally = FieldTally::new(custom.api_version(), custom.schema().structural());
        Counting { custom, tally, unconverted: Vec::new() }
    }
}
