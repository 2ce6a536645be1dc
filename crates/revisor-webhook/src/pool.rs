//! [`Pool`]: the connections to one webhook that wait for the next call.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use http::uri::PathAndQuery;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::location::Location;
use crate::{ClientConfig, ClientConfigError, Credentials};

/// What is remembered of one webhook.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) config: ClientConfig,
    /// Who the server is to it.
    pub(crate) credentials: Option<Arc<Credentials>>,
    pub(crate) location: Location,
    /// How it is called in the header `Host`.
    pub(crate) host: HeaderValue,
    /// Path and query of the last call, and how long it might take: as a rule that is the same for all.
    path_and_query: Mutex<Option<(Duration, PathAndQuery)>>,
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
    pub(crate) fn new(
        config: &ClientConfig,
        credentials: Option<&Arc<Credentials>>,
        max_calls: usize,
        max_idle: usize,
    ) -> Result<Pool, ClientConfigError> {
        let location = Location::of(&config.target)?;
        let host = HeaderValue::from_str(&location.authority)
            .map_err(|error| ClientConfigError::Url(format!("{}: {error}", location.authority)))?;
        Ok(Pool {
            config: config.clone(),
            credentials: credentials.cloned(),
            location,
            host,
            path_and_query: Mutex::default(),
            tls: OnceCell::new(),
            calls: Semaphore::new(max_calls.clamp(1, Semaphore::MAX_PERMITS)),
            idle: Mutex::default(),
            max_idle,
        })
    }

    /// Path and query of a call that may take so long.
    pub(crate) fn path_and_query(&self, timeout: Duration) -> Result<PathAndQuery, http::Error> {
        let mut last = self.path_and_query.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, path)) = last.as_ref().filter(|(known, _)| *known == timeout) {
            return Ok(path.clone());
        }
        let path = PathAndQuery::try_from(self.location.path_and_query(timeout))?;
        *last = Some((timeout, path.clone()));
        Ok(path)
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
