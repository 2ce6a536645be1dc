//! [`ElectedControllers`]: controllers that run while this server leads, where several servers share a store.

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::{Controllers, ControllersOptions, LeaderElection};

/// Controllers of which those of one server run, or those of the only one.
pub enum ElectedControllers {
    /// Nobody else is there.
    Always(Controllers),
    /// They run for as long as the server leads.
    WhileLeading {
        /// Ends it.
        stop: oneshot::Sender<()>,
        /// What elects, starts and stops.
        task: JoinHandle<()>,
    },
}

impl ElectedControllers {
    /// Starts controllers now, or when `election` is won.
    ///
    /// # Panics
    /// If there is no tokio runtime to spawn them on.
    pub fn start(options: ControllersOptions, election: Option<LeaderElection>) -> ElectedControllers {
        let Some(election) = election else { return ElectedControllers::Always(Controllers::start(options)) };
        let (stop, stopped) = oneshot::channel();
        ElectedControllers::WhileLeading { stop, task: tokio::spawn(lead(options, election, stopped)) }
    }

    /// Ends all of them, waits until they have, and lets another server lead.
    pub async fn stop(self) {
        match self {
            ElectedControllers::Always(controllers) => controllers.stop().await,
            ElectedControllers::WhileLeading { stop, task } => {
                // If it is not running any more, there is nobody left to tell.
                let _ = stop.send(());
                if let Err(error) = task.await {
                    tracing::error!(%error, "the lease of the controllers was not given up");
                }
            }
        }
    }
}

async fn lead(options: ControllersOptions, mut election: LeaderElection, mut stopped: oneshot::Receiver<()>) {
    loop {
        tokio::select! {
            () = election.acquire() => {}
            _ = &mut stopped => break,
        }
        let controllers = Controllers::start(options.clone());
        let is_over = tokio::select! {
            () = election.hold() => false,
            _ = &mut stopped => true,
        };
        // They end before anybody else may begin.
        controllers.stop().await;
        if is_over {
            break;
        }
    }
    // Also if it was taken in the very moment in which it was given up.
    election.release().await;
}
