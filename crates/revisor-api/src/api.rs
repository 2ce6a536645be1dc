//! [`Api`]: the way of a request: who asks, may they, is there room, what is it about, and the answer.
//!
//! A request that cannot be authorised is answered before its body is read (A2).

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::header::USER_AGENT;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use revisor_audit::{AuditRecord, AuditedRequest, Auditor, Stage};
use revisor_auth::{
    Attributes, Authenticator, Authorizer, Claims, Decision, Forbidden, Identity, Impersonated, Impersonation, Peer,
    PeerIdentity, PeerVerifier, ServiceAccounts, authorization_warning,
};
use revisor_catalog::{Feature, Features, ObjectRoute, Route, Verb};
use revisor_object::{DurationError, ResourceRef, Status};
use revisor_registry::{Registry, Workbench};
use rustls_pki_types::CertificateDer;
use time::OffsetDateTime;

use crate::audit_trail::{AuditTrail, Audited, source_ips};
use crate::discovery::Aggregated;
use crate::encoding::Encoding;
use crate::flow_control::TrackedWatch;
use crate::inflight::{Asking, Entrance, WatchHold};
use crate::metrics::{DeprecatedApi, exposition};
use crate::objects::{Deadline, metric_name};
use crate::publication::{Publication, Publications};
use crate::query::Query;
use crate::representation::{Codec, Representation};
use crate::request_info::{NoResource, RequestInfo};
use crate::skewed_clients::SkewedClients;
use crate::status_pages::{Circumstances, Page};
use crate::unread_body::UnreadBody;
use crate::{
    Body, CompressedPieces, Drain, Handler, HealthChecks, Inflight, InflightGuard, Metrics, RequestId, RequestKind,
    RequestLabels, Standing, StatusPages, accepts_gzip, answer, issuer, maybe_compress, negotiate, web_socket,
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
        Api { options, publications, codec, compressed, impersonation, skewed_clients, workbench }
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
        self.answer(&connection, UnreadBody::of(request)).await
    }
}

impl Api {
    /// The features that are on.
    pub(crate) fn features(&self) -> Features {
        self.options.registry.built_in().features()
    }

