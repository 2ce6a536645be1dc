//! What Rust sources may not contain, as tables of words. Holds invariants P1 and G1.
//!
//! The search is for text, not for meaning: rustfmt gives the sources one shape, and a rule that reads like grep can be
//! understood when it strikes. The words are assembled from halves here, so that this file passes its own rules.

use super::{Finding, Source};

/// A text that may not occur, and what to do instead.
struct Rule {
    text: &'static str,
    place: Place,
    comments: Comments,
    instead: &'static str,
}

/// Where a rule holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Everywhere,
    Tests,
    /// Tests on a real clock. On a paused one (`start_paused = true`) time is an input like any other.
    RealTimeTests,
    /// The code of the pure crates, without their tests.
    Pure,
}

/// Whether a rule strikes in comments too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comments {
    Count,
    Skip,
}

/// Crates without I/O, async, clock or randomness: invariant P1.
const PURE: [&str; 9] = [
    "revisor-version",
    "revisor-object",
    "revisor-schema",
    "revisor-cel",
    "revisor-merge",
    "revisor-convert",
    "revisor-admission",
    "revisor-check",
    "revisor-flowcontrol",
];

const fn rule(text: &'static str, place: Place, comments: Comments, instead: &'static str) -> Rule {
    Rule { text, place, comments, instead }
}

const PURITY: &str = "this crate is pure (P1): take it through a constructor or move the caller up";
const WAIT: &str = "a test waits for an event, with a deadline; it does not sleep";
const FINISH: &str = "finish it, or leave it out and say so in the documentation";

const RULES: &[Rule] = &[
    rule(concat!("#[", "ignore"), Place::Everywhere, Comments::Skip, "a test that does not run proves nothing"),
    rule(concat!("to", "do!"), Place::Everywhere, Comments::Skip, FINISH),
    rule(concat!("unimple", "mented!"), Place::Everywhere, Comments::Skip, FINISH),
    rule(concat!("TO", "DO"), Place::Everywhere, Comments::Count, FINISH),
    rule(concat!("FIX", "ME"), Place::Everywhere, Comments::Count, FINISH),
    rule(concat!("thread::", "sleep"), Place::Tests, Comments::Skip, WAIT),
    rule(concat!("time::", "sleep"), Place::RealTimeTests, Comments::Skip, WAIT),
    rule(concat!("sleep", "(Duration"), Place::RealTimeTests, Comments::Skip, WAIT),
    rule("std::fs", Place::Pure, Comments::Skip, PURITY),
    rule("std::net", Place::Pure, Comments::Skip, PURITY),
    rule("std::env", Place::Pure, Comments::Skip, PURITY),
    rule("std::process", Place::Pure, Comments::Skip, PURITY),
    rule("std::thread", Place::Pure, Comments::Skip, PURITY),
    rule("tokio", Place::Pure, Comments::Skip, PURITY),
    rule("async fn", Place::Pure, Comments::Skip, PURITY),
    rule("SystemTime::now", Place::Pure, Comments::Skip, PURITY),
    rule("Instant::now", Place::Pure, Comments::Skip, PURITY),
    rule("now_utc", Place::Pure, Comments::Skip, PURITY),
    rule("rand::", Place::Pure, Comments::Skip, PURITY),
    rule("getrandom", Place::Pure, Comments::Skip, PURITY),
    rule("new_v4", Place::Pure, Comments::Skip, PURITY),
];

/// Types that make a `static` a variable that the whole process shares. Tables that never change stay allowed.
const VARIABLES: [&str; 10] =
    ["Atomic", "ArcSwap", "Cell", "LazyCell", "LazyLock", "Mutex", "OnceCell", "OnceLock", "RefCell", "RwLock"];

/// Macros that declare such variables.
const VARIABLE_MACROS: [&str; 2] = [concat!("thread_", "local!"), concat!("lazy_", "static!")];

/// Names of files that hide what they own.
const NAMELESS: [&str; 4] = ["util.rs", "utils.rs", "helpers.rs", "misc.rs"];

/// Checks every file against every rule.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources.iter().flat_map(check_file).collect()
}

