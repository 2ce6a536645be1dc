//! Connections to what runs behind the API: exec, attach and port forwards to pods, proxies to pods, services and nodes.
//! What admission is told of them, and where proxies lead. How requests get there is in [`insides`](super::insides).

use std::net::IpAddr;

use http::Response;
use http::request::Parts;
use revisor_catalog::{ObjectRoute, Resource};
use revisor_object::{Object, Status, Value, parse_json};
use revisor_registry::{GetRequest, GroupVersionKind, Operation, RegistryError, UnstoredWrite, WriteOptions};

use super::insides::{Destination, is_global_unicast, texts};
use super::{Refusal, place};
use crate::query::Query;
use crate::unread_body::UnreadBody;
use crate::{Api, Body};

/// What a client wants to be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    Attach,
    Exec,
    PortForward,
    NodeProxy,
    PodProxy,
    ServiceProxy,
}

impl Connection {
    /// What a request is about, if it is about one.
    pub(super) fn of(route: &ObjectRoute) -> Option<Connection> {
        if !route.resource.group.is_empty() {
            return None;
        }
        match (route.resource.plural.as_str(), route.subresource.as_deref()?) {
            ("pods", "attach") => Some(Connection::Attach),
            ("pods", "exec") => Some(Connection::Exec),
            ("pods", "portforward") => Some(Connection::PortForward),
            ("pods", "proxy") => Some(Connection::PodProxy),
            ("nodes", "proxy") => Some(Connection::NodeProxy),
            ("services", "proxy") => Some(Connection::ServiceProxy),
            _ => None,
        }
    }

    /// The kind of its options, which are the object of the request.
    fn kind(self) -> &'static str {
        match self {
            Connection::Attach => "PodAttachOptions",
            Connection::Exec => "PodExecOptions",
            Connection::PortForward => "PodPortForwardOptions",
            Connection::NodeProxy => "NodeProxyOptions",
            Connection::PodProxy => "PodProxyOptions",
            Connection::ServiceProxy => "ServiceProxyOptions",
        }
    }

    fn is_proxy(self) -> bool {
        matches!(self, Connection::NodeProxy | Connection::PodProxy | Connection::ServiceProxy)
    }

    /// What a client says of how it wants to be connected (upstream: `getRequestOptions`).
    fn options(self, path: &str, query: &Query<'_>) -> Result<Object, RegistryError> {
        let mut options = Object::new();
        if matches!(self, Connection::Attach | Connection::Exec) {
            for name in ["stdin", "stdout", "stderr", "tty"] {
                options.set(name, query.truth(name).filter(|truth| *truth).map(Value::from));
            }
            let container = query.text("container");
            options.set("container", (!container.is_empty()).then(|| Value::from(container)));
        }
        if self == Connection::Exec {
            let command: Vec<Value> = query.all("command").map(Value::from).collect();
            options.insert("command", if command.is_empty() { Value::Null } else { Value::from(command) });
        }
        if self == Connection::PortForward {
            let ports: Vec<Value> =
                forwarded_ports(query)?.into_iter().map(|port| Value::from(i32::from(port))).collect();
            options.set("ports", (!ports.is_empty()).then(|| Value::from(ports)));
        }
        if self.is_proxy() {
            let behind = path_behind(path);
            options.set("path", (!behind.is_empty()).then(|| Value::from(behind)));
        }
        Ok(options)
    }
}

/// The ports that a client wants forwarded, one by one or with commas (upstream: `Convert_Slice_string_To_Slice_int32`).
pub(super) fn forwarded_ports(query: &Query<'_>) -> Result<Vec<u16>, RegistryError> {
    let port = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let problem = if is_number { "value out of range" } else { "invalid syntax" };
        text.parse().ok().filter(|_| is_number).ok_or_else(|| {
            let message = format!("cannot convert to []int32: strconv.ParseUint: parsing {text:?}: {problem}");
            RegistryError::BadRequest(message)
        })
    };
    query.all("ports").flat_map(|ports| ports.split(',')).map(port).collect()
}

