//! [`Insides`]: the ways to what runs in pods and on nodes, and how requests and answers go there and back.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{
    CONTENT_TYPE, HOST, HeaderValue, LOCATION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::upgrade::OnUpgrade;
use revisor_catalog::ObjectRoute;
use revisor_object::{Object, Status, StatusDetails, Value};
use revisor_proxy::headers::{asks_for_upgrade, redirects_root, remove_credentials};
use revisor_proxy::{
    Forward, ForwardError, ProxyClient, ProxyLimits, ReceivedBody, Rewriting, Target, empty_body, spdy,
};
use revisor_webhook::unverified_tls_client_config;

use super::Refusal;
use super::log_options::LogOptions;
use crate::api::ClientAddress;
use crate::kubelets::{KubeletAddress, over_http1};
use crate::passed_on::{self, PassedOn, TunnelUpgrade, Way, to_be_sent, unconnectable};
use crate::remote_command::{self, RemoteCommand, STREAM_PROTOCOL, Wanted};
use crate::unread_body::UnreadBody;
use crate::{Api, Body, Kubelets, LongRunning, web_socket};

/// The most that is shown of what a kubelet says about a failure (upstream: `maxReadLength`).
const SHOWN_FAILURE: usize = 50_000;

/// Reaches what runs in pods and on nodes beside kubelets. Nobody vouches for those, as in the original.
#[derive(Debug)]
pub(crate) struct Insides {
    client: ProxyClient,
    tls: OnceLock<Arc<rustls::ClientConfig>>,
}

impl Default for Insides {
    fn default() -> Insides {
        let limits = ProxyLimits { idle: 100, ..ProxyLimits::default() };
        Insides { client: ProxyClient::new(limits), tls: OnceLock::new() }
    }
}

impl Insides {
    /// Somebody at an address, spoken to as a scheme says.
    pub(super) fn target(&self, scheme: &str, host: &str, port: u16) -> Result<Target, Refusal> {
        if scheme != "https" {
            return Ok(Target::plain(host, port));
        }
        let tls = match self.tls.get() {
            Some(tls) => tls.clone(),
            None => {
                let made = unverified_tls_client_config(None).map_err(|error| internal(&error.to_string()))?;
                self.tls.get_or_init(|| Arc::new(over_http1(made))).clone()
            }
        };
        Target::private(host, port, host, tls).map_err(|error| internal(&error.to_string()))
    }
}

/// What subprotocols of WebSocket begin with inside of which SPDY is spoken.
pub(super) const SPDY_INSIDE: &str = "SPDY/3.1+";

fn internal(why: &str) -> Refusal {
    Box::new(Status::unexplained(why)).into()
}

/// Where a request goes.
pub(super) struct Destination<'a> {
    pub(super) client: &'a ProxyClient,
    pub(super) target: Target,
    /// What is asked for there; it may be empty.
    pub(super) path: String,
    /// What else is asked; the client's own query if nothing is said.
    pub(super) query: Option<String>,
    /// Whether it only leads there for those who ask for another protocol.
    pub(super) needs_upgrade: bool,
}

impl Api {
    /// Where the kubelet of a node listens.
    pub(super) fn kubelet_address(&self, kubelets: &Kubelets, node: &Object) -> Result<KubeletAddress, Refusal> {
        kubelets.address(node).map_err(|error| internal(&error.to_string()))
    }

