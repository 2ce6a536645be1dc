//! Logs, exec, forwarded ports and proxies: a kubelet that speaks TLS and knows whom it lets in, and a pod that speaks HTTP.

mod spdy;

use std::sync::{Arc, Mutex};

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::behind::{Asked, Authority, Behind, header, machine_address, reply};
use crate::client::{Client, MERGE};
use crate::harness::{ADMIN_TOKEN, Server, within};
use crate::kubectl::{self, Kubectl};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// What a kubelet was asked for, in order.
type Asking = Arc<Mutex<Vec<String>>>;

struct Stage {
    server: Server,
    kubectl: Arc<Kubectl>,
    kubelet: Behind,
    asked: Asking,
    /// Where the kubelet is.
    host: String,
}

/// A server with a kubelet, on whose node the pod `p` runs.
async fn start() -> Stage {
    let authority = Authority::new("kubelets");
    let host = machine_address().map_or("127.0.0.1".to_owned(), |address| address.to_string());
    let served = authority.certificate("node", &[&host]);
    let asked = Asking::default();
    let noted = asked.clone();
    let kubelet = Behind::start(&host, served, &authority, move |head, stream| {
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        noted.lock().expect("nobody panics with it").push(target.clone());
        Box::pin(answer(target, head, stream))
    })
    .await;
    let (certificate, key) = authority.certificate("apiserver", &[]);
    let (server, kubectl) = kubectl::start(&[
        &format!("--kubelet-client-certificate={}", certificate.display()),
        &format!("--kubelet-client-key={}", key.display()),
        &format!("--kubelet-certificate-authority={}", authority.file().display()),
        "--kubelet-preferred-address-types=InternalIP",
        "--disable-admission-plugins=ServiceAccount",
    ])
    .await;
    let client = server.client();
    client.post("/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await.expect(201);
    tell_address(&client, &host, &kubelet).await;
    client.post(PODS, &pod("p", json!([{"name": "main", "image": "i"}]))).await.expect(201);
    Stage { server, kubectl, kubelet, asked, host }
}

/// Lets the node `n` say where its kubelet is.
async fn tell_address(client: &Client, host: &str, kubelet: &Behind) {
    let status = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": host}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.address.port()}},
    }});
    client.patch("/api/v1/nodes/n/status", MERGE, &status).await.expect(200);
}

fn pod(name: &str, containers: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"nodeName": "n", "containers": containers}})
}

/// What the kubelet does.
async fn answer(target: String, head: String, mut stream: Asked) {
    let path = target.split('?').next().unwrap_or_default().to_owned();
    match path.as_str() {
        "/containerLogs/default/p/main" => reply(&mut stream, "200 OK\r\nContent-Type: text/x", "one\ntwo\n").await,
        "/containerLogs/default/q/b" => reply(&mut stream, "400 Bad Request", "container b is waiting").await,
        "/exec/default/p/main" if header(&head, "upgrade") == Some("SPDY/3.1") => {
            spdy::run_command(stream, &head, target.split_once('?').map_or("", |(_, query)| query)).await;
        }
        "/exec/default/p/main" => {
            upgrade(&mut stream, &head).await;
            // Channel 1 is what the command prints, channel 3 tells how it ended.
            for (channel, text) in [(1_u8, "hello\n"), (3, r#"{"metadata":{},"status":"Success"}"#)] {
                let length = u8::try_from(text.len() + 1).expect("is short");
                let frame = [&[0x82, length, channel], text.as_bytes()].concat();
                let _ = stream.write_all(&frame).await;
            }
            let _ = stream.write_all(&[0x88, 2, 3, 232]).await;
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
        }
        "/portForward/default/p" if header(&head, "x-stream-protocol-version").is_some() => {
            spdy::echo_ports(stream, &head).await;
        }
        "/portForward/default/p" => {
            assert_eq!(header(&head, "upgrade"), Some("SPDY/3.1"));
            let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nready";
            let _ = stream.write_all(agreed.as_bytes()).await;
            let mut said = [0; 4];
            let _ = stream.read_exact(&mut said).await;
            let _ = stream.write_all(&said).await;
            let _ = stream.shutdown().await;
        }
        "/attach/default/p/main" => reply(&mut stream, "403 Forbidden", "not today").await,
        "/healthz" => reply(&mut stream, "200 OK", "well").await,
        _ => reply(&mut stream, "404 Not Found", "what?").await,
    }
}

/// Agrees to a WebSocket.
async fn upgrade(stream: &mut Asked, head: &str) {
    let mut sha1 = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    sha1.update(header(head, "sec-websocket-key").unwrap_or_default().as_bytes());
    sha1.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let accept = STANDARD.encode(sha1.finish());
    let protocol = header(head, "sec-websocket-protocol").and_then(|list| list.split(',').next()).unwrap_or_default();
    let agreed = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: \
         {accept}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    );
    let _ = stream.write_all(agreed.as_bytes()).await;
}

