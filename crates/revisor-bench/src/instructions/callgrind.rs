//! [`Callgrind`]: a server that runs under callgrind, and how it is told to count.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::channel::Channels;
use crate::server::OwnServer;

/// How long a server may take to become ready: it is fifty times slower than others.
const PATIENCE: Duration = Duration::from_secs(600);

/// A server whose instructions are counted, all threads together.
pub(crate) struct Callgrind {
    server: OwnServer,
    folder: TempDir,
}

impl Callgrind {
    /// Starts a server on an empty folder.
    pub(crate) async fn start(binary: &Path) -> Result<Callgrind> {
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--quiet", "--vgdb=yes", "--fair-sched=yes"])
            .arg(format!("--callgrind-out-file={}", folder.path().join("counts").display()))
            // It is started in a folder of its own.
            .arg(std::path::absolute(binary).context("the binary has no path")?)
            // Who waits for work looks for it at other workers first; how often is a matter of chance.
            .env("TOKIO_WORKER_THREADS", "1");
        let server = OwnServer::start_by(command, &["--controllers=none"], PATIENCE).await?;
        Ok(Callgrind { server, folder })
    }

    pub(crate) fn channels(&self) -> Result<Channels> {
        Channels::new(self.server.endpoint().clone(), None)
    }

    /// Begins to count at nought.
    pub(crate) async fn zero(&self) -> Result<()> {
        self.tell("zero").await
    }

    /// How many instructions were executed since, and by which functions, if that is to be kept. Begins at nought again.
    pub(crate) async fn dump(&self, keep: Option<&Path>) -> Result<u64> {
        self.tell("dump").await?;
        let path = self.dumped()?;
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let total = total(&text).with_context(|| format!("{} has no total", path.display()))?;
        if let Some(keep) = keep {
            std::fs::write(keep, &text).with_context(|| format!("cannot write {}", keep.display()))?;
        }
        std::fs::remove_file(&path).context("cannot remove what was counted")?;
        Ok(total)
    }

    /// The one file that was written and not removed yet. Callgrind numbers them.
    fn dumped(&self) -> Result<PathBuf> {
        let files = std::fs::read_dir(self.folder.path()).context("cannot read what was counted")?;
        let mut dumps = files.flatten().map(|file| file.path()).filter(|path| path.extension().is_some());
        dumps.next().context("callgrind wrote nothing")
    }

    async fn tell(&self, what: &'static str) -> Result<()> {
        let pid = self.server.pid();
        let asking = tokio::task::spawn_blocking(move || vgdb(pid, what));
        let output = asking.await.context("vgdb cannot be asked")??;
        if !output.status.success() {
            bail!("vgdb {what} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

fn vgdb(pid: u32, what: &str) -> Result<Output> {
    Command::new("vgdb").arg(format!("--pid={pid}")).arg(what).output().context("cannot start vgdb, a part of valgrind")
}

/// What a file of callgrind sums up to.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_stands_at_the_end() {
        assert_eq!(total("version: 1\nevents: Ir\nfn=(1) a\n+3 totals\n0 12\n\ntotals: 9034\n"), Some(9034));
        assert_eq!(total("version: 1\nevents: Ir\n"), None);
        assert_eq!(total("totals: many"), None);
    }
}