/// What a path says behind the proxy that it leads through, with its slashes.
fn path_behind(path: &str) -> &str {
    let mut rest = path;
    // The first one that follows a name: `…/services/proxy/proxy/x` is about a service of that name.
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    let is_named = |segment: &str| matches!(segment, "pods" | "services" | "nodes");
    while let Some(segment) = segments.next() {
        rest = &rest[rest.find(segment).map_or(0, |at| at + segment.len())..];
        // A namespace may have any of these names.
        if segment == "namespaces" {
            if let Some(namespace) = segments.next() {
                rest = &rest[rest.find(namespace).map_or(0, |at| at + namespace.len())..];
            }
            continue;
        }
        if is_named(segment) {
            for part in segments.by_ref().take(2) {
                rest = &rest[rest.find(part).map_or(0, |at| at + part.len())..];
            }
            return rest;
        }
    }
    ""
}

impl Api {
    /// Both passes of admission over a connection (upstream: `ConnectResource`).
    pub(super) async fn admit_connection(
        &self,
        route: &ObjectRoute,
        connection: Connection,
        parts: &Parts,
        query: &Query<'_>,
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        if query.all("dryRun").next().is_some() {
            return Err(RegistryError::BadRequest("dryRun is not supported".to_owned()));
        }
        let mut object = connection.options(parts.uri.path(), query)?;
        let write = UnstoredWrite {
            place: place(route),
            own_kind: Some(GroupVersionKind { group: "", version: "v1", kind: connection.kind() }),
            operation: Operation::Connect,
            options,
        };
        let registry = &self.options.registry;
        registry.admit_unstored(&write, &mut object).await?;
        registry.validate_unstored(&write, &object).await
    }

    /// A proxy to a pod (upstream: `pod.ResourceLocation`).
    pub(super) async fn proxy_to_pod(
        &self,
        route: &ObjectRoute,
        parts: Parts,
        body: UnreadBody,
    ) -> Result<Response<Body>, Refusal> {
        let id = route.name.as_deref().unwrap_or_default();
        let Some((scheme, name, port)) = split_name(id) else {
            return Err(bad(format!("invalid pod request {id:?}")));
        };
        let pod = self.read_object(&route.resource, route.namespace.as_deref(), name).await?;
        let containers = pod.at(&["spec", "containers"]).and_then(Value::as_array).unwrap_or_default();
        let mut first = containers.iter().filter_map(Value::as_object).filter_map(|it| it.array("ports").first());
        let declared = first.find_map(|port| port.as_object()?.get("containerPort")?.as_i64());
        let port = match (port, declared) {
            ("", None) => Ok(default_port(scheme)),
            ("", Some(declared)) => Ok(u16::try_from(declared).unwrap_or_default()),
            (port, _) => port.parse().map_err(|_| bad(format!("invalid port {port:?} of pod {name:?}"))),
        };
        let address = pod.at(&["status", "podIP"]).and_then(Value::as_str).unwrap_or_default();
        let allowed = address.parse::<IpAddr>().is_ok_and(is_global_unicast);
        if !allowed {
            return Err(bad("address not allowed".to_owned()));
        }
        let target = self.insides.target(scheme, address, port?)?;
        let to = self.inside(target, path_behind(parts.uri.path()));
        self.pass_inside(to, parts, body).await
    }

