//! `--audit-*`: by which policy requests are written down, and where to.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use clap::{Args, ValueEnum};
use revisor_audit::{
    AuditPolicy, Auditor, BackendOptions, BatchOptions, LogFormat, LogOptions, Mode, Throttle, Truncation,
    WebhookOptions,
};
use revisor_object::aggregate_message;

use crate::config_file::{Kind, Member, Type, read, strict_error};
use crate::duration::parse_duration;
use crate::kubeconfig::Kubeconfig;
use crate::webhook_users::current_webhook;

/// The one version of events that there is.
const VERSION: &str = "audit.k8s.io/v1";

const POLICY: Kind = Kind {
    name: "Policy",
    versions: &[VERSION],
    members: &[
        Member("metadata", Type::Any, &[]),
        Member("omitStages", Type::Texts, &[]),
        Member("omitManagedFields", Type::Bool, &[]),
        Member(
            "rules",
            Type::List,
            &[
                Member("level", Type::Text, &[]),
                Member("users", Type::Texts, &[]),
                Member("userGroups", Type::Texts, &[]),
                Member("verbs", Type::Texts, &[]),
                Member(
                    "resources",
                    Type::List,
                    &[
                        Member("group", Type::Text, &[]),
                        Member("resources", Type::Texts, &[]),
                        Member("resourceNames", Type::Texts, &[]),
                    ],
                ),
                Member("namespaces", Type::Texts, &[]),
                Member("nonResourceURLs", Type::Texts, &[]),
                Member("omitStages", Type::Texts, &[]),
                Member("omitManagedFields", Type::Bool, &[]),
            ],
        ),
    ],
};

/// Who waits for events to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeFlag {
    /// Nobody: they are gathered and written beside; what does not fit is counted and lost.
    Batch,
    /// Requests; if it fails, they go on.
    Blocking,
    /// Requests, and those that cannot be written when they come are refused.
    BlockingStrict,
}

/// How events look in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatFlag {
    Legacy,
    Json,
}

/// The flags of auditing.
#[derive(Debug, Args)]
pub(crate) struct AuditFlags {
    /// The file with the audit policy: of which requests how much is written down. Without it nothing is
    #[arg(long, value_name = "FILE")]
    audit_policy_file: Option<PathBuf>,

    /// The file that audit events are written to; `-` for standard output
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,

    /// How audit events look in the log: as JSON or as one line of text
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    audit_log_format: FormatFlag,

    /// The group and version of the events in the log
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    audit_log_version: String,

    /// How many days old audit logs are kept; 0 for ever
    #[arg(long, value_name = "DAYS", default_value_t = 366)]
    audit_log_maxage: u64,

    /// How many old audit logs are kept; 0 for all
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    audit_log_maxbackup: usize,

    /// After how many megabytes an audit log is put aside; 0 for never
    #[arg(long, value_name = "MEGABYTES", default_value_t = 100)]
    audit_log_maxsize: u64,

    /// Compress old audit logs
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    audit_log_compress: bool,

    /// Who waits for events to be written to the log
    #[arg(long, value_name = "MODE", default_value = "blocking")]
    audit_log_mode: ModeFlag,

    /// How many events may wait to be written to the log; in batch mode
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    audit_log_batch_buffer_size: usize,

    /// How many events are written to the log at once; in batch mode
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    audit_log_batch_max_size: usize,

    /// How long is waited for so many; in batch mode
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    audit_log_batch_max_wait: Duration,

    /// Bound how often batches are written to the log; in batch mode
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    audit_log_batch_throttle_enable: bool,

