//! Where services can be reached by this server: for webhooks that are behind one, and for API servers.
//!
//! A cluster has somebody who routes the addresses of services. A server on its own has not, so endpoints come first:
//! whoever runs a webhook beside the server can say in them where it is, in EndpointSlices or in Endpoints. A cluster
//! makes the former of the latter; a server on its own reads both.

use std::sync::Weak;

use revisor_object::{Object, Value};
use revisor_webhook::{Endpoint, Resolving, ServiceResolver, UnresolvedService};

use crate::{Decoded, Registry};

/// By which EndpointSlices say whose they are.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Knows where services are.
pub(crate) struct ServiceAddresses(pub(crate) Weak<Registry>);

impl ServiceResolver for ServiceAddresses {
    fn resolve<'a>(&'a self, namespace: &'a str, name: &'a str, port: u16) -> Resolving<'a> {
        Box::pin(async move {
            let registry = self.0.upgrade().ok_or_else(|| UnresolvedService("the server is stopping".to_owned()))?;
            registry.service_address(namespace, name, port).map_err(UnresolvedService)
        })
    }
}

/// Whether a service can be expected to answer at one of its ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceStanding {
    /// There is no such service.
    NotFound,
    /// It has no such port.
    NotListening,
    /// Nobody says where it is.
    NoEndpoints,
    /// Nobody is ready behind its port of this name.
    NoAddresses {
        /// The name; it may be empty.
        port_name: String,
    },
    /// As far as objects say it can.
    Usable,
}

impl Registry {
    /// Where a port of a service can be reached: at an endpoint, or else at the address of the service.
    pub fn service_address(&self, namespace: &str, name: &str, port: u16) -> Result<Endpoint, String> {
        let service = self.find_core("services", namespace, name);
        let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
        let spec = service.object("spec").ok_or_else(|| format!("service {name:?} not found"))?;
        if spec.str("type") == Some("ExternalName") {
            let host = spec.str("externalName").unwrap_or_default().to_owned();
            return Ok(Endpoint { host, port });
        }
        let port_name =
            port_name(spec, port).ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        if let Some(endpoint) = self.ready_endpoint(namespace, name, port_name) {
            return Ok(endpoint);
        }
        match spec.str("clusterIP").unwrap_or_default() {
            "" | "None" => Err(format!("no endpoints available for service {name:?}")),
            address => Ok(Endpoint { host: address.to_owned(), port }),
        }
    }

    /// The same by endpoints alone (upstream: `ResolveEndpoint`).
    pub fn service_endpoint(&self, namespace: &str, name: &str, port: u16) -> Result<Endpoint, String> {
        let service = self.find_core("services", namespace, name);
        let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
        let empty = Object::new();
        let spec = service.object("spec").unwrap_or(&empty);
        if spec.str("type") == Some("ExternalName") {
            return Err(format!("unsupported service type {:?}", "ExternalName"));
        }
        let port_name =
            port_name(spec, port).ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        self.ready_endpoint(namespace, name, port_name)
            .ok_or_else(|| format!("no endpoints available for service {name:?}"))
    }

    /// Whether a service can be expected to answer (upstream: `AvailableConditionController.sync`, before it asks).
    pub fn service_standing(&self, namespace: &str, name: &str, port: u16) -> ServiceStanding {
        let Some(service) = self.find_core("services", namespace, name) else { return ServiceStanding::NotFound };
        let empty = Object::new();
        let spec = service.object("spec").unwrap_or(&empty);
        if spec.str("type").is_some_and(|kind| kind != "ClusterIP") {
            return ServiceStanding::Usable;
        }
        let Some(port_name) = port_name(spec, port) else { return ServiceStanding::NotListening };
        if self.ready_endpoint(namespace, name, port_name).is_some() {
            return ServiceStanding::Usable;
        }
        let is_told = !self.slices_of(namespace, name).is_empty()
            || self.find_core("endpoints", namespace, name).is_some_and(|found| !found.array("subsets").is_empty());
        match is_told {
            true => ServiceStanding::NoAddresses { port_name: port_name.to_owned() },
            false => ServiceStanding::NoEndpoints,
        }
    }

    /// Where somebody is ready behind the port of this name.
    fn ready_endpoint(&self, namespace: &str, name: &str, port_name: &str) -> Option<Endpoint> {
        let of_slices = self.slices_of(namespace, name).iter().find_map(|slice| ready_in_slice(slice, port_name));
        of_slices.or_else(|| ready_in_subsets(&self.find_core("endpoints", namespace, name)?, port_name))
    }

    /// The EndpointSlices of a service.
    fn slices_of(&self, namespace: &str, name: &str) -> Vec<Object> {
        let Some(resource) = self.catalog.resource("discovery.k8s.io", "v1", "endpointslices") else {
            return Vec::new();
        };
        let resource = resource.storage();
        let snapshot = self.cache_of(resource).snapshot();
        let items = snapshot.range(&resource.collection(Some(namespace)), None);
        let is_own =
            |slice: &Object| slice.at(&["metadata", "labels", SERVICE_NAME]).and_then(Value::as_str) == Some(name);
        items.filter_map(|item| Decoded::stored(item.bytes()).ok()).filter(is_own).collect()
    }

    pub(crate) fn find_core(&self, plural: &str, namespace: &str, name: &str) -> Option<Object> {
        let resource = self.catalog.resource("", "v1", plural)?;
        let item = self.cache_of(resource).get(&resource.key(Some(namespace), name))?;
        Decoded::stored(item.bytes()).ok()
    }
}

/// The name of a service's port.
fn port_name(spec: &Object, port: u16) -> Option<&str> {
    let mut ports = spec.array("ports").iter().filter_map(Value::as_object);
    let found = ports.find(|known| known.get("port").and_then(Value::as_i64) == Some(port.into()))?;
    Some(found.str("name").unwrap_or_default())
}

/// The port with this name.
fn number_of(ports: &[Value], name: &str) -> Option<u16> {
    let mut ports = ports.iter().filter_map(Value::as_object);
    let port = ports.find(|port| port.str("name").unwrap_or_default() == name)?.get("port")?.as_i64()?;
    u16::try_from(port).ok()
}

/// The first address that is ready, at the port with this name.
fn ready_in_subsets(endpoints: &Object, port_name: &str) -> Option<Endpoint> {
    endpoints.array("subsets").iter().filter_map(Value::as_object).find_map(|subset| {
        let address = subset.array("addresses").iter().filter_map(Value::as_object).find_map(|it| it.str("ip"))?;
        Some(Endpoint { host: address.to_owned(), port: number_of(subset.array("ports"), port_name)? })
    })
}

/// The same of an EndpointSlice: an endpoint that does not say that it is not ready is.
fn ready_in_slice(slice: &Object, port_name: &str) -> Option<Endpoint> {
    let port = number_of(slice.array("ports"), port_name)?;
    let is_ready = |endpoint: &&Object| endpoint.at(&["conditions", "ready"]).and_then(Value::as_bool) != Some(false);
    let mut ready = slice.array("endpoints").iter().filter_map(Value::as_object).filter(is_ready);
    let address = ready.find_map(|endpoint| endpoint.array("addresses").first().and_then(Value::as_str))?;
    Some(Endpoint { host: address.to_owned(), port })
}
