//! `revisor gates` and `revisor storage-versions`: what a server with some flags would do, without one. And how such
//! reports are printed.

use revisor_catalog::{Catalog, Feature};
use revisor_version::FeatureStage;
use serde_json::{Value, json};

use crate::flags::{OutputFormat, ReportFlags};

/// The gates that stand for all others of a stage.
const OF_A_STAGE: [&str; 2] = ["AllAlpha", "AllBeta"];

/// Every gate of the release to behave as, and whether this server does anything about it.
pub(crate) fn gates(flags: &ReportFlags) -> anyhow::Result<String> {
    let gates = flags.compatibility.gates()?;
    let rows = gates.iter().map(|(name, gate, is_enabled)| {
        let stage = match gate.stage {
            FeatureStage::Ga => "GA",
            stage => stage.label(),
        };
        let has_effect = Feature::named(name).is_some() || OF_A_STAGE.contains(&name);
        vec![name.into(), stage.into(), gate.default.into(), gate.locked.into(), is_enabled.into(), has_effect.into()]
    });
    let names = ["name", "stage", "default", "locked", "enabled", "effect"];
    Ok(report(&names, rows.collect(), flags.output))
}

/// What the objects of every built-in resource are stored as.
pub(crate) fn storage_versions(flags: &ReportFlags) -> anyhow::Result<String> {
    let catalog = Catalog::build(&flags.compatibility.catalog_options()?)?;
    let rows = catalog.storage_versions().iter().map(|stored| {
        let resource = match stored.group {
            "" => stored.resource.to_owned(),
            group => format!("{group}/{}", stored.resource),
        };
        vec![resource.into(), stored.kind.into(), stored.api_version.as_str().into()]
    });
    Ok(report(&["resource", "kind", "storageVersion"], rows.collect(), flags.output))
}

/// Rows under these names, as a table or as JSON.
pub(crate) fn report(names: &[&str], rows: Vec<Vec<Value>>, output: OutputFormat) -> String {
    match output {
        OutputFormat::Json => {
            let rows = rows.into_iter().map(|row| names.iter().map(|name| (*name).to_owned()).zip(row).collect());
            let rows: Vec<serde_json::Map<String, Value>> = rows.collect();
            format!("{:#}\n", json!(rows))
        }
        OutputFormat::Text => {
            let heads = names.iter().map(|name| head(name)).collect();
            let rows = rows.iter().map(|row| row.iter().map(cell).collect());
            table(std::iter::once(heads).chain(rows).collect())
        }
    }
}

/// `storageVersion` as it stands above a column: `STORAGE VERSION`.
fn head(name: &str) -> String {
    let spaced = name.chars().map(|c| if c.is_uppercase() { format!(" {c}") } else { c.to_uppercase().to_string() });
    spaced.collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "<none>".to_owned(),
        Value::String(text) if text.is_empty() => "<none>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "<none>".to_owned(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Columns as wide as what is in them, with three spaces between them and none at the end of a line.
fn table(rows: Vec<Vec<String>>) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("   ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{Arguments, Command};

    fn run(line: &str) -> Result<String, String> {
        let arguments = std::iter::once("revisor").chain(line.split_whitespace());
        let arguments = Arguments::try_parse_from(arguments).map_err(|error| error.to_string())?;
        let printed = match arguments.command {
            Command::Gates(flags) => gates(&flags),
            Command::StorageVersions(flags) => storage_versions(&flags),
            _ => panic!("{line} prints no report"),
        };
        printed.map_err(|error| error.to_string())
    }

    #[test]
    fn reports_are_tables() {
        for (line, head, want) in [
            ("gates", "NAME STAGE DEFAULT LOCKED ENABLED EFFECT", "StorageVersionMigrator BETA false false false true"),
            ("gates", "NAME", "APIServerTracing GA true true true false"),
            ("gates", "NAME", "AllBeta BETA false false false true"),
            (
                "gates --emulation-version=1.34 --feature-gates=JobManagedBy=false",
                "NAME",
                "JobManagedBy BETA true false false true",
            ),
            ("gates --emulated-version=1.34", "NAME", "HPAConfigurableTolerance ALPHA false false false true"),
            ("storage-versions", "RESOURCE KIND STORAGE VERSION", "apps/deployments Deployment apps/v1"),
            ("storage-versions", "RESOURCE", "configmaps ConfigMap v1"),
            (
                "storage-versions --emulation-version=1.34",
                "RESOURCE",
                "storage.k8s.io/volumeattributesclasses VolumeAttributesClass storage.k8s.io/v1beta1",
            ),
            (
                "storage-versions --min-compatibility-version=1.33",
                "RESOURCE",
                "resource.k8s.io/deviceclasses DeviceClass resource.k8s.io/v1beta2",
            ),
        ] {
            let text = run(line).expect(line);
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words(text.lines().next().unwrap_or_default()).starts_with(head), "{line}:\n{text}");
            assert!(text.lines().any(|got| words(got) == want), "{want} is not what {line} prints:\n{text}");
            assert!(text.ends_with('\n') && text.lines().all(|line| line.trim_end() == line), "{text}");
        }
        let rows = [["A", "BB"], ["ccc", "d"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(rows.to_vec()), "A     BB\nccc   d\n");
    }

    #[test]
    fn reports_can_be_read_by_programs() {
        let read = |line: &str| -> Vec<Value> {
            serde_json::from_str(&run(line).expect(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
        };
        let rows = read("gates --output json --feature-gates=StorageVersionMigrator=true");
        let row = rows.iter().find(|row| row["name"] == "StorageVersionMigrator").expect("is there");
        let want = json!({
            "name": "StorageVersionMigrator", "stage": "BETA", "default": false, "locked": false, "enabled": true,
            "effect": true,
        });
        assert_eq!(*row, want);
        let rows = read("storage-versions -o json");
        let want = json!({"resource": "configmaps", "kind": "ConfigMap", "storageVersion": "v1"});
        assert!(rows.contains(&want), "{rows:?}");
    }

    #[test]
    fn flags_that_cannot_be_are_refused_with_a_sentence() {
        for (line, want) in [
            ("gates --emulation-version=1.20", "emulation version 1.20 is not between [1.33, 1.36]"),
            ("gates --feature-gates=NoSuchGate=true", "unrecognized feature gate: NoSuchGate"),
            ("gates --output=xml", "xml"),
            ("storage-versions --min-compatibility-version=1.40", "minCompatibilityVersion version 1.40"),
            ("storage-versions --data-dir=x", "--data-dir"),
        ] {
            let error = run(line).expect_err(line);
            assert!(error.contains(want), "{line}: {error}");
        }
    }
}
