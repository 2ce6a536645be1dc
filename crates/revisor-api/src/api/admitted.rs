//! Who asks, may they, is there room: what a request passes before it is served.

use std::borrow::Cow;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::header::{USER_AGENT, X_CONTENT_TYPE_OPTIONS};
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body::Body as _;
use revisor_audit::{AuditRecord, AuditedRequest, Stage};
use revisor_auth::{
    Attributes, AuthenticationNotes, Claims, Decision, Explanation, Forbidden, Identity, Impersonated, NotAllowed,
    Peer, PeerIdentity, Unauthenticated,
};
use revisor_catalog::{Feature, Route, Verb};
use revisor_object::{ResourceRef, Status};
use time::OffsetDateTime;

use super::{Api, Asked, Client};
use crate::accounting::Accounting;
use crate::audit_trail::source_ips;
use crate::flow_control::TrackedWatch;
use crate::inflight::{Asking, Entrance, WatchHold};
use crate::metrics::{Authentication, Authorization};
use crate::objects::{Deadline, OddProgram};
use crate::passed_on::PassedOn;
use crate::request_info::{NoResource, RequestInfo};
use crate::unread_body::UnreadBody;
use crate::{Body, InflightGuard, LongRunning, RequestId, RequestKind, answer, web_socket};

impl Api {
    /// Who asks, may they, is there room: then the answer, with the place that it holds until it was sent.
    pub(super) async fn admit(
        &self,
        client: &Client,
        route: Route,
        asked: &Asked,
        mut request: Request<UnreadBody>,
        notes: &mut AuthenticationNotes,
    ) -> Admitted {
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
        let shown = peer.identity(now);
        if let (PeerIdentity::Verified(_), Some(expiry)) = (&shown, peer.expiry()) {
            self.options.metrics.client_certificate(expiry.duration_since(now).unwrap_or_default());
        }
        let begun = Instant::now();
        let known = authenticator.authenticate(path, request.headers(), &shown, &proxy, now, notes).await;
        let attempt = match &known {
            Ok(user) => Authentication::Success(user.name()),
            Err(Unauthenticated::NoCredentials) => Authentication::Failure,
            Err(_) => Authentication::Error,
        };
        self.options.metrics.authenticated(attempt, begun.elapsed());
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
                asked.audited.annotate(notes);
                return Admitted::refused(refuse(&Status::unauthorized("Unauthorized")));
            }
        };
        let record = self.audit(client, asked, &info, &user, &request);
        asked.audited.annotate(notes);
        if let Some(record) = record
            && !record.reach(Stage::RequestReceived).wait().await
        {
            self.options.audit.iter().for_each(|auditor| auditor.reject());
            return internal_error(&request, "failed to store audit event").into();
        }
        let user = match self.impersonate(user, asked, &info, &request).await {
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
        let allowed = self.authorize(&attributes, asked, &request).await;
        let (method, uri, kind) = (request.method().clone(), request.uri().clone(), asked.kind());
        // What lasts as long as its client likes is not cut short.
        let timeout = if is_counted { timeout } else { Duration::MAX };
        let asking = Asking { kind, user: user.clone(), flow, method, uri, timeout };
        let flow = asking.flow.clone();
        let is_served = allowed.is_ok();
        let (mut response, place) = match allowed {
            Ok(()) => {
                self.skewed_clients.note(request.headers(), OffsetDateTime::now_utc);
                if let Some(known) = authenticator.request_header() {
                    known.clear(request.headers_mut());
                }
                request.extensions_mut().insert(user);
                request.extensions_mut().insert(ClientAddress(client.address));
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
        let lasts = response.extensions().get::<LongRunning>().is_some();
        if lasts && response.extensions().get::<PassedOn>().is_some() {
            response = while_trusted(peer, response);
        }
        Admitted { response, place, is_refused: false, is_served }
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
        (while_trusted(peer, response), None)
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
        // Without priority and fairness a request counts from its head on, as in the original, if there is a place.
        let place = if is_counted && !(waits_for_body && asking.flow.is_some()) {
            match inflight.admit(&asking).await {
                Ok(place) => Some(place),
                Err(_) if waits_for_body => None,
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
        if let Some(program) = OddProgram::of(request.headers()) {
            request.extensions_mut().insert(program);
        }
        // Pinned here, so that the timer does not move it once more.
        let serving = pin!(self.serve(route, asked, request));
        let served = tokio::time::timeout(timeout, serving).await;
        let response = served.unwrap_or_else(|_| {
            let late = Status::timeout("request did not complete within the allotted timeout", 1);
            Accounting::terminated(asked.representation.status(&late))
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
    async fn impersonate(
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
                // Boxed, as what few requests need: all of them are moved with the room for it before they begin.
                let attributes = info.attributes(&user);
                let impersonated = Box::pin(self.impersonation.resolve(&wanted, &attributes)).await;
                let (impersonated, constraint) = impersonated.map_err(|refusal| refused(asked, refusal))?;
                if let Some(record) = asked.audited.record() {
                    record.impersonates(&impersonated, constraint);
                }
                Ok(impersonated)
            }
            Err(nameless) => Err(refuse(&Status::bad_request(self.impersonation.nameless(&nameless)))),
        }
    }

    /// Whether they may do what a request asks.
    async fn authorize(
        &self,
        attributes: &Attributes<'_>,
        asked: &Asked,
        request: &Request<UnreadBody>,
    ) -> Result<(), Box<Response<Body>>> {
        let (authorizer, begun) = (&self.options.authorizer, Instant::now());
        let Some(record) = asked.audited.record() else {
            let decision = authorizer.authorize_request(attributes).await;
            let refusal = match &decision {
                Decision::Allow => None,
                Decision::Forbidden(refusal) => Some(refusal),
            };
            self.options.metrics.authorized(attempt(refusal), begun.elapsed());
            return refusal.map_or(Ok(()), |it| Err(refused_or_undecided(asked, attributes, it, request)));
        };
        // Why somebody may is found out only for those who want to know.
        let explained = Box::pin(authorizer.explain(attributes)).await;
        let refusal = match &explained {
            Explanation::Allow(_) => None,
            Explanation::Forbidden(refusal) => Some(refusal),
        };
        self.options.metrics.authorized(attempt(refusal), begun.elapsed());
        let (decided, reason, answer) = match explained {
            Explanation::Allow(reason) => (Some("allow"), reason.into(), Ok(())),
            Explanation::Forbidden(refusal) => {
                let answer = refused_or_undecided(asked, attributes, &refusal, request);
                match refusal.error {
                    None => (Some("forbid"), refusal.reason, Err(answer)),
                    Some(_) => (None, Cow::Borrowed("internal error"), Err(answer)),
                }
            }
        };
        if let Some(decided) = decided {
            record.annotate("authorization.k8s.io/decision", decided);
        }
        record.annotate("authorization.k8s.io/reason", &reason);
        answer
    }
}

/// How metrics call an attempt to be allowed something.
fn attempt(refusal: Option<&NotAllowed>) -> Authorization {
    match refusal {
        None => Authorization::Allowed,
        Some(NotAllowed { error: Some(_), .. }) => Authorization::Error,
        Some(NotAllowed { is_denied: true, .. }) => Authorization::Denied,
        Some(_) => Authorization::NoOpinion,
    }
}

/// A request that was looked at.
pub(super) struct Admitted {
    pub(super) response: Response<Body>,
    /// What it holds until its answer was sent.
    pub(super) place: Option<InflightGuard>,
    /// Whether it was not even let in.
    pub(super) is_refused: bool,
    /// Whether it was let through to whoever serves it.
    pub(super) is_served: bool,
}

impl Admitted {
    fn refused(response: Response<Body>) -> Admitted {
        Admitted { response, place: None, is_refused: true, is_served: false }
    }
}

impl From<Response<Body>> for Admitted {
    fn from(response: Response<Body>) -> Admitted {
        Admitted { response, place: None, is_refused: false, is_served: false }
    }
}

/// Where the client of a request is; one of its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

/// An answer that lasts no longer than the trust in its client does.
fn while_trusted(peer: &Arc<Peer>, response: Response<Body>) -> Response<Body> {
    match peer.clone().distrusted(SystemTime::now) {
        Some(end) => response.map(|body| body.until(end)),
        None => response,
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

/// The answer to what somebody may not, or of which it is not known whether they may.
fn refused_or_undecided(
    asked: &Asked,
    attributes: &Attributes<'_>,
    refusal: &NotAllowed,
    request: &Request<UnreadBody>,
) -> Box<Response<Body>> {
    match &refusal.error {
        None => refused(asked, Forbidden::of(attributes, &refusal.reason)),
        Some(error) => Box::new(internal_error(request, error)),
    }
}

/// How a request is answered that its user may not make. As in the original, browsers shall not guess what it is.
fn refused(asked: &Asked, refusal: Forbidden) -> Box<Response<Body>> {
    let mut response = asked.representation.status(&forbidden(refusal));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Box::new(response)
}

pub(crate) fn forbidden(refusal: Forbidden) -> Status {
    let mut status = Status::forbidden(ResourceRef::default(), "", "");
    status.message = refusal.message;
    if let Some(details) = &mut status.details {
        details.group = refusal.group;
        details.kind = refusal.resource;
        details.name = refusal.name;
    }
    status
}
