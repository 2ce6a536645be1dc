//! [`Transformer`]: what becomes of the bytes of an object on their way to storage and back, which is how they are
//! encrypted at rest. The names are those of `value.Transformer` and `value.ResourceTransformers` in the original.
//!
//! A store applies transformers where bytes leave and enter it, and nowhere else: what it keeps in memory, tells sinks
//! and answers is plain. The ciphers are not here but in the crate `revisor-encryption`.

use std::sync::Arc;

use bytes::Bytes;

/// How the bytes of encrypted objects begin, whoever encrypted them.
pub const ENCRYPTED: &[u8] = b"k8s:enc:";

/// By how much a transformed object may be longer than the plain one.
pub const MOST_TRANSFORMED_EXTRA: usize = 64 << 10;

/// What was read from storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// The object as it was before it was transformed.
    pub bytes: Bytes,
    /// Whether it would be transformed otherwise today, so that it should be written anew.
    pub is_stale: bool,
}

/// Why bytes could not be transformed. It never tells anything of the bytes or of keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TransformError {
    message: Arc<str>,
    code: &'static str,
}

impl TransformError {
    /// What is told of failures that no remote service answered with a code of its own.
    pub const NO_CODE: &'static str = "unknown-non-grpc";

    /// A failure of this server.
    pub fn new(message: impl Into<Arc<str>>) -> TransformError {
        TransformError { message: message.into(), code: TransformError::NO_CODE }
    }

    /// A failure that a remote service answered, with the name of its gRPC code.
    pub fn remote(message: impl Into<Arc<str>>, code: &'static str) -> TransformError {
        TransformError { message: message.into(), code }
    }

    /// The same failure, told with what was being done.
    pub fn context(self, doing: &str) -> TransformError {
        TransformError { message: format!("{doing}: {}", self.message).into(), code: self.code }
    }

    /// The code by which metrics tell failures apart.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

/// Transforms the bytes of objects on their way to storage and back.
///
/// `authenticated` is the key under which the object is stored, as the backend spells it: what was written under one
/// key cannot be read under another.
pub trait Transformer: Send + Sync {
    /// What `data` was before it was transformed. May wait for a remote service that holds keys, so it is to be called
    /// where waiting is allowed.
    fn transform_from_storage(&self, data: Bytes, authenticated: &[u8]) -> Result<Plain, TransformError>;

    /// The bytes to store for `data`. Never waits.
    fn transform_to_storage(&self, data: Bytes, authenticated: &[u8]) -> Result<Bytes, TransformError>;

    /// Whether bytes are stored as they are, so that there is nothing to be stale.
    fn is_identity(&self) -> bool {
        false
    }
}

/// Which transformer the objects of a resource have. Asked for every object, so that it may change at any time.
pub trait ResourceTransformers: Send + Sync {
    /// The transformer of the object with this key (`/registry/…`, without the prefix of a shared backend).
    fn transformer_for(&self, key: &str) -> Arc<dyn Transformer>;
}

/// Stores bytes as they are, and refuses to take encrypted ones for objects (`NewEncryptCheckTransformer`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Identity;

impl Transformer for Identity {
    fn transform_from_storage(&self, data: Bytes, _: &[u8]) -> Result<Plain, TransformError> {
        if data.starts_with(ENCRYPTED) {
            return Err(TransformError::new("identity transformer tried to read encrypted data"));
        }
        Ok(Plain { bytes: data, is_stale: false })
    }

    fn transform_to_storage(&self, data: Bytes, _: &[u8]) -> Result<Bytes, TransformError> {
        Ok(data)
    }

    fn is_identity(&self) -> bool {
        true
    }
}

/// Nothing is encrypted.
impl ResourceTransformers for Identity {
    fn transformer_for(&self, _: &str) -> Arc<dyn Transformer> {
        Arc::new(Identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encrypted_is_never_taken_for_an_object() {
        let plain = Bytes::from_static(b"{}");
        assert_eq!(Identity.transform_to_storage(plain.clone(), b"/k"), Ok(plain.clone()));
        assert_eq!(Identity.transform_from_storage(plain.clone(), b"/k"), Ok(Plain { bytes: plain, is_stale: false }));
        let error = Identity.transform_from_storage(Bytes::from_static(b"k8s:enc:aescbc:v1:a:xyz"), b"/k");
        let error = error.expect_err("it is encrypted").context("unable to transform key \"/k\"");
        assert_eq!(
            error.to_string(),
            "unable to transform key \"/k\": identity transformer tried to read encrypted data"
        );
        assert_eq!(error.code(), TransformError::NO_CODE);
    }
}
