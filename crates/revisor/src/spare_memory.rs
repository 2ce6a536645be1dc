//! Memory that nobody needs any more goes back to the system: what only the start has used, or a peak.
//!
//! Two hold on to it. The allocator keeps what was freed on each thread for what this thread asks for next. And the
//! pages of the program that ever ran stay mapped: its start alone touches most of them, although requests need few. So
//! the threads let go of what is free when the server serves and whenever it becomes quiet, and the program of its pages
//! then and while it is quiet. A page that runs again comes out of the system's cache when it is touched.

use std::collections::HashSet;
use std::ffi::c_void;
use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// How soon after the start it is looked for the first time whether the server is quiet: controllers have seen
/// everything once by then.
const SETTLED: Duration = Duration::from_secs(1);

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(2);

/// A server whose threads have worked for less than this between two looks is quiet.
const QUIET: Duration = Duration::from_millis(100);

#[allow(unsafe_code)]
mod allocator {
    unsafe extern "C" {
        /// Gives back what is free on this thread, and with `force` at once. It touches nothing that is in use.
        pub(super) safe fn mi_collect(force: bool);
    }
}

/// Has each of the threads that work give back what is free on it, once whenever they are asked.
#[derive(Default)]
pub(crate) struct Workers {
    /// How many have not yet done so.
    left: AtomicUsize,
    done: Mutex<HashSet<ThreadId>>,
}

impl Workers {
    /// For one that is about to sleep.
    pub(crate) fn before_sleep(&self) {
        if self.left.load(Ordering::Relaxed) == 0 {
            return;
        }
        let is_new = {
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            let is_new = self.left.load(Ordering::Relaxed) > 0 && done.insert(thread::current().id());
            if is_new {
                self.left.fetch_sub(1, Ordering::Relaxed);
            }
            is_new
        };
        if is_new {
            collect();
        }
    }

    fn ask(&self) {
        let count = Handle::current().metrics().num_workers();
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.clear();
        self.left.store(count, Ordering::Relaxed);
        drop(done);
        // Those that sleep wake for a moment: they look when they are about to sleep again.
        for _ in 0..count {
            tokio::spawn(async {});
        }
    }
}

/// Gives back what is free on this thread.
pub(crate) fn collect() {
    allocator::mi_collect(true);
}

/// Looks after it from now on, when the server serves, until it is aborted.
pub(crate) fn begin(workers: Arc<Workers>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let Ok(program) = tokio::task::spawn_blocking(Program::find).await else { return };
        let program = Arc::new(program);
        workers.ask();
        give_back(&program).await;
        let mut looks = interval_at(Instant::now() + SETTLED, EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut worked_before = worked();
        // The start was work.
        let mut was_busy = true;
        loop {
            looks.tick().await;
            let worked = worked();
            let is_busy = worked.saturating_sub(worked_before) > QUIET;
            if was_busy && !is_busy {
                workers.ask();
            }
            // As long as it stays quiet, it lets go again of what its own work has brought back.
            if !is_busy {
                give_back(&program).await;
            }
            (was_busy, worked_before) = (is_busy, worked);
        }
    })
}

/// For how long the threads have worked so far.
fn worked() -> Duration {
    let metrics = Handle::current().metrics();
    (0..metrics.num_workers()).map(|worker| metrics.worker_total_busy_duration(worker)).sum()
}

/// Gives back the pages of the program, and what threads gave up that are no more.
async fn give_back(program: &Arc<Program>) {
    let program = program.clone();
    let done = tokio::task::spawn_blocking(move || {
        collect();
        program.let_go();
    });
    // There is nothing to do about it if it cannot be done.
    let _ = done.await;
}

/// Where the program itself lies in memory, as it lies on disk.
struct Program {
    unchanged: Vec<Range<usize>>,
}

impl Program {
    /// Finds it. Where the system does not tell, nothing is found.
    fn find() -> Program {
        let path = fs::read_link("/proc/self/exe").ok().and_then(|path| path.into_os_string().into_string().ok());
        let mappings = fs::read_to_string("/proc/self/smaps").ok();
        let unchanged = path.zip(mappings).map(|(path, mappings)| unchanged(&mappings, &path)).unwrap_or_default();
        Program { unchanged }
    }

