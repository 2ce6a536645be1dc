//! What a running server does can be asked, by those who may.

use std::io::Read;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::client::Reply;
use crate::harness::{GUEST_TOKEN, SILENT, Server};

/// What the rules and dashboards of kubernetes-mixin name of an API server, and what others like them do.
const METRICS: [&str; 29] = [
    "apiserver_audit_event_total",
    "apiserver_audit_requests_rejected_total",
    "apiserver_client_certificate_expiration_seconds_bucket",
    "apiserver_client_certificate_expiration_seconds_count",
    "apiserver_current_inflight_requests",
    "apiserver_request_duration_seconds_bucket",
    "apiserver_request_sli_duration_seconds_bucket",
    "apiserver_request_sli_duration_seconds_count",
    "apiserver_request_total",
    "apiserver_response_sizes_bucket",
    "apiserver_storage_objects",
    "apiserver_storage_size_bytes",
    "apiserver_tls_handshake_errors_total",
    "authenticated_user_requests",
    "authentication_attempts",
    "authorization_attempts_total",
    "authorization_duration_seconds_bucket",
    "go_goroutines",
    "go_threads",
    "kubernetes_build_info",
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "workqueue_adds_total",
    "workqueue_depth",
    "workqueue_queue_duration_seconds_bucket",
    "workqueue_unfinished_work_seconds",
    "workqueue_work_duration_seconds_bucket",
];

fn whole(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

#[tokio::test]
async fn dashboards_and_alerts_find_what_they_ask_for() {
    let server = Server::start(&["--controllers=*", SILENT[0], SILENT[1]]).await;
    let client = server.client();
    client.get("/api/v1/namespaces").await.expect(200);
    let text = whole(&client.get("/metrics").await.expect(200));
    for name in METRICS {
        let found = text.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
        assert!(found, "{name} is missing");
    }
    // Terminations have no series before there is one.
    assert!(!text.contains("apiserver_request_terminations_total{"));
    // A state that does not come, and is not waited for for long.
    client.get("/api/v1/namespaces?resourceVersion=99999999&timeout=50ms").await.fails(504, "Timeout");
    let text = whole(&client.get("/metrics").await.expect(200));
    assert!(text.contains("apiserver_request_terminations_total{code=\"504\""), "{text}");
    server.assert_well().await;
}

#[tokio::test]
async fn the_processor_is_profiled_for_those_who_may() {
    let server = Server::start(&SILENT).await;
    let client = server.client();
    let reply = client.get("/debug/pprof/profile?seconds=1").await.expect(200);
    assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
    let mut profile = Vec::new();
    flate2::read::GzDecoder::new(&*reply.body).read_to_end(&mut profile).expect("is compressed");
    // The texts of a profile, which say what its numbers mean.
    for text in ["nanoseconds", "samples"] {
        assert!(profile.windows(text.len()).any(|part| part == text.as_bytes()), "{text}");
    }
    assert_eq!(client.get("/debug/pprof/profile?seconds=3600").await.code, 400);
    assert_eq!(client.get("/debug/pprof/goroutine").await.code, 404);
    client.apart().with_token(GUEST_TOKEN).get("/debug/pprof/profile?seconds=1").await.fails(403, "Forbidden");
    server.assert_well().await;
    let quiet = Server::start(&["--profiling=false"]).await;
    assert_eq!(quiet.client().get("/debug/pprof/").await.code, 404);
}

#[tokio::test]
async fn a_socket_tells_whoever_may_open_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("debug.sock");
    let flag = format!("--debug-socket-path={}", path.display());
    let server = Server::start(&["--profiling=false", &flag]).await;
    let ask = async |head: &str| {
        let mut stream = UnixStream::connect(&path).await.expect("somebody listens");
        stream.write_all(head.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        answer
    };
    let line = ask("GET /debug/pprof/cmdline HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(line.starts_with("HTTP/1.1 200 OK\r\n") && line.contains("--debug-socket-path="), "{line}");
    let put = "PUT /debug/flags/v HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\n4";
    assert!(ask(put).await.ends_with("successfully set klog.logging.verbosity to 4"));
    server.assert_well().await;
}
