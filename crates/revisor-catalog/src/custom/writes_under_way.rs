//! [`WritesUnderWay`]: whether somebody still writes by a state of a definition.
//!
//! A write finishes by the state of the definition that it began with, and stores its object in the version that was
//! stored then. Who wants to know that nothing is stored in that version any more has to wait for such writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The writes that are under way by one state of a definition.
#[derive(Debug, Clone, Default)]
pub struct WritesUnderWay(Arc<AtomicUsize>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct WriteUnderWay(Arc<AtomicUsize>);

impl WritesUnderWay {
    /// Begins a write.
    pub fn begin(&self) -> WriteUnderWay {
        self.0.fetch_add(1, Ordering::SeqCst);
        WriteUnderWay(self.0.clone())
    }

    /// Whether there are none.
    pub fn are_over(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

impl Drop for WriteUnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
