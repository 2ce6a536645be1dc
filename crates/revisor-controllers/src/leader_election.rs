//! [`LeaderElection`]: which of several servers on one store does what only one may do, agreed on by a Lease.
//!
//! As in client-go's `leaderelection`: who holds the Lease renews it every `retry_period`, and stops by itself when it
//! could not for `renew_deadline`; others take it when it has not changed for as long as it was said to last. That is
//! measured by the clock of who waits, since it saw the last change, so clocks need not agree. Between the two times there
//! is nobody, and never are there two.

use std::sync::Arc;
use std::time::Duration;

use revisor_catalog::Resource;
use revisor_object::{Object, Value, parse_json};
use revisor_registry::{Actor, Decoded, FieldValidation, Format, Place, Registry, RegistryError, WriteOptions};
use revisor_schema::{Precision, format_timestamp};
use tokio::time::Instant;

use crate::Clock;

/// Who is recorded to have written the Lease.
const FIELD_MANAGER: &str = "revisor";

/// By how much longer than the period who waits rests at most, so that not all come at once (upstream: `JitterFactor`).
const JITTER: f64 = 1.2;

/// How a leader is elected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElectionOptions {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// Who this is. No two servers may say the same.
    pub identity: String,
    /// For how long the Lease is respected after its last change.
    pub lease_duration: Duration,
    /// For how long who holds it tries to renew it before it gives up.
    pub renew_deadline: Duration,
    /// How often it is tried.
    pub retry_period: Duration,
}

/// Why nobody can be elected so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeaderElectionError {
    /// Two could lead at once.
    #[error("leaseDuration must be greater than renewDeadline")]
    LeaseTooShort,
    /// Nobody could renew.
    #[error("renewDeadline must be greater than retryPeriod*JitterFactor")]
    DeadlineTooShort,
    /// A time is nothing.
    #[error("leaseDuration, renewDeadline and retryPeriod must be greater than zero, the first at least a second")]
    NoTime,
}

impl LeaderElectionOptions {
    /// Whether the times make sense together (upstream: `NewLeaderElector`).
    pub fn check(&self) -> Result<(), LeaderElectionError> {
        if self.lease_duration < Duration::from_secs(1) || self.renew_deadline.is_zero() || self.retry_period.is_zero()
        {
            return Err(LeaderElectionError::NoTime);
        }
        if self.lease_duration <= self.renew_deadline {
            return Err(LeaderElectionError::LeaseTooShort);
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER) {
            return Err(LeaderElectionError::DeadlineTooShort);
        }
        Ok(())
    }
}

/// What a Lease says (upstream: `LeaderElectionRecord`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Record {
    holder: String,
    seconds: u64,
    acquired: String,
    renewed: String,
    transitions: i64,
}

impl Record {
    fn read(lease: &Object) -> Record {
        let spec = lease.object("spec");
        let text = |name: &str| spec.and_then(|spec| spec.str(name)).unwrap_or_default().to_owned();
        let number = |name: &str| spec.and_then(|spec| spec.get(name)).and_then(Value::as_i64).unwrap_or_default();
        Record {
            holder: text("holderIdentity"),
            seconds: u64::try_from(number("leaseDurationSeconds")).unwrap_or_default(),
            acquired: text("acquireTime"),
            renewed: text("renewTime"),
            transitions: number("leaseTransitions"),
        }
    }

    fn write(&self, lease: &mut Object) {
        let spec = lease.object_mut("spec");
        spec.insert("holderIdentity", self.holder.as_str());
        spec.insert("leaseDurationSeconds", i64::try_from(self.seconds).unwrap_or(i64::MAX));
        spec.insert("acquireTime", self.acquired.as_str());
        spec.insert("renewTime", self.renewed.as_str());
        spec.insert("leaseTransitions", self.transitions);
    }
}

/// One who would like to lead.
pub struct LeaderElection {
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    options: LeaderElectionOptions,
    account: Actor,
    /// What the Lease said last, and when that was seen first.
    observed: Option<(Record, Instant)>,
    /// When it was last begun to write the Lease with success: what others count from is not before.
    renewed: Instant,
}

