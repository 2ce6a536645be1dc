//! [`Rooms`]: the connections that there are, and who gives way when there are too many.
//!
//! Whoever connects stands in the hall, and only the first request that is whole leads into the house. Both are
//! bounded, and neither ever keeps anybody waiting: where there is no room, somebody goes. It is somebody from where
//! most come from, so that a flood from one address displaces its own; in the hall the one who has stood there for
//! longest, in the house the one who has been idle for longest.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus::{IntCounter, IntGauge};
use tokio::sync::Notify;

use super::activity::Activity;
use super::delivery::Unread;
use crate::metrics::{ConnectionState, Metrics};

/// How many guests are looked at in search of an idle one.
const SEARCHED: usize = 256;

/// The bits of an IPv6 address that tell one client from another. A client has all addresses below them for itself.
const NETWORK_BITS: u32 = 64;

/// All connections of a server.
pub(super) struct Rooms {
    inside: Mutex<Inside>,
    /// Notified when the last guest has gone.
    emptied: Notify,
}

struct Inside {
    /// The number of the next guest.
    next: u64,
    /// How many guests there are, including those who were told to leave and have not gone yet.
    present: usize,
    hall: Room,
    house: Room,
}

/// A bounded number of guests, by where they come from and in the order in which they came.
struct Room {
    capacity: usize,
    len: usize,
    origins: HashMap<Origin, BTreeMap<u64, Arc<Guest>>>,
    taken: IntGauge,
    displaced: IntCounter,
}

/// Where somebody comes from: what one client can have as many of as it likes counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Origin(IpAddr);

/// One connection, as seen by those who have to share with it.
pub(super) struct Guest {
    number: u64,
    origin: Origin,
    /// Notified when the guest has to leave.
    leave: Notify,
    pub(super) activity: Activity,
    pub(super) unread: Unread,
}

/// The presence of one guest. To drop it is to be gone.
pub(super) struct Stay {
    rooms: Arc<Rooms>,
    guest: Arc<Guest>,
}

impl Rooms {
    /// Empty rooms: so many may stand in the hall, and so many be in the house.
    pub(super) fn new(hall: u32, house: u32, metrics: &Metrics) -> Arc<Rooms> {
        let room = |capacity: u32, state| Room {
            capacity: capacity.max(1) as usize,
            len: 0,
            origins: HashMap::new(),
            taken: metrics.connections(state),
            displaced: metrics.displaced_connections(state),
        };
        let (hall, house) = (room(hall, ConnectionState::New), room(house, ConnectionState::Serving));
        Arc::new(Rooms { inside: Mutex::new(Inside { next: 0, present: 0, hall, house }), emptied: Notify::new() })
    }

    /// Lets somebody into the hall. If it is full, somebody else leaves it.
    pub(super) fn enter(self: &Arc<Self>, address: SocketAddr) -> Stay {
        let mut inside = self.inside();
        if inside.hall.is_full() {
            inside.hall.displace_first();
        }
        let number = inside.next;
        inside.next += 1;
        inside.present += 1;
        let origin = Origin::of(address.ip());
        let guest = Arc::new(Guest {
            number,
            origin,
            leave: Notify::new(),
            activity: Activity::default(),
            unread: Unread::default(),
        });
        inside.hall.insert(&guest);
        Stay { rooms: Arc::clone(self), guest }
    }

    /// Somebody who cannot be told to leave in good order gives way: for when the system itself has no room.
    pub(super) fn relieve(&self) {
        let mut inside = self.inside();
        if !inside.hall.displace_first() {
            inside.house.displace_idle();
        }
    }

    /// How many guests there are.
    pub(super) fn present(&self) -> usize {
        self.inside().present
    }

    /// Completes when nobody is there. Nobody may enter any more.
    pub(super) async fn emptied(&self) {
        while self.present() > 0 {
            self.emptied.notified().await;
        }
    }

