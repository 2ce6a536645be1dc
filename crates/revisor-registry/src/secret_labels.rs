//! Labels that the server itself puts on secrets: when the token in one was last shown.

use revisor_object::{Object, Value};

use crate::{PatchKind, Place, Registry, RegistryError};

impl Registry {
    /// Puts a label on a secret, if it is still the one with this identity. Nothing is wrong if it is gone.
    pub async fn label_secret(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
        label: &str,
        value: &str,
    ) -> Result<(), RegistryError> {
        let Some(resource) = self.known("", "v1", "secrets") else { return Ok(()) };
        let mut patch = Object::new();
        let metadata = patch.object_mut("metadata");
        metadata.insert("uid", uid);
        metadata.object_mut("labels").insert(label, value);
        let place = Place { resource, namespace: Some(namespace), name: Some(name) };
        let text = Value::from(patch).to_json();
        match self.patch(place, PatchKind::Merge, text.as_bytes(), self.own.options()).await {
            Ok(_) | Err(RegistryError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
