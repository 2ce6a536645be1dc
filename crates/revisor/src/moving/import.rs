//! `revisor import`: from an etcd into a data folder.
//!
//! Objects keep their resource versions: the folder is that of a store which forgot all history before the revision that
//! was read. It is filled under another name and gets its own when everything was found in it again.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use revisor_catalog::{Catalog, CatalogOptions, StorageMediaType};
use revisor_etcd::{Codec, Reading, Stored};
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore, Loader};
use revisor_store::{Listing, Store};
use revisor_version::Revision;
use serde_json::json;

use super::tally::Sum;
use super::{Moved, Tally};
use crate::backend::{self, CatalogCodec};
use crate::encryption_config::transformers;
use crate::etcd_access::{EtcdSource, is_of_servers};
use crate::flags::OutputFormat;
use crate::folder_copy::page;
use crate::private_folder;
use crate::progress::Progress;

pub(crate) const IMPORT_EXAMPLE: &str = "\
A copy of a cluster's state on a laptop, from a backup of its etcd:

  etcdctl snapshot save backup.db
  revisor import --snapshot backup.db --data-dir copy
  revisor serve --data-dir copy --controllers=none

From the etcd itself, while it is in use:

  revisor import --etcd-servers https://10.0.0.1:2379 --etcd-cafile ca.crt --etcd-certfile client.crt \\
    --etcd-keyfile client.key --data-dir copy";

/// What a server that keeps its objects elsewhere has in its folder.
const WITHOUT_STORE: [&str; 6] = ["certificates", "kubeconfig", "continue.key", "server.id", "lost+found", STAGING];

/// What the store is called until it is whole.
const STAGING: &str = "store.importing";

/// How many values that cannot be decoded are named.
const NAMED: usize = 100;

/// What to import, and where to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ImportFlags {
    #[command(flatten)]
    source: EtcdSource,

    /// The data folder to make. It may hold the certificates of a server, and must not hold objects
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,

    /// The EncryptionConfiguration with the keys of what is encrypted in etcd. Objects are encrypted by it in the folder
    /// too
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,

    /// A file with keys by which the store in the folder is to be encrypted as a whole, as `serve` has it
    #[arg(long, value_name = "FILE")]
    store_key_file: Option<PathBuf>,

    /// Leave out what cannot be decoded; otherwise nothing is imported if there is such a value
    #[arg(long)]
    skip_undecodable: bool,

    /// How to print what became of it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub(super) output: OutputFormat,
}

/// A value that is no object, and why.
struct Undecodable {
    key: String,
    problem: String,
}

pub(super) async fn import(flags: &ImportFlags) -> anyhow::Result<Moved> {
    ensure!(flags.source.is_given(), "name an etcd with --etcd-servers, or a snapshot of one with --snapshot");
    check_free(&flags.data_dir)?;
    let options = CatalogOptions::default();
    let transformers = transformers(flags.encryption_provider_config.clone(), &options.gates).await?;
    let catalog = Catalog::build(&options)?;
    let codec = flags.source.etcd.codec(&catalog, StorageMediaType::Protobuf, transformers.clone());
    let reading = flags.source.open().await?;
    let revision = reading.revision().context("nothing was ever written")?;

    private_folder::secure(&flags.data_dir)?;
    let staging = Staging::make(&flags.data_dir)?;
    let mut store = EmbeddedOptions::new(staging.path());
    store.transformers = transformers;
    store.cipher = flags.store_key_file.as_deref().map(backend::store_keys).transpose()?;
    let mut filling = Filling::new(Loader::create(&store, revision)?);
    let filled = filling.take_all(&reading, &codec).await;
    filling.progress.end();
    filled?;
    if !filling.undecodable.is_empty() && !flags.skip_undecodable {
        return Ok(refusal(&filling.undecodable));
    }
    let Filling { loader, tally, undecodable, moved_on, left_out, .. } = filling;
    let newest = loader.finish()?;
    let (read, found) = (tally.sum(), stored(store, newest).await?);
    ensure!(
        read == found,
        "{} objects were read and {} are stored, and their hashes are {} and {}: nothing was imported",
        read.count,
        found.count,
        read.contents,
        found.contents
    );
    staging.keep()?;
    for Undecodable { key, problem } in undecodable.iter().take(NAMED) {
        crate::complain(&format!("revisor: note: {key} is left out: {problem}"));
    }
    Ok(Moved {
        text: format!(
            "imported {} objects of {} into {}, at revision {newest}\n{}sha256:{}\n",
            found.count,
            flags.source.name(),
            flags.data_dir.display(),
            beside(undecodable.len(), moved_on),
            found.contents
        ),
        json: json!({
            "objects": found.count, "revision": newest.get(), "sha256": found.contents,
            "undecodable": undecodable.iter().map(|value| &value.key).collect::<Vec<_>>(),
            "newRevisions": moved_on, "ofServers": left_out,
        }),
        is_good: true,
    })
}

/// What is told beside the count, if there is anything.
fn beside(undecodable: usize, moved_on: u64) -> String {
    let mut lines = String::new();
    if undecodable > 0 {
        lines.push_str(&format!("{undecodable} values could not be decoded and were left out\n"));
    }
    if moved_on > 0 {
        lines.push_str(&format!(
            "{moved_on} objects were written together with others, and got resource versions of their own\n"
        ));
    }
    lines
}

