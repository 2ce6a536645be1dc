//! Addresses of services: found in the ranges that ServiceCIDRs name, taken by making an IPAddress.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use revisor_catalog::ServiceSpec;
use revisor_merge::ManagedFields;
use revisor_object::{BadValue, Cidr, FieldError, FieldPath, Object, Value, parse_cidr_sloppy, parse_ip_sloppy};
use revisor_store::BoxFuture;

use super::families::{Family, families_of, is_left_as_it_was};
use super::{Claim, Reservation, ServiceName, Unavailable};
use crate::present::named_as;
use crate::{Decoded, Registry, RegistryError, WithinWrite, WriteOptions};

pub(super) const FAMILY_LABEL: &str = "ipaddress.kubernetes.io/ip-family";
pub(super) const MANAGED_BY_LABEL: &str = "ipaddress.kubernetes.io/managed-by";

/// How the allocator calls itself. Other servers on the same store call themselves the same.
pub(super) const ALLOCATOR: &str = "ipallocator.k8s.io";

/// The shortest prefix of an IPv6 range that addresses are given out from.
const MIN_V6_PREFIX: u8 = 64;

/// A range that addresses are given out from.
struct Range {
    cidr: Cidr,
    /// Whether new addresses may be taken from it.
    is_ready: bool,
}

impl Registry {
    /// Gives a Service the addresses that it is to have, and gives up those that it no longer has.
    pub(super) async fn allocate_cluster_ips(
        &self,
        service: &mut Object,
        old: Option<&Object>,
        reservation: &mut Reservation<'_>,
    ) -> Result<(), Unavailable> {
        let new = ServiceSpec::of(service);
        let was = old.map(ServiceSpec::of);
        let families = families_of(service);
        match was {
            None if new.is_external_name() || new.is_headless() => return Ok(()),
            None => {}
            Some(_) if is_left_as_it_was(service, old) => return Ok(()),
            Some(was) if was.is_external_name() && (new.is_external_name() || new.is_headless()) => return Ok(()),
            Some(was) if was.is_external_name() => {}
            Some(was) if was.is_headless() => return Ok(()),
            Some(was) => {
                let before = was.ip_families().len();
                let given_up = match families.len() {
                    _ if new.is_external_name() => was.cluster_ips(),
                    1 if before == 2 => was.cluster_ips().get(1..).unwrap_or_default(),
                    2 if before == 1 => {
                        let family = families[1];
                        return self.fill_cluster_ip(service, 1, family, reservation).await;
                    }
                    _ => return Ok(()),
                };
                for ip in given_up.iter().filter_map(Value::as_str) {
                    reservation.give_up(self.held_address(ip));
                }
                return Ok(());
            }
        }
        for (at, family) in families.into_iter().enumerate() {
            self.fill_cluster_ip(service, at, family, reservation).await?;
        }
        Ok(())
    }

    /// Takes the address at one place of `clusterIPs`: the one that stands there, or any.
    async fn fill_cluster_ip(
        &self,
        service: &mut Object,
        at: usize,
        family: Family,
        reservation: &mut Reservation<'_>,
    ) -> Result<(), Unavailable> {
        let asked = ServiceSpec::of(service).cluster_ips().get(at).and_then(Value::as_str).unwrap_or_default();
        let found = match parse_ip_sloppy(asked) {
            Some(ip) => self.take_certain(ip, reservation).await.map(|()| ip),
            None => self.take_any(family, reservation).await,
        };
        let ip = found.map_err(|problem| match problem {
            NotTaken::Full => {
                let name = reservation.service_name();
                Unavailable::Exhausted(format!("failed to allocate a serviceIP for Service {name:?}: range is full"))
            }
            NotTaken::Refused(problem) => {
                let spec = FieldPath::root("spec");
                let ips = ServiceSpec::of(service).cluster_ips();
                let shown = if ips.is_empty() { BadValue::of(&[""]) } else { BadValue::of(&ips) };
                // Who may have any address is told of none.
                let which = if asked.is_empty() { String::new() } else { format!(" {asked}") };
                let detail = format!("failed to allocate IP{which}: {problem}");
                Unavailable::Invalid(FieldError::invalid(spec.child("clusterIPs"), shown, detail))
            }
            NotTaken::Failed(error) => Unavailable::Failed(error),
        })?;
        if !asked.is_empty() {
            return Ok(());
        }
        let spec = service.object_mut("spec");
        let mut ips = spec.array("clusterIPs").to_vec();
        ips.truncate(at);
        ips.push(Value::from(ip.to_string()));
        spec.insert("clusterIPs", ips);
        if at == 0 {
            spec.insert("clusterIP", ip.to_string());
        }
        Ok(())
    }

