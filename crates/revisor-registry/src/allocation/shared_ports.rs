//! [`SharedPorts`]: node ports where several servers give them out. What is taken are bits of one key of the store, in the
//! form and at the place of the original, so that its servers agree too (upstream: `portallocator` and its `Etcd`).
//!
//! Ports are chosen by [`NodePorts`](super::node_ports::NodePorts) as ever, which is told first what is taken; then the
//! bits are written, if nobody was faster, or else it begins again. One at a time on each server.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use revisor_cache::{Cache, ResourceCache};
use revisor_catalog::ServiceSpec;
use revisor_object::{Object, Value};
use revisor_store::{Change, Draft, Entry, Expect, Key, StoreError, Write};
use tokio::sync::Mutex;

use super::{Reservation, Unavailable};
use crate::{Decoded, Registry, RegistryError};

const FOLDER: &str = "/registry/ranges/";
const KEY: &str = "/registry/ranges/servicenodeports";

/// How often it is begun again because other servers took or gave back ports meanwhile.
const ATTEMPTS: usize = 100;

/// The bits that say which ports are taken.
pub(crate) struct SharedPorts {
    cache: Arc<ResourceCache>,
    range: RangeInclusive<u16>,
    turn: Mutex<()>,
}

impl SharedPorts {
    /// Follows the bits of a store.
    pub(crate) async fn follow(cache: &Arc<Cache>, range: RangeInclusive<u16>) -> Result<SharedPorts, StoreError> {
        Ok(SharedPorts { cache: cache.add(FOLDER, false).await?, range, turn: Mutex::default() })
    }

    fn known(&self) -> Option<Arc<Entry>> {
        self.cache.get(KEY).map(|item| item.entry().clone())
    }

    fn range_text(&self) -> String {
        range_text(&self.range)
    }

    /// The ports that are taken; `None` if that is not known for this range.
    fn read(&self, entry: Option<&Entry>) -> Option<BTreeSet<u16>> {
        let noted = Decoded::stored(entry?.bytes()).ok()?;
        if noted.str("range") != Some(&self.range_text()) {
            return None;
        }
        let data = STANDARD.decode(noted.str("data").unwrap_or_default()).ok()?;
        let bits = data.iter().rev().enumerate().flat_map(|(at, byte)| {
            (0..8)
                .filter(move |bit| byte >> bit & 1 == 1)
                .map(move |bit| u32::try_from(at * 8 + bit).unwrap_or(u32::MAX))
        });
        let ports = bits.filter_map(|bit| u16::try_from(u32::from(*self.range.start()).checked_add(bit)?).ok());
        Some(ports.filter(|port| self.range.contains(port)).collect())
    }

    fn draft(&self, ports: &BTreeSet<u16>) -> Draft {
        draft(&self.range, ports)
    }
}

/// What is to be stored, and where, of the node ports that these Services have: for a store that no server uses yet. Ports
/// outside of the range cannot be noted.
pub fn taken_node_ports<'s>(range: &RangeInclusive<u16>, services: impl Iterator<Item = &'s Object>) -> (Key, Draft) {
    let of_service = |service: &Object| {
        let spec = service.object("spec");
        let ports = spec.map(|spec| spec.array("ports")).unwrap_or_default();
        let numbers = ports.iter().filter_map(|port| port.as_object()?.get("nodePort")?.as_i64());
        let health = spec.and_then(|spec| spec.get("healthCheckNodePort")?.as_i64());
        numbers.chain(health).filter_map(|number| u16::try_from(number).ok()).collect::<Vec<_>>()
    };
    let taken = services.flat_map(of_service).filter(|port| range.contains(port)).collect();
    (Key::new(KEY), draft(range, &taken))
}

fn range_text(range: &RangeInclusive<u16>) -> String {
    format!("{}-{}", range.start(), range.end())
}

