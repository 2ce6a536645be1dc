//! The command line. Flags are named as kube-apiserver's wherever they mean the same.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use revisor_api::TransportDirective;
use revisor_auth::{
    AuthorizationModes, CipherSuite, MinTlsVersion, NamedFiles, Revoked, TlsOptions, brought_serving_files,
};
use revisor_catalog::{BINARY, Catalog, CatalogOptions, RuntimeConfig};
use revisor_version::{EffectiveVersion, FeatureGates};

use crate::apiserver_flags::apiserver_flags;
use crate::audit::AuditFlags;
use crate::conformance::ConformanceCommand;
use crate::controllers::ControllersFlag;
use crate::conversion_webhook::ConversionWebhookFlags;
use crate::crd::{CheckFlags, MigrateFlags, UsageFlags};
use crate::duration::parse_duration;
use crate::etcd_flags::EtcdFlags;
use crate::health::HealthFlags;
use crate::ip_range::IpRange;
use crate::kube_apiserver::EMULATION_VERSION;
use crate::pflag::{FlagType, Given, gather};
use crate::port_range::PortRange;
use crate::rehearse::RehearseFlags;
use crate::service_accounts::parse_jwks_uri;

/// A Kubernetes API server in one program, built around versions.
#[derive(Debug, Parser)]
#[command(
    name = "revisor",
    version = crate::version::VERSION,
    disable_help_subcommand = true,
    override_usage = "revisor [COMMAND]",
    after_help = "Without a command the API is served; `revisor serve --help` names the flags for that."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API. This is what happens if no command is named.
    Serve(Box<ServeFlags>),
    /// Print the feature gates of a release, how they are set, and which of them have an effect in this server.
    Gates(ReportFlags),
    /// Print the version in which the objects of every built-in resource are stored.
    StorageVersions(ReportFlags),
    /// Check and use Conversions between the versions of a custom resource, without a server.
    #[command(subcommand)]
    Crd(CrdCommand),
    /// Tell what a release, definitions and Conversions that are to come would do to what is stored, and change nothing.
    ///
    /// Every stored object is looked at: whether its next write would be refused or draw a warning, whether it would be
    /// shown with less, stored otherwise, or be gone; and which of the requests that were made lately would fail. Ends with
    /// 0 if nothing is in the way, with 1 if something would be refused, shown with less or gone, and with 2 if it could
    /// not be found out.
    #[command(after_help = REHEARSE_EXAMPLE)]
    Rehearse(Box<RehearseFlags>),
    /// Hold a cluster, of whatever server, against what is documented.
    #[command(subcommand)]
    Conformance(ConformanceCommand),
    /// Convert custom objects by Conversions in files, for a cluster whose servers do not know them.
    ///
    /// Serves ConversionReviews over TLS at /convert, beside /healthz, /readyz and /metrics. What a version cannot say
    /// travels in the annotation versioning.revisor.dev/kept, where the cluster keeps it. Conversions that break a law are
    /// refused at the start, in the words of `revisor crd prove`.
    #[command(after_help = WEBHOOK_EXAMPLE)]
    ConversionWebhook(Box<ConversionWebhookFlags>),
    /// Look after the credentials that a server made for its administrator: list, renew and revoke them.
    #[command(after_help = CREDENTIALS_EXAMPLE)]
    Credentials {
        #[command(subcommand)]
        command: CredentialsCommand,
    },
    /// Be what tests of operators start as their control plane: etcd and kube-apiserver.
    #[command(subcommand, after_help = ENVTEST_EXAMPLE)]
    Envtest(EnvtestCommand),
    /// Print every flag that kube-apiserver has, and what it does here.
    Flags(FlagsFlags),
    /// Ask a server whether it is well. Ends with 0 if it is, and with 1 if it is not or cannot be reached.
    #[command(after_help = HEALTH_EXAMPLE)]
    Health(Box<HealthFlags>),
    /// Print the version of this program and the Kubernetes releases that it can be.
    Version,
    /// Print a script that completes commands and flags in a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of all commands into a folder.
    Man {
        /// The folder; it is made if it is not there.
        folder: PathBuf,
    },
}

const ENVTEST_EXAMPLE: &str = "\
For the tests of an operator that uses controller-runtime's envtest, in place of what setup-envtest downloads:

  eval \"$(revisor envtest install bin/envtest)\" && go test ./...

