//! Watches over a WebSocket, as browsers and some client libraries open them.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::Client;
use crate::harness::{ADMIN_TOKEN, Server, within};
use crate::objects::{CONFIG_MAPS, make_config_maps};

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PONG: u8 = 0x8a;

/// What a client sends to open one at a path, with more lines.
fn request(path: &str, lines: &[&str]) -> String {
    let mut text = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    );
    lines.iter().for_each(|line| text.push_str(&format!("{line}\r\n")));
    text.push_str("\r\n");
    text
}

/// One end of an open connection.
struct Socket<S> {
    stream: S,
    head: String,
}

impl<S: AsyncReadExt + AsyncWriteExt + Unpin> Socket<S> {
    async fn open(mut stream: S, request: &str) -> Socket<S> {
        stream.write_all(request.as_bytes()).await.expect("the server listens");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(within(stream.read_u8()).await.expect("an answer"));
        }
        Socket { stream, head: String::from_utf8(head).expect("a text") }
    }

    fn code(&self) -> &str {
        self.head.split(' ').nth(1).expect("a status line")
    }

    /// The next frame: its first byte and what it says.
    async fn frame(&mut self) -> (u8, Vec<u8>) {
        within(async {
            let kind = self.stream.read_u8().await.expect("a frame");
            let length = match self.stream.read_u8().await.expect("a length") {
                126 => u64::from(self.stream.read_u16().await.expect("a length")),
                127 => self.stream.read_u64().await.expect("a length"),
                short => u64::from(short),
            };
            let mut payload = vec![0; usize::try_from(length).expect("is short")];
            self.stream.read_exact(&mut payload).await.expect("a payload");
            (kind, payload)
        })
        .await
    }

    async fn event(&mut self) -> (String, String) {
        let (kind, payload) = self.frame().await;
        assert_eq!((kind, payload.last()), (TEXT, Some(&b'\n')));
        let event: Value = serde_json::from_slice(&payload).expect("one event in one message");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }
}

fn client(server: &Server) -> Client {
    server.client().over_http1()
}

#[tokio::test]
async fn each_event_is_a_message() {
    let server = Server::start(&[]).await;
    make_config_maps(&server.client(), &["a", "b"]).await;
    let path = format!("{CONFIG_MAPS}?watch=true");
    let lines = [&*format!("Authorization: Bearer {ADMIN_TOKEN}"), "Origin: https://localhost"];
    let stream = client(&server).connect().await.expect("a connection");
    let mut socket = Socket::open(stream, &request(&path, &lines)).await;
    assert_eq!(socket.code(), "101", "{}", socket.head);
    let head = socket.head.to_ascii_lowercase();
    assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=") && head.contains("upgrade: websocket"));
    assert_eq!(socket.event().await, ("ADDED".to_owned(), "a".to_owned()));
    assert_eq!(socket.event().await, ("ADDED".to_owned(), "b".to_owned()));
    make_config_maps(&server.client(), &["c"]).await;
    assert_eq!(socket.event().await, ("ADDED".to_owned(), "c".to_owned()));

    // A ping is answered; who closes is answered with the same.
    socket.stream.write_all(&[0x89, 0x82, 0, 0, 0, 0, b'h', b'i']).await.expect("is sent");
    assert_eq!(socket.frame().await, (PONG, b"hi".to_vec()));
    socket.stream.write_all(&[0x88, 0x80, 0, 0, 0, 0]).await.expect("is sent");
    assert_eq!(socket.frame().await, (CLOSE, vec![0x03, 0xe8]));
    assert_eq!(within(socket.stream.read(&mut [0])).await.unwrap_or_default(), 0, "and that is the end");
}

#[tokio::test]
async fn a_watch_that_ends_closes_and_protobuf_comes_as_bytes() {
    let server = Server::start(&[]).await;
    make_config_maps(&server.client(), &["a"]).await;
    let path = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1");
    let token = format!("Authorization: Bearer {ADMIN_TOKEN}");
    let protobuf = "Accept: application/vnd.kubernetes.protobuf";
    let stream = client(&server).connect().await.expect("a connection");
    let lines = [&*token, "Origin: https://localhost", protobuf];
    let mut socket = Socket::open(stream, &request(&path, &lines)).await;
    assert_eq!(socket.code(), "101", "{}", socket.head);
    let (kind, payload) = socket.frame().await;
    assert_eq!((kind, &payload[..7]), (BINARY, &b"\n\x05ADDED"[..]), "an event without its length before it");
    assert_eq!(socket.frame().await, (CLOSE, vec![0x03, 0xe8]));
}

#[tokio::test]
async fn who_may_not_or_does_not_say_where_from_is_refused() {
    let server = Server::start(&[]).await;
    let path = format!("{CONFIG_MAPS}?watch=true");
    let token = format!("Authorization: Bearer {ADMIN_TOKEN}");
    for (name, lines, code) in [
        ("nobody", vec!["Origin: https://localhost"], "403"),
        ("a wrong token", vec!["Authorization: Bearer x", "Origin: https://localhost"], "401"),
        ("no origin", vec![&*token], "403"),
        ("two protocols", vec![&*token, "Origin: https://localhost", "Sec-WebSocket-Protocol: a, b"], "400"),
    ] {
        let stream = client(&server).connect().await.expect("a connection");
        let socket = Socket::open(stream, &request(&path, &lines)).await;
        assert_eq!(socket.code(), code, "{name}: {}", socket.head);
    }
    server.assert_well().await;
}

#[tokio::test]
async fn a_server_that_stops_closes_them() {
    let server = Server::start(&[]).await;
    let path = format!("{CONFIG_MAPS}?watch=true");
    let token = format!("Authorization: Bearer {ADMIN_TOKEN}");
    let stream = client(&server).connect().await.expect("a connection");
    let mut socket = Socket::open(stream, &request(&path, &[&token, "Origin: https://localhost"])).await;
    assert_eq!(socket.code(), "101", "{}", socket.head);
    server.process.signal("TERM");
    assert_eq!(socket.frame().await, (CLOSE, vec![0x03, 0xe8]));
    let (_, status) = server.terminate().await;
    assert!(status.success(), "{status}");
}