    /// How often in a second batches are written to the log; in batch mode
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0)]
    audit_log_batch_throttle_qps: f64,

    /// How many batches are written to the log at once after a pause; in batch mode
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    audit_log_batch_throttle_burst: usize,

    /// Leave objects out of events for the log that are too large
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    audit_log_truncate_enabled: bool,

    /// How large a batch for the log may be, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 10 << 20)]
    audit_log_truncate_max_batch_size: usize,

    /// How large an event for the log may be, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100 << 10)]
    audit_log_truncate_max_event_size: usize,

    /// The kubeconfig that says which webhook is told of audit events
    #[arg(long, value_name = "FILE")]
    audit_webhook_config_file: Option<PathBuf>,

    /// How long is waited before the webhook is told a second time
    #[arg(long, alias = "audit-webhook-batch-initial-backoff", value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    audit_webhook_initial_backoff: Duration,

    /// The group and version of the events for the webhook
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    audit_webhook_version: String,

    /// Who waits for the webhook
    #[arg(long, value_name = "MODE", default_value = "batch")]
    audit_webhook_mode: ModeFlag,

    /// How many events may wait for the webhook; in batch mode
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    audit_webhook_batch_buffer_size: usize,

    /// How many events the webhook is told of at once; in batch mode
    #[arg(long, value_name = "COUNT", default_value_t = 400)]
    audit_webhook_batch_max_size: usize,

    /// How long is waited for so many; in batch mode
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    audit_webhook_batch_max_wait: Duration,

    /// Bound how often the webhook is called; in batch mode
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    audit_webhook_batch_throttle_enable: bool,

    /// How often in a second the webhook is called; in batch mode
    #[arg(long, value_name = "NUMBER", default_value_t = 10.0)]
    audit_webhook_batch_throttle_qps: f64,

    /// How often the webhook is called at once after a pause; in batch mode
    #[arg(long, value_name = "COUNT", default_value_t = 15)]
    audit_webhook_batch_throttle_burst: usize,

    /// Leave objects out of events for the webhook that are too large
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    audit_webhook_truncate_enabled: bool,

    /// How large a batch for the webhook may be, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 10 << 20)]
    audit_webhook_truncate_max_batch_size: usize,

    /// How large an event for the webhook may be, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100 << 10)]
    audit_webhook_truncate_max_event_size: usize,
}

/// How one of the two is written to, as the flags say.
struct Way<'a> {
    plugin: &'a str,
    version: &'a str,
    mode: ModeFlag,
    batch: BatchOptions,
    truncation: (bool, Truncation),
}

impl AuditFlags {
    /// Who writes down what, if the flags want anything written down.
    pub(crate) fn open(&self) -> anyhow::Result<Option<Arc<Auditor>>> {
        let mut backends = Vec::new();
        if let Some(path) = &self.audit_log_path {
            let (mode, truncation) = self.log_way().check()?;
            backends.push(BackendOptions::Log(self.log_options(path), mode, truncation));
        }
        if let Some(path) = &self.audit_webhook_config_file {
            let (mode, truncation) = self.webhook_way().check()?;
            let opened = Kubeconfig::open(path).and_then(|kubeconfig| current_webhook(&kubeconfig));
            let (config, credentials) = opened.context("initializing audit webhook")?;
            let initial_backoff = self.audit_webhook_initial_backoff;
            let options = WebhookOptions { config, credentials: credentials.into(), initial_backoff };
            backends.push(BackendOptions::Webhook(options, mode, truncation));
        }
        let Some(path) = &self.audit_policy_file else {
            if !backends.is_empty() {
                tracing::warn!("without --audit-policy-file nothing is written down");
            }
            return Ok(None);
        };
        let policy = load_policy(path)?;
        if backends.is_empty() {
            return Ok(None);
        }
        Ok(Some(Auditor::new(policy, backends).context("cannot open the audit log")?))
    }

    fn log_options(&self, path: &Path) -> LogOptions {
        LogOptions {
            path: path.to_owned(),
            format: match self.audit_log_format {
                FormatFlag::Legacy => LogFormat::Legacy,
                FormatFlag::Json => LogFormat::Json,
            },
            max_age: self.audit_log_maxage,
            max_backups: self.audit_log_maxbackup,
            max_size: self.audit_log_maxsize,
            compress: self.audit_log_compress,
        }
    }

    fn log_way(&self) -> Way<'_> {
        let throttle =
            Throttle { per_second: self.audit_log_batch_throttle_qps, burst: self.audit_log_batch_throttle_burst };
        Way {
            plugin: "log",
            version: &self.audit_log_version,
            mode: self.audit_log_mode,
            batch: BatchOptions {
                buffer_size: self.audit_log_batch_buffer_size,
                max_size: self.audit_log_batch_max_size,
                max_wait: self.audit_log_batch_max_wait,
                throttle: self.audit_log_batch_throttle_enable.then_some(throttle),
            },
            truncation: (
                self.audit_log_truncate_enabled,
                Truncation {
                    max_event_bytes: self.audit_log_truncate_max_event_size,
                    max_batch_bytes: self.audit_log_truncate_max_batch_size,
                },
            ),
        }
    }

    fn webhook_way(&self) -> Way<'_> {
        let throttle = Throttle {
            per_second: self.audit_webhook_batch_throttle_qps,
            burst: self.audit_webhook_batch_throttle_burst,
        };
        Way {
            plugin: "webhook",
            version: &self.audit_webhook_version,
            mode: self.audit_webhook_mode,
            batch: BatchOptions {
                buffer_size: self.audit_webhook_batch_buffer_size,
                max_size: self.audit_webhook_batch_max_size,
                max_wait: self.audit_webhook_batch_max_wait,
                throttle: self.audit_webhook_batch_throttle_enable.then_some(throttle),
            },
            truncation: (
                self.audit_webhook_truncate_enabled,
                Truncation {
                    max_event_bytes: self.audit_webhook_truncate_max_event_size,
                    max_batch_bytes: self.audit_webhook_truncate_max_batch_size,
                },
            ),
        }
    }
}

