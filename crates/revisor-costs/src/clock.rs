//! The processor's time that a piece of work takes.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How often it is measured; the least counts, because others on the machine only add.
const ROUNDS: usize = 20;

/// How often the work is done in a round.
const TIMES: u32 = 5_000;

/// The least processor time of this thread in which `work` was done once.
pub fn nanoseconds(mut work: impl FnMut()) -> u64 {
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let before = thread_time();
        for _ in 0..TIMES {
            work();
        }
        least = least.min(thread_time() - before);
    }
    u64::try_from((least / TIMES).as_nanos()).unwrap_or(u64::MAX)
}

fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or_default(), u32::try_from(now.tv_nsec).unwrap_or_default())
}
