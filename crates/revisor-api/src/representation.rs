//! [`Representation`]: what the answers to a request look like. Decided once, when its head was read; every answer is
//! written by it: an object, a list, the events of a watch, a document of discovery, a status.

mod codec;
mod event_shape;
mod list_shape;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use revisor_audit::AuditRecord;
use revisor_cache::Item;
use revisor_catalog::{Moment, ObjectRoute, Resource, Route, Verb};
use revisor_object::Status;

pub(crate) use codec::{Codec, as_json, no_yaml};
use event_shape::EventForm;
pub(crate) use event_shape::EventShape;
use list_shape::Items;
pub(crate) use list_shape::{ListMetadata, ListShape};

use crate::audit_trail::Audited;
use crate::encoding::Encoding;
use crate::negotiate::{self, Accepted, Chosen, Form, Offer, RouteTypes, TEXT};
use crate::query::Query;
use crate::table::{self, Include, Rows};
use crate::{Body, answer};

/// What kind of answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// One object.
    Object,
    /// A list.
    List,
    /// The changes of a list.
    Events,
    /// What a container says, which is text.
    Log,
}

/// What the answers to a request look like.
#[derive(Debug)]
pub(crate) struct Representation {
    codec: Arc<Codec>,
    /// What is on offer at all.
    encodings: &'static [Encoding],
    /// The resource that the request is about.
    resource: Option<Arc<Resource>>,
    /// Whether the type alone would do.
    route_types: RouteTypes,
    /// Whether the request is about the scale of an object.
    is_of_scale: bool,
    /// What objects look like; `None` if nothing of what is accepted can be had.
    accepted: Option<Accepted>,
    /// What that looks like which has one form only.
    plain: Option<Accepted>,
    /// Whether a person is reading.
    is_for_person: bool,
    /// What is written down of the request, and so of what is answered.
    audited: Audited,
    /// Only looked at once there is something to show, as in the original: a write is done before it is refused.
    include: String,
}

/// Kinds whose status has no columns although they have.
const STATUS_WITHOUT_COLUMNS: &[&str] = &[
    "apiservices",
    "customresourcedefinitions",
    "devicetaintrules",
    "podgroups",
    "resourceclaims",
    "resourcepoolstatusrequests",
];

/// Whether what a route of a built-in kind is about has columns: as in the original, where a storage may lack the
/// `TableConvertor`, questions and most parts of objects have none.
fn has_columns(route: &ObjectRoute) -> bool {
    let resource = &route.resource;
    match route.subresource.as_deref() {
        None => resource.verbs.contains(&Verb::Get),
        Some("status") => !STATUS_WITHOUT_COLUMNS.contains(&resource.plural.as_str()),
        Some("scale") => true,
        // A part of what Revisor adds.
        Some("fields") => true,
        Some(_) => false,
    }
}

impl Representation {
    /// Reads it off the head of a request.
    pub(crate) fn of(
        codec: &Arc<Codec>,
        encodings: &'static [Encoding],
        route: &Route,
        headers: &HeaderMap,
        query: &Query<'_>,
    ) -> Representation {
        let resource = match route {
            Route::Objects(route) => Some(route.resource.clone()),
            _ => None,
        };
        let is_custom = resource.as_ref().is_some_and(|resource| resource.custom().is_some());
        let offer = match route {
            Route::Objects(_) if is_custom => Offer::Custom,
            Route::Objects(route) if !has_columns(route) => Offer::WithoutColumns,
            Route::Objects(_) => Offer::BuiltIn,
            _ => Offer::Plain,
        };
        let Chosen { objects: accepted, plain } = negotiate::choose(headers, offer, encodings);
        Representation {
            codec: codec.clone(),
            encodings,
            route_types: match is_custom {
                true => RouteTypes { object: true, text: false, sequence: false },
                false => RouteTypes::of(headers, encodings),
            },
            is_of_scale: matches!(route, Route::Objects(route) if route.subresource.as_deref() == Some("scale")),
            resource,
            accepted,
            plain,
            is_for_person: negotiate::is_pretty(headers, query.text("pretty")),
            audited: Audited::default(),
            include: query.text("includeObject").to_owned(),
        }
    }

    /// The same for a request that may be written down.
    pub(crate) fn audited(self, audited: Audited) -> Representation {
        Representation { audited, ..self }
    }

    /// What is written down of the request, if it is.
    pub(crate) fn record(&self) -> Option<&AuditRecord> {
        self.audited.record()
    }

    /// Writes down what is answered, if that is wanted.
    fn note(&self, json: &Bytes) {
        if let Some(record) = self.record() {
            record.answered(as_json(json).into_owned());
        }
    }

