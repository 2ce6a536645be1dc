//! The ways from this server to others: to kubelets, and to API servers behind it. What flags say of them, and their
//! certificates, which are read again when their files change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use revisor_aggregator::{Aggregator, AggregatorOptions};
use revisor_api::{KubeletOptions, Kubelets};
use revisor_catalog::Feature;
use revisor_registry::Registry;
use revisor_webhook::Credentials;

use crate::config_file::read;
use crate::duration::parse_duration;

/// How often the files of certificates are looked at.
const LOOKING: Duration = Duration::from_secs(1);

/// How kubelets and API servers are reached.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutwardFlags {
    /// The certificate that this server shows to kubelets [default: it does not say who it is]
    #[arg(long, value_name = "FILE", requires = "kubelet_client_key")]
    pub(crate) kubelet_client_certificate: Option<PathBuf>,

    /// The key of that certificate
    #[arg(long, value_name = "FILE", requires = "kubelet_client_certificate")]
    pub(crate) kubelet_client_key: Option<PathBuf>,

    /// The authorities that vouch for kubelets [default: kubelets are believed]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubelet_certificate_authority: Option<PathBuf>,

    /// Which addresses of nodes kubelets are reached at, in this order
    #[arg(
        long,
        value_name = "TYPES",
        value_delimiter = ',',
        default_value = "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP"
    )]
    pub(crate) kubelet_preferred_address_types: Vec<String>,

    /// The port of kubelets that do not say where they listen (deprecated)
    #[arg(long, value_name = "PORT", default_value_t = 10250)]
    pub(crate) kubelet_port: u16,

    /// How long it may take to be connected to a kubelet
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    pub(crate) kubelet_timeout: Duration,

    /// The certificate by which this server proves to API servers behind it that it may name users
    #[arg(long, value_name = "FILE", requires = "proxy_client_key_file")]
    pub(crate) proxy_client_cert_file: Option<PathBuf>,

    /// The key of that certificate
    #[arg(long, value_name = "FILE", requires = "proxy_client_cert_file")]
    pub(crate) proxy_client_key_file: Option<PathBuf>,

    /// Whether the services of API servers are reached by their endpoints alone, and never at their own addresses
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) enable_aggregator_routing: bool,

    /// Whether API servers that want to send clients elsewhere are refused
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) aggregator_reject_forwarding_redirect: bool,
}

/// The ways out, and what looks after them.
pub(crate) struct Outward {
    pub(crate) aggregator: Arc<Aggregator>,
    pub(crate) kubelets: Arc<Kubelets>,
    flags: OutwardFlags,
    seen: Seen,
}

/// What was in the files when they were last looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Seen {
    proxy: Option<Credentials>,
    /// What is shown to kubelets, and who vouches for them.
    kubelet: (Credentials, Option<Vec<u8>>),
}

impl OutwardFlags {
    /// The ways that the flags open. Files that cannot be used are refused.
    pub(crate) fn open(&self, registry: &Arc<Registry>) -> anyhow::Result<Outward> {
        let seen = self.read()?;
        let (credentials, authorities) = seen.kubelet.clone();
        let kubelets = Kubelets::new(&KubeletOptions {
            credentials,
            authorities,
            address_types: self.kubelet_preferred_address_types.clone(),
            port: self.kubelet_port,
            timeout: self.kubelet_timeout,
        });
        let kubelets = Arc::new(kubelets.context("cannot use the files of --kubelet-*")?);
        let aggregator = Aggregator::new(AggregatorOptions {
            registry: registry.clone(),
            by_endpoints: self.enable_aggregator_routing,
            refuses_redirects: self.aggregator_reject_forwarding_redirect,
            tells_uids: registry.built_in().features().has(Feature::RemoteRequestHeaderUID),
        });
        if let Some(credentials) = &seen.proxy {
            credentials.check().context("cannot use --proxy-client-cert-file and --proxy-client-key-file")?;
        }
        aggregator.show(seen.proxy.clone());
        Ok(Outward { aggregator, kubelets, flags: self.clone(), seen })
    }

    fn read(&self) -> anyhow::Result<Seen> {
        let kubelet = certificate(self.kubelet_client_certificate.as_deref(), self.kubelet_client_key.as_deref())?;
        let authorities = self.kubelet_certificate_authority.as_deref().map(pem).transpose()?;
        Ok(Seen {
            proxy: certificate(self.proxy_client_cert_file.as_deref(), self.proxy_client_key_file.as_deref())?,
            kubelet: (kubelet.unwrap_or_default(), authorities),
        })
    }
}

fn certificate(chain: Option<&Path>, key: Option<&Path>) -> anyhow::Result<Option<Credentials>> {
    let (Some(chain), Some(key)) = (chain, key) else { return Ok(None) };
    Ok(Some(Credentials { certificate: Some((pem(chain)?, pem(key)?)), ..Credentials::default() }))
}

fn pem(path: &Path) -> anyhow::Result<Vec<u8>> {
    read(path).with_context(|| format!("cannot read {}", path.display()))
}

impl Outward {
    /// Looks after API servers behind this one, and after the files of certificates, until it is dropped.
    pub(crate) async fn run(self) {
        tokio::join!(self.aggregator.clone().run(), self.follow_files());
    }

    async fn follow_files(&self) {
        let mut seen = self.seen.clone();
        let mut problem = String::new();
        let mut ticks = tokio::time::interval(LOOKING);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        if seen == Seen::default() {
            return;
        }
        loop {
            ticks.tick().await;
            let flags = self.flags.clone();
            let looked = tokio::task::spawn_blocking(move || flags.read()).await;
            let Ok(looked) = looked else { return };
            let found = looked.and_then(|found| {
                if found != seen {
                    self.take(&found)?;
                }
                Ok(found)
            });
            match found {
                Ok(found) => (seen, problem) = (found, String::new()),
                // What is in force stays so, and it is told once.
                Err(error) if error.to_string() != problem => {
                    problem = error.to_string();
                    tracing::warn!(error = problem, "the certificates that are shown to others stay as they were");
                }
                Err(_) => {}
            }
        }
    }

    fn take(&self, found: &Seen) -> anyhow::Result<()> {
        if let Some(credentials) = &found.proxy {
            credentials.check()?;
        }
        let (credentials, authorities) = &found.kubelet;
        self.kubelets.replace(credentials, authorities.as_deref())?;
        self.aggregator.show(found.proxy.clone());
        tracing::info!("the certificates that are shown to others were read again");
        Ok(())
    }
}
