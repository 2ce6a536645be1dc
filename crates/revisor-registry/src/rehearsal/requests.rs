//! [`SeenRequests`]: requests that were made lately, and what would be answered to them.

use revisor_catalog::{Resource, Verb};
use revisor_object::{Object, Value};
use revisor_schema::{Precision, format_timestamp};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::{Rehearsal, RehearsalEffect, RehearsalFinding};
use crate::Decoded;
use crate::version_usage::RECORDS;

/// For so long before the last of all requests one counts as made lately.
const LATELY: Duration = Duration::DAY;

/// Requests of one client for one version of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
    /// When the last one came, where that is known.
    pub last: Option<OffsetDateTime>,
    /// Whether its client is warned already.
    pub is_warned: bool,
}

impl SeenRequests {
    /// What the keys of all records begin with.
    pub const RECORDS: &str = RECORDS;

    /// What a server has written down in its store, if this is the key of such a record.
    pub fn recorded(key: &str, stored: &[u8]) -> Vec<SeenRequests> {
        let mut place = key.strip_prefix(RECORDS).unwrap_or_default().split('/');
        match (place.next(), place.next(), Decoded::stored(stored)) {
            (Some(group), Some(plural), Ok(record)) => {
                SeenRequests::of_versions(group, plural, record.array("versions"))
            }
            _ => Vec::new(),
        }
    }

    /// What a version report tells.
    pub fn reported(report: &Object) -> Vec<SeenRequests> {
        let status = |name: &str| report.at(&["status", name]);
        let text = |name: &str| status(name).and_then(Value::as_str).unwrap_or_default();
        let versions = status("versions").and_then(Value::as_array).unwrap_or_default();
        SeenRequests::of_versions(text("group"), text("resource"), versions)
    }

    fn of_versions(group: &str, plural: &str, versions: &[Value]) -> Vec<SeenRequests> {
        let mut seen = Vec::new();
        for version in versions.iter().filter_map(Value::as_object) {
            for client in version.array("clients").iter().filter_map(Value::as_object) {
                let last = client.str("lastRequestTime").and_then(|last| OffsetDateTime::parse(last, &Rfc3339).ok());
                seen.push(SeenRequests {
                    group: group.to_owned(),
                    version: version.str("name").unwrap_or_default().to_owned(),
                    plural: plural.to_owned(),
                    agent: client.str("userAgent").unwrap_or_default().to_owned(),
                    verb: client.str("lastVerb").map(str::to_owned),
                    requests: client.get("requests").and_then(Value::as_i64).map_or(0, i64::unsigned_abs),
                    last,
                    is_warned: false,
                });
            }
        }
        seen
    }

    /// Those within a day before the last of them all, and those of which nobody knows when they were.
    pub fn lately(mut seen: Vec<SeenRequests>) -> Vec<SeenRequests> {
        let last = seen.iter().filter_map(|seen| seen.last).max();
        seen.retain(|seen| seen.last.zip(last).is_none_or(|(one, last)| last - one < LATELY));
        seen
    }
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
                    (_, Some(notice)) if !seen.is_warned && was_warned(resource) != Some(notice) => {
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
        let SeenRequests { agent, version, verb, requests, .. } = self;
        let agent = if agent.is_empty() { "somebody" } else { agent };
        let verb = verb.as_ref().map(|verb| format!(" (last to {verb})")).unwrap_or_default();
        let times = match requests {
            0 => String::new(),
            1 => " once".to_owned(),
            requests => format!(" {requests} times"),
        };
        let last = self.last.map(|last| format!(", last at {}", format_timestamp(last, Precision::Seconds)));
        let last = last.unwrap_or_default();
        format!("{agent} asked for {version}{times}{verb}{last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &[u8] = br#"{"definition":"uid","since":"2026-11-01T00:00:00.000000Z","versions":[
        {"name":"v1beta1","requests":9,"lastRequestTime":"2026-11-16T02:14:09.000000Z","clients":[
            {"userAgent":"widget-operator/0.9","requests":7,"lastRequestTime":"2026-11-16T02:14:09.000000Z","lastVerb":"watch"},
            {"userAgent":"old/1","requests":2,"lastRequestTime":"2026-11-14T00:00:00.000000Z","lastVerb":"update"}]},
        {"name":"v1","requests":0,"clients":[]}]}"#;

    #[test]
    fn what_servers_write_down_is_read_and_what_is_long_ago_is_left_out() {
        let seen = SeenRequests::recorded("/registry/versionusage/example.com/widgets/server-1", RECORD);
        let told: Vec<String> = seen.iter().map(SeenRequests::told).collect();
        assert_eq!(
            told,
            [
                "widget-operator/0.9 asked for v1beta1 7 times (last to watch), last at 2026-11-16T02:14:09Z",
                "old/1 asked for v1beta1 2 times (last to update), last at 2026-11-14T00:00:00Z",
            ]
        );
        assert_eq!((&*seen[0].group, &*seen[0].plural), ("example.com", "widgets"));
        assert!(seen[1].is_write() && !seen[0].is_write());
        assert_eq!(SeenRequests::lately(seen.clone()), seen[..1]);
        let unknown = SeenRequests { version: "v1".to_owned(), ..SeenRequests::default() };
        assert_eq!(SeenRequests::lately(vec![unknown.clone()]), [unknown], "nobody knows when that was");
        for (key, record) in [
            ("/registry/pods/default/a", RECORD),
            ("/registry/versionusage/example.com/widgets/s", b"no record".as_slice()),
            ("/registry/versionusage/", b"{}"),
        ] {
            assert_eq!(SeenRequests::recorded(key, record), [], "{key}");
        }
    }
}
