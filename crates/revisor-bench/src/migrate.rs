//! A migration of everything that is stored, and what those notice of it who ask for something else meanwhile.
//!
//! The others work at a steady rate that leaves the machine room: what is added to their times is what the migration
//! costs them. A load that takes all there is would only show that two share what one had.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::latency::Latencies;
use crate::objects::Kind;
use crate::report::Phase;
use crate::run::Drive;
use crate::widgets::{self, OTHER};
use crate::worker::{Operation, Worker};
use crate::workload::Outcome;
use crate::{Endpoint, Options};

/// What a server needs to migrate.
pub(crate) const FLAGS: [&str; 3] = [
    "--feature-gates=StorageVersionMigrator=true",
    "--runtime-config=storagemigration.k8s.io/v1beta1=true",
    "--controllers=storage-version-migrator-controller",
];

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations";

/// How many objects the others have.
const OTHERS: u32 = 1000;

/// How many of them work at the same time, and how long each pauses between two requests: about 800 requests a second.
const WORKERS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(10);

/// How often the migration is looked at.
const LOOKING: Duration = Duration::from_millis(50);

/// Fills a server with objects and migrates them, with and without others beside it.
pub(crate) async fn phases(
    drive: &mut Drive,
    endpoint: &Endpoint,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Phase>> {
    let mut phases = Vec::new();
    progress("create");
    let created = drive.fill(options.objects, options).await?;
    phases.push(drive.phase("create", created)?);

    let beside = Options { kind: Kind::Configmaps, conversion: None, connections: WORKERS, ..options.clone() };
    let mut others = drive.beside(endpoint.clone(), &beside).await?;
    others.fill(OTHERS, &beside).await?;
    for operation in [Operation::Get, Operation::Update] {
        let name = format!("{operation:?} beside nothing").to_lowercase();
        progress(&name);
        let time = Duration::from_secs(options.seconds.into());
        let outcome = steady(&mut others, operation, async {
            tokio::time::sleep(time).await;
            Ok(())
        })
        .await?;
        phases.push(others.phase(&name, outcome)?);
    }
    // There and back again, so that both kinds of request meet a migration of everything.
    for (operation, storage) in [(Operation::Get, OTHER), (Operation::Update, widgets::STORED)] {
        let name = format!("{operation:?} beside a migration").to_lowercase();
        progress(&name);
        let mut migrator = drive.worker().await?;
        let definition =
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", widgets::name(options.conversion));
        migrator.store_as(&definition, storage).await?;
        let (start, before) = (Instant::now(), drive.cpu()?);
        let group = widgets::group(options.conversion);
        let migration = migrate(&mut migrator, group, storage, options);
        let outcome = steady(&mut others, operation, migration).await?;
        let elapsed = start.elapsed();
        let cpu = before.zip(drive.cpu()?).map(|(before, after)| after.saturating_sub(before));
        let mut latencies = Latencies::default();
        latencies.push(elapsed);
        let migrated = Outcome { operations: options.objects.into(), bytes: 0, elapsed, latencies, cpu };
        phases.push(
            drive.phase(&format!("migrate to {storage}, with {operation:?}s beside it").to_lowercase(), migrated)?,
        );
        phases.push(others.phase(&name, outcome)?);
    }
    others.close().await;
    Ok(phases)
}

/// Lets the others do one operation at their pace until something else is over.
async fn steady(others: &mut Drive, operation: Operation, until: impl Future<Output = Result<()>>) -> Result<Outcome> {
    let (before, start) = (others.cpu()?, Instant::now());
    let (over, is_over) = tokio::sync::watch::channel(false);
    let mut tasks = JoinSet::new();
    for mut worker in others.take_workers() {
        let mut is_over = is_over.clone();
        tasks.spawn(async move {
            let mut latencies = Latencies::default();
            loop {
                let begun = Instant::now();
                worker.step(operation, 0).await?.context("there is nothing to ask for")?;
                latencies.push(begun.elapsed());
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    _ = is_over.wait_for(|is_over| *is_over) => return anyhow::Ok((worker, latencies)),
                }
            }
        });
    }
    let done = until.await;
    over.send_replace(true);
    let mut outcome = Outcome { elapsed: start.elapsed(), ..Outcome::default() };
    let mut workers: Vec<Worker> = Vec::new();
    while let Some(task) = tasks.join_next().await {
        let (worker, latencies) = task.context("a worker panicked")??;
        outcome.operations += latencies.len() as u64;
        outcome.latencies.extend(latencies);
        workers.push(worker);
    }
    others.give_workers(workers);
    done?;
    outcome.cpu = before.zip(others.cpu()?).map(|(before, after)| after.saturating_sub(before));
    Ok(outcome)
}

/// Migrates the widgets, and waits until that is done.
async fn migrate(worker: &mut Worker, group: &str, storage: &str, options: &Options) -> Result<()> {
    let name = format!("to-{storage}");
    let migration = json!({
        "apiVersion": "storagemigration.k8s.io/v1beta1",
        "kind": "StorageVersionMigration",
        "metadata": {"name": name},
        "spec": {"resource": {"group": group, "resource": widgets::PLURAL}},
    });
    worker.call("POST", MIGRATIONS, &migration.to_string()).await?;
    let end = Instant::now() + Duration::from_secs(options.limit_seconds.into());
    while Instant::now() < end {
        let told: Value = worker.read(&format!("{MIGRATIONS}/{name}")).await?;
        let conditions = told["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is = |kind: &str| conditions.iter().any(|known| known["type"] == kind && known["status"] == "True");
        if is("Succeeded") {
            return Ok(());
        }
        if is("Failed") {
            bail!("the migration failed: {told}");
        }
        tokio::time::sleep(LOOKING).await;
    }
    bail!("the migration did not come to an end; raise --limit-seconds")
}
