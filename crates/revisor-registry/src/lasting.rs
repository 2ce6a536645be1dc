//! [`Lasting`]: work that is brought to its end once it was begun, whether or not anybody waits for it.
//!
//! A request is dropped when its client goes or its time is over, at any place where it waits. What must not be left
//! half done there is wrapped in this: while it is waited for it costs nothing but its box, and whoever gives it up
//! leaves the rest of it to a task. There are no more of those than requests that were admitted, and each lasts as long
//! as a write does.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// A future that goes on in a task of its own when it is dropped. What it comes to is dropped then.
#[must_use = "what was begun must be waited for"]
pub(crate) struct Lasting<T: Send + 'static> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    runtime: Handle,
}

impl<T: Send + 'static> Lasting<T> {
    pub(crate) fn new(runtime: &Handle, work: impl Future<Output = T> + Send + 'static) -> Lasting<T> {
        Lasting { work: Some(Box::pin(work)), runtime: runtime.clone() }
    }
}

impl<T: Send + 'static> Future for Lasting<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Taken out while it is at work: what panics is not gone on with.
        let mut work = self.work.take().expect("nobody asks again for what was answered");
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Lasting<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            drop(self.runtime.spawn(work));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_that_nobody_waits_for_comes_to_its_end() {
        let (go, gone) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let mut work = Lasting::new(&Handle::current(), async move {
            gone.await.expect("is told to go on");
            tell.send(7).expect("somebody listens");
        });
        assert!((&mut work).now_or_never().is_none(), "it waits");
        drop(work);
        go.send(()).expect("it is still there");
        assert_eq!(told.await, Ok(7));
    }
}
