//! `cargo xtask interop`: the tests of servers that share an etcd, with a genuine kube-apiserver as the other one. It builds
//! none: the caller has one. It is no part of `cargo xtask test`, where the other server is one of ours.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::etcd;
use crate::workspace::{self, Workspace};

/// Names the other server to the tests.
const PEER_VARIABLE: &str = "REVISOR_PEER";
/// How often they do what takes long.
const ROUNDS_VARIABLE: &str = "REVISOR_INTEROP_ROUNDS";

/// What to run with.
#[derive(Args)]
pub(crate) struct Options {
    /// A kube-apiserver
    #[arg(long, value_name = "PATH")]
    peer_bin: PathBuf,

    /// How often what takes long is done
    #[arg(long, value_name = "N", default_value_t = 500)]
    rounds: u32,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let peer = options.peer_bin.canonicalize();
    let peer = peer.with_context(|| format!("there is no {}", options.peer_bin.display()))?;
    let mut tests = workspace.cargo(["test", "--package", "revisor", "--test", "it", "interop_"]);
    tests.env(PEER_VARIABLE, peer).env(ROUNDS_VARIABLE, options.rounds.to_string());
    if std::env::var_os(etcd::VARIABLE).is_none() {
        tests.env(etcd::VARIABLE, etcd::provide(workspace)?);
    }
    workspace::run(&mut tests)
}
