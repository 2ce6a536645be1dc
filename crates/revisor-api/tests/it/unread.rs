//! Answers that nobody reads, or not fast enough.

use std::time::Duration;

use http::StatusCode;
use http_body_util::BodyExt;
use revisor_api::Limits;

use crate::harness::{TestServer, chunk, within};

const SOON: Duration = Duration::from_millis(200);

#[tokio::test]
async fn an_answer_that_nobody_reads_ends() {
    let server = TestServer::with(Limits { unread_timeout: SOON, ..Limits::default() }, Duration::ZERO);
    for (protocol, mut client) in server.clients().await {
        let response = client.get("/flood").await;
        assert_eq!(response.status(), StatusCode::OK, "{protocol}");
        within(server.handler.stream_dropped.notified()).await;
        // What the client finds, when it looks at last, does not pass for a whole answer.
        assert!(within(response.into_body().collect()).await.is_err(), "{protocol}");
    }
    assert!(server.metrics.render().contains("\nrevisor_answers_cut_off_total 2\n"));
}

#[tokio::test]
async fn an_answer_has_its_time_however_eagerly_it_is_read() {
    let server = TestServer::with(Limits { answer_timeout: SOON, ..Limits::default() }, Duration::ZERO);
    for (protocol, mut client) in server.clients().await {
        // It lasts as long as its client wants, and so is not measured.
        let mut watch = client.get("/watch").await;
        assert_eq!(chunk(&mut watch).await.as_deref(), Some(&b"hello\n"[..]), "{protocol}");
        let mut other = if protocol == "HTTP/2" { server.http2().await } else { server.http1().await };
        let mut flood = other.get("/flood").await;
        let reading = async { while let Some(Ok(_)) = flood.body_mut().frame().await {} };
        within(reading).await;
        within(server.handler.stream_dropped.notified()).await;
        assert!(!client.connection.is_finished(), "{protocol}: the watch goes on");
    }
}

#[tokio::test]
async fn a_request_lasts_until_its_last_byte_has_left() {
    // Hardly anything counts as long as clients go on reading, but a connection is busy until they have read all.
    let limits = Limits { idle_timeout: SOON, ..Limits::default() };
    let server = TestServer::with(limits, Duration::ZERO);
    let mut slow = server.http2().await;
    let mut list = slow.get("/flood").await;
    let mut other = server.http2().await;
    assert_eq!(other.text("/peer").await.0, StatusCode::OK);
    let _ = within(&mut other.connection).await;
    assert!(within(list.body_mut().frame()).await.is_some_and(|frame| frame.is_ok()), "not taken for idle");
}
