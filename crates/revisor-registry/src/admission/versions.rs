//! The versions in which webhooks and policies ask for objects: which there are, and the ways there and back.

use std::borrow::Cow;
use std::sync::Arc;

use revisor_catalog::{Custom, Resource};
use revisor_object::Object;

use super::Attributes;
use crate::{Registry, RegistryError};

impl Registry {
    /// All versions of the resource of a write that are served, with the one that the client speaks of (upstream:
    /// `EquivalentResourcesFor`). They are equivalent because they share what is stored.
    pub(crate) fn equivalents(&self, attributes: &Attributes<'_>) -> Vec<Arc<Resource>> {
        let shown = attributes.shown;
        if !shown.is_stored() {
            return vec![shown.clone()];
        }
        let has_part = |resource: &Resource| {
            attributes.subresource.is_none_or(|part| resource.subresources.iter().any(|known| known.name == part))
        };
        let catalog = self.catalog();
        let same = catalog.resources().filter(|resource| resource.prefix == shown.prefix && has_part(resource));
        same.cloned().collect()
    }

    /// An object of a write as another version of its resource shows it. What is of a kind of its own is the same in
    /// all versions. It is borrowed where it is of that version already.
    pub(crate) async fn to_version<'o>(
        &self,
        attributes: &Attributes<'_>,
        version: &Arc<Resource>,
        object: &'o Object,
    ) -> Result<Cow<'o, Object>, RegistryError> {
        let custom = attributes.resource.custom();
        let is_of_version = match custom {
            None => version.is_storage(),
            Some(_) => version.api_version == attributes.resource.api_version,
        };
        if attributes.own_kind.is_some() || is_of_version {
            return Ok(Cow::Borrowed(object));
        }
        let mut object = object.clone();
        match custom {
            None => version.to_shown(&mut object),
            Some(custom) => object = self.convert_custom(custom, object, attributes.resource, version).await?,
        }
        Ok(Cow::Owned(object))
    }

    /// An object in a version of the resource of a write as it is worked on: the way back.
    pub(crate) async fn back_from_version(
        &self,
        attributes: &Attributes<'_>,
        version: &Arc<Resource>,
        mut object: Object,
    ) -> Result<Object, RegistryError> {
        if attributes.own_kind.is_some() {
            return Ok(object);
        }
        match attributes.resource.custom() {
            None => version.to_stored(&mut object),
            Some(custom) => object = self.convert_custom(custom, object, version, attributes.resource).await?,
        }
        Ok(object)
    }

    async fn convert_custom(
        &self,
        custom: &Custom,
        mut object: Object,
        from: &Resource,
        to: &Resource,
    ) -> Result<Object, RegistryError> {
        if from.api_version == to.api_version {
            return Ok(object);
        }
        object.insert("apiVersion", from.api_version.as_str());
        object.insert("kind", from.kind.as_str());
        let mut converted = match custom.convert(object, &to.api_version) {
            Ok(converted) => converted,
            Err(unconverted) => self.await_one(custom, unconverted, &to.api_version).await?,
        };
        converted.remove("apiVersion");
        converted.remove("kind");
        Ok(converted)
    }
}
