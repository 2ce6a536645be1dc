//! Who did what: which requests are written down by which policy, what is written of them, and where to.
//!
//! A request that is audited has a [`AuditRecord`], to which whoever serves it adds what it finds out. At each stage the
//! record makes an event and hands it to the backends of the [`Auditor`]: a log file, a webhook. What the flags and files
//! are called is the program's business, what a request is the API's.

mod auditor;
mod backend;
mod batch;
mod event;
mod log_file;
mod policy;
mod record;
mod stage;
mod webhook;

pub use auditor::{AuditSample, Auditor};
pub use backend::{BackendOptions, Mode, Submitted, Truncation};
pub use batch::{BatchOptions, Throttle};
pub use log_file::{LogFormat, LogOptions};
pub use policy::{AuditPolicy, RequestAudit};
pub use record::{AuditRecord, AuditedRequest, MAX_OBJECT};
pub use stage::{Level, Stage, StageSet};
pub use webhook::WebhookOptions;