    /// That of a request for a path of the server's own.
    #[cfg(test)]
    pub(crate) fn of_own(headers: &HeaderMap) -> Representation {
        let codec = Codec::new(revisor_catalog::Catalog::default().types().clone());
        Representation::of(&Arc::new(codec), Encoding::ALL, &Route::Other, headers, &Query::parse(None))
    }

    /// Refuses a client that cannot have such an answer.
    pub(crate) fn require(&self, answer: Answer) -> Result<(), Box<Status>> {
        self.wanted(answer).map(|_| ())
    }

    /// Refuses a client that accepts none of the types, whatever their parameters.
    pub(crate) fn require_route(&self) -> Result<(), Box<Status>> {
        match self.passes_route() {
            true => Ok(()),
            false => Err(negotiate::route_refusal(&Encoding::media_types(self.encodings))),
        }
    }

    fn wanted(&self, answer: Answer) -> Result<Accepted, Box<Status>> {
        let (before, behind): (&[&str], _) = match answer {
            Answer::Object => (&[], Vec::new()),
            Answer::List | Answer::Events => (&[], Encoding::stream_types(self.encodings)),
            Answer::Log => (&[TEXT], Vec::new()),
        };
        let RouteTypes { object, text, sequence } = self.route_types;
        let passes = match answer {
            Answer::Object => object,
            Answer::List | Answer::Events => object || sequence,
            Answer::Log => object || text,
        };
        if !passes {
            let offered = [before, &Encoding::media_types(self.encodings), &behind].concat();
            return Err(negotiate::route_refusal(&offered));
        }
        let refused = || Box::new(Status::not_acceptable(&Encoding::media_types(self.encodings)));
        let accepted = self.accepted.ok_or_else(refused)?;
        if answer == Answer::Events && accepted.encoding.stream_type().is_none() {
            return Err(Box::new(Status::not_acceptable(&Encoding::stream_types(self.encodings))));
        }
        Ok(accepted)
    }

    /// Whether the types that the client accepts got it as far as the kind of its objects.
    pub(crate) fn passes_route(&self) -> bool {
        self.route_types.object
    }

    /// Whether to write an object in this representation is more than to copy it.
    pub(crate) fn is_work(&self) -> bool {
        let is_plain = |accepted: Accepted| {
            accepted.encoding == Encoding::Json && accepted.form == Form::Whole && !self.is_pretty(accepted)
        };
        !self.accepted.is_some_and(is_plain)
    }

    fn is_pretty(&self, accepted: Accepted) -> bool {
        self.is_for_person || accepted.is_pretty
    }

    /// One object. `json` is what is shown of it, `item` the one of the cache that it is, if it is one as it stands.
    pub(crate) fn object(
        &self,
        code: StatusCode,
        json: Bytes,
        item: Option<&Item>,
        now: Moment,
    ) -> Result<Response<Body>, Box<Status>> {
        let accepted = self.wanted(Answer::Object)?;
        let (encoding, is_pretty) = (accepted.encoding, self.is_pretty(accepted));
        let resource = self.resource.as_deref();
        let body = match (accepted.form, resource) {
            (Form::Whole, Some(resource)) => {
                self.note(&json);
                match item {
                    Some(item) => self.codec.item_document(encoding, is_pretty, resource, item, json)?,
                    None => self.codec.document(encoding, is_pretty, Some(resource), json)?,
                }
            }
            (Form::Metadata(version), _) => {
                let mut out = BytesMut::with_capacity(json.len());
                table::push_metadata(version, resource, &json, &mut out);
                let metadata = out.freeze();
                self.note(&metadata);
                self.codec.document(encoding, is_pretty, None, metadata)?
            }
            (Form::MetadataList(_), Some(resource)) => return Err(no_list(resource, self.is_of_scale)),
            (Form::Table(version), Some(resource)) => {
                let rows = Rows { version, include: Include::parse(&self.include)?, now };
                let table = table::of_one(rows, resource, &as_json(&json), true).freeze();
                self.note(&table);
                self.codec.document(encoding, is_pretty, None, table)?
            }
            (_, None) => {
                self.note(&json);
                self.codec.document(encoding, is_pretty, None, json)?
            }
        };
        Ok(answer::encoded(code, encoding, body))
    }

