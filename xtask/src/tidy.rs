//! `cargo xtask tidy`: rules that the compiler cannot check.
//!
//! | rule | module | source of truth |
//! |---|---|---|
//! | crates depend only downwards | `crate_table` | the code map in ARCHITECTURE.md |
//! | every invariant names a test, every citation an invariant | `invariants` | the invariants in ARCHITECTURE.md |
//! | what sources may not contain | `sources` | the tables of that module |
//! | paths of fields lead somewhere | `field_paths` | the catalog's table of fields |
//! | licences, and crates in two versions | `licences` | deny.toml |
//!
//! Each rule is a pure function from text to findings, so that its tests need neither a tree nor Cargo. This file reads
//! the tree and asks Cargo.

mod crate_table;
mod deny_file;
mod field_paths;
mod invariants;
mod licences;
mod markdown;
mod sources;

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace::{self, Workspace};

/// The document whose tables the code is held against.
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// One breach of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    /// A path, with a line number where there is one.
    place: String,
    message: String,
}

impl Finding {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }

    fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self::new(format!("{path}:{line}"), message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// A Rust file of the workspace.
#[derive(Debug)]
struct Source {
    /// Relative to the root, with forward slashes.
    path: String,
    text: String,
}

/// Checks every rule and reports all findings, not only the first.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let architecture = workspace.read(ARCHITECTURE)?;
    let deny = workspace.read(deny_file::NAME)?;
    let metadata = metadata(workspace)?;
    let sources = read_sources(workspace)?;

    let mut findings = Vec::new();
    findings.extend(crate_table::check(&architecture, &crate_table::members(&metadata)?));
    findings.extend(invariants::check(&architecture, &sources));
    findings.extend(sources::check(&sources));
    findings.extend(field_paths::check(&workspace.read(field_paths::TABLE)?, &sources));
    let packages = licences::packages(&metadata)?;
    findings.extend(licences::check_licences(&deny, &packages));
    let (duplicates, notes) = licences::check_versions(&deny, &packages);
    findings.extend(duplicates);

    for note in &notes {
        println!("note: {note}");
    }
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} breaches of the rules", findings.len());
    }
    println!("tidy: {} sources and {} packages keep the rules", sources.len(), packages.len());
    Ok(())
}

/// What Cargo knows of the workspace, for the platform of this machine: to ask for all platforms would download
/// crates that are never built.
fn metadata(workspace: &Workspace) -> Result<serde_json::Value> {
    let mut command = workspace.cargo(["metadata", "--format-version", "1", "--all-features", "--filter-platform"]);
    let text = workspace::capture(command.arg(workspace.host()?))?;
    serde_json::from_str(&text).context("cargo metadata does not answer in JSON")
}

fn read_sources(workspace: &Workspace) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for folder in ["crates", "xtask"] {
        walk(workspace.root(), &workspace.root().join(folder), &mut sources)?;
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

/// Collects Rust files; a link is not followed, so the walk ends.
fn walk(root: &Path, folder: &Path, sources: &mut Vec<Source>) -> Result<()> {
    let context = || format!("cannot read {}", folder.display());
    for entry in std::fs::read_dir(folder).with_context(context)? {
        let entry = entry.with_context(context)?;
        let kind = entry.file_type().with_context(context)?;
        let path = entry.path();
        let name = entry.file_name();
        if kind.is_dir() {
            if name != "target" && !name.to_string_lossy().starts_with('.') {
                walk(root, &path, sources)?;
            }
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let relative = path.strip_prefix(root).unwrap_or(&path);
            sources.push(Source { path: relative.to_string_lossy().replace('\\', "/"), text });
        }
    }
    Ok(())
}
