//! The flags of `revisor conformance`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::cluster::ClusterFlags;
use crate::duration::parse_duration;

const EXAMPLE: &str = "\
Examples:
  revisor conformance resource-versions
  revisor conformance resource-versions --context=staging --only='*.apps' --write
  revisor conformance resource-versions --kubeconfig=admin.conf --junit=report.xml -o json";

/// What a cluster is held against.
#[derive(Debug, Subcommand)]
pub(crate) enum ConformanceCommand {
    /// Whether resource versions mean what is documented, and compare as KEP-5504 promises.
    ///
    /// Every resource that can be listed is looked at, those of aggregated servers too: whether versions are decimal
    /// numbers that grow, whether lists, pages, watches and streamed lists agree, what resourceVersionMatch does, and how
    /// versions are answered that are too old or not there yet. Only metadata is read, and nothing is written, except with
    /// --write. Ends with 0 if all is as it should be, with 1 if something is not, and with 2 if it could not be found out.
    #[command(after_help = EXAMPLE)]
    ResourceVersions(Box<ResourceVersionsFlags>),
}

#[derive(Debug, Args)]
pub(crate) struct ResourceVersionsFlags {
    /// Look at these resources only: `pods`, `deployments.apps`, `*.apps`, `*.example.com`. Can be given several times
    #[arg(long, value_name = "RESOURCE")]
    pub(super) only: Vec<String>,

    /// Also write: objects that make nothing run, in a namespace of its own that is removed again
    #[arg(long)]
    pub(super) write: bool,

    /// How many resources are looked at side by side
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(super) parallel: u8,

    /// How many objects of a resource are looked at; of more, the first ones
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(super) max_objects: usize,

    /// How long all of it may take
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub(super) timeout: Duration,

    /// How to print it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub(super) output: ReportFormat,

    /// Also write a JUnit report to this file
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,

    #[command(flatten)]
    pub(super) cluster: ClusterFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
    Junit,
}
