//! [`Api`]: the way of a request: who asks, may they, is there room, what is it about, and the answer.
//!
//! A request that cannot be authorised is answered before its body is read (A2).

mod admitted;
mod asked;
mod own_paths;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::header::USER_AGENT;
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use revisor_aggregator::Aggregator;
use revisor_audit::Auditor;
use revisor_auth::{
    AuthenticationNotes, Authenticator, Authorizer, Impersonation, Peer, PeerVerifier, authorization_warning,
};
use revisor_catalog::{Feature, Features, ObjectRoute, Route, Verb};
use revisor_object::{ResourceRef, Status};
use revisor_registry::{Registry, Workbench};
use rustls_pki_types::CertificateDer;

use self::admitted::Admitted;
pub(crate) use self::admitted::{ClientAddress, forbidden};
pub(crate) use self::asked::Asked;
use self::asked::{is_no_path, is_unwatchable, without_verb};
use crate::accounting::Accounting;
use crate::aggregation::{self, Aggregated as AggregatedRoute};
use crate::audit_trail::{AuditTrail, Audited};
use crate::discovery::Aggregated;
use crate::encoding::Encoding;
use crate::metrics::DeprecatedApi;
use crate::objects::Insides;
use crate::passed_on::PassedOn;
use crate::publication::{Publication, Publications};
use crate::representation::{Codec, Representation};
use crate::skewed_clients::SkewedClients;
use crate::unread_body::UnreadBody;
use crate::{
    Body, CompressedPieces, DebugPages, Drain, Handler, HealthChecks, Inflight, InflightGuard, Kubelets, Metrics,
    Standing, StatusPages, accepts_gzip, answer, maybe_compress, negotiate,
};

/// How many bytes are a short answer: as many as the original's connections gather before they write.
const SHORT: u64 = 4096;

/// What an [`Api`] is made of.
pub struct ApiOptions {
    /// Serves the objects.
    pub registry: Arc<Registry>,
    /// Knows who asks.
    pub authenticator: Authenticator,
    /// Knows what clients' certificates are worth.
    pub peers: PeerVerifier,
    /// Knows who may.
    pub authorizer: Authorizer,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Writes down who did what, if that is wanted.
    pub audit: Option<Arc<Auditor>>,
    /// Bounds the requests under way.
    pub inflight: Inflight,
    /// Answers whether the server is well.
    pub health: HealthChecks,
    /// Tells long-running requests that the server is going away.
    pub drain: Drain,
    /// Where those outside reach the server: a host and a port.
    pub external_address: String,
    /// What `/version` answers.
    pub version: serde_json::Value,
    /// What `/statusz` and `/flagz` answer.
    pub pages: StatusPages,
    /// What `/debug/pprof` and `/debug/flags` answer, if they are there.
    pub debug: Option<DebugPages>,
    /// Passes requests on to API servers behind this one, if there may be any.
    pub aggregator: Option<Arc<Aggregator>>,
    /// Reaches kubelets.
    pub kubelets: Arc<Kubelets>,
    /// How long a request may take that is not a watch.
    pub request_timeout: Duration,
    /// How long a watch lasts at least, if the client does not say.
    pub min_request_timeout: Duration,
}

/// Answers every request of the server.
pub struct Api {
    pub(crate) options: ApiOptions,
    publications: Publications,
    /// Writes answers in the encodings that clients ask for.
    codec: Arc<Codec>,
    /// What was compressed lately.
    compressed: Arc<CompressedPieces>,
    impersonation: Impersonation,
    skewed_clients: SkewedClients,
    /// Where large requests are worked on.
    pub(crate) workbench: Arc<Workbench>,
    /// Reaches what runs in pods and on nodes.
    pub(crate) insides: Insides,
}

