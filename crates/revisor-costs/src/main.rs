//! The program behind `cargo xtask costs`.
#![allow(clippy::print_stdout, reason = "the report is for whoever runs it")]

use anyhow::{Result, ensure};
use revisor_costs::asking::{Asking, BINDINGS};
use revisor_costs::nanoseconds;
use revisor_costs::noting::Noting;
use revisor_costs::queueing::Queueing;
use revisor_costs::sealing::Sealing;

// That of the server: what memory costs is part of what work costs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    println!("{:<64} {:>9}", "", "ns");
    let show = |what: &str, cost: u64| println!("{what:<64} {cost:>9}");
    let asking = Asking::new()?;
    ensure!(asking.by_certificate() && asking.by_token(), "both may");
    let cost = nanoseconds(|| _ = asking.by_certificate());
    show(&format!("known by certificate and allowed by RBAC, {BINDINGS} bindings"), cost);
    let cost = nanoseconds(|| _ = asking.by_token());
    show(&format!("known by service account token and allowed by RBAC, {BINDINGS} bindings"), cost);
    let mut queueing = Queueing::new()?;
    ensure!(queueing.pass(), "there are seats");
    show("priority and fairness: flow, seat, end", nanoseconds(|| _ = queueing.pass()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let noting = Noting::new()?;
        ensure!(noting.note(), "the policy wants it");
        show("audit at level Metadata, log in batches", nanoseconds(|| _ = noting.note()));
        noting.close().await;
        Ok(())
    })?;
    for bytes in [1_000, 10_000] {
        for provider in ["aesgcm", "aescbc", "secretbox"] {
            let sealing = Sealing::new(provider, bytes)?;
            ensure!(sealing.seal().is_some(), "the key is good");
            show(&format!("{bytes} bytes sealed by {provider}"), nanoseconds(|| _ = sealing.seal()));
        }
    }
    Ok(())
}
