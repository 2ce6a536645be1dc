//! The way out: readiness first, then the door, then the watches, then what is left.

use std::time::Duration;

use http::StatusCode;
use revisor_api::{Drained, Limits};
use tokio::net::TcpStream;

use crate::harness::{TestServer, chunk, text, within};

#[tokio::test]
async fn readiness_fails_first_and_everything_is_still_served() {
    let mut server = TestServer::with(Limits::default(), Duration::from_secs(3));
    let mut old = server.http2().await;
    assert_eq!(old.text("/readyz").await, (StatusCode::OK, "ok".to_owned()));
    let mut watch = old.get("/watch").await;
    assert_eq!(chunk(&mut watch).await.as_deref(), Some(&b"hello\n"[..]));
    server.stop();
    // Nothing tells when readiness turns, so it is asked for, as a load balancer would.
    let asked = async {
        loop {
            let (status, text) = old.text("/readyz").await;
            if status != StatusCode::OK {
                return text;
            }
        }
    };
    let report = within(asked).await;
    assert!(report.ends_with("[-]shutdown failed: reason withheld\nreadyz check failed\n"), "{report}");
    assert!(server.drain.draining());
    for (protocol, mut newcomer) in server.clients().await {
        assert_eq!(newcomer.text("/livez").await, (StatusCode::OK, "ok".to_owned()), "{protocol}");
        assert_eq!(newcomer.text("/peer").await.0, StatusCode::OK, "{protocol}");
    }
    assert_eq!(chunk(&mut watch).await.as_deref(), Some(&b"bye\n"[..]), "only after the delay");
    assert_eq!(chunk(&mut watch).await, None);
    assert_eq!(server.stopped().await, Drained { cut_off: 0 });
}

#[tokio::test]
async fn what_is_under_way_is_finished() {
    let mut server = TestServer::start();
    let address = server.address;
    let mut watches = Vec::new();
    let mut clients = Vec::new();
    for (protocol, mut client) in server.clients().await {
        let mut watch = client.get("/watch").await;
        assert_eq!(chunk(&mut watch).await.as_deref(), Some(&b"hello\n"[..]), "{protocol}");
        watches.push((protocol, watch));
        clients.push(client);
    }
    // One that does nothing must not hold up the end.
    let mut idle = server.http1().await;
    assert_eq!(idle.text("/peer").await.0, StatusCode::OK);
    let gate = std::sync::Arc::clone(&server.handler.gate);
    let mut gated = Vec::new();
    for (protocol, mut client) in server.clients().await {
        let asked = tokio::spawn(async move {
            let response = client.get("/gated").await;
            (response.headers().get("connection").cloned(), text(response).await)
        });
        within(server.handler.arrived.notified()).await;
        gated.push((protocol, asked));
    }
    server.stop();
    for (protocol, mut watch) in watches {
        assert_eq!(chunk(&mut watch).await.as_deref(), Some(&b"bye\n"[..]), "{protocol}");
        assert_eq!(chunk(&mut watch).await, None, "{protocol}: a clean end");
    }
    within(async { while TcpStream::connect(address).await.is_ok() {} }).await;
    gate.notify_waiters();
    for (protocol, asked) in gated {
        let (connection, answer) = within(asked).await.expect("no panic");
        assert_eq!(answer, (StatusCode::OK, "through the gate".to_owned()), "{protocol}");
        if protocol == "HTTP/1.1" {
            assert_eq!(connection.expect("told to close"), "close");
        }
    }
    assert_eq!(server.stopped().await, Drained { cut_off: 0 });
}

#[tokio::test]
async fn what_does_not_end_is_cut_off() {
    let limits = Limits { drain_timeout: Duration::from_millis(200), ..Limits::default() };
    let mut server = TestServer::with(limits, Duration::ZERO);
    let mut streams = Vec::new();
    for (_, mut client) in server.clients().await {
        let mut stream = client.get("/stuck").await;
        assert_eq!(chunk(&mut stream).await.as_deref(), Some(&b"hello\n"[..]));
        streams.push((client, stream));
    }
    let dropped = std::sync::Arc::clone(&server.handler.streams);
    let heard = std::sync::Arc::clone(&server.handler.stream_dropped);
    server.stop();
    assert_eq!(server.stopped().await, Drained { cut_off: 2 });
    let both = async {
        while *dropped.lock().expect("not poisoned") < 2 {
            heard.notified().await;
        }
    };
    within(both).await;
}

#[tokio::test]
async fn handshakes_do_not_hold_up_the_end() {
    let mut server = TestServer::start();
    let silent = within(TcpStream::connect(server.address)).await.expect("the server listens");
    let mut client = server.http1().await;
    assert_eq!(client.text("/peer").await.0, StatusCode::OK);
    server.stop();
    // Far less than the handshake's own time limit would take, or `within` complains.
    assert_eq!(server.stopped().await, Drained { cut_off: 0 });
    drop(silent);
}
