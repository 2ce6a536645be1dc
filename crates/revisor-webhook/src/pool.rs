//! [`Pool`]: the connections to one webhook that wait for the next call.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::location::Location;

/// What is remembered of one webhook.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) location: Location,
    /// The client's side of TLS, once it was needed.
    pub(crate) tls: OnceCell<Arc<rustls::ClientConfig>>,
    /// One permit per call under way.
    pub(crate) calls: Semaphore,
    idle: Mutex<Vec<Idle>>,
    max_idle: usize,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(location: Location, max_calls: usize, max_idle: usize) -> Pool {
        let calls = Semaphore::new(max_calls.clamp(1, Semaphore::MAX_PERMITS));
        Pool { location, tls: OnceCell::new(), calls, idle: Mutex::default(), max_idle }
    }

    /// A connection that was not hung up, the one that waited least: the others may grow old and be closed.
    ///
    /// One that carries several requests stays for others.
    pub(crate) fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut newest = idle.pop()?;
        while newest.connection.has_ended() {
            newest = idle.pop()?;
        }
        if let Some(shared) = newest.connection.share() {
            idle.push(Idle { connection: newest.connection, since: Instant::now() });
            return Some(shared);
        }
        Some(newest.connection)
    }

    /// Keeps a connection whose last answer was read to its end.
    pub(crate) fn give(&self, mut connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= self.max_idle {
            idle.retain_mut(|idle| !idle.connection.has_ended());
        }
        // Of connections that carry several requests, one is enough.
        let has_shared = connection.share().is_some() && idle.iter().any(|idle| idle.connection.share().is_some());
        if idle.len() < self.max_idle && !has_shared && !connection.has_ended() {
            idle.push(Idle { connection, since: Instant::now() });
        }
    }

    /// Closes what waited for longer than `age`, and says whether anything still waits.
    pub(crate) fn sweep(&self, age: Duration) -> bool {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain_mut(|idle| !idle.connection.has_ended() && idle.since.elapsed() < age);
        !idle.is_empty()
    }
}