The same as another release, in the folder that setup-envtest would use; REVISOR_EMULATION_VERSION=1.34 does it too:

  eval \"$(revisor envtest install bin --release=1.34)\" && go test ./...

Controllers run, so that what has no owner is collected and namespaces go; REVISOR_CONTROLLERS=none leaves them out.";

const HEALTH_EXAMPLE: &str = "\
Examples:
  revisor health
  revisor health --data-dir=/var/lib/revisor --wait --timeout=1m
  revisor health --server=https://127.0.0.1:6443 --insecure-skip-tls-verify --check=livez";

const WEBHOOK_EXAMPLE: &str = "\
In a cluster, behind the service `conversions` of the namespace `apps`:

  revisor conversion-webhook -f conversions/ --watch --bind-address=0.0.0.0 --service=apps/conversions:9443

What the cluster has to know of it, with the same folder of certificates:

  revisor conversion-webhook -f conversions/ --service=apps/conversions:9443 --install | kubectl apply -f -";

const CHECK_EXAMPLE: &str = "\
Examples:
  revisor crd check old.yaml new.yaml
  revisor crd check origin/main:config/crd config/crd -o github
  revisor crd check --context=staging --live config/crd";

const REHEARSE_EXAMPLE: &str = "\
Before an upgrade, on a copy of the folder, with the definitions that come with it:

  cp -r revisor-data copy
  revisor rehearse --data-dir copy --emulation-version 1.36 --definitions new/

