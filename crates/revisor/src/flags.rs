//! The command line. Flags are named as kube-apiserver's wherever they mean the same.
//!
//! Here are the flags of `revisor serve`; the other commands are in [`commands`].

mod authentication;
mod command_line;
mod commands;
mod compatibility;
mod crd;
mod debugging;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use revisor_api::{AllowedOrigin, TransportDirective};
use revisor_auth::{AuthorizationModes, CipherSuite, MinTlsVersion, NamedFiles, TlsOptions, brought_serving_files};
use revisor_catalog::{Catalog, CatalogOptions, RuntimeConfig};

pub(crate) use self::authentication::{OidcFlags, RequestHeaderFlags};
pub(crate) use self::command_line::{with_default_command, with_repeated_flags};
pub(crate) use self::commands::{
    Arguments, Command, CredentialsCommand, EnvtestCommand, EnvtestFlags, FlagsFlags, OutputFormat, ReportFlags,
};
pub(crate) use self::compatibility::CompatibilityFlags;
pub(crate) use self::crd::{ConvertFlags, CrdCommand, InferFlags, ObjectFormat, ProveFlags};
use self::debugging::DebuggingFlags;
use crate::audit::AuditFlags;
use crate::controllers::ControllersFlag;
use crate::duration::parse_duration;
use crate::etcd_flags::EtcdFlags;
use crate::ip_range::IpRange;
use crate::kube_apiserver::CONTROLLERS_VARIABLE;
use crate::leader_election_flags::LeaderElectionFlags;
use crate::outward::OutwardFlags;
use crate::port_range::PortRange;
use crate::service_accounts::parse_jwks_uri;

/// What others brought to be shown is left alone: the server's own is elsewhere then.
fn certificates_folder(data: &Path, certificates: Option<&Path>) -> PathBuf {
    let own = certificates.filter(|folder| brought_serving_files(folder).is_none());
    own.map_or_else(|| data.join("certificates"), Path::to_owned)
}

impl ServeFlags {
    /// Notes which flags somebody gave, where that makes a difference.
    pub(crate) fn note_given(&mut self, matches: &clap::ArgMatches) {
        let source = matches.value_source("anonymous_auth");
        self.anonymous_auth_given = source == Some(clap::parser::ValueSource::CommandLine);
        let source = matches.value_source("authorization_mode");
        self.authorization_mode_given = source == Some(clap::parser::ValueSource::CommandLine);
    }

    /// The folder of the certificates that the server makes for itself.
    pub(crate) fn certificates(&self) -> PathBuf {
        certificates_folder(&self.data_dir, self.cert_dir.as_deref())
    }

    /// What is served.
    pub(crate) fn catalog_options(&self) -> anyhow::Result<CatalogOptions> {
        Ok(CatalogOptions {
            runtime_config: self.runtime_config.clone(),
            allow_privileged: self.allow_privileged,
            ..self.compatibility.catalog_options()?
        })
    }
}

/// What everything that serves is told: how to speak TLS, how long to take, how to stop, and what to log.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServingFlags {
    /// The oldest version of TLS to speak: VersionTLS12 or VersionTLS13 [default: VersionTLS12]
    #[arg(long, value_name = "VERSION")]
    pub(crate) tls_min_version: Option<MinTlsVersion>,

    /// The ciphers to use with TLS 1.2, by the names that Go gives them; those of TLS 1.3 cannot be chosen [default: all
    /// that are safe]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tls_cipher_suites: Vec<CipherSuite>,

    /// How long a request may take that is not a watch, to the last byte of its answer
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_duration)]
    pub(crate) request_timeout: Duration,

    /// How long to go on serving after the signal to stop, with /readyz failing
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub(crate) shutdown_delay_duration: Duration,

    /// Speak HTTP/1.1 only
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) disable_http2_serving: bool,

    /// How much to log: 0 to 3 for what an operator wants to know, 4 for every request, 6 for everything
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    pub(crate) verbosity: u8,

    /// How to write the log
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) logging_format: LoggingFormat,
}

impl ServingFlags {
    /// How to speak TLS.
    pub(crate) fn tls(&self) -> anyhow::Result<TlsOptions> {
        let options = TlsOptions::new(self.tls_min_version.unwrap_or_default(), self.tls_cipher_suites.clone())?;
        Ok(if self.disable_http2_serving { options.without_http2() } else { options })
    }
}

