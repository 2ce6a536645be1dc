//! [`Http2Client`]: one HTTP/2 connection over TLS, shared by all who have a copy of it, as components share theirs.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Uri};

use crate::connection::{Connector, EXCERPT, Request, refusal};

/// What is agreed on in the handshake.
pub(crate) const PROTOCOL: &[u8] = b"h2";

/// What a server may send ahead, per stream and in all: as much as Go's client allows.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// The largest frame that is taken.
const FRAME: u32 = 1 << 20;

/// A connection. It ends with its last copy.
#[derive(Clone)]
pub(crate) struct Http2Client {
    sender: SendRequest<Bytes>,
    authority: String,
    authorization: HeaderValue,
}

impl Http2Client {
    /// Opens a connection.
    pub(crate) async fn connect(connector: &Connector) -> Result<Http2Client> {
        let stream = connector.shake_hands().await?;
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME)
            .enable_push(false);
        let (sender, connection) = builder.handshake(stream).await.context("no HTTP/2")?;
        // How a connection ends, those notice whose streams end with it.
        tokio::spawn(async move { drop(connection.await) });
        let endpoint = &connector.endpoint;
        let authorization = HeaderValue::try_from(format!("Bearer {}", endpoint.token)).context("a token")?;
        Ok(Http2Client { sender, authority: endpoint.address.to_string(), authorization })
    }

    /// Sends a request and waits for the head of its answer. One that is no success is an error.
    pub(crate) async fn open(&self, request: &Request<'_>) -> Result<RecvStream> {
        let Request { method, path, accepts, media_type, body } = *request;
        let uri = Uri::builder().scheme("https").authority(self.authority.as_str()).path_and_query(path);
        let mut head = http::Request::builder()
            .method(Method::from_bytes(method.as_bytes())?)
            .uri(uri.build()?)
            .header(AUTHORIZATION, &self.authorization)
            .header(ACCEPT, accepts);
        if !body.is_empty() {
            head = head.header(CONTENT_TYPE, media_type);
        }
        let mut sender = self.sender.clone().ready().await.context("the connection has ended")?;
        let (answer, mut sending) = sender.send_request(head.body(())?, body.is_empty())?;
        if !body.is_empty() {
            sending.send_data(Bytes::copy_from_slice(body), true)?;
        }
        let answer = answer.await.with_context(|| format!("no answer to {method} {path}"))?;
        let (status, mut stream) = (answer.status(), answer.into_body());
        if !status.is_success() {
            let mut text = Vec::new();
            while text.len() < EXCERPT && read(&mut stream, &mut |bytes| text.extend_from_slice(bytes)).await? {}
            bail!(refusal(&format!("{method} {path}"), status.as_u16(), &text));
        }
        Ok(stream)
    }

    /// Sends a request and gives the body of its answer to `sink`.
    pub(crate) async fn call(&self, request: &Request<'_>, sink: &mut impl FnMut(&[u8])) -> Result<()> {
        let mut stream = self.open(request).await?;
        while read(&mut stream, sink).await? {}
        Ok(())
    }
}

/// Reads what is there of a body, waiting if nothing is; whether there may be more.
pub(crate) async fn read(stream: &mut RecvStream, sink: &mut impl FnMut(&[u8])) -> Result<bool> {
    let Some(data) = stream.data().await else { return Ok(false) };
    let data = data.context("cannot read an answer")?;
    stream.flow_control().release_capacity(data.len())?;
    sink(&data);
    Ok(true)
}