/// Names what cannot be decoded.
fn refusal(undecodable: &[Undecodable]) -> Moved {
    let mut text = String::new();
    for Undecodable { key, problem } in undecodable.iter().take(NAMED) {
        text.push_str(&format!("{key}: {problem}\n"));
    }
    if let Some(more) = undecodable.len().checked_sub(NAMED).filter(|more| *more > 0) {
        text.push_str(&format!("and {more} more; -o json names all\n"));
    }
    text.push_str(&format!(
        "{} values cannot be decoded, and nothing was imported; --skip-undecodable leaves them out\n",
        undecodable.len()
    ));
    let each = undecodable.iter().map(|value| json!({"key": value.key, "problem": value.problem}));
    Moved { text, json: json!({"objects": 0, "undecodable": each.collect::<Vec<_>>()}), is_good: false }
}

/// Refuses a folder in which there is more than a server has that keeps its objects elsewhere.
fn check_free(folder: &Path) -> anyhow::Result<()> {
    let items = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        items => items.with_context(|| format!("cannot look into {}", folder.display()))?,
    };
    for item in items {
        let name = item?.file_name();
        if name == "store" {
            bail!("{} holds the objects of a server already: choose another folder", folder.display());
        }
        if !WITHOUT_STORE.iter().any(|known| name == *known) {
            bail!("{} is not empty, it holds {name:?}: choose another folder", folder.display());
        }
    }
    Ok(())
}

/// A store that is being filled.
struct Filling {
    loader: Loader,
    tally: Tally,
    progress: Progress,
    done: u64,
    undecodable: Vec<Undecodable>,
    /// How many objects could not keep their revision.
    moved_on: u64,
    /// How many keys servers keep for themselves.
    left_out: u64,
}

impl Filling {
    fn new(loader: Loader) -> Filling {
        let (tally, progress) = (Tally::default(), Progress::new());
        Filling { loader, tally, progress, done: 0, undecodable: Vec::new(), moved_on: 0, left_out: 0 }
    }

    async fn take_all(&mut self, reading: &Reading, codec: &CatalogCodec) -> anyhow::Result<()> {
        let mut pages = reading.pages("/registry/");
        while let Some(page) = pages.next().await? {
            self.done += page.len() as u64;
            // To decode, and to write to the disk, is no work for a thread that others wait for.
            tokio::task::block_in_place(|| page.iter().try_for_each(|stored| self.take(codec, stored)))?;
            self.progress.count("importing", self.done, reading.count());
        }
        Ok(())
    }

    fn take(&mut self, codec: &CatalogCodec, stored: &Stored) -> anyhow::Result<()> {
        let key = match &stored.key {
            Ok(key) => key,
            Err(foreign) => {
                self.leave_out(foreign.escape_ascii().to_string(), "it is no key of an object".to_owned());
                return Ok(());
            }
        };
        if is_of_servers(key.as_str()) {
            self.left_out += 1;
            return Ok(());
        }
        let draft = match codec.decode(key, &stored.value) {
            Ok(decoded) => decoded.draft,
            Err(problem) => {
                self.leave_out(key.to_string(), problem.to_string());
                return Ok(());
            }
        };
        let given = self.loader.put(key, stored.revision, &draft)?;
        self.moved_on += u64::from(given != stored.revision);
        self.tally.add(key.as_str(), given, draft.bytes());
        Ok(())
    }

    fn leave_out(&mut self, key: String, problem: String) {
        self.undecodable.push(Undecodable { key, problem });
    }
}

/// What is in the store that was made, read as a server reads it.
async fn stored(options: EmbeddedOptions, newest: Revision) -> anyhow::Result<Sum> {
    let store = EmbeddedStore::open(options).await?;
    let mut tally = Tally::default();
    let mut after = None;
    loop {
        let Listing { entries, remaining, revision } = page(&store, "", after).await?;
        ensure!(revision == Some(newest), "the folder is at {revision:?} and not at {newest}: nothing was imported");
        for entry in &entries {
            tally.add(entry.key().as_str(), entry.revision(), entry.to_draft().bytes());
        }
        after = entries.last().map(|last| last.key().clone());
        if remaining == 0 {
            break;
        }
    }
    store.close().await;
    Ok(tally.sum())
}

/// The store under the name that it has until it is whole. What is not kept goes.
struct Staging {
    folder: PathBuf,
    is_kept: bool,
}

impl Staging {
    fn make(folder: &Path) -> anyhow::Result<Staging> {
        let staging = Staging { folder: folder.to_owned(), is_kept: false };
        // What an import left that was killed.
        if let Err(error) = fs::remove_dir_all(staging.path())
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error).with_context(|| format!("cannot remove {}", staging.path().display()));
        }
        Ok(staging)
    }

    fn path(&self) -> PathBuf {
        self.folder.join(STAGING)
    }

    /// Gives the store its name.
    fn keep(mut self) -> anyhow::Result<()> {
        let name = self.folder.join("store");
        let named = fs::rename(self.path(), &name).and_then(|()| File::open(&self.folder)?.sync_all());
        named.with_context(|| format!("cannot rename {} to {}", self.path().display(), name.display()))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = fs::remove_dir_all(self.path())
            && error.kind() != ErrorKind::NotFound
        {
            crate::complain(&format!("revisor: cannot remove {}: {error}", self.path().display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_without_objects_is_free() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        assert!(check_free(&path.join("new")).is_ok());
        for name in ["certificates", STAGING] {
            fs::create_dir(path.join(name)).expect("can be made");
        }
        assert!(check_free(path).is_ok());
        for (name, want) in [("store", "holds the objects of a server"), ("other", "is not empty")] {
            fs::create_dir(path.join(name)).expect("can be made");
            let refused = check_free(path).expect_err("is taken").to_string();
            assert!(refused.contains(want), "{refused}");
            fs::remove_dir(path.join(name)).expect("can be removed");
        }
    }
}
