//! [`ManifestKeeper`]: the webhooks and policies that stand in files, read at the start, and again when they change.
//!
//! At the start, what is wrong with a file keeps the server from starting: it would serve without what should protect
//! it. Later, what is in force stays in force until the files are right again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use revisor_api::Metrics;
use revisor_catalog::Catalog;
use revisor_registry::{AdmissionPlugin, ManifestDocument, Registry, StaticManifests};
use sha2::{Digest, Sha256};

use crate::config_file;
use crate::crd::Document;

/// How often the files are looked at. They are few and short.
const LOOKING: Duration = Duration::from_secs(1);

/// How many bytes the files of one folder may have together.
const MAX_BYTES: usize = 16 << 20;

/// The files of a plugin at one moment.
#[derive(Default)]
struct Files {
    /// The path of each, and what it says, in the order of their names.
    texts: Vec<(String, String)>,
    /// Tells whether anything has changed; empty if nothing is said at all.
    hash: String,
}

impl Files {
    fn read(folder: &Path) -> anyhow::Result<Files> {
        let shown = folder.display();
        let failed = || format!("failed to read manifest directory {:?}", shown.to_string());
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).with_context(failed)? {
            let path = entry.with_context(failed)?.path();
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            let is_manifest = ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known));
            // A link to a file is one.
            if is_manifest && !path.is_dir() {
                paths.push(path);
            }
        }
        paths.sort();
        let (mut files, mut hash, mut bytes) = (Files::default(), Sha256::new(), 0);
        for path in paths {
            let path_text = path.display().to_string();
            let text = config_file::read(&path).with_context(|| format!("failed to read file {path_text:?}"))?;
            if text.is_empty() {
                continue;
            }
            bytes += text.len();
            anyhow::ensure!(bytes <= MAX_BYTES, "the files in {shown} have more than {MAX_BYTES} bytes together");
            hash.update(&text);
            hash.update([0]);
            let text = String::from_utf8(text).with_context(|| format!("failed to read file {path_text:?}"))?;
            files.texts.push((path_text, text));
        }
        if !files.texts.is_empty() {
            let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            files.hash = format!("sha256:{hex}");
        }
        Ok(files)
    }

    fn manifests(&self, catalog: &Catalog, plugin: AdmissionPlugin) -> anyhow::Result<StaticManifests> {
        let documents = self.texts.iter().flat_map(|(file, text)| {
            Document::all(text).into_iter().map(|document| ManifestDocument { file, text: document.text.as_bytes() })
        });
        let documents: Vec<_> = documents.collect();
        Ok(StaticManifests::read(catalog, plugin, &documents)?)
    }
}

/// The manifests of all plugins that have some.
pub(crate) struct ManifestKeeper {
    folders: Vec<Folder>,
}

struct Folder {
    plugin: AdmissionPlugin,
    path: PathBuf,
    /// What was last seen there: the hash of the files, or why they could not be read.
    seen: String,
}

impl ManifestKeeper {
    /// Reads the manifests of these plugins.
    pub(crate) fn begin(
        catalog: &Catalog,
        folders: &BTreeMap<AdmissionPlugin, PathBuf>,
    ) -> anyhow::Result<(ManifestKeeper, Vec<StaticManifests>)> {
        let (mut kept, mut manifests) = (Vec::new(), Vec::new());
        for (plugin, path) in folders {
            let read = Files::read(path).and_then(|files| Ok((files.manifests(catalog, *plugin)?, files.hash)));
            let (read, hash) = read.with_context(|| {
                let what = match plugin {
                    AdmissionPlugin::MutatingAdmissionWebhook | AdmissionPlugin::ValidatingAdmissionWebhook => {
                        "webhook"
                    }
                    _ => "policy",
                };
                let path = path.display().to_string();
                format!(
                    "couldn't init admission plugin {:?}: failed to load static {what} manifests from {path:?}",
                    plugin.name()
                )
            })?;
            tracing::info!(%plugin, folder = %path.display(), count = read.len(), "read the manifests of a plugin");
            kept.push(Folder { plugin: *plugin, path: path.clone(), seen: hash });
            manifests.push(read);
        }
        Ok((ManifestKeeper { folders: kept }, manifests))
    }

    /// Counts what was read at the start. `server` is who the server is in metrics.
    pub(crate) fn tell(&self, metrics: &Metrics, server: &str) {
        for folder in &self.folders {
            metrics.manifests_reloaded(folder.plugin.name(), server, Some(&folder.seen));
        }
    }

    /// Keeps what is in force in line with the files, until it is dropped.
    pub(crate) async fn run(self, registry: Arc<Registry>, metrics: Arc<Metrics>, server: String) {
        let mut keeper = self;
        if keeper.folders.is_empty() {
            return;
        }
        let mut ticks = tokio::time::interval(LOOKING);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let (registry, metrics, server) = (registry.clone(), metrics.clone(), server.clone());
            let looked = tokio::task::spawn_blocking(move || {
                for folder in &mut keeper.folders {
                    folder.look(&registry, &metrics, &server);
                }
                keeper
            });
            keeper = match looked.await {
                Ok(keeper) => keeper,
                Err(error) => {
                    tracing::error!(%error, "manifests are not looked at any more");
                    return;
                }
            };
        }
    }
}

impl Folder {
    fn look(&mut self, registry: &Registry, metrics: &Metrics, server: &str) {
        let read = Files::read(&self.path);
        let state = read.as_ref().map_or_else(|error| format!("{error:#}"), |files| files.hash.clone());
        if state == self.seen {
            return;
        }
        let plugin = self.plugin;
        let taken = read.and_then(|files| Ok((files.manifests(registry.built_in(), plugin)?, files.hash)));
        match taken {
            Ok((manifests, hash)) => {
                registry.take_manifests(&manifests);
                metrics.manifests_reloaded(plugin.name(), server, Some(&hash));
                tracing::info!(%plugin, count = manifests.len(), "the manifests of a plugin have changed");
            }
            Err(error) => {
                metrics.manifests_reloaded(plugin.name(), server, None);
                let error = format!("{error:#}");
                tracing::error!(%plugin, error, "the manifests of a plugin cannot be used; those before stay in force");
            }
        }
        self.seen = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_manifests_are_read_in_the_order_of_their_names_and_told_apart_by_what_they_say() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Files::read(folder.path()).expect("is empty").hash, "");
        for (name, text) in [("b.YML", "b"), ("a.yaml", "a"), ("c.json", ""), ("d.txt", "d"), ("e.json", "{}")] {
            std::fs::write(folder.path().join(name), text).expect("is written");
        }
        std::fs::create_dir(folder.path().join("f.yaml")).expect("is made");
        let files = Files::read(folder.path()).expect("can be read");
        let texts: Vec<&str> = files.texts.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["a", "b", "{}"]);
        let want: String = Sha256::digest(b"a\0b\0{}\0").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(files.hash, format!("sha256:{want}"));
        assert!(Files::read(&folder.path().join("missing")).is_err());
    }
}
