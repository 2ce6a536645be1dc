//! [`Events`]: a watch, event by event.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use revisor_object::{Object, Value, parse_json};

use super::ClusterError;
use super::connection::Connection;

/// The largest event.
const MAX_EVENT: usize = 64 << 20;

/// A watch that goes on until the server ends it.
pub(crate) struct Events {
    url: String,
    body: Incoming,
    /// What came and is no whole event yet.
    rest: Vec<u8>,
    /// How much of `rest` is known to hold no end of an event.
    searched: usize,
    /// Without it the rest of the body would not come.
    _connection: Connection,
}

impl Events {
    pub(super) fn new(url: String, body: Incoming, connection: Connection) -> Events {
        Events { url, body, rest: Vec::new(), searched: 0, _connection: connection }
    }

    /// The next event; `None` if the server has ended the watch. One that does not come within `patience` is an error.
    pub(crate) async fn next(&mut self, patience: Duration) -> Result<Option<Object>, ClusterError> {
        let next = tokio::time::timeout(patience, self.read()).await;
        next.unwrap_or_else(|_| Err(ClusterError::net(&self.url, format!("no event within {patience:?}"))))
    }

    async fn read(&mut self) -> Result<Option<Object>, ClusterError> {
        loop {
            if let Some(at) = self.rest[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=self.searched + at).collect();
                self.searched = 0;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return match parse_json(&line).map(|parsed| parsed.value) {
                    Ok(Value::Object(event)) => Ok(Some(event)),
                    Ok(_) => Err(ClusterError::net(&self.url, "an event is no object")),
                    Err(error) => Err(ClusterError::net(&self.url, format!("an event is no JSON: {error}"))),
                };
            }
            self.searched = self.rest.len();
            if self.rest.len() > MAX_EVENT {
                return Err(ClusterError::net(&self.url, format!("an event has more than {MAX_EVENT} bytes")));
            }
            match self.body.frame().await {
                None if self.rest.trim_ascii().is_empty() => return Ok(None),
                None => return Err(ClusterError::net(&self.url, "the watch ended in the middle of an event")),
                Some(frame) => {
                    let frame = frame.map_err(|error| ClusterError::net(&self.url, error))?;
                    if let Ok(data) = frame.into_data() {
                        self.rest.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
