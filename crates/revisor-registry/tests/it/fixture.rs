//! A registry on an embedded store, with a clock and random numbers that tests can foresee.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use revisor_cache::{Cache, CacheOptions};
use revisor_catalog::{Catalog, Resource};
use revisor_object::{Object, TokenSealer, Value, parse_json};
use revisor_registry::{
    Decoded, Environment, FieldValidation, Format, GetRequest, ListItems, ListRequest, ListVersions, Listed, Place,
    Registry, RegistryError, RegistryOptions, Saved, Selection, ServiceNetwork, WriteOptions,
};
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
use revisor_version::Revision;

pub(crate) struct Fixture {
    pub(crate) registry: Arc<Registry>,
    folder: tempfile::TempDir,
}

impl Fixture {
    pub(crate) async fn new() -> Fixture {
        Fixture::with_services(ServiceNetwork::default()).await
    }

    pub(crate) async fn with_services(services: ServiceNetwork) -> Fixture {
        Fixture::open(tempfile::tempdir().expect("a folder"), services).await
    }

    /// How far the store is.
    pub(crate) fn revision(&self) -> Option<Revision> {
        *self.registry.cache().store_of("").progress().borrow()
    }

    /// Ends the server and starts another on the same folder.
    pub(crate) async fn reopened(self) -> Fixture {
        self.registry.cache().store_of("").close().await;
        Fixture::open(self.folder, ServiceNetwork::default()).await
    }

    async fn open(folder: tempfile::TempDir, services: ServiceNetwork) -> Fixture {
        let store = EmbeddedStore::open(EmbeddedOptions::new(folder.path().join("store"))).await.expect("a new store");
        let cache = Cache::start(Arc::new(store), CacheOptions::default());
        let counter = AtomicU64::new(0);
        let options = RegistryOptions {
            catalog: Arc::new(Catalog::default()),
            environment: Environment::new(
                || time::OffsetDateTime::UNIX_EPOCH,
                move || u128::from(counter.fetch_add(1, Ordering::Relaxed)),
            ),
            sealer: TokenSealer::new([7; 32]),
            patience: Duration::from_millis(50),
            services,
            authorization: Default::default(),
            server: "server".to_owned(),
            admission: Default::default(),
            shows_versioning: true,
        };
        let registry = Registry::start(cache, options).await.expect("a new registry");
        Fixture { registry, folder }
    }

    pub(crate) fn resource(&self, plural: &str) -> Arc<Resource> {
        if plural == "conversions" {
            return self
                .registry
                .catalog()
                .resource("versioning.revisor.dev", "v1alpha1", plural)
                .expect("is served")
                .clone();
        }
        let group = match plural {
            "endpointslices" => "discovery.k8s.io",
            "ingressclasses" | "ingresses" | "ipaddresses" | "servicecidrs" => "networking.k8s.io",
            "deployments" => "apps",
            "apiservices" => "apiregistration.k8s.io",
            "customresourcedefinitions" => "apiextensions.k8s.io",
            "leases" => "coordination.k8s.io",
            "poddisruptionbudgets" => "policy",
            "clusterroles" | "clusterrolebindings" | "roles" | "rolebindings" => "rbac.authorization.k8s.io",
            _ => "",
        };
        self.registry.catalog().resource(group, "v1", plural).expect("is served").clone()
    }

    pub(crate) fn config_maps(&self) -> Arc<Resource> {
        self.resource("configmaps")
    }

    pub(crate) async fn create(&self, plural: &str, text: &str) -> Result<Object, RegistryError> {
        self.create_with(plural, text, WriteOptions::default()).await
    }

    pub(crate) async fn create_with(
        &self,
        plural: &str,
        text: &str,
        options: WriteOptions<'_>,
    ) -> Result<Object, RegistryError> {
        let resource = self.resource(plural);
        let place = Place { resource: &resource, namespace: namespace_of(&resource), name: None };
        self.registry.create(place, decode(&resource, text)?, options).await.map(object)
    }

    pub(crate) async fn update(&self, plural: &str, name: &str, text: &str) -> Result<Object, RegistryError> {
        let resource = self.resource(plural);
        let place = Place { resource: &resource, namespace: namespace_of(&resource), name: Some(name) };
        self.registry.update(place, decode(&resource, text)?, WriteOptions::default()).await.map(object)
    }

    pub(crate) async fn get(&self, plural: &str, name: &str) -> Result<Object, RegistryError> {
        let resource = self.resource(plural);
        let request = GetRequest {
            resource: &resource,
            namespace: namespace_of(&resource),
            name,
            resource_version: "",
            resource_version_match: "",
        };
        self.registry.get(request).await.map(|got| parse(&got.bytes))
    }

    pub(crate) async fn list(&self, versions: ListVersions<'_>, limit: i64) -> Result<Listed, RegistryError> {
        self.list_selected(("", ""), versions, limit).await
    }

    /// The same of those with such labels and fields.
    pub(crate) async fn list_selected(
        &self,
        (labels, fields): (&str, &str),
        versions: ListVersions<'_>,
        limit: i64,
    ) -> Result<Listed, RegistryError> {
        let resource = self.config_maps();
        let selection = Selection::parse(&resource, labels, fields)?;
        let request =
            ListRequest { resource: &resource, namespace: Some("default"), selection: &selection, versions, limit };
        self.registry.list(request).await
    }
}

fn namespace_of(resource: &Resource) -> Option<&'static str> {
    resource.namespaced.then_some("default")
}

pub(crate) fn decode(resource: &Arc<Resource>, text: &str) -> Result<Decoded, RegistryError> {
    Decoded::read(resource, Format::Json, text.as_bytes(), FieldValidation::Warn)
}

pub(crate) fn object(saved: Saved) -> Object {
    parse(&saved.bytes)
}

pub(crate) fn parse(bytes: &[u8]) -> Object {
    match parse_json(bytes).expect("what is served is JSON").value {
        Value::Object(object) => object,
        other => panic!("not an object: {other:?}"),
    }
}

pub(crate) fn version(object: &Object) -> u64 {
    let version = object.at(&["metadata", "resourceVersion"]).and_then(Value::as_str).expect("has a version");
    version.parse().expect("is a number")
}

pub(crate) fn names(listed: &Listed) -> Vec<String> {
    let name =
        |bytes: &[u8]| parse(bytes).at(&["metadata", "name"]).and_then(Value::as_str).expect("has a name").to_owned();
    match &listed.items {
        ListItems::Page(items) => items.iter().map(|presented| name(presented.item.bytes())).collect(),
        ListItems::All { snapshot, prefix, after, filter } => snapshot
            .range(prefix, after.as_deref())
            .filter(|item| filter.admits(item))
            .map(|item| name(item.bytes()))
            .collect(),
    }
}
