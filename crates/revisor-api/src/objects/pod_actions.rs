//! What is done to a pod rather than written to it: binding, eviction, and the ways into its containers. What admission is
//! told of these ways is in [`connections`](super::connections).

use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use revisor_auth::{Attributes, Decision, Forbidden, Identity, ResourceAttributes};
use revisor_catalog::{Feature, ObjectRoute, Verb};
use revisor_object::{KindRef, Object, Status, StatusDetails, Value, parse_json};
use revisor_registry::{AdmissionNotes, Decoded, Eviction, RegistryError, WriteOptions};

use super::connections::{Connection, forwarded_ports};
use super::insides::{Destination, SPDY_INSIDE};
use super::log_options::LogOptions;
use super::{Refusal, body_format, deletion, note_sent, place, write_options};
use crate::query::Query;
use crate::remote_command::{self, Wanted};
use crate::representation::{Answer, Representation};
use crate::unread_body::UnreadBody;
use crate::{Api, Body, answer, web_socket};

/// Something that is done to a pod, or to what stands for pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PodAction {
    Bind,
    Evict,
    Log,
    /// Exec and attach, which need a container.
    EnterContainer,
    ForwardPort,
    Proxy,
    ProxyToNode,
    ProxyToService,
}

impl PodAction {
    fn of(route: &ObjectRoute, verb: Verb) -> Option<PodAction> {
        if !route.resource.group.is_empty() {
            return None;
        }
        match (route.resource.plural.as_str(), route.subresource.as_deref()) {
            ("bindings", None) if verb == Verb::Create => Some(PodAction::Bind),
            ("pods", Some("binding")) => Some(PodAction::Bind),
            ("pods", Some("eviction")) => Some(PodAction::Evict),
            ("pods", Some("log")) => Some(PodAction::Log),
            ("pods", Some("exec" | "attach")) => Some(PodAction::EnterContainer),
            ("pods", Some("portforward")) => Some(PodAction::ForwardPort),
            ("pods", Some("proxy")) => Some(PodAction::Proxy),
            ("nodes", Some("proxy")) => Some(PodAction::ProxyToNode),
            ("services", Some("proxy")) => Some(PodAction::ProxyToService),
            _ => None,
        }
    }
}

/// Whether a request is about something that is done to a pod.
pub(super) fn is_pod_action(route: &ObjectRoute, verb: Verb) -> bool {
    PodAction::of(route, verb).is_some()
}