    /// What is on offer at a path. As in the original, CBOR is for objects, and for what is told of built-in versions.
    fn encodings(&self, route: &Route) -> &'static [Encoding] {
        let has_cbor = self.features().has(Feature::CBORServingAndStorage)
            && match route {
                Route::Objects(_) => true,
                Route::Resources { group, version } => self.is_built_in(group, version),
                _ => false,
            };
        Encoding::offered(has_cbor)
    }

    /// Whether a version is one of those that every server has.
    fn is_built_in(&self, group: &str, version: &str) -> bool {
        let mut known = self.options.registry.built_in().group_versions().iter();
        known.any(|known| known.group == group && known.version == version)
    }

    async fn answer(&self, client: &Client, request: Request<UnreadBody>) -> Response<Body> {
        let started = Instant::now();
        let route = Route::parse(&self.options.registry.catalog(), request.uri().path());
        let audited = self.options.audit.as_ref().map_or_else(Audited::default, |_| Audited::unknown());
        let mut trail = AuditTrail::new(audited.clone(), SystemTime::now());
        let asked = Asked::new(&self.codec, self.encodings(&route), &route, &request, audited);
        let series = self.options.metrics.requests(&asked.labels(&route));
        let wants_gzip = self.features().has(Feature::APIResponseCompression) && accepts_gzip(request.headers());
        let warning = authorization_warning(request.headers());

        let Admitted { mut response, place, is_refused } = self.admit(client, route, &asked, request).await;
        if let Some(warning) = warning {
            answer::add_warnings(&mut response, [warning.to_owned()]);
        }
        let is_stream = matches!(response.status(), StatusCode::OK | StatusCode::SWITCHING_PROTOCOLS);
        let is_watch = asked.verb == Some(Verb::Watch) && is_stream;
        if !is_watch {
            response = maybe_compress(wants_gzip, &self.compressed, response).await;
        }
        if asked.method == Method::HEAD {
            response = without_body(response);
        }
        let code = response.status().as_u16();
        trail.answered(code, is_refused).await;
        // A short answer needs nothing more of anybody: its place is free before the client can have it. As in the
        // original, whose handlers return before what they wrote is flushed.
        let place = place.filter(|_| !response.body().is_within(SHORT));
        response.map(|body| {
            body.on_end(move |bytes| {
                series.observe(code, started.elapsed(), bytes);
                drop(place);
                trail.complete();
            })
        })
    }

    /// Who asks, may they, is there room: then the answer, with the place that it holds until it was sent.
    async fn admit(&self, client: &Client, route: Route, asked: &Asked, mut request: Request<UnreadBody>) -> Admitted {
        web_socket::take_bearer(request.headers_mut());
        let refuse = |status: &Status| asked.representation.status(status);
        let info = match RequestInfo::of(&request) {
            Ok(info) => info,
            Err(NoResource) => return about_nothing(&request).into(),
        };
        let timeout = match &asked.timeout {
            // Nobody may ask for more time than all have.
            Ok(asked) => asked.unwrap_or(Duration::MAX).min(self.options.request_timeout),
            Err(error) if asked.verb != Some(Verb::Watch) => {
                self.audit_stranger(client, asked, &info, &request);
                let message = format!("invalid timeout specified in the request URL - {error}");
                return Admitted::refused(refuse(&Status::bad_request(message)));
            }
            Err(_) => self.options.request_timeout,
        };
        let now = SystemTime::now();
        let authenticator = &self.options.authenticator;
        let peer = &client.peer;
        let proxy = client.proxy.as_ref().map_or(PeerIdentity::Unknown, |proxy| proxy.identity(now));
        let path = request.uri().path();
        let known = authenticator.authenticate(path, request.headers(), &peer.identity(now), &proxy, now).await;
        let user = match known {
            Ok(user) if user.is_anonymous() => {
                self.part_with(client, &request);
                user
            }
            Ok(user) => {
                client.standing.authenticate();
                user
            }
            Err(error) => {
                tracing::debug!(%error, "refused a request that could not be authenticated");
                self.part_with(client, &request);
                self.audit_stranger(client, asked, &info, &request);
                return Admitted::refused(refuse(&Status::unauthorized("Unauthorized")));
            }
        };
        if let Some(record) = self.audit(client, asked, &info, &user, &request)
            && !record.reach(Stage::RequestReceived).wait().await
        {
            self.options.audit.iter().for_each(|auditor| auditor.reject());
            return internal_error(&request, "failed to store audit event").into();
        }
        let user = match self.impersonate(user, asked, &info, &request) {
            Ok(user) => user,
            Err(refusal) => return (*refusal).into(),
        };
        let attributes = info.attributes(&user);
        let is_watch = asked.verb == Some(Verb::Watch);
        // As in the original, a refusal tells of the flow too.
        let is_counted = is_watch || !info.is_long_running();
        let resource = match &route {
            Route::Objects(route) => Some(&*route.resource),
            _ => None,
        };
        let query = request.uri().query();
        let flow = is_counted.then(|| self.options.inflight.classify(&attributes, query, resource)).flatten();
        let tracked = self.options.inflight.flow_control().filter(|_| is_watch);
        let tracked = tracked.and_then(|control| control.track(&attributes, query));
        let allowed = self.authorize(&attributes, asked).await;
        let (method, uri, kind) = (request.method().clone(), request.uri().clone(), asked.kind());
        let asking = Asking { kind, user: user.clone(), flow, method, uri, timeout };
        let flow = asking.flow.clone();
        let (mut response, place) = match allowed {
            Ok(()) => {
                self.skewed_clients.note(request.headers(), OffsetDateTime::now_utc);
                request.extensions_mut().insert(user);
                if is_watch {
                    self.admit_watch(peer, route, asked, asking, tracked, request).await
                } else {
                    self.admit_request(route, asked, asking, is_counted, request).await
                }
            }
            Err(refusal) => (*refusal, None),
        };
        if let Some(flow) = flow {
            flow.tell(response.headers_mut());
        }
        Admitted { response, place, is_refused: false }
    }

    /// Begins to write down a request, if the policy wants that.
    fn audit<'a>(
        &self,
        client: &Client,
        asked: &'a Asked,
        info: &RequestInfo<'_>,
        user: &Identity,
        request: &Request<UnreadBody>,
    ) -> Option<&'a AuditRecord> {
        let attributes = info.attributes(user);
        let headers = request.headers();
        let record = self.options.audit.as_ref()?.begin(&attributes, || AuditedRequest {
            attributes: &attributes,
            audit_id: request.extensions().get::<RequestId>().map_or("", RequestId::as_str),
            uri: target(request).to_owned(),
            user_agent: headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default(),
            source_ips: source_ips(headers, client.address),
            received: SystemTime::now(),
        })?;
        asked.audited.begin(record, info.is_long_running());
        asked.audited.record()
    }

    /// The same for a request of which it is not known who makes it.
    fn audit_stranger(&self, client: &Client, asked: &Asked, info: &RequestInfo<'_>, request: &Request<UnreadBody>) {
        self.audit(client, asked, info, &Identity::exactly(Claims::default()), request);
    }

    /// A watch takes its seats until it has begun, and has a place among watches after that, because it lasts.
    async fn admit_watch(
        &self,
        peer: &Arc<Peer>,
        route: Route,
        asked: &Asked,
        asking: Asking,
        tracked: Option<TrackedWatch>,
        mut request: Request<UnreadBody>,
    ) -> (Response<Body>, Option<InflightGuard>) {
        let seat = match &asking.flow {
            Some(_) => match self.options.inflight.admit(&asking).await {
                Ok(seat) => Some(seat),
                Err(refusal) => return (refusal.response(), None),
            },
            None => None,
        };
        drop(asking);
        request.extensions_mut().insert(WatchHold::new(seat, tracked));
        let response = self.serve(route, asked, request).await;
        let response = match peer.clone().distrusted(SystemTime::now) {
            Some(end) => response.map(|body| body.until(end)),
            None => response,
        };
        (response, None)
    }

    /// A request takes its place when there is something to do, and what changes something when its body is there.
    async fn admit_request(
        &self,
        route: Route,
        asked: &Asked,
        asking: Asking,
        is_counted: bool,
        mut request: Request<UnreadBody>,
    ) -> (Response<Body>, Option<InflightGuard>) {
        let inflight = &self.options.inflight;
        let timeout = asking.timeout;
        let waits_for_body = asking.kind == RequestKind::Mutating && !request.body().is_end_stream();
        // Without priority and fairness a request counts from its head on, as in the original.
        let place = if is_counted && !(waits_for_body && asking.flow.is_some()) {
            match inflight.admit(&asking).await {
                Ok(place) => Some(place),
                Err(refusal) => return (refusal.response(), None),
            }
        } else {
            None
        };
        let (place, entrance) = if waits_for_body && is_counted {
            let entrance = Entrance::new(asking, place);
            request.body_mut().enter_by(entrance.clone());
            (None, Some(entrance))
        } else {
            (place, None)
        };
        if let Some(deadline) = Instant::now().checked_add(timeout) {
            request.extensions_mut().insert(Deadline(deadline));
        }
        // Pinned here, so that the timer does not move it once more.
        let serving = pin!(self.serve(route, asked, request));
        let served = tokio::time::timeout(timeout, serving).await;
        let response = served.unwrap_or_else(|_| {
            let late = Status::timeout("request did not complete within the allotted timeout", 1);
            asked.representation.status(&late)
        });
        (response, place.or_else(|| entrance.and_then(Entrance::into_place)))
    }

    /// Lets nobody keep a connection over HTTP/2, which is dear and easily abused, who does not say who they are.
    fn part_with(&self, client: &Client, request: &Request<UnreadBody>) {
        let is_http2 = request.version() == Version::HTTP_2;
        if is_http2 && self.features().has(Feature::UnauthenticatedHTTP2DOSMitigation) {
            client.standing.finish();
        }
    }

    /// Who is to be taken for the user of a request.
    fn impersonate(
        &self,
        user: Identity,
        asked: &Asked,
        info: &RequestInfo<'_>,
        request: &Request<UnreadBody>,
    ) -> Result<Identity, Box<Response<Body>>> {
        let refuse = |status: &Status| Box::new(asked.representation.status(status));
        match Impersonated::read(request.headers()) {
            Ok(None) => Ok(user),
            Ok(Some(wanted)) => {
                let impersonated = self.impersonation.resolve(&wanted, &info.attributes(&user));
                let (impersonated, constraint) = impersonated.map_err(|refusal| refuse(&forbidden(refusal)))?;
                if let Some(record) = asked.audited.record() {
                    record.impersonates(&impersonated, constraint);
                }
                Ok(impersonated)
            }
            Err(error) => Err(refuse(&Status::bad_request(error.to_string()))),
        }
    }

    /// Whether they may do what a request asks.
    async fn authorize(&self, attributes: &Attributes<'_>, asked: &Asked) -> Result<(), Box<Response<Body>>> {
        let decision = self.options.authorizer.authorize_request(attributes).await;
        if let Some(record) = asked.audited.record() {
            let (decided, reason) = match &decision {
                // Why somebody may is found out only for those who want to know.
                Decision::Allow => ("allow", self.options.authorizer.explain(attributes).1.into()),
                Decision::Forbidden { reason } => ("forbid", reason.clone()),
            };
            record.annotate("authorization.k8s.io/decision", decided);
            record.annotate("authorization.k8s.io/reason", &reason);
        }
        match decision {
            Decision::Allow => Ok(()),
            Decision::Forbidden { reason } => {
                let refusal = forbidden(Forbidden::of(attributes, &reason));
                Err(Box::new(asked.representation.status(&refusal)))
            }
        }
    }

    async fn serve(&self, route: Route, asked: &Asked, request: Request<UnreadBody>) -> Response<Body> {
        let representation = &asked.representation;
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
                None if is_never_named(&route) => representation.status(&Status::no_such_resource()),
                None => representation.status(&Status::method_not_allowed()),
            },
            Route::NoSuchResource { unserved } => {
                let mut response = representation.status(&Status::no_such_resource());
                answer::add_warnings(&mut response, unserved.iter().map(ToString::to_string));
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
        if let Some(encoding) = negotiate::aggregated_discovery(headers, Encoding::ALL) {
            return publication.aggregated(which, encoding, representation, headers);
        }
        let document = match which {
            Aggregated::Core => publication.core_versions(&self.options.external_address),
            Aggregated::Groups => publication.group_list(),
        };
        discovered(representation, Some(document))
    }

    /// The server's own paths.
    async fn serve_other(&self, asked: &Asked, request: Request<UnreadBody>) -> Response<Body> {
        let (path, query) = (request.uri().path(), request.uri().query());
        if let Some(response) = self.options.health.answer(path, query) {
            return response;
        }
        let accounts = self.options.authenticator.service_accounts();
        if let Some(response) = accounts.and_then(|accounts| issuer::answer(accounts, &request, &asked.representation))
        {
            return response;
        }
        let flow_control = self.options.inflight.flow_control();
        if let Some(response) = flow_control.and_then(|control| control.dump(path, query)) {
            return response;
        }
        if let Some(page) = self.options.pages.page(path) {
            return self.serve_page(page, asked, request.headers());
        }
        if let Some(rest) = path.strip_prefix("/openapi/v3").map(str::to_owned) {
            return self
                .publish(asked, request, move |publication, request| {
                    publication.openapi_v3(&rest, request, SystemTime::now())
                })
                .await;
        }
        match path {
            "/openapi/v2" => self.publish(asked, request, |publication, request| publication.openapi_v2(request)).await,
            "/version" | "/version/" => self.serve_version(asked, &request),
            "/metrics" => self.options.metrics.response(),
            "/metrics/slis" => exposition(self.options.health.indicators()),
            "/" => answer::raw_json(self.paths()),
            _ => answer::text(StatusCode::NOT_FOUND, "404 page not found\n"),
        }
    }

    /// A page of the server about itself.
    fn serve_page(&self, page: Page, asked: &Asked, headers: &HeaderMap) -> Response<Body> {
        let ApiOptions { registry, metrics, pages, .. } = &self.options;
        let catalog = registry.catalog();
        pages.answer(page, headers, &asked.representation, metrics, || Circumstances {
            now: OffsetDateTime::now_utc(),
            catalog: &catalog,
            clients: self.skewed_clients.list(),
            servers: registry.known_servers(),
        })
    }

    /// `/version`, which is JSON and nothing else.
    fn serve_version(&self, asked: &Asked, request: &Request<UnreadBody>) -> Response<Body> {
        if request.method() != Method::GET {
            return asked.representation.status(&Status::method_not_allowed());
        }
        if !negotiate::passes_route(request.headers(), &[Encoding::Json]) {
            return asked.representation.status(&negotiate::route_refusal(&[Encoding::Json.media_type()]));
        }
        answer::raw_json(self.options.version.to_string().into())
    }

    /// `/`: where a person can go from here.
    fn paths(&self) -> bytes::Bytes {
        let own = [
            "/api",
            "/apis",
            "/apis/",
            "/metrics",
            "/metrics/slis",
            "/openapi/v2",
            "/openapi/v3",
            "/openapi/v3/",
            "/version",
        ];
        let mut paths: BTreeSet<String> = own.map(str::to_owned).into();
        paths.extend(self.options.health.paths());
        paths.extend(self.options.pages.paths().map(str::to_owned));
        if self.options.authenticator.service_accounts().is_some_and(ServiceAccounts::is_published) {
            paths.extend(issuer::PATHS.map(str::to_owned));
        }
        for known in self.options.registry.catalog().group_versions() {
            if known.group.is_empty() {
                paths.insert(format!("/api/{}", known.version));
            } else {
                paths.insert(format!("/apis/{}", known.group));
                paths.insert(format!("/apis/{}/{}", known.group, known.version));
            }
        }
        serde_json::json!({"paths": paths}).to_string().into()
    }

    /// What is told to clients of what is served now.
    fn publication(&self) -> Arc<Publication> {
        self.publications.of(&self.options.registry.catalog())
    }

    /// Answers where it holds up nobody: to describe thousands of kinds for the first time takes a while.
    async fn publish(
        &self,
        asked: &Asked,
        request: Request<UnreadBody>,
        answer: impl FnOnce(&Publication, &Request<()>) -> Response<Body> + Send + 'static,
    ) -> Response<Body> {
        let publication = self.publication();
        let request = Request::from_parts(request.into_parts().0, ());
        let answered = tokio::task::spawn_blocking(move || answer(&publication, &request)).await;
        answered.unwrap_or_else(|error| asked.representation.status(&Status::internal_error(error)))
    }
}

