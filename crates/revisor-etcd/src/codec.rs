//! [`Codec`]: between the objects that servers work with and the bytes that etcd has of them.

use bytes::Bytes;
use revisor_store::{BoxError, Draft, Key};

/// An object that was read from etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The object as this server works with it.
    pub draft: Draft,
    /// Whether this server would store it in another form: its next write is one even if nothing changes.
    pub is_outdated: bool,
}

/// Turns objects into what is stored of them, and back. The one place where values can be transformed on their way, by
/// their keys.
pub trait Codec: Send + Sync + 'static {
    /// What is stored of an object.
    ///
    /// # Errors
    /// Why it cannot be stored at this key.
    fn encode(&self, key: &Key, draft: &Draft) -> Result<Bytes, BoxError>;

    /// The object of which this is stored.
    ///
    /// # Errors
    /// Why it cannot be read. Whoever asks for the object is told.
    fn decode(&self, key: &Key, value: &Bytes) -> Result<Decoded, BoxError>;
}
