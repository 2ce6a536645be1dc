//! [`ClusterFlags`]: which cluster a command looks at, said as kubectl's flags say it.

use std::path::PathBuf;

use clap::Args;

/// Which cluster, and as whom.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterFlags {
    /// The URL of the server [default: that of the context]
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,

    /// The kubeconfig [default: the files that KUBECONFIG lists, ~/.kube/config, or the account of the pod]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// The token to show, in place of the credentials of the context
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,

    /// The file with the certificates of the authorities that may vouch for the server
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate_authority: Option<PathBuf>,

    /// Believe whoever answers to be the server
    #[arg(long, conflicts_with = "certificate_authority")]
    pub(crate) insecure_skip_tls_verify: bool,
}

impl ClusterFlags {
    /// Whether any of them is given.
    pub(crate) fn is_given(&self) -> bool {
        self.server.is_some() || self.kubeconfig.is_some() || self.context.is_some() || self.token.is_some()
    }
}
