//! The keys and names with which tokens of service accounts are made and checked.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use revisor_api::StoredObjects;
use revisor_auth::{
    Certificates, ExternalSigner, ServiceAccountMetrics, ServiceAccountOptions, ServiceAccounts, SigningKey,
    TokenSigner, VerifyingKey,
};
use revisor_catalog::Feature;
use revisor_object::Url;
use revisor_registry::Registry;
use revisor_version::FeatureGates;

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

/// Refuses issuers that cannot be meant (upstream: `BuiltInAuthenticationOptions.Validate`).
fn check_issuers(issuers: &[String]) -> anyhow::Result<()> {
    let mut seen = HashSet::new();
    for issuer in issuers {
        if issuer.contains(':')
            && let Err(problem) = Url::parse(issuer)
        {
            let problem = format!("parse {issuer:?}: {problem}");
            bail!("service-account-issuer {issuer:?} contained a ':' but was not a valid URL: {problem}");
        }
        ensure!(!issuer.is_empty(), "service-account-issuer should not be an empty string");
        ensure!(seen.insert(issuer), "service-account-issuer {issuer:?} is already specified");
    }
    Ok(())
}

/// How long a token may be good at most that is asked for.
const MAX_EXPIRATION: RangeInclusive<Duration> = Duration::from_secs(60 * 60)..=Duration::from_secs(1 << 32);

/// For how long tokens of pods are asked for that are to be replaced within the hour, and for how long they stay good.
const REPLACED_AFTER: Duration = Duration::from_secs(60 * 60 + 7);
const EXTENDED: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What the flags say of tokens is refused if it cannot be (`validateServiceAccountTokenSigningConfig`,
/// `completeServiceAccountOptions`).
pub(crate) fn check(flags: &ServeFlags, gates: &FeatureGates) -> anyhow::Result<()> {
    let most = flags.service_account_max_token_expiration;
    ensure!(
        most.is_zero() || MAX_EXPIRATION.contains(&most),
        "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"
    );
    let Some(endpoint) = flags.service_account_signing_endpoint.as_deref().filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    ensure!(
        flags.service_account_signing_key_file.is_none() && flags.service_account_key_file.is_empty(),
        "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with \
         `--service-account-signing-endpoint` (They are mutually exclusive)"
    );
    ensure!(
        gates.is_enabled(Feature::ExternalServiceAccountTokenSigner.name()),
        "setting `--service-account-signing-endpoint` requires enabling ExternalServiceAccountTokenSigner feature gate"
    );
    ensure!(
        endpoint.strip_prefix('@').is_none_or(is_abstract_name),
        "invalid value {endpoint:?} passed for `--service-account-signing-endpoint`, when prefixed with @ must be a \
         valid abstract socket name"
    );
    Ok(())
}

/// Whether a socket can be called so: words of letters, digits, `_` and `-` between dots.
fn is_abstract_name(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    name.split('.').all(is_word)
}

/// The tokens of service accounts, and the plugin that signs them, if one does.
pub(crate) struct OpenedAccounts {
    pub(crate) accounts: ServiceAccounts,
    pub(crate) plugin: Option<Arc<ExternalSigner>>,
}

/// Reads the keys that the flags name, or asks the plugin that they name for its own. Without either, the server's own key
/// signs and checks. `external_address` is where those outside reach the server.
pub(crate) async fn open(
    flags: &ServeFlags,
    certificates: &Certificates,
    registry: Arc<Registry>,
    external_address: &str,
    metrics: &prometheus::Registry,
) -> anyhow::Result<OpenedAccounts> {
    let mut issuers = flags.service_account_issuer.clone();
    check_issuers(&issuers)?;
    if issuers.is_empty() {
        issuers.push(DEFAULT_ISSUER.to_owned());
    }
    let keys_uri = keys_uri(flags, &issuers[0], external_address);
    if let Err(problem) = &keys_uri {
        tracing::error!(problem, "the keys of service accounts are not published");
    }
    let most = Some(flags.service_account_max_token_expiration).filter(|most| !most.is_zero());
    let (signer, plugin, lifetimes) = match flags.service_account_signing_endpoint.as_deref() {
        Some(path) if !path.is_empty() => {
            let opened = ExternalSigner::open(path).await;
            let (plugin, supported) = opened.context("while setting up external-jwt-signer")?;
            plugin.register(metrics)?;
            let lifetimes = Lifetimes::of_plugin(most, supported)?;
            (TokenSigner::external(plugin.clone()), Some(plugin), lifetimes)
        }
        _ => (own_signer(flags, certificates)?, None, Lifetimes { most, extended: EXTENDED }),
    };
    let extends = flags.service_account_extend_token_expiration;
    if extends {
        lifetimes.warn(plugin.is_some());
    }
    let counts = Arc::new(ServiceAccountMetrics::default());
    counts.register(metrics)?;
    let accounts = ServiceAccounts::new(ServiceAccountOptions {
        issuers,
        audiences: flags.api_audiences.clone(),
        signer,
        max_expiration: lifetimes.most,
        extended_expiration: extends.then_some(lifetimes.extended),
        keys_uri: keys_uri.ok(),
        objects: Arc::new(StoredObjects(registry.clone())),
        legacy: Arc::new(StoredObjects(registry)),
        metrics: counts,
    });
    Ok(OpenedAccounts { accounts, plugin })
}

/// How long tokens are good at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lifetimes {
    most: Option<Duration>,
    /// Those of pods that are meant to be replaced sooner.
    extended: Duration,
}

