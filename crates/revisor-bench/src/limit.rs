//! The limit of fan-out: a bare loop that writes ready events to as many sockets, and does nothing else.
//!
//! No server can do with less than what it costs to encrypt the same bytes for every watcher and to hand them to the
//! kernel. The loop runs on a thread of its own, whose CPU time counts; TLS is that of the measured server, and the other
//! side are the same watchers, which the loop waits for after every round, as the writers of the measured phase do. A lone
//! event costs the loop more than one of many, as it does a server: whoever has paused finds nothing in the caches of the
//! processor, and wakes every watcher anew.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::channel::Channels;
use crate::connection::Request;
use crate::encoding::{Encoding, EventCounter};
use crate::fan_out::{FanOut, PAUSE, ROUND};
use crate::process::thread_cpu;
use crate::workload::Outcome;
use crate::{Endpoint, tls};

/// What every watch begins with.
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(30);

type Socket = StreamOwned<ServerConnection, TcpStream>;

/// What is written, and to how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) watchers: u32,
    pub(crate) encoding: Encoding,
    /// The bytes of one event.
    pub(crate) event_bytes: u64,
    pub(crate) way: Way,
    pub(crate) time: Duration,
}

/// How the loop writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The events of a round one after the other.
    OneByOne,
    /// All events of a round at once, as if all were known when the first is.
    Together,
    /// One event, with a pause before it.
    Alone,
}

/// To how many the loop writes at most. Both sides are in this process, which may not open as many files as there are
/// watchers of a server; what one costs does not depend on it any more.
const MOST_WATCHERS: u32 = 4000;

impl Limit {
    /// Runs the loop. The operations of the outcome are events.
    pub(crate) async fn run(self) -> Result<Outcome> {
        let limit = Limit { watchers: self.watchers.min(MOST_WATCHERS), ..self };
        limit.run_to_all().await
    }

    async fn run_to_all(self) -> Result<Outcome> {
        let (config, _) = tls::server()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
        let address = listener.local_addr().context("no port is free")?;
        // Whoever has seen all of a round says so; the loop says that a round was written, and the outcome at the end.
        let (seen, is_seen) = mpsc::channel();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let config = Arc::new(config);
        let thread = std::thread::spawn(move || {
            let sockets = accept(&listener, &config, self.watchers)?;
            self.write_rounds(sockets, &tell, &is_seen)
        });
        let mut fan_out = self.watch(address).await?;
        while let Some(writes) = told.recv().await {
            fan_out.reach(writes).await?;
            if seen.send(()).is_err() {
                break;
            }
        }
        fan_out.close().await;
        let joined =
            tokio::task::spawn_blocking(move || thread.join()).await.context("the loop cannot be waited for")?;
        joined.map_err(|_| anyhow::anyhow!("the loop panicked"))?
    }

    /// The other side.
    async fn watch(self, address: SocketAddr) -> Result<FanOut> {
        let channels = Channels::new(Endpoint::new(&format!("https://{address}"), "none")?, None)?;
        let mut fan_out = FanOut::of(self.watchers);
        for _ in 0..self.watchers {
            let mut channel = channels.open().await?;
            channel.open(&Request::get("/", self.encoding.media_type())).await?;
            fan_out.watch(channel, EventCounter::new(self.encoding), false);
        }
        Ok(fan_out)
    }

    fn write_rounds(
        self,
        mut sockets: Vec<Socket>,
        tell: &tokio::sync::mpsc::UnboundedSender<u64>,
        is_seen: &mpsc::Receiver<()>,
    ) -> Result<Outcome> {
        let event = chunk(&self.encoding.event(self.event_bytes));
        let (events_per_write, writes_per_round) = match self.way {
            Way::OneByOne => (1, ROUND),
            Way::Together => (ROUND, 1),
            Way::Alone => (1, 1),
        };
        let events = event.repeat(events_per_write);
        let events_per_round = (events_per_write * writes_per_round) as u64;
        let mut outcome = Outcome::default();
        let mut rounds = 0;
        let (start, before) = (Instant::now(), thread_cpu()?);
        while start.elapsed() < self.time {
            if self.way == Way::Alone {
                std::thread::sleep(PAUSE);
            }
            let round = Instant::now();
            for _ in 0..writes_per_round {
                for socket in &mut sockets {
                    socket.write_all(&events).context("a watcher has left")?;
                }
            }
            rounds += 1;
            // Who waits for these has left for a reason that is told there.
            if tell.send(rounds * events_per_round).is_err() || is_seen.recv().is_err() {
                break;
            }
            outcome.latencies.push(round.elapsed());
        }
        outcome.cpu = Some(thread_cpu()?.saturating_sub(before));
        outcome.elapsed = start.elapsed();
        outcome.operations = rounds * events_per_round * u64::from(self.watchers);
        Ok(outcome)
    }
}

/// Lets as many watchers in, whatever they ask for.
fn accept(listener: &TcpListener, config: &Arc<ServerConfig>, watchers: u32) -> Result<Vec<Socket>> {
    let mut sockets = Vec::new();
    for _ in 0..watchers {
        let (stream, _) = listener.accept().context("no watcher comes")?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        stream.set_read_timeout(Some(PATIENCE)).context("cannot bound a wait")?;
        let mut socket = Socket::new(ServerConnection::new(config.clone()).context("TLS cannot be set up")?, stream);
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        while !request.ends_with(b"\r\n\r\n") {
            let count = socket.read(&mut buffer).context("a watcher does not ask")?;
            anyhow::ensure!(count > 0, "a watcher has left");
            request.extend_from_slice(&buffer[..count]);
        }
        socket.write_all(HEAD).context("a watcher has left")?;
        sockets.push(socket);
    }
    Ok(sockets)
}

/// An event as HTTP/1.1 frames it.
fn chunk(event: &[u8]) -> Vec<u8> {
    [format!("{:X}\r\n", event.len()).as_bytes(), event, b"\r\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_watcher_gets_every_event() {
        for (encoding, way, events) in [
            (Encoding::Json, Way::OneByOne, ROUND),
            (Encoding::Json, Way::Together, ROUND),
            (Encoding::Json, Way::Alone, 1),
            (Encoding::Protobuf, Way::Together, ROUND),
        ] {
            let time = Duration::from_millis(20);
            let limit = Limit { watchers: 3, encoding, event_bytes: 1000, way, time };
            let outcome = limit.run().await.expect("nobody leaves");
            assert!(outcome.operations > 0 && outcome.operations % (3 * events as u64) == 0, "{outcome:?}");
            assert!(outcome.cpu.is_some_and(|cpu| cpu > Duration::ZERO), "{outcome:?}");
        }
    }
}