impl Way<'_> {
    /// The same, if it can be (upstream: `AuditOptions.Validate`).
    fn check(self) -> anyhow::Result<(Mode, Option<Truncation>)> {
        let Way { plugin, version, mode, batch, truncation: (is_truncated, truncation) } = self;
        ensure!(version == VERSION, "invalid group version, allowed versions are [{VERSION:?}]");
        let Truncation { max_event_bytes: event, max_batch_bytes: whole } = truncation;
        ensure!(event > 0, "invalid audit truncate {plugin} max event size {event}, must be a positive number");
        ensure!(
            whole >= event,
            "invalid audit truncate {plugin} max batch size {whole}, must be greater than max event size ({event})"
        );
        let truncation = is_truncated.then_some(truncation);
        let mode = match mode {
            ModeFlag::Blocking => Mode::Blocking,
            ModeFlag::BlockingStrict => Mode::BlockingStrict,
            ModeFlag::Batch => {
                let BatchOptions { buffer_size, max_size, throttle, .. } = &batch;
                let positive = |what: &str| format!("invalid audit batch {plugin} {what}, must be a positive number");
                ensure!(*buffer_size > 0, positive(&format!("buffer size {buffer_size}")));
                ensure!(*max_size > 0, positive(&format!("max batch size {max_size}")));
                if let Some(Throttle { per_second, burst }) = throttle {
                    ensure!(*per_second > 0.0, positive(&format!("throttle QPS {per_second}")));
                    ensure!(*burst > 0, positive(&format!("throttle burst {burst}")));
                }
                Mode::Batch(batch)
            }
        };
        Ok((mode, truncation))
    }
}

fn load_policy(path: &Path) -> anyhow::Result<AuditPolicy> {
    let decoded = read(path).and_then(|text| POLICY.decode_leniently(&text));
    let read = decoded.and_then(|(policy, problems)| {
        if !problems.is_empty() {
            tracing::warn!(error = strict_error(&problems), "the audit policy has errors, which are passed over");
        }
        AuditPolicy::read(&policy).map_err(|errors| anyhow!("{}", aggregate_message(&errors)))
    });
    read.with_context(|| format!("loading audit policy file {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_is_wrong_names_the_file_and_the_place() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
        for (text, want) in [
            (format!("{head}rules: [{{level: All}}]\n"), "rules[0].level: Unsupported value"),
            ("kind: Policy\napiVersion: audit.k8s.io/v1beta1\n".to_owned(), "no kind \"Policy\" is registered"),
            (format!("{head}rules: [\n"), "line"),
        ] {
            std::fs::write(file.path(), &text).expect("written");
            let error = format!("{:#}", load_policy(file.path()).expect_err(&text));
            assert!(error.contains(&file.path().display().to_string()) && error.contains(want), "{error}");
        }
        // As in the original, what does not belong there stops nobody.
        std::fs::write(file.path(), format!("{head}rules: [{{level: None, user: [a]}}]\n")).expect("written");
        load_policy(file.path()).expect("is a policy");
    }

    #[test]
    fn ways_that_cannot_be_are_refused() {
        let way = |mode, buffer_size, event: usize| Way {
            plugin: "log",
            version: VERSION,
            mode,
            batch: BatchOptions { buffer_size, max_size: 1, max_wait: Duration::ZERO, throttle: None },
            truncation: (true, Truncation { max_event_bytes: event, max_batch_bytes: 100 }),
        };
        assert!(way(ModeFlag::Blocking, 0, 10).check().is_ok(), "what is not used is not looked at");
        for (way, want) in [
            (way(ModeFlag::Batch, 0, 10), "invalid audit batch log buffer size 0, must be a positive number"),
            (
                way(ModeFlag::Blocking, 0, 200),
                "invalid audit truncate log max batch size 100, must be greater than max event size (200)",
            ),
        ] {
            assert_eq!(way.check().expect_err(want).to_string(), want);
        }
    }
}
