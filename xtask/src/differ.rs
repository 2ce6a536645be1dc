//! `cargo xtask differ`: builds a server and `revisor-differ`, and hands over to it.
//!
//! Debug builds: it is not measured how fast the servers are, and what overflows or breaks a promise should show.

use anyhow::Result;

use crate::workspace::{self, Workspace};

/// Compares with these arguments; see `revisor-differ --help`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    eprintln!("building");
    workspace::run(&mut workspace.cargo(["build", "--quiet", "--workspace", "--bins"]))?;
    let debug = workspace.target().join("debug");
    let mut differ = std::process::Command::new(debug.join("revisor-differ"));
    if !arguments.iter().any(|argument| argument.starts_with("--server") || argument.starts_with("--binary")) {
        differ.arg("--binary").arg(debug.join("revisor"));
    }
    workspace::run(differ.args(arguments))
}
