//! [`Migration`]: a StorageVersionMigration as its controller sees it, and how its status is told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use revisor_catalog::Resource;
use revisor_object::{Object, Value, parse_json};
use revisor_registry::{PatchKind, Place, Registry, RegistryError, WriteOptions, present_item};
use revisor_schema::{Precision, format_timestamp};
use revisor_version::Revision;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::GroupResource;
use crate::controllers::{Controller, FIELD_MANAGER};

const RUNNING: &str = "Running";
const SUCCEEDED: &str = "Succeeded";
const FAILED: &str = "Failed";

/// How often a status is written anew because others wrote it in between.
const MAX_ATTEMPTS: usize = 10;

/// A migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Migration {
    pub(super) name: String,
    pub(super) uid: String,
    /// What is to be migrated.
    pub(super) resource: GroupResource,
    created: String,
    is_running: bool,
    /// Whether it has succeeded or failed.
    pub(super) is_over: bool,
    /// The version of the state that it began with: what was written later was written as it is to be.
    pub(super) begun: Option<Revision>,
}

impl Migration {
    /// Reads one; nothing if it is none that this server would have stored.
    pub(super) fn read(bytes: &[u8]) -> Option<Migration> {
        let Ok(Value::Object(object)) = parse_json(bytes).map(|parsed| parsed.value) else { return None };
        let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let is = |kind: &str| is_true(object.object("status"), kind);
        Some(Migration {
            name: text(&["metadata", "name"]),
            uid: text(&["metadata", "uid"]),
            resource: (text(&["spec", "resource", "group"]), text(&["spec", "resource", "resource"])),
            created: text(&["metadata", "creationTimestamp"]),
            is_running: is(RUNNING),
            is_over: is(SUCCEEDED) || is(FAILED),
            begun: text(&["status", "resourceVersion"]).parse().ok().and_then(Revision::new),
        })
    }

    /// Whose turn it is: that of the one that runs, then of the oldest.
    pub(super) fn turn(&self) -> (bool, &str, &str) {
        (!self.is_running, &self.created, &self.name)
    }

    /// Whether it was made so shortly ago.
    pub(super) fn is_younger_than(&self, age: Duration, now: OffsetDateTime) -> bool {
        OffsetDateTime::parse(&self.created, &Rfc3339).is_ok_and(|created| created + age > now)
    }

    fn gone(&self, migrations: &Arc<Resource>) -> RegistryError {
        RegistryError::NotFound { resource: migrations.clone(), name: self.name.clone() }
    }

    /// Writes conditions into its status, and which state it began with. What is said already is not written.
    ///
    /// # Errors
    /// It is not found if it was deleted, or is over by somebody else's word.
    pub(super) async fn tell(
        &self,
        registry: &Registry,
        migrations: &Arc<Resource>,
        conditions: &[Condition],
        begun: Option<Revision>,
        now: OffsetDateTime,
    ) -> Result<(), RegistryError> {
        let place = Place { resource: migrations, namespace: None, name: Some(&self.name) };
        for attempt in 1.. {
            let item = registry.cache_of(migrations).get(&migrations.key(None, &self.name));
            let Some(item) = item else { return Err(self.gone(migrations)) };
            let parsed = parse_json(&present_item(migrations, &item)).map(|parsed| parsed.value);
            let Ok(Value::Object(object)) = parsed else { return Err(RegistryError::Unreadable) };
            let known = Migration::read(item.bytes()).filter(|known| known.uid == self.uid && !known.is_over);
            if known.is_none() {
                return Err(self.gone(migrations));
            }
            let mut status = object.object("status").cloned().unwrap_or_default();
            let told = if migrations.version == "v1alpha1" { "lastUpdateTime" } else { "lastTransitionTime" };
            conditions.iter().for_each(|condition| condition.put(&mut status, told, now));
            if let Some(begun) = begun.filter(|_| !status.contains("resourceVersion")) {
                status.insert("resourceVersion", begun.to_string());
            }
            if Some(&status) == object.object("status") {
                return Ok(());
            }
            let version: Object = [("resourceVersion", Value::from(item.revision().to_string()))].into_iter().collect();
            let patch: Object =
                [("metadata", Value::from(version)), ("status", Value::from(status))].into_iter().collect();
            let (subresource, account) = (Some("status"), Controller::StorageVersionMigrator.actor());
            let options = WriteOptions { subresource, field_manager: FIELD_MANAGER, ..account.options() };
            let text = Value::Object(patch).to_json();
            match registry.patch(place, PatchKind::Merge, text.as_bytes(), options).await {
                Err(RegistryError::Conflict { .. }) if attempt < MAX_ATTEMPTS => {
                    registry.cache().freshen().await?;
                }
                done => return done.map(drop),
            }
        }
        Ok(())
    }
}

fn is_true(status: Option<&Object>, kind: &str) -> bool {
    let mut conditions = status.map(|status| status.array("conditions")).unwrap_or_default().iter();
    let is = |condition: &&Value| condition.as_object().and_then(|condition| condition.str("type")) == Some(kind);
    conditions.find(is).and_then(Value::as_object).is_some_and(|found| found.str("status") == Some("True"))
}

