//! What is served, described for programs: kubectl checks files against it and explains fields from it.
//!
//! OpenAPI 3 is one document per group and version, and a root that tells where each of them is. An address in the root
//! carries the hash of what stands there, so a client keeps a document until the root names another. Swagger 2 is one
//! document for everything. The operations are made in `paths`, the types in `schemas` and `custom`; all from the catalog
//! alone, so what is not served is not described. `swagger` says the same in the words of the older form, and
//! `swagger_protobuf` writes that as older clients ask for it.

mod custom;
mod descriptions;
mod enums;
mod paths;
mod schemas;
mod swagger;
mod swagger_protobuf;

pub(crate) use descriptions::Descriptions;

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, HeaderValue, LOCATION, VARY};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use revisor_object::Status;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use self::custom::Form;
use crate::publication::{Publication, PublishedVersion, path_of};
use crate::query::Query;
use crate::tag::Tag;
use crate::{Body, answer, negotiate};

/// The only form in which the documents of OpenAPI 3 are written.
const WRITTEN: &[&str] = &["application/json"];

/// For so long a client may keep what it asked for by its hash.
const KEPT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Where the document of the server's own version stands.
const VERSION_PATH: &str = "/version";

/// The document of one group and version. Its hash is wanted by everyone who reads the root, the document itself by
/// few: it is kept only from when somebody reads it.
#[derive(Debug, Default)]
pub(crate) struct VersionOpenApi {
    tag: OnceLock<Tag>,
    body: OnceLock<Bytes>,
}

/// The documents that are about everything.
#[derive(Debug, Default)]
pub(crate) struct OpenApiDocuments {
    root: OnceLock<Bytes>,
    version: VersionOpenApi,
    swagger: OnceLock<Swagger>,
}

#[derive(Debug)]
struct Swagger {
    tag: Tag,
    json: Bytes,
    protobuf: Bytes,
}

impl VersionOpenApi {
    fn tag(&self, describe: impl Fn() -> Value) -> &Tag {
        self.tag.get_or_init(|| Tag::of(describe().to_string().as_bytes()))
    }

    fn body(&self, describe: impl Fn() -> Value) -> Bytes {
        self.body.get_or_init(|| describe().to_string().into()).clone()
    }
}

impl Publication {
    /// The answer to a request for the path `rest` below `/openapi/v3`.
    pub(crate) fn openapi_v3<B>(&self, rest: &str, request: &Request<B>, now: SystemTime) -> Response<Body> {
        let version = self.version(rest);
        if version.is_none() && !["", VERSION_PATH].contains(&rest) {
            return answer::text(StatusCode::NOT_FOUND, "404 page not found\n");
        }
        if let Some(refusal) = refuse_other_methods(request) {
            return refusal;
        }
        if !negotiate::accepts_json(request.headers()) {
            return answer::status(&Status::not_acceptable(WRITTEN));
        }
        match version {
            Some(version) => hashed(&version.openapi, || self.describe(version), rest, request, now),
            None if rest.is_empty() => answer::json(StatusCode::OK, self.openapi_root()),
            None => hashed(&self.openapi.version, || self.describe_version(), rest, request, now),
        }
    }

