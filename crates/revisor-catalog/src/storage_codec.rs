//! [`StorageCodec`]: the form in which the original keeps objects in etcd, and back to the form that is worked with here.
//!
//! Built-in kinds are kept as protobuf in an envelope that names their type, or as JSON or YAML if that is asked for;
//! custom objects, definitions and registrations always as JSON, definitions in a version that is not served any more
//! ([`definition_form`]). No form holds the resource version: that is the revision of the key. Whatever is found is read,
//! in any of these forms and in CBOR.

mod definition_form;

use std::collections::HashMap;
use std::sync::Arc;

use revisor_object::{Object, Value, compact_json, is_yaml_text, parse_json, parse_yaml, yaml_document};
use revisor_schema::{
    CBOR_TAG, ENVELOPE_END, Encoded, Envelope, StructId, Types, encode_custom_object, envelope_start, is_spelled,
};

use crate::kinds::core::service::forget_needless_policy;
use crate::rows::type_name;
use crate::{Catalog, Resource};

/// What begins an object in protobuf.
const PROTOBUF: &[u8] = b"k8s\0";

/// What begins a value that some provider of encryption wrote.
const ENCRYPTED: &[u8] = b"k8s:enc:";

/// What all keys begin with.
const ROOT: &str = "/registry/";

/// The kinds that servers keep for themselves, where, and under which name.
const INTERNAL: [(&str, &str); 3] =
    [("masterleases", "Endpoints"), ("peerserverleases", "Endpoints"), ("ranges", "RangeAllocation")];

/// The form in which built-in kinds are kept, where there is a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StorageMediaType {
    /// `application/vnd.kubernetes.protobuf`
    #[default]
    Protobuf,
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
}

/// The form in which a value was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// In a form that can be asked for.
    As(StorageMediaType),
    Cbor,
}

/// An object that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// The canonical bytes.
    pub bytes: Vec<u8>,
    /// Where in them the resource version goes, if it is an object that has one.
    pub revision_at: Option<u32>,
    /// Whether it would be kept in another form today.
    pub is_outdated: bool,
}

/// Why a stored value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageCodecError {
    /// There is nothing.
    #[error("the value is empty")]
    Empty,
    /// It is encrypted, and this server has no key.
    #[error("the value is encrypted, and there is no key for it")]
    Encrypted,
    /// It is in no form that objects have.
    #[error("the value is neither protobuf nor JSON nor YAML nor CBOR")]
    UnknownForm,
    /// It is, but what is in it is not an object of its key.
    #[error("the value cannot be decoded: {0}")]
    Malformed(String),
}

fn malformed(problem: impl std::fmt::Display) -> StorageCodecError {
    StorageCodecError::Malformed(problem.to_string())
}

/// Knows how objects are kept, by their keys.
pub struct StorageCodec {
    /// By what follows the root in their keys: `pods`, `services/specs`.
    kinds: HashMap<Box<str>, Kind>,
    /// All versions in which built-in kinds are known.
    versions: Vec<Arc<Resource>>,
    types: Arc<Types>,
    media: StorageMediaType,
}

/// What is kept below a key.
struct Kind {
    name: String,
    api_version: String,
    root: StructId,
    form: Form,
    /// `None` for what servers keep for themselves.
    resource: Option<Arc<Resource>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Chosen,
    Json,
    Definition,
}

/// A value, and what it says of its type.
struct Found {
    value: Value,
    written: Written,
}

impl StorageCodec {
    /// The codec for the built-in kinds of a catalog.
    pub fn new(catalog: &Catalog, media: StorageMediaType) -> StorageCodec {
        let types = catalog.types().clone();
        let mut kinds = HashMap::new();
        for resource in catalog.stored_kinds().chain([catalog.conversions()]) {
            let Some(folder) = resource.prefix.strip_prefix(ROOT).map(|folder| folder.trim_end_matches('/')) else {
                continue;
            };
            let form = match resource.name() {
                ("apiextensions.k8s.io", "customresourcedefinitions") => Form::Definition,
                ("apiregistration.k8s.io", _) | ("versioning.revisor.dev", _) => Form::Json,
                _ => Form::Chosen,
            };
            let kind = Kind {
                name: resource.kind.to_string(),
                api_version: resource.api_version.clone(),
                root: resource.root(),
                form,
                resource: Some(resource.clone()),
            };
            kinds.insert(folder.into(), kind);
        }
        for (folder, name) in INTERNAL {
            if let Some(root) = types.id(&type_name("", "v1", name)) {
                let (name, api_version) = (name.to_owned(), "v1".to_owned());
                kinds.insert(folder.into(), Kind { name, api_version, root, form: Form::Chosen, resource: None });
            }
        }
        let versions = catalog.resources().filter(|resource| resource.custom().is_none()).cloned().collect();
        StorageCodec { kinds, versions, types, media }
    }