/// How far a migration has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// How many objects are stored as they are to be.
    pub(super) done: usize,
    /// How many have to be looked at yet, or could not be stored anew.
    pub(super) left: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} done, {} left", self.done, self.left)
    }
}

/// A condition of a migration. Types and reasons are the original's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Condition {
    pub(super) fn running(tally: Tally, trouble: &str) -> Condition {
        let message = format!("The migration is running: {tally}{trouble}");
        Condition { kind: RUNNING, status: "True", reason: "MigrationRunning", message }
    }

    pub(super) fn completed() -> Condition {
        let message = "Migration completed".to_owned();
        Condition { kind: RUNNING, status: "False", reason: "MigrationCompleted", message }
    }

    pub(super) fn succeeded(tally: Tally) -> Condition {
        let message = tally.to_string();
        Condition { kind: SUCCEEDED, status: "True", reason: "StorageVersionMigrationSucceeded", message }
    }

    pub(super) fn failed(tally: Option<Tally>, why: &str) -> Condition {
        let message = tally.map_or_else(|| why.to_owned(), |tally| format!("{tally}: {why}"));
        Condition { kind: FAILED, status: "True", reason: "StorageVersionMigrationFailed", message }
    }

    /// Puts it in place of the one of its kind. The time, for which versions have different names, stays unless the truth
    /// changed.
    fn put(&self, status: &mut Object, told: &str, now: OffsetDateTime) {
        let mut conditions = status.array("conditions").to_vec();
        let is = |known: &&mut Object| known.str("type") == Some(self.kind);
        let mut fresh = Object::new();
        let known = conditions.iter_mut().filter_map(Value::as_object_mut).find(is);
        let is_new = known.is_none();
        let condition = known.unwrap_or(&mut fresh);
        if condition.str("status") != Some(self.status) {
            condition.insert(told, format_timestamp(now, Precision::Seconds));
        }
        for (name, value) in [("type", self.kind), ("status", self.status), ("reason", self.reason)] {
            condition.insert(name, value);
        }
        condition.insert("message", self.message.as_str());
        if is_new {
            conditions.push(Value::Object(fresh));
        }
        status.insert("conditions", conditions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migration(created: &str, name: &str, conditions: &[(&str, &str)]) -> Migration {
        let condition = |(kind, status): &(&str, &str)| format!(r#"{{"type":"{kind}","status":"{status}"}}"#);
        let conditions: Vec<String> = conditions.iter().map(condition).collect();
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","uid":"u","creationTimestamp":"{created}"}},
                "spec":{{"resource":{{"group":"g","resource":"rs"}}}},
                "status":{{"resourceVersion":"7","conditions":[{}]}}}}"#,
            conditions.join(",")
        );
        Migration::read(text.as_bytes()).expect("is one")
    }

    #[test]
    fn the_one_that_runs_comes_first_and_then_the_oldest() {
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let mut all = [
            migration(late, "a", &[]),
            migration(early, "c", &[(RUNNING, "False")]),
            migration(early, "b", &[]),
            migration(late, "z", &[(RUNNING, "True")]),
        ];
        all.sort_by(|one, other| one.turn().cmp(&other.turn()));
        assert_eq!(all.each_ref().map(|known| known.name.as_str()), ["z", "b", "c", "a"]);
        assert!(all.iter().all(|known| !known.is_over && known.begun == Revision::new(7)));
        for kind in [SUCCEEDED, FAILED] {
            assert!(migration(early, "a", &[(kind, "True")]).is_over);
            assert!(!migration(early, "a", &[(kind, "False")]).is_over);
        }
    }

    #[test]
    fn a_condition_takes_the_place_of_the_one_before() {
        let at = |seconds| OffsetDateTime::from_unix_timestamp(seconds).expect("a time");
        let (some, all) = (Tally { done: 1, left: 2 }, Tally { done: 3, left: 0 });
        let mut status = Object::new();
        Condition::running(some, "").put(&mut status, "lastTransitionTime", at(1));
        Condition::running(some, "; trying again: x").put(&mut status, "lastTransitionTime", at(2));
        let running = r#"{"lastTransitionTime":"1970-01-01T00:00:01Z","message":"The migration is running: 1 done, 2 left; trying again: x","reason":"MigrationRunning","status":"True","type":"Running"}"#;
        assert_eq!(Value::Object(status.clone()).to_json(), format!(r#"{{"conditions":[{running}]}}"#));
        Condition::completed().put(&mut status, "lastTransitionTime", at(3));
        Condition::succeeded(all).put(&mut status, "lastTransitionTime", at(3));
        let told: Vec<String> = (status.array("conditions").iter().filter_map(Value::as_object))
            .map(|known| {
                ["type", "status", "message", "lastTransitionTime"].map(|name| known.str(name).unwrap_or("")).join(" ")
            })
            .collect();
        let time = "1970-01-01T00:00:03Z";
        let want =
            [format!("Running False Migration completed {time}"), format!("Succeeded True 3 done, 0 left {time}")];
        assert_eq!(told, want);
        assert_eq!(Condition::failed(Some(some), "x").message, "1 done, 2 left: x");
        assert_eq!(Condition::failed(None, "x").message, "x");
    }
}