    /// Lets go of its pages.
    fn let_go(&self) {
        for range in &self.unchanged {
            // SAFETY: nothing is lost by it. These are parts of a file, mapped privately and not to be written to, of
            // which no page was changed before they became so: whoever touches one next gets it from the file again.
            // That file is the program that runs, which the system lets nobody write to.
            #[allow(unsafe_code)]
            unsafe {
                libc::madvise(range.start as *mut c_void, range.len(), libc::MADV_DONTNEED);
            }
        }
    }
}

/// The parts of memory that are as the file at `path` has them and stay so, as `/proc/self/smaps` tells it.
fn unchanged(mappings: &str, path: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut candidate = None;
    for line in mappings.lines() {
        if let Some((range, file)) = header(line) {
            candidate = range.filter(|_| file == path);
        } else if let Some(changed) = line.strip_prefix("Anonymous:") {
            found.extend(candidate.take().filter(|_| changed.trim() == "0 kB"));
        }
    }
    found
}

/// What a line says with which a mapping begins: its range, if it is private and not to be written to, and its file.
/// `None` for any other line.
fn header(line: &str) -> Option<(Option<Range<usize>>, &str)> {
    let mut columns = line.splitn(6, ' ');
    let mut column = || columns.next();
    let (start, end) = column()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let range = address(start)?..address(end)?;
    let is_kept = matches!(column()?, "r--p" | "r-xp");
    // Where in the file, on which device, and its number there.
    let _ = (column()?, column()?, column()?);
    Some((is_kept.then_some(range), column()?.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPPINGS: &str = "\
55dd06779000-55dd07103000 r--p 00000000 fe:00 5319344                    /opt/a b/revisor
Rss:                4060 kB
Anonymous:             0 kB
55dd07103000-55dd0901d000 r-xp 00989000 fe:00 5319344                    /opt/a b/revisor
Rss:               24556 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
55dd0901d000-55dd09105000 r--p 028a2000 fe:00 5319344                    /opt/a b/revisor
Anonymous:           928 kB
55dd09105000-55dd0910d000 rw-p 02989000 fe:00 5319344                    /opt/a b/revisor
Anonymous:             0 kB
7f7fd4897000-7f7fd49ed000 r-xp 00026000 fe:00 326269                     /usr/lib/libc.so.6
Anonymous:             0 kB
7f7fd49ee000-7f7fd49ef000 r-xp 00026000 fe:00 326269                     /opt/a b/other/opt/a b/revisor
Anonymous:             0 kB
4525ac00000-4529ac00000 r--p 00000000 00:00 0 
Anonymous:             0 kB
";

    #[test]
    fn only_what_is_as_the_program_has_it_is_let_go_of() {
        let want = [0x55dd06779000..0x55dd07103000, 0x55dd07103000..0x55dd0901d000];
        assert_eq!(unchanged(MAPPINGS, "/opt/a b/revisor"), want, "neither relocated nor writable, nor of others");
        assert!(unchanged("", "/opt/a b/revisor").is_empty());
    }

    #[test]
    fn each_thread_gives_back_once_whenever_it_is_asked() {
        let workers = Workers::default();
        workers.before_sleep();
        assert!(workers.done.lock().expect("is whole").is_empty(), "nobody asked");
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("threads");
        for _ in 0..2 {
            threads.block_on(async { workers.ask() });
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| (workers.before_sleep(), workers.before_sleep()));
                }
            });
            let done = workers.done.lock().expect("is whole").len();
            assert_eq!((done, workers.left.load(Ordering::Relaxed)), (2, 0), "as many as there are workers");
        }
    }

    #[test]
    fn a_program_goes_on_without_its_pages() {
        let program = Program::find();
        program.let_go();
        assert!(cfg!(not(target_os = "linux")) || !program.unchanged.is_empty(), "it finds itself");
    }
}