#[derive(Debug, Args)]
pub(crate) struct ServeFlags {
    /// The folder that keeps all state: objects (unless `--etcd-servers` says where they are), certificates, the
    /// kubeconfig. It must belong to whoever runs the server, and nobody else gets at what is in it
    #[arg(long, value_name = "FOLDER", default_value = "revisor-data")]
    pub(crate) data_dir: PathBuf,

    /// How long the past can be read and watched from; with --etcd-servers, how often etcd is made to forget it
    #[arg(long, alias = "etcd-compaction-interval", value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    pub(crate) history: Duration,

    /// How many events of the past are kept at most, on disk; each takes some 30 bytes of memory. Every resource has
    /// its share: the one with the most loses its oldest first
    #[arg(long, value_name = "COUNT", default_value_t = 2_000_000)]
    pub(crate) history_events: usize,

    /// How many bytes of replaced and deleted objects are kept at most, on disk, shared like the events
    #[arg(long, value_name = "BYTES", default_value_t = 1024 * 1024 * 1024)]
    pub(crate) history_bytes: usize,

    /// How many bytes of memory the most recent events may take, shared like the events. Older ones are read from disk
    #[arg(long, value_name = "BYTES", default_value_t = 32 * 1024 * 1024)]
    pub(crate) history_memory: usize,

    /// How many bytes objects and their history may take. What would make them more is refused, deletions go on; 0 for
    /// what fits the machine: a quarter of its memory, half of its disk, 8 GiB at most; less than 0 for any number
    #[arg(long, value_name = "BYTES", default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) quota_backend_bytes: i64,

    /// An EncryptionConfiguration (apiserver.config.k8s.io/v1), which says which objects are encrypted on disk and with
    /// what: aesgcm, aescbc, secretbox, or a service that holds keys (KMS v2)
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_provider_config: Option<PathBuf>,

    /// A file with keys, one in each line, 32 bytes in base64, with which the store in the data folder is encrypted as a
    /// whole. The first encrypts, all of them decrypt; what another one encrypted is encrypted anew at the start
    #[arg(long, value_name = "FILE")]
    pub(crate) store_key_file: Option<PathBuf>,

