//! [`Encryption`]: which transformer the objects of each resource have, by the configuration in force. It can be
//! replaced while the server runs (`DynamicTransformers`).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use revisor_store::{Identity, ResourceTransformers, TransformError, Transformer};

use crate::config::{EncryptionConfiguration, KmsConfig, ProviderConfig};
use crate::group_resource::{GroupResource, ResourceNames};
use crate::kms::{Envelope, KmsThread, Probe, Service};
use crate::metrics::EncryptionMetrics;
use crate::provider::{Provider, Providers};

/// How long the key services of a configuration that is to be put in force are waited for at least.
const LEAST_PATIENCE: Duration = Duration::from_secs(10);
/// How often they are asked meanwhile.
const ASKING: Duration = Duration::from_millis(100);

/// What encryption has to know beside its configuration.
pub struct EncryptionOptions {
    /// The prefixes of the keys of built-in resources, and the names that configurations have for them.
    pub resources: Vec<(String, GroupResource)>,
    /// Where it is counted.
    pub metrics: Arc<EncryptionMetrics>,
    /// Whether the feature gate `KMSv1` is on.
    pub allows_kms_v1: bool,
}

/// The transformers of all resources.
pub struct Encryption {
    names: Arc<ResourceNames>,
    metrics: Arc<EncryptionMetrics>,
    allows_kms_v1: bool,
    current: RwLock<Arc<EncryptionTable>>,
}

/// What one configuration makes of the resources.
pub struct EncryptionTable {
    names: Arc<ResourceNames>,
    metrics: Arc<EncryptionMetrics>,
    providers: HashMap<GroupResource, Vec<Provider>>,
    /// The transformers of the resources that were asked about, by the prefixes of their keys.
    bound: RwLock<HashMap<Box<str>, Arc<dyn Transformer>>>,
    probes: Vec<Arc<Probe>>,
    /// How long the services of this configuration may take together.
    patience: Duration,
}

impl Encryption {
    /// Encryption by `config`. Asks the key services once how they are; one that does not answer is asked again on the
    /// side. Blocks meanwhile.
    pub fn new(options: EncryptionOptions, config: &EncryptionConfiguration) -> Result<Encryption, TransformError> {
        let EncryptionOptions { resources, metrics, allows_kms_v1 } = options;
        let names = Arc::new(ResourceNames::new(resources));
        let table = EncryptionTable::build(&names, &metrics, allows_kms_v1, config)?;
        Ok(Encryption { names, metrics, allows_kms_v1, current: RwLock::new(Arc::new(table)) })
    }

    /// What another configuration would make of the resources, once its key services are well. Blocks until then.
    pub fn prepare(&self, config: &EncryptionConfiguration) -> Result<Arc<EncryptionTable>, TransformError> {
        let table = EncryptionTable::build(&self.names, &self.metrics, self.allows_kms_v1, config)?;
        let patience = (2 * table.patience).max(LEAST_PATIENCE);
        table
            .wait_until_well(patience)
            .map_err(|problem| TransformError::new(format!("health check for new transformers failed: {problem}")))?;
        Ok(Arc::new(table))
    }

    /// Puts another configuration in force. What is being read or written meanwhile ends as it began.
    pub fn replace(&self, table: Arc<EncryptionTable>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = table;
    }

    /// Waits until all key services are well, at most for `patience`; else says which are not. Blocks.
    pub fn wait_until_well(&self, patience: Duration) -> Result<(), String> {
        self.current().wait_until_well(patience)
    }

    /// Whether all key services are well, as far as it is known.
    pub fn check_health(&self) -> Result<(), String> {
        self.current().check_health()
    }

