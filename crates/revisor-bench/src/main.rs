//! The command line of the load generator. Started by `cargo xtask bench`, which builds it optimised.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report goes to the person who asked for it")]

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;
use revisor_bench::{Options, Table, count, run};

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
    if options.counting.instructions {
        return runtime.block_on(count_instructions(options));
    }
    let report = runtime.block_on(run(options, &mut |line| eprintln!("{line}")))?;
    println!("{}\n{}", report.aligned(), report.markdown());
    if let Some(path) = &options.json {
        std::fs::write(path, format!("{:#}\n", report.json()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

async fn count_instructions(options: &Options) -> anyhow::Result<()> {
    let binary = options.binary.as_ref().context("--instructions needs --binary")?;
    let counts = count(binary, &options.counting, &mut |line| eprintln!("{line}")).await?;
    let Some(path) = &options.counting.table else {
        println!("{}", Table::default().compare(&counts));
        return Ok(());
    };
    if options.counting.bless {
        return std::fs::write(path, Table::text(&counts)).with_context(|| format!("cannot write {}", path.display()));
    }
    let before = Table::read(path)?;
    println!("{}", before.compare(&counts));
    let grown = before.grown(&counts);
    if !grown.is_empty() {
        bail!("these take more instructions than {} says, by more than a tenth: {}", path.display(), grown.join(", "));
    }
    Ok(())
}
