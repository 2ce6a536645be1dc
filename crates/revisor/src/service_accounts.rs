//! The keys and names with which tokens of service accounts are made and checked.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use revisor_api::StoredObjects;
use revisor_auth::{Certificates, ServiceAccountOptions, ServiceAccounts, SigningKey, VerifyingKey};
use revisor_object::Url;
use revisor_registry::Registry;

use crate::flags::ServeFlags;

/// Who issues tokens if nobody says otherwise: what every client in a cluster calls the server.
const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The path of the keys at the server itself.
const KEYS: &str = "/openid/v1/jwks";

/// Reads where keys are published. As in the original, only https will do.
pub(crate) fn parse_jwks_uri(text: &str) -> Result<String, String> {
    match Url::parse(text) {
        Err(problem) => Err(format!("service-account-jwks-uri must be a valid URL: {problem}")),
        Ok(url) if url.scheme != "https" => {
            Err(format!("service-account-jwks-uri requires https scheme, parsed as: {url}"))
        }
        Ok(_) => Ok(text.to_owned()),
    }
}

/// Reads the keys that the flags name. Without any, the server's own key signs and checks. `external_address` is where
/// those outside reach the server.
pub(crate) fn open(
    flags: &ServeFlags,
    certificates: &Certificates,
    registry: Arc<Registry>,
    external_address: &str,
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
    let keys_uri = keys_uri(flags, &issuers[0], external_address);
    if let Err(problem) = &keys_uri {
        tracing::error!(problem, "the keys of service accounts are not published");
    }
    let most = flags.service_account_max_token_expiration;
    Ok(ServiceAccounts::new(ServiceAccountOptions {
        issuers,
        audiences: flags.api_audiences.clone(),
        signing_key: SigningKey::from_pem(&signing_pem).context("cannot use the key of service accounts")?,
        verifying_keys,
        max_expiration: (!most.is_zero()).then_some(most),
        extends_expiration: flags.service_account_extend_token_expiration,
        keys_uri: keys_uri.ok(),
        objects: Arc::new(StoredObjects(registry)),
    }))
}

/// Where the keys are published; or why they are not, because only issuers that others can ask by https have any who
/// would look for them.
fn keys_uri(flags: &ServeFlags, issuer: &str, external_address: &str) -> Result<String, String> {
    let url = Url::parse(issuer)?;
    let problem = match &url {
        url if url.scheme != "https" => Some("must use https scheme"),
        url if !url.query.is_empty() => Some("may not include a query"),
        url if !url.fragment.is_empty() => Some("may not include a fragment"),
        _ => None,
    };
    if let Some(problem) = problem {
        return Err(format!("issuer URL {problem}, got: {issuer}"));
    }
    if let Some(given) = &flags.service_account_jwks_uri {
        return Ok(given.clone());
    }
    let own = format!("https://{external_address}{KEYS}");
    match Url::parse(&own) {
        Ok(url) if url.host == external_address && url.path == KEYS => Ok(own),
        _ => Err(format!("no URL can be made of the external address {external_address}")),
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read the key of service accounts {}", path.display()))
}

fn unusable(path: &Path) -> String {
    format!("cannot use the key of service accounts {}", path.display())
}
