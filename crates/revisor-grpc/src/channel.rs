//! [`UnixChannel`]: calls over one connection, which is made when it is needed and made anew when it is lost.

use std::future::poll_fn;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use http::{HeaderMap, Method, Request, Version};
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{Code, Status};

/// The largest answer that is taken. Keys and tokens are far smaller.
const MOST_ANSWER_BYTES: usize = 1 << 20;

/// How long after an attempt to connect the next one is made.
const RECONNECT: Duration = Duration::from_millis(100);

/// A plugin behind a socket. Calls wait until it is there, as long as they may.
#[derive(Debug)]
pub struct UnixChannel {
    path: String,
    connection: Mutex<Option<SendRequest<Bytes>>>,
}

impl UnixChannel {
    /// A channel to the socket at `path`, see [`parse_endpoint`](crate::parse_endpoint). Connects when it is used.
    pub fn new(path: impl Into<String>) -> UnixChannel {
        UnixChannel { path: path.into(), connection: Mutex::new(None) }
    }

    /// Calls `method` (`/package.Service/Method`) and waits for the answer, at most for `patience`.
    pub async fn call(&self, method: &str, message: &[u8], patience: Duration) -> Result<Bytes, Status> {
        let deadline = Instant::now() + patience;
        let mut last = None;
        loop {
            let attempt = timeout_at(deadline, self.attempt(method, message, patience)).await;
            match attempt {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(Failure::Status(status))) => return Err(status),
                // Nobody was there, so nobody has heard of the call.
                Ok(Err(Failure::Connection(error))) => last = Some(error.to_string()),
                Err(_) => return Err(exceeded(last)),
            }
            if Instant::now() + RECONNECT > deadline {
                return Err(exceeded(last));
            }
            sleep_until(Instant::now() + RECONNECT).await;
        }
    }

    async fn attempt(&self, method: &str, message: &[u8], patience: Duration) -> Result<Bytes, Failure> {
        let sender = self.sender().await?;
        let request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            .uri(format!("http://localhost{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("user-agent", "revisor")
            .header("grpc-timeout", format!("{}m", patience.as_millis().min(99_999_999)))
            .body(())
            .map_err(|error| internal(&error))?;
        let mut sender = match sender.ready().await {
            Ok(sender) => sender,
            Err(error) => {
                self.connection.lock().await.take();
                return Err(Failure::Connection(io::Error::other(error)));
            }
        };
        let (answer, mut body) = sender.send_request(request, false).map_err(unavailable)?;
        let length = u32::try_from(message.len()).map_err(|error| internal(&error))?;
        let mut framed = BytesMut::with_capacity(5 + message.len());
        framed.put_u8(0);
        framed.put_u32(length);
        framed.put_slice(message);
        body.send_data(framed.freeze(), true).map_err(unavailable)?;
        let (head, mut body) = answer.await.map_err(unavailable)?.into_parts();
        if let Some(status) = status_of(&head.headers) {
            // An answer without a body says all in its head.
            status?;
        }
        if head.status != http::StatusCode::OK {
            return Err(Status::new(Code::UNAVAILABLE, format!("unexpected HTTP status code {}", head.status)).into());
        }
        let mut received = BytesMut::new();
        while let Some(data) = body.data().await {
            let data = data.map_err(unavailable)?;
            if received.len() + data.len() > MOST_ANSWER_BYTES {
                return Err(Status::new(Code::new(8), "the answer is too large").into());
            }
            received.extend_from_slice(&data);
            // Fails only if the stream is over, which the next read tells.
            let _ = body.flow_control().release_capacity(data.len());
        }
        let trailers = poll_fn(|context| body.poll_trailers(context)).await.map_err(unavailable)?.unwrap_or_default();
        status_of(&trailers).unwrap_or_else(|| Err(Status::new(Code::INTERNAL, "the answer has no status")))?;
        unframe(received.freeze()).map_err(Failure::Status)
    }

    async fn sender(&self) -> Result<SendRequest<Bytes>, Failure> {
        let mut connection = self.connection.lock().await;
        if let Some(sender) = &*connection {
            return Ok(sender.clone());
        }
        let stream = self.connect().await.map_err(Failure::Connection)?;
        let shaken = h2::client::handshake(stream).await;
        let (sender, driver) = shaken.map_err(|error| Failure::Connection(io::Error::other(error)))?;
        // Ends with the connection; whoever uses it hears of that.
        tokio::spawn(driver);
        *connection = Some(sender.clone());
        Ok(sender)
    }

    async fn connect(&self) -> io::Result<UnixStream> {
        let Some(name) = self.path.strip_prefix('@') else { return UnixStream::connect(&self.path).await };
        let address = SocketAddr::from_abstract_name(name)?;
        let stream = std::os::unix::net::UnixStream::connect_addr(&address)?;
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }
}

/// Why one attempt came to nothing.
enum Failure {
    /// Nobody has heard of it.
    Connection(io::Error),
    Status(Status),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure::Status(status)
    }
}

fn unavailable(error: h2::Error) -> Failure {
    Status::new(Code::UNAVAILABLE, error.to_string()).into()
}

fn internal(error: &dyn std::error::Error) -> Failure {
    Status::new(Code::INTERNAL, error.to_string()).into()
}

fn exceeded(last: Option<String>) -> Status {
    let last = last.map(|error| format!(": connection error: {error}")).unwrap_or_default();
    Status::new(Code::DEADLINE_EXCEEDED, format!("context deadline exceeded{last}"))
}

/// What headers or trailers say of how the call went, if they say it.
fn status_of(headers: &HeaderMap) -> Option<Result<(), Status>> {
    let code =
        headers.get("grpc-status")?.to_str().ok().and_then(|code| code.parse().ok()).map_or(Code::UNKNOWN, Code::new);
    if code == Code::OK {
        return Some(Ok(()));
    }
    let message = headers.get("grpc-message").map(|message| message.as_bytes()).unwrap_or_default();
    let message = percent_encoding::percent_decode(message).decode_utf8_lossy().into_owned();
    Some(Err(Status { code, message }))
}

fn unframe(received: Bytes) -> Result<Bytes, Status> {
    let odd = |what: &str| Status::new(Code::INTERNAL, what);
    let Some((head, message)) = received.split_first_chunk::<5>() else { return Err(odd("the answer has no message")) };
    let [compressed, length @ ..] = *head;
    if compressed != 0 {
        return Err(odd("the answer is compressed, which was not asked for"));
    }
    if u32::from_be_bytes(length) as usize != message.len() {
        return Err(odd("the answer is not one message"));
    }
    Ok(received.slice(5..))
}
