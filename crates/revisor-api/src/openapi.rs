//! What is served, described for programs: kubectl checks files against it and explains fields from it.
//!
//! OpenAPI 3 is one document per group and version, a few about the rest, and a root that tells where each of them is. An
//! address in the root carries the hash of what stands there, so a client keeps a document until the root names another.
//! Swagger 2 is one document for everything. The operations are made in `paths`, the types in `schemas` and `custom`; all
//! from the catalog alone, so what is not served is not described. `swagger` says the same in the words of the older
//! form; `document_protobuf` and `swagger_protobuf` write both as some clients ask for them.
//!
//! Nothing is made before somebody asks, and nothing twice: what is built in is written once (`library`), what is said
//! of a group and version is kept until its resources change, and who asks for what is being made waits for it.

mod annotations;
mod custom;
mod descriptions;
mod document;
mod document_protobuf;
mod enums;
mod general;
mod library;
mod parameters;
mod paths;
mod schemas;
mod swagger;
mod swagger_protobuf;
mod wire;

pub(crate) use descriptions::Descriptions;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, HeaderValue, LOCATION, VARY};
use http::{HeaderMap, Request, Response, StatusCode};
use revisor_aggregator::Registration;
use revisor_catalog::Feature;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use self::document::Source;
use self::library::Library;
use self::swagger::{Part, SwaggerParts, VersionSwagger};
use crate::publication::{Publication, path_of};
use crate::query::Query;
use crate::tag::Tag;
use crate::{Body, answer, negotiate};

/// For so long a client may keep what it asked for by its hash.
const KEPT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

const JSON: &str = "application/json";

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Json,
    Protobuf,
}

/// What is said of everything that is built in.
#[derive(Debug)]
pub(crate) struct Constants {
    /// What the documents call their version.
    release: Arc<str>,
    texts: Arc<OnceLock<Descriptions>>,
    /// The paths of the groups and versions that this is about.
    built_in: Vec<String>,
    library: OnceLock<Library>,
    /// The documents that are not about the resources of a group and version, by their paths.
    others: OnceLock<BTreeMap<String, VersionOpenApi>>,
    /// What of the older form stays the same.
    swagger: SwaggerParts,
}

/// The document of one group and version, and what stands of it in the older form. Its hash is wanted by everyone who
/// reads the root, the document itself by few: it is kept only from when somebody reads it.
#[derive(Debug, Default)]
pub(crate) struct VersionOpenApi {
    written: Mutex<Written>,
    protobuf: OnceLock<Bytes>,
    swagger: VersionSwagger,
}

#[derive(Debug, Default)]
struct Written {
    tag: Option<Arc<Tag>>,
    body: Option<Bytes>,
}

/// The documents that are about everything.
#[derive(Debug, Default)]
pub(crate) struct OpenApiDocuments {
    root: OnceLock<Bytes>,
    /// What other servers add to the older form.
    swagger_of_others: OnceLock<Vec<Part>>,
    swagger_tag: OnceLock<Tag>,
    swagger_json: OnceLock<Bytes>,
    swagger_protobuf: OnceLock<Bytes>,
}

impl Constants {
    pub(crate) fn new(release: Arc<str>, texts: Arc<OnceLock<Descriptions>>, built_in: Vec<String>) -> Constants {
        Constants {
            release,
            texts,
            built_in,
            library: OnceLock::new(),
            others: OnceLock::new(),
            swagger: SwaggerParts::default(),
        }
    }

    /// Whether the groups and versions at these paths are the built-in ones.
    pub(crate) fn is_about(&self, built_in: &[String]) -> bool {
        self.built_in == built_in
    }
}

impl VersionOpenApi {
    /// The hash of the document.
    fn tag(&self, write: impl Fn() -> String) -> Arc<Tag> {
        self.read(write, |_| false).0
    }

