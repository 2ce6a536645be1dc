//! Licences of what is linked, and crates that are there in more than one version.
//!
//! The lists stand in deny.toml. `cargo deny` checks more (advisories, sources) but takes long to install; this check
//! needs nothing but Cargo and runs with every `cargo xtask test`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Finding, deny_file};

/// How deeply parentheses may nest in a licence expression.
const MAX_DEPTH: u32 = 16;

/// A package of the dependency tree.
#[derive(Debug)]
pub(super) struct Package {
    name: String,
    version: String,
    licence: Option<String>,
}

/// The packages, out of `cargo metadata`.
pub(super) fn packages(metadata: &Value) -> Result<Vec<Package>> {
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let text = |value: &Value| value.as_str().map(String::from);
    packages
        .iter()
        .map(|package| {
            Ok(Package {
                name: text(&package["name"]).context("a package has no name")?,
                version: text(&package["version"]).context("a package has no version")?,
                licence: text(&package["license"]),
            })
        })
        .collect()
}

/// Every package must be usable under licences of `[licenses] allow`.
pub(super) fn check_licences(deny: &str, packages: &[Package]) -> Vec<Finding> {
    let Some(allowed) = deny_file::strings(deny, "licenses", "allow") else {
        return vec![Finding::new(deny_file::NAME, "there is no list of allowed licences")];
    };
    let allowed: BTreeSet<&str> = allowed.iter().map(String::as_str).collect();
    let mut findings = Vec::new();
    for package in packages {
        let problem = match package.licence.as_deref() {
            None => "it names no licence".to_owned(),
            Some(licence) => match satisfies(licence, &allowed) {
                Some(true) => continue,
                Some(false) => format!("{} does not allow its licence, {licence}", deny_file::NAME),
                None => format!("its licence is not an SPDX expression: {licence}"),
            },
        };
        findings.push(Finding::new(format!("package {} {}", package.name, package.version), problem));
    }
    findings
}

/// Crates in more than one version: findings if `[bans] multiple-versions` is "deny", otherwise notes.
pub(super) fn check_versions(deny: &str, packages: &[Package]) -> (Vec<Finding>, Vec<String>) {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    let several = versions.iter().filter(|(_, versions)| versions.len() > 1);
    let several: Vec<String> = several
        .map(|(name, versions)| format!("{name} ({})", versions.iter().copied().collect::<Vec<_>>().join(", ")))
        .collect();
    if several.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let message = format!("in more than one version: {}", several.join(", "));
    match deny_file::strings(deny, "bans", "multiple-versions").as_deref() {
        Some([level]) if level == "deny" => (vec![Finding::new("Cargo.lock", message)], Vec::new()),
        _ => (Vec::new(), vec![message]),
    }
}

/// Whether an SPDX expression can be met with the allowed licences alone; nothing if it cannot be read.
fn satisfies(expression: &str, allowed: &BTreeSet<&str>) -> Option<bool> {
    // Before SPDX was required, crates wrote "MIT/Apache-2.0" for a choice.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    let verdict = parser.choice(0)?;
    parser.words.is_empty().then_some(verdict)
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a BTreeSet<&'a str>,
}

impl Parser<'_> {
    fn choice(&mut self, depth: u32) -> Option<bool> {
        let mut verdict = self.all(depth)?;
        while self.take("OR") {
            verdict |= self.all(depth)?;
        }
        Some(verdict)
    }

    fn all(&mut self, depth: u32) -> Option<bool> {
        let mut verdict = self.one(depth)?;
        while self.take("AND") {
            verdict &= self.one(depth)?;
        }
        Some(verdict)
    }

    fn one(&mut self, depth: u32) -> Option<bool> {
        if self.take("(") {
            if depth == MAX_DEPTH {
                return None;
            }
            let verdict = self.choice(depth + 1)?;
            return self.take(")").then_some(verdict);
        }
        let licence = self.word()?;
        if self.take("WITH") {
            let exception = self.word()?;
            return Some(self.allowed.contains(format!("{licence} WITH {exception}").as_str()));
        }
        // "MPL-2.0+" is "MPL-2.0 or later", so the licence itself is one of its choices.
        Some(self.allowed.contains(licence.as_str()) || self.allowed.contains(licence.trim_end_matches('+')))
    }

    /// The next word, if it can name a licence.
    fn word(&mut self) -> Option<String> {
        let (first, rest) = self.words.split_first()?;
        if matches!(*first, "AND" | "OR" | "WITH" | "(" | ")") {
            return None;
        }
        self.words = rest;
        Some((*first).to_owned())
    }

    fn take(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_are_weighed() {
        let allowed = BTreeSet::from(["MIT", "Apache-2.0", "ISC", "MPL-2.0", "Apache-2.0 WITH LLVM-exception"]);
        for (expression, want) in [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("MIT OR GPL-3.0", Some(true)),
            ("MIT AND GPL-3.0", Some(false)),
            ("MIT/GPL-3.0", Some(true)),
            ("MPL-2.0+", Some(true)),
            ("GPL-3.0 OR MIT AND ISC", Some(true)),
            ("(GPL-3.0 OR MIT) AND ISC", Some(true)),
            ("(GPL-3.0 OR MIT) AND NCSA", Some(false)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("MIT WITH LLVM-exception", Some(false)),
            ("ISC AND (Apache-2.0 OR ISC) AND (MIT OR (GPL-2.0 AND X))", Some(true)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT ISC", None),
            ("AND", None),
        ] {
            assert_eq!(satisfies(expression, &allowed), want, "{expression:?}");
        }
        assert_eq!(satisfies(&format!("{}MIT", "(".repeat(100_000)), &allowed), None, "nesting is bounded");
    }

    fn tree() -> Vec<Package> {
        packages(&json!({"packages": [
            {"name": "a", "version": "1.0.0", "license": "MIT"},
            {"name": "a", "version": "2.0.0", "license": "MIT"},
            {"name": "b", "version": "1.0.0", "license": null},
            {"name": "c", "version": "1.0.0", "license": "GPL-3.0"},
        ]}))
        .expect("it is complete")
    }

    #[test]
    fn packages_without_an_allowed_licence_are_named() {
        let findings = check_licences("[licenses]\nallow = [\"MIT\"]\n", &tree());
        let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["package b 1.0.0: it names no licence", "package c 1.0.0: deny.toml does not allow its licence, GPL-3.0"]
        );
        assert_eq!(check_licences("", &tree()).len(), 1, "a missing list is a finding itself");
    }

    #[test]
    fn a_second_version_is_a_note_or_a_finding() {
        let message = "in more than one version: a (1.0.0, 2.0.0)";
        let (findings, notes) = check_versions("[bans]\nmultiple-versions = \"warn\"\n", &tree());
        assert_eq!((findings.len(), notes), (0, vec![message.to_owned()]));
        let (findings, notes) = check_versions("[bans]\nmultiple-versions = \"deny\"\n", &tree());
        assert_eq!((findings, notes.len()), (vec![Finding::new("Cargo.lock", message)], 0));
    }
}
