//! [`ListShape`]: how a list is written: a head, items, a foot.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use revisor_cache::Item;
use revisor_catalog::Resource;
use revisor_object::{Object, Value, is_yaml_text, parse_json, yaml_document, yaml_element};
use revisor_registry::{present, present_item};
use revisor_schema::{
    CBOR_TAG, ENVELOPE_END, envelope_start, push_cbor_text, push_varint, start_cbor_list, start_cbor_map,
};

use super::codec::{Codec, as_json, push_typed_cbor};
use crate::encoding::Encoding;
use crate::negotiate::MetaVersion;
use crate::table::{self, Rows};

/// How a list is written: a head, items, a foot.
#[derive(Debug, Clone)]
pub(crate) struct ListShape {
    pub(super) resource: Arc<Resource>,
    pub(super) items: Items,
    pub(super) encoding: Encoding,
    pub(super) is_pretty: bool,
    pub(super) codec: Arc<Codec>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Items {
    Whole,
    Metadata(MetaVersion),
    Rows(Rows),
}

/// What a list says of itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListMetadata<'a> {
    pub(crate) revision: Option<String>,
    pub(crate) token: Option<&'a str>,
    pub(crate) remaining: Option<u64>,
}

impl ListShape {
    /// Whether the list is one of custom objects as they are. The original holds it without a type: its members are
    /// sorted, and its token is there also when it is empty.
    fn is_untyped(&self) -> bool {
        matches!(self.items, Items::Whole) && self.resource.custom().is_some()
    }

