//! Requests that go well, and requests that end badly without taking others along.

use std::io::Read;
use std::sync::atomic::Ordering;

use http::StatusCode;
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use crate::harness::{TestServer, chunk, get, text, within};

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let server = TestServer::start();
    for (protocol, mut client) in server.clients().await {
        for _ in 0..20 {
            assert_eq!(client.text("/peer").await, (StatusCode::OK, "127.0.0.1 0".to_owned()), "{protocol}");
            assert_eq!(client.text("/nope").await.0, StatusCode::NOT_FOUND, "{protocol}");
        }
    }
    assert_eq!(server.handler.connected.load(Ordering::SeqCst), 2, "connections, not requests");
}

#[tokio::test]
async fn http2_requests_do_not_wait_for_each_other() {
    let server = TestServer::start();
    let mut client = server.http2().await;
    assert_eq!(client.text("/login").await.0, StatusCode::OK);
    let mut watches = Vec::new();
    for _ in 0..300 {
        let mut watch = client.get("/watch").await;
        assert_eq!(chunk(&mut watch).await.as_deref(), Some(&b"hello\n"[..]));
        watches.push(watch);
    }
    assert_eq!(client.text("/peer").await.0, StatusCode::OK);
    assert_eq!(server.handler.connected.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn http1_is_spoken_where_nothing_was_agreed_on() {
    let server = TestServer::start();
    let stream = server.tls(&[], false).await;
    let (mut sender, connection) = within(http1::handshake(TokioIo::new(stream))).await.expect("HTTP/1.1");
    tokio::spawn(connection);
    let response = within(sender.send_request(get("/peer"))).await.expect("an answer");
    assert_eq!(response.version(), http::Version::HTTP_11);
    assert_eq!(text(response).await.0, StatusCode::OK);
}

#[tokio::test]
async fn handlers_see_the_certificates() {
    let server = TestServer::start();
    let stream = server.tls(&["http/1.1"], true).await;
    let (mut sender, connection) = within(http1::handshake(TokioIo::new(stream))).await.expect("HTTP/1.1");
    tokio::spawn(connection);
    let response = within(sender.send_request(get("/peer"))).await.expect("an answer");
    assert_eq!(text(response).await.1, "127.0.0.1 1");
}

#[tokio::test]
async fn ids_are_echoed() {
    let server = TestServer::start();
    for (protocol, mut client) in server.clients().await {
        let mut request = get("/id");
        request.headers_mut().insert("audit-id", "from-the-client".parse().expect("a value"));
        let response = client.try_send(request).await.expect("an answer");
        assert_eq!(response.headers()["audit-id"], "from-the-client", "{protocol}");
        assert_eq!(text(response).await.1, "from-the-client", "{protocol}");
        let response = client.get("/id").await;
        let made = response.headers()["audit-id"].to_str().expect("text").to_owned();
        assert_eq!(text(response).await.1, made, "{protocol}");
        assert_eq!(made.len(), 36, "{protocol}");
    }
}

#[tokio::test]
async fn a_panic_ends_one_request() {
    let server = TestServer::start();
    for (protocol, mut client) in server.clients().await {
        for path in ["/panic", "/panic-at-once"] {
            let response = client.get(path).await;
            assert_eq!(response.headers()["content-type"], "application/json", "{protocol} {path}");
            assert!(response.headers().contains_key("audit-id"), "{protocol} {path}");
            let (status, text) = text(response).await;
            assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{protocol} {path}");
            assert!(text.contains(r#""kind":"Status""#) && text.contains(r#""code":500"#), "{protocol}: {text}");
        }
        assert_eq!(client.text("/peer").await.0, StatusCode::OK, "{protocol}: the connection goes on");
    }
    assert_eq!(server.handler.connected.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_panic_in_a_stream_breaks_it_off() {
    let server = TestServer::start();
    for (protocol, mut client) in server.clients().await {
        // The head may or may not have left by then. What the client must never see is an end that looks like the
        // end.
        if let Ok(response) = client.try_send(get("/panic-midway")).await {
            assert!(within(response.into_body().collect()).await.is_err(), "{protocol}");
        }
    }
    let mut client = server.http1().await;
    assert_eq!(client.text("/peer").await.0, StatusCode::OK, "the server goes on");
}

#[tokio::test]
async fn large_answers_are_compressed_on_request() {
    let server = TestServer::start();
    for (protocol, mut client) in server.clients().await {
        let plain = client.text("/list").await.1;
        assert_eq!(plain.len(), 1_000_000, "{protocol}");
        let mut request = get("/list");
        request.headers_mut().insert("accept-encoding", "gzip".parse().expect("a value"));
        let response = client.try_send(request).await.expect("an answer");
        assert_eq!(response.headers()["content-encoding"], "gzip", "{protocol}");
        assert_eq!(response.headers()["vary"], "Accept-Encoding", "{protocol}");
        let bytes = within(response.into_body().collect()).await.expect("a whole body").to_bytes();
        assert!(bytes.len() < 100_000, "{protocol}: {} bytes", bytes.len());
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut unpacked).expect("valid gzip");
        assert!(unpacked == plain, "{protocol}: the bytes survive");
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_client() {
    let server = TestServer::start();
    for (protocol, mut client) in server.clients().await {
        let mut watch = client.get("/watch").await;
        assert_eq!(chunk(&mut watch).await.as_deref(), Some(&b"hello\n"[..]), "{protocol}");
        client.connection.abort();
        drop((watch, client));
        within(server.handler.stream_dropped.notified()).await;
    }
    assert_eq!(*server.handler.streams.lock().expect("not poisoned"), 2);
}
