//! `cargo xtask growth`: builds `revisor-growth` with optimisations and hands over to it.

use anyhow::Result;

use crate::workspace::{self, Workspace};

/// Measures with these arguments; see `revisor-growth --help`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    eprintln!("building with optimisations");
    workspace::run(&mut workspace.cargo(["build", "--release", "--quiet", "--package", "revisor-growth"]))?;
    let program = workspace.target().join("release").join("revisor-growth");
    workspace::run(std::process::Command::new(program).args(arguments))
}
