//! Claims that ask for no class get the default one, if there is one.

use std::cmp::Reverse;

use revisor_object::{Object, Value};
use sonic_rs::JsonValueTrait;

use super::{Admission, Attributes, Operation, claim_class};
use crate::{Registry, RegistryError};

/// What marks a class as the default.
const MARKS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

pub(super) struct DefaultStorageClass;

impl Admission for DefaultStorageClass {
    fn name(&self) -> &'static str {
        "DefaultStorageClass"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        object: &mut Object,
    ) -> Result<(), RegistryError> {
        if attributes.operation != Operation::Create || !attributes.is_about("", "persistentvolumeclaims") {
            return Ok(());
        }
        if claim_class(object).is_none()
            && let Some(class) = default_class(registry)
        {
            object.object_mut("spec").insert("storageClassName", Value::from(class));
        }
        Ok(())
    }
}

/// The name of the default class; of several the newest, and of those the first by name.
fn default_class(registry: &Registry) -> Option<String> {
    let classes = registry.known("storage.k8s.io", "v1", "storageclasses")?;
    let snapshot = registry.cache_of(classes).snapshot();
    let text = |bytes: &[u8], path: &[&str]| {
        sonic_rs::get(bytes, path).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let defaults = snapshot.range(&classes.prefix, None).filter_map(|item| {
        let bytes = &item.bytes()[..];
        let is_marked = MARKS.iter().any(|mark| text(bytes, &["metadata", "annotations", mark]) == "true");
        is_marked.then(|| {
            let name = text(bytes, &["metadata", "name"]);
            (Reverse(text(bytes, &["metadata", "creationTimestamp"])), name)
        })
    });
    defaults.min().map(|(_, name)| name)
}
