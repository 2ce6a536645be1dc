//! [`NodePorts`]: which ports of the nodes are taken.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use revisor_catalog::ServiceSpec;
use revisor_object::{FieldError, FieldPath, Object, Value};

use super::{Claim, Reservation, Unavailable};

const TAKEN: &str = "provided port is already allocated";
const FULL: &str = "range is full";

/// The first port that a dry run shows where a real one would choose.
const SHOWN_BY_DRY_RUN: i64 = 32769;

/// Says which taking of a port is meant, so that what was given back late cannot free what somebody else has by then.
pub(super) type Ticket = u64;

/// The ticket of all ports that others may take too.
const SHARED: Ticket = 0;

/// The node ports of all services.
pub(super) struct NodePorts {
    range: RangeInclusive<u16>,
    taken: Mutex<HashMap<u16, Ticket>>,
    tickets: AtomicU64,
    /// Whether others give out ports too: then nobody here knows who took one, and all tickets are the same.
    is_shared: bool,
}

impl NodePorts {
    pub(super) fn new(range: RangeInclusive<u16>, is_shared: bool) -> NodePorts {
        NodePorts { range, taken: Mutex::new(HashMap::new()), tickets: AtomicU64::new(1), is_shared }
    }

    /// Takes note of what is taken, by whomever.
    pub(super) fn see(&self, ports: &BTreeSet<u16>) {
        *self.taken() = ports.iter().map(|port| (*port, SHARED)).collect();
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<u16, Ticket>> {
        // Each change is one insertion or removal, so that the map is whole whenever it can be seen.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_range(&self, number: i64) -> Option<u16> {
        u16::try_from(number).ok().filter(|port| self.range.contains(port))
    }

    fn ticket(&self) -> Ticket {
        if self.is_shared { SHARED } else { self.tickets.fetch_add(1, Ordering::Relaxed) }
    }

    /// Takes this port, or says why it cannot be had.
    fn take(&self, number: i64) -> Result<Claim, String> {
        let (first, last) = (self.range.start(), self.range.end());
        let outside = || format!("provided port is not in the valid range. The range of valid ports is {first}-{last}");
        let port = self.in_range(number).ok_or_else(outside)?;
        let ticket = self.ticket();
        match self.taken().entry(port) {
            std::collections::hash_map::Entry::Occupied(_) => Err(TAKEN.to_owned()),
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(ticket);
                Ok(Claim::Port { port, ticket })
            }
        }
    }

    /// Takes any port. The first of the range are left for those who ask for a certain one, as long as there are others.
    fn take_any(&self, random: u64) -> Option<(i64, Claim)> {
        let first = u32::from(*self.range.start());
        let size = u32::from(*self.range.end()).checked_sub(first)? + 1;
        let reserved = reserved_for_requests(size);
        let mut taken = self.taken();
        for (from, count) in [(reserved, size - reserved), (0, reserved)] {
            let start = u32::try_from(random.checked_rem(u64::from(count)).unwrap_or_default()).unwrap_or_default();
            let offsets = (0..count).map(|step| from + (start + step) % count);
            let ports = offsets.filter_map(|offset| u16::try_from(first + offset).ok());
            if let Some(port) = ports.into_iter().find(|port| !taken.contains_key(port)) {
                let ticket = self.ticket();
                taken.insert(port, ticket);
                return Some((i64::from(port), Claim::Port { port, ticket }));
            }
        }
        None
    }

    fn is_taken(&self, number: i64) -> bool {
        self.in_range(number).is_some_and(|port| self.taken().contains_key(&port))
    }

    /// The claim on a port that a stored Service has; `None` if nobody has it.
    pub(super) fn held(&self, number: i64) -> Option<Claim> {
        let port = self.in_range(number)?;
        if self.is_shared {
            return Some(Claim::Port { port, ticket: SHARED });
        }
        self.taken().get(&port).map(|ticket| Claim::Port { port, ticket: *ticket })
    }

