//! `batch`: pods that come to an end.

mod cron_job;
mod job;

use super::{Kind, Terms};

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    let policy = terms.pods();
    Some(match plural {
        "cronjobs" => Kind::usual(cron_job::CronJobs { policy }),
        "jobs" => job::kind(policy),
        _ => return None,
    })
}
