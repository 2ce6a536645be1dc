//! [`Plugin`]: a process of the test's own that answers gRPC calls on a unix socket, as plugins of an API server do.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Request, Response};
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// What a plugin answers to a method and a message: a message, or a code and why.
pub(crate) type Answer = Result<Vec<u8>, (u32, &'static str)>;

/// A plugin that listens until it is dropped.
pub(crate) struct Plugin {
    folder: TempDir,
    serving: JoinHandle<()>,
}

impl Plugin {
    /// Answers calls with `answer`.
    pub(crate) fn start(answer: impl Fn(&str, &[u8]) -> Answer + Send + Sync + 'static) -> Plugin {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let listener = UnixListener::bind(folder.path().join("plugin.sock")).expect("a socket can be made");
        let serving = tokio::spawn(serve(listener, Arc::new(answer)));
        Plugin { folder, serving }
    }

    /// Its socket.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("plugin.sock")
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

type Answering = Arc<dyn Fn(&str, &[u8]) -> Answer + Send + Sync>;

async fn serve(listener: UnixListener, answer: Answering) {
    // Connections end with the plugin.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(converse(stream, answer.clone()));
    }
}

async fn converse(stream: UnixStream, answer: Answering) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(reply(request, respond, answer.clone()));
    }
}

async fn reply(request: Request<h2::RecvStream>, mut respond: SendResponse<Bytes>, answer: Answering) {
    let path = request.uri().path().to_owned();
    let mut body = request.into_body();
    let mut received = BytesMut::new();
    while let Some(Ok(data)) = body.data().await {
        received.extend_from_slice(&data);
    }
    let (code, message) = match answer(&path, received.get(5..).expect("a message has a frame")) {
        Ok(message) => (0, Ok(message)),
        Err((code, why)) => (code, Err(why)),
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    let head = Response::builder().header("content-type", "application/grpc").body(()).expect("is a head");
    // Whoever asked may have gone.
    let Ok(mut stream) = respond.send_response(head, false) else { return };
    match message {
        Ok(message) => {
            let mut framed = BytesMut::new();
            framed.put_u8(0);
            framed.put_u32(message.len().try_into().expect("messages are short"));
            framed.put_slice(&message);
            let _ = stream.send_data(framed.freeze(), false);
        }
        Err(why) => {
            trailers.insert("grpc-message", HeaderValue::from_static(why));
        }
    }
    let _ = stream.send_trailers(trailers);
}
