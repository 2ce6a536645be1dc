//! The program behind `cargo xtask differ`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is for whoever runs it")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Parser;
use revisor_bench::{Endpoint, OwnServer};
use revisor_differ::client::Party;
use revisor_differ::generate::Generated;
use revisor_differ::generate::empties::empties;
use revisor_differ::report::Report;
use revisor_differ::run::{Runner, differences};
use revisor_differ::shrink::shrink;
use revisor_differ::{Group, deliberate, script};

/// Asks two API servers the same and tells where their answers differ
#[derive(Parser)]
#[command(name = "cargo xtask differ")]
struct Arguments {
    /// The server to be held against, a genuine one that runs without controllers: `https://127.0.0.1:6443`
    #[arg(long, value_name = "URL")]
    peer: String,
    /// A bearer token of one who may do everything there
    #[arg(long)]
    peer_token: String,
    /// Ask this server, instead of starting one
    #[arg(long, value_name = "URL", requires = "token")]
    server: Option<String>,
    /// Bearer token for --server
    #[arg(long, requires = "server")]
    token: Option<String>,
    /// The binary to start when no --server is given
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The same number makes the same requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many requests are made, at least
    #[arg(long, default_value_t = 2000)]
    requests: u64,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS")]
    time: Option<u64>,
    /// Only for resources or groups of a script with this in their names
    #[arg(long, default_value = "")]
    only: String,
    /// Send the groups of this script instead of generated ones; the built-in script is sent first otherwise
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Send every list, map and part of every kind with nothing in it instead, all of them once
    #[arg(long, conflicts_with_all = ["script", "seed", "requests"])]
    empties: bool,
    /// How many attempts are made to find a smaller request that shows the same
    #[arg(long, default_value_t = 60)]
    shrink: usize,
    /// Show every request and answer
    #[arg(long)]
    verbose: bool,
}

fn main() -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(compare(&Arguments::parse()))
}

async fn compare(arguments: &Arguments) -> Result<ExitCode> {
    // Dropping it ends the server.
    let mut own = None;
    let endpoint = match (&arguments.server, &arguments.token, &arguments.binary) {
        (Some(url), Some(token), _) => Endpoint::new(url, token)?,
        (_, _, binary) => {
            let binary = binary.as_deref().context("either --server or --binary has to be given")?;
            own.insert(OwnServer::start(binary, &["--controllers=none"]).await?).endpoint().clone()
        }
    };
    let peer = Endpoint::new(&arguments.peer, &arguments.peer_token)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // Five characters for a year, so that all names are equally long.
    let run = format!("d{:05x}", (now / 4) & 0xf_ffff);
    let mut runner = Runner::new(Party::new(endpoint, &run)?, Party::new(peer, &run)?);

    let text = match &arguments.script {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?,
        None => script::SCRIPT.to_owned(),
    };
    let written: Vec<Group> =
        script::parse(&text)?.into_iter().filter(|group| group.title.contains(&arguments.only)).collect();
    let is_endless = arguments.script.is_none() && !arguments.empties;
    let groups: Box<dyn Iterator<Item = Group>> = if arguments.empties {
        Box::new(empties(&arguments.only))
    } else if is_endless {
        Box::new(written.into_iter().chain(Generated::new(arguments.seed, &arguments.only)))
    } else {
        Box::new(written.into_iter())
    };

    let begun = Instant::now();
    let mut report = Report::default();
    for group in groups {
        let is_over = arguments.time.is_some_and(|seconds| begun.elapsed() > Duration::from_secs(seconds));
        if is_over || is_endless && runner.requests() >= arguments.requests {
            break;
        }
        let (ours, theirs) = match runner.play(&group).await {
            Ok(answers) => answers,
            Err(error) => {
                eprintln!("{}: {error:#}", group.title);
                continue;
            }
        };
        if arguments.verbose {
            for (step, (ours, theirs)) in group.steps.iter().zip(ours.iter().zip(&theirs)) {
                println!("{step}\n  ours:   {}\n  theirs: {}", ours.to_json(), theirs.to_json());
            }
        }
        let found = differences(&group, &ours, &theirs);
        for difference in &found {
            let cause = &difference.finding.cause;
            let is_new = report.is_new(cause) && deliberate::find(cause).is_none();
            report.add(&group, difference);
            if is_new && arguments.shrink > 0 {
                let part = Group { title: group.title.clone(), steps: group.steps[..=difference.step].to_vec() };
                if let Ok(smaller) = shrink(&mut runner, &part, cause, arguments.shrink).await {
                    report.show(cause, smaller);
                }
            }
        }
    }
    print!("{}", report.text());
    let seconds = begun.elapsed().as_secs();
    println!("{} requests compared in {seconds} s, {} causes of differences", runner.requests(), report.unmeant());
    Ok(if report.unmeant() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