impl Api {
    /// Does what is to be done to a pod.
    pub(super) async fn serve_pod_action(
        &self,
        route: &ObjectRoute,
        verb: Verb,
        request: Request<UnreadBody>,
        notes: &AdmissionNotes,
        representation: &Representation,
    ) -> Result<Response<Body>, Refusal> {
        let Some(action) = PodAction::of(route, verb) else { return Err(Box::new(Status::no_such_resource()).into()) };
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query());
        match action {
            PodAction::Bind | PodAction::Evict => {
                representation.require(Answer::Object)?;
                let options = write_options(query.write_options("CreateOptions")?, route, &query, &parts, notes);
                let format = body_format(&parts.headers, representation)?;
                let text = self.read(body).await?;
                let registry = &self.options.registry;
                let warnings = if action == PodAction::Bind {
                    let Some(bindings) = registry.built_in().resource("", "v1", "bindings") else {
                        return Err(Box::new(Status::no_such_resource()).into());
                    };
                    let binding = Decoded::read(bindings, format, &text, options.validation)?;
                    note_sent(representation, bindings, binding.object());
                    let warnings = binding.warnings.clone();
                    registry.bind(place(route), binding, options).await?;
                    warnings
                } else {
                    let eviction = Eviction::read(registry, format, &text, options.validation)?;
                    if let Some(kind) = Eviction::kind(registry) {
                        note_sent(representation, kind, eviction.object());
                    }
                    let warnings = eviction.warnings.clone();
                    registry.evict(place(route), eviction, options).await?;
                    warnings
                };
                let mut done = Status::success(StatusDetails::default());
                done.details = None;
                done.code = StatusCode::CREATED.as_u16();
                let mut response = representation.done(StatusCode::CREATED, &done);
                answer::add_warnings(&mut response, warnings);
                Ok(response)
            }
            _ => {
                if let Some(connection) = Connection::of(route) {
                    let options = WriteOptions { subresource: route.subresource.as_deref(), ..deletion(&parts, notes) };
                    self.admit_connection(route, connection, &parts, &query, options).await?;
                }
                match action {
                    PodAction::ProxyToNode => self.proxy_to_node(route, parts, body).await,
                    PodAction::ProxyToService => self.proxy_to_service(route, parts, body).await,
                    PodAction::Proxy => self.proxy_to_pod(route, parts, body).await,
                    PodAction::Log => {
                        representation.require(Answer::Log)?;
                        self.read_log(route, &query).await
                    }
                    _ => {
                        self.require_create(route, &parts).await?;
                        self.enter(route, action, parts, body).await
                    }
                }
            }
        }
    }

    /// What a container says.
    async fn read_log(&self, route: &ObjectRoute, query: &Query<'_>) -> Result<Response<Body>, Refusal> {
        let name = route.name.as_deref().unwrap_or_default();
        let options = LogOptions::read(query, self.features().has(Feature::PodLogsQuerySplitStreams))?;
        if !options.errors().is_empty() {
            let kind = KindRef { group: "", kind: "PodLogOptions" };
            return Err(Box::new(Status::invalid(kind, name, options.errors())).into());
        }
        let pod = self.read_object(&route.resource, route.namespace.as_deref(), name).await?;
        let container = chosen_container(&pod, name, &options.container).map_err(bad)?;
        let Some(node) = node_of(&pod) else {
            // Nothing runs, so nothing was said.
            let mut response = answer::json(StatusCode::NO_CONTENT, Body::Empty);
            response.headers_mut().remove(http::header::CONTENT_TYPE);
            return Ok(response);
        };
        let registered = self.require_node(route, node)?;
        let kubelets = &self.options.kubelets;
        let address = self.kubelet_address(kubelets, &registered)?;
        let namespace = route.namespace.as_deref().unwrap_or_default();
        let path = format!("/containerLogs/{namespace}/{name}/{container}");
        self.stream_log(kubelets, &address, &path, &options, route).await
    }

    /// A way into a pod: exec, attach and forwarded ports (upstream: `streamLocation`, `PortForwardLocation`).
    async fn enter(
        &self,
        route: &ObjectRoute,
        action: PodAction,
        parts: Parts,
        body: UnreadBody,
    ) -> Result<Response<Body>, Refusal> {
        let name = route.name.as_deref().unwrap_or_default();
        let pod = self.read_object(&route.resource, route.namespace.as_deref(), name).await?;
        let query = Query::parse(parts.uri.query());
        let namespace = route.namespace.as_deref().unwrap_or_default();
        let verb = route.subresource.as_deref().unwrap_or_default();
        let path = match action {
            PodAction::ForwardPort => format!("/portForward/{namespace}/{name}"),
            _ => {
                let container = chosen_container(&pod, name, query.text("container")).map_err(bad)?;
                format!("/{verb}/{namespace}/{name}/{container}")
            }
        };
        let asked = kubelet_query(verb, &query);
        let node = node_of(&pod).ok_or_else(|| bad(format!("pod {name} does not have a host assigned")))?;
        let registered = self.require_node(route, node)?;
        let kubelets = &self.options.kubelets;
        let address = self.kubelet_address(kubelets, &registered)?;
        let target = kubelets.target(&address, true);
        let target = target.map_err(|error| Refusal::from(Box::new(Status::unexplained(error.to_string()))))?;
        let client = &kubelets.client;
        let to = Destination { client, target, path, query: Some(asked), needs_upgrade: true };
        if !self.is_translated(action, verb, &registered) {
            return self.pass_inside(to, parts, body).await;
        }
        let protocols =
            if web_socket::is_asked_for(&parts.headers) { web_socket::protocols(&parts.headers) } else { Vec::new() };
        match action {
            PodAction::ForwardPort if protocols.iter().any(|name| tunneled(name).is_some()) => {
                let inner: Vec<&str> = protocols.iter().filter_map(|name| tunneled(name)).collect();
                self.tunnel_messages(to, &inner, parts, body).await
            }
            PodAction::EnterContainer if protocols.iter().any(|name| name == remote_command::SUBPROTOCOL) => {
                let is_wanted = |name| query.truth(name) == Some(true);
                let wanted = Wanted {
                    stdin: is_wanted("stdin"),
                    stdout: is_wanted("stdout"),
                    stderr: is_wanted("stderr"),
                    tty: is_wanted("tty"),
                };
                Ok(self.run_command(to, wanted, &parts))
            }
            _ => self.pass_inside(to, parts, body).await,
        }
    }

    /// Whether those who speak WebSocket are understood here, and not by the kubelet of a node, which may do so itself
    /// (upstream: `checkNodeSupportsWebsockets`).
    fn is_translated(&self, action: PodAction, verb: &str, node: &Object) -> bool {
        let features = self.features();
        let gate = match action {
            PodAction::ForwardPort => Feature::PortForwardWebsockets,
            _ => Feature::TranslateStreamCloseWebsocketRequests,
        };
        if !features.has(gate) {
            return false;
        }
        let own = Feature::ExtendWebSocketsToKubelet;
        let declared = node.at(&["status", "declaredFeatures"]).and_then(Value::as_array).unwrap_or_default();
        let is_theirs = features.has(own) && declared.iter().any(|name| name.as_str() == Some(own.name()));
        self.options.metrics.stream_routed(verb, is_theirs);
        !is_theirs
    }

    /// Who enters a pod has to be allowed to create such a connection, also if the method is another (upstream:
    /// `ensureAuthorizedForVerb`).
    async fn require_create(&self, route: &ObjectRoute, parts: &Parts) -> Result<(), Refusal> {
        let is_asked = self.features().has(Feature::AuthorizePodWebsocketUpgradeCreatePermission);
        if !is_asked || parts.method == Method::POST {
            return Ok(());
        }
        let user = parts.extensions.get::<Identity>().cloned().unwrap_or_else(Identity::anonymous);
        let resource = ResourceAttributes {
            group: &route.resource.group,
            version: &route.resource.version,
            resource: &route.resource.plural,
            subresource: route.subresource.as_deref(),
            namespace: route.namespace.as_deref(),
            name: route.name.as_deref(),
            selectors: None,
        };
        let attributes = Attributes { user: &user, verb: "create", path: parts.uri.path(), resource: Some(resource) };
        match self.options.authorizer.authorize_request(&attributes).await {
            Decision::Allow => Ok(()),
            Decision::Forbidden(refusal) => {
                Err(Box::new(crate::api::forbidden(Forbidden::of(&attributes, &refusal.reason))).into())
            }
        }
    }

    /// A pod may be bound to a node that nobody has registered. The original calls that node a pod, too.
    fn require_node(&self, route: &ObjectRoute, node: &str) -> Result<Object, RegistryError> {
        let registry = &self.options.registry;
        let item = registry
            .built_in()
            .resource("", "v1", "nodes")
            .and_then(|nodes| registry.cache_of(nodes).get(&nodes.key(None, node)));
        let missing = || RegistryError::NotFound { resource: route.resource.clone(), name: node.to_owned() };
        match parse_json(item.ok_or_else(missing)?.bytes()).map(|parsed| parsed.value) {
            Ok(Value::Object(node)) => Ok(node),
            _ => Err(RegistryError::Unreadable),
        }
    }
}

