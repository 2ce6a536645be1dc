//! `revisor crd check`: what a change of definitions breaks, and for whom.

mod field_lines;
mod git;
mod live;
mod output;
mod sources;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use revisor_catalog::Catalog;
use revisor_check::{Declared, Effort, Report, declared, to_v1};
use revisor_convert::Conversion;
use revisor_object::{Object, Value};

use super::files::Origin;
use super::{Located, Pair};
use crate::cluster::{Cluster, ClusterFlags};
use sources::Source;

/// What is compared, and how it is told.
#[derive(Debug, Args)]
pub(crate) struct CheckFlags {
    /// The definitions as they were, or what the cluster has if only one source is given, and as they are to be
    #[arg(value_names = ["OLD", "NEW"], num_args = 1..=2, required = true)]
    sources: Vec<String>,

    /// The file or folder with Conversions: what they carry over is not broken
    #[arg(long, value_name = "FILE")]
    conversion: Option<String>,

    /// Hold the objects that the cluster has against the definitions too
    #[arg(long)]
    live: bool,

    /// How to print it: for people, for programs, or as annotations of a workflow on GitHub
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    output: CheckFormat,

    #[command(flatten)]
    cluster: ClusterFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum CheckFormat {
    Text,
    Json,
    Github,
}

/// What was found out about one definition.
struct Checked {
    name: String,
    report: Report,
    /// The step that its annotations declare.
    declared: Option<Declared>,
    /// Where it stands, for those who want to go there.
    file: String,
    line: usize,
    origin: Origin,
    /// The names of its versions, in order.
    versions: Vec<String>,
    /// What else there is to say.
    notes: Vec<String>,
}

impl Checked {
    fn new(report: Report, found: &Located) -> Checked {
        let file = found.file.display().to_string();
        let (name, line, origin) = (found.name().to_owned(), found.line, found.origin.clone());
        let versions = found.object.object("spec").map(|spec| spec.array("versions")).unwrap_or_default();
        let version_name =
            |version: &Value| version.as_object().and_then(|version| version.str("name")).map(str::to_owned);
        let versions = versions.iter().map(|version| version_name(version).unwrap_or_default()).collect();
        Checked { name, report, declared: None, file, line, origin, versions, notes: Vec::new() }
    }

    /// What is wrong with the step that is declared.
    fn complaint(&self) -> Option<String> {
        let step = self.report.step();
        self.declared.as_ref().filter(|declared| !declared.suffices(step)).map(|declared| declared.complaint(step))
    }

