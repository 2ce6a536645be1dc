//! [`ServiceSpec`]: what the spec of a Service says, for its strategy and for those who allocate addresses and ports.

use revisor_object::{Object, Value};

/// A view of the spec of a Service. A spec that is missing says nothing.
#[derive(Debug, Clone, Copy)]
pub struct ServiceSpec<'a> {
    spec: &'a Object,
}

impl<'a> ServiceSpec<'a> {
    /// The spec of this Service.
    pub fn of(service: &'a Object) -> ServiceSpec<'a> {
        const NONE: &Object = &Object::new();
        ServiceSpec { spec: service.object("spec").unwrap_or(NONE) }
    }

    /// The member `name`; empty if it is no text.
    pub(super) fn text(self, name: &str) -> &'a str {
        self.spec.str(name).unwrap_or_default()
    }

    /// The member `name`, if it is there.
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.spec.get(name)
    }

    /// The elements of the list `name`.
    pub(super) fn array(self, name: &str) -> &'a [Value] {
        self.spec.array(name)
    }

    /// `type`
    pub fn service_type(self) -> &'a str {
        self.text("type")
    }

    /// Whether it is a name for something elsewhere, without addresses of its own.
    pub fn is_external_name(self) -> bool {
        self.service_type() == "ExternalName"
    }

    /// Whether it is served by a load balancer.
    pub fn is_load_balancer(self) -> bool {
        self.service_type() == "LoadBalancer"
    }

    /// Whether its type has node ports.
    pub fn has_node_ports(self) -> bool {
        matches!(self.service_type(), "NodePort" | "LoadBalancer")
    }

    /// `allocateLoadBalancerNodePorts`
    pub fn allocates_for_load_balancer(self) -> Option<bool> {
        self.get("allocateLoadBalancerNodePorts").and_then(Value::as_bool)
    }

    /// Whether every port without a node port is to be given one.
    pub fn allocates_node_ports(self) -> bool {
        match self.service_type() {
            "NodePort" => true,
            "LoadBalancer" => self.allocates_for_load_balancer().unwrap_or(true),
            _ => false,
        }
    }

    /// Whether it can be reached from outside of the cluster.
    pub fn is_externally_accessible(self) -> bool {
        match self.service_type() {
            "NodePort" | "LoadBalancer" => true,
            "ClusterIP" => !self.array("externalIPs").is_empty(),
            _ => false,
        }
    }

    /// Whether load balancers ask nodes for their health, at a node port.
    pub fn needs_health_check(self) -> bool {
        self.is_load_balancer() && self.text("externalTrafficPolicy") == "Local"
    }

    /// `healthCheckNodePort`; zero if there is none.
    pub fn health_check_node_port(self) -> i64 {
        self.get("healthCheckNodePort").and_then(Value::as_i64).unwrap_or_default()
    }

    /// `clusterIP`; empty if there is none.
    pub fn cluster_ip(self) -> &'a str {
        self.text("clusterIP")
    }

    /// `clusterIPs`
    pub fn cluster_ips(self) -> &'a [Value] {
        self.array("clusterIPs")
    }

    /// Whether it is to have no address of its own.
    pub fn is_headless(self) -> bool {
        matches!(self.cluster_ips(), [only] if only.as_str() == Some("None"))
    }

    /// Whether it selects no pods.
    pub fn is_without_selector(self) -> bool {
        self.spec.object("selector").is_none_or(Object::is_empty)
    }

    /// `ipFamilies`
    pub fn ip_families(self) -> &'a [Value] {
        self.array("ipFamilies")
    }

    /// `ipFamilyPolicy`
    pub fn ip_family_policy(self) -> Option<&'a str> {
        self.spec.str("ipFamilyPolicy")
    }

    /// `ports`
    pub fn ports(self) -> impl ExactSizeIterator<Item = ServicePort<'a>> {
        const NONE: &Object = &Object::new();
        self.array("ports").iter().map(|port| ServicePort { port: port.as_object().unwrap_or(NONE) })
    }

    /// The node ports of its ports.
    pub fn node_ports(self) -> impl Iterator<Item = i64> {
        self.ports().map(ServicePort::node_port).filter(|number| *number != 0)
    }
}

/// A view of one port of a Service.
#[derive(Debug, Clone, Copy)]
pub struct ServicePort<'a> {
    port: &'a Object,
}

impl<'a> ServicePort<'a> {
    /// `name`; empty if there is none.
    pub fn name(self) -> &'a str {
        self.port.str("name").unwrap_or_default()
    }

    /// `protocol`
    pub fn protocol(self) -> &'a str {
        self.port.str("protocol").unwrap_or_default()
    }

    /// `port`
    pub fn number(self) -> i64 {
        self.port.get("port").and_then(Value::as_i64).unwrap_or_default()
    }

    /// `nodePort`; zero if there is none.
    pub fn node_port(self) -> i64 {
        self.port.get("nodePort").and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn target(self) -> Option<&'a Value> {
        self.port.get("targetPort")
    }

    pub(super) fn app_protocol(self) -> Option<&'a str> {
        self.port.str("appProtocol")
    }
}
