//! The etcds of the tests: a current one, built from the Go module under `tests/etcd`, which pins its release, and the
//! oldest that is to work, from `tests/etcd-oldest`.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::go_program;
use crate::workspace::Workspace;

/// The environment variable by which tests learn the path.
pub(crate) const VARIABLE: &str = "REVISOR_ETCD";

/// The same for the oldest etcd.
pub(crate) const OLDEST_VARIABLE: &str = "REVISOR_ETCD_OLDEST";

/// The modules that they are built from.
const MODULE: &str = "tests/etcd";
const OLDEST_MODULE: &str = "tests/etcd-oldest";

/// The path of an etcd, built at need.
pub(crate) fn provide(workspace: &Workspace) -> Result<PathBuf> {
    build(workspace, MODULE).context("no etcd could be built")
}

/// The path of the oldest etcd that is to work, built at need.
pub(crate) fn provide_oldest(workspace: &Workspace) -> Result<PathBuf> {
    build(workspace, OLDEST_MODULE).context("the oldest etcd could not be built")
}

fn build(workspace: &Workspace, from: &str) -> Result<PathBuf> {
    go_program::build(workspace, "etcd", from, go_program::OWN, |_| Ok("-s -w".to_owned()))
}
