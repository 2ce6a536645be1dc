//! Whether an APIService is available: what its condition says, and how that is found out (upstream:
//! `AvailableConditionController`).

use std::time::Duration;

use http::Method;
use revisor_proxy::headers::RemoteUser;
use revisor_registry::ServiceStanding;

use crate::Aggregator;
use crate::aggregator::Fetch;
use crate::book::Registration;
use crate::remote::{Remote, Whereabouts};

/// How long a server has to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How often it is asked before it is taken not to answer.
const ATTEMPTS: usize = 5;

/// The most that is read of what it answers; nobody looks at it.
const MOST: usize = 8 << 20;

/// What the condition `Available` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Availability {
    pub(crate) is_available: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Availability {
    /// That of what this server serves itself.
    pub(crate) const LOCAL: [&'static str; 3] = ["True", "Local", "Local APIServices are always available"];

    fn unavailable(reason: &'static str, message: String) -> Availability {
        Availability { is_available: false, reason, message }
    }

    /// Whether it may be otherwise soon without any object that changes.
    pub(crate) fn may_recover(&self) -> bool {
        self.reason == "FailedDiscoveryCheck"
    }

    /// Status, reason and message.
    pub(crate) fn told(&self) -> [&str; 3] {
        [if self.is_available { "True" } else { "False" }, self.reason, &self.message]
    }
}

impl Aggregator {
    /// Finds out whether the server of an APIService can be used: whether its service should lead somewhere, and whether
    /// somebody answers there.
    pub(crate) async fn check(&self, registration: &Registration, remote: &Remote) -> Availability {
        let Whereabouts { namespace, service, port, .. } = &remote.whereabouts;
        let at = format!("service/{service} in {namespace:?}");
        match self.registry.service_standing(namespace, service, *port) {
            ServiceStanding::NotFound => {
                return Availability::unavailable("ServiceNotFound", format!("{at} is not present"));
            }
            ServiceStanding::NotListening => {
                let message = format!("{at} is not listening on port {port}");
                return Availability::unavailable("ServicePortError", message);
            }
            ServiceStanding::NoEndpoints => {
                let message = format!("cannot find endpointslices for {at}");
                return Availability::unavailable("EndpointsNotFound", message);
            }
            ServiceStanding::NoAddresses { port_name } => {
                let message = format!("endpointslices for {at} have no addresses with port name {port_name:?}");
                return Availability::unavailable("MissingEndpoints", message);
            }
            ServiceStanding::Usable => {}
        }
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            match self.probe(registration, remote).await {
                Ok(()) => {
                    let message = "all checks passed".to_owned();
                    return Availability { is_available: true, reason: "Passed", message };
                }
                Err(error) => why = error,
            }
            // One that does not answer at all is not waited for again and again.
            if why.contains("deadline exceeded") {
                break;
            }
        }
        Availability::unavailable("FailedDiscoveryCheck", why)
    }

    /// Asks for what every server has to serve.
    async fn probe(&self, registration: &Registration, remote: &Remote) -> Result<(), String> {
        let target = self.target(remote).map_err(|error| format!("{error:?}"));
        let path = match registration.path() {
            core if core == "/api" => format!("/api/{}", registration.version),
            path => path,
        };
        let url = target.map_or_else(|_| path.clone(), |target| format!("https://{}{path}", target.authority()));
        let groups = ["system:masters".to_owned()];
        // Who may do everything may do this.
        let user = RemoteUser { name: "system:kube-aggregator", uid: None, groups: &groups, extra: &[] };
        let (method, accept, known) = (Method::GET, "application/json, */*", None);
        let fetch = Fetch { method, path: &path, user, accept, known, body: None, timeout: TIMEOUT, most: MOST };
        let failing = |why: String| format!("failing or missing response from {url}: {why}");
        let fetched = self.fetch(remote, fetch).await.map_err(failing)?;
        match fetched.status.is_success() {
            true => Ok(()),
            false => Err(failing(format!("bad status from {url}: {}", fetched.status.as_u16()))),
        }
    }
}
