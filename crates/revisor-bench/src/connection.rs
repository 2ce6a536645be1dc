//! One kept-alive connection over TLS on which HTTP/1.1 is spoken, and [`Connector`], who opens it. `channel` is for those
//! who do not care which protocol carries their requests.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::Endpoint;
use crate::http::{Body, Head};
use crate::tls;

/// How much is read from the socket at a time: some TLS records, so that large lists take few turns.
const BUFFER: usize = 128 * 1024;

/// How much of a refusal is shown.
pub(crate) const EXCERPT: usize = 400;

/// Opens connections to one server.
#[derive(Clone)]
pub struct Connector {
    pub(crate) endpoint: Endpoint,
    /// What every request says besides its first line and its body.
    headers: String,
    tls: TlsConnector,
}

impl Connector {
    /// A connector to this server, as one who has its token.
    pub fn new(endpoint: Endpoint) -> Result<Self> {
        Self::speaking(endpoint, b"http/1.1")
    }

    /// The same for another protocol, which the caller has to speak then.
    pub(crate) fn speaking(endpoint: Endpoint, protocol: &[u8]) -> Result<Self> {
        let config = tls::client(protocol)?;
        let headers =
            format!(" HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n", endpoint.address, endpoint.token);
        Ok(Self { endpoint, headers, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<Connection> {
        let stream = self.shake_hands().await?;
        Ok(Connection { stream, buffer: vec![0; BUFFER], start: 0, end: 0 })
    }

    /// Opens a connection on which nothing was said yet.
    pub(crate) async fn shake_hands(&self) -> Result<TlsStream<TcpStream>> {
        let address = self.endpoint.address;
        let stream = TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        let name = ServerName::IpAddress(address.ip().into());
        self.tls.connect(name, stream).await.with_context(|| format!("no TLS with {address}"))
    }

    /// Writes a request with headers of its own into `buffer`, in place of what was there.
    pub fn request_with(
        &self,
        buffer: &mut Vec<u8>,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Option<&[u8]>,
    ) {
        buffer.clear();
        for part in [method, " ", path, &self.headers] {
            buffer.extend_from_slice(part.as_bytes());
        }
        for (name, value) in headers {
            for part in [name, ": ", value, "\r\n"] {
                buffer.extend_from_slice(part.as_bytes());
            }
        }
        if let Some(body) = body {
            buffer.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        buffer.extend_from_slice(b"\r\n");
        buffer.extend_from_slice(body.unwrap_or_default());
    }

    /// Writes a request into `buffer`, in place of what was there.
    pub(crate) fn request(&self, buffer: &mut Vec<u8>, request: &Request<'_>) {
        let Request { method, path, accepts, media_type, body } = *request;
        buffer.clear();
        for part in [method, " ", path, &self.headers, "Accept: ", accepts, "\r\n"] {
            buffer.extend_from_slice(part.as_bytes());
        }
        if !body.is_empty() {
            let length = body.len().to_string();
            for part in ["Content-Type: ", media_type, "\r\nContent-Length: ", &length, "\r\n"] {
                buffer.extend_from_slice(part.as_bytes());
            }
        }
        buffer.extend_from_slice(b"\r\n");
        buffer.extend_from_slice(body);
    }
}

/// What a client asks for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// How the answer is to come.
    pub(crate) accepts: &'a str,
    /// What the body is.
    pub(crate) media_type: &'a str,
    pub(crate) body: &'a [u8],
}

impl<'a> Request<'a> {
    /// To read something in one form.
    pub(crate) fn get(path: &'a str, accepts: &'a str) -> Request<'a> {
        Request { method: "GET", path, accepts, ..Request::default() }
    }
}

/// An answer as it came, whatever it says.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    /// The status code.
    pub status: u16,
    /// Names in small letters, and values, in their order.
    pub headers: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Vec<u8>,
}

/// A connection that carries one request at a time.
pub struct Connection {
    stream: TlsStream<TcpStream>,
    /// Bytes from `start` to `end` have been read from the socket and not been looked at.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Connection {
    /// Sends a request and reads all of its answer, also one that is no success.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Exchange> {
        let mut head = self.send(request).await?;
        let headers = Head::headers(&self.buffer[self.start..self.start + head.length]);
        self.start += head.length;
        // The head speaks of a body that does not come.
        if request.starts_with(b"HEAD ") {
            head.body = Body::Done;
        }
        let mut body = Vec::new();
        while head.body != Body::Done {
            self.read_body(&mut head.body, &mut |bytes| body.extend_from_slice(bytes)).await?;
        }
        Ok(Exchange { status: head.status, headers, body })
    }

    /// Sends a request and waits for the head of its answer, which stays in the buffer.
    async fn send(&mut self, request: &[u8]) -> Result<Head> {
        self.stream.write_all(request).await.context("cannot send a request")?;
        self.stream.flush().await.context("cannot send a request")?;
        loop {
            if let Some(head) = Head::parse(&self.buffer[self.start..self.end])? {
                return Ok(head);
            }
            self.fill().await?;
        }
    }

    /// Sends a request and reads the head of its answer. The caller reads the body, which may have no end.
    pub(crate) async fn open(&mut self, request: &[u8]) -> Result<Body> {
        let mut head = self.send(request).await?;
        self.start += head.length;
        if !(200..300).contains(&head.status) {
            let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
            let mut text = Vec::new();
            while head.body != Body::Done && text.len() < EXCERPT {
                self.read_body(&mut head.body, &mut |bytes| text.extend_from_slice(bytes)).await?;
            }
            bail!(refusal(&String::from_utf8_lossy(line), head.status, &text));
        }
        Ok(head.body)
    }

    /// Reads what is there of a body; waits if nothing is.
    pub(crate) async fn read_body(&mut self, body: &mut Body, sink: &mut impl FnMut(&[u8])) -> Result<()> {
        let taken = body.decode(&self.buffer[self.start..self.end], sink)?;
        self.start += taken;
        if taken == 0 && *body != Body::Done {
            self.fill().await?;
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        match self.stream.read(&mut self.buffer[self.end..]).await.context("cannot read an answer")? {
            0 => bail!("the server closed the connection"),
            count => self.end += count,
        }
        Ok(())
    }
}

/// What is said of an answer that is no success.
pub(crate) fn refusal(asked: &str, status: u16, text: &[u8]) -> String {
    format!("{asked}: {status} {}", String::from_utf8_lossy(&text[..text.len().min(EXCERPT)]))
}