    /// Notes a port that a stored Service has. Answers whether it was free until now.
    pub(super) fn note(&self, number: i64) -> bool {
        self.take(number).is_ok()
    }

    /// Frees a port, if it is still taken as it was then.
    pub(super) fn free(&self, port: u16, ticket: Ticket) {
        let mut taken = self.taken();
        if taken.get(&port) == Some(&ticket) {
            taken.remove(&port);
        }
    }

    /// Gives a Service its node ports, and gives up those that it no longer has.
    pub(super) fn allocate(
        &self,
        service: &mut Object,
        old: Option<&Object>,
        reservation: &mut Reservation<'_>,
    ) -> Result<(), Unavailable> {
        let spec = ServiceSpec::of(service);
        let was = old.map(ServiceSpec::of).filter(|was| was.has_node_ports());
        let before: HashSet<i64> = was.into_iter().flat_map(ServiceSpec::node_ports).collect();
        if spec.has_node_ports() {
            match old {
                None => self.allocate_new(service, reservation)?,
                Some(_) => self.allocate_changed(service, &before, reservation)?,
            }
            let kept: HashSet<i64> = ServiceSpec::of(service).node_ports().collect();
            let given_up = before.difference(&kept);
            given_up.for_each(|number| reservation.give_up(self.held(*number)));
        } else {
            before.iter().for_each(|number| reservation.give_up(self.held(*number)));
        }
        self.allocate_health_check(service, old, reservation)
    }

    /// Ports of a new Service that differ by protocol only share a node port.
    fn allocate_new(&self, service: &mut Object, reservation: &mut Reservation<'_>) -> Result<(), Unavailable> {
        let spec = ServiceSpec::of(service);
        let allocates = spec.allocates_node_ports();
        let ports: Vec<(i64, i64)> = spec.ports().map(|port| (port.number(), port.node_port())).collect();
        let mut by_number: HashMap<i64, i64> = HashMap::new();
        let mut wanted: HashMap<i64, i64> = HashMap::new();
        for (number, asked) in ports.iter().filter(|(_, asked)| *asked != 0) {
            wanted.entry(*number).or_insert(*asked);
        }
        for (at, (number, asked)) in ports.iter().copied().enumerate() {
            if asked == 0 && !allocates {
                continue;
            }
            let chosen = match by_number.get(&number).copied() {
                Some(shared) if asked == 0 || asked == shared => shared,
                Some(_) => self.take_for(at, asked, reservation)?,
                None => {
                    let chosen = match wanted.get(&number) {
                        Some(asked) => self.take_for(at, *asked, reservation)?,
                        None => self.take_any_for(reservation)?,
                    };
                    by_number.insert(number, chosen);
                    chosen
                }
            };
            set_node_port(service, at, chosen);
        }
        Ok(())
    }

    fn allocate_changed(
        &self,
        service: &mut Object,
        before: &HashSet<i64>,
        reservation: &mut Reservation<'_>,
    ) -> Result<(), Unavailable> {
        let spec = ServiceSpec::of(service);
        let allocates = spec.allocates_node_ports();
        let ports: Vec<i64> = spec.ports().map(|port| port.node_port()).collect();
        let mut seen = before.clone();
        for (at, asked) in ports.into_iter().enumerate() {
            // DIFFERENCE: a number twice is refused by validation; the original answers 500 here.
            if asked != 0 && seen.insert(asked) {
                self.take_for(at, asked, reservation)?;
            } else if asked == 0 && allocates {
                let chosen = self.take_any_for(reservation)?;
                set_node_port(service, at, chosen);
            }
        }
        Ok(())
    }