    /// The hash of the document, and if that makes somebody want it, the document. It is written at most once for this.
    fn read(&self, write: impl Fn() -> String, is_wanted: impl FnOnce(&Tag) -> bool) -> (Arc<Tag>, Option<Bytes>) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = None;
        let tag = match &written.tag {
            Some(tag) => tag.clone(),
            None => {
                let text = Bytes::from(write());
                let tag = Arc::new(Tag::of(&text));
                written.tag = Some(tag.clone());
                fresh = Some(text);
                tag
            }
        };
        let body = is_wanted(&tag).then(|| {
            let make = || fresh.unwrap_or_else(|| write().into());
            written.body.get_or_insert_with(make).clone()
        });
        (tag, body)
    }

    /// The same document in protobuf.
    fn protobuf(&self, write: impl Fn() -> String) -> Bytes {
        let made = self.protobuf.get_or_init(|| {
            let kept = self.written.lock().unwrap_or_else(PoisonError::into_inner).body.clone();
            let text = kept.unwrap_or_else(|| write().into());
            let document: Value = serde_json::from_slice(&text).expect("documents are JSON");
            document_protobuf::encode(&document).into()
        });
        made.clone()
    }
}

impl Publication {
    /// The answer to a request for the path `rest` below `/openapi/v3`, whatever its method is.
    pub(crate) fn openapi_v3<B>(&self, rest: &str, request: &Request<B>, now: SystemTime) -> Response<Body> {
        if rest.is_empty() {
            let mut response = answer::json(StatusCode::OK, self.openapi_root());
            // The original names no type, and its server takes the document for a text.
            let text = HeaderValue::from_static("text/plain; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, text);
            return response;
        }
        match (self.version(rest), self.others().get(rest)) {
            (Some(version), _) => {
                hashed(&version.openapi, || self.source().version(&version.known), rest, request, now)
            }
            (None, Some(other)) => hashed(other, || self.source().other(rest), rest, request, now),
            (None, None) => empty(StatusCode::NOT_FOUND),
        }
    }

    /// The answer to a request for `/openapi/v2`, whatever its method is.
    pub(crate) fn openapi_v2<B>(&self, request: &Request<B>) -> Response<Body> {
        let Some(encoding) = negotiate::first_accepted(request.headers(), swagger_protobuf::OFFERED) else {
            return not_acceptable(VARY_OF_SWAGGER);
        };
        let tag = self.swagger_tag();
        let mut response = if tag.is_known(request.headers()) {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            match encoding {
                Encoding::Json => answer::json(StatusCode::OK, self.swagger_json()),
                Encoding::Protobuf => protobuf(self.swagger_protobuf(), swagger_protobuf::MEDIA_TYPE),
            }
        };
        add_tag(response.headers_mut(), tag);
        response.headers_mut().insert(VARY, VARY_OF_SWAGGER);
        response
    }

    /// What people are told about built-in types.
    fn texts(&self) -> &Descriptions {
        self.constants.texts.get_or_init(|| Descriptions::unpack(self.catalog.features().has(Feature::OpenAPIEnums)))
    }

    fn library(&self) -> &Library {
        self.constants.library.get_or_init(|| Library::of(&self.catalog, self.texts()))
    }

    fn source(&self) -> Source<'_> {
        Source {
            types: self.catalog.types(),
            library: self.library(),
            texts: self.texts(),
            release: &self.constants.release,
        }
    }

    /// The documents that are not about the resources of a group and version.
    fn others(&self) -> &BTreeMap<String, VersionOpenApi> {
        self.constants.others.get_or_init(|| {
            let built_in = self.versions.iter().filter(|version| version.is_built_in());
            let groups = built_in.map(|version| &*version.known.group).filter(|group| !group.is_empty());
            let paths = groups.map(|group| format!("/apis/{group}"));
            let all = document::OTHERS.iter().map(|path| (*path).to_owned()).chain(paths);
            all.map(|path| (path, VersionOpenApi::default())).collect()
        })
    }

