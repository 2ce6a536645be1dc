//! `revisor export`: from a data folder into an etcd, in the layout of the original.
//!
//! etcd counts its own revisions, so objects get other resource versions. They must not be older than those that clients
//! know, or these would wait for what is in the past: where etcd has not come so far, it is written to until it has
//! ([`Writing::pad`]). In the end its history is compacted, so that whoever knows a resource version of the folder is told
//! that it is too old, and lists again.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use bytes::Bytes;
use clap::Args;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use revisor_catalog::{Catalog, StorageMediaType};
use revisor_etcd::{Codec, EtcdOptions, Reading, SharedLease, Stored, Writing};
use revisor_object::{Value, parse_json};
use revisor_registry::taken_node_ports;
use revisor_store::{Entry, Listing};
use revisor_version::Revision;
use serde_json::json;

use super::{Moved, Tally};
use crate::backend::CatalogCodec;
use crate::duration::parse_duration;
use crate::encryption_config::transformers;
use crate::etcd_access::{EtcdAccess, is_of_servers};
use crate::etcd_flags::{PROTOBUF, parse_media_type};
use crate::flags::{CompatibilityFlags, OutputFormat};
use crate::folder_copy::{FolderCopy, page};
use crate::port_range::PortRange;
use crate::progress::Progress;

pub(crate) const EXPORT_EXAMPLE: &str = "\
From the folder of a server that is stopped into an empty etcd, for kube-apiserver or for Revisor:

  revisor export --data-dir revisor-data --etcd-servers http://127.0.0.1:2379

If etcd has far to go to the revision of the folder, restore it with a higher one first:

  etcdutl snapshot restore empty.db --bump-revision 1000000000 --mark-compacted --data-dir etcd-data";

/// Where services are stored.
const SERVICES: &str = "/registry/services/specs/";

/// How many writes are under way at once.
const AT_ONCE: usize = 64;

/// What to export, and where to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExportFlags {
    /// The data folder of a server that is not running. Nothing is written to it: it is read from a copy in the folder for
    /// temporary files, which needs as much room
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,

    #[command(flatten)]
    etcd: EtcdAccess,

    /// The EncryptionConfiguration with the keys of what is encrypted in the folder. Objects are encrypted by it in etcd too
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,

    /// The file with the keys by which the store in the folder is encrypted as a whole, if it is
    #[arg(long, value_name = "FILE")]
    store_key_file: Option<PathBuf>,

    /// How built-in kinds are written to etcd: application/vnd.kubernetes.protobuf, application/json or
    /// application/yaml
    #[arg(long, value_name = "TYPE", default_value = PROTOBUF, value_parser = parse_media_type)]
    storage_media_type: StorageMediaType,

    /// The ports of nodes that services can have, as servers on this etcd will be told: which of them are taken is noted
    #[arg(long, value_name = "FIRST-LAST", default_value = "30000-32767")]
    service_node_port_range: PortRange,

    /// After how long events go; 0 for never
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_duration)]
    event_ttl: Duration,

    /// Remove everything that is below the prefix before; otherwise nothing is exported if there is anything
    #[arg(long)]
    replace: bool,

    /// How many writes may be made for the only purpose that etcd's revision does not fall behind that of the folder
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    max_padding: u64,

    /// Export even if the resource versions of all objects become smaller: clients that know the old ones must be started
    /// anew
    #[arg(long)]
    allow_older_revisions: bool,

    #[command(flatten)]
    compatibility: CompatibilityFlags,

    /// How to print what became of it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub(super) output: OutputFormat,
}

