//! [`Codec`]: the JSON of this server in the encodings that clients ask for.
//!
//! An object of the cache is translated once and remembered beside it, as the part that is the same wherever it stands:
//! alone, in a list, in an event. What is around it is put there when it is sent.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use revisor_cache::{EncodedKey, EncodingRoom, Item};
use revisor_catalog::Resource;
use revisor_object::{Object, Status, Value, compact_json, escape_html, is_yaml_text, parse_json, yaml_document};
use revisor_schema::{
    CBOR_TAG, ENVELOPE_END, StructId, Types, envelope_start, is_spelled, push_cbor_text, push_varint, split_cbor_map,
    start_cbor_map,
};

use crate::encoding::Encoding;
use crate::pretty::Layout;

/// How many bytes of translated objects are remembered at most, all together.
const ROOM: usize = 256 << 20;

/// Translates what is answered.
#[derive(Debug)]
pub(crate) struct Codec {
    /// The built-in types.
    types: Arc<Types>,
    room: Arc<EncodingRoom>,
}

/// An object in protobuf, and what its envelope says of it.
struct Message {
    api_version: String,
    kind: String,
    bytes: Vec<u8>,
}

impl Codec {
    pub(crate) fn new(types: Arc<Types>) -> Codec {
        Codec { types, room: EncodingRoom::new(ROOM) }
    }

    /// A whole document. `resource` is what it is an object of, or of which it shows a part.
    ///
    /// # Errors
    /// What the client is told where that cannot be said in the encoding.
    pub(crate) fn document(
        &self,
        encoding: Encoding,
        is_pretty: bool,
        resource: Option<&Resource>,
        json: Bytes,
    ) -> Result<Bytes, Box<Status>> {
        match encoding {
            // Objects are stored with the escapes that Go's encoder writes.
            Encoding::Json if resource.is_none() => Ok(written(is_pretty, &escape_html(&json))),
            Encoding::Json => Ok(written(is_pretty, &as_json(&json))),
            Encoding::Yaml => yaml(&json),
            Encoding::Protobuf => {
                let message = self.message(resource, &json).ok_or_else(no_message)?;
                Ok(enveloped(&message.api_version, &message.kind, &message.bytes))
            }
            Encoding::Cbor => Ok(self.cbor_document(resource, &json)),
        }
    }

    /// An object of the cache as a whole document; `json` is what is shown of it.
    pub(crate) fn item_document(
        &self,
        encoding: Encoding,
        is_pretty: bool,
        resource: &Resource,
        item: &Item,
        json: Bytes,
    ) -> Result<Bytes, Box<Status>> {
        match encoding {
            Encoding::Json | Encoding::Yaml => self.document(encoding, is_pretty, Some(resource), json),
            Encoding::Protobuf => {
                Ok(enveloped(&resource.api_version, &resource.kind, &self.item_message(resource, item, &json)))
            }
            Encoding::Cbor => Ok(whole_cbor(resource, &self.item_cbor(resource, item, &json))),
        }
    }

    /// The message of an object of the cache, which is remembered beside it; `json` is what is shown of it.
    pub(crate) fn item_message(&self, resource: &Resource, item: &Item, json: &[u8]) -> Bytes {
        self.remembered(resource, item, PROTOBUF, || self.object_message(resource, json))
    }

    /// What `look` makes of the message of an object of the cache, if it is remembered.
    pub(crate) fn look_message<R>(
        &self,
        resource: &Resource,
        item: &Item,
        look: impl FnOnce(&Bytes) -> R,
    ) -> Option<R> {
        item.look_encoded(EncodedKey { shape: resource.shape, encoding: PROTOBUF }, look)
    }

    /// An object of the cache in CBOR, remembered alike: a map without the kind and the version.
    pub(crate) fn item_cbor(&self, resource: &Resource, item: &Item, json: &[u8]) -> Bytes {
        self.remembered(resource, item, CBOR, || self.object_cbor(resource, json))
    }

