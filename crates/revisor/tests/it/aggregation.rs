//! API servers behind this one: another Revisor that serves a group of its own, and programs that do what servers should
//! not. Upstream's sample of one is in `sample_server`.

mod owners;
mod sample_server;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::behind::{Authority, Behind, header, reply};
use crate::client::{Client, MERGE};
use crate::harness::{ADMIN_TOKEN, GUEST_TOKEN, Server, eventually, within};
use crate::kubectl::{self, Kubectl};

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const LAMPS: &str = "/apis/ext.example/v1/namespaces/default/lamps";

fn definition() -> Value {
    let watts = json!({"name": "Watts", "type": "integer", "jsonPath": ".spec.watts"});
    let spec = json!({"type": "object", "properties": {"watts": {"type": "integer", "description": "How bright"}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.ext.example"},
        "spec": {
            "group": "ext.example",
            "scope": "Namespaced",
            "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "additionalPrinterColumns": [watts],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

/// An APIService of the group at a port of the service `ext`.
fn registration(port: u16, authority: &Authority) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.ext.example"},
        "spec": {
            "group": "ext.example", "version": "v1", "groupPriorityMinimum": 17850, "versionPriority": 10,
            "caBundle": STANDARD.encode(&authority.pem),
            "service": {"namespace": "default", "name": "ext", "port": port},
        },
    })
}

/// The reason and the message of what an APIService says of whether it is available.
async fn availability(client: &Client) -> (String, String) {
    let service = client.get(&format!("{SERVICES}/v1.ext.example")).await.expect(200).json();
    let condition = &service["status"]["conditions"][0];
    let text = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

async fn becomes(client: &Client, reason: &str) {
    eventually(|| async { (availability(client).await.0 == reason).then_some(()) }).await;
}

/// Says that the service `ext` is on this machine.
async fn place_service(client: &Client) {
    let spec = json!({"type": "ExternalName", "externalName": "127.0.0.1"});
    let service = json!({"metadata": {"name": "ext"}, "spec": spec});
    client.post("/api/v1/namespaces/default/services", &service).await.expect(201);
}

fn flag(name: &str, path: &std::path::Path) -> String {
    format!("--{name}={}", path.display())
}

/// A server in front, a kubectl for it, and another Revisor behind it that believes whom it names.
struct Both {
    front: Server,
    kubectl: std::sync::Arc<Kubectl>,
    behind: Server,
}

impl Both {
    /// Both of them, once the front has found the other.
    async fn start() -> Both {
        Both::with_controllers("namespace", "*").await
    }

    /// The same with these controllers in front and behind.
    async fn with_controllers(in_front: &str, behind: &str) -> Both {
        let authority = Authority::new("both");
        let (certificate, key) = authority.certificate("server", &["ext.default.svc", "127.0.0.1"]);
        let behind = Server::start(&[
            &flag("requestheader-client-ca-file", &authority.file()),
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            &format!("--tls-sni-cert-key={},{}:ext.default.svc", certificate.display(), key.display()),
            &format!("--controllers={behind}"),
        ])
        .await;
        let (certificate, key) = authority.certificate("front-proxy", &[]);
        let (front, kubectl) = kubectl::start(&[
            &flag("proxy-client-cert-file", &certificate),
            &flag("proxy-client-key-file", &key),
            &format!("--controllers={in_front}"),
        ])
        .await;
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        behind.client().post(definitions, &definition()).await.expect(201);
        let client = front.client();
        client.get(LAMPS).await.expect(404);
        place_service(&client).await;
        client.post(SERVICES, &registration(behind.kubeconfig.address.port(), &authority)).await.expect(201);
        becomes(&client, "Passed").await;
        let both = Both { front, kubectl, behind };
        eventually(|| async { both.kubectl.ok("api-resources").await.contains("ext.example/v1").then_some(()) }).await;
        both
    }
}

fn lamp() -> String {
    let lamp = json!({"apiVersion": "ext.example/v1", "kind": "Lamp", "metadata": {"name": "a"}, "spec": {"watts": 5}});
    lamp.to_string()
}

// What is one story is told in parts: the stacks of tests are small.

#[tokio::test]
async fn another_server_serves_a_group() {
    let both = Box::pin(Both::start()).await;
    Box::pin(it_is_used_like_any_other(&both)).await;
    Box::pin(it_is_described_like_any_other(&both)).await;
    Box::pin(both_servers_decide(&both)).await;
    Box::pin(namespaces_go_with_what_it_has(&both)).await;
    Box::pin(its_end_is_told(both)).await;
}

async fn it_is_used_like_any_other(Both { front, kubectl, behind }: &Both) {
    let listed = kubectl.squeezed("get apiservices v1.ext.example").await;
    assert!(listed.contains("v1.ext.example default/ext True"), "{listed}");
    let mut watch = front.client().watch(LAMPS, "").await;
    kubectl.ok_with("create -f -", &lamp()).await;
    assert_eq!(watch.event().await.facts().1, "a");
    let table = kubectl.squeezed("get lamps").await;
    assert!(table.contains("NAME WATTS") && table.contains("a 5"), "{table}");
    kubectl.ok("label lamp a colour=red").await;
    let there = behind.client().get(&format!("{LAMPS}/a")).await.expect(200).json();
    assert_eq!(there["metadata"]["labels"]["colour"], "red");
}

async fn it_is_described_like_any_other(Both { front, kubectl, .. }: &Both) {
    let client = front.client();
    let explained = kubectl.ok("explain lamps.spec.watts").await;
    assert!(explained.contains("How bright"), "{explained}");
    let path = "/apis/ext.example/v1/namespaces/{namespace}/lamps";
    eventually(|| async {
        let swagger = client.get("/openapi/v2").await.expect(200).json();
        let is_told =
            swagger["paths"][path]["get"].is_object() && swagger["definitions"]["example.ext.v1.Lamp"].is_object();
        is_told.then_some(())
    })
    .await;
    let groups = client.get("/apis").await.expect(200).json();
    let groups = groups["groups"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = groups.iter().filter_map(|group| group["name"].as_str()).collect();
    // Before those with a lower priority.
    let at = |name: &str| names.iter().position(|known| *known == name).expect(name);
    assert!(at("apiregistration.k8s.io") < at("ext.example") && at("ext.example") < at("apps"), "{names:?}");
    client.get("/apis/ext.example").await.expect(200);
}

async fn both_servers_decide(Both { front, kubectl, behind }: &Both) {
    let guest = Client::new(front.kubeconfig.clone()).with_token(GUEST_TOKEN);
    let refusal = guest.get(LAMPS).await.fails(403, "Forbidden");
    assert!(refusal["message"].as_str().is_some_and(|it| it.contains(r#"User "jane" cannot list"#)), "{refusal}");
    kubectl.ok("create clusterrole lamps --verb=list --resource=lamps.ext.example").await;
    kubectl.ok("create clusterrolebinding lamps --clusterrole=lamps --user=jane").await;
    guest.get(LAMPS).await.fails(403, "Forbidden");
    let rule = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]});
    let role = json!({"metadata": {"name": "x"}, "rules": [rule]});
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    behind.client().post(&format!("{roles}/clusterroles"), &role).await.expect(201);
    let binding = json!({
        "metadata": {"name": "x"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}],
    });
    behind.client().post(&format!("{roles}/clusterrolebindings"), &binding).await.expect(201);
    guest.get(LAMPS).await.expect(200);
    // Nobody else may name users.
    let stranger = Client::new(behind.kubeconfig.clone());
    let headers = [("x-remote-user", "admin"), ("x-remote-group", "system:masters")];
    let request = stranger.request(http::Method::GET, LAMPS, &headers, bytes::Bytes::new());
    assert_eq!(stranger.try_request(request).await.expect("an answer").code, 403);
}

async fn namespaces_go_with_what_it_has(Both { kubectl, behind, .. }: &Both) {
    kubectl.ok("create namespace gone").await;
    behind.client().post("/api/v1/namespaces", &json!({"metadata": {"name": "gone"}})).await.expect(201);
    kubectl.ok_with("-n gone create -f -", &lamp()).await;
    kubectl.ok("delete namespace gone").await;
    let left = behind.client().get("/apis/ext.example/v1/namespaces/gone/lamps").await.expect(200);
    assert!(left.names().is_empty());
}

/// One that is gone holds up nobody but those who need it.
async fn its_end_is_told(Both { front, kubectl, behind }: Both) {
    let client = front.client();
    drop(behind);
    // It would be found out within half a minute; a change of the service is a reason to look.
    let change = json!({"metadata": {"labels": {"look": "again"}}});
    client.patch("/api/v1/namespaces/default/services/ext", MERGE, &change).await.expect(200);
    becomes(&client, "FailedDiscoveryCheck").await;
    let reply = client.get(LAMPS).await.expect(503);
    assert_eq!(reply.text(), "service unavailable\n");
    client.get("/api/v1/namespaces/default/configmaps").await.expect(200);
    kubectl.ok("create namespace waits").await;
    client.delete("/api/v1/namespaces/waits").await;
    let condition = eventually(|| async {
        let namespace = client.get("/api/v1/namespaces/waits").await.expect(200).json();
        let conditions = namespace["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|it| it["reason"] == "DiscoveryFailed")
    })
    .await;
    assert!(condition["message"].as_str().is_some_and(|it| it.contains("ext.example/v1")), "{condition}");
    client.delete(&format!("{SERVICES}/v1.ext.example")).await.expect(200);
    client.get(LAMPS).await.expect(404);
    eventually(|| async { (client.get("/api/v1/namespaces/waits").await.code == 404).then_some(()) }).await;
}

#[tokio::test]
async fn what_is_in_the_way_of_a_server_is_told() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let authority = Authority::new("nobody");
    client.post(SERVICES, &registration(443, &authority)).await.expect(201);
    becomes(&client, "ServiceNotFound").await;
    assert_eq!(availability(&client).await.1, r#"service/ext in "default" is not present"#);
    let told = client.get(&format!("{SERVICES}/v1.ext.example")).await.expect(200).json();
    let mut managers = told["metadata"]["managedFields"].as_array().into_iter().flatten();
    assert!(managers.any(|it| it["manager"] == "kube-apiserver" && it["subresource"] == "status"), "{told}");
    let service = |port: u16| json!({"metadata": {"name": "ext"}, "spec": {"ports": [{"name": "api", "port": port}]}});
    let services = "/api/v1/namespaces/default/services";
    client.post(services, &service(80)).await.expect(201);
    becomes(&client, "ServicePortError").await;
    assert_eq!(availability(&client).await.1, r#"service/ext in "default" is not listening on port 443"#);
    client.delete(&format!("{services}/ext")).await.expect(200);
    client.post(services, &service(443)).await.expect(201);
    becomes(&client, "EndpointsNotFound").await;
    let slice = |ports: Value| {
        json!({
            "metadata": {"name": "ext", "labels": {"kubernetes.io/service-name": "ext"}},
            "addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.77"]}], "ports": ports,
        })
    };
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    client.post(slices, &slice(json!([{"name": "other", "port": 1}]))).await.expect(201);
    becomes(&client, "MissingEndpoints").await;
    let message = availability(&client).await.1;
    assert_eq!(message, r#"endpointslices for service/ext in "default" have no addresses with port name "api""#);
    // What was local, and is again, is available; requests go to whoever serves now.
    let mut local = client.get(&format!("{SERVICES}/v1.ext.example")).await.expect(200).json();
    local["spec"]["service"] = Value::Null;
    local["spec"]["caBundle"] = Value::Null;
    client.put(&format!("{SERVICES}/v1.ext.example"), &local).await.expect(200);
    becomes(&client, "Local").await;
}

#[tokio::test]
async fn odd_servers_hurt_nobody() {
    let authority = Authority::new("both");
    let served = authority.certificate("server", &["ext.default.svc"]);
    let behind = Behind::start("127.0.0.1", served, &authority, |head, mut stream| {
        Box::pin(async move {
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            match path.as_str() {
                "/apis/ext.example/v1" => reply(&mut stream, "200 OK", "{}").await,
                "/apis/ext.example/v1/moved" => {
                    reply(&mut stream, "302 Found\r\nLocation: https://elsewhere.example/", "").await
                }
                "/apis/ext.example/v1/broken" => {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").await;
                    let _ = stream.shutdown().await;
                }
                "/apis/ext.example/v1/user" => {
                    let shown: Vec<&str> =
                        head.lines().filter(|line| line.to_lowercase().starts_with("x-remote-")).collect();
                    reply(&mut stream, "200 OK\r\nX-Mine: 1\r\nConnection: X-Mine", &shown.join(",")).await;
                }
                "/apis/ext.example/v1/echo" => {
                    assert_eq!(header(&head, "upgrade"), Some("echo"));
                    let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
                    let _ = stream.write_all(agreed.as_bytes()).await;
                    let mut buffer = [0; 5];
                    let _ = stream.read_exact(&mut buffer).await;
                    let _ = stream.write_all(&buffer).await;
                    let _ = stream.shutdown().await;
                }
                _ => reply(&mut stream, "404 Not Found", "").await,
            }
        })
    })
    .await;
    let (certificate, key) = authority.certificate("front-proxy", &[]);
    let server =
        Server::start(&[&flag("proxy-client-cert-file", &certificate), &flag("proxy-client-key-file", &key)]).await;
    let client = server.client();
    place_service(&client).await;
    client.post(SERVICES, &registration(behind.address.port(), &authority)).await.expect(201);
    becomes(&client, "Passed").await;
    let moved = client.get("/apis/ext.example/v1/moved").await.expect(502);
    assert_eq!(moved.text(), "the backend attempted to redirect this request, which is not permitted");
    let broken = client.request(http::Method::GET, "/apis/ext.example/v1/broken", &[], bytes::Bytes::new());
    client.try_request(broken).await.err().expect("half an answer is none");
    let shown = client.get("/apis/ext.example/v1/user").await.expect(200);
    assert_eq!(shown.header("x-mine"), None);
    let text = shown.text().to_lowercase();
    for want in ["x-remote-user: admin", "x-remote-group: system:masters", "x-remote-group: system:authenticated"] {
        assert!(text.contains(want), "{text}");
    }

    let mut stream = client.over_http1().connect().await.expect("a connection");
    let ask = format!(
        "GET /apis/ext.example/v1/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nConnection: \
         Upgrade\r\nUpgrade: echo\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await.expect("is sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within(stream.read_u8()).await.expect("a head"));
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    assert!(head.starts_with("HTTP/1.1 101 ") && header(&head, "upgrade") == Some("echo"), "{head}");
    stream.write_all(b"hello").await.expect("is sent");
    let mut said = Vec::new();
    within(stream.read_to_end(&mut said)).await.expect("an end");
    assert_eq!(said, b"hello");
    server.assert_well().await;
}