For a program: {\"findings\": [{\"resource\", \"namespace\", \"name\", \"effect\", \"message\"}]}, where the effect is
refused, shows less, gone, warned or stored otherwise, and findings without a name are about requests:

  revisor rehearse --data-dir copy --definitions new/ -o json

A server that runs, through its API, as the administrator:

  revisor rehearse --kubeconfig revisor-data/kubeconfig --definitions new/";

const CREDENTIALS_EXAMPLE: &str = "\
A copy of the kubeconfig got into the wrong hands:

  revisor credentials renew --revoke-old --data-dir=revisor-data

A server that runs follows within a second, also on connections that are open.";

/// What is done with the folder in which tests find their control plane.
#[derive(Debug, Subcommand)]
pub(crate) enum EnvtestCommand {
    /// Put links to this program into a folder, by the names etcd and kube-apiserver, and one to kubectl if there is one.
    ///
    /// Prints the same as `env` then.
    Install(EnvtestFlags),
    /// Print the line that tells a shell where tests find their control plane.
    Env(EnvtestFlags),
}

#[derive(Debug, Args)]
pub(crate) struct EnvtestFlags {
    /// The folder
    #[arg(value_name = "FOLDER", default_value = "bin/envtest")]
    pub(crate) folder: PathBuf,

    /// The release to be, from 1.33 to 1.36: the programs are put where setup-envtest would put those of that release
    #[arg(long, value_name = "RELEASE")]
    pub(crate) release: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct FlagsFlags {
    /// How to print them
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CredentialsCommand {
    /// Print what was issued, and what of it was revoked.
    List(CredentialFlags),
    /// Make a new key and certificate for the administrator, and put them into the kubeconfig.
    Renew {
        /// Revoke what the administrator had before; otherwise copies of it are good until they expire
        #[arg(long)]
        revoke_old: bool,

        #[command(flatten)]
        flags: CredentialFlags,
    },
    /// Take credentials back. They are not let in any more, and nothing replaces them before `renew`.
    Revoke {
        /// `admin` for all that were issued to the administrator, or the serial number of a certificate
        which: Revoked,

        #[command(flatten)]
        flags: CredentialFlags,
    },
}

/// Where credentials are, and how to print them.
#[derive(Debug, Args)]
pub(crate) struct CredentialFlags {
    /// The folder that keeps all state of the server
    #[arg(long, value_name = "FOLDER", default_value = "revisor-data")]
    pub(crate) data_dir: PathBuf,

    /// The folder for certificates that the server makes for itself [default: certificates in the data folder]
    #[arg(long, value_name = "FOLDER")]
    cert_dir: Option<PathBuf>,

    /// How to print them
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

impl CredentialFlags {
    /// The folder of the certificates that the server makes for itself.
    pub(crate) fn certificates(&self) -> PathBuf {
        certificates_folder(&self.data_dir, self.cert_dir.as_deref())
    }
}

/// What others brought to be shown is left alone: the server's own is elsewhere then.
fn certificates_folder(data: &Path, certificates: Option<&Path>) -> PathBuf {
    let own = certificates.filter(|folder| brought_serving_files(folder).is_none());
    own.map_or_else(|| data.join("certificates"), Path::to_owned)
}

/// What is done with definitions and Conversions in files.
#[derive(Debug, Subcommand)]
pub(crate) enum CrdCommand {
    /// Tell what a change of definitions breaks, and for whom.
    ///
    /// Compares definitions version by version, and the versions that are served with each other. What breaks somebody is
    /// shown by the smallest object found that was accepted and is refused, or that shows something else. Sources are
    /// files, folders, `REV:path` of the git repository that one stands in, `-` for standard input, and, if OLD is left
    /// out, what the cluster has. Ends with 0 if nothing breaks or the annotation versioning.revisor.dev/semver declares a
    /// step that is large enough, with 1 if something breaks, and with 2 if the sources cannot be compared.
    #[command(after_help = CHECK_EXAMPLE)]
    Check(Box<CheckFlags>),
    /// Look for an object that a Conversion would lose or spoil.
    ///
    /// Prints what is known of each step: Proved if the shapes of both versions decide it, Tested with the number of
    /// objects that were tried, or Tolerated. What breaks a law is shown with the rule that is to blame and the smallest
    /// object that breaks it. Ends with 0 if nothing was found, with 1 if the Conversion must not be used, and with 2 if
    /// the files cannot be read.
    #[command(after_help = "Example: revisor crd prove crd.yaml conversion.yaml")]
    Prove(ProveFlags),
    /// Convert the objects of a YAML stream from standard input to another version.
    ///
    /// What that version cannot say travels in the annotation versioning.revisor.dev/kept and is there again on the way
    /// back. Objects of other kinds pass as they are. Ends with 0 if all is converted, with 1, and prints no objects, if one
    /// cannot be converted, and with 2 if the files cannot be read.
    #[command(
        after_help = "Example: revisor crd convert --crd crd.yaml --conversion conversion.yaml --to v1 < objects.yaml"
    )]
    Convert(ConvertFlags),
    /// Propose a Conversion from two definitions, or from the versions of one.
    ///
    /// Finds fields that were moved or renamed by their names and shapes, single values that became lists, and values
    /// that are written otherwise. Each rule is marked with how sure it is, and the whole is checked as `prove` does: ends
    /// with 0 if it keeps the laws, with 1 if it does not yet, which the comments explain, and with 2 if the files cannot
    /// be read. A version that looks otherwise in both definitions gets rules for its canonical form.
    #[command(after_help = "Example: revisor crd infer old.yaml new.yaml > conversion.yaml")]
    Infer(InferFlags),
    /// Show which fields of each version objects set, how many, and who manages them.
    ///
    /// A server that has version reports is asked for them. Of any other cluster all objects are read in each version
    /// that is served, and counted here. Ends with 2 if it cannot be found out.
    #[command(after_help = "Example: revisor crd usage widgets.example.com")]
    Usage(UsageFlags),
    /// Store all objects of a resource anew, in the version that is stored now, and wait until that is done.
    ///
    /// Makes a StorageVersionMigration, which the cluster must have (storagemigration.k8s.io/v1beta1), and shows how far
    /// it is. Ends with 0 when everything is stored anew, with 1 if that failed, and with 2 if it is not known what
    /// became of it.
    #[command(after_help = "Example: revisor crd migrate widgets.example.com")]
    Migrate(MigrateFlags),
}

#[derive(Debug, Args)]
pub(crate) struct InferFlags {
    /// The file or folder with the CustomResourceDefinitions as they were, or as they are if no other one is given
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,

    /// The file or folder with the CustomResourceDefinitions as they will be
    #[arg(value_name = "NEW")]
    pub(crate) new: Option<PathBuf>,

    /// The version to begin with; otherwise each version is followed by the next
    #[arg(long, value_name = "VERSION", requires = "to")]
    pub(crate) from: Option<String>,

    /// The version to end with
    #[arg(long, value_name = "VERSION", requires = "from")]
    pub(crate) to: Option<String>,

    /// How to print it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ProveFlags {
    /// The file with the CustomResourceDefinition; it may hold other objects too
    #[arg(value_name = "CRD")]
    pub(crate) definitions: PathBuf,

    /// The file with its Conversion, which has the same name
    #[arg(value_name = "CONVERSION")]
    pub(crate) conversions: PathBuf,

    /// How to print it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertFlags {
    /// The file with the CustomResourceDefinition; it may hold other objects too
    #[arg(long, value_name = "FILE")]
    pub(crate) crd: PathBuf,

    /// The file with its Conversion, which has the same name
    #[arg(long, value_name = "FILE")]
    pub(crate) conversion: PathBuf,

    /// The version to convert to
    #[arg(long, value_name = "VERSION")]
    pub(crate) to: String,

    /// How to print the objects: as they were written, or all in one list of JSON
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "yaml")]
    pub(crate) output: ObjectFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ObjectFormat {
    Yaml,
    Json,
}

/// What flags say together that kube-apiserver lets one give again and again: the last of them counts, or all do. Others
/// are left as they are.
pub(crate) fn with_repeated_flags(arguments: Vec<OsString>) -> Vec<OsString> {
    let table = apiserver_flags();
    let kind = |name: &str| table.iter().find(|flag| flag.name == name).map(|flag| flag.value);
    let mut told: Vec<Given> = Vec::new();
    let mut line: Vec<OsString> = Vec::new();
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy().into_owned();
        let flag = text.strip_prefix("--").map(|flag| flag.split_once('=').unwrap_or((flag, "")));
        let Some((name, kind)) = flag.and_then(|(name, _)| Some((name.to_owned(), kind(name)?))) else {
            line.push(argument);
            continue;
        };
        let value = match text.split_once('=') {
            Some((_, value)) => value.to_owned(),
            // Truths may stand alone; what comes next is then no value.
            None if kind == FlagType::Bool => {
                line.push(argument);
                continue;
            }
            None => match rest.next() {
                Some(value) => value.to_string_lossy().into_owned(),
                None => {
                    line.push(argument);
                    continue;
                }
            },
        };
        told.push(Given { name, value });
    }
    let told = gather(told, |name| kind(name).unwrap_or(FlagType::Text));
    line.extend(told.into_iter().map(|Given { name, value }| OsString::from(format!("--{name}={value}"))));
    line
}

