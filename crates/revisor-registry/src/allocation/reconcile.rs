//! Making services and what they have taken agree, once at the start: after a crash, or after somebody else wrote to
//! the store.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use revisor_object::{Object, Value, parse_ip_sloppy};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::cluster_ips::{ALLOCATOR, MANAGED_BY_LABEL};
use super::{Claim, Family, ServiceName, claims_of};
use crate::{Decoded, Registry, RegistryError};

/// For how long an address may be without its Service where other servers make both.
const SPARED: Duration = Duration::seconds(60);

impl Registry {
    /// Notes the ports of all services, removes the addresses that no Service has, and makes those that are missing.
    pub(crate) async fn reconcile_services(&self) -> Result<(), RegistryError> {
        let mut claimed: HashMap<IpAddr, ServiceName> = HashMap::new();
        let mut ports = BTreeSet::new();
        for service in self.stored_objects("", "services")? {
            let text = |name| service.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default().to_owned();
            let name = ServiceName { namespace: text("namespace"), name: text("name") };
            for claim in claims_of(&service) {
                match claim {
                    Claim::PortNumber(number) => {
                        ports.extend(u16::try_from(number));
                        if !self.allocation.node_ports.note(number) {
                            tracing::warn!(service = ?name, number, "a node port is taken twice or out of range");
                        }
                    }
                    Claim::AddressText(ip) => {
                        if let Some(ip) = parse_ip_sloppy(&ip) {
                            claimed.insert(ip, name.clone());
                        }
                    }
                    Claim::Address { .. } | Claim::Port { .. } => {}
                }
            }
        }
        self.reconcile_shared_ports(&ports).await?;
        self.remove_orphaned_addresses(&claimed).await?;
        self.make_missing_addresses(claimed).await
    }

    async fn remove_orphaned_addresses(&self, claimed: &HashMap<IpAddr, ServiceName>) -> Result<(), RegistryError> {
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
                self.delete_address(ip, text(&["metadata", "uid"])).await?;
            }
        }
        Ok(())
    }

    async fn make_missing_addresses(&self, claimed: HashMap<IpAddr, ServiceName>) -> Result<(), RegistryError> {
        for (ip, service) in claimed {
            let is_ours = self.allocation.families.contains(&Family::of(ip));
            if is_ours && self.held_address(&ip.to_string()).is_none() {
                tracing::info!(%ip, ?service, "the address of a service was not noted");
                let (object, _) = self.new_address(ip, &service);
                match self.store_address(object).await {
                    Ok(()) | Err(RegistryError::AlreadyExists { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// All objects of a resource; none if it is not served.
    fn stored_objects(&self, group: &str, plural: &str) -> Result<Vec<Object>, RegistryError> {
        let Some(resource) = self.catalog.resource(group, "v1", plural) else { return Ok(Vec::new()) };
        let snapshot = self.cache_of(resource).snapshot();
        snapshot.range(&resource.prefix, None).map(|item| Decoded::stored(item.bytes())).collect()
    }
}