    fn allocate_health_check(
        &self,
        service: &mut Object,
        old: Option<&Object>,
        reservation: &mut Reservation<'_>,
    ) -> Result<(), Unavailable> {
        let spec = ServiceSpec::of(service);
        let was = old.map(ServiceSpec::of);
        let needed = was.is_some_and(ServiceSpec::needs_health_check);
        if needed && !spec.needs_health_check() {
            reservation.give_up(was.and_then(|was| self.held(was.health_check_node_port())));
        }
        if needed || !spec.needs_health_check() {
            return Ok(());
        }
        match spec.health_check_node_port() {
            0 => {
                let chosen = self.any(reservation).ok_or_else(|| {
                    Unavailable::Exhausted(format!("failed to allocate a HealthCheck NodePort 0: {FULL}"))
                })?;
                service.object_mut("spec").insert("healthCheckNodePort", chosen);
            }
            asked => self.certain(asked, reservation).map_err(|problem| {
                let message = format!("failed to allocate requested HealthCheck NodePort {asked}: {problem}");
                Unavailable::Exhausted(message)
            })?,
        }
        Ok(())
    }

    fn take_for(&self, at: usize, asked: i64, reservation: &mut Reservation<'_>) -> Result<i64, Unavailable> {
        let refuse = |problem: String| {
            let (spec, at_ports) = (FieldPath::root("spec"), at);
            let ports = spec.child("ports");
            let port = ports.index(at_ports);
            Unavailable::Invalid(FieldError::invalid(port.child("nodePort"), asked, problem))
        };
        self.certain(asked, reservation).map_err(refuse)?;
        Ok(asked)
    }

    fn take_any_for(&self, reservation: &mut Reservation<'_>) -> Result<i64, Unavailable> {
        let full = || Unavailable::Exhausted(format!("failed to allocate a nodePort: {FULL}"));
        self.any(reservation).ok_or_else(full)
    }

    /// A dry run takes nothing. It looks whether the port is taken, and does not care for the range.
    fn certain(&self, asked: i64, reservation: &mut Reservation<'_>) -> Result<(), String> {
        if !reservation.is_dry_run() {
            reservation.take(self.take(asked)?);
            return Ok(());
        }
        let is_taken = self.is_taken(asked) | !reservation.shown.insert(asked);
        if is_taken { Err(TAKEN.to_owned()) } else { Ok(()) }
    }

    fn any(&self, reservation: &mut Reservation<'_>) -> Option<i64> {
        if reservation.is_dry_run() {
            let shown = reservation.shown.last().map_or(SHOWN_BY_DRY_RUN, |last| last + 1);
            reservation.shown.insert(shown);
            return Some(shown);
        }
        let (number, claim) = self.take_any(reservation.random())?;
        reservation.take(claim);
        Some(number)
    }
}

fn set_node_port(service: &mut Object, at: usize, number: i64) {
    let ports = service.object_mut("spec").array_mut("ports");
    if let Some(port) = ports.and_then(|ports| ports.get_mut(at)).and_then(Value::as_object_mut) {
        port.insert("nodePort", number);
    }
}

/// How many ports at the beginning of a range of this size are given out last.
fn reserved_for_requests(size: u32) -> u32 {
    if size <= 16 { 0 } else { (size / 32).clamp(16, 128) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_out_once() {
        let ports = NodePorts::new(30000..=30039, false);
        let mut seen = std::collections::HashSet::new();
        for round in 0..40_u64 {
            let (number, _) = ports.take_any(round.wrapping_mul(7919)).expect("some are left");
            assert!(seen.insert(number), "{number} twice");
            // The first sixteen are for those who ask for one.
            assert_eq!(number < 30016, round >= 24, "{number} in round {round}");
        }
        assert!(ports.take_any(5).is_none());
        assert_eq!(ports.take(30001).err().as_deref(), Some(TAKEN));
        let outside = ports.take(29999).expect_err("is outside");
        assert!(outside.ends_with("30000-30039"), "{outside}");
    }

    #[test]
    fn what_is_given_back_late_frees_nothing_of_others() {
        let ports = NodePorts::new(1..=9, false);
        let Ok(Claim::Port { port, ticket }) = ports.take(3) else { panic!("was free") };
        ports.free(port, ticket);
        assert!(ports.take(3).is_ok());
        ports.free(port, ticket);
        assert!(ports.take(3).is_err(), "another has it");
    }
}
