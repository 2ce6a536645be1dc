//! `revisor crd migrate`: starts a StorageVersionMigration and shows how far it is until it is over.

mod progress;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use http::Method;
use revisor_object::{Object, Value, parse_json};
use serde_json::json;

use self::progress::{Stage, show};
use super::UNREADABLE;
use crate::cluster::{Cluster, ClusterError, ClusterFlags, block_on};
use crate::duration::parse_duration;
use crate::flags::OutputFormat;
use crate::progress::Progress;

const GROUP: &str = "/apis/storagemigration.k8s.io";

/// The versions of the API that this command speaks.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", ALPHA];

/// The first one, which wants to know in which version the resource is looked for.
const ALPHA: &str = "v1alpha1";

/// How often the migration is looked at.
const LOOKING: Duration = Duration::from_millis(200);

/// For how long a cluster may be away: servers restart, and the migration goes on.
const AWAY: Duration = Duration::from_secs(60);

/// After so long nobody seems to work on it.
const IDLE: Duration = Duration::from_secs(10);

/// What to migrate.
#[derive(Debug, Args)]
pub(crate) struct MigrateFlags {
    /// The name of the CustomResourceDefinition, or of another resource with its group: widgets.example.com, secrets
    #[arg(value_name = "NAME")]
    resource: String,

    /// The name of the StorageVersionMigration [default: one that nobody has]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Start it, and do not wait for its end
    #[arg(long)]
    no_wait: bool,

    /// How long to wait for its end; it goes on after that
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "no_wait")]
    timeout: Option<Duration>,

    /// How to print what became of it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    output: OutputFormat,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Migrates a resource.
pub(super) fn migrate(flags: &MigrateFlags) -> anyhow::Result<ExitCode> {
    let cluster = Cluster::open(&flags.cluster)?;
    block_on(run(&cluster, flags))?
}

async fn run(cluster: &Cluster, flags: &MigrateFlags) -> anyhow::Result<ExitCode> {
    let path = collection(cluster).await?;
    let (plural, group) = flags.resource.split_once('.').unwrap_or((&flags.resource, ""));
    let name = match &flags.name {
        Some(name) => json!({"name": name}),
        None => json!({"generateName": format!("{plural}-")}),
    };
    let api_version = path.trim_start_matches("/apis/").rsplit_once('/').map_or("", |(version, _)| version);
    let mut resource = json!({"group": group, "resource": plural});
    if api_version.ends_with(ALPHA) {
        resource["version"] = json!(preferred_version(cluster, group).await?);
    }
    let migration = json!({
        "apiVersion": api_version,
        "kind": "StorageVersionMigration",
        "metadata": name,
        "spec": {"resource": resource},
    });
    let migration = parse_json(migration.to_string().as_bytes()).context("a migration is JSON")?.value;
    let made = cluster.send(Method::POST, &path, Some(&migration)).await?;
    let name = made.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default().to_owned();
    let stage = if flags.no_wait { Stage::of(&made) } else { wait(cluster, flags, &format!("{path}/{name}")).await? };
    let stored = match &stage {
        Stage::Succeeded { .. } => stored_versions(cluster, &flags.resource).await,
        _ => None,
    };
    crate::print(&match flags.output {
        OutputFormat::Text => stage.text(&name, stored.as_deref()),
        OutputFormat::Json => format!("{:#}\n", stage.json(&name, &flags.resource, stored.as_deref())),
    })?;
    Ok(match stage {
        Stage::Succeeded { .. } => ExitCode::SUCCESS,
        Stage::Failed { .. } => ExitCode::FAILURE,
        Stage::Waiting | Stage::Running { .. } if flags.no_wait => ExitCode::SUCCESS,
        Stage::Waiting | Stage::Running { .. } => ExitCode::from(UNREADABLE),
    })
}

/// The version in which a group is best asked for.
async fn preferred_version(cluster: &Cluster, group: &str) -> anyhow::Result<String> {
    if group.is_empty() {
        return Ok("v1".to_owned());
    }
    let told = cluster.get(&format!("/apis/{group}")).await?;
    let version = told.at(&["preferredVersion", "version"]).and_then(Value::as_str);
    version
        .map(str::to_owned)
        .with_context(|| format!("{} does not say which version of {group} it prefers", cluster.url()))
}

/// Where migrations are made.
async fn collection(cluster: &Cluster) -> anyhow::Result<String> {
    let group = match cluster.get(GROUP).await {
        Ok(group) => group,
        Err(error) if error.code() == Some(404) => bail!(
            "{} has no StorageVersionMigrations: they need the feature gate StorageVersionMigrator and \
             --runtime-config=storagemigration.k8s.io/v1beta1=true",
            cluster.url()
        ),
        Err(error) => return Err(error.into()),
    };
    let served: Vec<&str> = (group.array("versions").iter().filter_map(Value::as_object))
        .filter_map(|version| version.str("version"))
        .collect();
    match VERSIONS.into_iter().find(|version| served.contains(version)) {
        Some(version) => Ok(format!("{GROUP}/{version}/storageversionmigrations")),
        None => bail!(
            "{} has StorageVersionMigrations as {} only, and not as {}",
            cluster.url(),
            served.join(", "),
            VERSIONS.join(" or ")
        ),
    }
}

/// Looks at a migration until it is over, or the time is.
async fn wait(cluster: &Cluster, flags: &MigrateFlags, path: &str) -> anyhow::Result<Stage> {
    let begun = Instant::now();
    let mut progress = Progress::new();
    let mut seen = begun;
    let mut stage = Stage::Waiting;
    let mut has_warned = false;
    loop {
        match cluster.get(path).await {
            Ok(migration) => {
                seen = Instant::now();
                stage = Stage::of(&migration);
            }
            Err(error @ ClusterError::Net { .. }) => {
                if seen.elapsed() > AWAY {
                    return Err(error.into());
                }
            }
            Err(error) if is_passing(&error) && seen.elapsed() <= AWAY => {}
            Err(error) => return Err(error.into()),
        }
        show(&mut progress, &stage);
        let is_late = flags.timeout.is_some_and(|timeout| begun.elapsed() >= timeout);
        if stage.is_over() || is_late {
            progress.end();
            return Ok(stage);
        }
        if stage == Stage::Waiting && begun.elapsed() > IDLE && !has_warned {
            has_warned = true;
            crate::complain("nobody works on it yet; does storage-version-migrator-controller run?");
        }
        tokio::time::sleep(LOOKING).await;
    }
}

/// Whether a refusal may be none the next time.
fn is_passing(error: &ClusterError) -> bool {
    matches!(error.code(), Some(429 | 500 | 502 | 503 | 504))
}

/// The versions that the definition says objects are stored in, if it is one and tells.
async fn stored_versions(cluster: &Cluster, name: &str) -> Option<Vec<String>> {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    let definition: Object = cluster.get(&path).await.ok()?;
    let stored = definition.at(&["status", "storedVersions"]).and_then(Value::as_array)?;
    Some(stored.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