    /// Whether the encryption configuration is read again when it changes
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set, requires = "encryption_provider_config")]
    pub(crate) encryption_provider_config_automatic_reload: bool,

    #[command(flatten)]
    pub(crate) etcd: EtcdFlags,

    /// The address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,

    /// The port to listen on; 0 takes any that is free
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub(crate) secure_port: u16,

    /// The folder for certificates that the server makes for itself; keys in it are made private. An apiserver.crt and
    /// apiserver.key that somebody else put there are shown instead [default: certificates in the data folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cert_dir: Option<PathBuf>,

    /// The server's certificate, instead of one that it makes. It is read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,

    /// The key of the server's certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,

    /// A certificate and its key for those who ask for certain names: CERTIFICATE,KEY for the names that the certificate
    /// has, CERTIFICATE,KEY:NAME,… for these, which may begin with `*.`. Can be given several times
    #[arg(long, value_name = "FILES")]
    pub(crate) tls_sni_cert_key: Vec<NamedFiles>,

    /// What browsers are told about how to come back: max-age=SECONDS, includeSubDomains, preload
    #[arg(long, value_name = "DIRECTIVES", value_delimiter = ',')]
    pub(crate) strict_transport_security_directives: Vec<TransportDirective>,

    /// The other sites whose pages may ask the server (CORS): regular expressions that match their origins, host and all,
    /// such as '//example\.com(:|$)'
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    pub(crate) cors_allowed_origins: Vec<AllowedOrigin>,

    /// How many of the requests over HTTP/2 are told that their connection ends, from 0 to 0.02, so that clients come back
    /// through whatever shares them out among several servers
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_goaway_chance)]
    pub(crate) goaway_chance: f64,

    /// The authorities whose client certificates are trusted, beside the server's own. Read again when they change
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// Tokens and whom they belong to: lines of token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,

    /// Whether a request without credentials is taken as one of system:anonymous. With the authorization mode AlwaysAllow
    /// it is refused unless this is given
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) anonymous_auth: bool,

    /// Whether the flag above was given, rather than left at its default.
    #[arg(skip)]
    pub(crate) anonymous_auth_given: bool,

    /// An AuthenticationConfiguration (apiserver.config.k8s.io), which names issuers of tokens (jwt) and says at which paths
    /// requests may be anonymous; not together with --anonymous-auth if it says that, nor with --oidc-*. Issuers are read
    /// again when the file changes
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication_config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) oidc: OidcFlags,

    #[command(flatten)]
    pub(crate) request_header: RequestHeaderFlags,

    /// A kubeconfig that says where TokenReviews are sent for tokens that nobody else knows
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication_token_webhook_config_file: Option<PathBuf>,

    /// For how long what the webhook says of a token is remembered
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration)]
    pub(crate) authentication_token_webhook_cache_ttl: Duration,

    /// The version of the TokenReviews that are sent: v1 or v1beta1
    #[arg(long, value_name = "VERSION", default_value = "v1beta1", value_parser = ["v1", "v1beta1"])]
    pub(crate) authentication_token_webhook_version: String,

    /// Whether the tokens in secrets of kube-system of the type bootstrap.kubernetes.io/token are good
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) enable_bootstrap_token_auth: bool,

    /// Who may do what: RBAC, Node, Webhook, ABAC, AlwaysAllow or AlwaysDeny, in the order in which they are asked. RBAC lets
    /// everybody do what their roles allow, Node lets kubelets do what their pods need. Members of system:masters may do all
    #[arg(long, value_name = "MODES", default_value = "RBAC")]
    pub(crate) authorization_mode: AuthorizationModes,

    /// Whether the flag above was given, rather than left at its default.
    #[arg(skip)]
    pub(crate) authorization_mode_given: bool,

    /// An AuthorizationConfiguration (apiserver.config.k8s.io), which says who decides about requests, instead of
    /// --authorization-mode. It is read again when it changes
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_config: Option<PathBuf>,

    /// A kubeconfig that says where SubjectAccessReviews are sent, for the mode Webhook
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_webhook_config_file: Option<PathBuf>,

    /// The version of the SubjectAccessReviews that are sent: v1 or v1beta1
    #[arg(long, value_name = "VERSION", default_value = "v1beta1", value_parser = ["v1", "v1beta1"])]
    pub(crate) authorization_webhook_version: String,

    /// For how long it is remembered that the webhook allows something
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    pub(crate) authorization_webhook_cache_authorized_ttl: Duration,

    /// For how long it is remembered that the webhook does not allow something
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(crate) authorization_webhook_cache_unauthorized_ttl: Duration,

    /// A file with policies, one in each line, for the mode ABAC
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_policy_file: Option<PathBuf>,

    /// Who issues the tokens of service accounts
    #[arg(long, value_name = "URL")]
    pub(crate) service_account_issuer: Vec<String>,

    /// Where those who check the tokens of service accounts are told to find the keys: an https URL [default:
    /// /openid/v1/jwks at the external address]
    #[arg(long, value_name = "URL", value_parser = parse_jwks_uri)]
    pub(crate) service_account_jwks_uri: Option<String>,

    /// Keys that verify the tokens of service accounts
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_key_file: Vec<PathBuf>,

    /// The key that signs the tokens of service accounts [default: one that the server makes]
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,

    /// The socket of a plugin that signs the tokens of service accounts, instead of keys in files
    #[arg(long, value_name = "PATH")]
    pub(crate) service_account_signing_endpoint: Option<String>,

    /// Whom tokens must be meant for to be good here [default: the first issuer]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) api_audiences: Vec<String>,

    /// How long a token of a service account is good at most; 0s for any time
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub(crate) service_account_max_token_expiration: Duration,

    /// Whether tokens of pods that are to be replaced within the hour stay good for a year, for programs that read theirs
    /// only once
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) service_account_extend_token_expiration: bool,

    /// The addresses of services; the first of them is the server's own
    #[arg(long, value_name = "CIDR", default_value = "10.0.0.0/24", value_delimiter = ',')]
    pub(crate) service_cluster_ip_range: Vec<IpRange>,

    /// The ports of nodes that services can have
    #[arg(long, value_name = "FIRST-LAST", default_value = "30000-32767")]
    pub(crate) service_node_port_range: PortRange,

    /// The address at which members of the cluster reach the server [default: the address to listen on, or that of the
    /// machine]
    #[arg(long, value_name = "IP")]
    pub(crate) advertise_address: Option<IpAddr>,

    /// The name, with or without a port, by which those outside reach the server: it stands in what is published for
    /// them [default: the address at which members of the cluster reach it]
    #[arg(long, value_name = "HOST")]
    pub(crate) external_hostname: Option<String>,

    /// Who keeps the endpoints of the service `kubernetes`: this server (`lease` and `master-count` mean the same here)
    /// or nobody (`none`)
    #[arg(long, value_name = "TYPE", default_value = "lease")]
    pub(crate) endpoint_reconciler_type: EndpointReconciler,

    /// The port of nodes that leads to the server; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) kubernetes_service_node_port: u16,

    /// Versions and resources to switch on or off beside those that are served by default: KEY=BOOL with api/all,
    /// api/ga, api/beta, api/alpha, GROUP/VERSION or GROUP/VERSION/RESOURCE as the key
    #[arg(long, value_name = "KEYS", default_value = "", value_parser = Catalog::read_runtime_config)]
    pub(crate) runtime_config: RuntimeConfig,

    #[command(flatten)]
    pub(crate) compatibility: CompatibilityFlags,

    /// Whether containers may be privileged. Unlike kube-apiserver's the default is true: without kubelets, to refuse
    /// them protects nothing
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) allow_privileged: bool,

    /// Let requests in by their flow schemas and priority levels, each with its own seats and queues. What all levels
    /// share is the sum of the two numbers below
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) enable_priority_and_fairness: bool,

    /// How many requests that change nothing are served at once; without priority and fairness 0 is for any number
    #[arg(long, value_name = "COUNT", default_value_t = 400)]
    pub(crate) max_requests_inflight: usize,

    /// How many requests that change something are served at once; without priority and fairness 0 is for any number
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    pub(crate) max_mutating_requests_inflight: usize,

    /// How many watches are served at once; 0 for any number. Of this, and without priority and fairness of the two
    /// before, the last quarter is for users who have little; members of system:masters are always served
    #[arg(long, value_name = "COUNT", default_value_t = 50_000)]
    pub(crate) max_watches: usize,

    /// How many bytes of replaced objects stay in memory only for lists that are being read; 0 for any number. For more,
    /// the list ends whose client has taken nothing for longest
    #[arg(long, value_name = "BYTES", default_value_t = 64 * 1024 * 1024)]
    pub(crate) max_unread_list_bytes: u64,

    /// How many connections are served at once, if the system allows so many open files. For one more, an idle one of
    /// the address that has most of them is closed
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_connections: u32,

    /// How many requests at once clients are told that they may have on one HTTP/2 connection; 0 for 100. It is 100 at
    /// most until a request has shown who the client is
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    pub(crate) http2_max_streams_per_connection: u32,

    /// How many seconds a watch lasts at least if the client does not say
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub(crate) min_request_timeout: u32,

    /// Admission plugins that are asked beside those that are on by default. Which they are is in the README; the order
    /// in which they are asked is always the same
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) enable_admission_plugins: Vec<String>,

    /// Admission plugins that are not asked although they are on by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) disable_admission_plugins: Vec<String>,

    /// Deprecated, use --enable-admission-plugins and --disable-admission-plugins: these admission plugins and no others
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) admission_control: Option<Vec<String>>,

    /// An AdmissionConfiguration (apiserver.config.k8s.io/v1), which tells admission plugins how to do their work
    #[arg(long, value_name = "FILE")]
    pub(crate) admission_control_config_file: Option<PathBuf>,

    /// How many seconds a pod stays on a node that is not ready, unless it says otherwise
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(crate) default_not_ready_toleration_seconds: i64,

    /// How many seconds a pod stays on a node that cannot be reached, unless it says otherwise
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(crate) default_unreachable_toleration_seconds: i64,

    /// The controllers to run: '*' for all, 'none', a name, or '-' and a name to leave one out
    #[arg(
        long,
        value_name = "NAMES",
        default_value = "*",
        allow_hyphen_values = true,
        env = CONTROLLERS_VARIABLE,
        hide_env_values = true
    )]
    pub(crate) controllers: ControllersFlag,

    #[command(flatten)]
    pub(crate) leader_election: LeaderElectionFlags,

    /// How long events are kept after their last write; 0 for ever
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_duration)]
    pub(crate) event_ttl: Duration,

    #[command(flatten)]
    pub(crate) outward: OutwardFlags,

    #[command(flatten)]
    pub(crate) audit: AuditFlags,

    #[command(flatten)]
    pub(crate) serving: ServingFlags,

    #[command(flatten)]
    pub(crate) debugging: DebuggingFlags,

    /// Flags of kube-apiserver that were given and mean nothing here.
    #[arg(skip)]
    pub(crate) idle: Vec<String>,
}

fn parse_goaway_chance(text: &str) -> Result<f64, String> {
    let chance: f64 = text.parse().map_err(|_| format!("expected a number, not {text:?}"))?;
    match (0.0..=0.02).contains(&chance) {
        true => Ok(chance),
        false => Err("--goaway-chance can not be less than 0 or greater than 0.02".to_owned()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EndpointReconciler {
    Lease,
    MasterCount,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LoggingFormat {
    Text,
    Json,
}

#[cfg(test)]
mod tests;
