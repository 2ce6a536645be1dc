//! `revisor crd usage`: which fields of a custom resource are used, and by whom.
//!
//! A server with version reports knows; of any other cluster the objects are listed in each version that is served and
//! counted here. How that is drawn is a matter of [`FieldTree`].

mod field_tree;

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use revisor_catalog::{Definition, FieldTally};
use revisor_object::{Object, Value};

use self::field_tree::FieldTree;
use crate::cluster::{Cluster, ClusterError, ClusterFlags, block_on};
use crate::flags::OutputFormat;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const REPORTS: &str = "/apis/versioning.revisor.dev/v1alpha1/versionreports";

/// What is wanted to know.
#[derive(Debug, Args)]
pub(crate) struct UsageFlags {
    /// The name of the CustomResourceDefinition: widgets.example.com
    #[arg(value_name = "NAME")]
    name: String,

    /// Only of this version
    #[arg(long = "version", value_name = "VERSION")]
    version: Option<String>,

    /// How to print it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    output: OutputFormat,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Prints how fields are used.
pub(super) fn usage(flags: &UsageFlags) -> anyhow::Result<ExitCode> {
    let cluster = Cluster::open(&flags.cluster)?;
    let mut fields = block_on(fields(&cluster, &flags.name))??;
    if let Some(wanted) = &flags.version {
        let versions = fields.array_mut("versions").map(std::mem::take).unwrap_or_default();
        let names: Vec<String> = versions.iter().filter_map(|version| name_of(version).map(str::to_owned)).collect();
        let kept: Vec<Value> = versions.into_iter().filter(|version| name_of(version) == Some(wanted)).collect();
        if kept.is_empty() {
            bail!("{} has no version {wanted:?}, but {}", flags.name, names.join(", "));
        }
        fields.insert("versions", kept);
    }
    crate::print(&match flags.output {
        OutputFormat::Json => format!("{}\n", pretty(&Value::Object(fields))?),
        OutputFormat::Text => text(&flags.name, &fields)?,
    })?;
    Ok(ExitCode::SUCCESS)
}

fn name_of(version: &Value) -> Option<&str> {
    version.as_object().and_then(|version| version.str("name"))
}

fn pretty(value: &Value) -> anyhow::Result<String> {
    let value: serde_json::Value = serde_json::from_str(&value.to_json()).context("what was found out is no JSON")?;
    Ok(format!("{value:#}"))
}

/// How the fields of each version are used, by the word of the server or by counting.
async fn fields(cluster: &Cluster, name: &str) -> anyhow::Result<Object> {
    if name.is_empty() || name.contains(['/', '?', '#', '%']) {
        bail!("{name:?} is no name of a definition; widgets.example.com is one");
    }
    match cluster.get(&format!("{REPORTS}/{name}/fields")).await {
        Ok(fields) => return Ok(fields),
        // No such report, no reports at all, or none for those who may ask for the objects themselves.
        Err(error) if matches!(error.code(), Some(403 | 404)) => {}
        Err(error) => return Err(error.into()),
    }
    let definition = match cluster.get(&format!("{DEFINITIONS}/{name}")).await {
        Ok(definition) => definition,
        Err(error) if error.code() == Some(404) => bail!("{}: there is no definition {name:?}", cluster.url()),
        Err(error) => return Err(error.into()),
    };
    Ok(counted(cluster, name, &definition).await?)
}

/// How fields are used, counted here.
async fn counted(cluster: &Cluster, name: &str, definition: &Object) -> Result<Object, ClusterError> {
    let definition = Definition::read(definition);
    let (group, plural) = (&definition.group, &definition.accepted.plural);
    let mut versions = Vec::new();
    for version in definition.versions.iter().filter(|version| version.served) {
        let api_version = format!("{group}/{}", version.name);
        let mut tally = FieldTally::new(&api_version, &version.schema);
        let path = format!("/apis/{api_version}/{plural}");
        cluster.list(&path, |object| tally.count(&version.schema, &object)).await?;
        versions.push(Value::Object(tally.shown()));
    }
    let mut fields = Object::new();
    fields.object_mut("metadata").insert("name", name);
    fields.insert("versions", versions);
    Ok(fields)
}

fn text(name: &str, fields: &Object) -> anyhow::Result<String> {
    let mut text = format!("{name}\n");
    for version in fields.array("versions").iter().filter_map(Value::as_object) {
        let objects = version.get("objects").and_then(Value::as_i64).unwrap_or_default();
        let noun = if objects == 1 { "object" } else { "objects" };
        let name = version.str("name").unwrap_or_default();
        text.push_str(&format!("\n{name}: {objects} {noun}\n"));
        text.push_str(&FieldTree::read(version)?.to_string());
        if version.get("truncated") == Some(&Value::Bool(true)) {
            text.push_str("Objects keep more fields that no schema names than are shown.\n");
        }
    }
    Ok(text)
}