    /// The answer to a request for `/openapi/v2`.
    pub(crate) fn openapi_v2<B>(&self, request: &Request<B>) -> Response<Body> {
        if let Some(refusal) = refuse_other_methods(request) {
            return refusal;
        }
        let Some(encoding) = swagger_protobuf::negotiate(request.headers()) else {
            return answer::status(&Status::not_acceptable(swagger_protobuf::WRITTEN));
        };
        let swagger = self.swagger();
        let mut response = if swagger.tag.is_known(request.headers()) {
            not_modified()
        } else {
            let body = if encoding.is_protobuf { swagger.protobuf.clone() } else { swagger.json.clone() };
            answer::json(StatusCode::OK, body)
        };
        let headers = response.headers_mut();
        if encoding.is_protobuf && headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(swagger_protobuf::MEDIA_TYPE));
        }
        headers.insert(ETAG, swagger.tag.header());
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        response
    }

    fn openapi_root(&self) -> Bytes {
        let made = self.openapi.root.get_or_init(|| {
            let versions = self.versions.iter().map(|version| {
                let path = path_of(&version.known);
                let address = address(&path, version.openapi.tag(|| self.describe(version)));
                (path, address)
            });
            let version = address(VERSION_PATH, self.openapi.version.tag(|| self.describe_version()));
            let addresses: Map<String, Value> = versions
                .chain([(VERSION_PATH.to_owned(), version)])
                .map(|(path, address)| (path.trim_start_matches('/').to_owned(), json!({"serverRelativeURL": address})))
                .collect();
            json!({"paths": addresses}).to_string().into()
        });
        made.clone()
    }

    fn swagger(&self) -> &Swagger {
        self.openapi.swagger.get_or_init(|| {
            let document = swagger::document(self);
            let json = Bytes::from(document.to_string());
            Swagger { tag: Tag::of(&json), json, protobuf: swagger_protobuf::encode(&document).into() }
        })
    }

    /// The document of a group and version.
    fn describe(&self, version: &PublishedVersion) -> Value {
        let types = self.catalog.types();
        let schemas = schemas::of(types, &version.known, self.texts(), Form::V3);
        self.document(paths::of(types, &version.known), schemas.into_iter().collect())
    }

    /// The document of the server's own version.
    fn describe_version(&self) -> Value {
        self.document(paths::of_version(), Map::from_iter([schemas::of_version(self.texts())]))
    }

    fn document(&self, paths: Map<String, Value>, schemas: Map<String, Value>) -> Value {
        json!({
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": &*self.release},
            "paths": paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {"BearerToken": {"type": "http", "scheme": "bearer"}},
            },
        })
    }
}

fn refuse_other_methods<B>(request: &Request<B>) -> Option<Response<Body>> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    (!is_read).then(|| answer::status(&Status::method_not_allowed()))
}

/// Answers with a document that has its hash in its address.
fn hashed<B>(
    document: &VersionOpenApi,
    describe: impl Fn() -> Value,
    path: &str,
    request: &Request<B>,
    now: SystemTime,
) -> Response<Body> {
    let tag = document.tag(&describe);
    let query = Query::parse(request.uri().query());
    let asked = query.text("hash");
    if !asked.is_empty() && asked != tag.hash() {
        return moved(path, tag);
    }
    let mut response = if tag.is_known(request.headers()) {
        not_modified()
    } else {
        answer::json(StatusCode::OK, document.body(&describe))
    };
    let headers = response.headers_mut();
    add_tag(headers, tag);
    if !asked.is_empty() {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        headers.insert(EXPIRES, http_date(now + KEPT));
    }
    response
}

/// Sends a client that knows an older document to the current one.
fn moved(path: &str, tag: &Tag) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let location = HeaderValue::try_from(address(path, tag)).expect("names of groups are plain text");
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    add_tag(headers, tag);
    // The move is true until the next change only.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

fn not_modified() -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

fn add_tag(headers: &mut HeaderMap, tag: &Tag) {
    headers.insert(ETAG, tag.header());
    headers.insert(VARY, HeaderValue::from_static("Accept"));
}

fn address(path: &str, tag: &Tag) -> String {
    format!("/openapi/v3{path}?hash={}", tag.hash())
}

/// A point in time as headers have it.
fn http_date(at: SystemTime) -> HeaderValue {
    let at = OffsetDateTime::from(at);
    let (day, month) = (at.weekday().to_string(), at.month().to_string());
    let text = format!(
        "{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
        &day[..3],
        at.day(),
        &month[..3],
        at.year(),
        at.hour(),
        at.minute(),
        at.second()
    );
    HeaderValue::try_from(text).expect("letters, digits and punctuation are a header")
}

#[cfg(test)]
mod tests;