#[tokio::test]
async fn kubelets_are_asked_for_what_runs_there() {
    let stage = start().await;
    let (kubectl, client) = (&stage.kubectl, stage.server.client());
    assert_eq!(kubectl.ok("logs p").await, "one\ntwo\n");
    kubectl.ok("logs p --tail=5 --timestamps --since=10s").await;
    let reply = client.get(&format!("{PODS}/p/log?follow=true")).await.expect(200);
    assert_eq!(reply.header("content-type"), Some("text/plain"));
    let asked = stage.asked.lock().expect("nobody panics with it").clone();
    assert_eq!(
        asked,
        [
            "/containerLogs/default/p/main",
            "/containerLogs/default/p/main?sinceSeconds=10&tailLines=5&timestamps=true",
            "/containerLogs/default/p/main?follow=true",
        ]
    );
    // What a client can see is wrong is said before anybody is asked.
    client.post(PODS, &pod("q", json!([{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]))).await.expect(201);
    let refusal = client.get(&format!("{PODS}/q/log")).await.fails(400, "BadRequest");
    assert_eq!(refusal["message"], "a container name must be specified for pod q, choose one of: [a b]");
    client.get(&format!("{PODS}/q/log?container=c")).await.fails(400, "BadRequest");
    client.get(&format!("{PODS}/p/log?tailLines=-1")).await.fails(422, "Invalid");
    let refusal = client.get(&format!("{PODS}/q/log?container=b")).await.fails(400, "BadRequest");
    assert_eq!(refusal["message"], "container b is waiting");
    let refusal = client.get(&format!("{PODS}/p/exec?command=x")).await.fails(400, "BadRequest");
    assert_eq!(refusal["message"], "Upgrade request required");
    // What a kubelet refuses is refused.
    let (_, answer) = switch(&client, &format!("{PODS}/p/attach"), "SPDY/3.1").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let refused = kubectl.refused("logs q -c a").await;
    assert!(refused.contains("the server could not find the requested resource"), "{refused}");
}

#[tokio::test]
async fn commands_run_over_web_sockets_though_kubelets_speak_spdy() {
    let stage = start().await;
    let (kubectl, client) = (&stage.kubectl, stage.server.client());
    assert_eq!(kubectl.ok("exec p -- greet").await, "hello\n");
    let asked = stage.asked.lock().expect("nobody panics with it").last().cloned();
    assert_eq!(asked.as_deref(), Some("/exec/default/p/main?command=greet&error=1&output=1"));
    // What is read ends, and so does the command.
    let long = "all work and no play\n".repeat(20_000);
    assert_eq!(kubectl.ok_with("exec -i p -- cat", &long).await, long);
    let refused = kubectl.refused("exec p -- fail").await;
    assert_eq!(refused, "out\nerr\ncommand terminated with exit code 3\n");
    // Why nothing was run is said where it is said how a command ended.
    let refused = kubectl.refused("attach p").await;
    assert!(refused.contains("unable to upgrade connection: not today"), "{refused}");

    // The same frame by frame: connected, the size of the terminal, the end.
    let path = format!("{PODS}/p/exec?command=size&stdin=true&stdout=true&tty=true");
    let mut socket = open_socket(&client, &path, "v4.channel.k8s.io, v5.channel.k8s.io").await;
    assert!(socket.head.to_lowercase().contains("sec-websocket-protocol: v5.channel.k8s.io\r\n"), "{}", socket.head);
    assert_eq!(socket.frame().await, (BINARY, vec![1]));
    socket.say(&[&[4][..], br#"{"Width":80,"Height":24}"#].concat()).await;
    assert_eq!(socket.frame().await, (BINARY, [&[1][..], br#"{"Width":80,"Height":24}"#].concat()));
    assert_eq!(socket.frame().await, (BINARY, [&[3][..], br#"{"metadata":{},"status":"Success"}"#].concat()));
    assert_eq!(socket.frame().await, (CLOSE, vec![3, 232]));
    // A client says that its input is over by saying so.
    let path = format!("{PODS}/p/exec?command=cat&stdin=true&stdout=true");
    let mut socket = open_socket(&client, &path, "v5.channel.k8s.io").await;
    assert_eq!(socket.frame().await, (BINARY, vec![1]));
    socket.say(b"\0last words").await;
    assert_eq!(socket.frame().await, (BINARY, b"\x01last words".to_vec()));
    socket.say(&[255, 0]).await;
    assert_eq!(socket.frame().await.1[0], 3);
    let counted = counted_of(&client, "apiserver_stream_translator_requests_total").await;
    assert_eq!(counted, [r#"{code="200"} 5"#, r#"{code="500"} 1"#]);

    // A kubelet that speaks WebSocket itself is left to do so.
    let speaks = json!({"status": {"declaredFeatures": ["ExtendWebSocketsToKubelet"]}});
    client.patch("/api/v1/nodes/n/status", MERGE, &speaks).await.expect(200);
    assert_eq!(kubectl.ok("exec p -- greet").await, "hello\n");
    let routed = counted_of(&client, "apiserver_websocket_streaming_requests_total").await;
    assert!(routed.contains(&r#"{proxy_type="proxied_to_kubelet",subresource="exec"} 1"#.to_owned()), "{routed:?}");
    stage.server.assert_well().await;
}

#[tokio::test]
async fn ports_are_forwarded_over_web_sockets_too() {
    let stage = start().await;
    let running = json!({"status": {"phase": "Running"}});
    stage.server.client().patch(&format!("{PODS}/p/status"), MERGE, &running).await.expect(200);
    let mut forwarding = stage.kubectl.begin("port-forward p :80 --address=127.0.0.1");
    let line = forwarding.line().await;
    let port = line.strip_prefix("Forwarding from 127.0.0.1:").and_then(|rest| rest.split(' ').next());
    let port: u16 = port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("no port: {line}"));
    let mut connection = within(tokio::net::TcpStream::connect(("127.0.0.1", port))).await.expect("is forwarded");
    let sent = b"ping".repeat(50_000);
    let mut came = vec![0; sent.len()];
    let (mut reading, mut writing) = connection.split();
    let (wrote, read) = within(async { tokio::join!(writing.write_all(&sent), reading.read_exact(&mut came)) }).await;
    wrote.expect("is sent");
    read.expect("comes back");
    assert_eq!(came, sent);
    let counted = counted_of(&stage.server.client(), "apiserver_stream_tunnel_requests_total").await;
    assert_eq!(counted, [r#"{code="101"} 1"#]);
}

/// What a server has counted under a name: labels and numbers.
async fn counted_of(client: &Client, name: &str) -> Vec<String> {
    let metrics = client.get("/metrics").await.expect(200);
    let text = String::from_utf8_lossy(&metrics.body);
    text.lines().filter_map(|line| line.strip_prefix(name)).map(str::to_owned).collect()
}

const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;

/// A WebSocket with a server.
struct Socket {
    stream: tokio_rustls::client::TlsStream<tokio::net::TcpStream>,
    head: String,
}

/// Opens one on which one of these subprotocols is spoken.
async fn open_socket(client: &Client, path: &str, protocols: &str) -> Socket {
    let mut stream = client.clone().over_http1().connect().await.expect("a connection");
    let ask = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nConnection: Upgrade\r\nUpgrade: \
         websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Protocol: {protocols}\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await.expect("is sent");
    let head = read_head(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    Socket { stream, head }
}

impl Socket {
    /// The next frame: its first byte and what it says.
    async fn frame(&mut self) -> (u8, Vec<u8>) {
        within(async {
            let kind = self.stream.read_u8().await.expect("a frame");
            let length = match self.stream.read_u8().await.expect("a length") {
                126 => usize::from(self.stream.read_u16().await.expect("a length")),
                short => usize::from(short),
            };
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload).await.expect("a payload");
            (kind, payload)
        })
        .await
    }

    /// Sends a short message.
    async fn say(&mut self, message: &[u8]) {
        let length = u8::try_from(message.len()).expect("is short");
        let frame = [&[BINARY, 0x80 | length, 0, 0, 0, 0], message].concat();
        self.stream.write_all(&frame).await.expect("is sent");
    }
}

#[tokio::test]
async fn ports_are_forwarded_as_they_speak() {
    let stage = start().await;
    let client = stage.server.client();
    let (mut stream, head) = switch(&client, &format!("{PODS}/p/portforward?ports=80,443"), "SPDY/3.1").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    let mut said = [0; 5];
    within(stream.read_exact(&mut said)).await.expect("what the kubelet says");
    assert_eq!(&said, b"ready");
    stream.write_all(b"ping").await.expect("is sent");
    let mut rest = Vec::new();
    within(stream.read_to_end(&mut rest)).await.expect("an end");
    assert_eq!(rest, b"ping");
    stage.server.assert_well().await;
}

/// Asks for another protocol: the connection, and the head of the answer.
async fn switch(
    client: &Client,
    path: &str,
    protocol: &str,
) -> (tokio_rustls::client::TlsStream<tokio::net::TcpStream>, String) {
    let mut stream = client.clone().over_http1().connect().await.expect("a connection");
    let ask = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nConnection: Upgrade\r\nUpgrade: \
         {protocol}\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await.expect("is sent");
    let head = read_head(&mut stream).await;
    (stream, head)
}

async fn read_head(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within(stream.read_u8()).await.expect("a head"));
    }
    String::from_utf8_lossy(&head).into_owned()
}

#[tokio::test]
async fn proxies_lead_to_nodes_pods_and_services() {
    let stage = start().await;
    let (kubectl, client) = (&stage.kubectl, stage.server.client());
    let node = "/api/v1/nodes/n/proxy";
    let status = json!({"status": {"podIP": stage.host, "podIPs": [{"ip": stage.host}]}});
    client.patch(&format!("{PODS}/p/status"), MERGE, &status).await.expect(200);
    if stage.host == "127.0.0.1" {
        // Nobody is led to the machine of the server itself, and there is no other here.
        client.get(&format!("{node}/healthz")).await.fails(400, "BadRequest");
        client.get(&format!("{PODS}/p:80/proxy/")).await.fails(400, "BadRequest");
        return;
    }
    assert_eq!(kubectl.ok(&format!("get --raw {node}/healthz")).await, "well");
    let port = stage.kubelet.address.port();
    assert_eq!(client.get(&format!("/api/v1/nodes/n:{port}/proxy/healthz")).await.expect(200).text(), "well");
    client.get(&format!("{node}/nothing")).await.expect(404);
    let there = client.get(node).await.expect(301);
    assert_eq!(there.header("location"), Some("/api/v1/nodes/n/proxy/"));

    let (web, heads) = web_server(&stage.host).await;
    let pod = format!("{PODS}/p:{web}/proxy");
    assert_eq!(kubectl.ok(&format!("get --raw {pod}/page?x=y")).await, "a page");
    let head = heads.lock().expect("nobody panics with it").last().cloned().expect("was asked");
    assert!(head.starts_with("GET /page?x=y "), "{head}");
    assert_eq!(header(&head, "x-forwarded-uri"), Some(format!("{pod}/page").as_str()));
    assert_eq!(header(&head, "authorization"), None);
    let moved = client.get(&format!("{pod}/moved")).await.expect(302);
    assert_eq!(moved.header("location"), Some(format!("{pod}/elsewhere").as_str()));
    let posted = client.post(&format!("{pod}/page"), &json!({"a": 1})).await.expect(200);
    assert_eq!(posted.text(), "a page");
    let refused = client.get(&format!("{PODS}/p:1/proxy/")).await.fails(503, "ServiceUnavailable");
    assert!(refused["message"].as_str().is_some_and(|it| it.starts_with("error trying to reach service: dial tcp")));

    // Services lead to pods, and nowhere else.
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"name": "web", "port": 80}]}});
    client.post("/api/v1/namespaces/default/services", &service).await.expect(201);
    let endpoints = |target: Value| {
        let address = json!({"ip": stage.host, "targetRef": target});
        json!({"metadata": {"name": "s"}, "subsets": [{"addresses": [address], "ports": [{"name": "web", "port": web}]}]})
    };
    let at = "/api/v1/namespaces/default/endpoints";
    client.post(at, &endpoints(json!({"kind": "Pod", "namespace": "default", "name": "q"}))).await.expect(201);
    let through = "/api/v1/namespaces/default/services/s:80/proxy/page";
    client.get(through).await.fails(503, "ServiceUnavailable");
    let right = endpoints(json!({"kind": "Pod", "namespace": "default", "name": "p"}));
    client.put(&format!("{at}/s"), &right).await.expect(200);
    assert_eq!(client.get(through).await.expect(200).text(), "a page");
}

/// A web server without TLS: its port, and what it was asked.
async fn web_server(host: &str) -> (u16, Asking) {
    let listener = TcpListener::bind((host, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let heads = Asking::default();
    let noted = heads.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let answer = match head.split(' ').nth(1).unwrap_or_default() {
                "/moved" => "302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n".to_owned(),
                _ => "200 OK\r\nContent-Length: 6\r\n\r\na page".to_owned(),
            };
            // What is sent with a request is taken before it is answered.
            let length = header(&head, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            let _ = stream.read_exact(&mut body).await;
            noted.lock().expect("nobody panics with it").push(head);
            let _ = stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).await;
        }
    });
    (port, heads)
}

/// As kwok is used: it does not ask who comes, and nobody gave the server a certificate.
#[tokio::test]
async fn kubelets_that_let_everybody_in_are_asked_without_a_certificate() {
    let authority = Authority::new("kubelets");
    let kubelet = Behind::open_to_all("127.0.0.1", authority.certificate("node", &["127.0.0.1"]), |head, stream| {
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        Box::pin(answer(target, head, stream))
    })
    .await;
    let server = Server::start(&["--disable-admission-plugins=ServiceAccount"]).await;
    let client = server.client();
    client.post("/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await.expect(201);
    tell_address(&client, "127.0.0.1", &kubelet).await;
    client.post(PODS, &pod("p", json!([{"name": "main", "image": "i"}]))).await.expect(201);
    assert_eq!(client.get(&format!("{PODS}/p/log")).await.expect(200).text(), "one\ntwo\n");
}