    /// A proxy to a service (upstream: `ResourceLocation`).
    pub(super) async fn proxy_to_service(
        &self,
        route: &ObjectRoute,
        parts: Parts,
        body: UnreadBody,
    ) -> Result<Response<Body>, Refusal> {
        let id = route.name.as_deref().unwrap_or_default();
        let unavailable = |why: String| Err(Refusal::from(Box::new(Status::service_unavailable(why))));
        let Some((scheme, name, port)) = split_name(id) else {
            return Err(bad(format!("invalid service request {id:?}")));
        };
        let mut port_name = port.to_owned();
        let service = self.read_object(&route.resource, route.namespace.as_deref(), name).await?;
        if let Ok(number) = port.parse::<i64>() {
            let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
            let has_number = |port: &&Object| port.get("port").and_then(Value::as_i64) == Some(number);
            let Some(found) = ports.iter().filter_map(Value::as_object).find(has_number) else {
                return unavailable(format!("no service port {number} found for service {name:?}"));
            };
            port_name = found.str("name").unwrap_or_default().to_owned();
        }
        let Some(endpoints) = self.options.registry.built_in().resource("", "v1", "endpoints").cloned() else {
            return unavailable(format!("no endpoints available for service {name:?}"));
        };
        let endpoints = self.read_object(&endpoints, route.namespace.as_deref(), name).await;
        // As in the original, what a request is about is what is not found.
        let endpoints = endpoints.map_err(|error| match error {
            RegistryError::NotFound { name, .. } => RegistryError::NotFound { resource: route.resource.clone(), name },
            other => other,
        })?;
        let subsets = endpoints.array("subsets");
        if subsets.is_empty() {
            return unavailable(format!("no endpoints available for service {name:?}"));
        }
        for subset in subsets.iter().filter_map(Value::as_object) {
            let mut ports = subset.array("ports").iter().filter_map(Value::as_object);
            let port = ports.find(|port| port.str("name").unwrap_or_default() == port_name);
            let port = port.and_then(|port| port.get("port")?.as_i64()).and_then(|port| u16::try_from(port).ok());
            let Some(port) = port else { continue };
            for address in subset.array("addresses").iter().filter_map(Value::as_object) {
                if let Some(ip) = self.pod_address(route, address).await {
                    let target = self.insides.target(scheme, &ip, port)?;
                    let to = self.inside(target, path_behind(parts.uri.path()));
                    return self.pass_inside(to, parts, body).await;
                }
            }
        }
        unavailable(format!("no endpoints available for service {id:?}"))
    }

    /// The address of an endpoint, if it is that of the pod that it names: requests are passed on to nobody else
    /// (upstream: `isValidAddress`).
    async fn pod_address(&self, route: &ObjectRoute, address: &Object) -> Option<String> {
        let ip = address.str("ip")?;
        let target = address.object("targetRef")?;
        if target.str("namespace") != route.namespace.as_deref() {
            return None;
        }
        let pods = self.options.registry.built_in().resource("", "v1", "pods")?.clone();
        let pod = self.read_object(&pods, route.namespace.as_deref(), target.str("name")?).await.ok()?;
        texts(&pod, &["status", "podIPs"], "ip").contains(&ip).then(|| ip.to_owned())
    }

    /// A proxy to a node (upstream: `node.ResourceLocation`).
    pub(super) async fn proxy_to_node(
        &self,
        route: &ObjectRoute,
        parts: Parts,
        body: UnreadBody,
    ) -> Result<Response<Body>, Refusal> {
        let id = route.name.as_deref().unwrap_or_default();
        let Some((scheme, name, port)) = split_name(id) else {
            return Err(bad(format!("invalid node request {id:?}")));
        };
        let node = self.read_object(&route.resource, None, name).await?;
        let kubelets = &self.options.kubelets;
        let address = self.kubelet_address(kubelets, &node)?;
        require_proxyable(&address.host).await.map_err(bad)?;
        let behind = path_behind(parts.uri.path()).to_owned();
        let to = if port.is_empty() || port == address.port.to_string() {
            let target = kubelets.target(&address, true);
            let target = target.map_err(|error| Refusal::from(Box::new(Status::unexplained(error.to_string()))))?;
            let client = &kubelets.client;
            Destination { client, target, path: behind, query: None, needs_upgrade: false }
        } else {
            let port = port.parse().map_err(|_| bad(format!("invalid port {port:?} of node {name:?}")))?;
            self.inside(self.insides.target(scheme, &address.host, port)?, &behind)
        };
        self.pass_inside(to, parts, body).await
    }

