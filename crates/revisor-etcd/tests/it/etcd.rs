//! [`Etcd`]: a real etcd of one member, which goes with its test.

use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use revisor_etcd::messages::{PutRequest, Request, RequestOp, TxnRequest};
use revisor_etcd::{Client, EtcdOptions, EtcdStore, TlsFiles};
use revisor_store::contract::Fixture;
use revisor_store::{BoxFuture, Store};
use revisor_version::Revision;
use tempfile::TempDir;

use crate::framing::Framing;

/// A process of etcd with a folder of its own.
pub(crate) struct Etcd {
    binary: String,
    flags: Vec<String>,
    folder: TempDir,
    client: SocketAddr,
    peer: SocketAddr,
    process: Mutex<Option<Child>>,
}

impl Etcd {
    pub(crate) fn start() -> Etcd {
        Etcd::start_with(&[])
    }

    /// One that is started with further flags.
    pub(crate) fn start_with(flags: &[&str]) -> Etcd {
        let binary = std::env::var("REVISOR_ETCD");
        Etcd::begin(binary.expect("REVISOR_ETCD names an etcd; `cargo xtask etcd` provides one"), flags)
    }

    /// One of the oldest release that is to work.
    pub(crate) fn start_oldest() -> Etcd {
        let binary = std::env::var("REVISOR_ETCD_OLDEST");
        let binary = binary.expect("REVISOR_ETCD_OLDEST names an etcd; `cargo xtask etcd --oldest` provides one");
        Etcd::begin(binary, &[])
    }

    fn begin(binary: String, flags: &[&str]) -> Etcd {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let etcd = Etcd { binary, flags, folder, client: spare(), peer: spare(), process: Mutex::new(None) };
        etcd.run();
        etcd
    }

    /// Runs it, with what it held before.
    pub(crate) fn run(&self) {
        let (client, peer) = (format!("http://{}", self.client), format!("http://{}", self.peer));
        let child = Command::new(&self.binary)
            .arg("--data-dir")
            .arg(self.folder.path().join("data"))
            .args(["--name=m", "--log-level=error", "--unsafe-no-fsync"])
            // A member that is alone need not wait for others before it leads.
            .args(["--heartbeat-interval=10", "--election-timeout=50"])
            .args([format!("--listen-client-urls={client}"), format!("--advertise-client-urls={client}")])
            .args([format!("--listen-peer-urls={peer}"), format!("--initial-advertise-peer-urls={peer}")])
            .arg(format!("--initial-cluster=m={peer}"))
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        *self.lock() = Some(child.expect("etcd can be started"));
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(self.client).is_err() {
            assert!(Instant::now() < deadline, "etcd does not listen");
            std::thread::yield_now();
        }
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.lock().take() {
            child.kill().expect("it runs");
            child.wait().expect("it ended");
        }
    }

    /// Puts an empty one in its place.
    pub(crate) fn begin_anew(&self) {
        self.kill();
        std::fs::remove_dir_all(self.folder.path().join("data")).expect("it was there");
        self.run();
    }

    /// Another one with what this one holds, on its own from here on.
    pub(crate) fn fork(&self) -> Etcd {
        self.kill();
        let folder = TempDir::new().expect("a temporary folder can be made");
        copy_folder(&self.folder.path().join("data"), &folder.path().join("data"));
        let (binary, flags) = (self.binary.clone(), self.flags.clone());
        let fork = Etcd { binary, flags, folder, client: spare(), peer: self.peer, process: Mutex::new(None) };
        self.run();
        fork
    }

    /// Puts what another one holds in place of what this one does, as who restores a backup.
    pub(crate) fn restore(&self, other: &Etcd) {
        other.kill();
        self.kill();
        let data = self.folder.path().join("data");
        std::fs::remove_dir_all(&data).expect("it was there");
        copy_folder(&other.folder.path().join("data"), &data);
        self.run();
    }

    /// Stores these very bytes.
    pub(crate) async fn put_raw(&self, key: &str, value: &[u8]) {
        let put = PutRequest { key: key.to_owned().into(), value: value.to_vec().into(), lease: 0 };
        let success = vec![RequestOp { request: Some(Request::Put(put)) }];
        let client = Client::new(&self.options().servers, &TlsFiles::default()).expect("the URL is good");
        let transaction = TxnRequest { compare: Vec::new(), success, failure: Vec::new() };
        client.txn(&transaction).await.expect("etcd answers");
    }

    pub(crate) fn options(&self) -> EtcdOptions {
        EtcdOptions {
            root: String::new(),
            prefix: "/test".to_owned(),
            compaction: None,
            ..EtcdOptions::new(vec![format!("http://{}", self.client)])
        }
    }

    pub(crate) async fn store(&self) -> Arc<EtcdStore> {
        Arc::new(EtcdStore::open(self.options(), Arc::new(Framing)).await.expect("the store can be opened"))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Fixture for Etcd {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async { self.store().await as Arc<dyn Store> })
    }

    fn first_revision(&self) -> Revision {
        // An empty etcd is at one.
        Revision::FIRST.next()
    }
}

/// An address that nobody listens at.
fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder can be made");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let (entry, place) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).expect("it can be read");
        match entry.is_dir() {
            true => copy_folder(&entry, &place),
            false => drop(std::fs::copy(entry, place).expect("a file can be copied")),
        }
    }
}

/// An address that nobody listens at. Systems give out no ports as low as this by themselves: whoever tries to connect
/// there before somebody listens would meet itself if its own end were given the same one, and the port would be taken.
fn spare() -> SocketAddr {
    let ports = std::iter::repeat_with(|| 20_000 + RandomState::new().hash_one(()) % 12_000);
    let free = ports.take(1_000).find_map(|port| TcpListener::bind(("127.0.0.1", port as u16)).ok());
    free.and_then(|listener| listener.local_addr().ok()).expect("there are ports")
}