impl Api {
    /// An API with these parts.
    pub fn new(options: ApiOptions) -> Api {
        let release = |part: &str| options.version[part].as_str().unwrap_or_default();
        let publications = Publications::new(&format!("{}.{}", release("emulationMajor"), release("emulationMinor")));
        let is_constrained = options.registry.built_in().features().has(Feature::ConstrainedImpersonation);
        let impersonation = Impersonation::new(options.authorizer.clone(), is_constrained);
        let skewed_clients = SkewedClients::new(options.pages.version, options.metrics.clone());
        let workbench = Workbench::new(std::thread::available_parallelism().map_or(1, NonZero::get));
        let codec = Arc::new(Codec::new(options.registry.built_in().types().clone()));
        let compressed = Arc::default();
        let insides = Insides::default();
        Api { options, publications, codec, compressed, impersonation, skewed_clients, workbench, insides }
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

/// The client of a connection.
pub struct Client {
    address: IpAddr,
    /// Whose certificates it showed.
    peer: Arc<Peer>,
    /// The same certificates before those who believe proxies, if anybody does.
    proxy: Option<Peer>,
    standing: Arc<Standing>,
}

impl Handler for Api {
    type Connection = Client;

    fn connected(
        &self,
        address: SocketAddr,
        certificates: &[CertificateDer<'static>],
        standing: Arc<Standing>,
    ) -> Client {
        let proxy = self.options.authenticator.request_header().map(|known| known.peer(certificates));
        Client { address: address.ip(), peer: Arc::new(self.options.peers.peer(certificates)), proxy, standing }
    }

    async fn handle(self: Arc<Self>, connection: Arc<Client>, request: Request<Incoming>) -> Response<Body> {
        if !is_readable(request.uri().path()) {
            return answer::unreadable_path();
        }
        self.answer(&connection, UnreadBody::of(request)).await
    }
}

impl Api {
    /// The features that are on.
    pub(crate) fn features(&self) -> Features {
        self.options.registry.built_in().features()
    }

    /// What is on offer at a path. As in the original, CBOR is for objects, for what is told of built-in versions, and
    /// for the pages of the server about itself.
    fn encodings(&self, route: &Route, path: &str) -> &'static [Encoding] {
        let has_cbor = self.features().has(Feature::CBORServingAndStorage)
            && match route {
                Route::Objects(_) => true,
                Route::Resources { group, version } => self.is_built_in(group, version),
                Route::Other => self.options.pages.page(path).is_some(),
                _ => false,
            };
        Encoding::offered(has_cbor)
    }

    /// Whether a version is one of those that every server has.
    fn is_built_in(&self, group: &str, version: &str) -> bool {
        let mut known = self.options.registry.built_in().group_versions().iter();
        known.any(|known| known.group == group && known.version == version)
    }

    async fn answer(&self, client: &Client, mut request: Request<UnreadBody>) -> Response<Body> {
        let started = Instant::now();
        let route = self.route(&mut request);
        let audited = self.options.audit.as_ref().map_or_else(Audited::default, |_| Audited::unknown());
        let mut trail = AuditTrail::new(audited.clone(), SystemTime::now());
        let mut asked =
            Asked::new(&self.codec, self.encodings(&route, request.uri().path()), &route, &request, audited);
        if aggregation::is_watch(&request) {
            asked.verb = Some(Verb::Watch);
        }
        let metrics = &self.options.metrics;
        let series = asked.labels(&route, request.uri().path()).map(|labels| metrics.requests(&labels));
        let wants_gzip = self.features().has(Feature::APIResponseCompression) && accepts_gzip(request.headers());
        let warning = authorization_warning(request.headers());

        let mut notes = AuthenticationNotes::default();
        let admitted = self.admit(client, route, &asked, request, &mut notes).await;
        let Admitted { mut response, place, is_refused, is_served } = admitted;
        answer::add_warnings(&mut response, warning.map(str::to_owned).into_iter().chain(notes.warnings));
        let is_stream = matches!(response.status(), StatusCode::OK | StatusCode::SWITCHING_PROTOCOLS);
        let is_watch = asked.verb == Some(Verb::Watch) && is_stream;
        // What others answered is theirs.
        let is_passed_on = response.extensions().get::<PassedOn>().is_some();
        if !is_watch && !is_passed_on {
            response = maybe_compress(wants_gzip, &self.compressed, response).await;
        }
        if asked.method == Method::HEAD && !is_passed_on {
            response = without_body(response);
        }
        let code = response.status().as_u16();
        trail.answered(code, is_refused).await;
        let accounting = Accounting::of(&response);
        let queued = place.as_ref().map(InflightGuard::queued).unwrap_or_default();
        let elsewhere = accounting.elsewhere + queued;
        // As in the original, what is refused before it comes to whoever serves it is not counted.
        let series = series.filter(|_| is_served);
        if let Some(series) = series.as_ref().filter(|_| accounting.is_terminated) {
            series.terminated(code);
        }
        // A short answer needs nothing more of anybody: its place is free before the client can have it. As in the
        // original, whose handlers return before what they wrote is flushed.
        let place = place.filter(|_| !response.body().is_within(SHORT));
        response.map(|body| {
            body.on_end(move |bytes| {
                if let Some(series) = series {
                    series.observe(code, started.elapsed(), elsewhere, bytes);
                }
                drop(place);
                trail.complete();
            })
        })
    }

    async fn serve(&self, route: Route, asked: &Asked, request: Request<UnreadBody>) -> Response<Body> {
        let representation = &asked.representation;
        if let Some(AggregatedRoute(registration)) = request.extensions().get().cloned() {
            return Box::pin(self.serve_aggregated(&registration, request)).await;
        }
        match route {
            Route::Objects(route) => match asked.verb {
                Some(verb) => {
                    self.note_deprecated(&route, representation);
                    let agent = request.headers().get(USER_AGENT).and_then(|agent| agent.to_str().ok());
                    self.options.registry.note_request(&route.resource, verb, agent.unwrap_or_default());
                    self.serve_objects(route, verb, request, representation).await
                }
                None if is_unwatchable(&route, &request) => {
                    let resource = ResourceRef { group: &route.resource.group, resource: &route.resource.plural };
                    representation.status(&Status::method_not_supported(resource, Verb::Watch.as_str()))
                }
                None if is_no_path(&route) => representation.status(&Status::no_such_resource()),
                None if route.resource.custom().is_some() => without_verb(&route, request.method(), representation),
                None => representation.status(&Status::method_not_allowed()),
            },
            Route::NoSuchResource { unserved, is_custom } => {
                let mut response = match is_custom {
                    true => answer::no_such_page(),
                    false => representation.status(&Status::no_such_resource()),
                };
                answer::add_warnings(&mut response, unserved.iter().map(ToString::to_string));
                response
            }
            Route::NoSuchPart { resource, name } => {
                let of = ResourceRef { group: &resource.group, resource: &resource.plural };
                let mut response = representation.status(&Status::not_found(of, &name));
                answer::add_deprecation(&mut response, &resource);
                response
            }
            Route::CoreVersions => self.discover(&request, Aggregated::Core, representation),
            Route::Groups => self.discover(&request, Aggregated::Groups, representation),
            Route::Group(name) => discovered(representation, self.publication().group_document(&name)),
            Route::Resources { .. } if request.method() != Method::GET => {
                representation.status(&Status::method_not_allowed())
            }
            Route::Resources { group, version } => {
                let path =
                    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
                // What is told of custom resources has no route in the original, which would look at the type first.
                let refused = match self.is_built_in(&group, &version) {
                    true => representation.require_route().err(),
                    false => None,
                };
                match refused {
                    None => discovered(representation, self.publication().resources(&path)),
                    Some(refusal) => representation.status(&refusal),
                }
            }
            Route::Other => Box::pin(self.serve_other(asked, request)).await,
        }
    }

    /// Remembers that somebody asked for what will go.
    fn note_deprecated(&self, route: &ObjectRoute, representation: &Representation) {
        let Some(notice) = &route.resource.deprecation else { return };
        if let Some(record) = representation.record() {
            record.annotate("k8s.io/deprecated", "true");
            if !notice.removed.is_empty() {
                record.annotate("k8s.io/removed-release", &notice.removed);
            }
        }
        self.options.metrics.deprecated_api_requested(&DeprecatedApi {
            group: &route.resource.group,
            version: &route.resource.version,
            resource: &route.resource.plural,
            subresource: route.subresource.as_deref().unwrap_or_default(),
            removed: &notice.removed,
        });
    }

    /// `/api` and `/apis`, in the form that the client accepts. The latter is told whatever the method is.
    fn discover(
        &self,
        request: &Request<UnreadBody>,
        which: Aggregated,
        representation: &Representation,
    ) -> Response<Body> {
        let headers = request.headers();
        if which == Aggregated::Core && request.method() != Method::GET {
            return representation.status(&Status::method_not_allowed());
        }
        // One of them looks at the type alone before.
        if which == Aggregated::Core
            && let Err(refusal) = representation.require_route()
        {
            return representation.status(&refusal);
        }
        let publication = self.publication();
        // As in the original, the address that ends with a slash knows the plain form only.
        let is_plain = which == Aggregated::Groups && request.uri().path().ends_with('/');
        if let Some(encoding) = negotiate::aggregated_discovery(headers, Encoding::ALL).filter(|_| !is_plain) {
            return publication.aggregated(which, encoding, representation, headers);
        }
        let document = match which {
            Aggregated::Core => publication.core_versions(&self.options.external_address),
            Aggregated::Groups => publication.group_list(),
        };
        discovered(representation, Some(document))
    }

    /// What is told to clients of what is served now.
    fn publication(&self) -> Arc<Publication> {
        let view = self.options.aggregator.as_ref().map(|aggregator| aggregator.view());
        self.publications.of_all(&self.options.registry.catalog(), view.as_ref())
    }
}

/// Whether every percent sign of a path has the two digits that it needs. Without, Go's server hands it to nobody.
fn is_readable(path: &str) -> bool {
    let mut rest = path.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        match rest.get(at + 1..at + 3) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => rest = &rest[at + 3..],
            _ => return false,
        }
    }
    true
}

