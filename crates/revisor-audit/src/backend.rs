//! [`Backend`]: one place that events are written to, at once or in batches, and how large they may be there.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::batch::Batch;
use crate::event::{Event, TYPE};
use crate::log_file::Log;
use crate::webhook::Webhook;
use crate::{BatchOptions, Level, LogFormat, LogOptions, WebhookOptions};

/// Where events are written to, and how.
#[derive(Debug, Clone)]
pub enum BackendOptions {
    /// To a file.
    Log(LogOptions, Mode, Option<Truncation>),
    /// To a webhook.
    Webhook(WebhookOptions, Mode, Option<Truncation>),
}

/// Who waits for events to be written.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    /// Nobody: they are gathered and written beside.
    Batch(BatchOptions),
    /// Requests. If it fails, they go on.
    Blocking,
    /// Requests, and those that cannot be written when they come are refused.
    BlockingStrict,
}

/// How large events may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    /// One event. A larger one loses its objects, and is left out if it is still too large.
    pub max_event_bytes: usize,
    /// A batch of them.
    pub max_batch_bytes: usize,
}

/// Whether an event was written.
pub enum Submitted {
    /// It is known.
    Done(bool),
    /// It is not known before this is ready.
    Pending(Pin<Box<dyn Future<Output = bool> + Send>>),
}

impl Submitted {
    pub(crate) fn and(self, other: Submitted) -> Submitted {
        match (self, other) {
            (Submitted::Done(one), Submitted::Done(two)) => Submitted::Done(one && two),
            (one, two) => Submitted::Pending(Box::pin(async move { one.wait().await & two.wait().await })),
        }
    }

    /// Whether it was written, when that is known.
    pub async fn wait(self) -> bool {
        match self {
            Submitted::Done(done) => done,
            Submitted::Pending(pending) => pending.await,
        }
    }

    /// Lets it be written without waiting for it.
    pub fn detach(self) {
        if let (Submitted::Pending(pending), Ok(runtime)) = (self, tokio::runtime::Handle::try_current()) {
            runtime.spawn(pending);
        }
    }
}

impl fmt::Debug for Submitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Submitted::Done(done) => f.debug_tuple("Done").field(done).finish(),
            Submitted::Pending(_) => f.write_str("Pending"),
        }
    }
}

/// What can fail.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plugin {
    Log,
    Webhook,
    Buffered,
    Truncate,
}

/// Events that were not written as they should have been, by what failed.
#[derive(Debug, Default)]
pub(crate) struct Counts([AtomicU64; 4]);

impl Counts {
    const NAMES: [&'static str; 4] = ["log", "webhook", "buffered", "truncate"];

    pub(crate) fn fail(&self, plugin: Plugin, events: usize, why: &dyn fmt::Display) {
        self.0[plugin as usize].fetch_add(events as u64, Ordering::Relaxed);
        tracing::error!(plugin = Counts::NAMES[plugin as usize], events, %why, "audit events were not written");
    }

    pub(crate) fn errors(&self) -> [(&'static str, u64); 4] {
        [0, 1, 2, 3].map(|at| (Counts::NAMES[at], self.0[at].load(Ordering::Relaxed)))
    }
}

/// One place that events are written to.
#[derive(Debug)]
pub(crate) struct Backend {
    output: Output,
    delivery: Delivery,
    truncation: Option<Truncation>,
    counts: Arc<Counts>,
}

#[derive(Debug, Clone)]
pub(crate) enum Output {
    Log(Arc<Log>),
    Webhook(Arc<Webhook>),
}

#[derive(Debug)]
enum Delivery {
    Batch(Batch),
    Blocking { is_strict: bool },
}

impl Backend {
    pub(crate) fn open(options: BackendOptions, counts: &Arc<Counts>) -> io::Result<Backend> {
        let (output, mode, truncation) = match options {
            BackendOptions::Log(options, mode, truncation) => {
                (Output::Log(Arc::new(Log::open(options)?)), mode, truncation)
            }
            BackendOptions::Webhook(options, mode, truncation) => {
                (Output::Webhook(Arc::new(Webhook::new(options))), mode, truncation)
            }
        };
        let delivery = match mode {
            Mode::Batch(options) => Delivery::Batch(Batch::begin(options, output.clone(), truncation, counts)),
            Mode::Blocking => Delivery::Blocking { is_strict: false },
            Mode::BlockingStrict => Delivery::Blocking { is_strict: true },
        };
        Ok(Backend { output, delivery, truncation, counts: Arc::clone(counts) })
    }

    pub(crate) fn submit(&self, event: &Event<'_>) -> Submitted {
        let Some(text) = self.render(event) else { return Submitted::Done(true) };
        match &self.delivery {
            Delivery::Batch(batch) => {
                batch.add(text);
                Submitted::Done(true)
            }
            Delivery::Blocking { is_strict } => {
                let is_strict = *is_strict;
                match &self.output {
                    Output::Log(log) => {
                        let written = write_log(log, &text, &self.counts);
                        Submitted::Done(written || !is_strict)
                    }
                    Output::Webhook(webhook) => {
                        let (webhook, counts) = (Arc::clone(webhook), Arc::clone(&self.counts));
                        Submitted::Pending(Box::pin(async move { webhook.send(&[text], &counts).await || !is_strict }))
                    }
                }
            }
        }
    }

    /// The event as it is written here; nothing if it is too large.
    fn render(&self, event: &Event<'_>) -> Option<Bytes> {
        let format = match &self.output {
            Output::Log(log) => log.format(),
            Output::Webhook(_) => LogFormat::Json,
        };
        let write = |is_truncated: bool| match (format, &self.output) {
            (LogFormat::Legacy, _) => event.line().into_bytes(),
            (LogFormat::Json, Output::Log(_)) => {
                let members = event.members(is_truncated);
                let mut line = Vec::with_capacity(members.len() + TYPE.len() + 2);
                line.push(b'{');
                line.extend_from_slice(TYPE.as_bytes());
                line.extend_from_slice(&members);
                line.push(b'\n');
                line
            }
            (LogFormat::Json, Output::Webhook(_)) => {
                let mut item = vec![b'{'];
                item.extend_from_slice(&event.members(is_truncated));
                item
            }
        };
        let text = write(false);
        let Some(Truncation { max_event_bytes, .. }) = self.truncation else { return Some(text.into()) };
        if text.len() <= max_event_bytes {
            return Some(text.into());
        }
        let shorter = if event.head.level >= Level::Request { write(true) } else { text };
        if shorter.len() > max_event_bytes {
            self.counts.fail(Plugin::Truncate, 1, &"event is too large even after truncating");
            return None;
        }
        Some(shorter.into())
    }

    pub(crate) async fn close(&self) {
        if let Delivery::Batch(batch) = &self.delivery {
            batch.close().await;
        }
    }
}

pub(crate) fn write_log(log: &Log, text: &[u8], counts: &Counts) -> bool {
    let written = log.write(text);
    if let Err(error) = &written {
        counts.fail(Plugin::Log, 1, error);
    }
    written.is_ok()
}
