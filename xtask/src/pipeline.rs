//! `cargo xtask test`: the steps of CI, in order, on this machine.
//!
//! CI has no steps of its own, so what passes here passes there. What one step checks lives in the module of that name.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::workspace::{self, Workspace};
use crate::{etcd, extension, fuzz, instructions, kubectl, python, tidy};

/// How many inputs the coverage-guided engine tries on each fuzz target.
const FUZZ_INPUTS: u32 = 20_000;

/// Runs every step, stops at the first that fails, and ends with a table of times.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut report = Report::default();
    let outcome = steps(workspace, &mut report);
    println!("\n{}", report.table());
    outcome
}

fn steps(workspace: &Workspace, report: &mut Report) -> Result<()> {
    let cargo = |arguments: &str| workspace.cargo(arguments.split(' '));

    report.step("format", || workspace::run(&mut cargo("fmt --all --check")))?;
    report.step("clippy", || workspace::run(&mut cargo("clippy --workspace --all-targets --quiet -- -D warnings")))?;
    report.step("tidy", || tidy::run(workspace))?;
    let kubectl = report.step("kubectl", || kubectl::provide(workspace))?;
    let oldest = report.step("oldest kubectl", || kubectl::provide_oldest(workspace))?;
    let etcd = report.step("etcd", || etcd::provide(workspace))?;
    let oldest_etcd = report.step("oldest etcd", || etcd::provide_oldest(workspace))?;
    let extension = report.step("sample API server", || extension::provide(workspace))?;
    let python = report.step("python client", || python::provide(workspace))?;
    let test = |arguments: &str| -> Command {
        let mut command = cargo(arguments);
        command.env(kubectl::VARIABLE, &kubectl).env(kubectl::OLDEST_VARIABLE, &oldest);
        command.env(etcd::VARIABLE, &etcd).env(etcd::OLDEST_VARIABLE, &oldest_etcd).env(python::VARIABLE, &python);
        command.env(extension::VARIABLE, &extension);
        command
    };
    // One build for all tests. It makes the `revisor` binary too, because whole-program tests belong to its package;
    // a build of the binary alone would choose other features and compile the dependencies a second time.
    report.step("build of the tests", || workspace::run(&mut test("test --workspace --no-run --quiet")))?;
    report.step("tests", || workspace::run(&mut test("test --workspace --no-fail-fast")))?;
    report.step("docs", || {
        // The metadata of the dependencies is there already: clippy left it.
        workspace::run(cargo("doc --workspace --no-deps --quiet").env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    report.step("fuzz smoke", || fuzz::smoke(workspace, FUZZ_INPUTS))?;
    report.step("instructions", || instructions::step(workspace))
}

/// The steps that ran, with their times, in order.
#[derive(Default)]
struct Report {
    rows: Vec<(&'static str, Duration, bool)>,
}

impl Report {
    fn step<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = work();
        self.rows.push((name, start.elapsed(), outcome.is_ok()));
        outcome.with_context(|| format!("step \"{name}\" failed"))
    }

    fn table(&self) -> String {
        let mut table = String::new();
        for (name, time, passed) in &self.rows {
            let verdict = if *passed { "ok" } else { "FAILED" };
            table.push_str(&format!("{name:<20} {:>8.1} s  {verdict}\n", time.as_secs_f64()));
        }
        let total: Duration = self.rows.iter().map(|row| row.1).sum();
        table.push_str(&format!("{:<20} {:>8.1} s", "total", total.as_secs_f64()));
        table
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_failed_step_is_named_and_ends_the_table() {
        let mut report = Report::default();
        report.step("format", || Ok(())).expect("the step passes");
        let error = report.step("clippy", || Err::<(), _>(anyhow!("exit status: 101"))).expect_err("the step fails");
        assert_eq!(format!("{error:#}"), "step \"clippy\" failed: exit status: 101");
        let table = report.table();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with("format") && lines[0].ends_with("ok"), "{table}");
        assert!(lines[1].starts_with("clippy") && lines[1].ends_with("FAILED"), "{table}");
        assert!(lines[2].starts_with("total"), "{table}");
    }
}