    fn remembered(&self, resource: &Resource, item: &Item, encoding: u8, make: impl FnOnce() -> Bytes) -> Bytes {
        let key = EncodedKey { shape: resource.shape, encoding };
        if let Some(known) = item.encoded(key) {
            return known;
        }
        let made = make();
        item.keep_encoded(key, made.clone(), &self.room);
        made
    }

    /// An object in CBOR: a map without the kind and the version.
    pub(crate) fn object_cbor(&self, resource: &Resource, json: &[u8]) -> Bytes {
        let mut object = read(json);
        object.remove("kind");
        object.remove("apiVersion");
        let id = resource.custom().is_none().then(|| resource.root());
        resource.typed().0.write_cbor(id, &object).into()
    }

    /// A value of this server in CBOR, of which nothing stands for bytes.
    pub(crate) fn plain_cbor(&self, json: &[u8]) -> Vec<u8> {
        self.types.write_cbor(None, &read(json))
    }

    fn cbor_document(&self, resource: Option<&Resource>, json: &[u8]) -> Bytes {
        let object = read(json);
        let text = |name| object.str(name).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let own = resource.filter(|resource| resource.kind == kind && resource.api_version == api_version);
        let written = match own {
            Some(resource) => {
                let id = resource.custom().is_none().then(|| resource.root());
                resource.typed().0.write_cbor(id, &object)
            }
            None => self.types.write_cbor(self.type_of(api_version, kind), &object),
        };
        [&CBOR_TAG[..], &written].concat().into()
    }

    /// The message of an object of a built-in resource.
    pub(crate) fn object_message(&self, resource: &Resource, json: &[u8]) -> Bytes {
        let (types, id) = resource.typed();
        types.protobuf_of_json(id, json).unwrap_or_default().into()
    }

    /// The message of an object that shows nothing but these metadata.
    pub(crate) fn metadata_message(&self, metadata: &[u8]) -> Bytes {
        let Some(id) = self.types.id("meta.v1.ObjectMeta") else { return Bytes::new() };
        let inner = self.types.write_protobuf(id, &read(metadata));
        let mut message = Vec::with_capacity(inner.len() + 6);
        message.push(0x0a);
        push_varint(inner.len() as u64, &mut message);
        message.extend_from_slice(&inner);
        message.into()
    }

    /// The metadata of a list, as the first field of its message.
    pub(crate) fn list_metadata(&self, metadata: &str) -> Vec<u8> {
        let inner = match self.types.id("meta.v1.ListMeta") {
            Some(id) => self.types.write_protobuf(id, &read(metadata.as_bytes())),
            None => Vec::new(),
        };
        let mut field = vec![0x0a];
        push_varint(inner.len() as u64, &mut field);
        field.extend_from_slice(&inner);
        field
    }

    fn message(&self, resource: Option<&Resource>, json: &[u8]) -> Option<Message> {
        let built_in = resource.filter(|resource| resource.custom().is_none());
        let message_of = |api_version: &str, kind: &str, bytes: Vec<u8>| {
            Some(Message { api_version: api_version.to_owned(), kind: kind.to_owned(), bytes })
        };
        // What an object is stands at its beginning, so that it need not be read for that.
        if let Some(own) = built_in.filter(|resource| begins_as(resource, json)) {
            return message_of(&own.api_version, &own.kind, self.object_message(own, json).into());
        }
        let object = read(json);
        let text = |name| object.str(name).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let own = built_in.filter(|resource| resource.kind == kind && resource.api_version == api_version);
        let bytes = match own {
            Some(resource) => self.object_message(resource, json).into(),
            None => self.types.write_protobuf(self.type_of(api_version, kind)?, &object),
        };
        message_of(api_version, kind, bytes)
    }

