//! `revisor rehearse`: what a release, definitions and conversions that are to come would do to what is stored.
//!
//! Whoever has the objects is a [`Source`]: a folder that no server has open, an etcd or a snapshot of one, or a live
//! server. What becomes of an object is a matter of [`Rehearsal`]; here it is only fed and its findings are told.

mod etcd;
mod flags;
mod folder;
mod report;
mod server;

use std::collections::HashSet;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use revisor_catalog::Catalog;
use revisor_object::Object;
use revisor_registry::{Environment, Rehearsal, SeenRequests, Stored, ToCome};
use revisor_store::ResourceTransformers;

use crate::crd::{Located, SourceFile, UNREADABLE, read_definition};
use crate::encryption_config::transformers;
use crate::serve::{THREAD_STACK, stop_signal};
use etcd::EtcdState;
pub(crate) use flags::RehearseFlags;
use folder::FolderSource;
use report::Report;
use server::ServerSource;

/// Where definitions and Conversions are stored.
const DEFINITIONS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";
const CONVERSIONS: &str = "/registry/versioning.revisor.dev/conversions/";

/// By which keys what is stored is encrypted, if it is.
type Keys = Arc<dyn ResourceTransformers>;

/// Where the objects come from. Each is shown once and then let go, so that none has to be held.
trait Source {
    /// The definitions and Conversions that are stored.
    async fn stored(&self) -> anyhow::Result<Stored>;

    /// Shows every object to `look`; answers how many there were.
    async fn objects(&self, rehearsal: &Rehearsal, look: &mut dyn FnMut(Seen<'_>)) -> anyhow::Result<usize>;

    /// The requests that were made lately, as far as they are known.
    async fn requests(&self) -> anyhow::Result<Vec<SeenRequests>>;
}

/// An object, with the key under which it is stored.
enum Seen<'a> {
    /// As it is stored.
    Stored(&'a str, &'a [u8]),
    /// As a server shows it in some version.
    Shown(&'a str, Object),
}

/// Rehearses, prints what was found, and says by the exit code whether anything is in the way.
pub(crate) fn run(flags: &RehearseFlags) -> ExitCode {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads.enable_all().thread_stack_size(THREAD_STACK);
    let report = threads.build().context("cannot start threads").and_then(|threads| {
        threads.block_on(async {
            // Who gives up leaves no copy behind.
            tokio::select! {
                report = rehearse(flags) => report,
                () = stop_signal()? => bail!("stopped"),
            }
        })
    });
    let printed = report.and_then(|report| {
        crate::print(&report.print(flags.output))?;
        Ok(report.is_harmless())
    });
    match printed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            crate::complain(&format!("revisor: {error:#}"));
            ExitCode::from(UNREADABLE)
        }
    }
}

async fn rehearse(flags: &RehearseFlags) -> anyhow::Result<Report> {
    let (definitions, conversions) = to_come(flags)?;
    let options = flags.catalog_options()?;
    let to_come =
        ToCome { catalog: Catalog::build(&options)?, environment: Environment::system(), definitions, conversions };
    let release = options.version.emulation().to_string();
    let given = [flags.data_dir.is_some(), flags.etcd.is_given(), flags.cluster.is_given()];
    if given.into_iter().filter(|given| *given).count() > 1 {
        bail!("one of these is looked at, a folder, an etcd or its snapshot, or a server: leave out the others");
    }
    if flags.encryption_provider_config.is_some() && flags.cluster.is_given() {
        bail!("--encryption-provider-config is for what is stored in a folder or an etcd");
    }
    if let Some(folder) = &flags.data_dir {
        let keys = transformers(flags.encryption_provider_config.clone(), &options.gates).await?;
        return rehearse_source(
            &FolderSource::open(folder, keys, flags.store_key_file.as_deref()).await?,
            to_come,
            release,
        )
        .await;
    }
    if flags.etcd.is_given() {
        let keys = transformers(flags.encryption_provider_config.clone(), &options.gates).await?;
        let source = EtcdState::open(&flags.etcd, &to_come.catalog, keys).await?;
        return rehearse_source(&source, to_come, release).await;
    }
    if flags.cluster.is_given() {
        return rehearse_source(&ServerSource::open(&flags.cluster)?, to_come, release).await;
    }
    bail!(
        "name a folder with --data-dir, an etcd with --etcd-servers or --snapshot, or a server with --server or --kubeconfig"
    )
}

async fn rehearse_source(source: &impl Source, to_come: ToCome, release: String) -> anyhow::Result<Report> {
    let stored = source.stored().await?;
    let (rehearsal, mut findings) = to_come.rehearse(stored);
    let mut look = |seen: Seen<'_>| match seen {
        Seen::Stored(key, stored) => findings.extend(rehearsal.look_at(key, stored)),
        Seen::Shown(key, object) => findings.extend(rehearsal.look_at_shown(key, object)),
    };
    // Asked first: to look at objects is to ask for them.
    let requests = SeenRequests::lately(source.requests().await?);
    let objects = source.objects(&rehearsal, &mut look).await?;
    findings.extend(requests.iter().filter_map(|seen| rehearsal.look_at_requests(seen)));
    // An object that was looked at in several versions may have suffered the same in each.
    let mut known = HashSet::new();
    findings.retain(|found| known.insert(found.clone()));
    Ok(Report { release, objects, findings })
}

/// The definitions and Conversions in the files.
fn to_come(flags: &RehearseFlags) -> anyhow::Result<(Vec<Object>, Vec<Object>)> {
    let (mut definitions, mut conversions) = (Vec::new(), Vec::new());
    for file in SourceFile::read_all(&flags.definitions)? {
        for found in file.objects()? {
            if found.is_definition() {
                read_definition(&found)?;
                definitions.push(found);
            } else if found.is_conversion() {
                conversions.push(found);
            }
        }
    }
    if !flags.definitions.is_empty() && definitions.is_empty() && conversions.is_empty() {
        let paths: Vec<String> = flags.definitions.iter().map(|path| path.display().to_string()).collect();
        bail!("{}: there is neither a CustomResourceDefinition nor a Conversion in it", paths.join(", "));
    }
    for found in [&definitions, &conversions] {
        let mut names: Vec<&Located> = found.iter().collect();
        names.sort_by_key(|found| found.name());
        if let Some(pair) = names.windows(2).find(|pair| pair[0].name() == pair[1].name()) {
            bail!("{} is there twice: {} and {}", pair[0].name(), pair[0].place, pair[1].place);
        }
    }
    let objects = |found: Vec<Located>| found.into_iter().map(|found| found.object).collect();
    Ok((objects(definitions), objects(conversions)))
}
