//! What ImagePolicyWebhook is told: in a form of its own, without kind and version.

use std::time::Duration;

use anyhow::{Context, bail};
use revisor_object::Value;
use revisor_registry::ImagePolicyConfig;

use crate::kubeconfig::Kubeconfig;
use crate::webhook_users::current_webhook;

/// A time that can be told: what it is called, what it is if it is not told, and within which bounds.
struct Time {
    field: &'static str,
    unit: Duration,
    default: Duration,
    least: Duration,
    most: Duration,
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const RETRY_BACKOFF: Time = Time {
    field: "retryBackoff",
    unit: Duration::from_millis(1),
    default: Duration::from_millis(500),
    least: Duration::from_nanos(1),
    most: seconds(300),
};
const ALLOW_TTL: Time =
    Time { field: "allowTTL", unit: seconds(1), default: seconds(300), least: seconds(1), most: seconds(1800) };
const DENY_TTL: Time =
    Time { field: "denyTTL", unit: seconds(1), default: seconds(30), least: seconds(1), most: seconds(1800) };

pub(super) fn read(told: &Value) -> anyhow::Result<ImagePolicyConfig> {
    let policy = told.as_object().and_then(|told| told.object("imagePolicy"));
    let Some(policy) = policy else { bail!("imagePolicy: Required value") };
    let time = |time: Time| -> anyhow::Result<Duration> {
        let told = match policy.get(time.field) {
            None | Some(Value::Null) => 0,
            Some(value) => {
                value.as_i64().with_context(|| format!("imagePolicy.{}: it is no whole number", time.field))?
            }
        };
        let length = match told {
            // Never, and whatever is usual.
            -1 => return Ok(Duration::ZERO),
            0 => return Ok(time.default),
            told => u32::try_from(told).ok().and_then(|told| time.unit.checked_mul(told)),
        };
        length.filter(|length| (time.least..=time.most).contains(length)).with_context(|| {
            let (least, most) = (time.least, time.most);
            format!("imagePolicy.{}: valid value is between {least:?} and {most:?}, got {told}", time.field)
        })
    };
    let (retry_backoff, allow_ttl, deny_ttl) = (time(RETRY_BACKOFF)?, time(ALLOW_TTL)?, time(DENY_TTL)?);
    let default_allow = match policy.get("defaultAllow") {
        None | Some(Value::Null) => false,
        Some(value) => value.as_bool().context("imagePolicy.defaultAllow: it is neither true nor false")?,
    };
    let file = policy.str("kubeConfigFile").unwrap_or_default();
    let kubeconfig = Kubeconfig::open(file.as_ref()).context("imagePolicy.kubeConfigFile")?;
    let (webhook, credentials) = current_webhook(&kubeconfig).context("imagePolicy.kubeConfigFile")?;
    Ok(ImagePolicyConfig {
        webhook,
        credentials: credentials.into(),
        allow_ttl,
        deny_ttl,
        retry_backoff,
        default_allow,
    })
}
