//! Virtual environments of Python under `target/tools`, for tools and clients that come from PyPI.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow};

use crate::workspace::{self, Workspace};

/// The environment variable by which tests learn the Python that has the upstream client.
pub(crate) const VARIABLE: &str = "REVISOR_PYTHON";

/// The upstream client, of the release that this server behaves as.
const CLIENT: &str = "kubernetes==36.0.3";

/// The Python of an environment that has the upstream Kubernetes client, made at need.
pub(crate) fn provide(workspace: &Workspace) -> Result<PathBuf> {
    let folder = environment(workspace, &CLIENT.replace("==", "-"), CLIENT)
        .context("the tests need the Kubernetes client for Python")?;
    Ok(folder.join("bin").join("python"))
}

/// An environment with one package in it. What is finished is kept, so a second call needs no network.
pub(crate) fn environment(workspace: &Workspace, name: &str, package: &str) -> Result<PathBuf> {
    let folder = workspace.target().join("tools").join(format!("{name}-venv"));
    let finished = folder.join("finished");
    if finished.is_file() {
        return Ok(folder);
    }
    let python = workspace::find_on_path("python3").ok_or_else(|| anyhow!("there is no python3 to install it with"))?;
    eprintln!("installing {package} from PyPI into {}", folder.display());
    let quiet = |command: &mut Command| workspace::run(command.stdout(Stdio::null()));
    quiet(Command::new(python).args(["-m", "venv", "--clear"]).arg(&folder))?;
    let pip = folder.join("bin").join("pip");
    quiet(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check"]).arg(package))?;
    std::fs::write(&finished, package).with_context(|| format!("cannot write {}", finished.display()))?;
    Ok(folder)
}