impl Lifetimes {
    /// Those of tokens that a plugin signs for no longer than `supported`.
    fn of_plugin(most: Option<Duration>, supported: Duration) -> anyhow::Result<Lifetimes> {
        if let Some(most) = most.filter(|most| *most > supported) {
            bail!(
                "service-account-max-token-expiration cannot be set longer than the token expiration supported by \
                 service-account-signing-endpoint: {} > {}",
                shown(most),
                shown(supported)
            );
        }
        Ok(Lifetimes { most: Some(most.unwrap_or(supported)), extended: supported.min(EXTENDED) })
    }

    /// Says what whoever relies on tokens that stay good for longer may not expect.
    fn warn(self, is_plugin: bool) {
        let Some(most) = self.most else { return };
        let whose = if is_plugin { "external-jwt-signer" } else { "service-account-max-token-expiration" };
        if most < REPLACED_AFTER {
            tracing::warn!(
                limit = shown(most),
                whose,
                "service-account-extend-token-expiration is true, but no token of a pod is long enough to be extended"
            );
        }
        if most < EXTENDED {
            tracing::warn!(
                limit = shown(most),
                whose,
                extended = shown(self.extended),
                "service-account-extend-token-expiration is true: tokens of pods stay good for longer than the limit says"
            );
        }
    }
}

/// A time as the original writes it.
fn shown(time: Duration) -> String {
    revisor_object::Duration::from_nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)).to_string()
}

/// The keys of files, or the server's own.
fn own_signer(flags: &ServeFlags, certificates: &Certificates) -> anyhow::Result<TokenSigner> {
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
    let key = SigningKey::from_pem(&signing_pem).context("cannot use the key of service accounts")?;
    Ok(TokenSigner::own(key, verifying_keys))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_must_be_meant() {
        for (issuers, want) in [
            (&["https://a", "b"][..], None),
            (&[""], Some("service-account-issuer should not be an empty string")),
            (&["b", "b"], Some("service-account-issuer \"b\" is already specified")),
            (
                &["https://a b:x"],
                Some(
                    "service-account-issuer \"https://a b:x\" contained a ':' but was not a valid URL: parse \
                      \"https://a b:x\": invalid port \":x\" after host",
                ),
            ),
        ] {
            let issuers: Vec<String> = issuers.iter().map(|issuer| (*issuer).to_owned()).collect();
            assert_eq!(check_issuers(&issuers).err().map(|error| error.to_string()).as_deref(), want, "{issuers:?}");
        }
    }

    #[test]
    fn a_plugin_bounds_how_long_tokens_are_good() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        for (most, supported, want) in [
            (None, 24, Some((24, 24))),
            (Some(2), 24, Some((2, 24))),
            (Some(24), 24, Some((24, 24))),
            (Some(25), 24, None),
            (None, 20_000, Some((20_000, 365 * 24))),
        ] {
            let got = Lifetimes::of_plugin(most.map(hours), hours(supported));
            let want = want.map(|(most, extended)| Lifetimes { most: Some(hours(most)), extended: hours(extended) });
            assert_eq!(got.as_ref().ok(), want.as_ref(), "{most:?} {supported}");
            if let Err(error) = got {
                assert!(error.to_string().ends_with("service-account-signing-endpoint: 25h0m0s > 24h0m0s"), "{error}");
            }
        }
    }

    #[test]
    fn sockets_without_a_file_have_plain_names() {
        for (name, want) in [("a", true), ("a.b-c_d.9", true), ("", false), ("a.", false), ("a/b", false), ("ä", false)]
        {
            assert_eq!(is_abstract_name(name), want, "{name}");
        }
    }
}
