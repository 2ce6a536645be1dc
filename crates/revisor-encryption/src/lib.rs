//! Encryption at rest, byte for byte as the original does it, so that what one of both has stored the other can read:
//! what a configuration says ([`EncryptionConfiguration`]), the ciphers behind it, services that hold keys (KMS v2), and
//! which of them the objects of a resource have ([`Encryption`]).
//!
//! Where transformers are applied is a matter of the stores. Files are read by the program.

mod aes_cbc;
mod aes_gcm;
mod cipher;
mod config;
mod encryption;
mod group_resource;
mod hash;
mod kms;
mod metrics;
mod provider;
mod salsa20;
mod secretbox;
mod store_keys;

pub use config::{EncryptionConfiguration, KmsConfig};
pub use encryption::{Encryption, EncryptionOptions, EncryptionTable};
pub use group_resource::GroupResource;
pub use metrics::EncryptionMetrics;
pub use store_keys::StoreKeys;
