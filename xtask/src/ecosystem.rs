//! `cargo xtask ecosystem`: what people use already, run against the program as it is. It takes minutes, and whatever Go has
//! to fetch and build, so it is no part of `cargo xtask test`.

use std::process::Command;

use anyhow::Result;

use crate::go_program::{go, wanted_go};
use crate::workspace::{self, Workspace};

/// The suite of controller-runtime's envtest.
const ENVTEST: &str = "tests/envtest";

/// Builds the program, lays out the folder in which envtest looks for a control plane, and runs the suite.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    workspace::run(&mut workspace.cargo(["build", "--release", "--quiet", "--package", "revisor"]))?;
    let assets = workspace.target().join("ecosystem").join("envtest");
    let program = workspace.target().join("release").join("revisor");
    workspace::run(Command::new(program).args(["envtest", "install"]).arg(&assets))?;
    let go = go(workspace, "the suite of envtest", wanted_go(&workspace.read(&format!("{ENVTEST}/go.mod"))?)?)?;
    let mut suite = Command::new(go);
    suite
        .args(["test", "-mod=readonly", "-count=1", "-v", "./..."])
        .current_dir(workspace.root().join(ENVTEST))
        .env("KUBEBUILDER_ASSETS", assets)
        .env("GOTOOLCHAIN", "local")
        .env_remove("GOFLAGS");
    workspace::run(&mut suite)
}
