//! Objects that are stored otherwise than they would be today, in another version or encrypted otherwise: told from the
//! others, stored anew, and taken off the list of what a definition has stored once the counts say that nothing is.
//!
//! To store an object anew changes nothing that anybody can see but its resource version, so nobody is asked for it: it
//! is read and laid down as a write of it would be, past admission and validation, which judge changes.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use revisor_cache::Item;
use revisor_catalog::{Condition, Resource};
use revisor_object::{Object, Value};
use revisor_store::{Change, Entry, Expect, StoreError, Write};

use crate::conversion::Current;
use crate::version_reports::{stored_version, version_of};
use crate::workbench::{is_light, off_the_workers};
use crate::{Place, Registry, RegistryError, WriteOptions};

/// How often an object is tried anew because others wrote it in between. Who wrote it nearly always stored it anew.
const MAX_ATTEMPTS: usize = 10;

/// Whether the objects of a definition are being stored anew. The name is the original's.
const STORAGE_MIGRATING: &str = "StorageMigrating";

/// How far a definition's objects have been stored anew, as its status tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationStage<'a> {
    /// The migration with this name is at work.
    Running(&'a str),
    /// Everything is stored as it is to be, so versions in which nothing is stored are stored versions no longer.
    Succeeded,
    /// Something is not.
    Failed,
}

/// What is to be stored anew of an object, if anything is.
#[derive(Debug)]
pub struct Rewrite {
    write: Option<Write>,
}

impl MigrationStage<'_> {
    fn condition(self) -> Condition {
        let (status, reason, message) = match self {
            MigrationStage::Running(name) => ("True", "MigrationRunning", format!("Migration {name} is running")),
            MigrationStage::Succeeded => (
                "False",
                "MigrationSucceeded",
                "The migration has succeeded and the stored versions are those in which objects are stored".to_owned(),
            ),
            MigrationStage::Failed => ("False", "MigrationFailed", "The migration has failed".to_owned()),
        };
        Condition::new(STORAGE_MIGRATING, status, reason, message)
    }
}

impl Registry {
    /// Whether an object is stored in another version than the one that is stored now. That is seen at its first bytes.
    pub fn is_in_other_version(&self, storage: &Resource, item: &Item) -> bool {
        match storage.custom() {
            Some(custom) => stored_version(item.bytes()) != version_of(custom.storage_version()),
            None => storage.is_stored_otherwise(item.bytes()),
        }
    }

    /// Makes of an object what would be stored if somebody wrote it now, for [`rewrite`](Registry::rewrite). What is
    /// stored so already, or gone, is left alone.
    pub async fn draft_rewrite(&self, resource: &Arc<Resource>, item: &Item) -> Result<Rewrite, RegistryError> {
        self.draft_anew(resource, item.entry()).await.map(|write| Rewrite { write })
    }

    /// Stores what was drafted of an object. If somebody else has written it meanwhile, it is drafted anew.
    pub async fn rewrite(&self, resource: &Arc<Resource>, item: &Item, drafted: Rewrite) -> Result<(), RegistryError> {
        let mut drafted = drafted.write;
        for _ in 0..MAX_ATTEMPTS {
            let Some(write) = drafted else { return Ok(()) };
            match self.cache.write(write).await {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict { current: None, .. }) => return Ok(()),
                Err(StoreError::Conflict { current: Some(current), .. }) => {
                    drafted = self.draft_anew(resource, &current).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let (_, name) = item.key().as_str().rsplit_once('/').unwrap_or_default();
        Err(RegistryError::Contended { resource: resource.clone(), name: name.to_owned() })
    }

    async fn draft_anew(&self, resource: &Arc<Resource>, current: &Entry) -> Result<Option<Write>, RegistryError> {
        // Asked for each time: a definition may have changed meanwhile.
        let storage = self.storage_of(resource);
        let mut work = pin!(async {
            let Current { object, beneath } = self.read_stored(&storage, current).await?;
            self.draft(&storage, object, &beneath).await
        });
        let drafted = if is_light(current.bytes().len()) {
            work.await?
        } else {
            poll_fn(|context| off_the_workers(|| work.as_mut().poll(context))).await?
        };
        if current.same_content(&drafted.stored) && !self.cache.is_stale(current).await? {
            return Ok(None);
        }
        let change = Change::Put(drafted.stored);
        Ok(Some(Write { key: current.key().clone(), expect: Expect::At(current.revision()), change }))
    }

    /// Says in the status of a definition how far its objects have been stored anew; of what is not defined there is
    /// nothing to say. After a success, its stored versions are those in which objects are stored, and the one in which
    /// they are written: that is known by counting, so a version that somebody still wrote stays. `options` say who tells
    /// it. Upholds V5.
    pub async fn tell_migration(
        &self,
        resource: &Arc<Resource>,
        stage: MigrationStage<'_>,
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let definitions = self.catalog.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let (Some(definitions), Some(_)) = (definitions, resource.custom()) else { return Ok(()) };
        let name = resource.qualified_name();
        let (now, condition) = (self.now(), stage.condition());
        let place = Place { resource: definitions, namespace: None, name: Some(&name) };
        let told = self
            .tell_as_server(place, options, |definition| {
                if stage == MigrationStage::Succeeded {
                    self.trim_stored_versions(resource, definition);
                }
                condition.put(definition, &now);
                Ok(())
            })
            .await;
        match told {
            Ok(()) | Err(RegistryError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn trim_stored_versions(&self, resource: &Resource, definition: &mut Object) {
        let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
        let mut versions = versions.iter().filter_map(Value::as_object);
        let storage = versions.find(|version| version.get("storage") == Some(&Value::Bool(true)));
        let storage = storage.and_then(|version| version.str("name")).unwrap_or_default().to_owned();
        let counts = self.cache_of(resource).counts();
        let status = definition.object_mut("status");
        let is_stored = |version: &Value| {
            let version = version.as_str().unwrap_or_default();
            version == storage || counts.iter().any(|(known, objects)| **known == *version && *objects > 0)
        };
        let stored: Vec<Value> =
            status.array("storedVersions").iter().filter(|known| is_stored(known)).cloned().collect();
        status.insert("storedVersions", stored);
    }
}
