//! [`CutOff`]: how an answer that is on its way can be ended by somebody who is neither its client nor its source.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Ends an answer that is on its way. Put into the extensions of a response, it reaches whoever sends that.
///
/// What is left of an answer is then dropped, also while nobody reads it: the stream is reset, or the connection closed
/// where the protocol has no other way to tell a client that something is missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct CutOff(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_cut: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl CutOff {
    /// Ends the answer.
    pub(crate) fn cut(&self) {
        self.0.is_cut.store(true, Ordering::SeqCst);
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ready when the answer has to end.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        // In this order: who cuts after the first look finds the waker.
        let mut waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if self.0.is_cut.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        match &mut *waker {
            Some(known) => known.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_sends_the_answer_is_woken() {
        let cut_off = CutOff::default();
        let sender = tokio::spawn({
            let cut_off = cut_off.clone();
            std::future::poll_fn(move |cx| cut_off.poll(cx))
        });
        tokio::task::yield_now().await;
        assert!(!sender.is_finished());
        cut_off.cut();
        sender.await.expect("no panic");
        std::future::poll_fn(|cx| cut_off.poll(cx)).await;
    }
}
