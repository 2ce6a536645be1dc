//! The flags.

use std::path::PathBuf;

use clap::Parser;

use crate::objects::Kind;
use crate::widgets::Conversion;

/// Measures an API server: what it does per second, how long that takes, and what it costs the server.
#[derive(Debug, Clone, Parser)]
#[command(name = "cargo xtask bench")]
pub struct Options {
    /// Drive this running server, `https://127.0.0.1:6443` say, instead of starting one
    #[arg(long, value_name = "URL", requires = "token")]
    pub server: Option<String>,
    /// Bearer token for --server
    #[arg(long, requires = "server")]
    pub token: Option<String>,
    /// Processes of --server, separated by commas, whose CPU time and memory count
    #[arg(long, value_delimiter = ',', requires = "server")]
    pub pid: Vec<u32>,

    /// Do the same work against this server too, and print the ratios
    #[arg(long, value_name = "URL", requires = "peer_token")]
    pub peer: Option<String>,
    /// Bearer token for --peer
    #[arg(long, requires = "peer")]
    pub peer_token: Option<String>,
    /// Processes of --peer, separated by commas: the API server and its etcd, say
    #[arg(long, value_delimiter = ',', requires = "peer")]
    pub peer_pid: Vec<u32>,

    /// The binary to start when no --server is given
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,

    /// What kind of objects to create
    #[arg(long, value_enum, default_value_t)]
    pub kind: Kind,
    /// With --kind widgets: work in another version than the one that is stored, and convert like this
    #[arg(long, value_enum, requires = "kind")]
    pub conversion: Option<Conversion>,
    /// Validating policies of five expressions each that every write of the load has to pass
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub policies: u32,
    /// Validating webhooks that every write of the load has to pass, served by the bench
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub webhooks: u32,
    /// Objects to create
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=2_000_000))]
    pub objects: u32,
    /// Connections that work at the same time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub connections: u32,
    /// Watchers in the fan-out phase
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub watchers: u32,
    /// Length of each phase that is bounded by time
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,
    /// Longest time for a phase that is bounded by count, such as creating all objects
    #[arg(long, default_value_t = 900, value_parser = clap::value_parser!(u32).range(1..=7200))]
    pub limit_seconds: u32,

    /// Measure how the cost of an operation grows with the number of objects
    #[arg(long)]
    pub scale: bool,
    /// With --scale: the numbers of objects, rising
    #[arg(long, value_delimiter = ',', default_value = "1000,100000", requires = "scale")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=2_000_000))]
    pub sizes: Vec<u32>,
    /// With --scale: at 1,000,000 objects too
    #[arg(long, requires = "scale")]
    pub million: bool,

    /// Measure a migration of everything that is stored, and what others notice of it (with --conversion)
    #[arg(long, requires = "conversion", conflicts_with = "scale")]
    pub migrate: bool,

    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_go_together() {
        for (line, want) in [
            ("", true),
            ("--objects 100 --seconds 1 --json x.json", true),
            ("--server https://127.0.0.1:1 --token t --pid 1,2", true),
            ("--server https://127.0.0.1:1", false),
            ("--pid 1", false),
            ("--peer https://127.0.0.1:1", false),
            ("--peer https://127.0.0.1:1 --peer-token t --peer-pid 3,4", true),
            ("--million", false),
            ("--kind pods", true),
            ("--kind dragons", false),
            ("--kind widgets --conversion rules", true),
            ("--conversion rules", false),
            ("--kind widgets --conversion magic", false),
            ("--kind widgets --conversion rules --migrate --objects 100000", true),
            ("--migrate", false),
            ("--policies 10", true),
            ("--policies 100000", false),
            ("--webhooks 1 --policies 2", true),
            ("--webhooks 1000", false),
            ("--scale --million", true),
            ("--scale --sizes 10,200", true),
            ("--scale --sizes 0", false),
            ("--sizes 10", false),
            ("--objects 0", false),
            ("--connections 1000000", false),
        ] {
            let parsed = Options::try_parse_from(std::iter::once("bench").chain(line.split_whitespace()));
            assert_eq!(parsed.is_ok(), want, "{line}");
        }
    }
}