    /// The type of a kind that is no resource of its own: one of its group, or one that all groups share.
    fn type_of(&self, api_version: &str, kind: &str) -> Option<StructId> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("core", api_version));
        let package = group.split('.').next().unwrap_or_default();
        let of_group = self.types.id(&format!("{package}.{version}.{kind}"));
        of_group.or_else(|| self.types.id(&format!("meta.v1.{kind}")))
    }
}

/// Whether a text begins as an object of the resource does.
fn begins_as(resource: &Resource, json: &[u8]) -> bool {
    let rest = json.strip_prefix(br#"{"kind":""#).and_then(|rest| rest.strip_prefix(resource.kind.as_bytes()));
    let rest = rest.and_then(|rest| rest.strip_prefix(br#"","apiVersion":""#));
    let rest = rest.and_then(|rest| rest.strip_prefix(resource.api_version.as_bytes()));
    rest.is_some_and(|rest| rest.starts_with(b"\""))
}

/// The numbers by which encodings are remembered.
const PROTOBUF: u8 = 0;
const CBOR: u8 = 1;

/// An object in CBOR that describes itself, from what is remembered of it.
pub(crate) fn whole_cbor(resource: &Resource, part: &[u8]) -> Bytes {
    let mut whole = CBOR_TAG.to_vec();
    push_typed_cbor(resource, part, &mut whole);
    whole.into()
}

/// Appends an object in CBOR with its kind and version.
pub(crate) fn push_typed_cbor(resource: &Resource, part: &[u8], out: &mut Vec<u8>) {
    let (count, members) = split_cbor_map(part);
    out.reserve(part.len() + 64);
    start_cbor_map(count + 2, out);
    for (name, value) in [("kind", resource.kind.as_str()), ("apiVersion", &resource.api_version)] {
        push_cbor_text(name, out);
        push_cbor_text(value, out);
    }
    out.extend_from_slice(members);
}

/// What this server wrote as JSON.
fn read(json: &[u8]) -> Object {
    match parse_json(json).map(|parsed| parsed.value) {
        Ok(Value::Object(object)) => object,
        _ => Object::new(),
    }
}

fn no_message() -> Box<Status> {
    Box::new(Status::unexplained(
        "object does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message",
    ))
}

/// A message with its envelope.
pub(crate) fn enveloped(api_version: &str, kind: &str, message: &[u8]) -> Bytes {
    let start = envelope_start(api_version, kind, message.len());
    let mut whole = BytesMut::with_capacity(start.len() + message.len() + ENVELOPE_END.len());
    whole.put_slice(&start);
    whole.put_slice(message);
    whole.put_slice(&ENVELOPE_END);
    whole.freeze()
}

/// An object as those see it who read JSON: what is kept as it was spelled is shown as the original's encoder shows it.
pub(crate) fn as_json(object: &Bytes) -> Cow<'_, Bytes> {
    if is_spelled(object) { Cow::Owned(compact_json(object).into_owned().into()) } else { Cow::Borrowed(object) }
}

/// JSON for people or for programs.
fn written(is_pretty: bool, json: &[u8]) -> Bytes {
    if !is_pretty {
        return line(json);
    }
    let mut out = Vec::with_capacity(json.len() * 2);
    Layout::default().push(json, &mut out);
    out.into()
}

/// JSON for programs ends its line.
fn line(json: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(json.len() + 1);
    line.put_slice(json);
    line.put_u8(b'\n');
    line.freeze()
}

/// A JSON document as YAML.
fn yaml(json: &[u8]) -> Result<Bytes, Box<Status>> {
    let json = &*escape_html(json);
    if !is_yaml_text(json) {
        return Err(no_yaml());
    }
    let value = parse_json(json).map(|parsed| parsed.value).unwrap_or_default();
    Ok(yaml_document(&value).into())
}

/// What a client is told of what YAML cannot say.
pub(crate) fn no_yaml() -> Box<Status> {
    Box::new(Status::unexplained("yaml: control characters are not allowed"))
}
