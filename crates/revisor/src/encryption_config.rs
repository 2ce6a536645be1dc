//! `--encryption-provider-config`: a file of kind `EncryptionConfiguration`, read as strictly as the original reads it, at
//! the start and, if that is asked for, whenever it changes. What cannot be put in force changes nothing: the old keys
//! stay, and the log and a metric say so.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use revisor_catalog::{Catalog, CatalogOptions, Feature};
use revisor_encryption::{Encryption, EncryptionConfiguration, EncryptionMetrics, EncryptionOptions, GroupResource};
use revisor_object::aggregate_message;
use revisor_store::embedded::EmbeddedStore;
use revisor_store::{Identity, ResourceTransformers};
use revisor_version::FeatureGates;

use crate::config_file::{Kind, Member, Type, parse, read};
use crate::live_config::{LiveConfig, follow};

/// How long a start waits for the services that hold keys: what is stored cannot be read without them.
const PATIENCE: Duration = Duration::from_secs(60);

const KEYS: &[Member] =
    &[Member("keys", Type::List, &[Member("name", Type::Text, &[]), Member("secret", Type::Text, &[])])];

const KIND: Kind =
    Kind { name: "EncryptionConfiguration", versions: &["apiserver.config.k8s.io/v1"], members: MEMBERS };

/// What such files were called first, which the original still reads.
const OLD_KIND: Kind = Kind { name: "EncryptionConfig", versions: &["v1"], members: MEMBERS };

const MEMBERS: &[Member] = &[Member(
    "resources",
    Type::List,
    &[
        Member("resources", Type::Texts, &[]),
        Member(
            "providers",
            Type::List,
            &[
                Member("aesgcm", Type::Object, KEYS),
                Member("aescbc", Type::Object, KEYS),
                Member("secretbox", Type::Object, KEYS),
                Member("identity", Type::Object, &[]),
                Member(
                    "kms",
                    Type::Object,
                    &[
                        Member("apiVersion", Type::Text, &[]),
                        Member("name", Type::Text, &[]),
                        Member("cachesize", Type::Number, &[]),
                        Member("endpoint", Type::Text, &[]),
                        Member("timeout", Type::Text, &[]),
                    ],
                ),
            ],
        ),
    ],
)];

/// How objects are encrypted, and the file that says so.
pub(crate) struct EncryptionFile {
    path: PathBuf,
    /// What stood in it when it was read.
    text: Vec<u8>,
    pub(crate) encryption: Arc<Encryption>,
    pub(crate) metrics: Arc<EncryptionMetrics>,
    pub(crate) has_kms: bool,
    reload: bool,
}

impl EncryptionFile {
    /// Reads the file, and waits for the services that hold keys. `server` is this server's name among others.
    pub(crate) fn load(
        path: &Path,
        reload: bool,
        gates: &FeatureGates,
        server: &str,
    ) -> anyhow::Result<EncryptionFile> {
        let (text, config) = load(path, reload)?;
        let metrics = EncryptionMetrics::new(server);
        let options = EncryptionOptions {
            resources: stored_resources()?,
            metrics: metrics.clone(),
            allows_kms_v1: gates.is_enabled(Feature::KMSv1.name()),
        };
        let encryption = Encryption::new(options, &config);
        let encryption =
            encryption.with_context(|| format!("{}: error while building transformers", path.display()))?;
        let has_kms = config.kms().next().is_some();
        if has_kms && let Err(problem) = encryption.check_health() {
            tracing::warn!(problem, "waiting for the services that hold the keys of what is stored");
            encryption.wait_until_well(PATIENCE).map_err(|problem| anyhow!(problem))?;
        }
        metrics.in_force(&text);
        Ok(EncryptionFile { path: path.to_owned(), text, encryption: Arc::new(encryption), metrics, has_kms, reload })
    }

    /// Whether the health of the server includes that of the services that hold keys.
    pub(crate) fn has_health(&self) -> bool {
        self.has_kms || self.reload
    }

    /// Follows the file, if that was asked for. Objects that are in a folder must stay readable; those in an etcd are not
    /// looked at, because other servers write there too.
    pub(crate) async fn run(self, folder: Option<Arc<EmbeddedStore>>) {
        if self.reload {
            let metrics = self.metrics.clone();
            follow(FollowedEncryption { file: self, folder }, |change| metrics.reloaded(change)).await;
        }
    }
}

/// The file, and the objects that must stay readable.
struct FollowedEncryption {
    file: EncryptionFile,
    folder: Option<Arc<EmbeddedStore>>,
}

impl LiveConfig for FollowedEncryption {
    const NAME: &'static str = "encryption";

    fn path(&self) -> &Path {
        &self.file.path
    }

