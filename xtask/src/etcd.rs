//! The etcd of the tests: built from the Go module under `tests/etcd`, which pins its release.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::go_program;
use crate::workspace::Workspace;

/// The environment variable by which tests learn the path.
pub(crate) const VARIABLE: &str = "REVISOR_ETCD";

/// The module that it is built from.
const MODULE: &str = "tests/etcd";

/// The path of an etcd, built at need.
pub(crate) fn provide(workspace: &Workspace) -> Result<PathBuf> {
    go_program::build(workspace, "etcd", MODULE, |_| Ok("-s -w".to_owned())).context("no etcd could be built")
}