    /// Leads a guest from the hall into the house. Without room there, an idle guest gives way, or else anybody who
    /// comes from where more come from than from where this one does; or else this one has to leave.
    fn settle(&self, guest: &Arc<Guest>) -> bool {
        let mut inside = self.inside();
        if !inside.hall.remove(guest) {
            // Told to leave already.
            return false;
        }
        let house = &mut inside.house;
        let has_room = !house.is_full() || house.displace_idle() || house.displace_for(guest.origin);
        if has_room {
            house.insert(guest);
        } else {
            house.displaced.inc();
            guest.leave.notify_one();
        }
        has_room
    }

    fn leave(&self, guest: &Arc<Guest>) {
        let mut inside = self.inside();
        if !inside.hall.remove(guest) {
            inside.house.remove(guest);
        }
        inside.present -= 1;
        if inside.present == 0 {
            self.emptied.notify_one();
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stay {
    pub(super) fn guest(&self) -> &Arc<Guest> {
        &self.guest
    }

    /// The first request has come; whether it can be served.
    pub(super) fn settle(&self) -> bool {
        self.rooms.settle(&self.guest)
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.rooms.leave(&self.guest);
    }
}

impl Guest {
    /// Tells this guest to leave.
    pub(super) fn dismiss(&self) {
        self.leave.notify_one();
    }

    /// Completes when this guest has to leave.
    pub(super) async fn told_to_leave(&self) {
        self.leave.notified().await;
    }
}

impl Room {
    fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    fn insert(&mut self, guest: &Arc<Guest>) {
        self.origins.entry(guest.origin).or_default().insert(guest.number, Arc::clone(guest));
        self.len += 1;
        self.taken.inc();
    }

    fn remove(&mut self, guest: &Guest) -> bool {
        let Some(guests) = self.origins.get_mut(&guest.origin) else { return false };
        let was_here = guests.remove(&guest.number).is_some();
        if guests.is_empty() {
            self.origins.remove(&guest.origin);
        }
        if was_here {
            self.len -= 1;
            self.taken.dec();
        }
        was_here
    }

    /// Where most guests come from.
    fn crowd(&self) -> Option<(&Origin, &BTreeMap<u64, Arc<Guest>>)> {
        self.origins.iter().max_by_key(|(_, guests)| guests.len())
    }

    /// Of those who come from where most come from, the one who came first leaves.
    fn displace_first(&mut self) -> bool {
        let first = self.crowd().and_then(|(_, guests)| guests.values().next()).cloned();
        self.displace(first)
    }

    /// Of those who come from where most come from, the first who is idle leaves.
    fn displace_idle(&mut self) -> bool {
        let idle = |guest: &&Arc<Guest>| guest.activity.is_idle();
        let found = self.crowd().and_then(|(_, guests)| guests.values().take(SEARCHED).find(idle)).cloned();
        self.displace(found)
    }

    /// Of those who come from where most come from, the first leaves, if fewer come from `origin`.
    fn displace_for(&mut self, origin: Origin) -> bool {
        let own = self.origins.get(&origin).map_or(0, BTreeMap::len);
        let crowd = self.crowd().filter(|(_, guests)| guests.len() > own + 1);
        let first = crowd.and_then(|(_, guests)| guests.values().next()).cloned();
        self.displace(first)
    }

    fn displace(&mut self, guest: Option<Arc<Guest>>) -> bool {
        let Some(guest) = guest else { return false };
        self.remove(&guest);
        self.displaced.inc();
        guest.leave.notify_one();
        true
    }
}

impl Origin {
    fn of(address: IpAddr) -> Origin {
        Origin(match address {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(mapped) => IpAddr::V4(Ipv4Addr::from(mapped.octets())),
                None => {
                    let network = u128::MAX << (u128::BITS - NETWORK_BITS);
                    IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & network))
                }
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Visit {
        name: &'static str,
        stay: Stay,
    }

    fn enter(rooms: &Arc<Rooms>, name: &'static str, address: &str) -> Visit {
        Visit { name, stay: rooms.enter(format!("{address}:1").parse().expect("an address")) }
    }

    /// The names of those who were told to leave.
    async fn told(visits: &[Visit]) -> Vec<&'static str> {
        let mut told = Vec::new();
        for visit in visits {
            tokio::select! {
                biased;
                () = visit.stay.guest().told_to_leave() => told.push(visit.name),
                () = std::future::ready(()) => {}
            }
        }
        told
    }

    #[tokio::test]
    async fn in_a_full_hall_the_first_of_the_crowd_gives_way() {
        let metrics = Metrics::new(Vec::new);
        let rooms = Rooms::new(3, 10, &metrics);
        let mut visits = vec![enter(&rooms, "other", "10.0.0.2")];
        for name in ["first", "second", "third"] {
            visits.push(enter(&rooms, name, "10.0.0.1"));
        }
        assert_eq!(told(&visits).await, ["first"], "the one who is alone from its address came before, and stays");
        visits.push(enter(&rooms, "newcomer", "10.0.0.3"));
        assert_eq!(told(&visits).await, ["second"]);
        assert_eq!(rooms.present(), 5, "who was told to leave is there until it has gone");
        drop(visits);
        rooms.emptied().await;
    }

    #[tokio::test]
    async fn in_a_full_house_idle_guests_of_the_crowd_give_way_and_then_the_first() {
        let metrics = Metrics::new(Vec::new);
        let rooms = Rooms::new(10, 3, &metrics);
        let settle = |name, address| {
            let visit = enter(&rooms, name, address);
            visit.stay.settle();
            visit
        };
        let mut visits = vec![settle("busy", "10.0.0.1"), settle("idle", "10.0.0.1")];
        visits[0].stay.guest().activity.begin();
        visits.push(settle("other", "10.0.0.2"));
        visits.push(settle("idle newcomer", "10.0.0.1"));
        assert_eq!(told(&visits).await, ["idle"]);
        visits[3].stay.guest().activity.begin();
        visits.push(settle("one more of the crowd", "10.0.0.1"));
        assert_eq!(told(&visits).await, ["one more of the crowd"], "nobody who is busy goes for one of their own");
        visits.push(settle("from elsewhere", "10.0.0.3"));
        assert_eq!(told(&visits).await, ["busy"], "the crowd gives way to those who are few");
        assert!(metrics.render().contains("\nrevisor_connections{state=\"serving\"} 3\n"));
        assert!(metrics.render().contains("\nrevisor_connections_displaced_total{state=\"serving\"} 3\n"));
    }

    #[tokio::test]
    async fn without_descriptors_the_hall_gives_way_before_the_house() {
        let metrics = Metrics::new(Vec::new);
        let rooms = Rooms::new(10, 10, &metrics);
        let visits = [enter(&rooms, "resident", "10.0.0.1"), enter(&rooms, "newcomer", "10.0.0.2")];
        visits[0].stay.settle();
        for want in [&["newcomer"][..], &["resident"], &[]] {
            rooms.relieve();
            assert_eq!(told(&visits).await, want);
        }
    }

    #[test]
    fn clients_are_told_apart_by_what_they_cannot_make_up() {
        for (name, one, other, same) in [
            ("the same", "10.0.0.1", "10.0.0.1", true),
            ("neighbours", "10.0.0.1", "10.0.0.2", false),
            ("mapped into the newer protocol", "10.0.0.1", "::ffff:10.0.0.1", true),
            ("one network", "2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true),
            ("two networks", "2001:db8:0:1::1", "2001:db8:0:2::1", false),
        ] {
            let origin = |text: &str| Origin::of(text.parse().expect("an address"));
            assert_eq!(origin(one) == origin(other), same, "{name}");
        }
    }
}
