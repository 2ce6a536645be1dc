//! [`OwnConfigMaps`]: the ConfigMaps of kube-system by which others learn of this server: whom it trusts (upstream:
//! `clusterauthenticationtrust`), and since when it takes note of old tokens (upstream: `legacytokentracking`). Controllers
//! and other servers wait for them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use revisor_auth::joined_authorities;
use revisor_object::{Object, Value};
use revisor_registry::{Registry, RegistryError};
use revisor_version::Revision;
use rustls_pki_types::CertificateDer;
use time::{Date, Month, OffsetDateTime};
use tokio::sync::watch;
use tokio::time::Instant;

const NAMESPACE: &str = "kube-system";
const AUTHENTICATION: &str = "extension-apiserver-authentication";
const CLIENT_CA: &str = "client-ca-file";
const PROXY_CA: &str = "requestheader-client-ca-file";
const PROXY_UIDS: &str = "requestheader-uid-headers";
const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
const SINCE: &str = "since";

/// Members that are lists.
const PROXY_LISTS: [&str; 5] = [
    "requestheader-username-headers",
    PROXY_UIDS,
    "requestheader-group-headers",
    "requestheader-extra-headers-prefix",
    "requestheader-allowed-names",
];

/// How often it is looked whether they are as they should be: a look is two entries of a map.
const LOOKING: Duration = Duration::from_secs(1);

/// How often they are read although nothing has changed: authorities expire.
const READING: Duration = Duration::from_secs(60);

/// How long the second one stays away that somebody deleted, so that servers which do not want it have their say.
const TRACKING_AGAIN: Duration = Duration::from_secs(30 * 60);

/// The proxies that may name users in headers, as others are told of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrontProxies {
    /// Who vouches for them.
    pub(crate) authorities: Vec<CertificateDer<'static>>,
    /// The names of the members that list what they may be called and which headers they send.
    pub(crate) lists: Vec<(&'static str, Vec<String>)>,
}

/// Keeps them.
pub(crate) struct OwnConfigMaps {
    registry: Arc<Registry>,
    /// Whose client certificates the server trusts.
    authorities: watch::Receiver<Vec<CertificateDer<'static>>>,
    proxies: FrontProxies,
    /// When the one about tokens was made last.
    tracked: Option<Instant>,
    /// What was last in the way.
    problem: String,
    /// What was right when it was read last.
    right: Option<Right>,
}

/// What makes them what they should be.
struct Right {
    read: Instant,
    revisions: [Option<Revision>; 2],
    authorities: Vec<CertificateDer<'static>>,
}

impl OwnConfigMaps {
    pub(crate) fn new(
        registry: Arc<Registry>,
        authorities: watch::Receiver<Vec<CertificateDer<'static>>>,
        proxies: FrontProxies,
    ) -> OwnConfigMaps {
        OwnConfigMaps { registry, authorities, proxies, tracked: None, problem: String::new(), right: None }
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
        let before = self.revisions();
        if self.is_right(before) {
            return;
        }
        let authorities = self.authorities.borrow().clone();
        let problems = match (self.authentication().await, self.tracking().await) {
            (Ok(()), Ok(())) => String::new(),
            (Err(error), _) | (_, Err(error)) if error.is_stop() => return,
            (Err(error), _) | (_, Err(error)) => error.to_string(),
        };
        // It is tried again soon, and told once.
        if !problems.is_empty() && problems != self.problem {
            tracing::warn!(error = problems, "cannot tell others in kube-system whom this server trusts");
        }
        // What is missing may have to be made later.
        let is_right = problems.is_empty() && self.revisions() == before && before[1].is_some();
        self.right = is_right.then(|| Right { read: Instant::now(), revisions: before, authorities });
        self.problem = problems;
    }

    /// Which writes made them what they are.
    fn revisions(&self) -> [Option<Revision>; 2] {
        [AUTHENTICATION, TRACKING].map(|name| self.registry.config_map_revision(NAMESPACE, name))
    }

    /// Whether they are what they were when they were right, and nothing else has changed.
    fn is_right(&self, revisions: [Option<Revision>; 2]) -> bool {
        self.right.as_ref().is_some_and(|right| {
            right.revisions == revisions
                && right.read.elapsed() < READING
                && right.authorities == *self.authorities.borrow()
        })
    }

    async fn authentication(&self) -> Result<(), RegistryError> {
        let required = self.authorities.borrow().clone();
        let now = SystemTime::now();
        // Where there is nothing to say, it is not said.
        let wanted = |data: Option<&Object>| {
            let wanted = trust(data, &required, &self.proxies, now);
            (data.is_some() || !wanted.is_empty()).then_some(wanted)
        };
        self.registry.keep_config_map(NAMESPACE, AUTHENTICATION, wanted).await
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

/// What the first one should say: all that it said of authorities that are still good, and the server's own. Other
/// servers add theirs (upstream: `combinedClusterAuthenticationInfo`).
fn trust(
    data: Option<&Object>,
    required: &[CertificateDer<'static>],
    proxies: &FrontProxies,
    now: SystemTime,
) -> Object {
    let known = |name: &str| data.and_then(|data| data.str(name)).unwrap_or_default();
    let mut wanted = Object::new();
    let bundle = joined_authorities(known(CLIENT_CA), required, now);
    if !bundle.is_empty() {
        wanted.insert(CLIENT_CA, bundle);
    }
    let bundle = joined_authorities(known(PROXY_CA), &proxies.authorities, now);
    if bundle.is_empty() {
        return wanted;
    }
    wanted.insert(PROXY_CA, bundle);
    for name in PROXY_LISTS {
        // What is no list is replaced.
        let mut list: Vec<String> = serde_json::from_str(known(name)).unwrap_or_default();
        let own = proxies.lists.iter().filter(|(known, _)| *known == name).flat_map(|(_, own)| own);
        own.for_each(|own| {
            if !list.contains(own) {
                list.push(own.clone())
            }
        });
        if name != PROXY_UIDS || !list.is_empty() {
            wanted.insert(name, serde_json::json!(list).to_string());
        }
    }
    wanted
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
    let is_year = year.bytes().all(|byte| byte.is_ascii_digit());
    let (Some(month), Some(day), Ok(year), true) = (month, number(day), year.parse::<u16>(), has_form && is_year)
    else {
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

    #[test]
    fn what_other_servers_said_of_proxies_stays() {
        let said = Object::from_iter([("requestheader-allowed-names", Value::from(r#"["one"]"#))]);
        let key = rcgen::KeyPair::generate().expect("a key");
        let authority = rcgen::CertificateParams::default().self_signed(&key).expect("a certificate");
        let proxies = FrontProxies {
            authorities: vec![authority.der().clone()],
            lists: vec![("requestheader-allowed-names", vec!["one".to_owned(), "two".to_owned()])],
        };
        let wanted = trust(Some(&said), &[], &proxies, SystemTime::UNIX_EPOCH);
        assert_eq!(wanted.str("requestheader-allowed-names"), Some(r#"["one","two"]"#));
        assert_eq!(wanted.str("requestheader-group-headers"), Some("[]"));
        assert_eq!(wanted.str(PROXY_UIDS), None);
        let without = trust(Some(&said), &[], &FrontProxies::default(), SystemTime::UNIX_EPOCH);
        assert!(without.is_empty(), "nobody vouches for any proxy");
    }
}
