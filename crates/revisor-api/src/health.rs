//! `/healthz`, `/livez` and `/readyz`: named checks, and the text in which they report.
//!
//! The texts are read by probes and scripts, so they are the original's to the byte. Reasons for failure go to the
//! log and to the single-check paths, not to the public summary.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{Response, StatusCode};

use crate::answer::{no_such_page, text};
use crate::body::Body;
use crate::drain::Drain;

/// Looks whether something works, quickly and without waiting. The error says what does not.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// A named check.
#[derive(Clone)]
pub struct HealthCheck {
    name: String,
    /// The name by which several can be left out at once.
    group: Option<&'static str>,
    check: Check,
    endpoints: Endpoints,
    is_alarm: bool,
}

/// Which endpoints make a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoints {
    All,
    /// `/readyz`.
    Ready,
    /// `/healthz` and `/livez`.
    Alive,
}

/// The endpoints, in the order in which results are kept.
const ENDPOINTS: [&str; 3] = ["healthz", "livez", "readyz"];

impl Endpoints {
    fn include(self, endpoint: &str) -> bool {
        match self {
            Endpoints::All => true,
            Endpoints::Ready => endpoint == "readyz",
            Endpoints::Alive => endpoint != "readyz",
        }
    }
}

impl HealthCheck {
    /// A check that all three endpoints make.
    pub fn new(name: impl Into<String>, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> HealthCheck {
        HealthCheck {
            name: name.into(),
            group: None,
            check: Arc::new(check),
            endpoints: Endpoints::All,
            is_alarm: false,
        }
    }

    /// The same check, which can also be left out by the name of a group.
    #[must_use]
    pub fn in_group(self, group: &'static str) -> HealthCheck {
        HealthCheck { group: Some(group), ..self }
    }

    /// A check of something that was done before anybody is served, and cannot be undone.
    pub fn done(name: impl Into<String>) -> HealthCheck {
        HealthCheck::new(name, || Ok(()))
    }

    /// A check that `/readyz` does not make: only a restart would help.
    #[must_use]
    pub fn of_life(self) -> HealthCheck {
        HealthCheck { endpoints: Endpoints::Alive, ..self }
    }

    /// A check that only `/readyz` makes: restarting the server would not help.
    #[must_use]
    pub fn of_readiness(self) -> HealthCheck {
        HealthCheck { endpoints: Endpoints::Ready, ..self }
    }

    /// A check that only `/readyz` makes: restarting the server would not help.
    pub fn readiness(
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> HealthCheck {
        HealthCheck::new(name, check).of_readiness()
    }

    /// An alarm, which `/readyz` tells of without failing: only requests that reach the server can end it.
    pub fn alarm(
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> HealthCheck {
        HealthCheck { is_alarm: true, ..HealthCheck::readiness(name, check) }
    }
}

/// All checks of a server, in the order in which they are reported.
pub struct HealthChecks {
    checks: Vec<Tallied>,
}

/// A check and what came of it, at each endpoint.
struct Tallied {
    check: HealthCheck,
    results: [Results; 3],
}

/// What came of a check.
#[derive(Debug, Default)]
struct Results {
    successes: AtomicU64,
    failures: AtomicU64,
    is_well: AtomicBool,
}

impl Tallied {
    /// Makes the check and counts what came of it.
    fn run(&self, endpoint: &str) -> Result<(), String> {
        let result = (self.check.check)();
        let at = ENDPOINTS.iter().position(|known| *known == endpoint).unwrap_or_default();
        let results = &self.results[at];
        results.is_well.store(result.is_ok(), Ordering::Relaxed);
        let counter = if result.is_ok() { &results.successes } else { &results.failures };
        counter.fetch_add(1, Ordering::Relaxed);
        result
    }
}

impl HealthChecks {
    /// `ping`, then `checks`, then for readiness `shutdown`, which fails while the server is going away.
    pub fn new(drain: Drain, checks: Vec<HealthCheck>) -> HealthChecks {
        let mut all = vec![HealthCheck::new("ping", || Ok(()))];
        all.extend(checks);
        all.push(HealthCheck::readiness("shutdown", move || {
            if drain.draining() { Err("process is shutting down".to_owned()) } else { Ok(()) }
        }));
        let tallied = |check| Tallied { check, results: Default::default() };
        HealthChecks { checks: all.into_iter().map(tallied).collect() }
    }

    /// What came of the checks that were made, as `/metrics/slis` tells it.
    pub fn indicators(&self) -> String {
        let mut checks: Vec<&Tallied> = self.checks.iter().collect();
        checks.sort_by(|one, other| one.check.name.cmp(&other.check.name));
        let (mut last, mut total) = (String::new(), String::new());
        for Tallied { check, results } in checks {
            for (endpoint, results) in ENDPOINTS.iter().zip(results) {
                let (successes, failures) =
                    (results.successes.load(Ordering::Relaxed), results.failures.load(Ordering::Relaxed));
                if successes + failures == 0 {
                    continue;
                }
                let name = &check.name;
                let is_well = u8::from(results.is_well.load(Ordering::Relaxed));
                let _ = writeln!(last, "kubernetes_healthcheck{{name=\"{name}\",type=\"{endpoint}\"}} {is_well}");
                for (status, count) in [("error", failures), ("success", successes)] {
                    if count > 0 {
                        let labels = format!("name=\"{name}\",status=\"{status}\",type=\"{endpoint}\"");
                        let _ = writeln!(total, "kubernetes_healthchecks_total{{{labels}}} {count}");
                    }
                }
            }
        }
        if last.is_empty() {
            return String::new();
        }
        format!(
            "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n\
             # TYPE kubernetes_healthcheck gauge\n{last}\
             # HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck.\n\
             # TYPE kubernetes_healthchecks_total counter\n{total}"
        )
    }

    /// All paths that are about health.
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        ENDPOINTS.into_iter().flat_map(|endpoint| {
            let checks = self.checks.iter().filter(move |tallied| tallied.check.endpoints.include(endpoint));
            let single = checks.map(move |tallied| format!("/{endpoint}/{}", tallied.check.name));
            std::iter::once(format!("/{endpoint}")).chain(single)
        })
    }

    /// The answer to a request for `path` with this query, or nothing if the path is not about health.
    pub fn answer(&self, path: &str, query: Option<&str>) -> Option<Response<Body>> {
        let path = path.strip_prefix('/')?;
        let (endpoint, name) = match path.split_once('/') {
            Some((endpoint, name)) => (endpoint, Some(name)),
            None => (path, None),
        };
        let endpoint = ENDPOINTS.into_iter().find(|known| *known == endpoint)?;
        let mut checks = self.checks.iter().filter(|tallied| tallied.check.endpoints.include(endpoint));
        Some(match name {
            None => summary(endpoint, checks, &Query::parse(query.unwrap_or_default())),
            Some(name) => match checks.find(|tallied| tallied.check.name == name) {
                Some(tallied) => single(endpoint, tallied),
                None => no_such_page(),
            },
        })
    }
}

/// What a client may ask of a summary.
struct Query {
    verbose: bool,
    excluded: BTreeSet<String>,
}

impl Query {
    fn parse(query: &str) -> Query {
        let mut parsed = Query { verbose: false, excluded: BTreeSet::new() };
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "verbose" => parsed.verbose = true,
                "exclude" => drop(parsed.excluded.insert(value.into_owned())),
                _ => {}
            }
        }
        parsed
    }
}

