//! Clients that do not even speak properly: requests cut short, heads without end, bytes that mean nothing.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{ADMIN_TOKEN, DEADLINE, GUEST_TOKEN, Server, within};
use crate::objects::CONFIG_MAPS;

/// How much the memory of a server may grow from all of this.
const GROWTH_KIB: u64 = 128 * 1024;

fn head(length: usize) -> String {
    format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// Sends these bytes and returns what comes back until the server closes the connection.
async fn exchange(server: &Server, bytes: &[u8]) -> String {
    within(async {
        let mut stream = server.client().over_http1().connect().await.expect("the server listens");
        // The server may have heard enough before it has heard all.
        let _ = stream.write_all(bytes).await;
        let _ = stream.flush().await;
        let mut answer = Vec::new();
        // However it ends, what came is what counts.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    })
    .await
}

#[tokio::test]
async fn nonsense_is_refused_and_the_connection_closed() {
    let server = Server::start(&[]).await;
    let before = server.process.resident_kib();
    let long_header = format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let many_headers = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: y\r\n".repeat(100_000));
    let long_path = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(1 << 20));
    let two_lengths = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab";
    let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, nonsense\r\n\r\n";
    for (name, bytes, codes) in [
        ("no HTTP", "nonsense\r\n\r\n".to_owned(), &["400"][..]),
        ("zeros", "\0".repeat(4096), &["400"]),
        ("no version", "GET /healthz\r\n\r\n".to_owned(), &["400"]),
        ("a bad header", "GET /healthz HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n".to_owned(), &["400"]),
        ("two lengths", two_lengths.to_owned(), &["400"]),
        ("an unknown encoding", chunked.to_owned(), &["400"]),
        ("a header bomb", long_header, &["400", "431"]),
        ("a bomb of headers", many_headers, &["400", "431"]),
        ("a path without end", long_path, &["400", "414", "431"]),
        ("HTTP/2 without agreement", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), &["", "400"]),
    ] {
        let answer = exchange(&server, bytes.as_bytes()).await;
        let code = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).unwrap_or_default();
        assert!(codes.contains(&code), "{name}: {answer:?}");
    }
    let grown = server.process.resident_kib().saturating_sub(before);
    assert!(grown < GROWTH_KIB, "the server grew by {grown} KiB");
    server.assert_well().await;
}

#[tokio::test]
async fn refusals_reach_clients_that_send_all_before_they_read() {
    let server = Server::start(&[]).await;
    let json = "application/json";
    for (path, token, media_type, length, code) in [
        (CONFIG_MAPS, ADMIN_TOKEN, "text/html", 2_500_000, "415"),
        (CONFIG_MAPS, "wrong", json, 2_500_000, "401"),
        (CONFIG_MAPS, GUEST_TOKEN, json, 2_500_000, "403"),
        ("/api/v1/nothings", ADMIN_TOKEN, json, 2_500_000, "404"),
        ("/api/v1/configmaps", ADMIN_TOKEN, json, 2_500_000, "405"),
        ("/none", ADMIN_TOKEN, json, 2_500_000, "404"),
        (CONFIG_MAPS, ADMIN_TOKEN, json, 5_000_000, "413"),
    ] {
        let mut stream = server.client().over_http1().connect().await.expect("the server listens");
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n"
        );
        within(stream.write_all(head.as_bytes())).await.expect("the server reads");
        within(stream.write_all(&vec![b' '; length])).await.unwrap_or_else(|error| panic!("{code}: {error}"));
        within(stream.flush()).await.unwrap_or_else(|error| panic!("{code}: {error}"));
        let mut answer = [0; 12];
        within(stream.read_exact(&mut answer)).await.unwrap_or_else(|error| panic!("{code}: {error}"));
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {code}"), "{path}");
    }
    // Who asks first is refused without having sent anything.
    let head = head(5_000_000).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    let answer = exchange(&server, head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    server.assert_well().await;
}

#[tokio::test]
async fn a_header_bomb_over_http2_ends_one_request() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let value = "x".repeat(200 * 1024);
    let request = client.request(http::Method::GET, "/healthz", &[("x-bomb", &value)], "");
    if let Ok(response) = within(client.try_open(request)).await {
        assert_eq!(response.status(), 431);
    }
    server.assert_well().await;
}

#[tokio::test]
async fn clients_that_vanish_leave_nothing_behind() {
    let server = Server::start(&[]).await;
    let body = format!(r#"{{"metadata":{{"name":"a"}},"data":{{"k":"{}"}}}}"#, "x".repeat(500_000));
    let whole = format!("{}{body}", head(body.len()));
    server.assert_well().await;
    let before = server.process.resident_kib();
    // Cut within the head, at its end, and within the body, by hanging up properly and by walking away.
    for cut in [1, 20, 150, head(body.len()).len(), whole.len() / 2, whole.len() - 1] {
        for properly in [true, false] {
            let mut stream = server.client().over_http1().connect().await.expect("the server listens");
            within(stream.write_all(&whole.as_bytes()[..cut])).await.expect("the server reads");
            within(stream.flush()).await.expect("the server reads");
            if properly {
                // The server may be faster.
                let _ = within(stream.shutdown()).await;
            }
        }
    }
    // Those who say nothing at all, before and after the handshake, and those who leave in the middle of a list.
    let mut silent = Vec::new();
    let mut mute = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(server.kubeconfig.address).await.expect("the server listens"));
        mute.push(server.client().connect().await.expect("the server listens"));
        let mut stream = server.client().over_http1().connect().await.expect("the server listens");
        let request = format!(
            "GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n"
        );
        within(stream.write_all(request.as_bytes())).await.expect("the server reads");
        let mut answer = [0; 12];
        within(stream.read_exact(&mut answer)).await.expect("the server answers");
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
    server.assert_well().await;
    assert_eq!(server.client().get(CONFIG_MAPS).await.names(), Vec::<String>::new(), "no half of a body was stored");
    // Watches end with their clients.
    let client = server.client();
    crate::harness::eventually(|| async {
        let text = String::from_utf8_lossy(&client.get("/metrics").await.body).into_owned();
        let mut lines = text.lines().filter(|line| line.starts_with("apiserver_longrunning_requests{"));
        lines.all(|line| line.ends_with(" 0")).then_some(())
    })
    .await;
    let grown = server.process.resident_kib().saturating_sub(before);
    assert!(grown < GROWTH_KIB, "the server grew by {grown} KiB");
}

#[tokio::test]
async fn a_body_that_never_comes_is_given_up() {
    let server = Server::start(&["--request-timeout=1s"]).await;
    let started = std::time::Instant::now();
    let mut stream = server.client().over_http1().connect().await.expect("the server listens");
    within(stream.write_all(head(100).as_bytes())).await.expect("the server reads");
    let mut answer = vec![0; 12];
    within(stream.read_exact(&mut answer)).await.expect("the server answers");
    assert_eq!(answer, b"HTTP/1.1 504");
    assert!(started.elapsed() < DEADLINE);
    server.assert_well().await;
}
