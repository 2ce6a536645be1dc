//! [`Server`]: a registry on an empty folder, and the ways in which an object can be written to it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use revisor_cache::{Cache, CacheOptions};
use revisor_catalog::{Catalog, CatalogOptions, Moment, Resource};
use revisor_object::{Object, TokenSealer, Value, parse_json};
use revisor_registry::{
    AdmissionConfig, AdmissionOptions, AdmissionPlugin, Decoded, DeleteOptions, Environment, FieldValidation, Format,
    GetRequest, PatchKind, Place, Registry, RegistryError, RegistryOptions, Saved, ServiceNetwork, TolerationDefaults,
    WriteOptions,
};
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
use tokio::runtime::Runtime;

use crate::objects::{name, small};

/// A registry whose work is all done on the thread that asks for it.
pub struct Server {
    runtime: Runtime,
    registry: Arc<Registry>,
    _folder: tempfile::TempDir,
}

/// A way in which a client can write an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Only read, for what is not stored.
    Read,
    /// As a new one.
    Create,
    /// In place of another.
    Update,
    /// The status in place of another.
    Status,
    /// By a strategic merge patch.
    Strategic,
    /// By a merge patch.
    Merge,
    /// By server-side apply.
    Apply,
    /// Not written, but shown as the row of a table.
    Table,
}

impl Way {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Way::Read => "read",
            Way::Create => "create",
            Way::Update => "update",
            Way::Status => "status",
            Way::Strategic => "strategic",
            Way::Merge => "merge",
            Way::Apply => "apply",
            Way::Table => "table",
        }
    }
}

/// All plugins, also those that are off unless somebody says otherwise, with something to do; but not the one that
/// refuses everything.
fn every_plugin() -> AdmissionOptions {
    let everything = Value::Object([("operator", Value::from("Exists"))].into_iter().collect());
    let on_disk = [("key", "disk"), ("operator", "Exists")].map(|(name, value)| (name, Value::from(value)));
    let tolerations =
        TolerationDefaults { default: vec![Value::Object(on_disk.into_iter().collect())], whitelist: vec![everything] };
    let plugins = AdmissionPlugin::ALL.iter().copied().filter(|plugin| *plugin != AdmissionPlugin::AlwaysDeny);
    AdmissionOptions {
        plugins: plugins.collect(),
        config: AdmissionConfig { tolerations, ..AdmissionConfig::default() },
        ..AdmissionOptions::default()
    }
}

impl Server {
    /// Starts one that serves everything there is.
    pub fn start() -> anyhow::Result<Server> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let folder = tempfile::tempdir()?;
        let registry = runtime.block_on(async {
            let store = EmbeddedStore::open(EmbeddedOptions::new(folder.path().join("store"))).await?;
            let options = RegistryOptions {
                catalog: Arc::new(Catalog::build(&CatalogOptions::everything())?),
                environment: Environment::system(),
                sealer: TokenSealer::new([7; 32]),
                patience: Duration::from_secs(1),
                services: ServiceNetwork::default(),
                authorization: Default::default(),
                server: "server".to_owned(),
                admission: every_plugin(),
                shows_versioning: true,
            };
            let cache = Cache::start(Arc::new(store), CacheOptions::default());
            Registry::start(cache, options).await.context("cannot start a registry")
        })?;
        let server = Server { runtime, registry, _folder: folder };
        server.store_account()?;
        Ok(server)
    }

    /// Makes the account without which no pod is looked at any further.
    fn store_account(&self) -> anyhow::Result<()> {
        let catalog = self.catalog();
        let accounts = catalog.resource("", "v1", "serviceaccounts").context("accounts are served")?;
        let mut account = small(accounts);
        account.object_mut("metadata").insert("name", "default");
        self.store(accounts, &account)?;
        Ok(())
    }

    /// What is served now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.registry.catalog()
    }

    /// Stores a new object.
    pub fn store(&self, resource: &Arc<Resource>, object: &Object) -> Result<Saved, RegistryError> {
        let text = Value::Object(object.clone()).to_json();
        self.create(resource, text.as_bytes(), WriteOptions { field_manager: "growth", ..WriteOptions::default() })
    }

    /// Reads an object that is stored.
    pub fn read(&self, resource: &Arc<Resource>, name: &str) -> Option<Object> {
        let namespace = resource.namespaced.then_some("default");
        let request = GetRequest { resource, namespace, name, resource_version: "", resource_version_match: "" };
        let got = self.runtime.block_on(self.registry.get(request)).ok()?;
        match parse_json(&got.bytes).ok()?.value {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Removes an object, or at least begins to.
    pub fn remove(&self, resource: &Arc<Resource>, object: &Object) {
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        // It was only there to be measured; that some cannot go is no harm.
        let _ = self.runtime.block_on(self.registry.delete(place(resource, Some(name(object))), &options));
    }

    /// Sends an object in one way, without storing it. Answers whether it was taken.
    pub fn send(&self, way: Way, resource: &Arc<Resource>, object: &Object, text: &[u8]) -> Result<(), RegistryError> {
        let options = WriteOptions { dry_run: true, field_manager: "another", ..WriteOptions::default() };
        let target = place(resource, Some(name(object)));
        let patch = |kind, options| self.runtime.block_on(self.registry.patch(target, kind, text, options)).map(drop);
        match way {
            Way::Read => decode(resource, text).map(|decoded| {
                std::hint::black_box(resource.strategy.validate(&decoded.into_object()));
            }),
            Way::Create => self.create(resource, text, options).map(drop),
            Way::Update => self.update(resource, target, text, options),
            Way::Status => self.update(resource, target, text, WriteOptions { subresource: Some("status"), ..options }),
            Way::Strategic => patch(PatchKind::Strategic, options),
            Way::Merge => patch(PatchKind::Merge, options),
            Way::Apply => patch(PatchKind::Apply, WriteOptions { is_apply: true, force: true, ..options }),
            Way::Table => {
                let now = Moment::from(std::time::SystemTime::now());
                std::hint::black_box(resource.columns.cells(object, now));
                Ok(())
            }
        }
    }

    fn create(&self, resource: &Arc<Resource>, text: &[u8], options: WriteOptions<'_>) -> Result<Saved, RegistryError> {
        let decoded = decode(resource, text)?;
        self.runtime.block_on(self.registry.create(place(resource, None), decoded, options))
    }

    fn update(
        &self,
        resource: &Arc<Resource>,
        target: Place<'_>,
        text: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let decoded = decode(resource, text)?;
        self.runtime.block_on(self.registry.update(target, decoded, options)).map(drop)
    }
}

fn decode(resource: &Arc<Resource>, text: &[u8]) -> Result<Decoded, RegistryError> {
    Decoded::read(resource, Format::Json, text, FieldValidation::Warn)
}

fn place<'a>(resource: &'a Arc<Resource>, name: Option<&'a str>) -> Place<'a> {
    Place { resource, namespace: resource.namespaced.then_some("default"), name }
}