    /// The newest state of an object.
    pub(super) async fn read_object(
        &self,
        resource: &std::sync::Arc<Resource>,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Object, RegistryError> {
        let request = GetRequest { resource, namespace, name, resource_version: "", resource_version_match: "" };
        let got = self.options.registry.get(request).await?;
        match parse_json(&got.bytes).map(|parsed| parsed.value) {
            Ok(Value::Object(object)) => Ok(object),
            _ => Err(RegistryError::Unreadable),
        }
    }
}

fn bad(why: String) -> Refusal {
    Box::new(Status::bad_request(why)).into()
}

/// The port of a scheme.
fn default_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

/// Refuses names that lead to this machine itself, or nowhere (upstream: `isProxyableHostname`).
async fn require_proxyable(host: &str) -> Result<(), String> {
    let found: Vec<IpAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => {
            let found = tokio::net::lookup_host((host, 0)).await;
            found.map_err(|_| format!("lookup {host}: no such host"))?.map(|address| address.ip()).collect()
        }
    };
    if found.is_empty() {
        return Err("no addresses for hostname".to_owned());
    }
    match found.into_iter().all(is_global_unicast) {
        true => Ok(()),
        false => Err("address not allowed".to_owned()),
    }
}

/// `scheme:name:port`, where all but the name may be missing (upstream: `SplitSchemeNamePort`).
pub(super) fn split_name(text: &str) -> Option<(&str, &str, &str)> {
    let parts: Vec<&str> = text.split(':').collect();
    let found = match parts.as_slice() {
        [name] => ("", *name, ""),
        [name, port] => ("", *name, *port),
        [scheme @ ("http" | "https" | ""), name, port] => (*scheme, *name, *port),
        _ => return None,
    };
    (!found.1.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_behind_a_proxy_keeps_its_slashes() {
        for (path, want) in [
            ("/api/v1/nodes/n/proxy", ""),
            ("/api/v1/nodes/n/proxy/", "/"),
            ("/api/v1/nodes/n/proxy/logs/", "/logs/"),
            ("/api/v1/namespaces/proxy/services/http:proxy:80/proxy/proxy/a", "/proxy/a"),
            ("/api/v1/namespaces/pods/pods/p/proxy/a/b", "/a/b"),
        ] {
            assert_eq!(path_behind(path), want, "{path}");
        }
    }

    #[test]
    fn what_a_client_asks_for_becomes_an_object_of_its_kind() {
        let path = "/api/v1/namespaces/a/services/s/proxy/x";
        for (connection, query, want) in [
            (
                Connection::Exec,
                "command=a&command=b&stdin=true&tty=false&container=c",
                Ok(r#"{"command":["a","b"],"container":"c","stdin":true}"#),
            ),
            (Connection::Exec, "", Ok(r#"{"command":null}"#)),
            (Connection::Attach, "stdout=1", Ok(r#"{"stdout":true}"#)),
            (Connection::PortForward, "ports=80&ports=443", Ok(r#"{"ports":[80,443]}"#)),
            (Connection::PortForward, "ports=80,443&ports=1", Ok(r#"{"ports":[80,443,1]}"#)),
            (
                Connection::PortForward,
                "ports=80,%2B1",
                Err(r#"cannot convert to []int32: strconv.ParseUint: parsing "+1": invalid syntax"#),
            ),
            (
                Connection::PortForward,
                "ports=65536",
                Err(r#"cannot convert to []int32: strconv.ParseUint: parsing "65536": value out of range"#),
            ),
            (Connection::ServiceProxy, "path=ignored", Ok(r#"{"path":"/x"}"#)),
        ] {
            let options = connection.options(path, &Query::parse(Some(query)));
            let shown = options.map(|options| Value::Object(options).to_json()).map_err(|error| error.to_string());
            assert_eq!(shown, want.map(str::to_owned).map_err(str::to_owned), "{connection:?} {query}");
        }
    }

    #[test]
    fn names_may_say_scheme_and_port() {
        for (text, want) in [
            ("s", Some(("", "s", ""))),
            ("s:80", Some(("", "s", "80"))),
            ("https:s:web", Some(("https", "s", "web"))),
            ("ftp:s:1", None),
            ("a:b:c:d", None),
            ("", None),
        ] {
            assert_eq!(split_name(text), want, "{text}");
        }
    }
}
