//! How clients inside of a cluster find the server: the Service `kubernetes`, what it leads to, and the ranges that it
//! and all others have their addresses from.

use std::net::IpAddr;

use futures_util::future::{try_join, try_join3};
use revisor_object::{Object, Value, Warnings};

use crate::{Decoded, DeleteOptions, Place, Registry, RegistryError, WriteOptions};

/// The name of the Service, of its endpoints and of the first ServiceCIDR.
const NAME: &str = "kubernetes";
const NAMESPACE: &str = "default";

/// The port of the Service, whatever the server listens on.
const PORT: i32 = 443;
const PORT_NAME: &str = "https";

/// Where the server can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertised {
    /// The address, if there is one that others can reach.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
    /// The port at which every node leads to the server; `None` if none does.
    pub node_port: Option<u16>,
}

impl Registry {
    /// Makes the ServiceCIDR of the configured ranges, or lets a second family join one that is there.
    pub(super) async fn ensure_service_ranges(&self, options: WriteOptions<'_>) -> Result<(), RegistryError> {
        let Some(resource) = self.catalog.resource("networking.k8s.io", "v1", "servicecidrs").cloned() else {
            return Ok(());
        };
        let ranges: Vec<Value> = self.allocation.ranges.iter().map(|range| Value::from(range.to_string())).collect();
        let stored = || self.stored("networking.k8s.io", "v1", "servicecidrs", None, NAME);
        let ranges_of = |object: &Object| object.object("spec").map(|spec| spec.array("cidrs").to_vec());
        match stored() {
            None => {
                let mut object = named(NAME);
                object.object_mut("spec").insert("cidrs", ranges.clone());
                self.ensure(&resource, None, object, options).await?;
            }
            Some(mut object) if ranges.len() == 2 && ranges_of(&object).as_deref() == Some(&ranges[..1]) => {
                object.object_mut("spec").insert("cidrs", ranges.clone());
                self.put("networking.k8s.io", "servicecidrs", None, object, options).await?;
            }
            Some(_) => {}
        }
        let Some(mut object) = stored() else { return Ok(()) };
        if ranges_of(&object).as_deref() != Some(&ranges) {
            tracing::warn!(flag = ?ranges, "the ServiceCIDR kubernetes names other ranges than the flag");
            return Ok(());
        }
        let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
        let is_judged = conditions.iter().filter_map(Value::as_object).any(|condition| {
            condition.str("type") == Some("Ready") && matches!(condition.str("status"), Some("True" | "False"))
        });
        if is_judged || object.at(&["metadata", "deletionTimestamp"]).is_some() {
            return Ok(());
        }
        let ready: Object = [
            ("type", Value::from("Ready")),
            ("status", Value::from("True")),
            ("lastTransitionTime", Value::from(self.environment.timestamp())),
            ("reason", Value::from("")),
            ("message", Value::from("Kubernetes default Service CIDR is ready")),
        ]
        .into_iter()
        .collect();
        object.object_mut("status").insert("conditions", vec![Value::from(ready)]);
        let options = WriteOptions { subresource: Some("status"), ..options };
        self.put("networking.k8s.io", "servicecidrs", None, object, options).await
    }

    /// Tells clients inside of a cluster where the server is. The Service is made if it is missing; where it leads to is
    /// brought up to date. Doing it again writes nothing.
    pub async fn advertise(&self, advertised: Advertised) -> Result<(), RegistryError> {
        let options = self.own.options_within(super::PATIENCE);
        self.ensure_service_ranges(options).await?;
        let is_served = |plural| self.catalog.resource("networking.k8s.io", "v1", plural).is_some();
        if !(is_served("servicecidrs") && is_served("ipaddresses")) {
            // Without them no service gets an address, and this one would be refused.
            tracing::debug!("the addresses of services are switched off; the server is not advertised");
            return Ok(());
        }
        let Some(address) = advertised.address else {
            return self.ensure_kubernetes_service(advertised, options).await;
        };
        let addresses = match &self.master_leases {
            Some(leases) => leases.renew(self, address).await?,
            None => vec![address],
        };
        let endpoints = endpoints(&addresses, advertised.port);
        let slice = endpoint_slice(address, &addresses, advertised.port);
        // None of them needs another to be there.
        let made = try_join3(
            self.ensure_kubernetes_service(advertised, options),
            self.lead_to("", "endpoints", endpoints, options),
            self.lead_to("discovery.k8s.io", "endpointslices", slice, options),
        );
        made.await.map(|_| ())
    }

    /// Tells clients inside of a cluster that the server is there no more, if others are.
    pub async fn withdraw(&self, advertised: Advertised) -> Result<(), RegistryError> {
        let (Some(leases), Some(address)) = (&self.master_leases, advertised.address) else { return Ok(()) };
        let options = self.own.options_within(super::PATIENCE);
        let addresses = leases.give_up(self, address).await?;
        let slice = endpoint_slice(address, &addresses, advertised.port);
        try_join(
            self.lead_to("", "endpoints", endpoints(&addresses, advertised.port), options),
            self.lead_to("discovery.k8s.io", "endpointslices", slice, options),
        )
        .await
        .map(|_| ())
    }