/// The protocol that is to be spoken on SPDY inside of a WebSocket (upstream: `protocolSupportsWebsocketTunneling`).
fn tunneled(protocol: &str) -> Option<&str> {
    protocol.strip_prefix(SPDY_INSIDE).filter(|inner| inner.ends_with(".k8s.io"))
}

fn bad(why: String) -> Refusal {
    Box::new(Status::bad_request(why)).into()
}

/// The node that a pod was given, if it was.
fn node_of(pod: &Object) -> Option<&str> {
    pod.at(&["spec", "nodeName"]).and_then(Value::as_str).filter(|node| !node.is_empty())
}

/// What a kubelet is told of how a client wants to be connected (upstream: `streamParams`).
fn kubelet_query(verb: &str, query: &Query<'_>) -> String {
    let mut told = form_urlencoded::Serializer::new(String::new());
    if verb == "portforward" {
        // What is no port was refused already.
        let ports: Vec<String> = forwarded_ports(query).unwrap_or_default().iter().map(u16::to_string).collect();
        if !ports.is_empty() {
            told.append_pair("port", &ports.join(","));
        }
        return told.finish();
    }
    if verb == "exec" {
        query.all("command").for_each(|word| _ = told.append_pair("command", word));
    }
    for (name, there) in [("stderr", "error"), ("stdin", "input"), ("stdout", "output"), ("tty", "tty")] {
        if query.truth(name) == Some(true) {
            told.append_pair(there, "1");
        }
    }
    told.finish()
}

