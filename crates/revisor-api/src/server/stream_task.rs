//! [`StreamExecutor`]: runs the streams of an HTTP/2 connection, each under the eyes of somebody who ends it when the
//! client does not read.
//!
//! A stream that waits for its client cannot be ended from within: its body is not asked for anything. To drop its task
//! resets it, and leaves the other streams alone.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::Executor;
use pin_project_lite::pin_project;
use prometheus::IntCounter;

use super::delivery::{Delivery, Latest, Patience};

/// Runs the streams of one connection.
#[derive(Clone)]
pub(super) struct StreamExecutor {
    /// The connection is given a request and its stream to run right after that.
    pub(super) latest: Latest,
    pub(super) unread_timeout: Duration,
    /// Counts answers that were cut off.
    pub(super) cut_off: IntCounter,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, future: F) {
        match self.latest.get() {
            Some(delivery) => {
                let patience = Patience::new(self.unread_timeout);
                tokio::spawn(StreamTask { future, delivery, patience, cut_off: self.cut_off.clone() });
            }
            None => drop(tokio::spawn(future)),
        }
    }
}

pin_project! {
    struct StreamTask<F> {
        #[pin]
        future: F,
        delivery: Arc<Delivery>,
        patience: Patience,
        cut_off: IntCounter,
    }
}

impl<F: Future<Output = ()>> Future for StreamTask<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.future.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        std::task::ready!(this.patience.poll(this.delivery, cx));
        this.cut_off.inc();
        Poll::Ready(())
    }
}