    fn current(&self) -> Arc<EncryptionTable> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResourceTransformers for Encryption {
    fn transformer_for(&self, key: &str) -> Arc<dyn Transformer> {
        self.current().transformer_for(key)
    }
}

impl EncryptionTable {
    fn build(
        names: &Arc<ResourceNames>,
        metrics: &Arc<EncryptionMetrics>,
        allows_kms_v1: bool,
        config: &EncryptionConfiguration,
    ) -> Result<EncryptionTable, TransformError> {
        let mut table = EncryptionTable {
            names: names.clone(),
            metrics: metrics.clone(),
            providers: HashMap::new(),
            bound: RwLock::default(),
            probes: Vec::new(),
            patience: Duration::ZERO,
        };
        let mut thread = None;
        for resource in &config.resources {
            let mut providers = Vec::new();
            for provider in &resource.providers {
                providers.push(match provider {
                    ProviderConfig::Identity => Provider::identity(),
                    ProviderConfig::AesGcm(keys) => Provider::aes_gcm(keys)?,
                    ProviderConfig::AesCbc(keys) => Provider::aes_cbc(keys)?,
                    ProviderConfig::Secretbox(keys) => Provider::secretbox(keys)?,
                    ProviderConfig::Kms(kms) => table.kms(kms, allows_kms_v1, &mut thread)?,
                });
            }
            for resource in &resource.resources {
                for earlier in [resource.any_of_group(), GroupResource::any()] {
                    if table.providers.contains_key(&earlier) {
                        let (resource, earlier) = (resource.spelled(), earlier.spelled());
                        let what = format!("resource {resource:?} is masked by earlier rule {earlier:?}");
                        return Err(TransformError::new(what));
                    }
                }
                table.providers.entry(resource.clone()).or_default().extend(providers.iter().cloned());
            }
        }
        Ok(table)
    }

    fn kms(
        &mut self,
        config: &KmsConfig,
        allows_v1: bool,
        thread: &mut Option<KmsThread>,
    ) -> Result<Provider, TransformError> {
        let name = &config.name;
        match &*config.api_version {
            "v2" => {}
            "v1" if !allows_v1 => {
                return Err(TransformError::new(
                    "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  Set \
                     --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.",
                ));
            }
            "v1" => {
                let what = format!("could not configure KMS plugin {name:?}, this server has no KMS v1: use KMS v2");
                return Err(TransformError::new(what));
            }
            other => {
                let what = format!("could not configure KMS plugin {name:?}, unsupported KMS API version {other:?}");
                return Err(TransformError::new(what));
            }
        }
        let path = revisor_grpc::parse_endpoint(&config.endpoint).map_err(|problem| {
            TransformError::new(format!("could not configure KMSv2-Plugin's probe {name:?}, error: {problem}"))
        })?;
        let thread = match thread {
            Some(thread) => thread.clone(),
            None => {
                let started = KmsThread::start();
                let started =
                    started.map_err(|error| TransformError::new(format!("cannot start a thread: {error}")))?;
                thread.insert(started).clone()
            }
        };
        let service = Arc::new(Service::new(name, &path, config.timeout, self.metrics.clone()));
        let probe = Probe::new(service.clone(), self.metrics.clone(), Arc::new(Instant::now));
        let first = thread.wait_for({
            let probe = probe.clone();
            async move { probe.check().await }
        });
        if let Some(Err(error)) = first {
            tracing::warn!(name, error, "kms plugin failed health check probe");
        }
        thread.spawn(Probe::run(&probe));
        self.probes.push(probe.clone());
        self.patience += config.timeout;
        let envelope = Envelope::new(service, probe, thread, self.metrics.clone());
        Ok(Provider::kms(name, Arc::new(envelope)))
    }

