//! [`Reservation`]: what one write of a Service has taken and given up, until it is known whether it happened.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Instant;

use revisor_object::Object;
use revisor_store::{BoxFuture, Change, Expect, Key, StoreError, Write};

use super::node_ports::Ticket;
use super::{ServiceName, claims_of};
use crate::{Decoded, DeleteOptions, Place, Preconditions, Registry, RegistryError, WriteOptions};

/// One thing that is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Claim {
    /// The IPAddress of this name and identity.
    Address { ip: IpAddr, uid: String },
    /// The node port, as it was taken then.
    Port { port: u16, ticket: Ticket },
    /// An address of a stored Service, not looked up yet.
    AddressText(String),
    /// A node port of a stored Service, not looked up yet.
    PortNumber(i64),
}

impl Claim {
    pub(super) fn address(ip: &str) -> Claim {
        Claim::AddressText(ip.to_owned())
    }

    pub(super) fn port(number: i64) -> Claim {
        Claim::PortNumber(number)
    }
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The Service is stored as it was to be.
    Stored,
    /// Nothing was changed.
    Failed,
    /// The Service is gone.
    Removed,
}

/// A claim of a write that was given up before its outcome was known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Left {
    service: ServiceName,
    claim: Claim,
}

/// What a write has taken, to be given back if it fails; and what it no longer needs, to be given back if it does not.
/// To drop it without an outcome is safe: what it holds is looked at again by a task, and in any case before anything
/// else is given out.
#[must_use = "what was taken must be settled"]
pub(crate) struct Reservation<'r> {
    registry: &'r Registry,
    service: Option<ServiceName>,
    dry_run: bool,
    /// When the time of the write is over.
    deadline: Option<Instant>,
    taken: Vec<Claim>,
    given_up: Vec<Claim>,
    /// The ports that a dry run has shown.
    pub(super) shown: BTreeSet<i64>,
}

impl<'r> Reservation<'r> {
    /// The reservation of an object that needs nothing.
    pub(crate) fn nothing(registry: &'r Registry) -> Reservation<'r> {
        Reservation::new(registry, None, false)
    }

    fn new(registry: &'r Registry, service: Option<ServiceName>, dry_run: bool) -> Reservation<'r> {
        Reservation {
            registry,
            service,
            dry_run,
            deadline: None,
            taken: Vec::new(),
            given_up: Vec::new(),
            shown: BTreeSet::new(),
        }
    }

    /// The same for a write that has so much time.
    pub(super) fn until(self, deadline: Option<Instant>) -> Reservation<'r> {
        let mut reservation = self;
        reservation.deadline = deadline;
        reservation
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    pub(super) fn service(&self) -> Option<&ServiceName> {
        self.service.as_ref()
    }

    pub(super) fn service_name(&self) -> &str {
        self.service.as_ref().map(|service| service.name.as_str()).unwrap_or_default()
    }

    pub(super) fn random(&self) -> u64 {
        self.registry.environment.random()
    }

    pub(super) fn take(&mut self, claim: Claim) {
        self.taken.push(claim);
    }

    /// Takes back the last claim: another has it.
    pub(super) fn forget_last(&mut self) {
        self.taken.pop();
    }

    /// How much was taken and given up until now.
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.taken.len(), self.given_up.len())
    }

    /// The node ports that were taken since then.
    pub(super) fn ports_since(&self, (taken, _): (usize, usize)) -> Vec<u16> {
        let port = |claim: &Claim| match claim {
            Claim::Port { port, .. } => Some(*port),
            _ => None,
        };
        self.taken[taken..].iter().filter_map(port).collect()
    }

    /// Forgets what was taken and given up since then: others have it.
    pub(super) fn forget_since(&mut self, (taken, given_up): (usize, usize)) {
        self.taken.truncate(taken);
        self.given_up.truncate(given_up);
    }

    pub(super) fn give_up(&mut self, claim: Option<Claim>) {
        if !self.dry_run {
            self.given_up.extend(claim);
        }
    }

    /// Gives up everything that this Service has, because it is about to go.
    pub(crate) fn give_up_all(&mut self, service: &Object) {
        if self.service.is_some() {
            let claims = claims_of(service);
            self.given_up = claims.into_iter().filter_map(|claim| self.registry.looked_up(claim)).collect();
        }
    }

    /// Gives back what is not needed after this outcome.
    pub(crate) async fn settle(mut self, outcome: Outcome) {
        match outcome {
            Outcome::Stored => self.taken.clear(),
            Outcome::Failed => self.given_up.clear(),
            Outcome::Removed => {}
        }
        if let (Some(service), Outcome::Removed, false) = (&self.service, outcome, self.dry_run) {
            self.registry.remove_endpoints(service).await;
        }
        // Each stays in its list until it is given back, for the case that this is not waited for.
        while let Some(claim) = self.taken.last().or(self.given_up.last()).cloned() {
            self.registry.give_back(&claim).await;
            if self.taken.pop().is_none() {
                self.given_up.pop();
            }
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let claims = std::mem::take(&mut self.taken).into_iter().chain(std::mem::take(&mut self.given_up));
        if let Some(service) = &self.service {
            let left: Vec<Left> = claims.map(|claim| Left { service: service.clone(), claim }).collect();
            if !left.is_empty() {
                self.registry.allocation.left().extend(left);
                self.registry.collect_left_soon();
            }
        }
    }
}

impl Registry {
    /// An empty reservation, if the object is a Service.
    pub(crate) fn reservation_for(
        &self,
        resource: &revisor_catalog::Resource,
        namespace: Option<&str>,
        name: &str,
        dry_run: bool,
    ) -> Option<Reservation<'_>> {
        if resource.name() != ("", "services") {
            return None;
        }
        let service = ServiceName { namespace: namespace.unwrap_or_default().to_owned(), name: name.to_owned() };
        Some(Reservation::new(self, Some(service), dry_run))
    }