impl LeaderElection {
    /// One who has not tried yet.
    pub fn new(registry: Arc<Registry>, clock: Arc<dyn Clock>, options: LeaderElectionOptions) -> LeaderElection {
        let account = Actor::controller(&options.name);
        LeaderElection { registry, clock, options, account, observed: None, renewed: Instant::now() }
    }

    /// Waits until this one leads.
    pub async fn acquire(&mut self) {
        loop {
            if self.attempt(self.options.renew_deadline).await {
                tracing::info!(lease = self.options.name, identity = self.options.identity, "leading");
                return;
            }
            tokio::time::sleep(self.jittered()).await;
        }
    }

    /// Keeps the Lease for as long as that goes well. Answers when it does not, and this one leads no more.
    pub async fn hold(&mut self) {
        loop {
            tokio::time::sleep(self.options.retry_period).await;
            let left = (self.renewed + self.options.renew_deadline).saturating_duration_since(Instant::now());
            let is_renewed = self.attempt(left).await;
            if !is_renewed && (self.renewed.elapsed() >= self.options.renew_deadline || !self.is_holder()) {
                tracing::warn!(lease = self.options.name, "leading no more: the lease could not be renewed");
                return;
            }
        }
    }

    /// Lets others lead at once, if this one does.
    pub async fn release(&mut self) {
        let releasing = async {
            let Some((lease, record)) = self.read().await? else { return Ok(()) };
            if record.holder != self.options.identity {
                return Ok(());
            }
            let now = self.now();
            let (acquired, renewed) = (now.clone(), now);
            let record = Record { holder: String::new(), seconds: 1, acquired, renewed, ..record };
            self.update(lease, &record).await
        };
        match tokio::time::timeout(self.options.renew_deadline, releasing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the lease of the controllers was not given up"),
            Err(_) => tracing::warn!("the lease of the controllers was not given up in time"),
        }
    }

    /// Tries to take or to renew the Lease. Answers whether this one has it now.
    async fn attempt(&mut self, patience: Duration) -> bool {
        let begun = Instant::now();
        match tokio::time::timeout(patience, self.try_acquire_or_renew()).await {
            Ok(Ok(true)) => {
                self.renewed = begun;
                true
            }
            Ok(Ok(false)) => false,
            // Others were faster; what they did is seen at the next attempt.
            Ok(Err(RegistryError::Conflict { .. } | RegistryError::AlreadyExists { .. })) => false,
            Ok(Err(error)) => {
                tracing::warn!(lease = self.options.name, %error, "cannot read or write the lease of the controllers");
                false
            }
            Err(_) => false,
        }
    }

    /// As upstream: `tryAcquireOrRenew`.
    async fn try_acquire_or_renew(&mut self) -> Result<bool, RegistryError> {
        let now = self.now();
        let mut own = Record {
            holder: self.options.identity.clone(),
            seconds: self.options.lease_duration.as_secs(),
            acquired: now.clone(),
            renewed: now,
            transitions: 0,
        };
        let Some((lease, record)) = self.read().await? else {
            self.create(&own).await?;
            self.observe(own);
            return Ok(true);
        };
        let since = self.observe(record.clone());
        let is_own = record.holder == self.options.identity;
        let is_valid = since.elapsed() < Duration::from_secs(record.seconds);
        if !record.holder.is_empty() && is_valid && !is_own {
            return Ok(false);
        }
        own.transitions = if is_own { record.transitions } else { record.transitions.saturating_add(1) };
        if is_own {
            own.acquired = record.acquired;
        }
        self.update(lease, &own).await?;
        self.observe(own);
        Ok(true)
    }

    /// Notes what the Lease says. Answers since when it does.
    fn observe(&mut self, record: Record) -> Instant {
        match &self.observed {
            Some((known, since)) if *known == record => *since,
            _ => {
                let now = Instant::now();
                self.observed = Some((record, now));
                now
            }
        }
    }

    /// Whether this one had the Lease when it was last looked at.
    fn is_holder(&self) -> bool {
        self.observed.as_ref().is_none_or(|(record, _)| record.holder == self.options.identity)
    }

