//! [`Stored`]: an object in one version, and beside it what other versions say of it.

use std::collections::BTreeMap;

use revisor_object::{Object, Value, parse_json};

use crate::conversion::annotations;
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
        take_annotation(&mut object);
        Stored { object, kept: BTreeMap::new() }
    }

    /// Takes what is kept out of the annotation of an object.
    pub fn unpack(mut object: Value) -> Result<Stored, KeptError> {
        let Some(text) = take_annotation(&mut object) else { return Ok(Stored { object, kept: BTreeMap::new() }) };
        let text = text.as_str().unwrap_or_default().to_owned();
        let parsed = parse_json(text.as_bytes()).map_err(|error| KeptError::NotJson(error.to_string()))?;
        let Value::Object(versions) = parsed.value else { return Err(KeptError::Malformed(text)) };
        let kept = versions.iter().map(|(version, kept)| Ok((version.to_owned(), Kept::read(kept)?)));
        Ok(Stored { kept: kept.collect::<Result<_, KeptError>>()?, object })
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

fn take_annotation(object: &mut Value) -> Option<Value> {
    let found = annotations(object)?;
    let text = found.remove(KEPT_ANNOTATION)?;
    if found.is_empty()
        && let Some(metadata) = object.as_object_mut().and_then(|object| object.get_mut("metadata"))
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.remove("annotations");
    }
    Some(text)
}
