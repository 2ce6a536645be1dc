//! The commands of the program, and the flags of those that have few.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use revisor_auth::Revoked;

use super::compatibility::CompatibilityFlags;
use super::crd::CrdCommand;
use super::{ServeFlags, certificates_folder};
use crate::conformance::ConformanceCommand;
use crate::conversion_webhook::ConversionWebhookFlags;
use crate::health::HealthFlags;
use crate::moving::{EXPORT_EXAMPLE, ExportFlags, IMPORT_EXAMPLE, ImportFlags};
use crate::rehearse::RehearseFlags;

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
    /// Make a data folder of what is in an etcd or a snapshot of one, so that `serve` serves it.
    ///
    /// The etcd may be in use: it is read at one revision. Objects keep their resource versions, and history begins with
    /// that revision: clients that know an older one list again. What servers keep for themselves in etcd is left out, as
    /// they make it anew. In the end everything is read again from the folder and held against what was read from etcd.
    /// Ends with 0 if all is there, with 1 if values cannot be decoded, which are named, and with 2 if it could not be
    /// done. The folder is made only if it ends with 0.
    #[command(after_help = IMPORT_EXAMPLE)]
    Import(Box<ImportFlags>),
    /// Fill an etcd with what is in a data folder, so that kube-apiserver or `serve` serves it.
    ///
    /// Objects are stored in the layout of kube-apiserver. etcd counts its own revisions, so they get new resource versions;
    /// etcd is written to until these are newer than those of the folder, and its history is compacted, so that clients
    /// list again. In the end everything is read again from etcd and held against what was written. Ends with 0 if all is
    /// there, and with 2 if it could not be done.
    #[command(after_help = EXPORT_EXAMPLE)]
    Export(Box<ExportFlags>),
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

Controllers run, so that what has no owner is collected and namespaces go; REVISOR_CONTROLLERS=none leaves them out, and
REVISOR_CONTROLLERS='*' also gives every namespace its service account and kube-root-ca.crt.";

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

const REHEARSE_EXAMPLE: &str = "\
Before an upgrade, on a copy of the folder, with the definitions that come with it:

  cp -r revisor-data copy
  revisor rehearse --data-dir copy --emulation-version 1.36 --definitions new/

For a program: {\"findings\": [{\"resource\", \"namespace\", \"name\", \"effect\", \"message\"}]}, where the effect is
refused, shows less, gone, warned or stored otherwise, and findings without a name are about requests:

  revisor rehearse --data-dir copy --definitions new/ -o json

A server that runs, through its API, as the administrator:

  revisor rehearse --kubeconfig revisor-data/kubeconfig --definitions new/

What a backup of an etcd holds, or an etcd that is in use, of whatever server:

  revisor rehearse --snapshot backup.db --definitions new/
  revisor rehearse --etcd-servers http://127.0.0.1:2379 --definitions new/";

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