fn check_file(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !source.text.starts_with("//!") {
        findings.push(Finding::at(&source.path, 1, "the file does not open with `//!`: say what it owns"));
    }
    let name = source.path.rsplit('/').next().unwrap_or_default();
    if NAMELESS.contains(&name) {
        findings.push(Finding::new(&source.path, "name the file for the noun that it owns"));
    }

    let pure = PURE.iter().any(|name| source.path.starts_with(&format!("crates/{name}/src/")));
    let tests = test_lines(source);
    let mut paused = false;
    for (index, line) in source.text.lines().enumerate() {
        let comment = line.trim_start().starts_with("//");
        if line.trim_start().starts_with("#[") && line.contains("test") {
            paused = line.contains("start_paused = true");
        }
        // Fuzz targets are plain functions of their input, called by an engine; they have nobody to pass them a value.
        let is_target = source.path.starts_with("crates/revisor-fuzz/src/targets/");
        if !tests[index] && !comment && !is_target && is_global(line) {
            let message = "a process global (G1): build the value at start-up and pass it down";
            findings.push(Finding::at(&source.path, index + 1, message));
        }
        for rule in RULES {
            let applies = match rule.place {
                Place::Everywhere => true,
                Place::Tests => tests[index],
                Place::RealTimeTests => tests[index] && !paused,
                Place::Pure => pure && !tests[index],
            };
            if !applies || comment && rule.comments == Comments::Skip || !contains_word(line, rule.text) {
                continue;
            }
            let finding = Finding::at(&source.path, index + 1, format!("`{}`: {}", rule.text, rule.instead));
            // Two texts of one rule on a line are one breach.
            let told = |last: &Finding| last.place == finding.place && last.message.ends_with(rule.instead);
            if !findings.last().is_some_and(told) {
                findings.push(finding);
            }
        }
    }
    findings
}

/// For each line, whether it is code of tests: a file of tests, or a module behind `#[cfg(test)]`.
///
/// The module ends at the brace that stands under its first letter, which rustfmt guarantees.
fn test_lines(source: &Source) -> Vec<bool> {
    let lines: Vec<&str> = source.text.lines().collect();
    if is_test_file(&source.path) {
        return vec![true; lines.len()];
    }
    let mut marks = vec![false; lines.len()];
    let mut at = 0;
    while at < lines.len() {
        let indent = lines[at].len() - lines[at].trim_start().len();
        let opens = lines[at].trim() == "#[cfg(test)]"
            && lines.get(at + 1).is_some_and(|next| next.trim_start().starts_with("mod ") && next.ends_with('{'));
        if opens {
            let close = format!("{}}}", " ".repeat(indent));
            let end = (at..lines.len()).find(|&line| lines[line] == close).unwrap_or(lines.len() - 1);
            marks[at..=end].fill(true);
            at = end;
        }
        at += 1;
    }
    marks
}

/// Files that hold nothing but tests, the contract suite of the store among them.
fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "contract" | "contract.rs" | "contract_suite.rs"))
}

/// Whether the line declares state that the whole process shares.
fn is_global(line: &str) -> bool {
    let line = line.trim_start();
    let declared = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ').map_or("", |(_, declared)| declared),
        None => line,
    };
    let Some((name, kind)) = declared.strip_prefix("static ").and_then(|rest| rest.split_once(':')) else {
        return VARIABLE_MACROS.iter().any(|text| contains_word(line, text));
    };
    // Atomics have many names with one beginning; the others are whole words.
    name.starts_with("mut ") || VARIABLES.iter().any(|text| contains_word(kind, text)) || kind.contains(VARIABLES[0])
}

