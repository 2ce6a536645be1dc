//! Several servers on one etcd: what one writes, the other reads, watches and keeps.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{SILENT, Server, eventually};
use crate::objects::{CONFIG_MAPS, config_map};
use crate::xtask;

/// A real etcd, which goes with its test.
struct Etcd {
    process: Child,
    url: String,
    _folder: TempDir,
}

impl Etcd {
    async fn start() -> Etcd {
        let binary = std::env::var_os("REVISOR_ETCD").map_or_else(|| xtask::path_of("etcd"), PathBuf::from);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [client, peer] = [spare(), spare()];
        let (url, peer) = (format!("http://{client}"), format!("http://{peer}"));
        let process = Command::new(binary)
            .arg(format!("--data-dir={}", folder.path().join("data").display()))
            .args([
                "--name=m",
                "--log-level=error",
                "--unsafe-no-fsync",
                "--heartbeat-interval=10",
                "--election-timeout=50",
            ])
            .args([format!("--listen-client-urls={url}"), format!("--advertise-client-urls={url}")])
            .args([format!("--listen-peer-urls={peer}"), format!("--initial-advertise-peer-urls={peer}")])
            .arg(format!("--initial-cluster=m={peer}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd can be started");
        let etcd = Etcd { process, url, _folder: folder };
        eventually(|| std::future::ready(TcpStream::connect(client).ok())).await;
        etcd
    }

    async fn serve(&self, more: &[&str]) -> Server {
        let servers = format!("--etcd-servers={}", self.url);
        let flags: Vec<&str> =
            [&servers, "--controllers=none"].into_iter().chain(SILENT).chain(more.iter().copied()).collect();
        Server::start(&flags).await
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.process.kill();
        self.process.wait().expect("a child can be waited for");
    }
}

/// An address that nobody listens at.
fn spare() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("there are ports")
}

#[tokio::test]
async fn what_one_server_acknowledges_the_other_shows_at_once() {
    let etcd = Etcd::start().await;
    let (one, two) = (etcd.serve(&[]).await, etcd.serve(&[]).await);
    let (a, b) = (one.client(), two.client());
    let made = a.post(CONFIG_MAPS, &config_map("x", "1")).await.expect(201);
    assert_eq!(b.get(&format!("{CONFIG_MAPS}/x")).await.expect(200).json(), made.json());
    b.post(CONFIG_MAPS, &config_map("x", "2")).await.fails(409, "AlreadyExists");
    let mut watch = b.watch(CONFIG_MAPS, &format!("resourceVersion={}", made.version())).await;
    let changed = a.put(&format!("{CONFIG_MAPS}/x"), &config_map("x", "3")).await.expect(200);
    watch.expect("MODIFIED", "x", changed.version()).await;
    // The pages of a list may come from both.
    b.post(CONFIG_MAPS, &config_map("y", "1")).await.expect(201);
    let page = a.get(&format!("{CONFIG_MAPS}?limit=1")).await.expect(200).json();
    let token = page["metadata"]["continue"].as_str().expect("there is more").to_owned();
    b.delete(&format!("{CONFIG_MAPS}/y")).await.expect(200);
    let rest = b.get(&format!("{CONFIG_MAPS}?limit=5&continue={token}")).await.expect(200);
    assert!(rest.names().contains(&"y".to_owned()), "all pages are one state: {:?}", rest.names());
}

#[tokio::test]
async fn ports_and_definitions_are_known_to_both() {
    let etcd = Etcd::start().await;
    let ports = "--service-node-port-range=30100-30101";
    let (one, two) = (etcd.serve(&[ports]).await, etcd.serve(&[ports]).await);
    let (a, b) = (one.client(), two.client());
    let services = "/api/v1/namespaces/default/services";
    let service =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let mut taken = Vec::new();
    for (client, name) in [(&a, "a"), (&b, "b")] {
        let made = client.post(services, &service(name)).await.expect(201).json();
        taken.push(made["spec"]["ports"][0]["nodePort"].as_i64());
    }
    taken.sort();
    assert_eq!(taken, [Some(30100), Some(30101)]);
    assert!(a.post(services, &service("c")).await.code >= 400, "there is no third port");
    b.delete(&format!("{services}/a")).await.expect(200);
    a.post(services, &service("c")).await.expect(201);

    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    a.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"text": "<&>"}});
    let made = a.post(widgets, &widget).await.expect(201).json();
    let seen = eventually(|| async {
        let reply = b.get(&format!("{widgets}/w")).await;
        (reply.code == 200).then(|| reply.json())
    });
    assert_eq!(seen.await, made);
}
