//! Addresses and ports of services: given out before a Service is validated, taken back when it is not stored after
//! all or no longer needs them.
//!
//! An address that is taken is an IPAddress object, so that no two servers on one store can give it out twice; the
//! ranges are ServiceCIDR objects. Ports are kept in memory and read from the services at the start; where several servers
//! give them out, they are also bits of one key ([`shared_ports`]). What a write has taken and given up is in its [`Reservation`].
//!
//! There is no transaction over a Service and its addresses. The address is written first and removed last, so that a
//! crash in between leaves at most an address without a Service, which the next start removes ([`reconcile`]). Both are
//! writes of their own, about which webhooks and policies are asked: one that may not be made is not given out, one that may
//! not be removed is removed later ([`owed`]).

mod cluster_ips;
mod families;
mod fill_in;
mod node_ports;
mod owed;
mod reconcile;
mod reservation;
mod shared_ports;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use revisor_catalog::ServiceSpec;
use revisor_object::{Cidr, FieldErrors, Object, Value};

pub(crate) use self::cluster_ips::first_host;
pub(crate) use self::families::Family;
use self::families::initialize_families;
use self::fill_in::{keep_allocated, match_cluster_ips};
use self::node_ports::NodePorts;
use self::owed::Owed;
use self::reservation::{Claim, Left};
pub(crate) use self::reservation::{Outcome, Reservation};
pub(crate) use self::shared_ports::SharedPorts;
pub use self::shared_ports::taken_node_ports;
use crate::admission::Attributes;
use crate::{Registry, RegistryError};

/// From where services get their addresses and ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceNetwork {
    /// The ranges of addresses, one or two of different families. The first is of the family that services get if they
    /// do not say.
    pub ranges: Vec<Cidr>,
    /// The node ports.
    pub node_ports: RangeInclusive<u16>,
    /// Whether other servers give out of the same.
    pub is_shared: bool,
}

impl Default for ServiceNetwork {
    /// What the original has if it is not told.
    fn default() -> ServiceNetwork {
        let range = Cidr::new([10, 0, 0, 0].into(), 24).expect("24 bits are fewer than an address has");
        ServiceNetwork { ranges: vec![range], node_ports: 30000..=32767, is_shared: false }
    }
}

/// What is given out, and to whom it cannot be.
pub(crate) struct Allocation {
    pub(crate) ranges: Vec<Cidr>,
    /// The families of the ranges.
    families: Vec<Family>,
    node_ports: NodePorts,
    /// What writes left behind that were given up half-way.
    left: Mutex<Vec<Left>>,
    /// The addresses that no Service has, and that could not be removed yet.
    owed: Mutex<Vec<Owed>>,
}

impl Allocation {
    pub(crate) fn new(network: ServiceNetwork) -> Allocation {
        Allocation {
            families: network.ranges.iter().map(|range| Family::of(range.network())).collect(),
            ranges: network.ranges,
            node_ports: NodePorts::new(network.node_ports, network.is_shared),
            left: Mutex::new(Vec::new()),
            owed: Mutex::new(Vec::new()),
        }
    }

    fn left(&self) -> MutexGuard<'_, Vec<Left>> {
        // A list of claims is whole whenever it can be seen.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Service that something is taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Registry {
    /// Gives a Service that is to be written what it needs. Other objects need nothing. The reservation must be told
    /// what became of the write.
    pub(crate) async fn reserve(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Object,
        dry_run: bool,
    ) -> Result<Reservation<'_>, RegistryError> {
        let reserved = self.reservation_for(attributes.resource, attributes.namespace, attributes.name, dry_run);
        let Some(reservation) = reserved else { return Ok(Reservation::nothing(self)) };
        let mut reservation = reservation.until(attributes.deadline);
        if attributes.subresource.is_some() {
            return Ok(reservation);
        }
        self.collect_left().await?;
        match self.allocate(attributes, object, &mut reservation).await {
            Ok(()) => Ok(reservation),
            Err(error) => {
                reservation.settle(Outcome::Failed).await;
                Err(error)
            }
        }
    }

    async fn allocate(
        &self,
        attributes: &Attributes<'_>,
        service: &mut Object,
        reservation: &mut Reservation<'_>,
    ) -> Result<(), RegistryError> {
        let invalid = |errors| RegistryError::Invalid {
            resource: attributes.resource.clone(),
            name: attributes.name.to_owned(),
            errors,
        };
        if let Some(old) = attributes.old {
            keep_allocated(service, old);
        }
        match_cluster_ips(service, attributes.old);
        initialize_families(service, attributes.old, &self.allocation.families, self.catalog.features())
            .map_err(invalid)?;
        self.allocate_cluster_ips(service, attributes.old, reservation)
            .await
            .map_err(|error| error.named(attributes))?;
        self.allocate_node_ports(service, attributes.old, reservation).await.map_err(|error| error.named(attributes))
    }
}

/// Why something cannot be given out.
#[derive(Debug)]
enum Unavailable {
    /// The client asked for what it cannot have.
    Invalid(revisor_object::FieldError),
    /// There is no more of it.
    Exhausted(String),
    /// Something else failed.
    Failed(RegistryError),
}

impl Unavailable {
    fn named(self, attributes: &Attributes<'_>) -> RegistryError {
        match self {
            Unavailable::Invalid(error) => RegistryError::Invalid {
                resource: attributes.resource.clone(),
                name: attributes.name.to_owned(),
                errors: FieldErrors::from([error]),
            },
            Unavailable::Exhausted(message) => RegistryError::Internal(message),
            Unavailable::Failed(error) => error,
        }
    }
}

/// Everything that a stored Service has taken.
fn claims_of(service: &Object) -> Vec<Claim> {
    let spec = ServiceSpec::of(service);
    let mut claims = Vec::new();
    if !spec.is_external_name() && !spec.is_headless() {
        claims.extend(spec.cluster_ips().iter().filter_map(Value::as_str).map(Claim::address));
    }
    if spec.has_node_ports() {
        // A port that serves several protocols is taken once.
        claims.extend(spec.node_ports().collect::<BTreeSet<_>>().into_iter().map(Claim::port));
    }
    if spec.needs_health_check() && spec.health_check_node_port() > 0 {
        claims.push(Claim::port(spec.health_check_node_port()));
    }
    claims
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn a_port_that_serves_several_protocols_is_taken_once() {
        let ports = r#"[{"nodePort":30053,"protocol":"UDP"},{"nodePort":30053,"protocol":"TCP"},{"nodePort":30080}]"#;
        let service = format!(r#"{{"spec":{{"type":"NodePort","clusterIP":"None","ports":{ports}}}}}"#);
        let service = parse_json(service.as_bytes()).expect("is JSON").value;
        let claims = claims_of(service.as_object().expect("an object"));
        assert!(matches!(claims[..], [Claim::PortNumber(30053), Claim::PortNumber(30080)]), "{}", claims.len());
    }
}