    /// The documents that other servers have, by their names.
    pub(crate) fn documents_of_others(&self) -> &BTreeMap<String, (String, Arc<Registration>)> {
        self.documents_of_others.get_or_init(|| {
            let is_own = |name: &str| {
                let path = format!("/{name}");
                self.version(&path).is_some() || self.others().contains_key(&path)
            };
            self.view.as_ref().map(|view| view.documents(is_own)).unwrap_or_default()
        })
    }

    fn openapi_root(&self) -> Bytes {
        let made = self.openapi.root.get_or_init(|| {
            let versions = self.versions.iter().map(|version| {
                (path_of(&version.known), version.openapi.tag(|| self.source().version(&version.known)))
            });
            let others = self.others().iter();
            let others = others.map(|(path, other)| (path.clone(), other.tag(|| self.source().other(path))));
            let own = others.chain(versions).map(|(path, tag)| {
                let address = address(&path, &tag);
                (path.trim_start_matches('/').to_owned(), address)
            });
            let of_others = self.documents_of_others().iter();
            let of_others = of_others.map(|(name, (address, _))| (name.clone(), address.clone()));
            // Of two with one name, the one counts that is served by others.
            let addresses: Map<String, Value> =
                own.chain(of_others).map(|(name, address)| (name, json!({"serverRelativeURL": address}))).collect();
            json!({"paths": addresses}).to_string().into()
        });
        made.clone()
    }
}

/// Answers with a document that has its hash in its address.
fn hashed<B>(
    document: &VersionOpenApi,
    write: impl Fn() -> String,
    path: &str,
    request: &Request<B>,
    now: SystemTime,
) -> Response<Body> {
    let Some(encoding) = negotiate::first_accepted(request.headers(), document_protobuf::OFFERED) else {
        return not_acceptable(VARY_OF_DOCUMENTS);
    };
    let query = Query::parse(request.uri().query());
    let asked = query.text("hash");
    let is_outdated = |tag: &Tag| !asked.is_empty() && asked != tag.hash();
    let is_wanted = |tag: &Tag| !is_outdated(tag) && !tag.is_known(request.headers());
    let (tag, body) = document.read(&write, |tag| encoding == Encoding::Json && is_wanted(tag));
    if is_outdated(&tag) {
        return moved(path, &tag);
    }
    let mut response = match body {
        Some(body) => answer::json(StatusCode::OK, body),
        None if is_wanted(&tag) => protobuf(document.protobuf(&write), document_protobuf::MEDIA_TYPE),
        None => empty(StatusCode::NOT_MODIFIED),
    };
    let headers = response.headers_mut();
    add_tag(headers, &tag);
    if !asked.is_empty() {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        headers.insert(EXPIRES, http_date(now + KEPT));
    }
    response
}

/// Sends a client that knows an older document to the current one.
fn moved(path: &str, tag: &Tag) -> Response<Body> {
    // The move is true until the next change only, so nobody may keep it.
    let mut response = empty(StatusCode::MOVED_PERMANENTLY);
    let location = HeaderValue::try_from(address(path, tag)).expect("names of groups are plain text");
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    add_tag(headers, tag);
    response
}

/// What the swagger document depends on, and what those of versions do.
const VARY_OF_SWAGGER: HeaderValue = HeaderValue::from_static("Accept-Encoding, Accept");
const VARY_OF_DOCUMENTS: HeaderValue = HeaderValue::from_static("Accept");

fn not_acceptable(vary: HeaderValue) -> Response<Body> {
    let mut response = empty(StatusCode::NOT_ACCEPTABLE);
    response.headers_mut().insert(VARY, vary);
    response
}

fn protobuf(body: Bytes, media_type: &'static str) -> Response<Body> {
    let mut response = answer::json(StatusCode::OK, body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// An answer without a body that nobody may keep.
fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = code;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

fn add_tag(headers: &mut HeaderMap, tag: &Tag) {
    headers.insert(ETAG, tag.header());
    headers.insert(VARY, VARY_OF_DOCUMENTS);
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
