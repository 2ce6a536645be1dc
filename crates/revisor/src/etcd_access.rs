//! [`EtcdAccess`] and [`EtcdSource`]: the flags by which a server and the commands that move state reach an etcd, or read a
//! snapshot of one.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use revisor_catalog::{Catalog, StorageMediaType};
use revisor_etcd::{EtcdOptions, HashCheck, Reading, Snapshot, TlsFiles};
use revisor_store::ResourceTransformers;

use crate::backend::CatalogCodec;

/// What servers keep for themselves in an etcd, and make anew wherever they start: who they are, and which node ports and
/// addresses are taken, which services say too.
const OF_SERVERS: [&str; 3] = ["/registry/masterleases/", "/registry/peerserverleases/", "/registry/ranges/"];

/// Whether a key holds what servers keep for themselves.
pub(crate) fn is_of_servers(key: &str) -> bool {
    OF_SERVERS.iter().any(|prefix| key.starts_with(prefix))
}

/// Which etcd, and which part of it.
#[derive(Debug, Clone, Args)]
pub(crate) struct EtcdAccess {
    /// The etcd that objects are in, which servers may share, also with the original's: the URLs of its members,
    /// http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    pub(crate) etcd_servers: Vec<String>,

    /// What the keys of all objects in etcd begin with
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    pub(crate) etcd_prefix: String,

    /// The authorities that may vouch for etcd [default: those of the machine]
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_cafile: Option<PathBuf>,

    /// The certificate to show to etcd
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub(crate) etcd_certfile: Option<PathBuf>,

    /// The key of the certificate to show to etcd
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub(crate) etcd_keyfile: Option<PathBuf>,
}

impl EtcdAccess {
    pub(crate) fn options(&self) -> EtcdOptions {
        self.options_of(self.etcd_servers.clone())
    }

    /// The same for another etcd, which is reached in the same way.
    pub(crate) fn options_of(&self, servers: Vec<String>) -> EtcdOptions {
        EtcdOptions {
            tls: TlsFiles {
                authorities: self.etcd_cafile.clone(),
                certificate: self.etcd_certfile.clone(),
                key: self.etcd_keyfile.clone(),
            },
            prefix: self.etcd_prefix.clone(),
            ..EtcdOptions::new(servers)
        }
    }

    /// What turns stored values into objects and back.
    pub(crate) fn codec(
        &self,
        catalog: &Catalog,
        media: StorageMediaType,
        transformers: Arc<dyn ResourceTransformers>,
    ) -> CatalogCodec {
        CatalogCodec::new(catalog, media, transformers, &self.etcd_prefix)
    }

    /// How it is called in messages.
    pub(crate) fn name(&self) -> String {
        format!("the etcd at {}", self.etcd_servers.join(","))
    }
}

/// An etcd that runs, or a snapshot of one.
#[derive(Debug, Clone, Args)]
pub(crate) struct EtcdSource {
    #[command(flatten)]
    pub(crate) etcd: EtcdAccess,

    /// A snapshot of an etcd, as `etcdctl snapshot save` writes it
    #[arg(long, value_name = "FILE", conflicts_with = "etcd_servers")]
    pub(crate) snapshot: Option<PathBuf>,

    /// Read the snapshot without its hash: for the file member/snap/db of a member that is stopped, which has none
    #[arg(long, requires = "snapshot")]
    pub(crate) skip_hash_check: bool,
}

impl EtcdSource {
    pub(crate) fn is_given(&self) -> bool {
        self.snapshot.is_some() || !self.etcd.etcd_servers.is_empty()
    }

    /// How it is called in messages.
    pub(crate) fn name(&self) -> String {
        self.snapshot.as_ref().map_or_else(|| self.etcd.name(), |path| path.display().to_string())
    }

    /// One state of it, to be read. That there is nothing below the prefix is an error: it is the wrong prefix.
    pub(crate) async fn open(&self) -> anyhow::Result<Reading> {
        let options = self.etcd.options();
        let reading = match self.snapshot.clone() {
            None => Reading::live(&options).await.with_context(|| self.name())?,
            Some(path) => {
                let check = if self.skip_hash_check { HashCheck::Skipped } else { HashCheck::Demanded };
                let snapshot = tokio::task::spawn_blocking(move || Snapshot::open(&path, check)).await?;
                Reading::snapshot(snapshot.with_context(|| self.name())?, &options.root, &options.prefix)
            }
        };
        anyhow::ensure!(
            reading.revision().is_some() && reading.count() > 0,
            "{} holds nothing below {}: is --etcd-prefix right?",
            self.name(),
            self.etcd.etcd_prefix
        );
        Ok(reading)
    }
}
