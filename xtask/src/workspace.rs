//! Where the workspace lies, and how its tasks start other programs in it.
//!
//! What a task means is not decided here; see the module of the task.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The source tree that this binary was built from, and the folder that its builds go to.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// The workspace that holds the xtask crate.
    pub(crate) fn of_this_build() -> Self {
        // Cargo says at run time where the crate lies. What it said at build time may be stale, because two checkouts
        // that share a target folder share this binary too.
        let home = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&home).parent().unwrap_or(Path::new(".")).to_path_buf();
        // Cargo resolves a relative CARGO_TARGET_DIR against the caller's folder, so it is made absolute here, before
        // any program is started in the root.
        let target = match std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
            Some(dir) => std::path::absolute(&dir).unwrap_or_else(|_| PathBuf::from(dir)),
            None => root.join("target"),
        };
        Self { root, target }
    }

    /// The folder of the top-level Cargo.toml.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder for everything that is built or downloaded; `cargo clean` may remove it at any time.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// A file of the tree, read as text.
    pub(crate) fn read(&self, relative: &str) -> Result<String> {
        std::fs::read_to_string(self.root.join(relative)).with_context(|| format!("cannot read {relative}"))
    }

    /// The target triple of this machine, as the compiler names it.
    pub(crate) fn host(&self) -> Result<String> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let text = capture(Command::new(rustc).arg("-vV").current_dir(&self.root))?;
        let host = text.lines().find_map(|line| line.strip_prefix("host: "));
        host.map(String::from).context("rustc does not name its host")
    }

    /// The Cargo that runs this task, in the root.
    pub(crate) fn cargo<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments).current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        command
    }
}

/// Runs a command whose output goes to the person who waits for it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", name(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", line(command));
    }
    Ok(())
}

/// Runs a command for its standard output; what it says on standard error is passed on.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {}", name(command)))?;
    if !output.status.success() {
        bail!("{} ended with {}", line(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} does not speak UTF-8", name(command)))
}

/// The command as one would type it.
fn line(command: &Command) -> String {
    let mut line = name(command);
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

fn name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}
/// The program with this name on PATH.
pub(crate) fn find_on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}
