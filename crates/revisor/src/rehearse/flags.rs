//! The flags of `revisor rehearse`.

use std::path::PathBuf;

use clap::Args;
use revisor_catalog::{Catalog, CatalogOptions, RuntimeConfig};

use crate::cluster::ClusterFlags;
use crate::etcd_access::EtcdSource;
use crate::flags::{CompatibilityFlags, OutputFormat};

#[derive(Debug, Clone, Args)]
pub(crate) struct RehearseFlags {
    /// The data folder of a server, or a copy of one. Nothing is written to it: it is read from a copy in the folder for
    /// temporary files, which needs as much room
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) etcd: EtcdSource,

    /// The EncryptionConfiguration with the keys of what is stored in the folder or the etcd, if it is encrypted
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_provider_config: Option<PathBuf>,

    /// The file with the keys that the store in the folder is encrypted with as a whole
    #[arg(long, value_name = "FILE", requires = "data_dir")]
    pub(crate) store_key_file: Option<PathBuf>,

    /// The CustomResourceDefinitions and Conversions that are to come: files, or folders with files that end in .yaml,
    /// .yml or .json. Those that are stored and not among them stay as they are. Can be given several times
    #[arg(long, value_name = "PATH")]
    pub(crate) definitions: Vec<PathBuf>,

    /// Versions and resources to switch on or off beside those that are served by default, as `serve` has it
    #[arg(long, value_name = "KEYS", default_value = "", value_parser = Catalog::read_runtime_config)]
    pub(crate) runtime_config: RuntimeConfig,

    #[command(flatten)]
    pub(crate) compatibility: CompatibilityFlags,

    /// How to print it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,

    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

impl RehearseFlags {
    /// What is to be served.
    pub(super) fn catalog_options(&self) -> anyhow::Result<CatalogOptions> {
        Ok(CatalogOptions { runtime_config: self.runtime_config.clone(), ..self.compatibility.catalog_options()? })
    }
}
