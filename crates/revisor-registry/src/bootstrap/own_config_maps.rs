//! The ConfigMaps that the server keeps for others: what they say is for the caller to decide, that they are there and say
//! it is seen to here.

use revisor_object::{Object, Value, Warnings};
use revisor_version::Revision;

use crate::{Decoded, Place, Registry, RegistryError};

impl Registry {
    /// Which write made the ConfigMap `name` what it is, for those who have looked at it before.
    pub fn config_map_revision(&self, namespace: &str, name: &str) -> Option<Revision> {
        let resource = self.known("", "v1", "configmaps")?;
        self.cache_of(resource).get(&resource.key(Some(namespace), name)).map(|item| item.revision())
    }

    /// Makes a ConfigMap, or brings it up to date: `wanted` sees what it says, if it is there, and answers what it should
    /// say; `None` for as it is. Doing it again writes nothing.
    pub async fn keep_config_map(
        &self,
        namespace: &str,
        name: &str,
        wanted: impl FnOnce(Option<&Object>) -> Option<Object>,
    ) -> Result<(), RegistryError> {
        let Some(resource) = self.catalog.resource("", "v1", "configmaps") else { return Ok(()) };
        let stored = self.stored("", "v1", "configmaps", Some(namespace), name);
        let empty = Object::new();
        let data = stored.as_ref().map(|stored| stored.object("data").unwrap_or(&empty));
        let Some(wanted) = wanted(data).filter(|wanted| Some(wanted) != data) else { return Ok(()) };
        let wanted = Some(Value::from(wanted));
        match stored {
            None => {
                let mut object = Object::new();
                object.object_mut("metadata").insert("name", name);
                object.set("data", wanted);
                self.ensure(resource, Some(namespace), object, self.own.options()).await.map(drop)
            }
            Some(mut object) => {
                object.set("data", wanted);
                object.remove("kind");
                object.remove("apiVersion");
                object.object_mut("metadata").remove("managedFields");
                let place = Place { resource, namespace: Some(namespace), name: Some(name) };
                let decoded = Decoded { object, warnings: Warnings::default() };
                match self.update(place, decoded, self.own.options()).await {
                    // Somebody else was faster, or it is gone: the next look tells.
                    Ok(_) | Err(RegistryError::Conflict { .. } | RegistryError::NotFound { .. }) => Ok(()),
                    Err(error) => Err(error),
                }
            }
        }
    }
}
