//! [`SeenRequests`]: requests that were made lately, and what would be answered to them.

use revisor_catalog::{Resource, Verb};

use super::{Rehearsal, RehearsalEffect, RehearsalFinding};

/// Requests of one client for one version of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRequests {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The name of the resource in paths.
    pub plural: String,
    /// What the client calls itself; empty if nobody knows.
    pub agent: String,
    /// What it asked for last, where that is known.
    pub verb: Option<String>,
    /// How many there were; zero if nobody counted.
    pub requests: u64,
    /// When the last one came; empty if nobody knows.
    pub last: String,
}

impl Rehearsal {
    /// What becomes of requests like these.
    pub fn look_at_requests(&self, seen: &SeenRequests) -> Option<RehearsalFinding> {
        let SeenRequests { group, version, plural, .. } = seen;
        let prefix = format!("/registry/{group}/{plural}/");
        let served: Vec<&Resource> = match self.custom.get(&prefix) {
            Some(change) => change.after().served.iter().map(|known| &**known).collect(),
            None => {
                let known = self.catalog.resources().filter(|known| known.name() == (group, plural));
                known.map(|known| &**known).collect()
            }
        };
        let was_warned = |resource: &Resource| {
            let before =
                self.custom.get(&prefix)?.before().served.iter().find(|known| known.version == resource.version)?;
            before.deprecation.as_ref()
        };
        let asked = seen.told();
        let (effect, message) = match served.iter().find(|known| known.version == version.as_str()) {
            None => {
                let versions: Vec<&str> = served.iter().map(|known| known.version.as_str()).collect();
                let instead = match &versions[..] {
                    [] => "nor is any other version".to_owned(),
                    versions => format!("those that are served: {}", versions.join(", ")),
                };
                (RehearsalEffect::Gone, format!("{asked}; {version} is not served, {instead}"))
            }
            Some(resource) => {
                match (resource.custom().and_then(|custom| custom.frozen.as_ref()), &resource.deprecation) {
                    (Some(why), _) if seen.is_write() => (RehearsalEffect::Refused, format!("{asked}; {why}")),
                    (_, Some(notice)) if was_warned(resource) != Some(notice) => {
                        (RehearsalEffect::Warned, format!("{asked}; {}", notice.warning))
                    }
                    _ => return None,
                }
            }
        };
        let resource = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
        Some(RehearsalFinding::new(resource, "", effect, message))
    }
}

impl SeenRequests {
    fn is_write(&self) -> bool {
        let writes = [Verb::Create, Verb::Update, Verb::Patch];
        self.verb.as_ref().is_some_and(|verb| writes.iter().any(|write| write.as_str() == verb))
    }

    /// Who asked for what, and when.
    fn told(&self) -> String {
        let SeenRequests { agent, version, verb, requests, last, .. } = self;
        let agent = if agent.is_empty() { "somebody" } else { agent };
        let verb = verb.as_ref().map(|verb| format!(" (last to {verb})")).unwrap_or_default();
        let times = match requests {
            0 => String::new(),
            1 => " once".to_owned(),
            requests => format!(" {requests} times"),
        };
        let last = if last.is_empty() { String::new() } else { format!(", last at {last}") };
        format!("{agent} asked for {version}{times}{verb}{last}")
    }
}
