//! The processor's time that a piece of work takes.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How often a piece of work is done at most; the fastest counts, because others on the machine only add.
const REPETITIONS: usize = 5;

/// No more repetitions once they have taken this long together.
const ENOUGH: Duration = Duration::from_millis(60);

/// The time that this thread has spent on a processor.
fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or_default(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// The least processor time of this thread in which `work` was done.
pub fn cost(mut work: impl FnMut()) -> Duration {
    let mut least = Duration::MAX;
    let mut spent = Duration::ZERO;
    for _ in 0..REPETITIONS {
        let before = thread_time();
        work();
        let took = thread_time() - before;
        least = least.min(took);
        spent += took;
        if spent > ENOUGH {
            break;
        }
    }
    least
}