/// Puts `serve` where no command is named.
pub(crate) fn with_default_command(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let names_command = match arguments.get(1).map(|first| first.to_string_lossy()) {
        None => false,
        Some(first) => !first.starts_with('-') || ["-h", "--help", "-V", "--version"].contains(&&*first),
    };
    if !names_command {
        arguments.insert(1.min(arguments.len()), "serve".into());
    }
    arguments
}

/// Which release the server behaves as, and which of its features are on.
#[derive(Debug, Clone, Args)]
pub(crate) struct CompatibilityFlags {
    /// The release to behave as: 1.33, 1.34, 1.35 or 1.36 [default: 1.36]
    #[arg(
        long,
        alias = "emulated-version",
        value_name = "RELEASE",
        value_delimiter = ',',
        env = EMULATION_VERSION,
        hide_env_values = true
    )]
    pub(crate) emulation_version: Vec<String>,

    /// The oldest release that must be able to read what this server stores: from 1.33 to the one to behave as
    /// [default: the one before the one to behave as, if it is not too old]
    #[arg(long, value_name = "RELEASE", value_delimiter = ',')]
    pub(crate) min_compatibility_version: Vec<String>,

    /// Whether versions that are served bring along their newer and equally or more stable ones that came after the
    /// release to behave as
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) emulation_forward_compatible: bool,

    /// Whether --runtime-config may name versions and resources that came after the release to behave as
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) runtime_config_emulation_forward_compatible: bool,

    /// Whether alpha features and alpha APIs can be had of a release that this program only behaves as. They are not
    /// made to be upgraded
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) allow_alpha_under_emulation: bool,

    /// Features to switch on or off: NAME=BOOL, also AllAlpha and AllBeta; `revisor gates` prints what there is and what
    /// has an effect
    #[arg(long, value_name = "GATES")]
    pub(crate) feature_gates: Vec<String>,
}

/// What is printed, and how.
#[derive(Debug, Args)]
pub(crate) struct ReportFlags {
    #[command(flatten)]
    pub(crate) compatibility: CompatibilityFlags,

    /// How to print it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    Text,
    Json,
}

impl CompatibilityFlags {
    /// What the server is and behaves as.
    pub(crate) fn version(&self) -> anyhow::Result<EffectiveVersion> {
        Ok(EffectiveVersion::parse(BINARY, &self.emulation_version, &self.min_compatibility_version)?)
    }