fn summary<'a>(endpoint: &str, checks: impl Iterator<Item = &'a Tallied>, query: &Query) -> Response<Body> {
    let mut unknown = query.excluded.clone();
    let mut report = String::new();
    let mut failures = Vec::new();
    for tallied in checks {
        let name = &tallied.check.name;
        unknown.remove(name);
        let group = tallied.check.group.filter(|group| query.excluded.contains(*group));
        let line = if query.excluded.contains(name) {
            format!("[+]{name} excluded: ok\n")
        } else if let Some(group) = group {
            unknown.remove(group);
            format!("[+]{name} excluded with {group}: ok\n")
        } else if let Err(reason) = tallied.run(endpoint) {
            if tallied.check.is_alarm {
                format!("[!]{name} alarm: reason withheld\n")
            } else {
                failures.push(format!("{name}: {reason}"));
                format!("[-]{name} failed: reason withheld\n")
            }
        } else {
            format!("[+]{name} ok\n")
        };
        report.push_str(&line);
    }
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| format!("{name:?}")).collect();
        let names = names.join(",");
        let _ = writeln!(report, "warn: some health checks cannot be excluded: no matches for {names}");
    }
    if !failures.is_empty() {
        tracing::info!(endpoint, failures = failures.join("; "), "health check failed");
        let _ = writeln!(report, "{endpoint} check failed");
        return text(StatusCode::INTERNAL_SERVER_ERROR, report);
    }
    if !query.verbose {
        return text(StatusCode::OK, "ok");
    }
    let _ = writeln!(report, "{endpoint} check passed");
    text(StatusCode::OK, report)
}

