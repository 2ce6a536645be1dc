//! How requests were authenticated and authorized, under the original's names
//! (`staging/src/k8s.io/apiserver/pkg/endpoints/filters/metrics.go`).

use std::array;
use std::sync::OnceLock;
use std::time::Duration;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, exponential_buckets,
};

use super::registered;

/// Users who are counted by their names; all others are counted together.
const NAMED: [&str; 5] = ["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"];

/// What became of the attempt to find out who makes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authentication<'a> {
    /// It is made by this user.
    Success(&'a str),
    /// There are no credentials, and it may not be anonymous.
    Failure,
    /// There are credentials, and they are not good.
    Error,
}

/// What became of the attempt to find out whether a request may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authorization {
    /// It may.
    Allowed,
    /// Somebody denied it.
    Denied,
    /// Nobody allowed it.
    NoOpinion,
    /// Somebody could not be asked.
    Error,
}

pub(super) struct AccessMetrics {
    users: IntCounterVec,
    authentication: Outcomes<3>,
    authorization: Outcomes<4>,
}

/// Attempts by what became of them, and how long they took.
struct Outcomes<const N: usize> {
    names: [&'static str; N],
    total: IntCounterVec,
    duration: HistogramVec,
    /// Those that there were: it is asked of every request.
    known: [OnceLock<(IntCounter, Histogram)>; N],
}

impl<const N: usize> Outcomes<N> {
    fn new(registry: &Registry, [total, duration]: [&str; 2], what: &str, names: [&'static str; N]) -> Outcomes<N> {
        let buckets = exponential_buckets(0.001, 2.0, 15).expect("the buckets grow");
        let seconds = HistogramOpts::new(duration, format!("Seconds that {what} took, by result")).buckets(buckets);
        Outcomes {
            names,
            total: registered(
                registry,
                IntCounterVec::new(Opts::new(total, format!("How often requests had {what}, by result")), &["result"]),
            ),
            duration: registered(registry, HistogramVec::new(seconds, &["result"])),
            known: array::from_fn(|_| OnceLock::new()),
        }
    }

    fn add(&self, at: usize, took: Duration) {
        let (total, duration) = self.known[at].get_or_init(|| {
            let labels = [self.names[at]];
            (self.total.with_label_values(&labels), self.duration.with_label_values(&labels))
        });
        total.inc();
        duration.observe(took.as_secs_f64());
    }
}

impl AccessMetrics {
    pub(super) fn new(registry: &Registry) -> AccessMetrics {
        let users =
            Opts::new("authenticated_user_requests", "Requests of users that are known, by their names or kinds");
        AccessMetrics {
            users: registered(registry, IntCounterVec::new(users, &["username"])),
            authentication: Outcomes::new(
                registry,
                ["authentication_attempts", "authentication_duration_seconds"],
                "authentication",
                ["success", "failure", "error"],
            ),
            authorization: Outcomes::new(
                registry,
                ["authorization_attempts_total", "authorization_duration_seconds"],
                "authorization",
                ["allowed", "denied", "no-opinion", "error"],
            ),
        }
    }

    pub(super) fn authenticated(&self, authentication: Authentication<'_>, took: Duration) {
        let at = match authentication {
            Authentication::Success(user) => {
                self.users.with_label_values(&[counted_name(user)]).inc();
                0
            }
            Authentication::Failure => 1,
            Authentication::Error => 2,
        };
        self.authentication.add(at, took);
    }

    pub(super) fn authorized(&self, authorization: Authorization, took: Duration) {
        self.authorization.add(authorization as usize, took);
    }
}

/// As what a user is counted (upstream: `compressUsername`).
fn counted_name(user: &str) -> &str {
    match NAMED.into_iter().find(|named| *named == user) {
        Some(named) => named,
        None if user.contains('@') => "email_id",
        None => "other",
    }
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    #[test]
    fn attempts_are_counted_by_what_became_of_them_and_users_by_their_kinds() {
        let registry = Registry::new();
        let metrics = AccessMetrics::new(&registry);
        for user in ["admin", "a@b.example", "system:anonymous", "jane"] {
            metrics.authenticated(Authentication::Success(user), Duration::from_millis(3));
        }
        metrics.authenticated(Authentication::Failure, Duration::ZERO);
        metrics.authenticated(Authentication::Error, Duration::ZERO);
        for authorization in
            [Authorization::Allowed, Authorization::Denied, Authorization::NoOpinion, Authorization::Error]
        {
            metrics.authorized(authorization, Duration::ZERO);
        }
        let mut text = String::new();
        TextEncoder::new().encode_utf8(&registry.gather(), &mut text).expect("can be written");
        for line in [
            "authenticated_user_requests{username=\"admin\"} 1",
            "authenticated_user_requests{username=\"email_id\"} 1",
            "authenticated_user_requests{username=\"other\"} 2",
            "authentication_attempts{result=\"success\"} 4",
            "authentication_attempts{result=\"failure\"} 1",
            "authentication_attempts{result=\"error\"} 1",
            "authentication_duration_seconds_bucket{result=\"success\",le=\"0.004\"} 4",
            "authorization_attempts_total{result=\"allowed\"} 1",
            "authorization_attempts_total{result=\"denied\"} 1",
            "authorization_attempts_total{result=\"no-opinion\"} 1",
            "authorization_attempts_total{result=\"error\"} 1",
            "authorization_duration_seconds_count{result=\"allowed\"} 1",
        ] {
            assert!(text.lines().any(|told| told == line), "{line} is not in\n{text}");
        }
    }
}