/// The answer to a HEAD: it tells the length of what it leaves out. HTTP/1.1 would leave it out by itself, but over
/// HTTP/2 clients take a body here for a broken connection.
fn without_body(mut response: Response<Body>) -> Response<Body> {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().insert(http::header::CONTENT_LENGTH, length.into());
    }
    response.map(|_| Body::Empty)
}

/// Answers with a document of discovery, if there is one.
fn discovered(representation: &Representation, document: Option<bytes::Bytes>) -> Response<Body> {
    let written = match document {
        Some(document) => representation.document(document),
        None => Err(Box::new(Status::no_such_resource())),
    };
    written.unwrap_or_else(|refusal| representation.status(&refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room<F>(_: impl FnOnce(&'static Api, &'static Client, Request<UnreadBody>) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_percent_sign_needs_two_digits() {
        for (path, want) in [("/api/v1/%2f%Ff", true), ("/", true), ("/%zz", false), ("/a%2", false), ("/%2f%", false)]
        {
            assert_eq!(is_readable(path), want, "{path}");
        }
    }

    #[test]
    fn a_request_takes_little_room_before_anything_is_known_of_it() {
        let room = room(|api, client, request| api.answer(client, request));
        assert!(room <= 12 << 10, "{room} bytes are moved with every request, several times");
    }
}
