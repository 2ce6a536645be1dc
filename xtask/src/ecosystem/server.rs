//! A server for one suite, on a folder of its own, and other programs that run beside it. None outlives its suite.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Ground;

/// A program that ends when it is dropped. What it says goes to a file.
pub(super) struct Running(Child);

impl Running {
    pub(super) fn start(command: &mut Command, log: &Path) -> Result<Running> {
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::null()).stderr(file).spawn();
        Ok(Running(child.with_context(|| format!("cannot start {name}"))?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program on an empty folder, serving.
pub(super) struct Server {
    /// What belongs to the suite: `data`, logs, and whatever it puts there.
    pub(super) folder: PathBuf,
    _process: Running,
}

impl Server {
    pub(super) fn start(ground: &Ground<'_>, suite: &str) -> Result<Server> {
        let folder = ground.folder.join(suite);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let mut command = Command::new(&ground.program);
        command.args(["serve", "--secure-port=0", "--data-dir"]).arg(folder.join("data")).stdout(Stdio::piped());
        let mut process = Running::start(&mut command, &folder.join("server.log"))?;
        let mut line = String::new();
        let out = process.0.stdout.take().context("its output is a pipe")?;
        BufReader::new(out).read_line(&mut line).context("the server does not speak UTF-8")?;
        ensure!(line.starts_with("KUBECONFIG="), "the server did not start; {} says why", folder.display());
        Ok(Server { folder, _process: process })
    }

    /// How clients find it.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("data").join("kubeconfig")
    }
}
