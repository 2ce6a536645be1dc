//! The listening socket, and what to do when it cannot accept.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};

/// Connections that the kernel may hold before they are accepted.
const BACKLOG: i32 = 1024;

/// A peer that is silent for this long is asked whether it is still there, this many times at this interval.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// The pause after an accept that failed for want of something, doubled every time until the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Listener {
    socket: TcpListener,
    pause: Duration,
}

impl Listener {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Listener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(Listener { socket: TcpListener::from_std(socket.into())?, pause: FIRST_PAUSE })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The next connection. Failures are logged and waited out: a server that stops accepting because it ran out
    /// of file descriptors once is worse than one that is slow for a while. `relieve` is called each time, to give
    /// back what others may need.
    pub(super) async fn accept(&mut self, relieve: impl Fn()) -> (TcpStream, SocketAddr) {
        loop {
            match self.socket.accept().await {
                Ok((stream, address)) => {
                    self.pause = FIRST_PAUSE;
                    prepare(&stream);
                    return (stream, address);
                }
                Err(error) if is_the_peers(&error) => tracing::debug!(%error, "a connection ended before it began"),
                Err(error) => {
                    tracing::warn!(%error, pause = ?self.pause, "cannot accept connections");
                    relieve();
                    tokio::time::sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

/// Answers are written whole, so waiting for more to send only delays them. Probes find peers that vanished without
/// a word, which an HTTP/1.1 watch would not notice. Both fail only on a socket that is dead already.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let keepalive =
        TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL).with_retries(KEEPALIVE_PROBES);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// Whether a failed accept says something about that connection only, so that the next can be tried at once.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_failures_call_for_a_pause() {
        // Linux' numbers: out of file descriptors, in the process and in the system; out of memory, for buffers.
        for (name, code, at_once) in [
            ("ECONNABORTED", 103, true),
            ("ECONNRESET", 104, true),
            ("EINTR", 4, true),
            ("EMFILE", 24, false),
            ("ENFILE", 23, false),
            ("ENOMEM", 12, false),
            ("ENOBUFS", 105, false),
        ] {
            assert_eq!(is_the_peers(&io::Error::from_raw_os_error(code)), at_once, "{name}");
        }
    }

    #[tokio::test]
    async fn accepted_sockets_are_prepared() {
        let mut listener = Listener::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let address = listener.address().expect("bound");
        let (client, (accepted, _)) = tokio::join!(TcpStream::connect(address), listener.accept(|| ()));
        client.expect("connected");
        assert!(accepted.nodelay().expect("an open socket"));
        assert!(SockRef::from(&accepted).keepalive().expect("an open socket"));
    }
}