    fn leases(&self) -> Result<Arc<Resource>, RegistryError> {
        let catalog = self.registry.catalog();
        let leases = catalog.stored_kind("coordination.k8s.io", "leases").cloned();
        leases.ok_or(RegistryError::Unreadable)
    }

    /// The Lease as it is now, and what it says.
    async fn read(&self) -> Result<Option<(Object, Record)>, RegistryError> {
        let leases = self.leases()?;
        let cache = self.registry.cache_of(&leases);
        cache.freshen().await?;
        let Some(item) = cache.get(&leases.key(Some(&self.options.namespace), &self.options.name)) else {
            return Ok(None);
        };
        let Ok(Value::Object(lease)) = parse_json(item.bytes()).map(|parsed| parsed.value) else {
            return Err(RegistryError::Unreadable);
        };
        let record = Record::read(&lease);
        Ok(Some((lease, record)))
    }

    async fn create(&self, record: &Record) -> Result<(), RegistryError> {
        let mut lease = Object::new();
        lease.object_mut("metadata").insert("name", self.options.name.as_str());
        record.write(&mut lease);
        let leases = self.leases()?;
        let place = Place { resource: &leases, namespace: Some(&self.options.namespace), name: None };
        self.registry.create(place, decoded(&leases, lease)?, self.write_options()).await.map(drop)
    }

    /// Replaces the Lease, which names its version: who was faster has it.
    async fn update(&self, mut lease: Object, record: &Record) -> Result<(), RegistryError> {
        record.write(&mut lease);
        let leases = self.leases()?;
        let place =
            Place { resource: &leases, namespace: Some(&self.options.namespace), name: Some(&self.options.name) };
        self.registry.update(place, decoded(&leases, lease)?, self.write_options()).await.map(drop)
    }

    fn write_options(&self) -> WriteOptions<'_> {
        WriteOptions { field_manager: FIELD_MANAGER, ..self.account.options() }
    }

    fn now(&self) -> String {
        format_timestamp(self.clock.now(), Precision::Microseconds)
    }

    /// The rest of one who waits: another each time (upstream: `wait.JitterUntil`).
    fn jittered(&self) -> Duration {
        let chance = uuid::Uuid::new_v4().as_u128() as u32;
        self.options.retry_period.mul_f64(1.0 + JITTER * f64::from(chance) / f64::from(u32::MAX))
    }
}

fn decoded(leases: &Arc<Resource>, lease: Object) -> Result<Decoded, RegistryError> {
    Decoded::read(leases, Format::Json, Value::Object(lease).to_json().as_bytes(), FieldValidation::Ignore)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(lease: u64, renew: u64, retry: u64) -> LeaderElectionOptions {
        let [lease_duration, renew_deadline, retry_period] = [lease, renew, retry].map(Duration::from_millis);
        let [namespace, name, identity] = ["kube-system", "l", "me"].map(str::to_owned);
        LeaderElectionOptions { namespace, name, identity, lease_duration, renew_deadline, retry_period }
    }

    #[test]
    fn times_that_would_let_two_lead_are_refused() {
        for (lease, renew, retry, want) in [
            (15_000, 10_000, 2_000, Ok(())),
            (10_000, 10_000, 2_000, Err(LeaderElectionError::LeaseTooShort)),
            (15_000, 2_400, 2_000, Err(LeaderElectionError::DeadlineTooShort)),
            (15_000, 10_000, 0, Err(LeaderElectionError::NoTime)),
            (900, 500, 100, Err(LeaderElectionError::NoTime)),
        ] {
            assert_eq!(options(lease, renew, retry).check(), want, "{lease} {renew} {retry}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let [acquired, renewed] = ["2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:02.000001Z"].map(str::to_owned);
        let record = Record { holder: "me".to_owned(), seconds: 15, acquired, renewed, transitions: 3 };
        let mut lease = Object::new();
        record.write(&mut lease);
        assert_eq!(Record::read(&lease), record);
        assert_eq!(Record::read(&Object::new()), Record::default(), "a lease of others says nothing");
    }
}