/// A request that was looked at.
struct Admitted {
    response: Response<Body>,
    /// What it holds until its answer was sent.
    place: Option<InflightGuard>,
    /// Whether it was not even let in.
    is_refused: bool,
}

impl Admitted {
    fn refused(response: Response<Body>) -> Admitted {
        Admitted { response, place: None, is_refused: true }
    }
}

impl From<Response<Body>> for Admitted {
    fn from(response: Response<Body>) -> Admitted {
        Admitted { response, place: None, is_refused: false }
    }
}

/// The answer to a path that names a verb and nothing that it is about.
fn about_nothing(request: &Request<UnreadBody>) -> Response<Body> {
    let problem = "failed to create RequestInfo: unable to determine kind and namespace from url";
    internal_error(request, &format!("{problem}, {}", target(request)))
}

/// The answer to a request with which something is wrong that is not its fault, in plain text.
fn internal_error(request: &Request<UnreadBody>, problem: &str) -> Response<Body> {
    let message = format!("Internal Server Error: {:?}: {problem}\n", target(request));
    answer::text(StatusCode::INTERNAL_SERVER_ERROR, message)
}

/// What a request asks for: its path and query, whatever the protocol says of the host.
fn target(request: &Request<UnreadBody>) -> &str {
    request.uri().path_and_query().map_or("", PathAndQuery::as_str)
}