    /// Somebody whom pods, services and nodes lead to.
    pub(super) fn inside<'a>(&'a self, target: Target, path: &str) -> Destination<'a> {
        Destination { client: &self.insides.client, target, path: path.to_owned(), query: None, needs_upgrade: false }
    }

    /// Passes a request on (upstream: `UpgradeAwareHandler`).
    pub(super) async fn pass_inside(
        &self,
        to: Destination<'_>,
        parts: Parts,
        body: UnreadBody,
    ) -> Result<Response<Body>, Refusal> {
        let method = parts.method.clone();
        let is_upgrade = asks_for_upgrade(&parts.headers);
        if to.needs_upgrade && !is_upgrade {
            return Err(Box::new(Status::bad_request("Upgrade request required")).into());
        }
        let mut path = to.path.clone();
        if !path.ends_with('/') && parts.uri.path().ends_with('/') {
            path.push('/');
        }
        if !is_upgrade && redirects_root(&method, &path) {
            return Ok(to_the_root(&parts));
        }
        let client = parts.extensions.get::<ClientAddress>().map_or(IpAddr::from([0, 0, 0, 0]), |client| client.0);
        let upgrade = parts.extensions.get::<OnUpgrade>().cloned();
        let named = named_host(&parts);
        let query = to.query.clone().or_else(|| parts.uri.query().map(str::to_owned)).filter(|it| !it.is_empty());
        let asked = match (path.as_str(), query) {
            ("", None) => "/".to_owned(),
            ("", Some(query)) => format!("/?{query}"),
            (path, None) => path.to_owned(),
            (path, Some(query)) => format!("{path}?{query}"),
        };
        let rewriting =
            (!to.needs_upgrade).then(|| Rewriting::new(parts.uri.path(), &path, &to.target.authority(), &named));
        let mut request = to_be_sent(Request::from_parts(parts, body));
        remove_credentials(request.headers_mut());
        let forward = Forward {
            target: &to.target,
            path_and_query: asked,
            host: &named,
            client,
            rewriting,
            refuses_redirects: false,
        };
        let forwarded = forward.send(to.client, request).await.map_err(|error| {
            Refusal::from(Box::new(match &error {
                ForwardError::Reaching(_) => Status::service_unavailable(error.to_string()),
                ForwardError::Location(_) => Status::internal_error(error),
                _ => Status::unexplained(error.to_string()),
            }))
        })?;
        Ok(self.lasting(passed_on::answer(forwarded, &method, upgrade)))
    }

    /// Lets a client speak SPDY inside of a WebSocket with somebody who speaks SPDY alone (upstream:
    /// `TunnelingHandler`). `protocols` are those that it would speak on it.
    pub(super) async fn tunnel_messages(
        &self,
        to: Destination<'_>,
        protocols: &[&str],
        mut parts: Parts,
        body: UnreadBody,
    ) -> Result<Response<Body>, Refusal> {
        let key = match web_socket::challenge(&parts.method, &parts.headers) {
            Ok(key) => key,
            Err(refusal) => return Ok(*refusal),
        };
        parts.method = Method::POST;
        for name in [SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, STREAM_PROTOCOL] {
            parts.headers.remove(name);
        }
        parts.headers.insert(UPGRADE, HeaderValue::from_static(spdy::PROTOCOL));
        for protocol in protocols.iter().filter_map(|name| HeaderValue::try_from(*name).ok()) {
            parts.headers.append(STREAM_PROTOCOL, protocol);
        }
        let mut response = self.pass_inside(to, parts, body).await?;
        self.options.metrics.stream_tunneled(response.status().as_u16());
        let Some(tunnel) = response.extensions().get::<TunnelUpgrade>() else { return Ok(response) };
        let text = |name| response.headers().get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
        if !text(UPGRADE).eq_ignore_ascii_case(spdy::PROTOCOL) {
            return Err(internal("unable to upgrade: missing upgrade headers in response"));
        }
        tunnel.with_messages();
        // The client is told what was chosen if it would speak it.
        let chosen = text(STREAM_PROTOCOL);
        let chosen = protocols.contains(&chosen).then(|| format!("{SPDY_INSIDE}{chosen}"));
        *response.headers_mut() = web_socket::agreed(&key, chosen.as_deref()).into_parts().0.headers;
        Ok(response)
    }

    /// Has a command run for a client that speaks WebSocket, which is agreed to at once.
    pub(super) fn run_command(&self, to: Destination<'_>, wanted: Wanted, parts: &Parts) -> Response<Body> {
        let metrics = &self.options.metrics;
        let challenge = web_socket::challenge(&parts.method, &parts.headers);
        let (key, upgrade) = match (challenge, parts.extensions.get::<OnUpgrade>()) {
            (Ok(key), Some(upgrade)) => (key, upgrade.clone()),
            (Ok(_), None) => return unconnectable(),
            (Err(refusal), _) => {
                metrics.stream_translated(StatusCode::BAD_REQUEST.as_u16());
                return *refusal;
            }
        };
        let path_and_query = match &to.query {
            Some(query) if !query.is_empty() => format!("{}?{query}", to.path),
            _ => to.path,
        };
        let (client, target, metrics) = (to.client.clone(), to.target, Arc::clone(metrics));
        let command = RemoteCommand { client, target, path_and_query, wanted, metrics };
        let head = web_socket::agreed(&key, Some(remote_command::SUBPROTOCOL)).map(drop);
        self.lasting(passed_on::connected(head, upgrade, Way::Command(command)))
    }

    /// The output of a container (upstream: `LocationStreamer`).
    pub(super) async fn stream_log(
        &self,
        kubelets: &Kubelets,
        address: &KubeletAddress,
        path: &str,
        options: &LogOptions,
        route: &ObjectRoute,
    ) -> Result<Response<Body>, Refusal> {
        let target = kubelets.target(address, !options.skips_verification);
        let target = target.map_err(|error| internal(&error.to_string()))?;
        let asked = match options.query() {
            query if query.is_empty() => path.to_owned(),
            query => format!("{path}?{query}"),
        };
        let request = Request::get(&asked).header(HOST, target.authority()).body(empty_body());
        let request = request.map_err(|error| internal(&error.to_string()))?;
        let url = format!("https://{}{asked}", target.authority());
        let sent = kubelets.client.send(&target, request).await;
        let response = sent.map_err(|error| internal(&format!("Get {url:?}: {error}")))?;
        if response.status().is_redirection() {
            return Err(internal(&format!("Get {url:?}: redirects forbidden")));
        }
        if !(StatusCode::OK..=StatusCode::PARTIAL_CONTENT).contains(&response.status()) {
            return Err(Box::new(failure(response, route).await).into());
        }
        let mut response = passed_on::received(response, &Method::GET);
        *response.status_mut() = StatusCode::OK;
        let headers = response.headers_mut();
        headers.clear();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        response.extensions_mut().insert(PassedOn);
        Ok(self.lasting(response))
    }

    /// An answer that lasts as long as its client likes, or the server.
    fn lasting(&self, mut response: Response<Body>) -> Response<Body> {
        response.extensions_mut().insert(LongRunning);
        let end = self.options.drain.watches_should_end();
        response.map(|body| match body {
            Body::Stream(_) => body.until(end),
            body => body,
        })
    }
}