    /// What is on offer at all.
    pub(crate) fn encodings(&self) -> &'static [Encoding] {
        self.encodings
    }

    /// How lists are written.
    pub(crate) fn list(&self, resource: &Arc<Resource>, now: Moment) -> Result<ListShape, Box<Status>> {
        let accepted = self.wanted(Answer::List)?;
        let items = match accepted.form {
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
        Ok(ListShape {
            resource: resource.clone(),
            items,
            encoding: accepted.encoding,
            is_pretty: self.is_pretty(accepted),
            codec: self.codec.clone(),
        })
    }

    /// How events are written.
    pub(crate) fn events(&self, resource: &Arc<Resource>) -> Result<EventShape, Box<Status>> {
        let accepted = self.wanted(Answer::Events)?;
        let form = match accepted.form {
            Form::Whole => EventForm::Whole,
            Form::Metadata(version) => EventForm::Metadata(version),
            Form::MetadataList(_) => EventForm::Impossible,
            Form::Table(version) => {
                EventForm::Table { version, include: Include::parse(&self.include)?, has_columns: false }
            }
        };
        Ok(EventShape { resource: resource.clone(), form, encoding: accepted.encoding, codec: self.codec.clone() })
    }

    /// The answer that is a stream of such events.
    pub(crate) fn stream(&self, body: Body) -> Response<Body> {
        let encoding = self.accepted.map_or(Encoding::Json, |accepted| accepted.encoding);
        let mut response = answer::encoded(StatusCode::OK, encoding, body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(encoding.watch_type()));
        response
    }

    /// A document of discovery, which has one form only.
    pub(crate) fn document(&self, json: Bytes) -> Result<Response<Body>, Box<Status>> {
        let refused = || Box::new(Status::not_acceptable(&Encoding::media_types(self.encodings)));
        let plain = self.plain.ok_or_else(refused)?;
        self.note(&json);
        let body = self.codec.document(plain.encoding, self.is_pretty(plain), None, json)?;
        Ok(answer::encoded(StatusCode::OK, plain.encoding, body))
    }

    /// A document that is known by a tag, and so the same for people and programs.
    pub(crate) fn tagged(&self, encoding: Encoding, json: Bytes) -> Result<Bytes, Box<Status>> {
        self.codec.document(encoding, false, None, json)
    }

    /// A page of the server about itself.
    pub(crate) fn page(&self, encoding: Encoding, is_pretty: bool, json: Bytes) -> Result<Bytes, Box<Status>> {
        self.codec.document(encoding, is_pretty || self.is_for_person, None, json)
    }

    /// That something was done of which there is no object to show. It comes as the object would have.
    pub(crate) fn done(&self, code: StatusCode, status: &Status) -> Response<Body> {
        self.write_status(code, status, self.accepted)
    }

    /// Why something was not done. Who accepts nothing that it could be written as gets JSON for people.
    pub(crate) fn status(&self, status: &Status) -> Response<Body> {
        let code = StatusCode::from_u16(status.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = self.write_status(code, status, self.plain);
        if let Some(seconds) = status.retry_after() {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// The same of what did not get past the route of a built-in kind. As in the original, routes know nothing of CBOR.
    pub(crate) fn status_at_route(&self, status: &Status) -> Response<Body> {
        let code = StatusCode::from_u16(status.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.write_status(code, status, self.plain.filter(|plain| plain.encoding != Encoding::Cbor))
    }

    fn write_status(&self, code: StatusCode, status: &Status, accepted: Option<Accepted>) -> Response<Body> {
        let (encoding, is_pretty) = match accepted {
            Some(accepted) => (accepted.encoding, self.is_pretty(accepted)),
            None => (Encoding::Json, true),
        };
        let json = Bytes::from(status.to_json());
        if let Some(record) = self.record() {
            record.answered_status(status);
        }
        match self.codec.document(encoding, is_pretty, None, json.clone()) {
            Ok(body) => answer::encoded(code, encoding, body),
            // What it says cannot be said so.
            Err(_) => answer::encoded(code, Encoding::Json, json),
        }
    }
}

fn not_acceptable(message: String) -> Box<Status> {
    let mut status = Status::not_acceptable(&[]);
    status.message = message;
    Box::new(status)
}

fn no_list(resource: &Resource, is_of_scale: bool) -> Box<Status> {
    let kind = match (resource.custom().is_some(), is_of_scale) {
        (true, false) => return Box::new(Status::unexplained("content is not a list")),
        (true, true) => "*v1.Scale".to_owned(),
        (false, true) => "*autoscaling.Scale".to_owned(),
        (false, false) => struct_name(resource, &resource.kind),
    };
    not_acceptable(format!("you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"))
}

/// What the original calls a kind in messages: the name of its struct.
fn struct_name(resource: &Resource, kind: &str) -> String {
    if resource.custom().is_some() {
        let list = if kind == resource.list_kind { "List" } else { "" };
        return format!("*unstructured.Unstructured{list}");
    }
    let package = match resource.group.as_str() {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next().unwrap_or_default(),
    };
    format!("*{package}.{kind}")
}