    fn looked_up(&self, claim: Claim) -> Option<Claim> {
        match claim {
            Claim::AddressText(ip) => self.held_address(&ip),
            Claim::PortNumber(number) => self.allocation.node_ports.held(number),
            known => Some(known),
        }
    }

    /// Gives back one thing. What cannot be given back now is at the next start.
    async fn give_back(&self, claim: &Claim) {
        match claim {
            Claim::Port { port, ticket } => {
                self.allocation.node_ports.free(*port, *ticket);
                if let Err(error) = self.give_back_port(*port).await {
                    tracing::warn!(port, error = &error as &dyn std::error::Error, "cannot give back a node port");
                }
            }
            Claim::Address { ip, uid } => {
                let options = self.own.options();
                if let Err(error) = self.delete_address(*ip, uid, options).await {
                    tracing::warn!(%ip, error = &error as &dyn std::error::Error, "cannot give back an address");
                    self.remove_address_later(*ip, uid);
                }
            }
            Claim::AddressText(_) | Claim::PortNumber(_) => {}
        }
    }

    /// Removes the IPAddress of this identity. That it is gone already is as good. As in the original that is a request
    /// that the server makes to itself. Boxed, because to delete a Service is to delete addresses.
    pub(super) fn delete_address<'a>(
        &'a self,
        ip: IpAddr,
        uid: &'a str,
        write: WriteOptions<'a>,
    ) -> BoxFuture<'a, Result<(), RegistryError>> {
        Box::pin(async move {
            let Some(addresses) = self.catalog.resource("networking.k8s.io", "v1", "ipaddresses") else {
                return Ok(());
            };
            let name = ip.to_string();
            let place = Place { resource: addresses, namespace: None, name: Some(&name) };
            let options = DeleteOptions {
                preconditions: Preconditions { uid: Some(uid.to_owned()), resource_version: None },
                ..DeleteOptions::default()
            };
            match self.delete_for(place, &options, write).await {
                Ok(_) | Err(RegistryError::NotFound { .. } | RegistryError::Conflict { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    /// A new Service of the same name must not lead to the old places.
    fn remove_endpoints<'a>(&'a self, service: &'a ServiceName) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(endpoints) = self.catalog.resource("", "v1", "endpoints") else { return };
            let place = Place { resource: endpoints, namespace: Some(&service.namespace), name: Some(&service.name) };
            match self.delete(place, &DeleteOptions::default()).await {
                Ok(_) | Err(RegistryError::NotFound { .. }) => {}
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(service = service.name, error, "cannot delete the endpoints of a service");
                }
            }
        })
    }

    /// Has what was left behind looked at without being waited for.
    fn collect_left_soon(&self) {
        let Some(registry) = self.itself.upgrade() else { return };
        drop(self.runtime.spawn(async move {
            if let Err(error) = registry.collect_left().await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "what a service no longer needs is kept until the next one is written");
            }
        }));
    }

    /// Looks at what writes left behind that were given up half-way: whether they happened after all, only the Service
    /// can tell.
    pub(super) async fn collect_left(&self) -> Result<(), RegistryError> {
        loop {
            // It stays in the list until it is dealt with, for the case that this is not waited for.
            let Some(one) = self.allocation.left().first().cloned() else { return Ok(()) };
            let service = self.newest_service(&one.service).await?;
            let is_claimed = service.is_some_and(|service| {
                claims_of(&service).into_iter().any(|claim| self.looked_up(claim).as_ref() == Some(&one.claim))
            });
            match &one.claim {
                // Who writes the next Service does not wait for those who are asked about what others left.
                Claim::Address { ip, uid } if !is_claimed && self.is_asked_about_addresses() => {
                    self.remove_address_later(*ip, uid);
                }
                claim if !is_claimed => self.give_back(claim).await,
                _ => {}
            }
            self.allocation.left().retain(|other| *other != one);
        }
    }

    /// A Service as it is after all writes that the store was given before. A write that cannot happen waits its turn
    /// behind them, and is answered with what is there.
    async fn newest_service(&self, service: &ServiceName) -> Result<Option<Object>, RegistryError> {
        let Some(services) = self.catalog.resource("", "v1", "services") else { return Ok(None) };
        let key = Key::new(services.key(Some(&service.namespace), &service.name));
        let write = Write { key, expect: Expect::Absent, change: Change::Delete };
        match self.cache.write(write).await {
            Ok(_) => Ok(None),
            Err(StoreError::Conflict { current, .. }) => {
                current.map(|entry| Decoded::stored(entry.bytes())).transpose()
            }
            Err(error) => Err(error.into()),
        }
    }
}
