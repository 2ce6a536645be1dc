//! The API server behind the program in the tests: built from the Go module under `tests/extension`, which pins its
//! release.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::go_program;
use crate::workspace::Workspace;

/// The environment variable by which tests learn the path.
pub(crate) const VARIABLE: &str = "REVISOR_EXTENSION";

/// The module that it is built from.
const MODULE: &str = "tests/extension";

/// The path of such a server, built at need.
pub(crate) fn provide(workspace: &Workspace) -> Result<PathBuf> {
    let flags = |_: &str| Ok("-s -w".to_owned());
    go_program::build(workspace, "extension", MODULE, go_program::OWN, flags)
        .context("no sample API server could be built")
}
