//! Objects that are much work: they are answered, and nobody waits for them.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{ADMIN_TOKEN, Server, within};

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// How many ports go into a request of nearly the largest size. Compared with each other, they would take minutes.
const PORTS: usize = 50_000;

/// A Service of which nothing is wrong but that its last port is its first.
fn service() -> String {
    let number = |at: usize| if at + 1 == PORTS { 1 } else { at + 1 };
    let port = |at: usize| json!({"name": format!("p{at}"), "port": number(at), "targetPort": 1});
    let ports: Vec<Value> = (0..PORTS).map(port).collect();
    json!({"metadata": {"name": "many"}, "spec": {"ports": ports}}).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_a_service_of_fifty_thousand_ports() {
    let server = Server::start_with_workers(1).await;
    let client = server.client();
    let body = service();
    let (body, end) = body.as_bytes().split_at(body.len() - 1);
    let head = format!(
        "POST {SERVICES} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len() + end.len()
    );
    let mut stream = client.clone().over_http1().connect().await.expect("the server listens");
    stream.write_all(head.as_bytes()).await.expect("the head is read");
    stream.write_all(body).await.expect("the body is read");
    stream.flush().await.expect("the body is read");
    within(client.get("/healthz")).await.expect(200);

    // With its last byte the work begins. The one worker that the server has would answer nobody until it is done, but
    // for those who were faster than that byte.
    stream.write_all(end).await.expect("the end is read");
    stream.flush().await.expect("the end is read");
    let answering = tokio::spawn(async move {
        let mut answer = Vec::new();
        // However it ends, what came is what counts.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    });
    for _ in 0..50 {
        within(client.get("/healthz")).await.expect(200);
    }
    assert!(!answering.is_finished(), "so much work takes longer than fifty small answers");
    let answer = within(answering).await.expect("does not panic");
    assert!(answer.starts_with("HTTP/1.1 422 "), "{answer}");
    let status: Value = serde_json::from_str(&answer[answer.find('{').expect("a status")..]).expect("is JSON");
    let causes = status["details"]["causes"].as_array().expect("has causes");
    let fields: Vec<&str> = causes.iter().filter_map(|cause| cause["field"].as_str()).collect();
    assert_eq!(fields, [format!("spec.ports[{}]", PORTS - 1)]);
}