    async fn take_certain(&self, ip: IpAddr, reservation: &mut Reservation<'_>) -> Result<(), NotTaken> {
        let ranges = self.ranges();
        if reservation.is_dry_run() {
            // As the original does: whether the address is taken only a real write can tell.
            let Some(range) = ranges.iter().find(|range| Family::of(range.cidr.network()) == Family::of(ip)) else {
                return Ok(());
            };
            if !ranges.iter().any(|range| is_inside(&range.cidr, ip)) {
                let (ip, valid) = (ip, &range.cidr);
                let problem =
                    format!("the provided IP ({ip}) is not in the valid range. The range of valid IPs is {valid}");
                return Err(NotTaken::Refused(problem));
            }
            return Ok(());
        }
        if !ranges.iter().any(|range| range.is_ready && is_inside(&range.cidr, ip)) {
            let problem = "the provided network does not match the current range";
            return Err(NotTaken::Refused(problem.to_owned()));
        }
        match self.make_address(ip, reservation).await {
            Ok(()) => Ok(()),
            Err(RegistryError::AlreadyExists { .. }) => {
                Err(NotTaken::Refused("provided IP is already allocated".to_owned()))
            }
            Err(error) => Err(NotTaken::of(error)),
        }
    }

    async fn take_any(&self, family: Family, reservation: &mut Reservation<'_>) -> Result<IpAddr, NotTaken> {
        let ranges = self.ranges().into_iter();
        let of_family = ranges.filter(|range| range.is_ready && Family::of(range.cidr.network()) == family);
        for range in of_family {
            if reservation.is_dry_run() {
                // It is not worth the trouble to find one that may be taken by the time of the real write.
                return Ok(range.cidr.network());
            }
            if let Some(ip) = self.take_any_of(&range.cidr, reservation).await? {
                return Ok(ip);
            }
        }
        Err(NotTaken::Full)
    }

    /// Takes any address of a range. The first ones are left for those who ask for a certain one, as long as there are
    /// others. Only addresses that are taken are passed over, so that the search ends after as many as there are.
    async fn take_any_of(&self, cidr: &Cidr, reservation: &mut Reservation<'_>) -> Result<Option<IpAddr>, NotTaken> {
        let Some(hosts) = Hosts::of(cidr) else { return Ok(None) };
        let Some(addresses) = self.catalog.resource("networking.k8s.io", "v1", "ipaddresses") else { return Ok(None) };
        let reserved = hosts.reserved;
        for (from, count) in [(reserved, hosts.count - reserved), (0, reserved)] {
            if count == 0 {
                continue;
            }
            let start = u128::from(reservation.random()) % count;
            for step in 0..count {
                let ip = hosts.at(from + (start + step) % count);
                let key = addresses.key(None, &ip.to_string());
                if self.cache_of(addresses).get(&key).is_some() {
                    continue;
                }
                match self.make_address(ip, reservation).await {
                    Ok(()) => return Ok(Some(ip)),
                    // Another was faster.
                    Err(RegistryError::AlreadyExists { .. }) => {}
                    Err(error) => return Err(NotTaken::of(error)),
                }
            }
        }
        Ok(None)
    }