    fn text(&self) -> &[u8] {
        &self.file.text
    }

    fn put_in_force(&mut self, text: Vec<u8>) -> anyhow::Result<()> {
        let config = decode(&self.file.path, &text, self.file.reload)?;
        let table = self.file.encryption.prepare(&config).context("error while building transformers")?;
        // Without its keys the server could not start again, and nobody would know before.
        if let Some(store) = &self.folder {
            store.check_readable(&*table).context("stored objects could not be read any more")?;
        }
        self.file.encryption.replace(table);
        self.file.text = text;
        Ok(())
    }
}

/// How objects are encrypted by the file at `path`, or not at all without one: for commands, which follow no file.
pub(crate) async fn transformers(
    path: Option<PathBuf>,
    gates: &FeatureGates,
) -> anyhow::Result<Arc<dyn ResourceTransformers>> {
    let Some(path) = path else { return Ok(Arc::new(Identity)) };
    let gates = gates.clone();
    let loaded = tokio::task::spawn_blocking(move || EncryptionFile::load(&path, false, &gates, "")).await?;
    Ok(loaded?.encryption)
}

fn load(path: &Path, reload: bool) -> anyhow::Result<(Vec<u8>, EncryptionConfiguration)> {
    let text = read(path).with_context(|| format!("error reading encryption provider configuration file {path:?}"))?;
    let config = decode(path, &text, reload)?;
    Ok((text, config))
}

fn decode(path: &Path, text: &[u8], reload: bool) -> anyhow::Result<EncryptionConfiguration> {
    anyhow::ensure!(!text.is_empty(), "encryption provider configuration file {path:?} is empty");
    let is_old = parse(text).is_ok_and(|it| it.value.as_object().is_some_and(|object| OLD_KIND.is_kind_of(object)));
    let object = if is_old { OLD_KIND } else { KIND }.decode(text);
    let object = object.with_context(|| format!("error decoding encryption provider configuration file {path:?}"))?;
    EncryptionConfiguration::of(&object, reload)
        .map_err(|errors| anyhow!("invalid encryption configuration {path:?}: {}", aggregate_message(&errors)))
}

/// The prefixes of the keys of all built-in resources, whether they are served or only stored.
fn stored_resources() -> anyhow::Result<Vec<(String, GroupResource)>> {
    let catalog = Catalog::build(&CatalogOptions::everything())?;
    let stored = catalog.resources().filter(|resource| resource.is_stored());
    let mut resources: Vec<(String, GroupResource)> = stored
        .map(|resource| (resource.prefix.clone(), GroupResource::new(&*resource.group, &*resource.plural)))
        .collect();
    // Of the groups that share what is stored the core group comes last, and counts.
    resources.sort_by(|(_, one), (_, other)| other.cmp(one));
    Ok(resources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_resource_is_known_by_its_keys() {
        let resources: std::collections::HashMap<_, _> = stored_resources().expect("are there").into_iter().collect();
        for (prefix, want) in [
            ("/registry/secrets/", "secrets"),
            ("/registry/events/", "events"),
            ("/registry/deployments/", "deployments.apps"),
            ("/registry/services/specs/", "services"),
            (
                "/registry/apiextensions.k8s.io/customresourcedefinitions/",
                "customresourcedefinitions.apiextensions.k8s.io",
            ),
        ] {
            assert_eq!(resources.get(prefix).map(ToString::to_string).as_deref(), Some(want), "{prefix}");
        }
        for prefix in resources.keys() {
            assert_eq!(revisor_store::embedded::resource_of(&format!("{prefix}a/b")), prefix, "is told by its keys");
        }
    }

    #[test]
    fn a_file_may_have_its_first_kind() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let text = "apiVersion: v1\nkind: EncryptionConfig\nresources: [{resources: [secrets], providers: [{identity: {}}]}]\n";
        std::fs::write(file.path(), text).expect("can be written");
        load(file.path(), false).expect("is read");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_name() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n";
        for (text, want) in [
            (String::new(), "is empty"),
            ("a: [".to_owned(), "yaml: line 2"),
            (format!("{head}resources: [{{resource: [secrets]}}]"), "unknown field \"resources[0].resource\""),
            (format!("{head}resources: []"), "resources: Required value: at least one resources is required"),
            (format!("{head}resources: [{{resources: [1], providers: []}}]"), "cannot unmarshal"),
        ] {
            std::fs::write(file.path(), &text).expect("can be written");
            let error = load(file.path(), false).err().map(|error| format!("{error:#}")).unwrap_or_default();
            assert!(error.contains(want) && error.contains(&format!("{:?}", file.path())), "{text}: {error}");
        }
    }
}