/// The answer to what somebody may not.
fn forbidden(refusal: Forbidden) -> Status {
    let mut status = Status::forbidden(ResourceRef::default(), "", "");
    status.message = refusal.message;
    if let Some(details) = &mut status.details {
        details.group = refusal.group;
        details.kind = refusal.resource;
        details.name = refusal.name;
    }
    status
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

/// What a request asks for, as far as its head says.
pub(crate) struct Asked {
    method: Method,
    /// `None` where the method means nothing there.
    pub(crate) verb: Option<Verb>,
    is_dry_run: bool,
    /// For how long the client will wait, if it says so.
    timeout: Result<Option<Duration>, DurationError>,
    /// How it is answered.
    representation: Representation,
    /// What is written down of it.
    audited: Audited,
}

impl Asked {
    fn new(
        codec: &Arc<Codec>,
        encodings: &'static [Encoding],
        route: &Route,
        request: &Request<UnreadBody>,
        audited: Audited,
    ) -> Asked {
        let query = Query::parse(request.uri().query());
        let verb = match route {
            Route::Objects(route) => verb_of(route, request.method(), &query),
            _ => None,
        };
        Asked {
            method: request.method().clone(),
            verb,
            is_dry_run: !query.text("dryRun").is_empty(),
            timeout: timeout_of(query.text("timeout")),
            representation: Representation::of(codec, encodings, route, request.headers(), &query)
                .audited(audited.clone()),
            audited,
        }
    }

    fn kind(&self) -> RequestKind {
        match self.method {
            Method::GET | Method::HEAD | Method::OPTIONS => RequestKind::ReadOnly,
            _ => RequestKind::Mutating,
        }
    }

    fn labels<'a>(&'a self, route: &'a Route) -> RequestLabels<'a> {
        let Route::Objects(route) = route else {
            return RequestLabels { verb: self.method.as_str(), ..RequestLabels::default() };
        };
        RequestLabels {
            verb: match self.verb {
                Some(verb) => metric_name(verb),
                None => self.method.as_str(),
            },
            group: &route.resource.group,
            version: &route.resource.version,
            resource: &route.resource.plural,
            subresource: route.subresource.as_deref().unwrap_or_default(),
            scope: match route {
                ObjectRoute { name: Some(_), .. } => "resource",
                ObjectRoute { namespace: Some(_), .. } => "namespace",
                _ => "cluster",
            },
            dry_run: if self.is_dry_run { "All" } else { "" },
        }
    }
}

/// For how long a client will wait that says this. What is not positive says nothing.
fn timeout_of(text: &str) -> Result<Option<Duration>, DurationError> {
    if text.is_empty() {
        return Ok(None);
    }
    let nanos = text.parse::<revisor_object::Duration>()?.nanos();
    Ok(u64::try_from(nanos).ok().filter(|nanos| *nanos > 0).map(Duration::from_nanos))
}

/// Whether a path names one object of a resource of which nothing can be asked by name, such as a review.
fn is_never_named(route: &ObjectRoute) -> bool {
    let by_name = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete];
    route.name.is_some()
        && route.subresource.is_none()
        && !route.resource.verbs.iter().any(|verb| by_name.contains(verb))
}

