//! A load generator for API servers.
//!
//! It shares the machine with the server that it measures, so it is built to be light: one thread, prepared requests, a
//! reader of HTTP/1.1 that knows just what API servers send. It counts the server's CPU time from outside, which says
//! more than throughput on a machine where client and server compete.
//!
//! `options` says what to do, `run` does it in order, `workload`, `fan_out`, `migrate` and `cluster` hold the phases,
//! `report` prints. `instructions` counts instead of measuring time.

mod channel;
mod cluster;
mod connection;
mod converter;
mod elsewhere;
mod encoding;
mod endpoint;
mod fan_out;
mod http;
mod http2;
mod instructions;
mod latency;
mod limit;
mod migrate;
mod objects;
mod options;
mod policies;
mod process;
mod report;
mod reviewers;
mod run;
mod scale;
mod server;
mod tls;
mod webhook_server;
mod widgets;
mod worker;
mod workload;

pub use cluster::ClusterSize;
pub use connection::{Connection, Connector, Exchange};
pub use encoding::Encoding;
pub use endpoint::{Endpoint, EndpointError};
pub use instructions::{Count, CountOptions, Table, count};
pub use objects::Kind;
pub use options::Options;
pub use report::{Phase, Report, ServerReport};
pub use run::run;
pub use server::OwnServer;
pub use widgets::Conversion;
