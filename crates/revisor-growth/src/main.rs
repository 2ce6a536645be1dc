//! The program behind `cargo xtask growth`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is for whoever runs it")]

use clap::Parser;
use revisor_growth::report::Report;
use revisor_growth::server::Server;
use revisor_growth::survey::{Extent, Survey};
use revisor_growth::{custom, texts};

// That of the server: how memory is given back is part of what work costs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures how the work of a write grows with every list and map of its object
#[derive(Parser)]
#[command(name = "cargo xtask growth")]
struct Arguments {
    /// How many items a list or map has at most
    #[arg(long, default_value_t = 16_000)]
    items: usize,
    /// How many bytes an object has at most
    #[arg(long, default_value_t = 1_000_000)]
    bytes: usize,
    /// Only measure what has this in its name, such as `v1 pods spec.containers`
    #[arg(long, default_value = "")]
    only: String,
    /// Only measure new objects, with items that differ in everything
    #[arg(long)]
    quick: bool,
    /// What grows with a higher power than this is named in any case
    #[arg(long, default_value_t = 1.2)]
    above: f64,
    /// How many rows are shown in any case
    #[arg(long, default_value_t = 20)]
    rows: usize,
}

fn main() -> anyhow::Result<()> {
    let Arguments { items, bytes, only, quick, above, rows } = Arguments::parse();
    let server = Server::start()?;
    let extent = Extent { items, bytes, only, is_quick: quick };
    let mut report = Report::default();
    texts::run(&server, &extent, &mut report)?;
    custom::run(&server, &extent, &mut report)?;
    Survey::new(&server, &extent).run(&mut report, |progress| eprintln!("{progress}"));
    print!("{}", report.table(rows, above));
    Ok(())
}