    /// The metadata of the list in JSON.
    pub(crate) fn metadata(&self, told: ListMetadata<'_>) -> String {
        let revision = told.revision.map(|revision| format!("\"resourceVersion\":\"{revision}\""));
        let token = told.token.map(|token| format!("\"continue\":\"{token}\""));
        let remaining = told.remaining.map(|remaining| format!("\"remainingItemCount\":{remaining}"));
        let members = if self.is_untyped() {
            [token.or_else(|| Some("\"continue\":\"\"".to_owned())), remaining, revision]
        } else {
            [revision, token, remaining]
        };
        format!("{{{}}}", members.into_iter().flatten().collect::<Vec<_>>().join(","))
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub(crate) fn is_pretty(&self) -> bool {
        self.is_pretty && self.encoding == Encoding::Json
    }

    /// The same list in JSON, for programs.
    pub(crate) fn in_json(&self) -> ListShape {
        ListShape { encoding: Encoding::Json, is_pretty: false, ..self.clone() }
    }

    /// Whether the items have an order of their own in this shape.
    pub(crate) fn is_ranked(&self) -> bool {
        matches!(self.items, Items::Rows(_)) && self.resource.columns.is_ranked()
    }

    /// The place of an object among others, where they have an order of their own.
    pub(crate) fn rank(&self, stored: &Bytes) -> Option<i64> {
        table::rank(&self.resource, &as_json(&present(&self.resource, stored)))
    }

    /// Whether all items have to be measured before the head can be written.
    pub(crate) fn is_measured(&self) -> bool {
        self.encoding == Encoding::Protobuf
    }

    /// How many bytes an item of the cache takes in the list.
    pub(crate) fn measure_item(&self, item: &Item) -> usize {
        field_length(self.look_message(item, Bytes::len).unwrap_or_else(|| self.item_message(item).len()))
    }

    /// The same of an object as it is shown, which is in the cache as `item`.
    pub(crate) fn measure(&self, object: &Bytes, item: Option<&Item>) -> usize {
        field_length(self.message(object, item).len())
    }

    /// Whether a list without items has none, instead of an empty list of them: so the original writes what it gathers one
    /// by one, metadata (upstream: `asPartialObjectMetadataList`) and the rows of tables that nobody designed.
    fn is_null_if_empty(&self) -> bool {
        match self.items {
            Items::Metadata(_) => true,
            Items::Rows(_) => self.resource.columns.are_default(),
            Items::Whole => false,
        }
    }

    fn kind_and_version(&self) -> (&str, &str) {
        match self.items {
            Items::Whole => (&self.resource.list_kind, &self.resource.api_version),
            Items::Metadata(version) => ("PartialObjectMetadataList", version.api_version()),
            Items::Rows(rows) => ("Table", rows.version.api_version()),
        }
    }

    /// Everything before the first item. `metadata` is JSON; `measured` is how many bytes all items take, where that
    /// matters.
    pub(crate) fn head(&self, metadata: &str, measured: usize) -> Vec<u8> {
        let (kind, api_version) = self.kind_and_version();
        let text = match (self.encoding, self.items) {
            (Encoding::Protobuf, _) => {
                let metadata = self.codec.list_metadata(metadata);
                let mut head = envelope_start(api_version, kind, metadata.len() + measured);
                head.extend_from_slice(&metadata);
                return head;
            }
            (Encoding::Cbor, _) => {
                let mut head = CBOR_TAG.to_vec();
                start_cbor_map(4, &mut head);
                for text in ["kind", kind, "apiVersion", api_version, "metadata"] {
                    push_cbor_text(text, &mut head);
                }
                head.extend_from_slice(&self.codec.plain_cbor(metadata.as_bytes()));
                push_cbor_text("items", &mut head);
                if !self.is_null_if_empty() {
                    start_cbor_list(&mut head);
                }
                return head;
            }
            (Encoding::Json, Items::Rows(rows)) => {
                let open = if self.is_null_if_empty() { "" } else { "[" };
                table::head(rows.version, metadata, self.resource.columns.definitions()) + open
            }
            (Encoding::Json, Items::Whole) if self.is_untyped() => {
                format!("{{\"apiVersion\":\"{api_version}\",\"items\":[")
            }
            (Encoding::Json, Items::Whole | Items::Metadata(_)) => {
                let open = if self.is_null_if_empty() { "" } else { "[" };
                format!(
                    "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":{open}"
                )
            }
            (Encoding::Yaml, Items::Rows(_)) => {
                let members = [
                    ("apiVersion", Value::from(api_version)),
                    ("columnDefinitions", value(self.resource.columns.definitions().as_bytes())),
                    ("kind", Value::from(kind)),
                    ("metadata", value(metadata.as_bytes())),
                ];
                yaml_of(members) + "rows:"
            }
            (Encoding::Yaml, Items::Whole | Items::Metadata(_)) => {
                yaml_of([("apiVersion", Value::from(api_version))]) + "items:"
            }
        };
        text.into_bytes()
    }

    /// Whether an object of the list cannot be said in its encoding.
    pub(crate) fn refuses(&self, object: &Bytes) -> bool {
        self.encoding == Encoding::Yaml && !is_yaml_text(&as_json(object))
    }

    /// Appends one object as it is shown, which is in the cache as `item`.
    pub(crate) fn push(&self, object: &Bytes, item: Option<&Item>, is_first: bool, out: &mut BytesMut) {
        match self.encoding {
            Encoding::Protobuf => push_field(&self.message(object, item), out),
            Encoding::Cbor => self.push_cbor(object, item, is_first, out),
            Encoding::Json | Encoding::Yaml => {
                let object = &*as_json(object);
                self.push_as(is_first, out, |out| match (self.items, item) {
                    (Items::Rows(rows), Some(item)) => rows.push_shown(&self.resource, item, object, out),
                    _ => self.push_json(object, out),
                });
            }
        }
    }

    /// Appends one object of the cache.
    pub(crate) fn push_item(&self, item: &Item, is_first: bool, out: &mut BytesMut) {
        match (self.encoding, self.items) {
            (Encoding::Protobuf, _) => {
                if self.look_message(item, |message| push_field(message, out)).is_none() {
                    push_field(&self.item_message(item), out);
                }
            }
            (Encoding::Cbor, _) => self.push_cbor(&present_item(&self.resource, item), Some(item), is_first, out),
            (_, Items::Rows(rows)) => {
                self.push_as(is_first, out, |out| rows.push_item(&self.resource, item, out));
            }
            (_, Items::Whole | Items::Metadata(_)) => {
                let object = present_item(&self.resource, item);
                let object = &*as_json(&object);
                self.push_as(is_first, out, |out| self.push_json(object, out));
            }
        }
    }

    /// Appends an object in CBOR. Those of built-in kinds leave out their kind and version, which the list has.
    fn push_cbor(&self, object: &Bytes, item: Option<&Item>, is_first: bool, out: &mut BytesMut) {
        if let Items::Metadata(version) = self.items {
            if is_first {
                let mut start = Vec::new();
                start_cbor_list(&mut start);
                out.put_slice(&start);
            }
            let mut json = BytesMut::new();
            table::push_metadata(version, Some(&self.resource), object, &mut json);
            return out.put_slice(&self.codec.plain_cbor(&json));
        }
        let part = match item {
            Some(item) => self.codec.item_cbor(&self.resource, item, object),
            None => self.codec.object_cbor(&self.resource, object),
        };
        if self.resource.custom().is_none() {
            return out.put_slice(&part);
        }
        let mut whole = Vec::new();
        push_typed_cbor(&self.resource, &part, &mut whole);
        out.put_slice(&whole);
    }

    /// The message of an object as it is shown.
    fn message(&self, object: &Bytes, item: Option<&Item>) -> Bytes {
        match (self.items, item) {
            (Items::Whole, Some(item)) => self.codec.item_message(&self.resource, item, object),
            (Items::Whole, None) => self.codec.object_message(&self.resource, object),
            (Items::Metadata(_) | Items::Rows(_), _) => {
                self.codec.metadata_message(&table::metadata_of(Some(&self.resource), object))
            }
        }
    }

    /// What `look` makes of the message of an object of the cache, if it is remembered: without a look at the object itself,
    /// which is somewhere else in memory.
    fn look_message<R>(&self, item: &Item, look: impl FnOnce(&Bytes) -> R) -> Option<R> {
        match self.items {
            Items::Whole => self.codec.look_message(&self.resource, item, look),
            Items::Metadata(_) | Items::Rows(_) => None,
        }
    }

    /// The message of an object of the cache.
    fn item_message(&self, item: &Item) -> Bytes {
        self.message(&present_item(&self.resource, item), Some(item))
    }

    /// Reads a byte of each part of memory from which this item will be written.
    pub(crate) fn touch(&self, item: &Item) -> usize {
        if self.encoding == Encoding::Protobuf
            && let Some(of_message) = self.look_message(item, |message| message.first().copied())
        {
            return item.bytes().len() + usize::from(of_message.unwrap_or_default());
        }
        let of_object = item.bytes().first().copied();
        let of_row = match self.items {
            Items::Rows(_) => table::first_byte_of_row(&self.resource, item),
            Items::Whole | Items::Metadata(_) => None,
        };
        usize::from(of_object.unwrap_or_default()) + usize::from(of_row.unwrap_or_default())
    }

    /// Appends what `push_json` appends in JSON, in the list's encoding.
    fn push_as(&self, is_first: bool, out: &mut BytesMut, push_json: impl FnOnce(&mut BytesMut)) {
        if self.encoding == Encoding::Yaml {
            if is_first {
                out.put_u8(b'\n');
            }
            let mut json = BytesMut::new();
            push_json(&mut json);
            out.put_slice(yaml_element(&value(&json)).as_bytes());
            return;
        }
        match is_first {
            false => out.put_u8(b','),
            true if self.is_null_if_empty() => out.put_u8(b'['),
            true => {}
        }
        push_json(out);
    }

    fn push_json(&self, object: &[u8], out: &mut BytesMut) {
        match self.items {
            // Items leave out their kind and version, which the list has.
            Items::Whole => match object.strip_prefix(self.resource.type_prefix.as_bytes()) {
                Some(rest) => {
                    out.put_u8(b'{');
                    out.put_slice(rest);
                }
                None => out.put_slice(object),
            },
            Items::Metadata(version) => table::push_metadata(version, Some(&self.resource), object, out),
            Items::Rows(rows) => rows.push(&self.resource, object, out),
        }
    }

    /// Everything after the last item.
    pub(crate) fn foot(&self, metadata: &str, is_empty: bool) -> Cow<'static, [u8]> {
        let is_null = is_empty && self.is_null_if_empty();
        let nothing = match is_empty {
            true if is_null => " null\n",
            true => " []\n",
            false => "",
        };
        let text = match (self.encoding, self.items) {
            (Encoding::Protobuf, _) => return Cow::Borrowed(&ENVELOPE_END),
            (Encoding::Json, _) if self.is_untyped() => {
                format!("],\"kind\":\"{}\",\"metadata\":{metadata}}}\n", self.resource.list_kind)
            }
            (Encoding::Json, _) if is_null => return Cow::Borrowed(b"null}\n"),
            (Encoding::Json, _) => return Cow::Borrowed(b"]}\n"),
            (Encoding::Cbor, _) if is_null => return Cow::Borrowed(&[CBOR_NULL]),
            (Encoding::Cbor, _) => return Cow::Borrowed(&[0xff]),
            (Encoding::Yaml, Items::Rows(_)) => nothing.to_owned(),
            (Encoding::Yaml, Items::Whole | Items::Metadata(_)) => {
                let (kind, _) = self.kind_and_version();
                nothing.to_owned() + &yaml_of([("kind", Value::from(kind)), ("metadata", value(metadata.as_bytes()))])
            }
        };
        Cow::Owned(text.into_bytes())
    }
}

/// Nothing, in CBOR.
const CBOR_NULL: u8 = 0xf6;

/// How many bytes an item takes with the tag and the length before it.
fn field_length(length: usize) -> usize {
    let bits = usize::BITS - (length | 1).leading_zeros();
    1 + bits.div_ceil(7) as usize + length
}

/// Appends an item of a list: the second field of its message.
fn push_field(message: &[u8], out: &mut BytesMut) {
    let mut start = Vec::with_capacity(11);
    start.push(0x12);
    push_varint(message.len() as u64, &mut start);
    out.put_slice(&start);
    out.put_slice(message);
}

/// What this server wrote as JSON.
fn value(json: &[u8]) -> Value {
    parse_json(json).map(|parsed| parsed.value).unwrap_or_default()
}

fn yaml_of<const N: usize>(members: [(&str, Value); N]) -> String {
    yaml_document(&Value::from(members.into_iter().collect::<Object>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_long_as_they_are_measured() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152] {
            let mut out = BytesMut::new();
            push_field(&vec![0; length], &mut out);
            assert_eq!(out.len(), field_length(length), "{length}");
        }
    }
}
