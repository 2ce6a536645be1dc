//! `revisor health`: whether a server is well, for those who can only run a program and look at how it ends: containers,
//! scripts, unit files.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};

use crate::cluster::{Cluster, ClusterFlags, block_on};
use crate::duration::parse_duration;

/// How long to wait before the server is asked again.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct HealthFlags {
    /// What to ask: whether it should get requests (readyz), should not be restarted (livez), or both (healthz)
    #[arg(long, value_name = "CHECK", default_value = "readyz")]
    check: Check,

    /// The data folder of the server, whose kubeconfig says where it is; not used if a cluster is named
    #[arg(long, value_name = "FOLDER", default_value = "revisor-data")]
    data_dir: PathBuf,

    /// Ask again until it is well, or the time is over
    #[arg(long)]
    wait: bool,

    /// How long all of it may take
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    timeout: Duration,

    #[command(flatten)]
    cluster: ClusterFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Check {
    Readyz,
    Livez,
    Healthz,
}

impl Check {
    fn path(self) -> &'static str {
        match self {
            Check::Readyz => "/readyz?verbose",
            Check::Livez => "/livez?verbose",
            Check::Healthz => "/healthz?verbose",
        }
    }
}

/// What the server says of itself; an error if it is not well or not there.
pub(crate) fn health(flags: &HealthFlags) -> anyhow::Result<String> {
    let well = async {
        loop {
            match ask(flags).await {
                Err(_) if flags.wait => tokio::time::sleep(PAUSE).await,
                answer => break answer,
            }
        }
    };
    let answer = block_on(async { tokio::time::timeout(flags.timeout, well).await })?;
    answer.unwrap_or_else(|_| bail!("the server is not well within {:?}", flags.timeout))
}

async fn ask(flags: &HealthFlags) -> anyhow::Result<String> {
    let mut cluster = flags.cluster.clone();
    if !cluster.is_given() {
        cluster.kubeconfig = Some(flags.data_dir.join("kubeconfig"));
    }
    // Read each time: a server that starts for the first time writes its kubeconfig before it is ready.
    let answer = Cluster::open(&cluster)?.text(flags.check.path()).await?;
    Ok(format!("{}\n", answer.trim_end()))
}
