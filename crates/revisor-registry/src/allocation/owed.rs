//! Addresses that no Service has any more, and that webhooks or policies kept the server from removing: it tries again and
//! again (upstream: the repair of addresses, which looks at all of them every three minutes).

use std::net::IpAddr;
use std::sync::{MutexGuard, PoisonError};

use super::Allocation;
use crate::admission::Operation;
use crate::bootstrap::{Made, retry};
use crate::{Registry, RegistryError};

/// How many addresses are remembered. What is beyond that is found at the next start.
const MAX_OWED: usize = 4096;

/// The IPAddress of this name and identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owed {
    ip: IpAddr,
    uid: String,
}

impl Allocation {
    fn owed(&self) -> MutexGuard<'_, Vec<Owed>> {
        // A list of addresses is whole whenever it can be seen.
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    /// Whether somebody may be asked before an address is made or removed.
    pub(super) fn is_asked_about_addresses(&self) -> bool {
        let addresses = self.catalog.resource("networking.k8s.io", "v1", "ipaddresses");
        let is_asked = |operation| addresses.is_some_and(|addresses| self.may_be_asked(addresses, None, operation));
        is_asked(Operation::Create) || is_asked(Operation::Delete)
    }

    /// Removes an address without being waited for, as soon as that can be done.
    pub(super) fn remove_address_later(&self, ip: IpAddr, uid: &str) {
        let one = Owed { ip, uid: uid.to_owned() };
        let mut owed = self.allocation.owed();
        if owed.contains(&one) || owed.len() >= MAX_OWED {
            return;
        }
        owed.push(one);
        // There is a task as long as there are some.
        if owed.len() == 1 {
            drop(self.runtime.spawn(retry(self.itself.clone(), Registry::remove_owed)));
        }
    }

    async fn remove_owed(&self) -> Result<Made, RegistryError> {
        let all = self.allocation.owed().clone();
        for Owed { ip, uid } in &all {
            match self.delete_address(*ip, uid, self.own.options()).await {
                Ok(()) => self.allocation.owed().retain(|one| one.uid != *uid),
                Err(error) if error.is_stop() => return Ok(Made::All),
                Err(error) => tracing::debug!(%ip, %error, "an address that no service has is kept"),
            }
        }
        Ok(if self.allocation.owed().is_empty() { Made::All } else { Made::PutOff })
    }
}
