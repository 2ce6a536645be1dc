//! [`Auditor`]: the policy, the backends, and what became of events.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use revisor_auth::Attributes;

use crate::backend::{Backend, Counts, Submitted};
use crate::event::Event;
use crate::{AuditPolicy, AuditRecord, AuditedRequest, BackendOptions, Level};

/// Writes down who did what.
#[derive(Debug)]
pub struct Auditor {
    policy: AuditPolicy,
    backends: Vec<Backend>,
    levels: [AtomicU64; 4],
    events: AtomicU64,
    rejected: AtomicU64,
    counts: Arc<Counts>,
}

/// What became of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSample {
    /// Events that were handed to backends.
    pub events: u64,
    /// Events that were not written as they should have been, by what failed.
    pub errors: [(&'static str, u64); 4],
    /// Requests by how much was to be written of them.
    pub levels: [(&'static str, u64); 4],
    /// Requests that were refused because they could not be written down.
    pub rejected: u64,
}

impl Auditor {
    /// An auditor by this policy, to these backends. Must be called within a tokio runtime.
    pub fn new(policy: AuditPolicy, backends: Vec<BackendOptions>) -> io::Result<Arc<Auditor>> {
        let counts = Arc::new(Counts::default());
        let open = |options| Backend::open(options, &counts);
        let backends = backends.into_iter().map(open).collect::<io::Result<Vec<_>>>()?;
        let (levels, events, rejected) = Default::default();
        Ok(Arc::new(Auditor { policy, backends, levels, events, rejected, counts }))
    }

    /// Begins to write down a request, if the policy wants that.
    pub fn begin<'a>(
        self: &Arc<Self>,
        attributes: &'a Attributes<'a>,
        request: impl FnOnce() -> AuditedRequest<'a>,
    ) -> Option<AuditRecord> {
        let audit = self.policy.evaluate(attributes);
        self.levels[audit.level as usize].fetch_add(1, Ordering::Relaxed);
        (audit.level != Level::None).then(|| AuditRecord::new(Arc::clone(self), audit, request()))
    }

    /// A request was refused because it could not be written down.
    pub fn reject(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn submit(&self, event: &Event<'_>) -> Submitted {
        self.events.fetch_add(1, Ordering::Relaxed);
        self.backends.iter().map(|backend| backend.submit(event)).fold(Submitted::Done(true), Submitted::and)
    }

    /// Writes what still waits, and ends.
    pub async fn close(&self) {
        for backend in &self.backends {
            backend.close().await;
        }
    }

    /// What became of events so far.
    pub fn sample(&self) -> AuditSample {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        AuditSample {
            events: load(&self.events),
            errors: self.counts.errors(),
            levels: Level::ALL.map(|level| (level.name(), load(&self.levels[level as usize]))),
            rejected: load(&self.rejected),
        }
    }
}
