//! How the cost of an operation grows with the number of objects.
//!
//! The same server is filled further and further. At each size the same operations run for the same time; an operation
//! whose cost rises from row to row is not as cheap as it looks at the first.

use std::time::Duration;

use anyhow::Result;

use crate::Options;
use crate::report::Phase;
use crate::run::Drive;
use crate::worker::Operation;
use crate::workload::Plan;

/// The size that --million adds.
const MILLION: u32 = 1_000_000;

/// Objects that come and go at each size, to measure creation and deletion there; never more than there are.
const EXTRA: u32 = 5_000;

/// Runs the phases of every size.
pub(crate) async fn phases(drive: &mut Drive, options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Vec<Phase>> {
    let time = Duration::from_secs(options.seconds.into());
    let everyone = drive.workers();
    let mut phases = Vec::new();
    for size in options.sizes.iter().copied().chain(options.million.then_some(MILLION)) {
        progress(&format!("filling up to {size} objects"));
        drive.fill(size, options).await?;
        for (name, operation) in [("get", Operation::Get), ("update", Operation::Update), ("page", Operation::Page)] {
            let name = format!("{name} at {size}");
            progress(&name);
            let outcome = drive.run(Plan { operation, workers: everyone, time }).await?;
            phases.push(drive.phase(&name, outcome)?);
        }
        progress(&format!("create and delete at {size}"));
        let outcome = drive.fill(size + EXTRA.min(size), options).await?;
        phases.push(drive.phase(&format!("create at {size}"), outcome)?);
        let outcome = drive.shrink(size, options).await?;
        phases.push(drive.phase(&format!("delete at {size}"), outcome)?);
    }
    Ok(phases)
}
