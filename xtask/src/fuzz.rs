//! `cargo xtask fuzz`: the fuzz targets under libFuzzer, guided by coverage, on the stable toolchain.
//!
//! The targets are functions in `crates/revisor-fuzz`, which `cargo test` runs too, without guidance. Here the same
//! crate is built with LLVM's coverage counters (an ordinary compiler pass, so no nightly is needed) and linked with
//! libFuzzer, which takes a C++ compiler. Each target owns a folder of seeds; the folders' names are the list of targets.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::{self, Workspace};

/// Seeds, one folder per target.
const SEEDS: &str = "crates/revisor-fuzz/seeds";

/// The variable that tells the binary which target to run.
const TARGET_VARIABLE: &str = "REVISOR_FUZZ_TARGET";

/// The longest input that libFuzzer tries: parsers see nothing new in longer ones, and short ones run faster.
const MAX_INPUT: usize = 4096;

/// Lines of libFuzzer's log that are shown when a target breaks.
const EXCERPT: usize = 60;

/// What makes LLVM count edges and report comparisons to libFuzzer.
const INSTRUMENTATION: &str = "--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Options of the task.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Targets to run, one after the other; all of them if none is named
    targets: Vec<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// List the targets and stop
    #[arg(long)]
    list: bool,
}

/// Runs the targets of the options. Stops at the first input that makes one fail, and names the file that holds it.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let known = targets(workspace)?;
    if options.list {
        known.iter().for_each(|target| println!("{target}"));
        return Ok(());
    }
    if let Some(unknown) = options.targets.iter().find(|target| !known.contains(target)) {
        bail!("there is no target {unknown}; there are {}", known.join(", "));
    }
    let chosen = if options.targets.is_empty() { known } else { options.targets.clone() };
    let binary = build(workspace)?;
    chosen.iter().try_for_each(|target| fuzz(workspace, &binary, target, Effort::Seconds(options.seconds)))
}

/// How much is tried.
#[derive(Debug, Clone, Copy)]
enum Effort {
    /// As much as fits into this time, starting from what earlier runs found.
    Seconds(u32),
    /// This many inputs, the same ones every time.
    Inputs(u32),
}

/// A short run of every target, to know that they still build and hold. It tries the same inputs every time: luck is not
/// to decide whether a change passes. Without a C++ compiler there is no libFuzzer; then the run that `cargo test` made
/// of the same targets has to do.
pub(crate) fn smoke(workspace: &Workspace, inputs: u32) -> Result<()> {
    if !has_cxx() {
        println!("no C++ compiler, so no libFuzzer: the targets ran in `cargo test` only");
        return Ok(());
    }
    let known = targets(workspace)?;
    let binary = build(workspace)?;
    known.iter().try_for_each(|target| fuzz(workspace, &binary, target, Effort::Inputs(inputs)))
}

fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(workspace.root().join(SEEDS)).with_context(|| format!("cannot read {SEEDS}"))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.with_context(|| format!("cannot read {SEEDS}"))?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The instrumented binary. It has a target folder of its own, because its flags differ from every other build's.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let host = workspace.host()?;
    let folder = workspace.target().join("fuzz");
    // With an explicit target the flags reach the code under test only, not build scripts and macros, which would not
    // find the counters' symbols.
    let mut command = workspace.cargo(["build", "--release", "--quiet", "--package", "revisor-fuzz"]);
    command
        .args(["--features", "libfuzzer", "--bin", "revisor-fuzz", "--target", &host])
        .env("CARGO_TARGET_DIR", &folder)
        .env("RUSTFLAGS", INSTRUMENTATION)
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true");
    workspace::run(&mut command)?;
    Ok(folder.join(host).join("release").join("revisor-fuzz"))
}

fn fuzz(workspace: &Workspace, binary: &Path, target: &str, effort: Effort) -> Result<()> {
    let (limits, corpus, amount) = match effort {
        // What libFuzzer finds worth keeping stays between runs, so that the next one starts where this one ended.
        Effort::Seconds(seconds) => (vec![format!("-max_total_time={seconds}")], "corpus", format!("{seconds} s")),
        Effort::Inputs(inputs) => {
            (vec![format!("-runs={inputs}"), "-seed=1".to_owned()], "smoke", format!("{inputs} inputs"))
        }
    };
    let corpus = workspace.target().join("fuzz").join(corpus).join(target);
    if matches!(effort, Effort::Inputs(_)) && corpus.exists() {
        std::fs::remove_dir_all(&corpus).with_context(|| format!("cannot empty {}", corpus.display()))?;
    }
    let artifacts = workspace.target().join("fuzz").join("artifacts").join(target);
    for folder in [&corpus, &artifacts] {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let log = artifacts.join("log");
    let mut command = Command::new(binary);
    command
        .args(limits)
        .arg(format!("-max_len={MAX_INPUT}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(&corpus)
        .arg(workspace.root().join(SEEDS).join(target))
        .env(TARGET_VARIABLE, target)
        .env("RUST_BACKTRACE", "1")
        .stderr(std::fs::File::create(&log).with_context(|| format!("cannot create {}", log.display()))?);
    println!("fuzzing {target} for {amount}; libFuzzer writes to {}", log.display());
    let outcome = workspace::run(&mut command);
    let text = std::fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let text = String::from_utf8_lossy(&text);
    if outcome.is_err() {
        let lines: Vec<&str> = text.lines().collect();
        eprintln!("{}", lines[lines.len().saturating_sub(EXCERPT)..].join("\n"));
    }
    outcome.with_context(|| {
        format!(
            "an input breaks {target}; it lies in {}. Put it into {SEEDS}/{target} with the fix",
            artifacts.display()
        )
    })?;
    println!("{}", summary(&text));
    Ok(())
}

/// What libFuzzer says of a run that found nothing.
fn summary(log: &str) -> String {
    let number = |name: &str| log.lines().find_map(|line| line.strip_prefix(name)).map_or("?", str::trim);
    format!(
        "{} inputs, {} of them new to the corpus",
        number("stat::number_of_executed_units:"),
        number("stat::new_units_added:")
    )
}

fn has_cxx() -> bool {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut command = Command::new(compiler);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_seeds_are_the_targets() {
        let targets = targets(&Workspace::of_this_build()).expect("the seeds are committed");
        assert!(targets.iter().any(|target| target == "json"), "{targets:?}");
        assert!(targets.is_sorted());
    }

    #[test]
    fn a_quiet_run_is_summed_up() {
        let log = "INFO: x\nstat::number_of_executed_units: 177017\nstat::new_units_added:          3578\n";
        assert_eq!(summary(log), "177017 inputs, 3578 of them new to the corpus");
        assert_eq!(summary(""), "? inputs, ? of them new to the corpus");
    }
}
