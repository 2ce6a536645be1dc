//! [`EventShape`]: how events are written: what they show of their objects, and in which encoding.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use revisor_cache::{FrameForm, Item};
use revisor_catalog::{Moment, Resource};
use revisor_object::{Status, escape_html};
use revisor_schema::{CBOR_TAG, push_cbor_text, push_varint, start_cbor_map};

use super::codec::{Codec, as_json, enveloped, whole_cbor};
use crate::encoding::Encoding;
use crate::negotiate::MetaVersion;
use crate::table::{self, Include, Rows};

/// How events are written.
#[derive(Debug, Clone)]
pub(crate) struct EventShape {
    pub(super) resource: Arc<Resource>,
    pub(super) form: EventForm,
    pub(super) encoding: Encoding,
    pub(super) codec: Arc<Codec>,
}

/// What events show of their objects.
#[derive(Debug, Clone, Copy)]
pub(super) enum EventForm {
    Whole,
    Metadata(MetaVersion),
    Table {
        version: MetaVersion,
        include: Include,
        /// Whether the client has been told the columns.
        has_columns: bool,
    },
    /// A list in place of an object. The original finds out at the first event, and ends.
    Impossible,
}

impl EventShape {
    pub(crate) fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// What frames of this shape are known by among those of one event. `None` if they are not shared.
    pub(crate) fn frame_form(&self) -> Option<FrameForm> {
        let of_version = |version: MetaVersion| match version {
            MetaVersion::V1 => 0,
            MetaVersion::V1Beta1 => 1,
        };
        let shape = match self.form {
            EventForm::Whole => 0,
            EventForm::Metadata(version) => 1 + of_version(version),
            EventForm::Table { has_columns: true, version, include } => {
                let include = match include {
                    Include::Nothing => 0,
                    Include::Metadata => 1,
                    Include::Object => 2,
                };
                3 + 2 * include + of_version(version)
            }
            EventForm::Table { has_columns: false, .. } | EventForm::Impossible => return None,
        };
        let encoding = match self.encoding {
            Encoding::Json => 0,
            Encoding::Yaml => 1,
            Encoding::Protobuf => 2,
            Encoding::Cbor => 3,
        };
        Some(FrameForm::Sent { encoding, shape })
    }

    /// The frame of an event; `None` if its object cannot be shown so. `object` is what is shown of the object, `item`
    /// the one of the cache that it is, if it is one as it stands.
    pub(crate) fn frame(&self, name: &str, object: Bytes, item: Option<&Item>, now: Moment) -> Option<Bytes> {
        let shown = self.object(object, item, now)?;
        let mut out = BytesMut::with_capacity(shown.len() + 48);
        self.push_frame(name, &shown, &mut out);
        Some(out.freeze())
    }

    /// Appends the frame of an event straight to those before it; `false` if its object cannot be shown so.
    pub(crate) fn push(&self, name: &str, object: Bytes, item: &Item, now: Moment, out: &mut BytesMut) -> bool {
        match self.object(object, Some(item), now) {
            Some(shown) => {
                self.push_frame(name, &shown, out);
                true
            }
            None => false,
        }
    }

    /// The event that ends a watch which went wrong.
    pub(crate) fn error_frame(&self, status: &Status) -> Bytes {
        let json = Bytes::from(status.to_json());
        let shown = match self.encoding {
            Encoding::Json | Encoding::Yaml => escape_html(&json).into_owned().into(),
            Encoding::Protobuf | Encoding::Cbor => {
                self.codec.document(self.encoding, false, None, json).unwrap_or_default()
            }
        };
        let mut out = BytesMut::with_capacity(shown.len() + 48);
        self.push_frame("ERROR", &shown, &mut out);
        out.freeze()
    }

    /// The object of an event, with all that belongs to it.
    fn object(&self, object: Bytes, item: Option<&Item>, now: Moment) -> Option<Bytes> {
        let object = match (self.encoding, self.form) {
            (Encoding::Protobuf | Encoding::Cbor, EventForm::Whole | EventForm::Metadata(_)) => object,
            _ => as_json(&object).into_owned(),
        };
        match (self.encoding, self.form) {
            (_, EventForm::Impossible) => None,
            (Encoding::Protobuf, EventForm::Whole) => {
                let message = match item {
                    Some(item) => self.codec.item_message(&self.resource, item, &object),
                    None => self.codec.object_message(&self.resource, &object),
                };
                Some(enveloped(&self.resource.api_version, &self.resource.kind, &message))
            }
            (Encoding::Protobuf, EventForm::Metadata(version)) => {
                let message = self.codec.metadata_message(&table::metadata_of(Some(&self.resource), &object));
                Some(enveloped(version.api_version(), "PartialObjectMetadata", &message))
            }
            (Encoding::Cbor, EventForm::Whole) => {
                let part = match item {
                    Some(item) => self.codec.item_cbor(&self.resource, item, &object),
                    None => self.codec.object_cbor(&self.resource, &object),
                };
                Some(whole_cbor(&self.resource, &part))
            }
            (Encoding::Cbor, EventForm::Metadata(version)) => {
                let mut json = BytesMut::new();
                table::push_metadata(version, Some(&self.resource), &object, &mut json);
                self.codec.document(self.encoding, false, None, json.freeze()).ok()
            }
            (_, EventForm::Whole) => Some(object),
            (_, EventForm::Metadata(version)) => {
                let mut out = BytesMut::with_capacity(object.len());
                table::push_metadata(version, Some(&self.resource), &object, &mut out);
                Some(out.freeze())
            }
            (_, EventForm::Table { version, include, has_columns }) => {
                let rows = Rows { version, include, now };
                Some(table::of_one(rows, &self.resource, &object, !has_columns).freeze())
            }
        }
    }

    fn push_frame(&self, name: &str, object: &[u8], out: &mut BytesMut) {
        match self.encoding {
            Encoding::Json | Encoding::Yaml => {
                out.reserve(object.len() + 40);
                out.put_slice(b"{\"type\":\"");
                out.put_slice(name.as_bytes());
                out.put_slice(b"\",\"object\":");
                out.put_slice(object);
                out.put_slice(b"}\n");
            }
            // The length in four bytes, and an event without an envelope, whose object has one.
            Encoding::Protobuf => {
                let mut raw = vec![0x0a];
                push_varint(object.len() as u64, &mut raw);
                let mut start = vec![0x0a];
                push_varint(name.len() as u64, &mut start);
                start.extend_from_slice(name.as_bytes());
                start.push(0x12);
                push_varint((raw.len() + object.len()) as u64, &mut start);
                start.extend_from_slice(&raw);
                let length = start.len() + object.len();
                out.reserve(length + 4);
                out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
                out.put_slice(&start);
                out.put_slice(object);
            }
            Encoding::Cbor => {
                let mut start = CBOR_TAG.to_vec();
                start_cbor_map(2, &mut start);
                for text in ["type", name, "object"] {
                    push_cbor_text(text, &mut start);
                }
                out.put_slice(&start);
                out.put_slice(object);
            }
        }
    }

    /// Remembers that an event was sent.
    pub(crate) fn sent(&mut self) {
        if let EventForm::Table { has_columns, .. } = &mut self.form {
            *has_columns = true;
        }
    }
}
