//! A server of our own, on an empty folder or an etcd, for as long as the measurement takes.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::Endpoint;
use crate::channel::Channels;
use crate::connection::Request;
use crate::process::Processes;
use crate::workload::Outcome;

/// How long a server may take to become ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a starting server is asked. It bounds how exact the time to ready is.
const PAUSE: Duration = Duration::from_millis(1);

/// How much of the log is shown when the server does not start.
const EXCERPT: usize = 2000;

/// A running server. Dropping it ends the process and removes its folder.
pub struct OwnServer {
    child: Child,
    folder: TempDir,
    pub(crate) endpoint: Endpoint,
    /// From the start of the process to the first answer of `/readyz`.
    pub(crate) ready: Duration,
}

impl OwnServer {
    /// Starts the binary with these flags and waits until it is ready.
    pub async fn start(binary: &Path, flags: &[&str]) -> Result<Self> {
        Self::start_by(Command::new(binary), flags, PATIENCE).await
    }

    /// Starts a server by a command that takes its flags, the binary or somebody who runs it, and that may take so long.
    pub(crate) async fn start_by(mut command: Command, flags: &[&str], patience: Duration) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        let token = format!("bench-{}", std::process::id());
        let tokens = folder.path().join("tokens.csv");
        std::fs::write(&tokens, format!("{token},bench,bench,\"system:masters\"\n")).context("cannot write tokens")?;
        let log = std::fs::File::create(folder.path().join("log")).context("cannot create a log")?;
        let port = free_port()?;

        let start = Instant::now();
        let child = command
            .arg("serve")
            .arg(format!("--secure-port={port}"))
            .arg("--bind-address=127.0.0.1")
            .arg(format!("--data-dir={}", folder.path().join("data").display()))
            .arg(format!("--cert-dir={}", folder.path().join("certs").display()))
            .arg(format!("--token-auth-file={}", tokens.display()))
            .arg("--authorization-mode=RBAC")
            .args(flags)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share the log")?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let endpoint = Endpoint::new(&format!("https://127.0.0.1:{port}"), &token)?;
        let mut server = Self { child, folder, endpoint, ready: Duration::ZERO };
        server.wait_until_ready(start, patience).await?;
        Ok(server)
    }

    /// Where it listens, and the token of one who may do everything.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The start as something that was measured.
    pub(crate) fn started(&self) -> Result<Outcome> {
        let mut outcome =
            Outcome { operations: 1, elapsed: self.ready, cpu: self.processes().cpu()?, ..Outcome::default() };
        outcome.latencies.push(self.ready);
        Ok(outcome)
    }

    /// Bytes of memory that it holds.
    pub(crate) fn resident(&self) -> Result<Option<u64>> {
        self.processes().resident()
    }

    fn processes(&self) -> Processes {
        Processes::new(vec![self.pid()])
    }

    async fn wait_until_ready(&mut self, start: Instant, patience: Duration) -> Result<()> {
        let channels = Channels::new(self.endpoint.clone(), None)?;
        let request = Request::get("/readyz", "*/*");
        loop {
            let attempt = async { channels.open().await?.call(&request, &mut |_| ()).await };
            let problem = match tokio::time::timeout(patience, attempt).await {
                Ok(Ok(())) => {
                    self.ready = start.elapsed();
                    return Ok(());
                }
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => "no answer".to_owned(),
            };
            if let Some(status) = self.child.try_wait().context("cannot ask for the server's state")? {
                bail!("the server ended with {status} instead of starting:\n{}", self.log());
            }
            if start.elapsed() > patience {
                bail!("the server is not ready after {patience:?} ({problem}):\n{}", self.log());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The end of what the server wrote.
    fn log(&self) -> String {
        let bytes = std::fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(EXCERPT)..]).into_owned()
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        // It may have ended by itself; in either case nothing is left to do about an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago, which is as good as it gets without handing over the socket.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr().context("no port is free")?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_does_not_start_is_an_error() {
        let error = OwnServer::start(Path::new("/bin/false"), &[]).await.err().expect("it does not start");
        assert!(format!("{error:#}").contains("ended with exit status: 1"), "{error:#}");
        assert!(OwnServer::start(Path::new("/nonexistent/binary"), &[]).await.is_err());
    }
}
