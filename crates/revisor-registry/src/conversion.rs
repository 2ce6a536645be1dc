//! From the stored shape of an object to the one in which it is worked on, and back.
//!
//! For built-in kinds both are the same. Custom objects may be stored in any version that their definition ever had,
//! and are worked on in the version that the client speaks of.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use revisor_cache::Item;
use revisor_catalog::{Custom, CustomConversion, Resource};
use revisor_object::{Object, Value};
use revisor_store::Draft;

use crate::present::{encode_shown, needs_memory, needs_webhook, present};
use crate::read::SharedFilter;
use crate::write::encode;
use crate::{Decoded, Registry, RegistryError};

/// How many objects are sent to a webhook at a time, so that neither side has to hold all of a large list at once.
const BATCH: usize = 500;

/// How long a webhook may take.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

impl Registry {
    /// The object that is stored in these bytes, in the version in which it is worked on.
    pub(crate) async fn read_stored(&self, resource: &Arc<Resource>, stored: &[u8]) -> Result<Object, RegistryError> {
        let object = Decoded::stored(stored)?;
        let Some(custom) = resource.custom() else { return Ok(object) };
        let mut shown = self.take_in(resource, custom, vec![object]).await?;
        let mut object = shown.pop().ok_or(RegistryError::Unreadable)?;
        object.remove("apiVersion");
        object.remove("kind");
        Ok(object)
    }

    /// The bytes in which an object is stored.
    pub(crate) async fn draft(&self, resource: &Arc<Resource>, object: &Object) -> Result<Draft, RegistryError> {
        let Some(custom) = resource.custom() else { return Ok(encode(resource, object)) };
        let mut object = object.clone();
        object.insert("apiVersion", resource.api_version.as_str());
        object.insert("kind", resource.kind.as_str());
        // In its own version it was made to fit when it was read.
        if custom.storage_version() != resource.api_version {
            let converted = self.convert(custom, vec![object], custom.storage_version()).await?;
            object = converted.into_iter().next().ok_or(RegistryError::Unreadable)?;
            custom.lay_down(&mut object);
        }
        Ok(encode(resource, &object))
    }

    /// The bytes of a stored object in the version of `resource`.
    pub(crate) async fn show(&self, resource: &Arc<Resource>, stored: &Bytes) -> Result<Bytes, RegistryError> {
        let Some(custom) = resource.custom().filter(|_| needs_memory(resource)) else {
            return Ok(present(resource, stored));
        };
        let shown = self.take_in(resource, custom, vec![Decoded::stored(stored)?]).await?;
        shown.first().map(|object| encode_shown(resource, object, stored)).ok_or(RegistryError::Unreadable)
    }

    /// Has objects of the cache converted that only a webhook can convert, so that they can be presented.
    pub(crate) async fn show_items(&self, resource: &Arc<Resource>, items: &[Arc<Item>]) -> Result<(), RegistryError> {
        let Some(custom) = resource.custom().filter(|_| needs_memory(resource)) else { return Ok(()) };
        let unseen = items.iter().filter(|item| item.shown(resource.shape).is_none());
        let mut batch: Vec<(&Arc<Item>, Object)> = Vec::new();
        for item in unseen {
            let object = Decoded::stored(item.bytes())?;
            if needs_webhook(resource, &object) {
                batch.push((item, object));
            }
            if batch.len() == BATCH {
                self.show_batch(resource, custom, std::mem::take(&mut batch)).await?;
            }
        }
        self.show_batch(resource, custom, batch).await
    }

    /// Those of the candidates that are selected, and no more than `most`, where only what is converted can be told
    /// apart.
    pub(crate) async fn show_and_select(
        &self,
        resource: &Arc<Resource>,
        mut candidates: impl Iterator<Item = Arc<Item>> + Send,
        filter: &SharedFilter,
        most: usize,
    ) -> Result<Vec<Arc<Item>>, RegistryError> {
        let mut selected = Vec::new();
        while selected.len() < most {
            let batch: Vec<Arc<Item>> = candidates.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            self.show_items(resource, &batch).await?;
            selected.extend(batch.into_iter().filter(|item| filter.admits(item)));
        }
        selected.truncate(most);
        Ok(selected)
    }

    async fn show_batch(
        &self,
        resource: &Arc<Resource>,
        custom: &Custom,
        batch: Vec<(&Arc<Item>, Object)>,
    ) -> Result<(), RegistryError> {
        let (items, objects): (Vec<&Arc<Item>>, Vec<Object>) = batch.into_iter().unzip();
        let shown = self.take_in(resource, custom, objects).await?;
        for (item, object) in items.into_iter().zip(&shown) {
            item.keep_shown(resource.shape, encode_shown(resource, object, item.bytes()));
        }
        Ok(())
    }

    /// Stored objects of a custom resource in the version of `resource`, with their types.
    async fn take_in(
        &self,
        resource: &Arc<Resource>,
        custom: &Custom,
        mut stored: Vec<Object>,
    ) -> Result<Vec<Object>, RegistryError> {
        let is_own: Vec<bool> = stored.iter().map(|object| custom.is_own(object)).collect();
        stored.iter_mut().for_each(|object| custom.settle(object));
        let mut shown = self.convert(custom, stored, &resource.api_version).await?;
        for (object, is_own) in shown.iter_mut().zip(is_own) {
            if !is_own {
                custom.take_in(object);
            }
        }
        Ok(shown)
    }

    /// Brings objects of a custom resource to another version.
    pub(crate) async fn convert(
        &self,
        custom: &Custom,
        mut objects: Vec<Object>,
        api_version: &str,
    ) -> Result<Vec<Object>, RegistryError> {
        match custom.conversion() {
            CustomConversion::ByName => {
                objects.iter_mut().for_each(|object| {
                    object.insert("apiVersion", api_version);
                });
                Ok(objects)
            }
            _ if objects.iter().all(|object| object.str("apiVersion") == Some(api_version)) => Ok(objects),
            CustomConversion::ByRules(rules) => {
                let version = api_version.rsplit('/').next().unwrap_or_default();
                let convert = |object| match rules.convert(Value::Object(object), version) {
                    Ok(Value::Object(object)) => Ok(object),
                    Ok(_) => Err(RegistryError::Unreadable),
                    Err(error) => Err(RegistryError::Conversion(error.to_string())),
                };
                objects.into_iter().map(convert).collect()
            }
            CustomConversion::ByWebhook(webhook) => {
                let uid = self.environment.uid();
                let converted = self.webhooks.convert(webhook, &uid, api_version, objects, WEBHOOK_TIMEOUT).await;
                converted.map_err(|error| RegistryError::Conversion(error.to_string()))
            }
            CustomConversion::Impossible(why) => Err(RegistryError::Conversion(why.clone())),
        }
    }
}
