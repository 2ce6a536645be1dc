//! What a client may not do, and that others do not suffer from the attempt.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use revisor_api::{Limits, MAX_REQUEST_BODY};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{TestServer, chunk, get, post, text, within};

const SOON: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_client_that_does_not_shake_hands_is_dropped() {
    let server = TestServer::with(Limits { handshake_timeout: SOON, ..Limits::default() }, Duration::ZERO);
    let mut silent = connect(&server).await;
    let mut rude = connect(&server).await;
    within(rude.write_all(b"GET / HTTP/1.1\r\n\r\n")).await.expect("written");
    for stream in [&mut silent, &mut rude] {
        ended(stream).await;
    }
    assert!(server.metrics.render().contains("\napiserver_tls_handshake_errors_total 2\n"));
}

#[tokio::test]
async fn silent_connections_give_way_to_those_who_speak() {
    // Nothing runs out of time here: whoever is served is served although the others are still there.
    let server = TestServer::with(Limits { newcomers: 3, ..Limits::default() }, Duration::ZERO);
    let mut silent = Vec::new();
    for at in 0..20 {
        match at % 3 {
            0 => silent.push(Silent::Tcp(connect(&server).await)),
            // Shaken hands, and nothing or half a head said after that.
            1 => silent.push(Silent::Tls(Box::new(server.tls(&["h2"], false).await))),
            _ => {
                let mut stream = server.tls(&["http/1.1"], false).await;
                within(stream.write_all(b"GET /peer HTTP/1.1\r\nhost: x\r\n")).await.expect("written");
                silent.push(Silent::Tls(Box::new(stream)));
            }
        }
        for (protocol, mut client) in server.clients().await {
            assert_eq!(client.text("/peer").await.0, StatusCode::OK, "{protocol}, after {at} silent ones");
        }
    }
    // The first ones gave way, however far they had come.
    for stream in silent.drain(..15) {
        match stream {
            Silent::Tcp(mut stream) => ended(&mut stream).await,
            Silent::Tls(mut stream) => ended(&mut stream).await,
        }
    }
}

