//! The command line of the load generator. Started by `cargo xtask bench`, which builds it optimised.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report goes to the person who asked for it")]

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use revisor_bench::{Options, run};

fn main() -> ExitCode {
    match measure(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> anyhow::Result<()> {
    // One thread: the other cores belong to the server under test.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(run(options, &mut |line| eprintln!("{line}")))?;
    println!("{}\n{}", report.aligned(), report.markdown());
    if let Some(path) = &options.json {
        std::fs::write(path, format!("{:#}\n", report.json()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
