//! `cargo xtask bench --instructions` and `cargo xtask profile`: what operations cost, counted by callgrind.
//!
//! The script of requests and the table of what they took are those of `revisor-bench`. Here is how the server is built
//! for it, and how a profile is shown.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{self, Workspace};

/// The flag of the bench by which it counts.
pub(crate) const FLAG: &str = "--instructions";

/// The flag of this task by which users' instructions are counted instead of those of the tests' build.
const OPTIMISED: &str = "--optimised";

/// What operations took before.
const TABLE: &str = "crates/revisor-bench/tables/instructions.csv";

/// How many functions a profile shows by what they do themselves, and by what is done for them.
const FUNCTIONS: usize = 40;

/// Counts the instructions of every operation, with further arguments of the bench. What is counted is the build that
/// the tests have made anyway, because that costs nothing more, and is held against the table; with `--optimised` it is
/// one that takes its time and tells what users get.
pub(crate) fn count(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let others: Vec<&String> =
        arguments.iter().filter(|argument| ![FLAG, OPTIMISED].contains(&argument.as_str())).collect();
    if arguments.iter().any(|argument| argument == OPTIMISED) {
        return workspace::run(bench(workspace, &build(workspace)?).args(others));
    }
    workspace::run(&mut workspace.cargo(["test", "--workspace", "--no-run", "--quiet"]))?;
    workspace::run(
        bench(workspace, &workspace.target().join("debug"))
            .arg("--table")
            .arg(workspace.root().join(TABLE))
            .args(others),
    )
}

/// Shows which functions an operation spends its instructions in.
pub(crate) fn profile(workspace: &Workspace, operation: &str) -> Result<()> {
    let profile = workspace.target().join(format!("callgrind.{operation}"));
    let mut bench = bench(workspace, &build(workspace)?);
    workspace::run(bench.args(["--only", operation]).arg("--profile").arg(&profile))?;
    for (title, inclusive) in [("by themselves", "no"), ("with what they call", "yes")] {
        println!("\n== functions, {title}");
        let mut annotate = Command::new("callgrind_annotate");
        annotate.arg(format!("--inclusive={inclusive}")).args(["--auto=no", "--threshold=100"]).arg(&profile);
        let text = workspace::capture(&mut annotate)?;
        text.lines().filter(|line| line.contains('%')).take(FUNCTIONS).for_each(|line| println!("{}", shortened(line)));
    }
    println!("\nkept in {}", profile.display());
    Ok(())
}

/// A line without the file that nobody knows, the object, and the generic arguments that fill screens.
fn shortened(line: &str) -> String {
    const WIDTH: usize = 160;
    let line = line.split(" [/").next().unwrap_or(line).replace("???:", "");
    line.chars().take(WIDTH).collect()
}

/// Builds the server and the bench optimised, but not across crates, which takes a third of the time and tells the same of
/// a change.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    eprintln!("building what is counted");
    let arguments = ["build", "--profile", "counted", "--quiet", "--package", "revisor", "--package", "revisor-bench"];
    workspace::run(&mut workspace.cargo(arguments))?;
    Ok(workspace.target().join("counted"))
}

fn bench(workspace: &Workspace, folder: &Path) -> Command {
    let mut bench = Command::new(folder.join("revisor-bench"));
    bench.current_dir(workspace.root()).arg(FLAG).arg("--binary").arg(folder.join("revisor"));
    bench
}

/// Whether the arguments of a bench ask for instructions.
pub(crate) fn is_asked_for(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument == FLAG)
}

/// The step of the pipeline: where valgrind cannot be had, it says so and passes.
pub(crate) fn step(workspace: &Workspace) -> Result<()> {
    if let Err(error) = crate::valgrind::provide() {
        println!("SKIPPED: instructions are not counted: {error:#}");
        return Ok(());
    }
    count(workspace, &[]).context("if that is meant: cargo xtask bench --instructions --bless")
}
