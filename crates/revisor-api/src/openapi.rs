//! [`OpenApi`]: what is served, described for programs: kubectl checks files against it and explains fields from it.
//!
//! There is one document per group and version, and a root that tells where each of them is. An address in the root
//! carries the hash of what stands there, so a client keeps a document until the root names another. The operations
//! are made in `paths`, the types in `schemas`; both from the catalog alone, so what is not served is not described.

mod paths;
mod schemas;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, EXPIRES, HeaderValue, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use revisor_catalog::{Catalog, GroupVersion};
use revisor_object::Status;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use crate::query::Query;
use crate::{Body, answer, negotiate};

/// The only form in which the documents are written.
const WRITTEN: &[&str] = &["application/json"];

/// For so long a client may keep what it asked for by its hash.
const KEPT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The documents, ready to be sent.
#[derive(Debug)]
pub(crate) struct OpenApi {
    root: Bytes,
    /// By path below the root: `/api/v1`.
    documents: BTreeMap<String, Document>,
}

#[derive(Debug)]
struct Document {
    body: Bytes,
    /// The hash of the body in hexadecimal digits.
    hash: String,
    /// The hash as a header has it.
    tag: HeaderValue,
}

impl OpenApi {
    /// Describes everything in the catalog. `release` is what the documents call their version.
    pub(crate) fn build(catalog: &Catalog, release: &str) -> OpenApi {
        let mut documents = BTreeMap::new();
        for known in catalog.group_versions() {
            let document = Document::new(&describe(catalog, known, release));
            documents.insert(path_of(known), document);
        }
        let addresses: serde_json::Map<String, Value> = documents
            .iter()
            .map(|(path, document)| {
                let name = path.trim_start_matches('/').to_owned();
                (name, json!({"serverRelativeURL": address(path, &document.hash)}))
            })
            .collect();
        OpenApi { root: json!({"paths": addresses}).to_string().into(), documents }
    }

    /// The answer to a request for the path `rest` below `/openapi/v3`.
    pub(crate) fn answer<B>(&self, rest: &str, request: &Request<B>, now: SystemTime) -> Response<Body> {
        let document = self.documents.get(rest);
        if document.is_none() && !rest.is_empty() {
            return answer::text(StatusCode::NOT_FOUND, "404 page not found\n");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return answer::status(&Status::method_not_allowed());
        }
        if !negotiate::accepts_json(request.headers()) {
            return answer::status(&Status::not_acceptable(WRITTEN));
        }
        match document {
            None => answer::json(StatusCode::OK, self.root.clone()),
            Some(document) => document.answer(rest, request, now),
        }
    }
}

impl Document {
    fn new(value: &Value) -> Document {
        let body: Bytes = value.to_string().into();
        let hash: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02X}")).collect();
        let tag = HeaderValue::try_from(format!("\"{hash}\"")).expect("hexadecimal digits in quotes are a header");
        Document { body, hash, tag }
    }

    fn answer<B>(&self, path: &str, request: &Request<B>, now: SystemTime) -> Response<Body> {
        let query = Query::parse(request.uri().query());
        let asked = query.text("hash");
        if !asked.is_empty() && asked != self.hash {
            return self.moved(path);
        }
        let mut response = if self.is_known(request.headers()) {
            let mut response = Response::new(Body::Empty);
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
            response
        } else {
            answer::json(StatusCode::OK, self.body.clone())
        };
        let headers = response.headers_mut();
        headers.insert(ETAG, self.tag.clone());
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        if !asked.is_empty() {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            headers.insert(EXPIRES, http_date(now + KEPT));
        }
        response
    }

    /// Sends a client that knows an older document to the current one.
    fn moved(&self, path: &str) -> Response<Body> {
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
        let location = HeaderValue::try_from(address(path, &self.hash)).expect("names of groups are plain text");
        let headers = response.headers_mut();
        headers.insert(LOCATION, location);
        headers.insert(ETAG, self.tag.clone());
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        // The move is true until the next release only.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        response
    }

    /// Whether the client has this document already. A weak tag counts too: a proxy that compresses makes them weak.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
        tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).as_bytes() == self.tag.as_bytes())
    }
}

fn path_of(known: &GroupVersion) -> String {
    match known.group.as_str() {
        "" => format!("/api/{}", known.version),
        group => format!("/apis/{group}/{}", known.version),
    }
}

fn address(path: &str, hash: &str) -> String {
    format!("/openapi/v3{path}?hash={hash}")
}

fn describe(catalog: &Catalog, known: &GroupVersion, release: &str) -> Value {
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": release},
        "paths": paths::of(known),
        "components": {
            "schemas": schemas::of(catalog.types(), known),
            "securitySchemes": {"BearerToken": {"type": "http", "scheme": "bearer"}},
        },
    })
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
