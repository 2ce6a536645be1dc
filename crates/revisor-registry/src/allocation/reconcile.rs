//! Making services and what they have taken agree, once at the start: after a crash, or after somebody else wrote to
//! the store.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use revisor_object::{Object, Value, parse_ip_sloppy};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::cluster_ips::{ALLOCATOR, MANAGED_BY_LABEL};
use super::{Claim, Family, ServiceName, claims_of};
use crate::bootstrap::Made;
use crate::{Decoded, Registry, RegistryError, WriteOptions};

/// For how long an address may be without its Service where other servers make both.
const SPARED: Duration = Duration::seconds(60);

impl Registry {
    /// Notes the ports of all services, removes the addresses that no Service has, and makes those that are missing. What
    /// others stand against is tried again later.
    pub(crate) async fn reconcile_services(&self, options: WriteOptions<'_>) -> Result<Made, RegistryError> {
        let mut ports = BTreeSet::new();
        for (service, claims) in self.claims()? {
            for claim in claims {
                if let Claim::PortNumber(number) = claim {
                    ports.extend(u16::try_from(number));
                    if !self.allocation.node_ports.note(number) {
                        tracing::warn!(?service, number, "a node port is taken twice or out of range");
                    }
                }
            }
        }
        self.reconcile_shared_ports(&ports).await?;
        // Only who has to be asked is waited for no longer than the start can wait.
        let options = if self.is_asked_about_addresses() { options } else { self.own.options() };
        self.remove_orphaned_addresses(options).await?;
        self.make_missing_addresses(options).await
    }

    /// What all stored services have taken.
    fn claims(&self) -> Result<Vec<(ServiceName, Vec<Claim>)>, RegistryError> {
        let of_service = |service: Object| {
            let text = |name| service.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default().to_owned();
            (ServiceName { namespace: text("namespace"), name: text("name") }, claims_of(&service))
        };
        Ok(self.stored_objects("", "services")?.into_iter().map(of_service).collect())
    }

    /// The addresses of all stored services.
    fn claimed_addresses(&self) -> Result<HashMap<IpAddr, ServiceName>, RegistryError> {
        let mut claimed = HashMap::new();
        for (service, claims) in self.claims()? {
            for claim in claims {
                if let Claim::AddressText(ip) = claim
                    && let Some(ip) = parse_ip_sloppy(&ip)
                {
                    claimed.insert(ip, service.clone());
                }
            }
        }
        Ok(claimed)
    }

    /// At the start only: at other times an address may be that of a Service that is about to be stored.
    async fn remove_orphaned_addresses(&self, options: WriteOptions<'_>) -> Result<(), RegistryError> {
        let claimed = self.claimed_addresses()?;
        for address in self.stored_objects("networking.k8s.io", "ipaddresses")? {
            let text = |path: &[&str]| address.at(path).and_then(Value::as_str).unwrap_or_default();
            if text(&["metadata", "labels", MANAGED_BY_LABEL]) != ALLOCATOR {
                continue;
            }
            let Some(ip) = parse_ip_sloppy(text(&["metadata", "name"])) else { continue };
            let parent = |name| text(&["spec", "parentRef", name]).to_owned();
            let owner = ServiceName { namespace: parent("namespace"), name: parent("name") };
            // Another server may have made it for a Service that it is about to store.
            let made = OffsetDateTime::parse(text(&["metadata", "creationTimestamp"]), &Rfc3339);
            let is_new = made.is_ok_and(|made| self.environment.now() - made < SPARED);
            if self.shared_ports.is_some() && is_new {
                continue;
            }
            if claimed.get(&ip) != Some(&owner) {
                tracing::info!(%ip, service = ?owner, "no service has the address any more");
                let uid = text(&["metadata", "uid"]);
                match self.delete_address(ip, uid, options).await {
                    Ok(()) => {}
                    Err(error) if error.is_refusal() => self.remove_address_later(ip, uid),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Makes the addresses that services have and that are not noted.
    pub(crate) async fn make_missing_addresses(&self, options: WriteOptions<'_>) -> Result<Made, RegistryError> {
        let mut all = Made::All;
        for (ip, service) in self.claimed_addresses()? {
            let is_ours = self.allocation.families.contains(&Family::of(ip));
            if is_ours && self.held_address(&ip.to_string()).is_none() {
                tracing::info!(%ip, ?service, "the address of a service was not noted");
                match self.store_address(ip, &service, options).await {
                    Err(RegistryError::AlreadyExists { .. }) => {}
                    made => all = all.and(Made::of(made)?),
                }
            }
        }
        Ok(all)
    }

    /// All objects of a resource; none if it is not served.
    fn stored_objects(&self, group: &str, plural: &str) -> Result<Vec<Object>, RegistryError> {
        let Some(resource) = self.catalog.resource(group, "v1", plural) else { return Ok(Vec::new()) };
        let snapshot = self.cache_of(resource).snapshot();
        snapshot.range(&resource.prefix, None).map(|item| Decoded::stored(item.bytes())).collect()
    }
}
