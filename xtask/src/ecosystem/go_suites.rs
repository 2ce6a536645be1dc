//! Suites in Go that start a control plane by themselves, as envtest does, from the folder of assets that they are given.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::Ground;
use super::tally::{Runner, Tally, count};
use crate::go_program::{go, module_folder, wanted_go};
use crate::workspace;

/// Our own suite. Its go.mod also says which controller-runtime is meant.
const ENVTEST: &str = "tests/envtest";

/// The packages of controller-runtime whose suites are about a control plane.
const PACKAGES: [&str; 9] = [
    "./pkg/builder",
    "./pkg/cache",
    "./pkg/client",
    "./pkg/controller",
    "./pkg/envtest",
    "./pkg/handler",
    "./pkg/manager",
    "./pkg/source",
    "./pkg/webhook",
];

/// What suites of operators do, and how long `Start` takes them.
pub(super) fn envtest(ground: &Ground<'_>, assets: &Path) -> Result<Tally> {
    let folder = ground.workspace.root().join(ENVTEST);
    run(ground, &folder, &["./..."], assets)
}

/// The suites that controller-runtime is published with, from its module, in a copy that may be written to.
pub(super) fn controller_runtime(ground: &Ground<'_>, assets: &Path) -> Result<Tally> {
    let module = ground.workspace.root().join(ENVTEST);
    let source = module_folder(&suite_go(ground)?, &module, "sigs.k8s.io/controller-runtime")?;
    let copy = ground.folder.join("controller-runtime");
    if copy.exists() {
        std::fs::remove_dir_all(&copy).with_context(|| format!("cannot empty {}", copy.display()))?;
    }
    std::fs::create_dir_all(&ground.folder).with_context(|| format!("cannot create {}", ground.folder.display()))?;
    // Files of the module cache are for reading only; some of the tests write beside themselves.
    workspace::run(Command::new("cp").args(["-R", "--no-preserve=mode"]).args([&source, &copy]))?;
    run(ground, &copy, &PACKAGES, assets)
}

fn run(ground: &Ground<'_>, folder: &Path, packages: &[&str], assets: &Path) -> Result<Tally> {
    let mut suite = Command::new(suite_go(ground)?);
    // One package after the other, so that the time of each is its own.
    suite.args(["test", "-mod=readonly", "-count=1", "-v", "-p=1"]).args(packages).current_dir(folder);
    suite.env("KUBEBUILDER_ASSETS", assets).env("GOTOOLCHAIN", "local").env_remove("GOFLAGS");
    count(&mut suite, Runner::Go)
}

fn suite_go(ground: &Ground<'_>) -> Result<PathBuf> {
    let module = ground.workspace.read(&format!("{ENVTEST}/go.mod"))?;
    go(ground.workspace, "the suites of envtest", wanted_go(&module)?)
}
