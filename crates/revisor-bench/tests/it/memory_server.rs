//! A server for configmaps and pods, in memory: enough of the API for the load generator, in HTTP/1.1 and HTTP/2, and
//! faults on demand.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// The token that it lets in.
pub(crate) const TOKEN: &str = "secret";

/// What the server does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    RefusesWrites,
    ShortLists,
    EndsWatches,
}

pub(crate) struct MemoryServer {
    address: SocketAddr,
    state: Arc<State>,
    accept: tokio::task::JoinHandle<()>,
}

struct State {
    fault: Fault,
    /// The revision, and each object with its own.
    objects: Mutex<(u64, BTreeMap<String, String>)>,
    events: broadcast::Sender<String>,
    http2_connections: AtomicUsize,
}

impl MemoryServer {
    pub(crate) async fn start(fault: Fault) -> Self {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate is made");
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("the key is PKCS #8");
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider knows them")
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .expect("key and certificate belong together");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (events, http2_connections) = (broadcast::channel(1024).0, AtomicUsize::new(0));
        let state = Arc::new(State { fault, objects: Mutex::default(), events, http2_connections });
        let shared = state.clone();
        let accept = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, state) = (acceptor.clone(), shared.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    // A client that goes away is no concern of the server.
                    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                        let _ = serve_http2(stream, state).await;
                    } else {
                        let _ = serve(stream, &state).await;
                    }
                });
            }
        });
        Self { address, state, accept }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub(crate) fn http2_connections(&self) -> usize {
        self.state.http2_connections.load(Ordering::Relaxed)
    }

    pub(crate) fn objects(&self) -> usize {
        self.state.objects.lock().unwrap_or_else(PoisonError::into_inner).1.len()
    }
}

impl Drop for MemoryServer {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// The same in HTTP/2, where requests come side by side.
async fn serve_http2(
    stream: impl tokio::io::AsyncRead + AsyncWrite + Unpin,
    state: Arc<State>,
) -> Result<(), h2::Error> {
    state.http2_connections.fetch_add(1, Ordering::Relaxed);
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(request) = connection.accept().await {
        let (request, respond) = request?;
        tokio::spawn(answer_http2(request, respond, state.clone()));
    }
    Ok(())
}

async fn answer_http2(
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    state: Arc<State>,
) -> Result<(), h2::Error> {
    let (head, mut stream) = request.into_parts();
    let known = head.headers.get("authorization").is_some_and(|shown| shown == &format!("Bearer {TOKEN}"));
    assert!(known, "the client shows its token");
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        body.extend_from_slice(&data?);
    }
    let body = String::from_utf8(body).expect("the client writes JSON");
    let query = head.uri.query().unwrap_or_default();
    let answer = |status: u16| http::Response::builder().status(status).body(()).expect("a head");
    if query.contains("watch=true") {
        let mut events = state.events.subscribe();
        let mut sending = respond.send_response(answer(200), false)?;
        while let Ok(event) = events.recv().await {
            sending.send_data(event.into(), false)?;
        }
        return Ok(());
    }
    let (status, text) = state.answer(head.method.as_str(), head.uri.path(), query, &body);
    respond.send_response(answer(status), false)?.send_data(text.into(), true)
}

/// Answers requests until the client leaves.
async fn serve(stream: impl tokio::io::AsyncRead + AsyncWrite + Unpin, state: &State) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if stream.read_line(&mut first).await? == 0 {
            return Ok(());
        }
        let (mut length, mut known) = (0, false);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.parse().expect("the client counts its bytes");
            }
            known |= line == format!("Authorization: Bearer {TOKEN}");
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let body = String::from_utf8(body).expect("the client writes JSON");
        assert!(known, "the client shows its token");

        let mut words = first.split_whitespace();
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if query.contains("watch=true") {
            return watch(&mut stream, state).await;
        }
        let (status, answer) = state.answer(method, path, query, &body);
        // Lists go out in chunks and all else by length, so that both are read.
        let text = if (path.ends_with("/configmaps") || path.ends_with("/pods")) && method == "GET" {
            let (left, right) = answer.split_at(answer.len() / 2);
            let chunks: String = [left, right].iter().map(|part| format!("{:x}\r\n{part}\r\n", part.len())).collect();
            format!("HTTP/1.1 {status} X\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
        } else {
            format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{answer}", answer.len())
        };
        stream.write_all(text.as_bytes()).await?;
        stream.flush().await?;
    }
}

