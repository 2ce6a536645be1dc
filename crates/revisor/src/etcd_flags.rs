//! [`EtcdFlags`]: the flags of a server whose objects are in an etcd, named and with the defaults of the original's.

use std::time::Duration;

use clap::Args;
use revisor_catalog::StorageMediaType;
use revisor_etcd::EtcdOptions;

use crate::duration::parse_duration;
use crate::etcd_access::EtcdAccess;
use crate::etcd_overrides::Overrides;

/// Which etcd, and how to use it.
#[derive(Debug, Clone, Args)]
pub(crate) struct EtcdFlags {
    #[command(flatten)]
    pub(crate) access: EtcdAccess,

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

    /// How built-in kinds are written to etcd: application/vnd.kubernetes.protobuf, application/json or application/yaml
    #[arg(long, value_name = "TYPE", default_value = PROTOBUF, value_parser = parse_media_type)]
    pub(crate) storage_media_type: StorageMediaType,

    /// By how many seconds events may outlive their time, so that many share a lease of etcd
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) lease_reuse_duration_seconds: u32,
}

pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

pub(crate) fn parse_media_type(text: &str) -> Result<StorageMediaType, String> {
    match text {
        PROTOBUF | "" => Ok(StorageMediaType::Protobuf),
        JSON => Ok(StorageMediaType::Json),
        YAML => Ok(StorageMediaType::Yaml),
        other => Err(format!("{other:?} invalid, allowed values: {JSON}, {PROTOBUF}, {YAML}")),
    }
}

impl EtcdFlags {
    /// Whether objects are in an etcd.
    pub(crate) fn is_given(&self) -> bool {
        !self.access.etcd_servers.is_empty()
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
            times_to_live,
            lease_reuse: Duration::from_secs(self.lease_reuse_duration_seconds.into()),
            compaction: Some(compaction),
            ..self.access.options_of(servers)
        }
    }
}