    /// The features that are on.
    pub(crate) fn gates(&self) -> anyhow::Result<FeatureGates> {
        Ok(FeatureGates::parse(&self.feature_gates, self.version()?, self.allow_alpha_under_emulation)?)
    }

    /// What is served, if that is all there is to say.
    pub(crate) fn catalog_options(&self) -> anyhow::Result<CatalogOptions> {
        Ok(CatalogOptions {
            version: self.version()?,
            gates: self.gates()?,
            emulation_forward_compatible: self.emulation_forward_compatible,
            runtime_config_forward_compatible: self.runtime_config_emulation_forward_compatible,
            allow_alpha: self.allow_alpha_under_emulation,
            ..CatalogOptions::default()
        })
    }
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
        Ok(TlsOptions::new(self.tls_min_version.unwrap_or_default(), self.tls_cipher_suites.clone())?)
    }
}

#[derive(Debug, Args)]
pub(crate) struct ServeFlags {
    /// The folder that keeps all state: objects, certificates, the kubeconfig. It must belong to whoever runs the
    /// server, and nobody else gets at what is in it
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
        env = "REVISOR_CONTROLLERS",
        hide_env_values = true
    )]
    pub(crate) controllers: ControllersFlag,

    /// How long events are kept after their last write; 0 for ever
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_duration)]
    pub(crate) event_ttl: Duration,

    #[command(flatten)]
    pub(crate) audit: AuditFlags,

    #[command(flatten)]
    pub(crate) serving: ServingFlags,

    /// Flags of kube-apiserver that were given and mean nothing here.
    #[arg(skip)]
    pub(crate) idle: Vec<String>,
}

/// One issuer of tokens (OpenID Connect). More, and more about them, can be said in a file.
#[derive(Debug, Clone, Args)]
pub(crate) struct OidcFlags {
    /// An issuer of tokens: an https URL
    #[arg(long, value_name = "URL")]
    pub(crate) oidc_issuer_url: Option<String>,

    /// Whom its tokens must be meant for
    #[arg(long, value_name = "ID")]
    pub(crate) oidc_client_id: Option<String>,

    /// The authorities that vouch for it [default: those of the machine]
    #[arg(long, value_name = "FILE")]
    pub(crate) oidc_ca_file: Option<PathBuf>,

    /// The claim with the name of the user
    #[arg(long, value_name = "CLAIM", default_value = "sub")]
    pub(crate) oidc_username_claim: String,

    /// What names of users begin with; - for nothing [default: the issuer and #, except for the claim email]
    #[arg(long, value_name = "PREFIX", default_value = "", allow_hyphen_values = true)]
    pub(crate) oidc_username_prefix: String,

    /// The claim with the groups of the user
    #[arg(long, value_name = "CLAIM", default_value = "")]
    pub(crate) oidc_groups_claim: String,

    /// What names of groups begin with
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pub(crate) oidc_groups_prefix: String,

    /// How its tokens may be signed
    #[arg(long, value_name = "NAMES", default_value = "RS256", value_delimiter = ',')]
    pub(crate) oidc_signing_algs: Vec<String>,

    /// Claims that its tokens must have: CLAIM=VALUE. Can be given several times
    #[arg(long, value_name = "CLAIM=VALUE", value_delimiter = ',')]
    pub(crate) oidc_required_claim: Vec<String>,
}

/// Proxies in front of the server that name users in headers.
#[derive(Debug, Clone, Args)]
pub(crate) struct RequestHeaderFlags {
    /// The authorities of proxies that name users in headers
    #[arg(long, value_name = "FILE")]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,

    /// The common names of those proxies [default: any]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) requestheader_allowed_names: Vec<String>,

    /// Headers with the name of the user
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_username_headers: Vec<String>,

    /// Headers with the uid of the user
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_uid_headers: Vec<String>,

    /// Headers with the groups of the user
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_group_headers: Vec<String>,

