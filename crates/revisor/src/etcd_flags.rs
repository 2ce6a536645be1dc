//! [`EtcdFlags`]: the flags of a server whose objects are in an etcd, named and with the defaults of the original's.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use revisor_catalog::StorageMediaType;
use revisor_etcd::{EtcdOptions, TlsFiles};

use crate::duration::parse_duration;
use crate::etcd_overrides::Overrides;

/// Which etcd, and how to use it.
#[derive(Debug, Clone, Args)]
pub(crate) struct EtcdFlags {
    /// The etcd that keeps all objects, in place of the data folder: the URLs of its members, http://HOST:PORT or
    /// https://HOST:PORT. Other servers may use it at the same time, also the original's
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

    /// Resources that have an etcd of their own: GROUP/RESOURCE#URL;URL, where the group of the core is empty and
    /// GROUP/* is all of a group. Custom resources stay where the others are
    #[arg(long, value_name = "OVERRIDES", value_delimiter = ',')]
    pub(crate) etcd_servers_overrides: Vec<String>,

    /// How long etcd may take to answer before the server says that it is not healthy
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub(crate) etcd_healthcheck_timeout: Duration,

    /// How long etcd may take to answer before the server says that it is not ready
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub(crate) etcd_readycheck_timeout: Duration,

    /// How often objects are counted for the metrics. They always are, and this is taken for the original's sake
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_duration)]
    pub(crate) etcd_count_metric_poll_period: Duration,

    /// How built-in kinds are written to etcd: application/vnd.kubernetes.protobuf or application/json
    #[arg(long, value_name = "TYPE", default_value = PROTOBUF, value_parser = parse_media_type)]
    pub(crate) storage_media_type: StorageMediaType,

    /// By how many seconds events may outlive their time, so that many share a lease of etcd
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) lease_reuse_duration_seconds: u32,
}

pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";

pub(crate) fn parse_media_type(text: &str) -> Result<StorageMediaType, String> {
    match text {
        PROTOBUF | "" => Ok(StorageMediaType::Protobuf),
        JSON => Ok(StorageMediaType::Json),
        other => Err(format!("{other:?} is not one of {PROTOBUF}, {JSON}")),
    }
}

impl EtcdFlags {
    /// Whether objects are in an etcd.
    pub(crate) fn is_given(&self) -> bool {
        !self.etcd_servers.is_empty()
    }

    /// Which resources have an etcd of their own.
    pub(crate) fn overrides(&self) -> anyhow::Result<Overrides> {
        let overrides = Overrides::parse(&self.etcd_servers_overrides)?;
        let is_good = self.is_given() || self.etcd_servers_overrides.is_empty();
        anyhow::ensure!(is_good, "--etcd-servers-overrides needs --etcd-servers, which has all other resources");
        Ok(overrides)
    }

    /// The options of a store. History is forgotten every `compaction`, and what these keys begin with goes by itself.
    pub(crate) fn options(
        &self,
        servers: Vec<String>,
        compaction: Duration,
        times_to_live: Vec<(String, Duration)>,
    ) -> EtcdOptions {
        EtcdOptions {
            tls: TlsFiles {
                authorities: self.etcd_cafile.clone(),
                certificate: self.etcd_certfile.clone(),
                key: self.etcd_keyfile.clone(),
            },
            prefix: self.etcd_prefix.clone(),
            times_to_live,
            lease_reuse: Duration::from_secs(self.lease_reuse_duration_seconds.into()),
            compaction: Some(compaction),
            ..EtcdOptions::new(servers)
        }
    }
}
