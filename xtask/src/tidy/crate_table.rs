//! The code map: which crates exist, and which of them each may depend on.
//!
//! The table stands in ARCHITECTURE.md with the header `| crate | owns | may depend on |`. A crate is written in full
//! and in backticks; the third cell is a list, separated by commas, of crates whose `revisor-` may be left out, or `–`
//! for none, or `all`. Whoever may depend on X may also depend on what X may depend on.
//!
//! Dependencies of tests are free: they point upwards where a suite needs a whole server, and no user links them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{ARCHITECTURE, Finding, markdown};

/// The header by which the table is recognised.
const HEADER: [&str; 3] = ["crate", "owns", "may depend on"];

/// The crates of the workspace, each with the crates of the workspace that it depends on.
pub(super) type Members = BTreeMap<String, BTreeSet<String>>;

/// What a row allows.
enum Allowed {
    All,
    Only(BTreeSet<String>),
}

/// The members, out of `cargo metadata`.
pub(super) fn members(metadata: &Value) -> Result<Members> {
    let ids = metadata["workspace_members"].as_array().context("cargo metadata names no members")?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let members: Vec<&Value> = packages.iter().filter(|package| ids.contains(&package["id"])).collect();
    let name = |value: &Value| value["name"].as_str().map(String::from);
    let names: BTreeSet<String> = members.iter().filter_map(|package| name(package)).collect();
    let mut found = Members::new();
    for package in members {
        let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        let used = dependencies.iter().filter(|dependency| dependency["kind"] != "dev").filter_map(name);
        let used = used.filter(|dependency| names.contains(dependency)).collect();
        found.insert(name(package).context("a package has no name")?, used);
    }
    Ok(found)
}

/// Holds the members against the table.
pub(super) fn check(architecture: &str, members: &Members) -> Vec<Finding> {
    let tables = markdown::tables(architecture);
    let Some(table) = tables.iter().find(|table| is_code_map(&table.header)) else {
        return vec![Finding::new(ARCHITECTURE, format!("there is no table with the header {}", HEADER.join(" | ")))];
    };

    let mut findings = Vec::new();
    let mut rows = BTreeMap::new();
    for row in &table.rows {
        let name = row.cells.first().map(|cell| cell.trim_matches('`').to_owned()).unwrap_or_default();
        if !members.contains_key(&name) {
            findings.push(Finding::at(ARCHITECTURE, row.line, format!("there is no crate `{name}`")));
        }
        let allowed = allowed(row.cells.get(2).map(String::as_str).unwrap_or_default());
        if let Allowed::Only(names) = &allowed {
            for unknown in names.iter().filter(|name| !members.contains_key(*name)) {
                let message = format!("`{name}` may depend on `{unknown}`, which does not exist");
                findings.push(Finding::at(ARCHITECTURE, row.line, message));
            }
        }
        if rows.insert(name.clone(), allowed).is_some() {
            findings.push(Finding::at(ARCHITECTURE, row.line, format!("`{name}` has two rows")));
        }
    }

    for (name, used) in members {
        if !rows.contains_key(name) {
            findings.push(Finding::new(ARCHITECTURE, format!("crate `{name}` has no row in the code map")));
            continue;
        }
        let reachable = reachable(name, &rows, members);
        for dependency in used.difference(&reachable) {
            let message = format!("the code map does not let `{name}` depend on `{dependency}`");
            findings.push(Finding::new(format!("crate {name}"), message));
        }
    }
    findings
}

fn is_code_map(header: &[String]) -> bool {
    header.len() == HEADER.len() && header.iter().zip(HEADER).all(|(cell, want)| cell.eq_ignore_ascii_case(want))
}

fn allowed(cell: &str) -> Allowed {
    match cell.trim() {
        "" | "-" | "–" | "—" => Allowed::Only(BTreeSet::new()),
        "all" => Allowed::All,
        list => Allowed::Only(list.split(',').map(full_name).collect()),
    }
}

