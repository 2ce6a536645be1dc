//! [`behind_others`]: work that has time, on a thread that gives way to those that serve requests.
//!
//! On the threads of the runtime, every hundredth get waited 5 ms beside a migration on two processors, instead of
//! half of one. That is about how long the kernel lets a thread run before it looks at the next one.

use std::future::Future;
use std::pin::pin;
use std::thread;

use futures_util::future::{Either, select};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How much it gives way. Beside threads that never rest it still gets a tenth of a processor, so that nobody waits for
/// long who waits for something that it holds.
const NICENESS: i32 = 10;

/// Does some work on a thread of its own, of low priority. When nobody waits for it any more, it ends. Answers `None` if
/// the system had no room for the thread.
pub(super) async fn behind_others<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    let runtime = Handle::current();
    let (mut waiting, result) = oneshot::channel();
    let work = move || {
        give_way();
        let done = runtime.block_on(async {
            match select(pin!(work), pin!(waiting.closed())).await {
                Either::Left((result, _)) => Some(result),
                Either::Right(_) => None,
            }
        });
        if let Some(result) = done {
            // Nobody may wait any more.
            let _ = waiting.send(result);
        }
    };
    thread::Builder::new().name("background".to_owned()).spawn(work).ok()?;
    result.await.ok()
}

#[cfg(target_os = "linux")]
fn give_way() {
    // On Linux a priority is a thread's own. If it cannot be changed, the work is done all the same.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

#[cfg(not(target_os = "linux"))]
fn give_way() {}
