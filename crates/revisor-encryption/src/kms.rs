//! Services that hold keys (KMS v2): objects are encrypted here with keys that are derived from a seed, and the service
//! encrypts the seed. A new seed is made when the service has a new key, which it tells by another id.

mod encrypted_object;
mod envelope;
mod probe;
mod service;
#[cfg(test)]
mod tests;
mod thread;

pub(crate) use envelope::Envelope;
pub(crate) use probe::Probe;
pub(crate) use service::Service;
pub(crate) use thread::KmsThread;
