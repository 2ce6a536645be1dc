//! [`Leases`]: what is stored for a time hangs on a lease of etcd, and goes with it.
//!
//! A lease for each object would be a burden for etcd, so objects that end at nearly the same time share one: it is
//! granted for a little longer than was asked, and used for as long as that fits (upstream: `leaseManager`).

use std::time::{Duration, Instant};

use revisor_store::{Key, StoreError};
use tokio::sync::Mutex;

use crate::EtcdError;
use crate::shared::Shared;

/// How many objects hang on one lease at most (upstream: `defaultLeaseMaxObjectCount`).
const MOST: usize = 1000;

/// By which part of its time a lease may be longer.
const PART: f64 = 0.05;

pub(crate) struct Leases {
    /// By how much a lease may be longer at most.
    reuse: Duration,
    last: Mutex<Vec<Last>>,
}

/// The lease that was granted last for one time to live.
struct Last {
    ttl: Duration,
    id: i64,
    ends: Instant,
    users: usize,
}

impl Leases {
    pub(crate) fn new(reuse: Duration) -> Leases {
        Leases { reuse, last: Mutex::default() }
    }

    fn extra(&self, ttl: Duration) -> Duration {
        Duration::from_secs(ttl.mul_f64(PART).as_secs()).min(self.reuse)
    }
}

impl Shared {
    /// The lease that an object hangs on: 0 if it stays.
    pub(crate) async fn lease_for(&self, key: &Key) -> Result<i64, StoreError> {
        let lasting = self.options.times_to_live.iter().find(|(prefix, _)| key.as_str().starts_with(&**prefix));
        let Some((_, ttl)) = lasting.filter(|(_, ttl)| !ttl.is_zero()) else { return Ok(0) };
        let extra = self.leases.extra(*ttl);
        // Held while one is granted: those who come meanwhile share it.
        let mut last = self.leases.last.lock().await;
        let now = Instant::now();
        last.retain(|lease| lease.ends > now);
        let is_good = |lease: &&mut Last| {
            lease.ttl == *ttl && now + *ttl <= lease.ends && lease.ends <= now + *ttl + extra && lease.users < MOST
        };
        if let Some(lease) = last.iter_mut().find(is_good) {
            lease.users += 1;
            return Ok(lease.id);
        }
        let length = *ttl + extra;
        let seconds = i64::try_from(length.as_secs()).unwrap_or(i64::MAX).max(1);
        let granted = self.client.grant(seconds).await?;
        if !granted.error.is_empty() || granted.id == 0 {
            return Err(EtcdError::Unreadable(format!("no lease was granted: {}", granted.error)).into());
        }
        last.retain(|lease| lease.ttl != *ttl);
        last.push(Last { ttl: *ttl, id: granted.id, ends: now + length, users: 1 });
        Ok(granted.id)
    }
}