enum Silent {
    Tcp(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

#[tokio::test]
async fn a_first_request_has_to_come_whole_and_soon() {
    let server = TestServer::with(Limits { first_request_timeout: SOON, ..Limits::default() }, Duration::ZERO);
    for (protocol, said) in [("http/1.1", ""), ("http/1.1", "GET /peer HTTP/1.1\r\nhost: x\r\n"), ("h2", "")] {
        let mut stream = server.tls(&[protocol], false).await;
        within(stream.write_all(said.as_bytes())).await.expect("written");
        ended(&mut stream).await;
    }
    // Who has said something is given more time.
    for protocol in ["HTTP/1.1", "HTTP/2"] {
        let mut client = if protocol == "HTTP/2" { server.http2().await } else { server.http1().await };
        assert_eq!(client.text("/peer").await.0, StatusCode::OK, "{protocol}");
        ended(&mut server.tls(&["h2"], false).await).await;
        assert_eq!(client.text("/peer").await.0, StatusCode::OK, "{protocol}");
    }
}

async fn connect(server: &TestServer) -> TcpStream {
    within(TcpStream::connect(server.address)).await.expect("the server listens")
}

/// Waits for the other side to end, however it does that.
async fn ended(stream: &mut (impl AsyncReadExt + Unpin)) {
    let _ = within(stream.read_to_end(&mut Vec::new())).await;
}

#[tokio::test]
async fn a_client_that_says_nothing_is_dropped() {
    let limits = Limits { idle_timeout: SOON, ..Limits::default() };
    let server = TestServer::with(limits, Duration::ZERO);
    for protocol in ["http/1.1", "h2"] {
        let mut stream = server.tls(&[protocol], false).await;
        let mut received = Vec::new();
        // However it ends: what matters is that it does.
        let _ = within(stream.read_to_end(&mut received)).await;
    }
}

#[tokio::test]
async fn idle_connections_are_closed_and_busy_ones_are_not() {
    let limits = Limits { idle_timeout: SOON, ..Limits::default() };
    let server = TestServer::with(limits, Duration::ZERO);
    for protocol in ["HTTP/1.1", "HTTP/2"] {
        let connect = async || if protocol == "HTTP/2" { server.http2().await } else { server.http1().await };
        let mut client = connect().await;
        let watch = client.get("/watch").await;
        let mut other = connect().await;
        assert_eq!(other.text("/peer").await.0, StatusCode::OK, "{protocol}");
        // The other connection is the younger one, so if this one were taken for idle it would be gone first.
        let _ = within(&mut other.connection).await;
        assert!(!client.connection.is_finished(), "{protocol}: a watch is not idle");
        drop(watch);
    }
}

#[tokio::test]
async fn heads_are_bounded() {
    let server = TestServer::start();
    for (protocol, mut client) in server.clients().await {
        let mut large = get("/peer");
        large.headers_mut().insert("x-large", "x".repeat(60_000).parse().expect("a value"));
        let response = client.try_send(large).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK, "{protocol}: large is not too large");
        drop(response);

        let mut bomb = get("/peer");
        for at in 0..20 {
            let name = http::HeaderName::try_from(format!("x-bomb-{at}")).expect("a name");
            bomb.headers_mut().insert(name, "x".repeat(10_000).parse().expect("a value"));
        }
        // HTTP/1.1 has no way to refuse a head but to answer and close, which the client may notice while it still
        // sends.
        if let Ok(response) = client.try_send(bomb).await {
            assert_eq!(response.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "{protocol}");
        }
    }
    let mut stream = server.tls(&["http/1.1"], false).await;
    let mut head = b"GET /peer HTTP/1.1\r\nhost: x\r\n".to_vec();
    for at in 0..500 {
        head.extend_from_slice(format!("x-{at}: y\r\n").as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    within(stream.write_all(&head)).await.expect("written");
    let mut answer = [0; 12];
    within(stream.read_exact(&mut answer)).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 431");
    let mut client = server.http1().await;
    assert_eq!(client.text("/peer").await.0, StatusCode::OK, "the server goes on");
}

#[tokio::test]
async fn nonsense_is_refused() {
    let server = TestServer::start();
    for nonsense in ["\u{1}\u{2}\u{3}\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n"] {
        let mut stream = server.tls(&["http/1.1"], false).await;
        within(stream.write_all(nonsense.as_bytes())).await.expect("written");
        let mut answer = [0; 12];
        within(stream.read_exact(&mut answer)).await.expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 400", "{nonsense:?}");
    }
}

#[tokio::test]
async fn bodies_are_bounded() {
    let server = TestServer::start();
    for size in [0, 1, 100_000, MAX_REQUEST_BODY, MAX_REQUEST_BODY + 1] {
        for (protocol, mut client) in server.clients().await {
            let sent = client.try_send(post("/echo", vec![b'x'; size])).await;
            let want = if size <= MAX_REQUEST_BODY {
                (StatusCode::OK, format!("{size} bytes"))
            } else {
                (StatusCode::PAYLOAD_TOO_LARGE, "limit is 3145728".to_owned())
            };
            assert_eq!(text(sent.expect("an answer")).await, want, "{protocol}, {size}");
        }
    }
}

/// A body that does not say how long it is.
struct Megabytes(u32);

impl Body for Megabytes {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let Some(left) = self.0.checked_sub(1) else { return Poll::Ready(None) };
        self.0 = left;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; 1024 * 1024])))))
    }
}

#[tokio::test]
async fn bodies_of_unknown_length_are_bounded_too() {
    let server = TestServer::start();
    for (chunks, want) in [(3, StatusCode::OK), (4, StatusCode::PAYLOAD_TOO_LARGE)] {
        for (protocol, mut client) in server.clients().await {
            let mut request = get("/echo");
            *request.method_mut() = http::Method::POST;
            let request = request.map(|_| Megabytes(chunks).boxed());
            let response = client.try_send(request).await.expect("an answer");
            assert_eq!(response.status(), want, "{protocol}, {chunks} chunks");
        }
    }
}

#[tokio::test]
async fn idle_connections_give_way_and_busy_ones_do_not() {
    let server = TestServer::with(Limits { connections: 2, ..Limits::default() }, Duration::ZERO);
    let mut busy = server.http2().await;
    let mut watch = busy.get("/watch").await;
    assert_eq!(chunk(&mut watch).await.as_deref(), Some(&b"hello\n"[..]));
    let mut idle = server.http1().await;
    assert_eq!(idle.text("/peer").await.0, StatusCode::OK);
    let mut newcomer = server.http1().await;
    assert_eq!(newcomer.text("/peer").await.0, StatusCode::OK);
    let _ = within(&mut idle.connection).await;
    let mut watcher = server.http1().await;
    let _watch = watcher.get("/watch").await;
    let _ = within(&mut newcomer.connection).await;
    // Now both are busy, and one more from the same address finds no place.
    let mut turned_away = server.http1().await;
    assert!(turned_away.try_send(get("/peer")).await.is_err());
    assert_eq!(busy.text("/peer").await.0, StatusCode::OK);
    assert!(server.metrics.render().contains("\nrevisor_connections_displaced_total{state=\"serving\"} 3\n"));
}
