//! Where services can be reached by this server, for webhooks that are behind one.
//!
//! A cluster has somebody who routes the addresses of services. A server on its own has not, so endpoints come first:
//! whoever runs a webhook beside the server can say in them where it is.

use std::sync::Weak;

use revisor_object::{Object, Value};
use revisor_webhook::{Endpoint, Resolving, ServiceResolver, UnresolvedService};

use crate::{Decoded, Registry};

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

impl Registry {
    fn service_address(&self, namespace: &str, name: &str, port: u16) -> Result<Endpoint, String> {
        let service = self.find_core("services", namespace, name);
        let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
        let spec = service.object("spec").ok_or_else(|| format!("service {name:?} not found"))?;
        if spec.str("type") == Some("ExternalName") {
            let host = spec.str("externalName").unwrap_or_default().to_owned();
            return Ok(Endpoint { host, port });
        }
        let ports = spec.array("ports").iter().filter_map(Value::as_object);
        let listed = ports.into_iter().find(|known| known.get("port").and_then(Value::as_i64) == Some(port.into()));
        let listed = listed.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        if let Some(endpoint) = self
            .find_core("endpoints", namespace, name)
            .and_then(|endpoints| ready_endpoint(&endpoints, listed.str("name").unwrap_or_default()))
        {
            return Ok(endpoint);
        }
        match spec.str("clusterIP").unwrap_or_default() {
            "" | "None" => Err(format!("no endpoints available for service {name:?}")),
            address => Ok(Endpoint { host: address.to_owned(), port }),
        }
    }

    fn find_core(&self, plural: &str, namespace: &str, name: &str) -> Option<Object> {
        let resource = self.catalog.resource("", "v1", plural)?;
        let item = self.cache_of(resource).get(&resource.key(Some(namespace), name))?;
        Decoded::stored(item.bytes()).ok()
    }
}

/// The first address that is ready, at the port with this name.
fn ready_endpoint(endpoints: &Object, port_name: &str) -> Option<Endpoint> {
    endpoints.array("subsets").iter().filter_map(Value::as_object).find_map(|subset| {
        let address = subset.array("addresses").iter().filter_map(Value::as_object).find_map(|it| it.str("ip"))?;
        let mut ports = subset.array("ports").iter().filter_map(Value::as_object);
        let port = ports.find(|port| port.str("name").unwrap_or_default() == port_name)?.get("port")?.as_i64()?;
        Some(Endpoint { host: address.to_owned(), port: u16::try_from(port).ok()? })
    })
}