    /// How headers begin that hold further facts about the user
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',')]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,
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
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        let arguments = std::iter::once("revisor").chain(line.split_whitespace()).map(OsString::from);
        Arguments::try_parse_from(with_default_command(arguments)).map_err(|error| error.to_string())
    }

    #[test]
    fn serve_is_what_happens_if_no_command_is_named() {
        for line in ["", "serve", "--secure-port=1", "serve --secure-port=1", "-v=4", "-v 4"] {
            let arguments = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(matches!(arguments.command, Command::Serve(_)), "{line}");
        }
        assert!(matches!(parse("version").map(|arguments| arguments.command), Ok(Command::Version)));
    }

    #[test]
    fn flags_that_are_given_again_count_as_in_the_original() {
        let serve = |line: &str| {
            let arguments = std::iter::once("revisor").chain(line.split_whitespace()).map(OsString::from);
            let arguments = with_repeated_flags(with_default_command(arguments));
            match Arguments::try_parse_from(arguments).unwrap_or_else(|error| panic!("{line}: {error}")).command {
                Command::Serve(flags) => flags,
                other => panic!("{line}: {other:?}"),
            }
        };
        let flags = serve("--runtime-config=api/beta=true --runtime-config api/alpha=false --secure-port=1");
        assert_eq!(flags.runtime_config.to_string(), "api/alpha=false,api/beta=true");
        let flags = serve("--authorization-mode=Node --secure-port=1 --authorization-mode=RBAC --secure-port=2");
        assert_eq!((flags.authorization_mode.as_slice().len(), flags.secure_port), (2, 2));
        let flags = serve("--service-account-issuer=a --service-account-issuer=b --controllers -namespace,*");
        assert_eq!(flags.service_account_issuer, ["a", "b"]);
        let flags = serve("--service-cluster-ip-range=10.0.0.0/24 --service-cluster-ip-range=10.1.0.0/24");
        assert_eq!(flags.service_cluster_ip_range.len(), 1);
    }

    #[test]
    fn releases_and_features_that_cannot_be_had_are_refused_with_a_sentence() {
        for (line, want) in [
            ("--emulation-version=1.30", Some("emulation version 1.30 is not between [1.33, 1.36]")),
            ("--emulated-version=kube=1.35 --emulation-forward-compatible", None),
            ("--emulated-version=1.35,1.34", Some("duplicate version flag")),
            ("--emulated-version=1.35 --emulated-version=1.34", Some("duplicate version flag")),
            ("--emulation-forward-compatible", Some("EmulationForwardCompatible cannot be set")),
            ("--feature-gates=NoSuchGate=true", Some("unrecognized feature gate: NoSuchGate")),
            ("--feature-gates=AllBeta=false --feature-gates=WatchList=true", None),
            (
                "--emulation-version=1.33 --runtime-config=resource.k8s.io/v1=true",
                Some("after the current version 1.33"),
            ),
            ("--emulation-version=1.33 --runtime-config=api/alpha=true", Some("--allow-alpha-under-emulation")),
            ("--emulation-version=1.33 --runtime-config=api/alpha=true --allow-alpha-under-emulation", None),
        ] {
            let Ok(Arguments { command: Command::Serve(flags) }) = parse(line) else { panic!("{line} is not read") };
            let built = flags.catalog_options().and_then(|options| Ok(Catalog::build(&options)?));
            let error = built.err().map(|error| error.to_string());
            assert_eq!(error.is_some(), want.is_some(), "{line}: {error:?}");
            assert!(error.unwrap_or_default().contains(want.unwrap_or_default()), "{line}");
        }
    }

    #[test]
    fn unknown_and_contradictory_flags_are_refused_with_a_sentence() {
        for (line, want) in [
            ("--no-such-flag", "--no-such-flag"),
            ("--tls-cert-file=a", "--tls-private-key-file"),
            ("--secure-port=x", "--secure-port"),
            ("--authorization-mode=Nobody", "Nobody"),
            ("--controllers=nothing-we-know", "nothing-we-know"),
            ("--service-cluster-ip-range=10.0.0.0", "10.0.0.0"),
            ("--history=5", "--history"),
            ("--runtime-config=apps/v9=true", "apps/v9"),
            ("--event-ttl=1", "--event-ttl"),
            ("--tls-sni-cert-key=a.crt", "expected comma separated certificate and key file paths"),
            ("--tls-min-version=VersionTLS11", "use VersionTLS12 or VersionTLS13"),
            ("--tls-min-version=1.2", "unknown tls version"),
            ("--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA", "it is weak"),
            ("--tls-cipher-suites=ROT13", "possible values: TLS_AES_128_GCM_SHA256"),
            ("--strict-transport-security-directives=max-age", "allowed values: max-age=expireTime"),
            ("nonsense", "nonsense"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(want), "{line}: {error}");
        }
    }
}
