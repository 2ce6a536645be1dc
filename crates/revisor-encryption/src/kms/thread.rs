//! [`KmsThread`]: where calls to key services are made.
//!
//! Objects are read where there may be no runtime, or only one whose threads must not wait for each other. So calls run
//! on a thread of their own, and whoever needs an answer waits for it.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use tokio::runtime::{Builder, Handle, Runtime};

/// A thread for calls to key services. It ends with the last of those who use it.
#[derive(Clone)]
pub(crate) struct KmsThread(Arc<Inner>);

struct Inner {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl KmsThread {
    pub(crate) fn start() -> io::Result<KmsThread> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("kms").enable_all().build()?;
        let handle = runtime.handle().clone();
        Ok(KmsThread(Arc::new(Inner { runtime: Some(runtime), handle })))
    }

    /// Has the thread do something on the side.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.handle.spawn(work);
    }

    /// Has the thread do something and waits for it. `None` if it cannot be finished because the thread ends.
    pub(crate) fn wait_for<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (answer, result) = sync_channel(1);
        self.0.handle.spawn(async move {
            // Nobody may wait any more.
            let _ = answer.send(work.await);
        });
        result.recv().ok()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // May be dropped on a thread that must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
