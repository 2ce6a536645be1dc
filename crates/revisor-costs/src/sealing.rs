//! [`Sealing`]: what it takes to seal an object before it is stored, and to open it.

use anyhow::{Result, anyhow};
use bytes::Bytes;
use revisor_encryption::{Encryption, EncryptionConfiguration, EncryptionMetrics, EncryptionOptions, GroupResource};
use revisor_store::ResourceTransformers;

use crate::object;

const KEY: &str = "/registry/secrets/team-7/s";

/// A key of 32 bytes.
const SECRET: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/// One provider, and an object.
pub struct Sealing {
    encryption: Encryption,
    plain: Bytes,
}

impl Sealing {
    /// Secrets of so many bytes by `aesgcm`, `aescbc` or `secretbox`.
    pub fn new(provider: &str, bytes: usize) -> Result<Sealing> {
        let config = object(&format!(
            r#"{{"resources":[{{"resources":["secrets"],"providers":[{{"{provider}":{{"keys":[{{"name":"k",
            "secret":"{SECRET}"}}]}}}}]}}]}}"#
        ))?;
        let config = EncryptionConfiguration::of(&config, false).map_err(|errors| anyhow!("{errors:?}"))?;
        let options = EncryptionOptions {
            resources: vec![("/registry/secrets/".to_owned(), GroupResource::new("", "secrets"))],
            metrics: EncryptionMetrics::new("costs"),
            allows_kms_v1: false,
        };
        let encryption = Encryption::new(options, &config).map_err(|error| anyhow!("{error}"))?;
        Ok(Sealing { encryption, plain: Bytes::from(vec![b'x'; bytes]) })
    }

    /// The object as it is stored; nothing if that fails.
    pub fn seal(&self) -> Option<Bytes> {
        self.encryption.transformer_for(KEY).transform_to_storage(self.plain.clone(), KEY.as_bytes()).ok()
    }
}
