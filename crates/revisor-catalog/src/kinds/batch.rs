//! `batch`: pods that come to an end.

mod cron_job;
mod job;

use super::Kind;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "cronjobs" => Kind::usual(cron_job::CronJobs),
        "jobs" => job::kind(),
        _ => return None,
    })
}
