//! `revisor conformance`: whether a cluster, of whatever server, does what is documented.
//!
//! So far it looks at resource versions. What is demanded of them is in `reading.rs`, `watching.rs` and `writing.rs`; here
//! resources are found and looked at, several side by side and within a time.

mod flags;
mod output;
mod position;
mod probe;
mod reading;
mod report;
mod watching;
mod writing;

use std::collections::{BTreeMap, HashSet};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use futures_util::StreamExt;
use revisor_object::Value;

use crate::cluster::{Cluster, ClusterError, Served, block_on};
use crate::crd::UNREADABLE;
use crate::serve::stop_signal;
pub(crate) use flags::ConformanceCommand;
use flags::ResourceVersionsFlags;
use position::Position;
use probe::{Listed, Probe};
use report::{Aspect, Findings, Report, ResourceReport};
use writing::Ground;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// Looks at a cluster, prints what was found, and says by the exit code whether all is as it should be.
pub(crate) fn run(command: &ConformanceCommand) -> ExitCode {
    let ConformanceCommand::ResourceVersions(flags) = command;
    let done = block_on(resource_versions(flags)).and_then(|report| report).and_then(|report| {
        if let Some(file) = &flags.junit {
            std::fs::write(file, output::junit(&report)).with_context(|| format!("cannot write {}", file.display()))?;
        }
        crate::print(&output::print(&report, flags.output))?;
        Ok(report)
    });
    match done {
        Ok(report) if report.has_faults() => ExitCode::FAILURE,
        Ok(report) if report.is_complete && report.has_passed() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(UNREADABLE),
        Err(error) => {
            crate::complain(&format!("revisor: {error:#}"));
            ExitCode::from(UNREADABLE)
        }
    }
}

async fn resource_versions(flags: &ResourceVersionsFlags) -> anyhow::Result<Report> {
    let begun = Instant::now();
    let cluster = Cluster::open(&flags.cluster)?;
    let (resources, left_out) = resources(&cluster, flags).await?;
    let release = cluster.get("/version").await.ok().and_then(|version| version.str("gitVersion").map(str::to_owned));
    let served_by = aggregated(&cluster).await;
    let mut report = Report {
        server: cluster.url().to_owned(),
        release: release.unwrap_or_default(),
        resources: Vec::new(),
        left_out,
        notes: Vec::new(),
        seconds: 0.0,
        is_complete: true,
    };
    // From here on the namespace is removed again, however this ends.
    let ground = match flags.write {
        true => Some(Ground::make(&cluster).await.context("cannot make a namespace to write to")?),
        false => None,
    };
    let stopped = {
        let looking = async {
            let service = |served: &Served| served_by.get(&served.api_version()).cloned();
            let examined = futures_util::stream::iter(&resources)
                .map(|served| examine(&cluster, served, service(served), flags, ground.as_ref()));
            let mut examined = examined.buffer_unordered(usize::from(flags.parallel));
            while let Some((resource, is_complete)) = examined.next().await {
                report.is_complete &= is_complete;
                report.resources.push(resource);
            }
        };
        tokio::select! {
            () = looking => None,
            () = tokio::time::sleep(flags.timeout) => Some(format!("the time ({:?}) is over", flags.timeout)),
            () = stop_signal()? => Some("it was stopped".to_owned()),
        }
    };
    if let Some(ground) = &ground {
        report.notes.extend(ground.remove(&cluster).await);
    }
    if let Some(why) = stopped {
        report.is_complete = false;
        let known: HashSet<String> = report.resources.iter().map(|known| known.name.clone()).collect();
        for served in resources.iter().filter(|served| !known.contains(&served.name())) {
            let mut unknown = ResourceReport::new(served, served_by.get(&served.api_version()).cloned());
            unknown.skip_rest(&why);
            report.resources.push(unknown);
        }
        report.notes.push(format!("not everything was looked at: {why}"));
    }
    let place = |name: &str| resources.iter().position(|served| served.name() == name);
    report.resources.sort_by_key(|resource| place(&resource.name));
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}

/// The resources to look at, each in the version that the cluster prefers, and what could not be asked for.
async fn resources(
    cluster: &Cluster,
    flags: &ResourceVersionsFlags,
) -> anyhow::Result<(Vec<Served>, Vec<(String, ClusterError)>)> {
    let found = cluster.discover().await.context("cannot ask which resources there are")?;
    let mut known = HashSet::new();
    let mut resources = found.served;
    resources.retain(|served| served.can("list") && known.insert(served.name()));
    if !flags.only.is_empty() {
        for wanted in &flags.only {
            if !resources.iter().any(|served| is_wanted(served, wanted)) {
                bail!("{} has no resource {wanted:?} that can be listed", cluster.url());
            }
        }
        resources.retain(|served| flags.only.iter().any(|wanted| is_wanted(served, wanted)));
    }
    Ok((resources, found.left_out))
}

