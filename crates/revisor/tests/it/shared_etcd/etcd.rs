//! [`Etcd`]: a real etcd for one test.

use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use revisor_etcd::messages::{PutRequest, RangeRequest, Request, RequestOp, TxnRequest};
use revisor_etcd::{Client, TlsFiles};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{SILENT, Server, eventually};
use crate::xtask;

/// A real etcd, which goes with its test.
pub(crate) struct Etcd {
    process: Child,
    pub(crate) url: String,
    pub(crate) folder: TempDir,
}

impl Etcd {
    pub(crate) async fn start() -> Etcd {
        Etcd::start_at("http", &[]).await
    }

    /// One that clients reach by this scheme, with further flags.
    pub(super) async fn start_at(scheme: &str, flags: &[String]) -> Etcd {
        let binary = std::env::var_os("REVISOR_ETCD").map_or_else(|| xtask::path_of("etcd"), PathBuf::from);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [client, peer] = [spare(), spare()];
        let (url, peer) = (format!("{scheme}://{client}"), format!("http://{peer}"));
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
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd can be started");
        let etcd = Etcd { process, url, folder };
        eventually(|| std::future::ready(TcpStream::connect(client).ok())).await;
        etcd
    }

    pub(crate) async fn serve(&self, more: &[&str]) -> Server {
        self.serve_at(&self.url, &[&["--controllers=none"], more].concat()).await
    }

    /// Starts a server that reaches the etcd at another address.
    pub(super) async fn serve_at(&self, url: &str, more: &[&str]) -> Server {
        let servers = format!("--etcd-servers={url}");
        let flags: Vec<&str> = [&*servers].into_iter().chain(SILENT).chain(more.iter().copied()).collect();
        Server::start(&flags).await
    }

    /// Ends it in the middle of whatever it does.
    pub(super) fn kill(&mut self) {
        self.process.kill().expect("it runs");
    }

    /// Asks it to stop, and waits until it has: then its files hold everything.
    pub(crate) fn stop(&mut self) {
        let sent = Command::new("kill").arg("-TERM").arg(self.process.id().to_string()).status();
        assert!(sent.expect("there is a kill command").success(), "the process is there");
        self.process.wait().expect("a child can be waited for");
    }

    fn client(&self) -> Client {
        Client::new(std::slice::from_ref(&self.url), &TlsFiles::default()).expect("an address")
    }

    /// What stands at a key.
    pub(super) async fn value(&self, key: &str) -> Option<Bytes> {
        let request = RangeRequest { key: key.to_owned().into(), ..RangeRequest::default() };
        let found = self.client().range(&request).await.expect("etcd answers");
        found.kvs.into_iter().next().map(|kv| kv.value)
    }

    /// What it answers to a request to its gateway, which speaks HTTP.
    pub(super) async fn gateway(&self, path: &str, body: &str) -> serde_json::Value {
        serde_json::from_str(&self.http("POST", path, body).await).expect("it is JSON")
    }

    /// How many reads it has answered.
    pub(super) async fn reads(&self) -> u64 {
        let metrics = self.http("GET", "/metrics", "").await;
        let series =
            |line: &&str| line.starts_with("grpc_server_handled_total{") && line.contains(r#"grpc_method="Range""#);
        let count =
            |line: &str| line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok()).unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a count of a short test")]
        let reads = metrics.lines().filter(series).map(count).sum::<f64>() as u64;
        reads
    }

    async fn http(&self, method: &str, path: &str, body: &str) -> String {
        let address = self.url.trim_start_matches("http://");
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("etcd listens");
        let head = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await.expect("etcd reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("etcd answers");
        let (_, body) = answer.split_once("\r\n\r\n").expect("there is a body");
        body.to_owned()
    }

    /// Puts something at a key behind the back of all servers.
    pub(super) async fn put(&self, key: &str, value: &'static [u8]) {
        let put = PutRequest { key: key.to_owned().into(), value: Bytes::from_static(value), lease: 0 };
        let success = vec![RequestOp { request: Some(Request::Put(put)) }];
        let transaction = TxnRequest { success, ..TxnRequest::default() };
        self.client().txn(&transaction).await.expect("etcd answers");
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.process.kill();
        self.process.wait().expect("a child can be waited for");
    }
}

/// An address that nobody listens at. Systems give out no ports as low as this by themselves: whoever tries to connect
/// there before somebody listens would meet itself if its own end were given the same one, and the port would be taken.
pub(crate) fn spare() -> SocketAddr {
    let ports = std::iter::repeat_with(|| 20_000 + RandomState::new().hash_one(()) % 12_000);
    let free = ports.take(1_000).find_map(|port| TcpListener::bind(("127.0.0.1", port as u16)).ok());
    free.and_then(|listener| listener.local_addr().ok()).expect("there are ports")
}