pub(super) async fn export(flags: &ExportFlags) -> anyhow::Result<Moved> {
    ensure!(!flags.etcd.etcd_servers.is_empty(), "name an etcd with --etcd-servers");
    let options = flags.compatibility.catalog_options()?;
    let catalog = Catalog::build(&options)?;
    let transformers = transformers(flags.encryption_provider_config.clone(), &options.gates).await?;
    let codec = flags.etcd.codec(&catalog, flags.storage_media_type, transformers.clone());
    let etcd = flags.etcd.options();
    let writing = Writing::new(&etcd)?;
    let folder =
        FolderCopy::open(&flags.data_dir, transformers, flags.store_key_file.as_deref(), "begin again later").await?;
    let (count, newest) = survey(&folder).await?;
    let padding = prepare(flags, &writing, count, newest).await?;
    note_node_ports(flags, &writing, &codec, &folder).await?;

    let mut sending = Sending {
        writing: &writing,
        codec: &codec,
        events: catalog.stored_kind("", "events").map(|events| events.prefix.clone()).unwrap_or_default(),
        event_ttl: flags.event_ttl,
        lease: SharedLease::default(),
        folder: Tally::default(),
        sent: Tally::default(),
        rewritten: 0,
        progress: Progress::new(),
    };
    let sent = sending.send_all(&folder, count).await;
    sending.progress.end();
    sent?;
    pad(&writing, padding, &mut sending.progress).await?;
    let (folder, sent, rewritten) = (sending.folder.sum(), sending.sent.sum(), sending.rewritten);
    let found = found(&etcd).await?;
    ensure!(
        (sent.count, &sent.contents) == (found.count, &found.contents),
        "{} objects were written and {} are found, and their hashes are {} and {}: do not use this etcd",
        sent.count,
        found.count,
        sent.contents,
        found.contents
    );
    let revision = writing.settle().await?;
    let at = revision.map_or(0, Revision::get);
    Ok(Moved {
        text: format!(
            "exported {count} objects of {} to {}, at revision {at}; in the folder it was {newest}\n{}\
             objects have resource versions of this etcd from now on; clients that know older ones list again\nsha256:{}\n",
            flags.data_dir.display(),
            flags.etcd.name(),
            if rewritten > 0 {
                format!("{rewritten} objects are stored in the version of another release\n")
            } else {
                String::new()
            },
            folder.contents,
        ),
        json: json!({
            "objects": count, "revision": at, "folderRevision": newest.get(), "padding": padding,
            "rewritten": rewritten, "sha256": folder.contents,
        }),
        is_good: true,
    })
}

/// How many objects there are, and up to which revision.
async fn survey(folder: &FolderCopy) -> anyhow::Result<(u64, Revision)> {
    let mut count = 0;
    folder.each("", &mut |entry| count += u64::from(!is_of_servers(entry.key().as_str()))).await?;
    let Listing { revision, .. } = page(&folder.store, "", None).await?;
    match revision {
        Some(revision) if count > 0 => Ok((count, revision)),
        _ => bail!("there is nothing in the folder"),
    }
}

/// Sees to it that nothing is below the prefix, and answers how many writes are missing to the revision of the folder.
async fn prepare(flags: &ExportFlags, writing: &Writing, count: u64, newest: Revision) -> anyhow::Result<u64> {
    let there = writing.found().await?;
    ensure!(
        there.keys == 0 || flags.replace,
        "{} holds {} keys below {} already: choose another prefix, or remove them with --replace",
        flags.etcd.name(),
        there.keys,
        flags.etcd.etcd_prefix
    );
    // One more than it was: what clients know is older then.
    let missing = (newest.get() + 1).saturating_sub(there.revision + count);
    if missing > flags.max_padding && !flags.allow_older_revisions {
        bail!(
            "{} is at revision {}, and the folder at {newest}: clients would be told resource versions that are older than \
             what they know, and it would take {missing} writes to come there. Restore it from a snapshot with \
             `etcdutl snapshot restore --bump-revision {missing} --mark-compacted`, let so many writes be made with \
             --max-padding, or take it as it is with --allow-older-revisions",
            flags.etcd.name(),
            there.revision
        );
    }
    if there.keys > 0 {
        let (mut progress, mut removed) = (Progress::new(), 0);
        let cleared = writing.clear(|step| {
            removed += step;
            progress.count("removing", removed, there.keys);
        });
        cleared.await?;
        progress.end();
    }
    Ok(if flags.allow_older_revisions && missing > flags.max_padding { 0 } else { missing })
}