async fn watch(stream: &mut (impl AsyncWrite + Unpin), state: &State) -> std::io::Result<()> {
    let mut events = state.events.subscribe();
    stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
    stream.flush().await?;
    while let Ok(event) = events.recv().await {
        if state.fault == Fault::EndsWatches {
            stream.write_all(b"0\r\n\r\n").await?;
            return stream.flush().await;
        }
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await?;
        stream.flush().await?;
    }
    Ok(())
}

impl State {
    fn answer(&self, method: &str, path: &str, query: &str, body: &str) -> (u16, String) {
        let mut guard = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let (revision, objects) = &mut *guard;
        let name = path.split('/').nth(6);
        let is_kept = matches!(path.split('/').nth(5), Some("configmaps" | "pods"));
        match (method, name) {
            (_, _) if !is_kept => (200, "{}".to_owned()),
            ("POST" | "PUT" | "PATCH", _) if self.fault == Fault::RefusesWrites => (429, "too many".to_owned()),
            ("POST" | "PUT" | "PATCH", _) => {
                let mut object: serde_json::Value = serde_json::from_str(body).expect("the client writes JSON");
                if let ("PATCH", Some(name)) = (method, name) {
                    let Some(text) = objects.get(name) else { return (404, String::new()) };
                    let patch = std::mem::replace(&mut object, serde_json::from_str(text).expect("it was JSON"));
                    // What the client patches is all in there.
                    for (member, value) in patch["metadata"].as_object().expect("patches are about metadata") {
                        object["metadata"][member] = value.clone();
                    }
                }
                let name = object["metadata"]["name"].as_str().expect("objects have names").to_owned();
                let sent = object["metadata"]["resourceVersion"].clone();
                let stored = objects.get(&name).map(|text| {
                    let stored: serde_json::Value = serde_json::from_str(text).expect("it was JSON");
                    stored["metadata"]["resourceVersion"].clone()
                });
                assert_eq!(stored.unwrap_or_default(), sent, "a client that works alone never conflicts");
                *revision += 1;
                object["metadata"]["resourceVersion"] = revision.to_string().into();
                let text = object.to_string();
                objects.insert(name, text.clone());
                // Without watchers there is no one to tell.
                let _ = self.events.send(format!("{{\"type\":\"MODIFIED\",\"object\":{text}}}\n"));
                (201, text)
            }
            ("GET", Some(name)) => objects.get(name).map_or((404, String::new()), |text| (200, text.clone())),
            ("DELETE", Some(name)) => match objects.remove(name) {
                Some(_) => (200, "{}".to_owned()),
                None => (404, String::new()),
            },
            _ => self.list(*revision, objects, query),
        }
    }

    /// A page. Its token is good for as long as nothing is written, which is stricter than any real server.
    fn list(&self, revision: u64, objects: &BTreeMap<String, String>, query: &str) -> (u16, String) {
        let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name));
        let limit = parameter("limit=").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
        let after = match parameter("continue=").map(|token| token.split_once('.').unwrap_or_default()) {
            None => "",
            Some((at, after)) if at == revision.to_string() => after,
            Some(_) => return (410, "the continue token is too old".to_owned()),
        };
        let mut rest = objects.iter().filter(|(name, _)| name.as_str() > after);
        let page: Vec<_> = rest.by_ref().take(limit).collect();
        let token = match (rest.next(), page.last()) {
            (Some(_), Some((name, _))) => format!(",\"continue\":\"{revision}.{name}\""),
            _ => String::new(),
        };
        let items: Vec<&str> = match self.fault {
            Fault::ShortLists => Vec::new(),
            _ => page.iter().map(|(_, text)| text.as_str()).collect(),
        };
        let items = items.join(",");
        (200, format!("{{\"metadata\":{{\"resourceVersion\":\"{revision}\"{token}}},\"items\":[{items}]}}"))
    }
}
