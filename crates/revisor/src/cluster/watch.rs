//! [`Watch`]: what happens to the objects of a path, event by event.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use revisor_object::{Object, Value, parse_json};

use super::ClusterError;
use super::connection::Connection;

/// The longest line that is an event.
const MAX_LINE: usize = 64 << 20;

/// A watch that goes on until the cluster ends it.
pub(crate) struct Watch {
    url: String,
    body: Incoming,
    /// What has come and is no whole line yet.
    buffer: Vec<u8>,
    _connection: Connection,
}

impl Watch {
    pub(super) fn new(url: String, body: Incoming, connection: Connection) -> Watch {
        Watch { url, body, buffer: Vec::new(), _connection: connection }
    }

    /// The next event, as its type and its object; `None` when the watch is over.
    pub(crate) async fn next(&mut self) -> Result<Option<(String, Object)>, ClusterError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                if !line.trim_ascii().is_empty() {
                    return self.event(&line).map(Some);
                }
                continue;
            }
            if self.buffer.len() > MAX_LINE {
                return Err(ClusterError::net(&self.url, format!("an event has more than {MAX_LINE} bytes")));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(ClusterError::net(&self.url, error)),
                Some(Ok(frame)) => self.buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
            }
        }
    }

    fn event(&self, line: &[u8]) -> Result<(String, Object), ClusterError> {
        let odd = || ClusterError::net(&self.url, "an event makes no sense");
        let Ok(Value::Object(mut event)) = parse_json(line).map(|parsed| parsed.value) else { return Err(odd()) };
        let kind = event.str("type").ok_or_else(odd)?.to_owned();
        match event.remove("object") {
            Some(Value::Object(object)) => Ok((kind, object)),
            _ => Err(odd()),
        }
    }
}
