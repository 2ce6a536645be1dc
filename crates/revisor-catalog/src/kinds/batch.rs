//! `batch`: pods that come to an end.

mod cron_job;
mod job;

use super::Kind;
use super::pod_spec::PodPolicy;

pub(super) fn kind(plural: &str, policy: PodPolicy) -> Option<Kind> {
    Some(match plural {
        "cronjobs" => Kind::usual(cron_job::CronJobs { policy }),
        "jobs" => job::kind(policy),
        _ => return None,
    })
}
