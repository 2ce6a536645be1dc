//! [`Presence`]: the server's Lease, renewed for as long as the server runs.

use std::sync::Arc;
use std::time::Duration;

use revisor_registry::{Registry, RegistryError, ServerIdentity};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How often the server says that it is there.
const RENEWAL: Duration = Duration::from_secs(10);

/// After how many renewals it is looked for servers that are gone: once an hour.
const CLEANING: u32 = 360;

/// What keeps saying that the server is there.
pub(crate) struct Presence {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Presence {
    /// Begins to say that the server is there. Nobody waits for it: a server without its Lease serves as well.
    pub(crate) fn begin(registry: Arc<Registry>, identity: ServerIdentity) -> Presence {
        let (stop, stopped) = oneshot::channel();
        Presence { stop, task: tokio::spawn(keep(registry, identity, stopped)) }
    }

    /// Says that the server is there no more.
    pub(crate) async fn end(self) {
        // If it is not running any more, there is nobody left to tell.
        let _ = self.stop.send(());
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the server's lease was not given up");
        }
    }
}

async fn keep(registry: Arc<Registry>, identity: ServerIdentity, mut stopped: oneshot::Receiver<()>) {
    report(registry.take_identity(&identity).await);
    let mut ticks = tokio::time::interval(RENEWAL);
    ticks.tick().await;
    for renewal in 1_u32.. {
        tokio::select! {
            _ = ticks.tick() => report(registry.renew_identity(&identity).await),
            _ = &mut stopped => break,
        }
        if renewal % CLEANING == 0 {
            report(registry.remove_lost_identities().await);
        }
    }
    report(registry.give_up_identity(&identity).await);
}

fn report(result: Result<(), RegistryError>) {
    if let Err(error) = result {
        tracing::warn!(error = &error as &dyn std::error::Error, "cannot keep the server's lease");
    }
}

/// What this machine is called.
pub(crate) fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
}
