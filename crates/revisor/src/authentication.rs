//! Who is asked about bearer tokens beside the token file and the service accounts, as the flags say: bootstrap tokens,
//! issuers of tokens, a webhook; and proxies that name users in headers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use revisor_api::StoredObjects;
use revisor_auth::{
    BootstrapTokens, ClientTrust, JwtAuthenticator, JwtAuthenticators, JwtReading, PeerVerifier, RequestHeader,
    RequestHeaderNames, SigningAlgorithm, TokenAuthenticator, TokenWebhook, TokenWebhookOptions, read_issuers,
};
use revisor_catalog::CatalogOptions;
use revisor_object::{Object, Value, aggregate_message};
use revisor_registry::Registry;
use revisor_webhook::WebhookClient;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::authentication_config::{AuthenticationConfig, ConfigContext};
use crate::config_file::read;
use crate::flags::{OidcFlags, RequestHeaderFlags, ServeFlags};
use crate::kubeconfig::Kubeconfig;
use crate::live_config::{LiveConfig, follow};
use crate::own_config_maps::FrontProxies;
use crate::reload_metrics::ReloadMetrics;
use crate::webhook_users::current_webhook;

/// Those who are asked about tokens, in the order in which they are.
type Others = Vec<Arc<dyn TokenAuthenticator>>;

/// Those who are asked about tokens, in the original's order, and what keeps the issuers among them as their file has them.
pub(crate) fn token_authenticators(
    flags: &ServeFlags,
    options: &CatalogOptions,
    registry: &Arc<Registry>,
    audiences: &[String],
    config: AuthenticationConfig,
) -> anyhow::Result<(Others, Option<IssuerFile>)> {
    let mut others = Others::new();
    if flags.enable_bootstrap_token_auth {
        let secrets = Arc::new(StoredObjects(registry.clone()));
        others.push(Arc::new(BootstrapTokens::new(secrets, audiences.to_vec())));
    }
    let context = ConfigContext::new(options, &flags.service_account_issuer);
    let client = registry.webhook_client().clone();
    let mut file = None;
    if let Some(path) = &flags.authentication_config {
        if flags.oidc.is_given() {
            bail!("authentication-config file and oidc-* flags are mutually exclusive");
        }
        let issuers = Arc::new(JwtAuthenticators::new(audiences.to_vec()));
        issuers.replace(start(&config.jwt, context.reading(), &client)?);
        others.push(issuers.clone());
        file = Some(IssuerFile { path: path.clone(), context, issuers, client, text: read(path)?, config });
    } else if flags.oidc.is_given() {
        let (jwt, algorithms) = flags.oidc.issuer()?;
        let reading = JwtReading { algorithms: &algorithms, ..context.reading() };
        let issuers = Arc::new(JwtAuthenticators::new(audiences.to_vec()));
        issuers.replace(start(&[jwt], reading, &client)?);
        others.push(issuers);
    }
    if let Some(path) = &flags.authentication_token_webhook_config_file {
        let (config, credentials) = current_webhook(&Kubeconfig::open(path)?)?;
        let options = TokenWebhookOptions {
            config,
            credentials: Arc::new(credentials),
            version: flags.authentication_token_webhook_version.clone(),
            cache_ttl: flags.authentication_token_webhook_cache_ttl,
            audiences: audiences.to_vec(),
        };
        others.push(Arc::new(TokenWebhook::new(options, registry.webhook_client().clone())));
    }
    Ok((others, file))
}

fn start(jwt: &[Value], reading: JwtReading<'_>, client: &WebhookClient) -> anyhow::Result<Vec<Arc<JwtAuthenticator>>> {
    let issuers = read_issuers(jwt, reading).map_err(|errors| anyhow!(aggregate_message(&errors)))?;
    Ok(issuers.into_iter().map(|issuer| JwtAuthenticator::start(issuer, client.clone())).collect())
}

/// The file that names issuers, which are replaced when it changes.
pub(crate) struct IssuerFile {
    path: PathBuf,
    context: ConfigContext,
    issuers: Arc<JwtAuthenticators>,
    client: WebhookClient,
    text: Vec<u8>,
    config: AuthenticationConfig,
}

impl IssuerFile {
    /// Follows the file.
    pub(crate) async fn run(self, metrics: ReloadMetrics) {
        metrics.in_force(&self.text);
        follow(self, |change| metrics.reloaded(change)).await;
    }
}

impl LiveConfig for IssuerFile {
    const NAME: &'static str = "authentication";

    fn path(&self) -> &Path {
        &self.path
    }

    fn text(&self) -> &[u8] {
        &self.text
    }