    fn check_health(&self) -> Result<(), String> {
        let problems = self.probes.iter().enumerate().filter_map(|(index, probe)| {
            probe.check_health().err().map(|problem| format!("kms-provider-{index}: {problem}"))
        });
        let problems: Vec<String> = problems.collect();
        match problems.as_slice() {
            [] => Ok(()),
            [only] => Err(only.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn wait_until_well(&self, patience: Duration) -> Result<(), String> {
        let deadline = Instant::now() + patience;
        loop {
            match self.check_health() {
                Ok(()) => return Ok(()),
                Err(problem) if Instant::now() >= deadline => return Err(problem),
                Err(_) => std::thread::sleep(ASKING),
            }
        }
    }

    /// The transformer of the keys with this prefix (`transformerFromOverrides`).
    fn bind(&self, prefix: &str) -> Arc<dyn Transformer> {
        let Some(resource) = self.names.of_prefix(prefix) else { return Arc::new(Identity) };
        let providers = [resource.clone(), resource.any_of_group(), GroupResource::any()];
        match providers.iter().find_map(|name| self.providers.get(name)) {
            Some(providers) => Arc::new(Providers::new(providers, resource.to_string(), self.metrics.clone())),
            None => Arc::new(Identity),
        }
    }
}

impl ResourceTransformers for EncryptionTable {
    fn transformer_for(&self, key: &str) -> Arc<dyn Transformer> {
        let prefix = ResourceNames::prefix_of(key);
        if let Some(bound) = self.bound.read().unwrap_or_else(PoisonError::into_inner).get(prefix) {
            return bound.clone();
        }
        let transformer = self.bind(prefix);
        self.bound.write().unwrap_or_else(PoisonError::into_inner).insert(prefix.into(), transformer.clone());
        transformer
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use revisor_object::{Value, parse_yaml};

    use super::*;

    fn config(text: &str) -> EncryptionConfiguration {
        let Value::Object(object) = parse_yaml(text.as_bytes()).expect("is YAML").value else { panic!("{text}") };
        EncryptionConfiguration::of(&object, true).expect("is good")
    }

    fn options() -> EncryptionOptions {
        let resources = [("secrets", ""), ("configmaps", ""), ("deployments", "apps")];
        let resources = resources.map(|(name, group)| (format!("/registry/{name}/"), GroupResource::new(group, name)));
        EncryptionOptions {
            resources: resources.to_vec(),
            metrics: EncryptionMetrics::new("here"),
            allows_kms_v1: false,
        }
    }

    fn rule(resource: &str, key: &str) -> String {
        let secret = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=";
        format!(
            "- resources: ['{resource}']\n  providers: [{{secretbox: {{keys: [{{name: {key}, secret: '{secret}'}}]}}}}, \
             {{identity: {{}}}}]\n"
        )
    }

    #[test]
    fn the_closest_rule_counts() {
        let text = format!("resources:\n{}{}{}", rule("secrets", "one"), rule("*.apps", "two"), rule("*.", "three"));
        let some = Encryption::new(options(), &config(&text)).expect("is good");
        let text = format!("resources:\n{}{}", rule("configmaps", "one"), rule("*.*", "all"));
        let all = Encryption::new(options(), &config(&text)).expect("is good");
        for (encryption, key, want) in [
            (&some, "/registry/secrets/a/b", "k8s:enc:secretbox:v1:one:"),
            (&some, "/registry/configmaps/a/b", "k8s:enc:secretbox:v1:three:"),
            (&some, "/registry/deployments/a/b", "k8s:enc:secretbox:v1:two:"),
            (&some, "/registry/example.com/widgets/a/b", "{}"),
            (&some, "/registry/somewhere/a", "{}"),
            (&all, "/registry/configmaps/a/b", "k8s:enc:secretbox:v1:one:"),
            (&all, "/registry/example.com/widgets/a/b", "k8s:enc:secretbox:v1:all:"),
        ] {
            let stored =
                encryption.transformer_for(key).transform_to_storage(Bytes::from_static(b"{}"), key.as_bytes());
            assert!(stored.expect("is stored").starts_with(want.as_bytes()), "{key}");
        }
    }

    #[test]
    fn rules_that_never_count_and_services_of_the_past_are_refused() {
        let masked = format!("resources:\n{}{}", rule("*.apps", "one"), rule("deployments.apps", "two"));
        let kms = "resources: [{resources: [secrets], providers: [{kms: {name: a, endpoint: 'unix:///a'}}]}]";
        for (text, want) in [
            (&*masked, "resource \"deployments.apps\" is masked by earlier rule \"*.apps\""),
            (kms, "KMSv1 is deprecated"),
        ] {
            let error = Encryption::new(options(), &config(text)).err().expect(text).to_string();
            assert!(error.starts_with(want), "{error}");
        }
    }

    #[test]
    fn another_configuration_counts_at_once_and_reads_what_it_can() {
        let text = |keys: [&str; 2]| format!("resources:\n{}{}", rule("secrets", keys[0]), rule("secrets", keys[1]));
        let encryption = Encryption::new(options(), &config(&text(["one", "two"]))).expect("is good");
        let key = "/registry/secrets/a/b";
        let plain = Bytes::from_static(b"{}");
        let stored =
            encryption.transformer_for(key).transform_to_storage(plain.clone(), key.as_bytes()).expect("is stored");
        let table = encryption.prepare(&config(&text(["two", "one"]))).expect("is good");
        encryption.replace(table);
        let read = encryption.transformer_for(key).transform_from_storage(stored, key.as_bytes()).expect("is read");
        assert_eq!((read.bytes, read.is_stale), (plain.clone(), true));
        let stored = encryption.transformer_for(key).transform_to_storage(plain, key.as_bytes()).expect("is stored");
        assert!(stored.starts_with(b"k8s:enc:secretbox:v1:two:"));
    }
}