    /// Whether this is no way to go on.
    fn is_bad(&self) -> bool {
        match &self.declared {
            Some(declared) => !declared.suffices(self.report.step()),
            None => self.report.breaks(),
        }
    }
}

/// Compares what the flags name.
pub(super) fn check(flags: &CheckFlags) -> anyhow::Result<ExitCode> {
    let catalog = Catalog::default();
    let (old, new) = match flags.sources.as_slice() {
        [old, new] => (Some(old), new),
        [new, ..] => (None, new),
        [] => bail!("there is nothing to compare"),
    };
    let (new, unfinished) = definitions(Source::parse(new), true, &catalog)?;
    let needs_cluster = old.is_none() || flags.live;
    let cluster = needs_cluster.then(|| Cluster::open(&flags.cluster)).transpose();
    let cluster = cluster.context(if old.is_none() {
        "only one source was given, so that it is compared with what the cluster has"
    } else {
        "--live looks at the objects of a cluster"
    })?;
    let names: Vec<&str> = new.keys().map(String::as_str).collect();
    let (old, is_cluster) = match (old, &cluster) {
        (Some(old), _) => (definitions(Source::parse(old), false, &catalog)?.0, false),
        (None, Some(cluster)) => (keyed(sources::of_cluster(cluster, &names)?)?, true),
        (None, None) => bail!("there is no cluster"),
    };
    let rules = conversions(flags.conversion.as_deref(), &new, &catalog)?;
    let mut checked = compare(&old, &new, is_cluster, &rules, &catalog)?;
    for found in &mut checked {
        found.notes.extend(unfinished.get(&found.name).into_iter().flatten().cloned());
    }
    if let Some(cluster) = cluster.as_ref().filter(|_| flags.live) {
        live::check(cluster, &new, &rules, &catalog, &mut checked)?;
    }
    crate::print(&output::text(&checked, flags.output))?;
    if flags.output == CheckFormat::Json {
        for found in &checked {
            found.complaint().into_iter().for_each(|told| crate::complain(&format!("{}: {told}", found.name)));
        }
    }
    Ok(if checked.iter().any(Checked::is_bad) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Definitions by their names.
type Definitions = BTreeMap<String, Located>;

/// What those who install a definition still have to put in, by its name.
type Unfinished = BTreeMap<String, Vec<String>>;

/// The definitions of a source. What is to be is checked as a server would; but how objects are converted, and where the
/// webhook for that is, is often only put in when a definition is installed, and nothing depends on it here.
fn definitions(source: Source, is_to_be: bool, catalog: &Catalog) -> anyhow::Result<(Definitions, Unfinished)> {
    let found = source.objects()?.into_iter().filter(Located::is_definition).collect::<Vec<_>>();
    if found.is_empty() {
        bail!("{source}: there is no CustomResourceDefinition in it");
    }
    let (mut problems, mut unfinished) = (Vec::new(), Unfinished::new());
    for found in &found {
        if let Err(error) = catalog.comparable(&found.object) {
            problems.push(format!("{}: {error}", found.place));
        } else if is_to_be {
            let (later, now): (Vec<String>, Vec<String>) =
                invalid(&found.object, catalog).into_iter().partition(|told| told.starts_with("spec.conversion"));
            problems.extend(now.into_iter().map(|told| format!("{}: {told}", found.place)));
            let notes = later.into_iter().map(|told| format!("a server would not take it as it is: {told}"));
            unfinished.entry(found.name().to_owned()).or_default().extend(notes);
        }
    }
    if !problems.is_empty() {
        bail!("these definitions cannot be compared before they are mended:\n  {}", problems.join("\n  "));
    }
    Ok((keyed(found)?, unfinished))
}

fn keyed(found: Vec<Located>) -> anyhow::Result<Definitions> {
    let mut known = Definitions::new();
    for found in found {
        if let Some(other) = known.get(found.name()) {
            bail!("{} and {} define the same: {}", other.place, found.place, found.name());
        }
        known.insert(found.name().to_owned(), found);
    }
    Ok(known)
}

/// What a server would say of a definition that it does not take.
fn invalid(definition: &Object, catalog: &Catalog) -> Vec<String> {
    let resource = catalog.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let Some(resource) = resource else { return Vec::new() };
    // Of older ones more was let pass than may be written today.
    if definition.str("apiVersion") != Some("apiextensions.k8s.io/v1") {
        return Vec::new();
    }
    let mut value = Value::Object(definition.clone());
    if let Err(error) = resource.conform(&mut value) {
        return vec![error];
    }
    let Value::Object(mut object) = value else { return Vec::new() };
    resource.default(&mut object);
    resource.strategy.validate(&object).iter().map(ToString::to_string).collect()
}

/// The rules of each definition.
type Rules = BTreeMap<String, Arc<Conversion>>;

fn conversions(source: Option<&str>, new: &Definitions, catalog: &Catalog) -> anyhow::Result<Rules> {
    let Some(source) = source else { return Ok(Rules::new()) };
    let source = Source::parse(source);
    let mut rules = Rules::new();
    for found in source.objects()?.into_iter().filter(Located::is_conversion) {
        let Some(definition) = new.get(found.name()) else {
            let names: Vec<&str> = new.keys().map(String::as_str).collect();
            bail!(
                "{}: the Conversion {:?} has no definition in NEW: it must be named like one of them: {}",
                found.place,
                found.name(),
                names.join(", ")
            );
        };
        let definition = catalog.convertible(&to_v1(definition.object.clone()));
        let definition = Arc::new(definition.with_context(|| found.place.clone())?);
        let (name, place) = (found.name().to_owned(), found.place.clone());
        let compiled = Pair { definition, conversion: found.object }.compile().map_err(|errors| {
            let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("{place}: the Conversion cannot be carried out:\n  {}", told.join("\n  "))
        })?;
        rules.insert(name, Arc::new(compiled));
    }
    if rules.is_empty() {
        bail!("{source}: there is no Conversion of versioning.revisor.dev in it");
    }
    Ok(rules)
}

fn compare(
    old: &Definitions,
    new: &Definitions,
    is_cluster: bool,
    rules: &Rules,
    catalog: &Catalog,
) -> anyhow::Result<Vec<Checked>> {
    let comparable = |found: &Located| catalog.comparable(&found.object).with_context(|| found.place.clone());
    // One definition on either side is the same one, whatever it is called.
    let renamed = match (old.values().next(), new.values().next()) {
        (Some(one), Some(other)) if old.len() == 1 && new.len() == 1 && one.name() != other.name() => {
            Some((one, other))
        }
        _ => None,
    };
    let mut checked = Vec::new();
    for found in new.values() {
        let before = old.get(found.name()).or(renamed.map(|(before, _)| before));
        let after = comparable(found)?;
        let Some(before) = before else {
            checked.push(Checked::new(after.appears(), found));
            continue;
        };
        let rules = rules.get(found.name());
        let report = comparable(before)?.compare(&after, rules.map(|rules| &**rules), Effort::default());
        let declared = declared(&before.object, &found.object).with_context(|| found.place.clone())?;
        checked.push(Checked { declared, ..Checked::new(report, found) });
    }
    // Of what else a cluster has, nothing is said.
    if !is_cluster && renamed.is_none() {
        for found in old.values().filter(|found| !new.contains_key(found.name())) {
            checked.push(Checked::new(comparable(found)?.vanishes(), found));
        }
    }
    Ok(checked)
}