/// Whether a collection is asked for its changes that can only be listed.
fn is_unwatchable(route: &ObjectRoute, request: &Request<UnreadBody>) -> bool {
    let is_list = verb_of(route, request.method(), &Query::parse(None)) == Some(Verb::List);
    is_list && Query::parse(request.uri().query()).truth("watch") == Some(true)
}

/// What a method means on a path; `None` where it means nothing.
fn verb_of(route: &ObjectRoute, method: &Method, query: &Query<'_>) -> Option<Verb> {
    let has_name = route.name.is_some();
    let verb = match *method {
        Method::GET if route.is_watch_path => Verb::Watch,
        _ if route.is_watch_path => return None,
        Method::GET if has_name => Verb::Get,
        Method::GET if query.truth("watch") == Some(true) => Verb::Watch,
        Method::GET => Verb::List,
        Method::POST if !has_name || route.subresource.is_some() => Verb::Create,
        Method::PUT if has_name => Verb::Update,
        Method::PATCH if has_name => Verb::Patch,
        Method::DELETE if has_name => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ => return None,
    };
    // A collection over all namespaces can be read, but not written to.
    let is_over_namespaces = route.resource.namespaced && route.namespace.is_none();
    if is_over_namespaces && !matches!(verb, Verb::List | Verb::Watch) {
        return None;
    }
    let allowed = match &route.subresource {
        Some(name) => &route.resource.subresource(name)?.verbs,
        None => &route.resource.verbs,
    };
    allowed.contains(&verb).then_some(verb)
}