/// What is stored of taken ports: a number whose bits they are, its highest byte first.
fn draft(range: &RangeInclusive<u16>, ports: &BTreeSet<u16>) -> Draft {
    let offsets = ports.iter().map(|port| usize::from(port - range.start()));
    let mut data = vec![0_u8; offsets.clone().max().map_or(0, |last| last / 8 + 1)];
    offsets.for_each(|offset| data[offset / 8] |= 1 << (offset % 8));
    data.reverse();
    let mut noted = Object::new();
    noted.insert("kind", "RangeAllocation");
    noted.insert("apiVersion", "v1");
    noted.insert("metadata", Object::new());
    noted.insert("range", range_text(range));
    noted.insert("data", STANDARD.encode(data));
    Draft::opaque(Value::Object(noted).to_json())
}

impl Registry {
    /// Gives a Service its node ports, so that no other server can give them out.
    pub(super) async fn allocate_node_ports(
        &self,
        service: &mut Object,
        old: Option<&Object>,
        reservation: &mut Reservation<'_>,
    ) -> Result<(), Unavailable> {
        let ports = &self.allocation.node_ports;
        let is_concerned = |service: &Object| {
            let spec = ServiceSpec::of(service);
            spec.has_node_ports() || spec.needs_health_check()
        };
        let concerned = is_concerned(service) || old.is_some_and(is_concerned);
        let Some(shared) = self.shared_ports.as_ref().filter(|_| concerned) else {
            return ports.allocate(service, old, reservation);
        };
        let _turn = shared.turn.lock().await;
        shared.cache.freshen().await.map_err(|error| Unavailable::Failed(error.into()))?;
        let mut current = shared.known();
        for _ in 0..ATTEMPTS {
            let mut taken = shared.read(current.as_deref()).unwrap_or_default();
            ports.see(&taken);
            let mut tried = service.clone();
            let mark = reservation.mark();
            ports.allocate(&mut tried, old, reservation)?;
            let new = reservation.ports_since(mark);
            if new.is_empty() {
                *service = tried;
                return Ok(());
            }
            taken.extend(new);
            match self.note_ports(shared, current.as_deref(), &taken).await {
                Ok(()) => {
                    *service = tried;
                    return Ok(());
                }
                Err(StoreError::Conflict { current: newest, .. }) => {
                    reservation.forget_since(mark);
                    current = newest;
                }
                Err(error) => return Err(Unavailable::Failed(error.into())),
            }
        }
        Err(Unavailable::Exhausted("node ports are given out too quickly by others; please try again".to_owned()))
    }

    /// Gives a port back, for all servers.
    pub(super) async fn give_back_port(&self, port: u16) -> Result<(), RegistryError> {
        let Some(shared) = &self.shared_ports else { return Ok(()) };
        let _turn = shared.turn.lock().await;
        let mut current = shared.known();
        for _ in 0..ATTEMPTS {
            let Some(mut taken) = shared.read(current.as_deref()) else { return Ok(()) };
            if !taken.remove(&port) {
                return Ok(());
            }
            match self.note_ports(shared, current.as_deref(), &taken).await {
                Ok(()) => return Ok(()),
                Err(StoreError::Conflict { current: newest, .. }) => current = newest,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Notes the ports of all stored services, and leaves those alone that others have just taken. What was noted for
    /// another range counts for nothing.
    pub(super) async fn reconcile_shared_ports(&self, of_services: &BTreeSet<u16>) -> Result<(), RegistryError> {
        let Some(shared) = &self.shared_ports else { return Ok(()) };
        let mut current = shared.known();
        for _ in 0..ATTEMPTS {
            let noted = shared.read(current.as_deref());
            let mut taken = noted.clone().unwrap_or_default();
            taken.extend(of_services.iter().filter(|port| shared.range.contains(port)));
            if noted.as_ref() == Some(&taken) {
                return Ok(());
            }
            match self.note_ports(shared, current.as_deref(), &taken).await {
                Ok(()) => return Ok(()),
                Err(StoreError::Conflict { current: newest, .. }) => current = newest,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn note_ports(
        &self,
        shared: &SharedPorts,
        current: Option<&Entry>,
        taken: &BTreeSet<u16>,
    ) -> Result<(), StoreError> {
        let expect = current.map_or(Expect::Absent, |entry| Expect::At(entry.revision()));
        let write = Write { key: Key::new(KEY), expect, change: Change::Put(shared.draft(taken)) };
        self.cache.write(write).await.map(drop)
    }
}
