//! [`Stored`]: an object in one version, and beside it what other versions say of it.

use std::collections::BTreeMap;

use revisor_object::{Object, Value, parse_json};

use crate::kept::{Kept, KeptError};

/// The annotation in which an object carries what its version cannot say.
pub const KEPT_ANNOTATION: &str = "versioning.revisor.dev/kept";

/// An object, and what is kept of it for other versions.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The object, without the annotation.
    pub object: Value,
    /// By the names of the versions.
    pub kept: BTreeMap<String, Kept>,
}

impl Stored {
    /// An object of which nothing is kept. An annotation that says otherwise is ignored: it is not a client's to set.
    pub fn new(mut object: Value) -> Stored {
        object.as_object_mut().and_then(take_annotation);
        Stored { object, kept: BTreeMap::new() }
    }

    /// Takes what is kept out of the annotation of an object.
    pub fn unpack(mut object: Value) -> Result<Stored, KeptError> {
        let text = object.as_object_mut().and_then(take_annotation);
        Ok(Stored { kept: text.as_ref().map(read_kept).transpose()?.unwrap_or_default(), object })
    }

    /// The object with what is kept in its annotation.
    pub fn pack(mut self) -> Value {
        if let Some(text) = self.annotation()
            && let Value::Object(object) = &mut self.object
        {
            object.object_mut("metadata").object_mut("annotations").insert(KEPT_ANNOTATION, text);
        }
        self.object
    }

    /// The text of the annotation, if anything is kept.
    pub fn annotation(&self) -> Option<String> {
        if self.kept.is_empty() {
            return None;
        }
        let kept: Object = self.kept.iter().map(|(version, kept)| (version.as_str(), kept.to_json())).collect();
        Some(Value::Object(kept).to_json())
    }
}

/// What the annotation says, by the names of the versions.
pub fn read_kept(annotation: &Value) -> Result<BTreeMap<String, Kept>, KeptError> {
    let text = annotation.as_str().unwrap_or_default();
    let parsed = parse_json(text.as_bytes()).map_err(|error| KeptError::NotJson(error.to_string()))?;
    let Value::Object(versions) = parsed.value else { return Err(KeptError::Malformed(text.to_owned())) };
    versions.iter().map(|(version, kept)| Ok((version.to_owned(), Kept::read(kept)?))).collect()
}

/// Takes the annotation away from an object, as if it had never had it.
pub fn take_annotation(object: &mut Object) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(KEPT_ANNOTATION)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    Some(text)
}
