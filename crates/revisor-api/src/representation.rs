//! [`Wanted`]: in which form and encoding a client wants objects, and objects, lists and events brought into it.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderMap;
use revisor_cache::Item;
use revisor_catalog::{Moment, Resource};
use revisor_object::{Object, Status, Value, parse_json};
use revisor_registry::{present, present_item};

use crate::negotiate::{Accepted, Answer, Encoding, Form, MetaVersion, negotiate};
use crate::query::Query;
use crate::table::{self, Include, Rows};
use crate::yaml_out;

/// What the client wants its answer to be.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    accepted: Accepted,
    /// Only looked at once there is something to show, as in the original: a write is done before it is refused.
    include: String,
}

impl Wanted {
    /// Reads it off the head of the request; a `Status` if it cannot be had.
    pub(crate) fn of(headers: &HeaderMap, query: &Query<'_>, answer: Answer) -> Result<Wanted, Box<Status>> {
        let accepted = negotiate(headers, answer)?;
        Ok(Wanted { accepted, include: query.text("includeObject").to_owned() })
    }

    /// One object in JSON in the form that is wanted.
    pub(crate) fn one(&self, resource: &Resource, object: Bytes, now: Moment) -> Result<Bytes, Box<Status>> {
        match self.accepted.form {
            Form::Whole => Ok(object),
            Form::Metadata(version) => {
                let mut out = BytesMut::with_capacity(object.len());
                table::push_metadata(version, &object, &mut out);
                Ok(out.freeze())
            }
            Form::MetadataList(_) => Err(no_list(resource)),
            Form::Table(version) => {
                let rows = Rows { version, include: Include::parse(&self.include)?, now };
                Ok(table::of_one(rows, resource, &object, true).freeze())
            }
        }
    }

    /// How lists are written.
    pub(crate) fn list(&self, resource: &Arc<Resource>, now: Moment) -> Result<ListShape, Box<Status>> {
        let items = match self.accepted.form {
            Form::Whole => Items::Whole,
            Form::Metadata(_) => {
                let kind = struct_name(resource, &resource.list_kind);
                return Err(not_acceptable(format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({kind})"
                )));
            }
            Form::MetadataList(version) => Items::Metadata(version),
            Form::Table(version) => Items::Rows(Rows { version, include: Include::parse(&self.include)?, now }),
        };
        Ok(ListShape { resource: resource.clone(), items, encoding: self.accepted.encoding })
    }

    /// How events are written.
    pub(crate) fn events(&self) -> Result<EventShape, Box<Status>> {
        Ok(match self.accepted.form {
            Form::Whole => EventShape::Whole,
            Form::Metadata(version) => EventShape::Metadata(version),
            Form::MetadataList(_) => EventShape::Impossible,
            Form::Table(version) => {
                EventShape::Table { version, include: Include::parse(&self.include)?, has_columns: false }
            }
        })
    }
}

fn not_acceptable(message: String) -> Box<Status> {
    let mut status = Status::not_acceptable(&[]);
    status.message = message;
    Box::new(status)
}

fn no_list(resource: &Resource) -> Box<Status> {
    let kind = struct_name(resource, &resource.kind);
    not_acceptable(format!("you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"))
}

/// What the original calls a kind in messages: the name of its struct.
fn struct_name(resource: &Resource, kind: &str) -> String {
    let package = match resource.group.as_str() {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next().unwrap_or_default(),
    };
    format!("*{package}.{kind}")
}

/// How a list is written: a head, items, a foot.
#[derive(Debug, Clone)]
pub(crate) struct ListShape {
    resource: Arc<Resource>,
    items: Items,
    encoding: Encoding,
}

#[derive(Debug, Clone, Copy)]
enum Items {
    Whole,
    Metadata(MetaVersion),
    Rows(Rows),
}

impl ListShape {
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Whether the items have an order of their own in this shape.
    pub(crate) fn is_ranked(&self) -> bool {
        matches!(self.items, Items::Rows(_)) && self.resource.columns.is_ranked()
    }

    /// The place of an object among others, where they have an order of their own.
    pub(crate) fn rank(&self, stored: &Bytes) -> Option<i64> {
        table::rank(&self.resource, &present(&self.resource, stored))
    }

    fn kind_and_version(&self) -> (&str, &str) {
        match self.items {
            Items::Whole => (&self.resource.list_kind, &self.resource.api_version),
            Items::Metadata(version) => ("PartialObjectMetadataList", version.api_version()),
            Items::Rows(rows) => ("Table", rows.version.api_version()),
        }
    }

    /// Everything before the first item. `metadata` is JSON.
    pub(crate) fn head(&self, metadata: &str) -> String {
        let (kind, api_version) = self.kind_and_version();
        match (self.encoding, self.items) {
            (Encoding::Json, Items::Rows(rows)) => {
                table::head(rows.version, metadata, self.resource.columns.definitions())
            }
            (Encoding::Json, Items::Whole | Items::Metadata(_)) => {
                format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":[")
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
        }
    }