    /// What is kept of an object, whose canonical bytes these are. `is_object` is whether it has a resource version; what
    /// has none is kept as it is.
    ///
    /// # Errors
    /// If these are no such bytes.
    pub fn encode(&self, key: &str, canonical: &[u8], is_object: bool) -> Result<Vec<u8>, StorageCodecError> {
        let Some(kind) = self.kind_of(key) else {
            return Ok(match is_object {
                true if is_spelled(canonical) => line(&compact_json(canonical)),
                true => line(canonical),
                false => canonical.to_vec(),
            });
        };
        match (kind.form, self.media) {
            // JSON within JSON loses its blanks, as it does in Go.
            (Form::Json, _) | (Form::Chosen, StorageMediaType::Json) if is_spelled(canonical) => {
                Ok(line(&compact_json(canonical)))
            }
            (Form::Json, _) | (Form::Chosen, StorageMediaType::Json) => Ok(line(canonical)),
            (Form::Chosen, StorageMediaType::Yaml) => {
                let json = compact_json(canonical);
                if !is_yaml_text(&json) {
                    return Err(malformed("yaml: control characters are not allowed"));
                }
                let value = parse_json(&json).map_err(malformed)?.value;
                Ok(yaml_document(&value).into_bytes())
            }
            (Form::Definition, _) => {
                let canonical = std::str::from_utf8(canonical).map_err(malformed)?;
                Ok(line(definition_form::to_stored(canonical).as_bytes()))
            }
            (Form::Chosen, StorageMediaType::Protobuf) => {
                let message = self.types.protobuf_of_json(kind.root, canonical);
                let message = message.ok_or_else(|| malformed("it is no object"))?;
                let mut value = envelope_start(&kind.api_version, &kind.name, message.len());
                value.reserve(message.len() + ENVELOPE_END.len());
                value.extend_from_slice(&message);
                value.extend_from_slice(&ENVELOPE_END);
                Ok(value)
            }
        }
    }

