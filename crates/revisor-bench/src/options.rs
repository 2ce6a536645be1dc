//! The flags.

use std::path::PathBuf;

use clap::Parser;

use crate::cluster::ClusterSize;
use crate::encoding::Encoding;
use crate::instructions::CountOptions;
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
    /// Another server that shares the store of --server and knows its token: how soon does a watch there see a write?
    #[arg(long, value_name = "URL", requires = "server")]
    pub watch_server: Option<String>,

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

    /// Start it on the etcd at these URLs instead of a folder; there is then a second one beside it, whose start is
    /// measured, and at which a watch has to see what is written. What both keep for themselves stays below a prefix
    #[arg(long, value_name = "URLS", conflicts_with_all = ["server", "instructions", "scale", "migrate", "cluster"])]
    pub etcd_servers: Option<String>,

    /// What kind of objects to create
    #[arg(long, value_enum, default_value_t)]
    pub kind: Kind,
    /// With --kind widgets: work in another version than the one that is stored, and convert like this
    #[arg(long, value_enum, requires = "kind")]
    pub conversion: Option<Conversion>,
    /// How objects are sent and read; tables come as JSON always
    #[arg(long, value_enum, default_value_t)]
    pub encoding: Encoding,
    /// Speak HTTP/2 in every phase, as components do
    #[arg(long)]
    pub http2: bool,
    /// With --http2: how many clients share a connection
    #[arg(long, default_value_t = 8, requires = "http2", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub streams: u32,
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
    /// Writes per second in the fan-out phase, instead of rounds that wait for every watcher
    #[arg(long, value_name = "WRITES", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub event_rate: Option<u32>,
    /// Nothing but the fan-out phase, once the objects are there
    #[arg(long, conflicts_with_all = ["scale", "migrate", "cluster"])]
    pub fan_out: bool,
    /// Length of each phase that is bounded by time
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,
    /// How many seconds a server is left alone before it is looked how much memory it holds
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(0..=600))]
    pub rest: u32,
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

    /// The load of a cluster with so many nodes and pods, 1000x30000 say, over HTTP/2 and in protobuf
    #[arg(long, value_name = "NODESxPODS", conflicts_with_all = ["scale", "migrate"])]
    pub cluster: Option<ClusterSize>,
    /// With --cluster: try larger and larger ones, and tell of the largest with 99 of 100 requests answered in a second
    #[arg(long, requires = "cluster")]
    pub cluster_limit: bool,

    /// What is counted instead, if anything
    #[command(flatten)]
    pub counting: CountOptions,

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
            ("--server https://127.0.0.1:1 --token t --watch-server https://127.0.0.1:2", true),
            ("--watch-server https://127.0.0.1:2", false),
            ("--peer https://127.0.0.1:1", false),
            ("--peer https://127.0.0.1:1 --peer-token t --peer-pid 3,4", true),
            ("--etcd-servers http://127.0.0.1:2379", true),
            ("--etcd-servers http://127.0.0.1:2379 --peer https://127.0.0.1:1 --peer-token t", true),
            ("--etcd-servers http://127.0.0.1:2379 --server https://127.0.0.1:1 --token t", false),
            ("--etcd-servers http://127.0.0.1:2379 --scale", false),
            ("--million", false),
            ("--kind pods", true),
            ("--kind dragons", false),
            ("--kind pods --encoding protobuf", true),
            ("--encoding runes", false),
            ("--http2 --streams 100 --encoding protobuf", true),
            ("--streams 100", false),
            ("--watchers 10000 --event-rate 100", true),
            ("--event-rate 0", false),
            ("--watchers 10000 --event-rate 100 --fan-out", true),
            ("--fan-out --scale", false),
            ("--kind widgets --conversion rules", true),
            ("--conversion rules", false),
            ("--kind widgets --conversion magic", false),
            ("--kind widgets --conversion rules --migrate --objects 100000", true),
            ("--migrate", false),
            ("--cluster 1000x30000", true),
            ("--cluster 100x3000 --cluster-limit", true),
            ("--cluster 1000", false),
            ("--cluster-limit", false),
            ("--cluster 10x10 --scale", false),
            ("--policies 10", true),
            ("--policies 100000", false),
            ("--webhooks 1 --policies 2", true),
            ("--webhooks 1000", false),
            ("--scale --million", true),
            ("--scale --sizes 10,200", true),
            ("--scale --sizes 0", false),
            ("--sizes 10", false),
            ("--instructions --table t.csv --bless", true),
            ("--instructions --only pods-create --profile p", true),
            ("--instructions --only pods-create", false),
            ("--instructions --scale", false),
            ("--bless", false),
            ("--objects 0", false),
            ("--connections 1000000", false),
        ] {
            let parsed = Options::try_parse_from(std::iter::once("bench").chain(line.split_whitespace()));
            assert_eq!(parsed.is_ok(), want, "{line}");
        }
    }
}
