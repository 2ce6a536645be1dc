//! What is done to a pod rather than written to it: binding, eviction, and the ways into its containers. What admission is
//! told of these ways is in [`connections`](super::connections).

use http::{Request, Response, StatusCode};
use revisor_catalog::{ObjectRoute, Verb};
use revisor_object::{FieldError, FieldErrors, KindRef, Object, Status, StatusDetails, Value};
use revisor_registry::{AdmissionNotes, Decoded, Eviction, RegistryError, WriteOptions};

use super::connections::{Connection, split_name};
use super::{Refusal, body_format, deletion, place, write_options};
use crate::query::Query;
use crate::representation::{Answer, Representation};
use crate::unread_body::UnreadBody;
use crate::{Api, Body, answer};

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
                let options = write_options("CreateOptions", route, &query, &parts, notes)?;
                let format = body_format(&parts.headers, representation)?;
                let text = self.read(body).await?;
                let registry = &self.options.registry;
                if action == PodAction::Bind {
                    let Some(bindings) = registry.built_in().resource("", "v1", "bindings") else {
                        return Err(Box::new(Status::no_such_resource()).into());
                    };
                    let binding = Decoded::read(bindings, format, &text, options.validation)?;
                    registry.bind(place(route), binding, options).await?;
                } else {
                    let eviction = Eviction::read(registry, format, &text)?;
                    registry.evict(place(route), eviction, options).await?;
                }
                let mut done = Status::success(StatusDetails::default());
                done.details = None;
                done.code = StatusCode::CREATED.as_u16();
                Ok(representation.done(StatusCode::CREATED, &done))
            }
            _ => {
                if let Some(connection) = Connection::of(route) {
                    let options = WriteOptions { subresource: route.subresource.as_deref(), ..deletion(&parts, notes) };
                    self.admit_connection(route, connection, &parts, &query, options).await?;
                }
                match action {
                    PodAction::ProxyToNode => self.proxy_to_node(route).await,
                    PodAction::ProxyToService => self.proxy_to_service(route).await,
                    _ => self.enter(route, action, &query).await,
                }
            }
        }
    }

    /// A way into a pod, as far as it can be gone.
    async fn enter(
        &self,
        route: &ObjectRoute,
        action: PodAction,
        query: &Query<'_>,
    ) -> Result<Response<Body>, Refusal> {
        let name = route.name.as_deref().unwrap_or_default();
        let bad = |why: String| Refusal::from(Box::new(Status::bad_request(why)));
        if action == PodAction::Log {
            let errors = validate_log_options(query)?;
            if !errors.is_empty() {
                let kind = KindRef { group: "", kind: "PodLogOptions" };
                return Err(Box::new(Status::invalid(kind, name, &errors)).into());
            }
        }
        let (_, name, _) = split_name(name).filter(|_| action == PodAction::Proxy).unwrap_or(("", name, ""));
        let pod = self.read_object(&route.resource, route.namespace.as_deref(), name).await?;
        if matches!(action, PodAction::Log | PodAction::EnterContainer) {
            check_container(&pod, name, query.text("container")).map_err(bad)?;
        }
        if action == PodAction::Proxy {
            let address = pod.at(&["status", "podIP"]).and_then(Value::as_str).unwrap_or_default();
            let Ok(address) = address.parse::<std::net::IpAddr>() else {
                return Err(bad("address not allowed".into()));
            };
            let why = format!("this server has no way to pods, so {address} cannot be reached");
            return Err(Box::new(Status::service_unavailable(why)).into());
        }
        let node = pod.at(&["spec", "nodeName"]).and_then(Value::as_str).unwrap_or_default();
        match (node, action) {
            // Nothing runs, so nothing was said.
            ("", PodAction::Log) => {
                let mut response = answer::json(StatusCode::NO_CONTENT, Body::Empty);
                response.headers_mut().remove(http::header::CONTENT_TYPE);
                Ok(response)
            }
            ("", _) => Err(bad(format!("pod {name} does not have a host assigned"))),
            (node, _) => {
                self.require_node(route, node)?;
                let why = format!("this server has no way to kubelets, so that of node {node:?} cannot be asked");
                Err(Box::new(Status::service_unavailable(why)).into())
            }
        }
    }

    /// A pod may be bound to a node that nobody has registered. The original calls that node a pod, too.
    fn require_node(&self, route: &ObjectRoute, node: &str) -> Result<(), RegistryError> {
        let registry = &self.options.registry;
        let is_known = registry
            .built_in()
            .resource("", "v1", "nodes")
            .is_some_and(|nodes| registry.cache_of(nodes).get(&nodes.key(None, node)).is_some());
        if is_known {
            return Ok(());
        }
        Err(RegistryError::NotFound { resource: route.resource.clone(), name: node.to_owned() })
    }
}

fn validate_log_options(query: &Query<'_>) -> Result<FieldErrors, RegistryError> {
    let mut errors = FieldErrors::new();
    for (name, least, detail) in [
        ("tailLines", 0, "must be greater than or equal to 0"),
        ("limitBytes", 1, "must be greater than 0"),
        ("sinceSeconds", 1, "must be greater than 0"),
    ] {
        if let Some(number) = query.number(name)?.filter(|number| *number < least) {
            errors.push(FieldError::invalid(name, number, detail));
        }
    }
    if query.number("sinceSeconds")?.is_some() && !query.text("sinceTime").is_empty() {
        errors.push(FieldError::forbidden("<nil>", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
    }
    Ok(errors)
}

/// A container must be named, unless there is only one, and must be one of the pod's.
fn check_container(pod: &Object, pod_name: &str, container: &str) -> Result<(), String> {
    let empty = Object::new();
    let spec = pod.object("spec").unwrap_or(&empty);
    let names = |list: &str| -> Vec<String> {
        let containers = spec.array(list).iter().filter_map(Value::as_object);
        containers.map(|container| container.str("name").unwrap_or_default().to_owned()).collect()
    };
    let all: Vec<String> =
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(names).collect();
    match (container, spec.array("containers").len()) {
        ("", 1) => Ok(()),
        ("", 0) => Err(format!("a container name must be specified for pod {pod_name}")),
        ("", _) => {
            let all = all.join(" ");
            Err(format!("a container name must be specified for pod {pod_name}, choose one of: [{all}]"))
        }
        (name, _) if all.iter().any(|known| known == name) => Ok(()),
        (name, _) => Err(format!("container {name} is not valid for pod {pod_name}")),
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

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
            (r#"{"name":"a"}"#, "", Ok(())),
            (r#"{"name":"a"}"#, "i", Ok(())),
            (two, "b", Ok(())),
            (two, "c", Err("container c is not valid for pod p")),
            (two, "", Err("a container name must be specified for pod p, choose one of: [i a b]")),
        ] {
            assert_eq!(check_container(&pod(list), "p", container), want.map_err(str::to_owned), "{list} {container}");
        }
    }
}
