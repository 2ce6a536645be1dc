//! [`OwnConfigMaps`]: the ConfigMaps of kube-system by which others learn of this server: whom it trusts (upstream:
//! `clusterauthenticationtrust`), and since when it takes note of old tokens (upstream: `legacytokentracking`). Controllers
//! and other servers wait for them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use revisor_auth::joined_authorities;
use revisor_object::{Object, Value};
use revisor_registry::{Registry, RegistryError};
use rustls_pki_types::CertificateDer;
use time::{Date, Month, OffsetDateTime};
use tokio::sync::watch;
use tokio::time::Instant;

const NAMESPACE: &str = "kube-system";
const AUTHENTICATION: &str = "extension-apiserver-authentication";
const CLIENT_CA: &str = "client-ca-file";
const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
const SINCE: &str = "since";

/// How often it is looked whether they are as they should be: a look is two entries of a map.
const LOOKING: Duration = Duration::from_secs(1);

/// How long the second one stays away that somebody deleted, so that servers which do not want it have their say.
const TRACKING_AGAIN: Duration = Duration::from_secs(30 * 60);

/// Keeps them.
pub(crate) struct OwnConfigMaps {
    registry: Arc<Registry>,
    /// Whose client certificates the server trusts.
    authorities: watch::Receiver<Vec<CertificateDer<'static>>>,
    /// When the one about tokens was made last.
    tracked: Option<Instant>,
    /// What was last in the way.
    problem: String,
}

impl OwnConfigMaps {
    pub(crate) fn new(
        registry: Arc<Registry>,
        authorities: watch::Receiver<Vec<CertificateDer<'static>>>,
    ) -> OwnConfigMaps {
        OwnConfigMaps { registry, authorities, tracked: None, problem: String::new() }
    }

    /// The same with authorities that may change.
    pub(crate) fn following(self, authorities: watch::Receiver<Vec<CertificateDer<'static>>>) -> OwnConfigMaps {
        OwnConfigMaps { authorities, ..self }
    }

    /// Looks after them until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut ticks = tokio::time::interval(LOOKING);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look().await;
        }
    }

    /// Makes what is missing and puts right what is wrong.
    pub(crate) async fn look(&mut self) {
        let problems = match (self.authentication().await, self.tracking().await) {
            (Ok(()), Ok(())) => String::new(),
            (Err(error), _) | (_, Err(error)) if error.is_stop() => return,
            (Err(error), _) | (_, Err(error)) => error.to_string(),
        };
        // It is tried again soon, and told once.
        if !problems.is_empty() && problems != self.problem {
            tracing::warn!(error = problems, "cannot tell others in kube-system whom this server trusts");
        }
        self.problem = problems;
    }

    async fn authentication(&self) -> Result<(), RegistryError> {
        let required = self.authorities.borrow().clone();
        let now = SystemTime::now();
        self.registry.keep_config_map(NAMESPACE, AUTHENTICATION, |data| Some(trust(data, &required, now))).await
    }

    async fn tracking(&mut self) -> Result<(), RegistryError> {
        let today = OffsetDateTime::now_utc().date().to_string();
        let may_make = self.tracked.is_none_or(|made| made.elapsed() >= TRACKING_AGAIN);
        let mut is_made = false;
        let kept = self.registry.keep_config_map(NAMESPACE, TRACKING, |data| {
            is_made = data.is_none() && may_make;
            tracked_since(data, may_make, &today)
        });
        kept.await?;
        if is_made {
            self.tracked = Some(Instant::now());
        }
        Ok(())
    }
}

/// What the first one should say: all that it said of authorities that are still good, and the server's own.
fn trust(data: Option<&Object>, required: &[CertificateDer<'static>], now: SystemTime) -> Object {
    let known = data.and_then(|data| data.str(CLIENT_CA)).unwrap_or_default();
    let bundle = joined_authorities(known, required, now);
    let mut data = Object::new();
    if !bundle.is_empty() {
        data.insert(CLIENT_CA, bundle);
    }
    data
}

/// What the second one should say; `None` if it may stay as it is, or away.
fn tracked_since(data: Option<&Object>, may_make: bool, today: &str) -> Option<Object> {
    let mut wanted = match data {
        None if !may_make => return None,
        None => Object::new(),
        Some(data) if data.str(SINCE).is_some_and(is_date) => return None,
        Some(data) => data.clone(),
    };
    wanted.insert(SINCE, Value::from(today));
    Some(wanted)
}

/// Whether a text is a day: `2026-11-17`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let has_form = [year, month, day].map(|part| part.len()) == [4, 2, 2];
    let number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<u8>().ok()).flatten();
    let month = number(month).and_then(|month| Month::try_from(month).ok());
    let (Some(month), Some(day), Ok(year), true) = (month, number(day), year.parse::<u16>(), has_form) else {
        return false;
    };
    Date::from_calendar_date(year.into(), month, day).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_kept_and_what_is_none_is_replaced() {
        let data = |since: &str| Object::from_iter([("since", Value::from(since)), ("more", Value::from("x"))]);
        let made = |data: Option<&Object>, may_make| tracked_since(data, may_make, "2026-11-17");
        let since = |data: Option<Object>| data.and_then(|data| data.str(SINCE).map(str::to_owned));
        assert_eq!(since(made(None, true)).as_deref(), Some("2026-11-17"));
        assert_eq!(made(None, false), None, "one that was deleted stays away for a while");
        assert_eq!(made(Some(&data("2020-02-29")), true), None);
        for wrong in ["", "yesterday", "2021-02-29", "2021-2-9", "2021-13-01", "+021-01-01"] {
            let wanted = made(Some(&data(wrong)), false).expect(wrong);
            assert_eq!((wanted.str(SINCE), wanted.str("more")), (Some("2026-11-17"), Some("x")), "{wrong}");
        }
    }
}