fn full_name(short: &str) -> String {
    let short = short.trim().trim_matches('`');
    if short == "revisor" || short == "xtask" || short.starts_with("revisor-") {
        short.to_owned()
    } else {
        format!("revisor-{short}")
    }
}

/// Everything that a crate may depend on, directly or through others. Ends because no name is visited twice.
fn reachable(name: &str, rows: &BTreeMap<String, Allowed>, members: &Members) -> BTreeSet<String> {
    let mut reachable = BTreeSet::new();
    let mut pending = vec![name.to_owned()];
    while let Some(next) = pending.pop() {
        match rows.get(&next) {
            Some(Allowed::All) => return members.keys().cloned().collect(),
            Some(Allowed::Only(names)) => {
                pending.extend(names.iter().filter(|name| reachable.insert((*name).clone())).cloned());
            }
            None => {}
        }
    }
    reachable
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MAP: &str = "
| crate | owns | may depend on |
|---|---|---|
| `revisor-version` | versions | – |
| `revisor-object` | objects | version |
| `revisor-store` | the store | `revisor-object` |
| `revisor` | the binary | all |
";

    fn members_of(arrows: &[(&str, &[&str])]) -> Members {
        arrows.iter().map(|(name, used)| (name.to_string(), used.iter().map(|u| u.to_string()).collect())).collect()
    }

    #[track_caller]
    fn check_messages(map: &str, arrows: &[(&str, &[&str])], want: &[&str]) {
        let found: Vec<String> = check(map, &members_of(arrows)).into_iter().map(|finding| finding.message).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn arrows_point_down_only() {
        let version = ("revisor-version", &[] as &[&str]);
        let object = ("revisor-object", &["revisor-version"] as &[&str]);
        let store = ("revisor-store", &["revisor-version", "revisor-object"] as &[&str]);
        let binary = ("revisor", &["revisor-store"] as &[&str]);
        check_messages(MAP, &[version, object, store, binary], &[]);
        check_messages(
            MAP,
            &[("revisor-version", &["revisor-object"]), object, store, binary],
            &["the code map does not let `revisor-version` depend on `revisor-object`"],
        );
    }

    #[test]
    fn table_and_workspace_name_the_same_crates() {
        let all: &[(&str, &[&str])] =
            &[("revisor-version", &[]), ("revisor-object", &[]), ("revisor-store", &[]), ("revisor", &[])];
        check_messages(MAP, &all[..3], &["there is no crate `revisor`"]);
        let mut more = all.to_vec();
        more.push(("revisor-new", &[]));
        check_messages(MAP, &more, &["crate `revisor-new` has no row in the code map"]);
        check_messages(
            &format!("{MAP}| `revisor-object` | again | nowhere |\n"),
            all,
            &[
                "`revisor-object` may depend on `revisor-nowhere`, which does not exist",
                "`revisor-object` has two rows",
            ],
        );
        check_messages("no table", all, &["there is no table with the header crate | owns | may depend on"]);
    }

    #[test]
    fn a_circle_in_the_table_ends() {
        let map = "| crate | owns | may depend on |\n|---|---|---|\n| `a` | | revisor-b |\n| `revisor-b` | | xtask |\n\
                   | `xtask` | | revisor-b |\n";
        check_messages(map, &[("a", &["xtask"]), ("revisor-b", &[]), ("xtask", &[])], &[]);
    }

    #[test]
    fn members_are_read_without_their_test_dependencies() {
        let metadata = json!({
            "workspace_members": ["id-a", "id-b"],
            "packages": [
                {"id": "id-a", "name": "a", "dependencies": [
                    {"name": "b", "kind": null}, {"name": "outside", "kind": null}]},
                {"id": "id-b", "name": "b", "dependencies": [{"name": "a", "kind": "dev"}]},
                {"id": "id-outside", "name": "outside", "dependencies": []},
            ],
        });
        assert_eq!(members(&metadata).expect("it is complete"), members_of(&[("a", &["b"]), ("b", &[])]));
        assert!(members(&json!({})).is_err());
    }
}