/// Notes which node ports are taken, where servers look for it.
async fn note_node_ports(
    flags: &ExportFlags,
    writing: &Writing,
    codec: &CatalogCodec,
    folder: &FolderCopy,
) -> anyhow::Result<()> {
    let mut services = Vec::new();
    let mut take = |entry: &Entry| {
        if let Ok(Value::Object(service)) = parse_json(entry.bytes()).map(|parsed| parsed.value) {
            services.push(service);
        }
    };
    folder.each(SERVICES, &mut take).await?;
    let (key, draft) = taken_node_ports(&flags.service_node_port_range.ports(), services.iter());
    let value = codec.encode(&key, &draft).map_err(|problem| anyhow!("{key} cannot be stored: {problem}"))?;
    Ok(writing.create(&key, value, 0).await?)
}

/// Objects on their way to etcd.
struct Sending<'a> {
    writing: &'a Writing,
    codec: &'a CatalogCodec,
    /// What the keys of events begin with, and after how long they go.
    events: String,
    event_ttl: Duration,
    lease: SharedLease,
    /// What was read from the folder, and what of it was sent.
    folder: Tally,
    sent: Tally,
    /// How many objects are in another form in the folder.
    rewritten: u64,
    progress: Progress,
}

impl Sending<'_> {
    async fn send_all(&mut self, folder: &FolderCopy, count: u64) -> anyhow::Result<()> {
        let writing = self.writing;
        let mut under_way = FuturesUnordered::new();
        let (mut after, mut done) = (None, 0);
        loop {
            let Listing { entries, remaining, .. } = page(&folder.store, "", after).await?;
            for entry in entries.iter().filter(|entry| !is_of_servers(entry.key().as_str())) {
                let (value, lease) = (self.encode(entry)?, self.lease(entry).await?);
                let key = entry.key().clone();
                under_way.push(async move { writing.create(&key, value, lease).await });
                while under_way.len() >= AT_ONCE {
                    under_way.next().await.transpose()?;
                }
                done += 1;
                self.progress.count("exporting", done, count);
            }
            after = entries.last().map(|last| last.key().clone());
            if remaining == 0 {
                break;
            }
        }
        while let Some(written) = under_way.next().await {
            written?;
        }
        Ok(())
    }

    /// What is stored of an object, which must be read back as the same.
    fn encode(&mut self, entry: &Entry) -> anyhow::Result<Bytes> {
        let (key, draft) = (entry.key(), entry.to_draft());
        let failed = |problem| anyhow!("{key} cannot be stored: {problem}");
        let value = self.codec.encode(key, &draft).map_err(failed)?;
        let read = self.codec.decode(key, &value).map_err(failed)?;
        self.rewritten += u64::from(read.draft.bytes() != draft.bytes());
        self.folder.add(key.as_str(), entry.revision(), draft.bytes());
        self.sent.add(key.as_str(), entry.revision(), &value);
        Ok(value)
    }

    async fn lease(&mut self, entry: &Entry) -> anyhow::Result<i64> {
        if self.event_ttl.is_zero() || !entry.key().as_str().starts_with(&self.events) {
            return Ok(0);
        }
        Ok(self.writing.lease(&mut self.lease, self.event_ttl).await?)
    }
}

/// Makes so many writes to no other purpose than that they are counted.
async fn pad(writing: &Writing, count: u64, progress: &mut Progress) -> anyhow::Result<()> {
    let mut under_way = FuturesUnordered::new();
    for done in 0..count {
        under_way.push(writing.pad());
        while under_way.len() >= AT_ONCE {
            under_way.next().await.transpose()?;
        }
        progress.count("padding", done + 1, count);
    }
    while let Some(written) = under_way.next().await {
        written?;
    }
    progress.end();
    Ok(())
}

/// What etcd holds now.
async fn found(etcd: &EtcdOptions) -> anyhow::Result<super::tally::Sum> {
    let reading = Reading::live(etcd).await?;
    let mut tally = Tally::default();
    let mut pages = reading.pages("/registry/");
    while let Some(page) = pages.next().await? {
        let of_servers = |stored: &Stored| stored.key.as_ref().is_ok_and(|key| is_of_servers(key.as_str()));
        for stored in page.into_iter().filter(|stored| !of_servers(stored)) {
            let key = stored.key.map_or_else(|foreign| foreign.escape_ascii().to_string(), |key| key.to_string());
            tally.add(&key, stored.revision, &stored.value);
        }
    }
    Ok(tally.sum())
}