/// Whether a resource is meant by its name, or by `*.` and its group.
fn is_wanted(served: &Served, wanted: &str) -> bool {
    match wanted.strip_prefix("*.") {
        Some(group) => served.group == group,
        None => served.name() == wanted,
    }
}

/// The services that serve aggregated versions (`apps/v1`), as far as one may know.
async fn aggregated(cluster: &Cluster) -> BTreeMap<String, String> {
    let mut services = BTreeMap::new();
    // Who may not know that is only told less.
    let _ = cluster
        .list(API_SERVICES, |registered| {
            let Some(spec) = registered.object("spec") else { return };
            let Some(service) = spec.object("service") else { return };
            let text = |name: &str| service.str(name).unwrap_or_default();
            let version = spec.str("version").unwrap_or_default();
            let api_version = match spec.get("group").and_then(Value::as_str).unwrap_or_default() {
                "" => version.to_owned(),
                group => format!("{group}/{version}"),
            };
            services.insert(api_version, format!("{}/{}", text("namespace"), text("name")));
        })
        .await;
    services
}

/// Looks at one resource. Answers also whether that came to its end.
async fn examine(
    cluster: &Cluster,
    served: &Served,
    served_by: Option<String>,
    flags: &ResourceVersionsFlags,
    ground: Option<&Ground>,
) -> (ResourceReport, bool) {
    let begun = Instant::now();
    let mut report = ResourceReport::new(served, served_by);
    let probe = Probe { cluster, served, namespace: None, max_objects: flags.max_objects };
    let done = examine_all(&probe, ground, &mut report).await;
    if let Err(error) = &done {
        report.skip_rest(error);
    }
    report.seconds = begun.elapsed().as_secs_f64();
    (report, done.is_ok())
}

async fn examine_all(
    probe: &Probe<'_>,
    ground: Option<&Ground>,
    report: &mut ResourceReport,
) -> Result<(), ClusterError> {
    let listed = match probe.list_all(&[]).await {
        Ok(listed) => listed,
        // What may not be listed here, or is served by somebody who is away, says nothing about versions.
        Err(error) if error.code().is_some() => {
            report.skip_rest(error);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    report.objects = listed.objects.len();
    if listed.version.is_empty() && !probe.served.can("watch") {
        report.skip_rest("it cannot be watched, and has no versions: its objects are made when they are asked for");
        return Ok(());
    }
    report.tell(Aspect::Form, reading::form(probe, &listed).verdict());
    let Ok(at) = Position::parse(&listed.version) else {
        report.skip_rest("the version of its list is none");
        return Ok(());
    };
    report.tell(Aspect::Order, reading::order(probe, &listed, at).await?.verdict());
    report.tell(Aspect::Get, reading::get(probe, &listed, at).await?.verdict());
    report.tell(Aspect::Match, reading::matching(probe, &listed, at).await?.verdict());
    report.tell(Aspect::Pages, reading::pages(probe, &listed).await?.verdict());
    let watched = async {
        match probe.served.can("watch") {
            true => tokio::try_join!(watching::watch(probe, at), watching::streamed_list(probe, &listed, at)),
            false => Ok(Default::default()),
        }
    };
    // What waits for the server waits side by side.
    let gone = gone(probe, &listed);
    let future = reading::future(probe, &listed, at);
    let ((watch, streamed), gone, future) = tokio::try_join!(watched, gone, future)?;
    if probe.served.can("watch") {
        report.tell(Aspect::Watch, watch.verdict());
        report.tell(Aspect::StreamedList, streamed.verdict());
    }
    report.tell(Aspect::Gone, gone.verdict());
    report.tell(Aspect::Future, future.verdict());
    if let Some(ground) = ground {
        let findings = match probe.served.namespaced && probe.served.can("watch") {
            true => writing::writes(&Probe { namespace: Some(&ground.namespace), ..*probe }, ground).await?,
            false => {
                let mut skipped = Findings::default();
                skipped.skip("only objects of namespaces are written");
                skipped
            }
        };
        report.tell(Aspect::Writes, findings.verdict());
    }
    report.skip_rest(if ground.is_none() { "nothing is written without --write" } else { "it cannot be watched" });
    Ok(())
}

/// How a list and a watch of the oldest version are answered.
async fn gone(probe: &Probe<'_>, listed: &Listed) -> Result<Findings, ClusterError> {
    let mut found = reading::gone(probe).await?;
    if probe.served.can("watch") {
        watching::gone(probe, listed, &mut found).await?;
    }
    Ok(found)
}