/// A container must be named, unless there is only one, and must be one of the pod's (upstream: `validateContainer`).
fn chosen_container(pod: &Object, pod_name: &str, container: &str) -> Result<String, String> {
    let empty = Object::new();
    let spec = pod.object("spec").unwrap_or(&empty);
    let names = |list: &str| -> Vec<String> {
        let containers = spec.array(list).iter().filter_map(Value::as_object);
        containers.map(|container| container.str("name").unwrap_or_default().to_owned()).collect()
    };
    let all: Vec<String> =
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(names).collect();
    match (container, spec.array("containers").len()) {
        ("", 1) => Ok(names("containers").remove(0)),
        ("", 0) => Err(format!("a container name must be specified for pod {pod_name}")),
        ("", _) => {
            let all = all.join(" ");
            Err(format!("a container name must be specified for pod {pod_name}, choose one of: [{all}]"))
        }
        (name, _) if all.iter().any(|known| known == name) => Ok(name.to_owned()),
        (name, _) => Err(format!("container {name} is not valid for pod {pod_name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_found_or_asked_for() {
        let pod = |list: &str| {
            let text = format!(r#"{{"spec":{{"initContainers":[{{"name":"i"}}],"containers":[{list}]}}}}"#);
            match parse_json(text.as_bytes()).expect("is JSON").value {
                Value::Object(pod) => pod,
                other => panic!("no object: {other:?}"),
            }
        };
        let two = r#"{"name":"a"},{"name":"b"}"#;
        for (list, container, want) in [
            (r#"{"name":"a"}"#, "", Ok("a")),
            (r#"{"name":"a"}"#, "i", Ok("i")),
            (two, "b", Ok("b")),
            (two, "c", Err("container c is not valid for pod p")),
            (two, "", Err("a container name must be specified for pod p, choose one of: [i a b]")),
        ] {
            let want = want.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(chosen_container(&pod(list), "p", container), want, "{list} {container}");
        }
    }

    #[test]
    fn kubelets_are_told_in_their_own_words() {
        for (verb, query, want) in [
            ("exec", "command=a&command=b+c&stdin=true&stdout=1&tty=false", "command=a&command=b+c&input=1&output=1"),
            ("attach", "command=a&stderr=true&tty=1", "error=1&tty=1"),
            ("portforward", "ports=80&ports=443", "port=80%2C443"),
            ("portforward", "ports=080,443", "port=80%2C443"),
            ("portforward", "", ""),
        ] {
            assert_eq!(kubelet_query(verb, &Query::parse(Some(query))), want, "{verb} {query}");
        }
    }
}