    async fn ensure_kubernetes_service(
        &self,
        advertised: Advertised,
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let Some(services) = self.catalog.resource("", "v1", "services").cloned() else { return Ok(()) };
        if self.stored("", "v1", "services", Some(NAMESPACE), NAME).is_none() {
            let service = self.kubernetes_service(advertised);
            self.ensure(&services, Some(NAMESPACE), service, options).await?;
        }
        Ok(())
    }

    /// Brings up to date where the Service leads to.
    async fn lead_to(
        &self,
        group: &str,
        plural: &str,
        object: Object,
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let Some(resource) = self.catalog.resource(group, "v1", plural).cloned() else { return Ok(()) };
        let stored = self.stored(group, "v1", plural, Some(NAMESPACE), NAME);
        let is_there = stored.is_some();
        if stored.is_some_and(|stored| stored.get("addressType") == object.get("addressType")) {
            return self.put(group, plural, Some(NAMESPACE), object, options).await;
        }
        if is_there {
            // A slice stays in its family.
            let place = Place { resource: &resource, namespace: Some(NAMESPACE), name: Some(NAME) };
            self.delete_for(place, &DeleteOptions::default(), options).await?;
        }
        self.ensure(&resource, Some(NAMESPACE), object, options).await.map(|_| ())
    }

    fn kubernetes_service(&self, advertised: Advertised) -> Object {
        let mut service = named(NAME);
        let labels = service.object_mut("metadata").object_mut("labels");
        labels.insert("component", "apiserver");
        labels.insert("provider", "kubernetes");
        let mut port: Object = [
            ("name", Value::from(PORT_NAME)),
            ("protocol", Value::from("TCP")),
            ("port", Value::from(PORT)),
            ("targetPort", Value::from(i32::from(advertised.port))),
        ]
        .into_iter()
        .collect();
        if let Some(node_port) = advertised.node_port {
            port.insert("nodePort", i32::from(node_port));
        }
        let spec = service.object_mut("spec");
        spec.insert("ports", vec![Value::from(port)]);
        spec.insert("ipFamilyPolicy", "SingleStack");
        spec.insert("sessionAffinity", "None");
        spec.insert("type", if advertised.node_port.is_some() { "NodePort" } else { "ClusterIP" });
        if let Some(ip) = self.allocation.ranges.first().and_then(crate::allocation::first_host) {
            spec.insert("clusterIP", ip.to_string());
        }
        service
    }

    /// Puts an object in place of the one that is there.
    async fn put(
        &self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
        mut object: Object,
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let Some(resource) = self.catalog.resource(group, "v1", plural) else { return Ok(()) };
        let metadata = object.object_mut("metadata");
        // Whatever was there is outdated.
        for name in ["resourceVersion", "managedFields"] {
            metadata.remove(name);
        }
        object.remove("kind");
        object.remove("apiVersion");
        let place = Place { resource, namespace, name: Some(NAME) };
        self.update(place, Decoded { object, warnings: Warnings::default() }, options).await.map(|_| ())
    }
}

fn named(name: &str) -> Object {
    let mut object = Object::new();
    object.object_mut("metadata").insert("name", name);
    object
}

fn endpoints(addresses: &[IpAddr], port: u16) -> Object {
    let mut endpoints = named(NAME);
    // The slice is the server's too, so that nobody need copy it.
    endpoints.object_mut("metadata").object_mut("labels").insert("endpointslice.kubernetes.io/skip-mirror", "true");
    if addresses.is_empty() {
        return endpoints;
    }
    let address = |ip: &IpAddr| Value::from([("ip", Value::from(ip.to_string()))].into_iter().collect::<Object>());
    let subset: Object = [
        ("addresses", Value::from(addresses.iter().map(address).collect::<Vec<_>>())),
        ("ports", Value::from(vec![Value::from(endpoint_port(port))])),
    ]
    .into_iter()
    .collect();
    endpoints.insert("subsets", vec![Value::from(subset)]);
    endpoints
}

/// A slice is of one family, that of `own`.
fn endpoint_slice(own: IpAddr, addresses: &[IpAddr], port: u16) -> Object {
    let mut slice = named(NAME);
    slice.object_mut("metadata").object_mut("labels").insert("kubernetes.io/service-name", NAME);
    slice.insert("addressType", if own.is_ipv6() { "IPv6" } else { "IPv4" });
    let conditions: Object = [("ready", Value::from(true))].into_iter().collect();
    let endpoint = |address: &IpAddr| {
        let addresses = vec![Value::from(address.to_string())];
        let endpoint: Object = [("addresses", Value::from(addresses)), ("conditions", Value::from(conditions.clone()))]
            .into_iter()
            .collect();
        Value::from(endpoint)
    };
    let of_family = addresses.iter().filter(|address| address.is_ipv6() == own.is_ipv6());
    slice.insert("endpoints", of_family.map(endpoint).collect::<Vec<_>>());
    slice.insert("ports", vec![Value::from(endpoint_port(port))]);
    slice
}

fn endpoint_port(port: u16) -> Object {
    [("name", Value::from(PORT_NAME)), ("port", Value::from(i32::from(port))), ("protocol", Value::from("TCP"))]
        .into_iter()
        .collect()
}