    /// The ranges of all ServiceCIDRs, in the order of their names.
    fn ranges(&self) -> Vec<Range> {
        let Some(resource) = self.catalog.resource("networking.k8s.io", "v1", "servicecidrs") else {
            return Vec::new();
        };
        let snapshot = self.cache_of(resource).snapshot();
        let objects = snapshot.range(&resource.prefix, None).filter_map(|item| Decoded::stored(item.bytes()).ok());
        objects
            .flat_map(|object| {
                let is_ready = is_ready(&object);
                let texts = object.object("spec").map(|spec| spec.array("cidrs").to_vec()).unwrap_or_default();
                let cidrs = texts.into_iter().filter_map(|text| parse_cidr_sloppy(text.as_str()?));
                cidrs.map(move |cidr| Range { cidr, is_ready })
            })
            .filter(|range| range.cidr.network().is_ipv4() || range.cidr.prefix() >= MIN_V6_PREFIX)
            .collect()
    }

    /// Makes the IPAddress that says that an address is taken. It is an object like others: known to those who watch,
    /// and there cannot be two. The claim on it is there before it is, for the case that this is not waited for.
    async fn make_address(&self, ip: IpAddr, reservation: &mut Reservation<'_>) -> Result<(), RegistryError> {
        let Some(service) = reservation.service().cloned() else { return Ok(()) };
        let uid = self.environment.uid();
        reservation.take(Claim::Address { ip, uid: uid.clone() });
        let within = WithinWrite { identity: Some(&uid), ..WithinWrite::default() };
        let options = WriteOptions { within, ..self.own.options_until(reservation.deadline()) };
        let made = self.store_address(ip, &service, options).await;
        if matches!(made, Err(RegistryError::AlreadyExists { .. })) {
            reservation.forget_last();
        }
        made
    }

    /// Stores the IPAddress that a Service is to have. As in the original that is a request that the server makes to
    /// itself, which webhooks and policies may refuse.
    ///
    /// Boxed, because to write a Service is to write addresses, which is to write again.
    pub(super) fn store_address<'a>(
        &'a self,
        ip: IpAddr,
        service: &'a ServiceName,
        options: WriteOptions<'a>,
    ) -> BoxFuture<'a, Result<(), RegistryError>> {
        Box::pin(async move {
            let Some(addresses) = self.catalog.resource("networking.k8s.io", "v1", "ipaddresses") else {
                return Ok(());
            };
            let object = new_address(ip, service);
            let made = self.create_stored(addresses, None, object, ManagedFields::default(), options).await;
            made.map(drop).map_err(|error| named_as(addresses, error))
        })
    }

    /// The claim on an address that a stored Service has.
    pub(super) fn held_address(&self, ip: &str) -> Option<Claim> {
        let ip = parse_ip_sloppy(ip)?;
        let stored = self.stored("networking.k8s.io", "v1", "ipaddresses", None, &ip.to_string())?;
        let uid = stored.at(&["metadata", "uid"]).and_then(Value::as_str)?.to_owned();
        Some(Claim::Address { ip, uid })
    }
}

/// The IPAddress that a Service is to have.
fn new_address(ip: IpAddr, service: &ServiceName) -> Object {
    let mut object = Object::new();
    let metadata = object.object_mut("metadata");
    metadata.insert("name", ip.to_string());
    let labels = metadata.object_mut("labels");
    labels.insert(FAMILY_LABEL, Family::of(ip).name());
    labels.insert(MANAGED_BY_LABEL, ALLOCATOR);
    let parent = object.object_mut("spec").object_mut("parentRef");
    parent.insert("resource", "services");
    parent.insert("namespace", service.namespace.as_str());
    parent.insert("name", service.name.as_str());
    object
}

/// Why an address was not taken.
enum NotTaken {
    Full,
    Refused(String),
    Failed(RegistryError),
}