    /// The object of which this is kept.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn decode(&self, key: &str, value: &[u8]) -> Result<StoredObject, StorageCodecError> {
        match self.kind_of(key) {
            Some(kind) => self.decode_built_in(kind, value),
            None => self.decode_custom(value),
        }
    }

    /// What is kept below a key, if that is known: everything else is custom, or a server's own note.
    fn kind_of(&self, key: &str) -> Option<&Kind> {
        let below = key.strip_prefix(ROOT)?;
        let mut ends = below.match_indices('/').map(|(at, _)| &below[..at]);
        let (first, second) = (ends.next()?, ends.next());
        self.kinds.get(first).or_else(|| self.kinds.get(second?))
    }

    fn read(&self, id: Option<(&Kind, &[Arc<Resource>])>, bytes: &[u8]) -> Result<Found, StorageCodecError> {
        let (value, written) = match bytes {
            [] => return Err(StorageCodecError::Empty),
            bytes if bytes.starts_with(PROTOBUF) => {
                let Envelope { api_version, kind: name, raw } = Envelope::read(bytes).map_err(malformed)?;
                let (kind, versions) = id.ok_or_else(|| malformed("no message is known for it"))?;
                let root = self.root_of(kind, versions, &api_version, &name)?;
                let mut value = self.types.read_protobuf(root, raw).map_err(malformed)?;
                if let Some(object) = value.as_object_mut() {
                    object.insert("kind", name);
                    object.insert("apiVersion", api_version);
                }
                (value, Written::As(StorageMediaType::Protobuf))
            }
            bytes if bytes.starts_with(&CBOR_TAG) => {
                let root = id.map(|(kind, _)| kind.root);
                (self.types.read_cbor(root, bytes).map_err(malformed)?, Written::Cbor)
            }
            bytes if bytes.starts_with(ENCRYPTED) => return Err(StorageCodecError::Encrypted),
            [b'{', ..] => {
                let mut value = parse_json(bytes).map_err(malformed)?.value;
                if let Some((kind, _)) = id {
                    self.types.keep_raw(kind.root, &mut value, bytes);
                }
                (value, Written::As(StorageMediaType::Json))
            }
            // Nearly every text is YAML; one that is an object is taken for what it says.
            bytes if id.is_some() => match parse_yaml(bytes) {
                Ok(parsed) if parsed.value.as_object().is_some() => (parsed.value, Written::As(StorageMediaType::Yaml)),
                _ => return Err(StorageCodecError::UnknownForm),
            },
            _ => return Err(StorageCodecError::UnknownForm),
        };
        Ok(Found { value, written })
    }

    /// The type of a message that names its version and kind.
    fn root_of(
        &self,
        kind: &Kind,
        versions: &[Arc<Resource>],
        api_version: &str,
        name: &str,
    ) -> Result<StructId, StorageCodecError> {
        if name != kind.name {
            return Err(malformed(format!("it is a {name}, where a {} is kept", kind.name)));
        }
        if api_version == kind.api_version {
            return Ok(kind.root);
        }
        let served = versions.iter().find(|known| known.api_version == api_version && known.kind == name);
        if let Some(served) = served {
            return Ok(served.root());
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let known = self.types.id(&type_name(group, version, name));
        known.ok_or_else(|| malformed(format!("no kind {name:?} is registered for version {api_version:?}")))
    }

    fn decode_built_in(&self, kind: &Kind, bytes: &[u8]) -> Result<StoredObject, StorageCodecError> {
        let Found { mut value, written } = self.read(Some((kind, &self.versions)), bytes)?;
        let object = value.as_object_mut().ok_or_else(|| malformed("it is no object"))?;
        if kind.form == Form::Definition {
            let is_outdated = !definition_form::from_stored(object);
            return self.finish(kind, value, is_outdated);
        }
        let wanted = if kind.form == Form::Chosen { self.media } else { StorageMediaType::Json };
        let api_version = object.str("apiVersion").unwrap_or_default();
        let is_outdated = api_version != kind.api_version || written != Written::As(wanted);
        let other = self.versions.iter().find(|known| known.api_version == api_version && known.kind == kind.name);
        if let Some(other) = other.filter(|_| api_version != kind.api_version) {
            other.conform(&mut value).map_err(malformed)?;
            if let Some(object) = value.as_object_mut() {
                other.to_stored(object);
            }
        }
        self.finish(kind, value, is_outdated)
    }

    /// Makes an object of its type, fills in what is left out, and writes it.
    fn finish(&self, kind: &Kind, mut value: Value, is_outdated: bool) -> Result<StoredObject, StorageCodecError> {
        match &kind.resource {
            Some(resource) => resource.conform(&mut value).map_err(malformed)?,
            None => self.types.conform(kind.root, &mut value).map_err(malformed)?,
        };
        let object = value.as_object_mut().ok_or_else(|| malformed("it is no object"))?;
        object.remove("kind");
        object.remove("apiVersion");
        forget_place(object);
        let Encoded { bytes, revision_at } = match &kind.resource {
            Some(resource) => {
                resource.default(object);
                if resource.name() == ("", "services") {
                    forget_needless_policy(object);
                }
                resource.encode(object)
            }
            None => self.types.encode(kind.root, &kind.name, &kind.api_version, object),
        };
        // What servers keep for themselves shows no revision.
        let revision_at = kind.resource.as_ref().map(|_| revision_at);
        Ok(StoredObject { bytes, revision_at, is_outdated })
    }

    fn decode_custom(&self, bytes: &[u8]) -> Result<StoredObject, StorageCodecError> {
        let Found { mut value, .. } = self.read(None, bytes)?;
        let object = value.as_object_mut().ok_or_else(|| malformed("it is no object"))?;
        if object.object("metadata").is_none() {
            // A note of a server, which is kept as it is.
            return Ok(StoredObject { bytes: bytes.to_vec(), revision_at: None, is_outdated: false });
        }
        forget_place(object);
        let Encoded { bytes: canonical, revision_at } = encode_custom_object(object);
        let is_outdated = bytes != line(&canonical);
        Ok(StoredObject { bytes: canonical, revision_at: Some(revision_at), is_outdated })
    }
}

impl std::fmt::Debug for StorageCodec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StorageCodec").field("kinds", &self.kinds.len()).finish_non_exhaustive()
    }
}

/// Takes out what is told by where an object is kept.
fn forget_place(object: &mut Object) {
    let metadata = object.object_mut("metadata");
    metadata.remove("resourceVersion");
    metadata.remove("selfLink");
}

/// JSON as Go writes it: it ends with its line, and what could be taken for something else in a page or a script is
/// escaped. None of these characters stands outside of a text.
fn line(json: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(json.len() + 1);
    let mut rest = json;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'<' | b'>' | b'&' | 0xe2)) {
        line.extend_from_slice(&rest[..at]);
        let (escaped, length): (&[u8], usize) = match &rest[at..] {
            [b'<', ..] => (b"\\u003c", 1),
            [b'>', ..] => (b"\\u003e", 1),
            [b'&', ..] => (b"\\u0026", 1),
            [0xe2, 0x80, 0xa8, ..] => (b"\\u2028", 3),
            [0xe2, 0x80, 0xa9, ..] => (b"\\u2029", 3),
            other => (&other[..1], 1),
        };
        line.extend_from_slice(escaped);
        rest = &rest[at + length..];
    }
    line.extend_from_slice(rest);
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests;
