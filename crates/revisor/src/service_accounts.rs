//! The keys and names with which tokens of service accounts are made and checked.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use revisor_api::StoredObjects;
use revisor_auth::{Certificates, ServiceAccountOptions, ServiceAccounts, SigningKey, VerifyingKey};
use revisor_registry::Registry;

use crate::flags::ServeFlags;

/// Who issues tokens if nobody says otherwise: what every client in a cluster calls the server.
const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Reads the keys that the flags name. Without any, the server's own key signs and checks.
pub(crate) fn open(
    flags: &ServeFlags,
    certificates: &Certificates,
    registry: Arc<Registry>,
) -> anyhow::Result<ServiceAccounts> {
    let signing_pem = match &flags.service_account_signing_key_file {
        Some(path) => read(path)?,
        None => certificates.service_account_key_pem().as_bytes().to_vec(),
    };
    let mut verifying_keys = Vec::new();
    for path in &flags.service_account_key_file {
        let keys = VerifyingKey::from_pem(&read(path)?);
        verifying_keys.extend(keys.with_context(|| unusable(path))?);
    }
    if verifying_keys.is_empty() {
        verifying_keys = VerifyingKey::from_pem(&signing_pem).context("cannot use the key of service accounts")?;
    }
    let mut issuers = flags.service_account_issuer.clone();
    if issuers.is_empty() {
        issuers.push(DEFAULT_ISSUER.to_owned());
    }
    let most = flags.service_account_max_token_expiration;
    Ok(ServiceAccounts::new(ServiceAccountOptions {
        issuers,
        audiences: flags.api_audiences.clone(),
        signing_key: SigningKey::from_pem(&signing_pem).context("cannot use the key of service accounts")?,
        verifying_keys,
        max_expiration: (!most.is_zero()).then_some(most),
        objects: Arc::new(StoredObjects(registry)),
    }))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read the key of service accounts {}", path.display()))
}

fn unusable(path: &Path) -> String {
    format!("cannot use the key of service accounts {}", path.display())
}
