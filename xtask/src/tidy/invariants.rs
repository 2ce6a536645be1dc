//! The numbered invariants: each names tests that exist, and code cites only invariants that exist.
//!
//! They stand in tables of ARCHITECTURE.md as rows ``| **S1** | text | `revisor_store::path::test_name` |``. The third
//! cell may name several tests, each in backticks. The first part of a path is the crate, in which a function of the
//! last part's name must exist. Code cites an invariant as "Upholds S1" or "invariant S1".

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{ARCHITECTURE, Finding, Source, markdown};

/// Words that announce the number of an invariant.
const CITATIONS: [&str; 3] = ["Upholds ", "invariant ", "invariants "];

/// Holds the table against the sources, both ways.
pub(super) fn check(architecture: &str, sources: &[Source]) -> Vec<Finding> {
    let functions = functions(sources);
    let mut findings = Vec::new();
    let mut numbers = BTreeMap::new();
    for row in markdown::tables(architecture).into_iter().flat_map(|table| table.rows) {
        let Some(number) = row.cells.first().and_then(|cell| number_in_bold(cell)) else { continue };
        if let Some(earlier) = numbers.insert(number.to_owned(), row.line) {
            findings.push(Finding::at(ARCHITECTURE, row.line, format!("{number} stands on line {earlier} already")));
        }
        let tests = row.cells.get(2).map(|cell| markdown::code_spans(cell)).unwrap_or_default();
        if tests.is_empty() {
            findings.push(Finding::at(ARCHITECTURE, row.line, format!("{number} names no test")));
        }
        for test in tests {
            if !exists(test, &functions) {
                findings.push(Finding::at(ARCHITECTURE, row.line, format!("{number}: there is no test `{test}`")));
            }
        }
    }
    if numbers.is_empty() {
        findings.push(Finding::new(ARCHITECTURE, "there is no table of invariants"));
        return findings;
    }

    for source in sources {
        for (index, line) in source.text.lines().enumerate().filter(|(_, line)| is_comment(line)) {
            for number in cited(line).into_iter().filter(|number| !numbers.contains_key(*number)) {
                let message = format!("{ARCHITECTURE} has no invariant {number}");
                findings.push(Finding::at(&source.path, index + 1, message));
            }
        }
    }
    findings
}

/// `S1` out of `**S1**`.
fn number_in_bold(cell: &str) -> Option<&str> {
    let number = cell.strip_prefix("**")?.strip_suffix("**")?;
    is_number(number).then_some(number)
}

/// A capital letter and digits.
fn is_number(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_uppercase()) && text.len() > 1 && chars.all(|c| c.is_ascii_digit())
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// The numbers that a line of comment cites: the first behind the announcing word, and those joined to it.
fn cited(line: &str) -> BTreeSet<&str> {
    let mut numbers = BTreeSet::new();
    for announcement in CITATIONS {
        for (at, _) in line.match_indices(announcement) {
            let rest = &line[at + announcement.len()..];
            let words = rest.split([' ', ',', '.', ';', ':', '(', ')']).filter(|word| !word.is_empty());
            numbers.extend(words.take_while(|word| is_number(word) || *word == "and").filter(|word| *word != "and"));
        }
    }
    numbers
}

/// The names of the functions of each crate, by the crate's name as paths write it.
fn functions(sources: &[Source]) -> HashMap<String, HashSet<&str>> {
    let mut functions: HashMap<String, HashSet<&str>> = HashMap::new();
    for source in sources {
        let Some(name) = crate_of(&source.path) else { continue };
        let names = functions.entry(name).or_default();
        for line in source.text.lines().filter(|line| !is_comment(line)) {
            // Also functions that a macro such as `proptest!` wraps begin with this word.
            let declared = line.split("fn ").skip(1).map(|rest| {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                &rest[..end]
            });
            names.extend(declared.filter(|name| !name.is_empty()));
        }
    }
    functions
}

/// `revisor_store` for `crates/revisor-store/src/lib.rs`.
fn crate_of(path: &str) -> Option<String> {
    let mut parts = path.split('/');
    let name = match parts.next()? {
        "crates" => parts.next()?,
        first => first,
    };
    Some(name.replace('-', "_"))
}

fn exists(test: &str, functions: &HashMap<String, HashSet<&str>>) -> bool {
    let (Some((name, _)), Some((_, function))) = (test.split_once("::"), test.rsplit_once("::")) else { return false };
    functions.get(name).is_some_and(|names| names.contains(function))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| number | invariant | test |\n|---|---|---|\n";

    #[track_caller]
    fn check_messages(rows: &str, code: &str, want: &[&str]) {
        let sources = [Source { path: "crates/revisor-store/src/lib.rs".into(), text: code.into() }];
        let findings = check(&format!("{HEAD}{rows}"), &sources);
        assert_eq!(findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>(), want);
    }

    #[test]
    fn an_invariant_names_tests_that_exist() {
        let code = "#[test]\nfn grows() {}\n    async fn survives<T>() {}\n// fn commented_out() {}\n";
        for (cell, want) in [
            ("`revisor_store::tests::grows`", vec![]),
            ("`revisor_store::tests::grows`, `revisor_store::survives`", vec![]),
            ("`revisor_store::tests::gro`", vec!["S1: there is no test `revisor_store::tests::gro`"]),
            ("`revisor_cache::tests::grows`", vec!["S1: there is no test `revisor_cache::tests::grows`"]),
            ("`revisor_store::commented_out`", vec!["S1: there is no test `revisor_store::commented_out`"]),
            ("`grows`", vec!["S1: there is no test `grows`"]),
            ("none yet", vec!["S1 names no test"]),
        ] {
            check_messages(&format!("| **S1** | text | {cell} |\n"), code, &want);
        }
    }

    #[test]
    fn numbers_are_unique_and_there_are_some() {
        let row = "| **S1** | text | `revisor_store::t` |\n";
        check_messages(&format!("{row}{row}"), "fn t() {}", &["S1 stands on line 3 already"]);
        check_messages("| S1 | not bold | `x` |\n", "", &["there is no table of invariants"]);
    }

    #[test]
    fn code_cites_invariants_that_exist() {
        let row = "| **S1** | text | `revisor_store::t` |\n";
        for (comment, want) in [
            ("// Upholds S1.", vec![]),
            ("// Upholds W2.", vec!["ARCHITECTURE.md has no invariant W2"]),
            ("/// Upholds S1 and W2: no gap.", vec!["ARCHITECTURE.md has no invariant W2"]),
            ("//! Pure (invariant P1): no I/O.", vec!["ARCHITECTURE.md has no invariant P1"]),
            ("// The invariant of this loop is that A1 is sorted.", vec![]),
            ("let text = \"Upholds W2\";", vec![]),
        ] {
            check_messages(row, &format!("fn t() {{}}\n{comment}\n"), &want);
        }
    }

    #[test]
    fn a_path_tells_the_crate() {
        for (path, want) in [
            ("crates/revisor-store/src/lib.rs", Some("revisor_store")),
            ("xtask/src/main.rs", Some("xtask")),
            ("crates", None),
        ] {
            assert_eq!(crate_of(path).as_deref(), want, "{path}");
        }
    }
}
