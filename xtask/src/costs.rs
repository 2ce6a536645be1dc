//! `cargo xtask costs`: builds `revisor-costs` with optimisations and hands over to it.

use anyhow::Result;

use crate::workspace::{self, Workspace};

/// Measures what security costs a request.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    eprintln!("building with optimisations");
    let arguments = ["build", "--profile", "counted", "--quiet", "--package", "revisor-costs"];
    workspace::run(&mut workspace.cargo(arguments))?;
    workspace::run(&mut std::process::Command::new(workspace.target().join("counted").join("revisor-costs")))
}
