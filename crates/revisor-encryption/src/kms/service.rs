//! [`Service`]: the three calls of `v2.KeyManagementService`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use revisor_grpc::{Code, Status, UnixChannel, wire};
use revisor_store::TransformError;

use super::encrypted_object::EncryptedObject;
use crate::metrics::EncryptionMetrics;

/// A service that holds keys.
pub(crate) struct Service {
    pub(crate) name: String,
    channel: UnixChannel,
    timeout: Duration,
    metrics: Arc<EncryptionMetrics>,
}

/// How a service says that it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServiceStatus {
    pub(crate) version: String,
    pub(crate) healthz: String,
    /// The key that it encrypts with now.
    pub(crate) key_id: String,
}

/// What a service made of a seed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Encrypted {
    pub(crate) ciphertext: Vec<u8>,
    pub(crate) key_id: String,
    pub(crate) annotations: BTreeMap<String, Vec<u8>>,
}

impl Service {
    pub(crate) fn new(name: &str, path: &str, timeout: Duration, metrics: Arc<EncryptionMetrics>) -> Service {
        Service { name: name.to_owned(), channel: UnixChannel::new(path), timeout, metrics }
    }

    pub(crate) async fn status(&self) -> Result<ServiceStatus, TransformError> {
        let answer = self.call("Status", &[]).await?;
        let mut status = ServiceStatus::default();
        for field in wire::read(&answer) {
            match field.map_err(odd)? {
                (1, text) => status.version = text.as_text().map_err(odd)?,
                (2, text) => status.healthz = text.as_text().map_err(odd)?,
                (3, text) => status.key_id = text.as_text().map_err(odd)?,
                _ => {}
            }
        }
        Ok(status)
    }

    pub(crate) async fn encrypt(&self, uid: &str, plaintext: &[u8]) -> Result<Encrypted, TransformError> {
        let request = wire::Writer::new().bytes(1, plaintext).bytes(2, uid).finish();
        let answer = self.call("Encrypt", &request).await?;
        let mut encrypted = Encrypted::default();
        for field in wire::read(&answer) {
            match field.map_err(odd)? {
                (1, bytes) => encrypted.ciphertext = bytes.as_bytes().to_vec(),
                (2, text) => encrypted.key_id = text.as_text().map_err(odd)?,
                (3, entry) => encrypted.annotations.extend([entry.as_entry().map_err(odd)?]),
                _ => {}
            }
        }
        Ok(encrypted)
    }

    /// The seed or key that `object` was encrypted with.
    pub(crate) async fn decrypt(&self, uid: &str, object: &EncryptedObject) -> Result<Vec<u8>, TransformError> {
        let request = wire::Writer::new()
            .bytes(1, &object.dek_source)
            .bytes(2, uid)
            .bytes(3, &object.key_id)
            .map(4, &object.annotations)
            .finish();
        let answer = self.call("Decrypt", &request).await?;
        let mut plaintext = Vec::new();
        for field in wire::read(&answer) {
            if let (1, bytes) = field.map_err(odd)? {
                plaintext = bytes.as_bytes().to_vec();
            }
        }
        Ok(plaintext)
    }

    async fn call(&self, name: &str, request: &[u8]) -> Result<Bytes, TransformError> {
        let method = format!("/v2.KeyManagementService/{name}");
        let since = Instant::now();
        let answer = self.channel.call(&method, request, self.timeout).await;
        let code = answer.as_ref().err().map_or(Code::OK, |status| status.code);
        self.metrics.kms_called(&self.name, &method, code.name(), since.elapsed());
        answer.map_err(|status: Status| TransformError::remote(status.to_string(), status.code.name()))
    }
}

fn odd(problem: &'static str) -> TransformError {
    TransformError::remote(format!("the answer of the key service is no message: {problem}"), Code::INTERNAL.name())
}