fn single(endpoint: &str, tallied: &Tallied) -> Response<Body> {
    match tallied.run(endpoint) {
        Ok(()) => {
            let mut well = text(StatusCode::OK, "ok");
            well.headers_mut().remove(X_CONTENT_TYPE_OPTIONS);
            well
        }
        Err(reason) if tallied.check.is_alarm => text(StatusCode::OK, format!("alarm: {reason}\n")),
        Err(reason) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::Phase;
    use http::header::CONTENT_TYPE;

    #[test]
    fn texts() {
        let checks = |etcd: Result<(), String>, draining: bool| {
            let drain = Drain::new();
            if draining {
                drain.advance(Phase::Draining);
            }
            HealthChecks::new(
                drain,
                vec![
                    HealthCheck::new("etcd", move || etcd.clone()),
                    HealthCheck::readiness("informer-sync", || Ok(())),
                    HealthCheck::new("poststarthook/rbac/bootstrap-roles", || Ok(())),
                ],
            )
        };
        let well = checks(Ok(()), false);
        let ill = checks(Err("disk is gone".to_owned()), false);
        let leaving = checks(Ok(()), true);
        let full = HealthChecks::new(
            Drain::new(),
            vec![HealthCheck::alarm("quota", || Err("no room".to_owned())), HealthCheck::alarm("calm", || Ok(()))],
        );
        for (checks, path, query, status, want) in [
            (&well, "/healthz", "", 200, "ok"),
            (&well, "/livez", "", 200, "ok"),
            (&well, "/readyz", "", 200, "ok"),
            (
                &well,
                "/livez",
                "verbose",
                200,
                "[+]ping ok\n[+]etcd ok\n[+]poststarthook/rbac/bootstrap-roles ok\nlivez check passed\n",
            ),
            (
                &well,
                "/readyz",
                "verbose=true&exclude=etcd",
                200,
                "[+]ping ok\n[+]etcd excluded: ok\n[+]informer-sync ok\n[+]poststarthook/rbac/bootstrap-roles ok\n\
                 [+]shutdown ok\nreadyz check passed\n",
            ),
            (
                &well,
                "/healthz",
                "exclude=z&exclude=a&verbose",
                200,
                "[+]ping ok\n[+]etcd ok\n[+]poststarthook/rbac/bootstrap-roles ok\n\
                 warn: some health checks cannot be excluded: no matches for \"a\",\"z\"\nhealthz check passed\n",
            ),
            (
                &ill,
                "/healthz",
                "",
                500,
                "[+]ping ok\n[-]etcd failed: reason withheld\n[+]poststarthook/rbac/bootstrap-roles ok\n\
                 healthz check failed\n",
            ),
            (&ill, "/healthz", "exclude=etcd", 200, "ok"),
            (&ill, "/healthz/etcd", "", 500, "internal server error: disk is gone\n"),
            (&ill, "/healthz/ping", "", 200, "ok"),
            (&well, "/readyz/poststarthook/rbac/bootstrap-roles", "", 200, "ok"),
            (&well, "/livez/shutdown", "", 404, "404 page not found\n"),
            (&well, "/readyz/nope", "", 404, "404 page not found\n"),
            (&well, "/readyz/", "", 404, "404 page not found\n"),
            (&full, "/readyz", "", 200, "ok"),
            (
                &full,
                "/readyz",
                "verbose",
                200,
                "[+]ping ok\n[!]quota alarm: reason withheld\n[+]calm ok\n[+]shutdown ok\nreadyz check passed\n",
            ),
            (&full, "/readyz/quota", "", 200, "alarm: no room\n"),
            (&full, "/livez", "verbose", 200, "[+]ping ok\nlivez check passed\n"),
            (&leaving, "/livez", "", 200, "ok"),
            (&leaving, "/readyz/shutdown", "", 500, "internal server error: process is shutting down\n"),
            (
                &leaving,
                "/readyz",
                "exclude=poststarthook/rbac/bootstrap-roles",
                500,
                "[+]ping ok\n[+]etcd ok\n[+]informer-sync ok\n\
                 [+]poststarthook/rbac/bootstrap-roles excluded: ok\n[-]shutdown failed: reason withheld\n\
                 readyz check failed\n",
            ),
        ] {
            let response = checks.answer(path, Some(query)).expect("a path about health");
            assert_eq!(response.status(), status, "{path}?{query}");
            assert_eq!(response.headers()[CONTENT_TYPE], "text/plain; charset=utf-8", "{path}?{query}");
            // As in the original, only the texts of single checks that are well may be guessed at.
            let is_single_and_well = path[1..].contains('/') && want == "ok";
            assert_eq!(response.headers().contains_key(X_CONTENT_TYPE_OPTIONS), !is_single_and_well, "{path}?{query}");
            let Body::Full(body) = response.into_body() else { panic!("{path}: a text") };
            assert_eq!(body, want, "{path}?{query}");
        }
    }

    #[test]
    fn what_came_of_checks_is_counted() {
        let checks = HealthChecks::new(
            Drain::new(),
            vec![HealthCheck::new("etcd", || Err("gone".to_owned())), HealthCheck::done("alive").of_life()],
        );
        assert_eq!(checks.indicators(), "", "nobody has asked yet");
        for path in ["/readyz/etcd", "/readyz/etcd", "/livez/alive", "/readyz/alive"] {
            checks.answer(path, None).expect("a path about health");
        }
        let told = checks.indicators();
        for line in [
            "kubernetes_healthcheck{name=\"alive\",type=\"livez\"} 1\n",
            "kubernetes_healthcheck{name=\"etcd\",type=\"readyz\"} 0\n",
            "kubernetes_healthchecks_total{name=\"etcd\",status=\"error\",type=\"readyz\"} 2\n",
        ] {
            assert!(told.contains(line), "{line}: {told}");
        }
        assert!(!told.contains("ping"), "{told}");
    }

    #[test]
    fn other_paths_are_not_about_health() {
        let checks = HealthChecks::new(Drain::new(), Vec::new());
        for path in ["", "/", "/healthzz", "/api/healthz", "healthz"] {
            assert!(checks.answer(path, None).is_none(), "{path}");
        }
    }
}
