//! [`DebugSocket`]: the pages for debugging at a socket of this machine, for whoever may open its file
//! (`--debug-socket-path`).

use std::convert::Infallible;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use revisor_api::DebugPages;
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

/// How many may be connected at a time.
const CONNECTIONS: usize = 16;

/// A socket that is served until it is dropped.
pub(crate) struct DebugSocket {
    path: PathBuf,
    serving: JoinHandle<()>,
}

impl DebugSocket {
    /// Serves these pages at a path. As in the original, what is there is taken away first.
    pub(crate) fn open(path: &Path, pages: DebugPages) -> anyhow::Result<DebugSocket> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("failed to remove ({})", path.display()));
            }
            _ => {}
        }
        let listener = UnixListener::bind(path).with_context(|| format!("listen error ({})", path.display()))?;
        // Who asks is not known there, so it is for whoever runs the server.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
            .with_context(|| format!("cannot make {} private", path.display()))?;
        let line: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let pages = pages.with_command_line(line.join("\0"));
        Ok(DebugSocket { path: path.to_owned(), serving: tokio::spawn(serve(listener, pages)) })
    }
}

impl Drop for DebugSocket {
    fn drop(&mut self) {
        self.serving.abort();
        // A file that is left behind is taken away by the next start.
        let _ = fs::remove_file(&self.path);
    }
}

async fn serve(listener: UnixListener, pages: DebugPages) {
    let room = std::sync::Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    // Whoever drops this drops those who are served, too.
    while let Ok(place) = room.clone().acquire_owned().await {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else { continue };
        let pages = pages.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let pages = pages.clone();
                async move { Ok::<_, Infallible>(pages.answer(request).await) }
            });
            // Who goes away is no concern of the server.
            let _ =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}
