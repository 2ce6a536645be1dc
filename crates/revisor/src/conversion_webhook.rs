//! `revisor conversion-webhook`: the rules of Conversions for clusters whose servers do not know them.
//!
//! Such a server sends a `ConversionReview` whenever it needs an object in another version. What a version cannot say
//! travels in an annotation, where the server keeps it. Connections, TLS and their limits are those of `revisor serve`.

mod flags;
mod handler;
mod install;
mod review;
mod rule_book;
mod tally;
mod watcher;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use revisor_api::{HealthCheck, HealthChecks, Limits, Metrics, Server, ServerOptions};
use revisor_auth::{Holdings, LiveCertificates, LiveOptions, ServingFiles, server_names};
use rustls_pki_types::ServerName;
use tokio::sync::watch;

use crate::crd::SourceFile;
use crate::open_files::raise_open_files;
use crate::serve::{THREAD_STACK, stop_signal};
use crate::{logging, private_folder};
pub(crate) use flags::ConversionWebhookFlags;
use handler::{PATH, ReviewLimits, WebhookHandler};
use rule_book::RuleBook;
use tally::Tally;
use watcher::Watcher;

/// How many connections there may be. Those who ask are the servers of a cluster, which are few and stay.
const CONNECTIONS: u32 = 1_000;
const NEWCOMERS: u32 = 200;

/// How often the certificates are looked at, and the files if they are watched.
const LOOKING: Duration = Duration::from_secs(1);

/// Serves until a signal comes, or installs what is needed for that.
pub(crate) fn run(flags: ConversionWebhookFlags) -> anyhow::Result<()> {
    let _ = logging::start(flags.serving.verbosity, flags.serving.logging_format);
    let files = SourceFile::read_all(&flags.files)?;
    let book = RuleBook::read(&files).map_err(|problems| anyhow::anyhow!(problems.join("\n")))?;
    let certificates = certificates(&flags)?;
    if flags.install {
        return install::install(&flags, &files, &certificates);
    }
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads.enable_all().thread_stack_size(THREAD_STACK);
    threads.build().context("cannot start threads")?.block_on(serve(flags, files, book, certificates))
}

async fn serve(
    flags: ConversionWebhookFlags,
    files: Vec<SourceFile>,
    book: RuleBook,
    certificates: LiveCertificates,
) -> anyhow::Result<()> {
    let metrics = Arc::new(Metrics::new(Vec::new));
    let tally = Arc::new(Tally::new(metrics.registry()).context("cannot count")?);
    announce(&book, &tally);
    let defaults = Limits::default();
    let (connections, newcomers) = raise_open_files().connections(CONNECTIONS, NEWCOMERS);
    let server = Server::bind(ServerOptions {
        address: SocketAddr::new(flags.bind_address, flags.secure_port),
        tls: certificates.tls(),
        strict_transport_security: None,
        cross_origin: None,
        goaway_chance: 0.0,
        metrics: metrics.clone(),
        shutdown_delay: flags.serving.shutdown_delay_duration,
        limits: Limits { connections, newcomers, answer_timeout: flags.serving.request_timeout, ..defaults },
    })
    .with_context(|| format!("cannot listen on {}:{}", flags.bind_address, flags.secure_port))?;
    let (rules, in_use) = watch::channel(Arc::new(book));
    let watcher = Watcher::new(flags.watch.then(|| flags.files.clone()), files, rules, Arc::clone(&tally));
    let trouble = watcher.trouble();
    let check = HealthCheck::alarm("conversions", move || trouble.borrow().clone().map_or(Ok(()), Err));
    let limits = ReviewLimits {
        bytes: flags.max_review_bytes as usize,
        time: flags.serving.request_timeout,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let health = HealthChecks::new(server.drain(), vec![check]);
    let handler = Arc::new(WebhookHandler::new(in_use, health, metrics, tally, limits));
    let stop_signal = stop_signal()?;
    let looking = tokio::spawn(keep_looking(certificates, watcher));
    let address = server.address();
    crate::print(&format!("https://{address}{PATH}\n"))?;
    tracing::info!(%address, "serving conversions");
    let drained = server.run(handler, stop_signal).await;
    looking.abort();
    if drained.cut_off > 0 {
        tracing::warn!(connections = drained.cut_off, "cut off connections that did not finish in time");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Says which rules are in use from now on.
fn announce(book: &RuleBook, tally: &Tally) {
    tally.in_use(book.entries().len());
    for entry in book.entries() {
        let versions: Vec<&str> = entry.definition.versions().iter().map(|version| version.name()).collect();
        tracing::info!(definition = entry.definition.name(), versions = versions.join(","), "converting");
    }
    for definition in book.unconverted() {
        tracing::warn!(definition, "has several versions and no Conversion in the files: its reviews will fail");
    }
}

/// Follows changes of certificates and files.
async fn keep_looking(mut certificates: LiveCertificates, mut watcher: Watcher) {
    let mut ticks = tokio::time::interval(LOOKING);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let looked = tokio::task::spawn_blocking(move || {
            if certificates.refresh(SystemTime::now()) {
                tracing::info!("the certificates have changed; --install prints what definitions have to say of them");
            }
            watcher.look();
            (certificates, watcher)
        });
        (certificates, watcher) = match looked.await {
            Ok(looked) => looked,
            Err(error) => {
                tracing::error!(%error, "certificates and files are not looked after any more");
                return;
            }
        };
    }
}

fn certificates(flags: &ConversionWebhookFlags) -> anyhow::Result<LiveCertificates> {
    private_folder::secure_keys(&flags.cert_dir)?;
    let mut names = server_names([flags.bind_address]);
    for host in flags.hosts() {
        let name = ServerName::try_from(host.clone()).with_context(|| format!("no certificate can name {host:?}"))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let options = LiveOptions {
        folder: flags.cert_dir.clone(),
        names,
        serving: ServingFiles::from_flags(flags.tls_cert_file.clone(), flags.tls_private_key_file.clone())?,
        named: Vec::new(),
        client_authorities: None,
        tls: flags.serving.tls()?,
        holdings: Holdings::Serving,
    };
    Ok(LiveCertificates::open(options, SystemTime::now())?)
}