    /// Appends one object as it is shown.
    pub(crate) fn push(&self, object: &[u8], is_first: bool, out: &mut BytesMut) {
        self.push_as(is_first, out, |out| self.push_json(object, out));
    }

    /// Appends one object of the cache.
    pub(crate) fn push_item(&self, item: &Item, is_first: bool, out: &mut BytesMut) {
        match self.remembered_rows() {
            Some(rows) => self.push_as(is_first, out, |out| rows.push_item(&self.resource, item, out)),
            None => {
                let object = &*present_item(&self.resource, item);
                self.push_as(is_first, out, |out| self.push_json(object, out));
            }
        }
    }

    /// Reads a byte of each part of memory from which this item will be written.
    pub(crate) fn touch(&self, item: &Item) -> usize {
        let of_object = item.bytes().first().copied();
        let of_row = self.remembered_rows().and_then(|_| table::first_byte_of_row(item));
        usize::from(of_object.unwrap_or_default()) + usize::from(of_row.unwrap_or_default())
    }

    /// How rows are written, if they are remembered: those of objects that are shown in the version they are stored in.
    fn remembered_rows(&self) -> Option<Rows> {
        match self.items {
            Items::Rows(rows) if self.resource.shape.is_stored() => Some(rows),
            Items::Rows(_) | Items::Whole | Items::Metadata(_) => None,
        }
    }

    /// Appends what `push_json` appends in JSON, in the list's encoding.
    fn push_as(&self, is_first: bool, out: &mut BytesMut, push_json: impl FnOnce(&mut BytesMut)) {
        match self.encoding {
            Encoding::Json => {
                if !is_first {
                    out.put_u8(b',');
                }
                push_json(out);
            }
            Encoding::Yaml => {
                if is_first {
                    out.put_u8(b'\n');
                }
                let mut json = BytesMut::new();
                push_json(&mut json);
                out.put_slice(yaml_out::element(&value(&json)).as_bytes());
            }
        }
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
            Items::Metadata(version) => table::push_metadata(version, object, out),
            Items::Rows(rows) => rows.push(&self.resource, object, out),
        }
    }

    /// Everything after the last item.
    pub(crate) fn foot(&self, metadata: &str, is_empty: bool) -> String {
        let nothing = if is_empty { " []\n" } else { "" };
        match (self.encoding, self.items) {
            (Encoding::Json, _) => "]}".to_owned(),
            (Encoding::Yaml, Items::Rows(_)) => nothing.to_owned(),
            (Encoding::Yaml, Items::Whole | Items::Metadata(_)) => {
                let (kind, _) = self.kind_and_version();
                nothing.to_owned() + &yaml_of([("kind", Value::from(kind)), ("metadata", value(metadata.as_bytes()))])
            }
        }
    }
}

/// What events show of their objects.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EventShape {
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
    /// A number for this shape, for those who share what is made in it. `None` if it is not shared.
    pub(crate) fn number(&self) -> Option<u8> {
        let of_version = |version: MetaVersion| match version {
            MetaVersion::V1 => 0,
            MetaVersion::V1Beta1 => 1,
        };
        match self {
            EventShape::Whole => Some(0),
            EventShape::Metadata(version) => Some(1 + of_version(*version)),
            EventShape::Table { has_columns: true, version, include } => {
                let include = match include {
                    Include::Nothing => 0,
                    Include::Metadata => 1,
                    Include::Object => 2,
                };
                Some(3 + 2 * include + of_version(*version))
            }
            EventShape::Table { has_columns: false, .. } | EventShape::Impossible => None,
        }
    }

    /// The object of an event in this shape; `None` if that cannot be.
    pub(crate) fn object(&self, resource: &Resource, object: Bytes, now: Moment) -> Option<Bytes> {
        match *self {
            EventShape::Whole => Some(object),
            EventShape::Metadata(version) => {
                let mut out = BytesMut::with_capacity(object.len());
                table::push_metadata(version, &object, &mut out);
                Some(out.freeze())
            }
            EventShape::Table { version, include, has_columns } => {
                let rows = Rows { version, include, now };
                Some(table::of_one(rows, resource, &object, !has_columns).freeze())
            }
            EventShape::Impossible => None,
        }
    }

    /// Remembers that an event was sent.
    pub(crate) fn sent(&mut self) {
        if let EventShape::Table { has_columns, .. } = self {
            *has_columns = true;
        }
    }
}

/// A JSON document as YAML; as it is if it is no JSON.
pub(crate) fn yaml_from_json(json: &[u8]) -> Bytes {
    match parse_json(json) {
        Ok(parsed) => yaml_out::document(&parsed.value).into(),
        Err(_) => Bytes::copy_from_slice(json),
    }
}

/// What this server wrote as JSON.
fn value(json: &[u8]) -> Value {
    parse_json(json).map(|parsed| parsed.value).unwrap_or_default()
}

fn yaml_of<const N: usize>(members: [(&str, Value); N]) -> String {
    yaml_out::document(&Value::from(members.into_iter().collect::<Object>()))
}