impl NotTaken {
    /// What it means that an address could not be made. As in the original, whoever refuses that refuses the address.
    fn of(error: RegistryError) -> NotTaken {
        match error {
            RegistryError::TimedOut => NotTaken::Failed(error),
            RegistryError::Internal(why) => NotTaken::Refused(format!("Internal error occurred: {why}")),
            error if error.is_refusal() => NotTaken::Refused(error.to_string()),
            error => NotTaken::Failed(error),
        }
    }
}

/// Whether new addresses may be taken from the ranges of a ServiceCIDR. One that nobody has judged counts as ready.
fn is_ready(service_cidr: &Object) -> bool {
    if service_cidr.at(&["metadata", "deletionTimestamp"]).is_some() {
        return false;
    }
    let conditions = service_cidr.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let ready = conditions.iter().filter_map(Value::as_object).find(|condition| condition.str("type") == Some("Ready"));
    ready.is_none_or(|ready| ready.str("status") == Some("True"))
}

/// Whether an address of a range can be given to a Service: not the first, and of an IPv4 range not the last.
fn is_inside(cidr: &Cidr, ip: IpAddr) -> bool {
    cidr.contains(ip) && Hosts::of(cidr).is_some_and(|hosts| hosts.contains(ip))
}

/// The first address of a range that can be given to a Service.
pub(crate) fn first_host(cidr: &Cidr) -> Option<IpAddr> {
    Hosts::of(cidr).map(|hosts| hosts.first)
}

/// The addresses of a range that can be given to services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hosts {
    first: IpAddr,
    count: u128,
    /// How many of the first are given out last.
    reserved: u128,
}

impl Hosts {
    fn of(cidr: &Cidr) -> Option<Hosts> {
        let (bits, lost) = if cidr.network().is_ipv4() { (32, 2) } else { (128, 1) };
        let size = 1_u128.checked_shl(bits - u32::from(cidr.prefix()))?;
        let count = size.checked_sub(lost).filter(|count| *count > 0)?;
        let reserved = if size <= 16 { 0 } else { (size / 16).clamp(16, 256).min(count) };
        Some(Hosts { first: plus(cidr.network(), 1)?, count, reserved })
    }

    fn at(&self, offset: u128) -> IpAddr {
        plus(self.first, offset).unwrap_or(self.first)
    }

    fn contains(&self, ip: IpAddr) -> bool {
        number(ip).checked_sub(number(self.first)).is_some_and(|offset| offset < self.count)
    }
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

fn plus(ip: IpAddr, offset: u128) -> Option<IpAddr> {
    let sum = number(ip).checked_add(offset)?;
    Some(match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(sum).ok()?)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(sum)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_of_a_range_leave_out_its_ends() {
        for (range, first, last, reserved) in [
            ("10.0.0.0/24", "10.0.0.1", "10.0.0.254", 16),
            ("10.0.0.0/28", "10.0.0.1", "10.0.0.14", 0),
            ("10.0.0.0/16", "10.0.0.1", "10.0.255.254", 256),
            ("fd00::/120", "fd00::1", "fd00::ff", 16),
            ("10.0.0.4/30", "10.0.0.5", "10.0.0.6", 0),
        ] {
            let cidr = parse_cidr_sloppy(range).expect("is a range");
            let hosts = Hosts::of(&cidr).expect("has hosts");
            assert_eq!(hosts.at(0).to_string(), first, "{range}");
            assert_eq!(hosts.at(hosts.count - 1).to_string(), last, "{range}");
            assert_eq!(hosts.reserved, reserved, "{range}");
            assert!(is_inside(&cidr, last.parse().expect("is an address")), "{range}");
            assert!(!is_inside(&cidr, cidr.network()), "{range}");
        }
        for range in ["10.0.0.0/31", "10.0.0.0/32", "fd00::/128"] {
            assert_eq!(Hosts::of(&parse_cidr_sloppy(range).expect("is a range")), None, "{range}");
        }
    }
}
