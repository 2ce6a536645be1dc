//! [`UsageKeeper`]: writes down now and then who asked for which versions of custom resources, so that it is known after
//! a restart and to other servers on the store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use revisor_registry::{Registry, RegistryError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::kept_secret::kept_secret;

/// How often it is written down: whoever kills a server loses so much at most.
const INTERVAL: Duration = Duration::from_secs(30);

/// What keeps writing down who asked.
pub(crate) struct UsageKeeper {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl UsageKeeper {
    /// Begins.
    pub(crate) fn begin(registry: Arc<Registry>) -> UsageKeeper {
        let (stop, stopped) = oneshot::channel();
        UsageKeeper { stop, task: tokio::spawn(keep(registry, stopped)) }
    }

    /// Writes down what is left, and ends.
    pub(crate) async fn end(self) {
        // If it is not running any more, there is nobody left to tell.
        let _ = self.stop.send(());
        if let Err(error) = self.task.await {
            tracing::error!(%error, "who asked for which versions was not written down");
        }
    }
}

async fn keep(registry: Arc<Registry>, mut stopped: oneshot::Receiver<()>) {
    report(registry.tidy_version_usage().await);
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.tick().await;
    loop {
        tokio::select! {
            _ = ticks.tick() => report(registry.write_version_usage().await),
            _ = &mut stopped => break,
        }
    }
    report(registry.write_version_usage().await);
}

fn report(result: Result<(), RegistryError>) {
    if let Err(error) = result {
        tracing::warn!(error = &error as &dyn std::error::Error, "cannot write down who asked for which versions");
    }
}

/// What tells the server with this folder from others on the same store, also after a restart.
pub(crate) fn server_name(data: &Path) -> anyhow::Result<String> {
    let secret = kept_secret(&data.join("server.id"))?;
    Ok(secret[..16].iter().map(|byte| format!("{byte:02x}")).collect())
}
