//! The objects of a write in the version by which a policy means it.

use std::borrow::Cow;
use std::sync::Arc;

use revisor_catalog::Resource;
use revisor_object::Object;

use super::{Meant, Operation, Write};

impl Write<'_> {
    /// The object in the version that is meant. It is borrowed where it is of that version already.
    ///
    /// # Errors
    /// Why it cannot be shown in that version.
    pub(super) async fn show<'o>(&self, object: &'o Object, meant: Meant<'_>) -> Result<Cow<'o, Object>, String> {
        let working = self.attributes.resource;
        let Some(version) = meant.version else { return Ok(Cow::Borrowed(object)) };
        if working.custom().is_some() {
            return match version.api_version == working.api_version {
                true => Ok(Cow::Borrowed(object)),
                false => self.convert(object.clone(), &version.api_version).await.map(Cow::Owned),
            };
        }
        // What is new was not written yet, and lacks what is always written.
        let is_whole = self.attributes.operation != Operation::Create;
        if version.is_storage() && is_whole {
            return Ok(Cow::Borrowed(object));
        }
        let mut shown = object.clone();
        version.to_shown(&mut shown);
        version.complete(&mut shown);
        Ok(Cow::Owned(shown))
    }

    /// Brings an object back from the version that is meant to the one in which it is worked on.
    pub(super) async fn take_back(&self, mut object: Object, meant: Meant<'_>) -> Result<Object, String> {
        let working: &Arc<Resource> = self.attributes.resource;
        let Some(version) = meant.version.filter(|version| version.api_version != working.api_version) else {
            return Ok(object);
        };
        if working.custom().is_some() {
            return self.convert_from(object, &version.api_version, &working.api_version).await;
        }
        version.to_stored(&mut object);
        Ok(object)
    }

    async fn convert(&self, object: Object, to: &str) -> Result<Object, String> {
        self.convert_from(object, &self.attributes.resource.api_version, to).await
    }

    async fn convert_from(&self, mut object: Object, from: &str, to: &str) -> Result<Object, String> {
        let resource = self.attributes.resource;
        let Some(custom) = resource.custom() else { return Ok(object) };
        object.insert("apiVersion", from);
        object.insert("kind", resource.kind.as_str());
        let mut converted = match custom.convert(object, to) {
            Ok(converted) => converted,
            Err(unconverted) => {
                let waited = self.registry.await_one(custom, unconverted, to).await;
                waited.map_err(|error| error.to_string())?
            }
        };
        converted.remove("apiVersion");
        converted.remove("kind");
        Ok(converted)
    }
}