/// Whether the text occurs and does not continue as an identifier on either side.
fn contains_word(line: &str, text: &str) -> bool {
    let identifier = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(text).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + text.len()..].chars().next();
        let starts = !(text.starts_with(identifier) && before.is_some_and(identifier));
        let ends = !(text.ends_with(identifier) && after.is_some_and(identifier));
        starts && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_lines(path: &str, text: &str, want: &[usize]) {
        let findings = check_file(&Source { path: path.into(), text: text.into() });
        let lines: Vec<usize> = findings
            .iter()
            .map(|finding| finding.place.rsplit(':').next().and_then(|line| line.parse().ok()).unwrap_or(0))
            .collect();
        assert_eq!(lines, want, "{path}: {findings:?}");
    }

    #[test]
    fn every_file_says_what_it_owns() {
        check_lines("crates/a/src/lib.rs", "//! Owns a.\n", &[]);
        check_lines("crates/a/src/lib.rs", "mod a;\n", &[1]);
        check_lines("crates/a/src/lib.rs", "", &[1]);
        check_lines("crates/a/src/util.rs", "//! Owns things.\n", &[0]);
    }

    #[test]
    fn unfinished_work_is_found() {
        for (line, want) in [
            (concat!("    to", "do!()"), 1),
            (concat!("unimple", "mented!(\"later\")"), 1),
            (concat!("// TO", "DO: later"), 1),
            (concat!("let x = 1; // FIX", "ME"), 1),
            (concat!("#[", "ignore]"), 1),
            (concat!("#[", "ignore = \"slow\"]"), 1),
            (concat!("/// Not even `#[", "ignore]` helps."), 0),
            (concat!("let MY_TO", "DO_LIST = 1;"), 0),
        ] {
            let text = format!("//! A.\n{line}\n");
            check_lines("crates/a/src/lib.rs", &text, &vec![2; want]);
        }
    }

    #[test]
    fn only_tests_must_not_sleep() {
        let nap = concat!("std::thread::", "sleep(x);");
        check_lines("crates/a/src/lib.rs", &format!("//! A.\n{nap}\n"), &[]);
        check_lines("crates/a/tests/it/main.rs", &format!("//! A.\n{nap}\n"), &[2]);
        check_lines("crates/a/src/foo/tests.rs", &format!("//! A.\n{nap}\n"), &[2]);
        check_lines("crates/a/src/contract/watch.rs", &format!("//! A.\n{nap}\n"), &[2]);
        let text = format!("//! A.\n#[cfg(test)]\nmod tests {{\n    {nap}\n}}\n\nfn f() {{ {nap} }}\n");
        check_lines("crates/a/src/lib.rs", &text, &[4]);
        let text = format!("//! A.\n#[cfg(test)]\nmod tests;\n\nfn f() {{ {nap} }}\n");
        check_lines("crates/a/src/lib.rs", &text, &[]);
        check_lines("crates/a/tests/a.rs", concat!("//! A.\ntokio::time::", "sleep(x).await;\n"), &[2]);
        check_lines("crates/a/tests/a.rs", concat!("//! A.\nsleep", "(Duration::ZERO).await;\n"), &[2]);
        check_lines("crates/a/tests/a.rs", concat!("//! A.\ntime::", "sleep", "(Duration::ZERO).await;\n"), &[2]);
    }

    #[test]
    fn a_test_may_pass_time_that_is_paused() {
        let nap = concat!("tokio::time::", "sleep(x).await;");
        for (attribute, want) in [
            ("#[tokio::test(start_paused = true)]", vec![]),
            ("#[tokio::test]", vec![4]),
            ("#[tokio::test(start_paused = true)]\nasync fn other() {}\n#[tokio::test]", vec![6]),
        ] {
            let text = format!("//! A.\n{attribute}\nasync fn f() {{\n{nap}\n}}\n");
            check_lines("crates/a/tests/a.rs", &text, &want);
        }
        let nap = concat!("std::thread::", "sleep(x);");
        let text = format!("//! A.\n#[tokio::test(start_paused = true)]\nasync fn f() {{\n{nap}\n}}\n");
        check_lines("crates/a/tests/a.rs", &text, &[4]);
    }

    #[test]
    fn globals_are_found() {
        for (line, want) in [
            ("static COUNT: AtomicU64 = AtomicU64::new(0);", 1),
            ("pub static GATES: OnceLock<Gates> = OnceLock::new();", 1),
            ("pub(crate) static CACHE: std::sync::Mutex<Vec<u8>> = Mutex::new(Vec::new());", 1),
            ("    static TABLE: LazyLock<Table> = LazyLock::new(Table::new);", 1),
            ("static mut COUNT: u64 = 0;", 1),
            (concat!("thread_", "local! {"), 1),
            ("static ROWS: &[Row] = &[];", 0),
            ("pub const EMPTY: Mutex<()> = Mutex::new(());", 0),
            ("let name: &'static str = cell(Mutex::new(0));", 0),
            ("// static COUNT: AtomicU64 = AtomicU64::new(0);", 0),
        ] {
            check_lines("crates/a/src/lib.rs", &format!("//! A.\n{line}\n"), &vec![2; want]);
            check_lines("crates/a/tests/it/main.rs", &format!("//! A.\n{line}\n"), &[]);
        }
    }

    #[test]
    fn pure_crates_reach_for_nothing_outside() {
        for line in [
            "use std::fs::File;",
            "use std::net::IpAddr;",
            "let now = SystemTime::now();",
            "let now = std::time::Instant::now();",
            "tokio::spawn(f);",
            "pub async fn f() {}",
            "let x = rand::random();",
        ] {
            let text = format!("//! A.\n{line}\n");
            check_lines("crates/revisor-cel/src/lib.rs", &text, &[2]);
            check_lines("crates/revisor-store/src/lib.rs", &text, &[]);
            check_lines("crates/revisor-cel/build.rs", &text, &[]);
            check_lines("crates/revisor-cel/src/tests.rs", &text, &[]);
        }
        check_lines("crates/revisor-cel/src/lib.rs", "//! A.\nlet operand::X = strand::y();\n", &[]);
    }
}
