//! [`FaultyProxy`]: what stands between a server and its etcd, and passes on what it gets until it is told otherwise.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What happens to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// All is passed on at once.
    Nothing,
    /// All is passed on after a while.
    Delay(Duration),
    /// Connections that are there end, in both directions.
    Cut,
    /// Connections that are there end in the direction of the answers: requests still arrive.
    HalfClose,
}

pub(super) struct FaultyProxy {
    address: SocketAddr,
    fault: watch::Sender<Fault>,
    task: JoinHandle<()>,
}

impl FaultyProxy {
    /// A proxy before the server at this URL.
    pub(super) async fn before(url: &str) -> FaultyProxy {
        let target: SocketAddr = url.trim_start_matches("http://").parse().expect("an address");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("there are ports");
        let address = listener.local_addr().expect("it has an address");
        let (fault, faults) = watch::channel(Fault::Nothing);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut faults = faults.clone();
                // What happened before is not about this connection.
                faults.mark_unchanged();
                if let Ok(server) = TcpStream::connect(target).await {
                    tokio::spawn(connect(client, server, faults));
                }
            }
        });
        FaultyProxy { address, fault, task }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }
}

impl Drop for FaultyProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn connect(client: TcpStream, server: TcpStream, faults: watch::Receiver<Fault>) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = pass(from_client, to_server, faults.clone(), false);
    let answers = pass(from_server, to_client, faults, true);
    tokio::join!(requests, answers);
}

/// Passes on one direction until it ends or is ended.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut faults: watch::Receiver<Fault>, is_answers: bool) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = tokio::select! {
            changed = faults.changed() => {
                let is_over = match *faults.borrow_and_update() {
                    Fault::Cut => true,
                    Fault::HalfClose => is_answers,
                    Fault::Nothing | Fault::Delay(_) => changed.is_err(),
                };
                if is_over {
                    return;
                }
                continue;
            }
            read = from.read(&mut buffer) => read,
        };
        let Ok(length @ 1..) = read else { return };
        let fault = *faults.borrow();
        if let Fault::Delay(delay) = fault {
            // Until the time is over, or something else happens.
            let _ = tokio::time::timeout(delay, faults.clone().wait_for(|now| *now != fault)).await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
