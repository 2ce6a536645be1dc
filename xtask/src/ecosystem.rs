//! `cargo xtask ecosystem`: what people use already, run against the program as it is. It takes minutes, and whatever has to
//! be fetched and built, so it is no part of `cargo xtask test`.
//!
//! | suite | is | comes from | module |
//! |---|---|---|---|
//! | `envtest` | what operators' suites do with envtest, and how long its start takes | `tests/envtest` | `go_suites` |
//! | `controller-runtime` | controller-runtime's own suites | its Go module | `go_suites` |
//! | `python` | the end-to-end tests of the Python client | its package | `script_suites` |
//! | `javascript` | the JavaScript client, used as its users do | `tests/javascript` | `script_suites` |
//! | `kwok` | nodes and pods that kwok plays | its Go module | `kwok` |
//! | `helm` | Helm, with a chart that has definitions and hooks | `tests/helm` | `helm` |

mod go_suites;
mod helm;
mod kwok;
mod script_suites;
mod server;
mod steps;
mod tally;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use self::tally::Tally;
use crate::workspace::{self, Workspace};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only these suites; all of them if none is named
    #[arg(value_enum, value_name = "SUITE")]
    suites: Vec<Suite>,
    /// A folder with a genuine kube-apiserver and etcd: suites that start their own control plane are run on that one too,
    /// for its results and times
    #[arg(long, value_name = "FOLDER")]
    original: Option<PathBuf>,
    /// The program to run them against [default: it is built from these sources, as users get it]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    Envtest,
    ControllerRuntime,
    Python,
    Javascript,
    Kwok,
    Helm,
}

impl Suite {
    /// Whether it starts a control plane by itself, from the folder that `KUBEBUILDER_ASSETS` names.
    fn brings_its_control_plane(self) -> bool {
        matches!(self, Suite::Envtest | Suite::ControllerRuntime)
    }

    fn run(self, ground: &Ground<'_>, assets: &Path) -> Result<Tally> {
        match self {
            Suite::Envtest => go_suites::envtest(ground, assets),
            Suite::ControllerRuntime => go_suites::controller_runtime(ground, assets),
            Suite::Python => script_suites::python(ground),
            Suite::Javascript => script_suites::javascript(ground),
            Suite::Kwok => kwok::run(ground),
            Suite::Helm => helm::run(ground),
        }
    }
}

/// What all suites stand on.
struct Ground<'a> {
    workspace: &'a Workspace,
    program: PathBuf,
    /// Where suites are put that cannot run where they were fetched to, and what they leave behind.
    folder: PathBuf,
}

/// Builds the program if none is named, runs the suites one after the other, and ends with a table of their results.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let program = match &options.program {
        Some(program) => std::path::absolute(program).context("the program has no path")?,
        None => {
            workspace::run(&mut workspace.cargo(["build", "--release", "--quiet", "--package", "revisor"]))?;
            workspace.target().join("release").join("revisor")
        }
    };
    let ground = Ground { workspace, program, folder: workspace.target().join("ecosystem") };
    let assets = ground.folder.join("envtest");
    workspace::run(Command::new(&ground.program).args(["envtest", "install"]).arg(&assets))?;

    let mut report = Report::default();
    let all = Suite::value_variants();
    for &suite in if options.suites.is_empty() { all } else { &options.suites } {
        report.run(suite, "revisor", || suite.run(&ground, &assets));
        if let Some(original) = options.original.as_deref().filter(|_| suite.brings_its_control_plane()) {
            report.run(suite, "the original", || suite.run(&ground, original));
        }
    }
    println!("\n{}", report.table());
    // What the original fails at is no fault of this program.
    match report.rows.iter().any(|row| row.server == "revisor" && !row.is_good()) {
        true => bail!("not everything is as it should be"),
        false => Ok(()),
    }
}

/// The suites that ran, in order.
#[derive(Default)]
struct Report {
    rows: Vec<Row>,
}

struct Row {
    suite: Suite,
    server: &'static str,
    outcome: Result<Tally>,
}

impl Row {
    fn is_good(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|tally| tally.failed == 0 && tally.passed > 0)
    }
}

impl Report {
    fn run(&mut self, suite: Suite, server: &'static str, work: impl FnOnce() -> Result<Tally>) {
        println!("\n== {} on {server}", name(suite));
        let outcome = work();
        if let Err(error) = &outcome {
            eprintln!("error: {error:#}");
        }
        self.rows.push(Row { suite, server, outcome });
    }

    /// In Markdown, as the README has it.
    fn table(&self) -> String {
        let mut table =
            "| suite | server | passed | failed | skipped | seconds |\n|---|---|--:|--:|--:|--:|\n".to_owned();
        for Row { suite, server, outcome } in &self.rows {
            let figures = match outcome {
                Ok(Tally { passed, failed, skipped, time }) => {
                    format!("{passed} | {failed} | {skipped} | {:.1}", time.as_secs_f64())
                }
                Err(error) => format!("{error:#} | | |"),
            };
            table.push_str(&format!("| {} | {server} | {figures} |\n", name(*suite)));
        }
        table
    }
}

/// The suite as it is named on the command line.
fn name(suite: Suite) -> String {
    suite.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_suite_that_ran_nothing_or_failed_is_not_good() {
        let mut report = Report::default();
        let tally = |passed, failed| Tally { passed, failed, skipped: 2, time: Duration::from_millis(1200) };
        report.run(Suite::Helm, "revisor", || Ok(tally(3, 0)));
        report.run(Suite::Javascript, "revisor", || Ok(tally(3, 1)));
        report.run(Suite::Kwok, "revisor", || Ok(tally(0, 0)));
        report.run(Suite::Python, "revisor", || Err(anyhow!("no python3")));
        assert_eq!(report.rows.iter().map(Row::is_good).collect::<Vec<_>>(), [true, false, false, false]);
        let table = report.table();
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(rows[0], "| helm | revisor | 3 | 0 | 2 | 1.2 |");
        assert_eq!(rows[3], "| python | revisor | no python3 | | | |");
    }
}