/// What a kubelet said of a failure (upstream: `GenericHttpResponseChecker`).
async fn failure(response: Response<ReceivedBody>, route: &ObjectRoute) -> Status {
    let (head, body) = response.into_parts();
    let said: Bytes = match Limited::new(body, SHOWN_FAILURE).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Status::internal_error(error),
    };
    let said = String::from_utf8_lossy(&said);
    match head.status {
        StatusCode::INTERNAL_SERVER_ERROR => Status::internal_error(said),
        StatusCode::BAD_REQUEST => Status::bad_request(said.into_owned()),
        code => of_another_server(code, route.name.as_deref().unwrap_or_default(), &said),
    }
}

/// What it means that a kubelet answered with this code (upstream: `NewGenericServerResponse`).
fn of_another_server(code: StatusCode, name: &str, said: &str) -> Status {
    let (reason, message) = match code.as_u16() {
        401 => ("Unauthorized", "the server has asked for the client to provide credentials"),
        403 => ("Forbidden", said),
        404 => ("NotFound", "the server could not find the requested resource"),
        405 => ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
        409 => ("Conflict", "the server reported a conflict"),
        429 => ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        code if code >= 500 => ("InternalError", "an error on the server has prevented the request from succeeding"),
        _ => ("", "the server rejected our request for an unknown reason"),
    };
    let mut status = Status::unexplained(format!("{message} ( pods/log {name})"));
    status.code = code.as_u16();
    status.reason = reason.into();
    let (kind, name) = ("pods/log".to_owned(), name.to_owned());
    status.details = Some(StatusDetails { kind, name, ..StatusDetails::default() });
    status
}

/// Sends a client to the same place with a slash behind.
fn to_the_root(parts: &Parts) -> Response<Body> {
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(location) = HeaderValue::try_from(format!("{}/{query}", parts.uri.path())) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// The host that a client named.
fn named_host(parts: &Parts) -> String {
    let of_uri = parts.uri.authority().map(|authority| authority.to_string());
    let of_header = || parts.headers.get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    of_uri.or_else(of_header).unwrap_or_default()
}

/// Whether requests may be passed on to an address (upstream: Go's `IP.IsGlobalUnicast`).
pub(super) fn is_global_unicast(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(it) => {
            !(it.is_unspecified() || it.is_loopback() || it.is_multicast() || it.is_link_local() || it.is_broadcast())
        }
        IpAddr::V6(it) => !(it.is_unspecified() || it.is_loopback() || it.is_multicast() || it.is_unicast_link_local()),
    }
}

/// The texts of a list of an object's members.
pub(super) fn texts<'a>(object: &'a Object, path: &[&str], member: &str) -> Vec<&'a str> {
    let list = object.at(path).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_object).filter_map(|item| item.str(member)).collect()
}