    fn put_in_force(&mut self, text: Vec<u8>) -> anyhow::Result<()> {
        let config = AuthenticationConfig::load(&self.path, &self.context)?;
        if config.anonymous != self.config.anonymous {
            bail!("changes to anonymous authentication are not allowed while the server runs");
        }
        self.issuers.replace(start(&config.jwt, self.context.reading(), &self.client)?);
        (self.text, self.config) = (text, config);
        Ok(())
    }
}

impl OidcFlags {
    fn is_given(&self) -> bool {
        self.oidc_issuer_url.is_some() || self.oidc_client_id.is_some() || self.oidc_ca_file.is_some()
    }

    /// The issuer that the flags name, as a file would, and how its tokens may be signed.
    fn issuer(&self) -> anyhow::Result<(Value, Vec<SigningAlgorithm>)> {
        let (Some(url), Some(client)) = (&self.oidc_issuer_url, &self.oidc_client_id) else {
            bail!("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set");
        };
        let mut algorithms = Vec::new();
        for name in &self.oidc_signing_algs {
            let known = SigningAlgorithm::named(name);
            algorithms.push(known.with_context(|| format!("oidc: unsupported signing alg: {name:?}"))?);
        }
        let text = |text: &str| Value::from(text);
        let object = |members: Vec<(&str, Value)>| Value::from(members.into_iter().collect::<Object>());
        let mut issuer = vec![("url", text(url)), ("audiences", vec![text(client)].into())];
        if let Some(path) = &self.oidc_ca_file {
            let pem = read(path).with_context(|| format!("Failed to read the CA file {}", path.display()))?;
            let pem = String::from_utf8(pem).with_context(|| format!("{} is no text", path.display()))?;
            issuer.push(("certificateAuthority", text(&pem)));
        }
        let prefix = match (&*self.oidc_username_prefix, &*self.oidc_username_claim) {
            ("-", _) | ("", "email") => String::new(),
            ("", _) => format!("{url}#"),
            (given, _) => given.to_owned(),
        };
        let username = vec![("claim", text(&self.oidc_username_claim)), ("prefix", text(&prefix))];
        let mut mappings = vec![("username", object(username))];
        if !self.oidc_groups_claim.is_empty() {
            let groups = vec![("claim", text(&self.oidc_groups_claim)), ("prefix", text(&self.oidc_groups_prefix))];
            mappings.push(("groups", object(groups)));
        }
        let mut rules = Vec::new();
        for claim in &self.oidc_required_claim {
            let (name, value) = claim
                .split_once('=')
                .with_context(|| format!("--oidc-required-claim {claim:?}: malformed pair, expect string=string"))?;
            rules.push(object(vec![("claim", text(name)), ("requiredValue", text(value))]));
        }
        let issuer = object(vec![
            ("issuer", object(issuer)),
            ("claimMappings", object(mappings)),
            ("claimValidationRules", rules.into()),
        ]);
        Ok((issuer, algorithms))
    }
}

impl RequestHeaderFlags {
    /// The proxies that the flags name, if any.
    pub(crate) fn request_header(&self) -> anyhow::Result<Option<RequestHeader>> {
        let Some(path) = &self.requestheader_client_ca_file else {
            return Ok(None);
        };
        let names = RequestHeaderNames {
            allowed: self.requestheader_allowed_names.clone(),
            username: self.requestheader_username_headers.clone(),
            uid: self.requestheader_uid_headers.clone(),
            groups: self.requestheader_group_headers.clone(),
            extra_prefixes: self.requestheader_extra_headers_prefix.clone(),
        };
        let names = names.trimmed().map_err(|problem| anyhow!("--requestheader-*: {problem}"))?;
        let trust = ClientTrust::new(certificates(path)?)
            .with_context(|| format!("cannot use the authorities in {}", path.display()))?;
        Ok(Some(RequestHeader::new(PeerVerifier::new(trust), names)))
    }
}

impl RequestHeaderFlags {
    /// What others are told of the proxies.
    pub(crate) fn front_proxies(&self) -> anyhow::Result<FrontProxies> {
        let Some(path) = &self.requestheader_client_ca_file else { return Ok(FrontProxies::default()) };
        let lists = vec![
            ("requestheader-allowed-names", self.requestheader_allowed_names.clone()),
            ("requestheader-username-headers", self.requestheader_username_headers.clone()),
            ("requestheader-uid-headers", self.requestheader_uid_headers.clone()),
            ("requestheader-group-headers", self.requestheader_group_headers.clone()),
            ("requestheader-extra-headers-prefix", self.requestheader_extra_headers_prefix.clone()),
        ];
        Ok(FrontProxies { authorities: certificates(path)?, lists })
    }
}

fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let pem = read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| anyhow!("{}: {error}", path.display()))?;
    anyhow::ensure!(!certificates.is_empty(), "{} has no certificates", path.display());
    Ok(certificates)
}
