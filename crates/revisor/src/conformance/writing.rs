//! What writes do to versions, tried in a namespace of its own ([`Ground`]) on objects that make nothing run
//! (`tables/conformance_objects.yaml`).

use std::time::Duration;

use http::Method;
use revisor_object::{Object, Value, parse_yaml};

use super::position::{Position, text_of};
use super::probe::{Probe, Query, Reply};
use super::reading::{at_least, exactly};
use super::report::Findings;
use super::watching::{Event, Order};
use crate::cluster::{Cluster, ClusterError, Events, Served};

const OBJECTS: &str = include_str!("../../tables/conformance_objects.yaml");

/// Where namespaces are.
const NAMESPACES: &str = "/api/v1/namespaces";

/// How the names of the objects that are made begin.
const NAME_PREFIX: &str = "revisor-conformance-";

/// The label that the writes change.
const LABEL: &str = "revisor.dev/conformance";

/// How long events of writes that are done may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the removal of the namespace is waited for, and how long before it is asked for again.
const REMOVAL: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);

/// How often a write that changes nothing is tried again because somebody else changed the object.
const TRIES: usize = 5;

/// A namespace of its own, which is gone when the check is over.
pub(super) struct Ground {
    pub(super) namespace: String,
    objects: Object,
}

impl Ground {
    pub(super) async fn make(cluster: &Cluster) -> anyhow::Result<Ground> {
        let Value::Object(objects) = parse_yaml(OBJECTS.as_bytes())?.value else {
            anyhow::bail!("the table of objects is no object");
        };
        let metadata: Object = [("generateName", Value::from("revisor-conformance-"))].into_iter().collect();
        let mut namespace = Object::default();
        namespace.insert("apiVersion", "v1");
        namespace.insert("kind", "Namespace");
        namespace.insert("metadata", metadata);
        let made = cluster.send(Method::POST, NAMESPACES, Some(&Value::Object(namespace))).await?;
        let name = made.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Ground { namespace: name, objects })
    }

    /// Removes the namespace with all that is in it. Answers what is left to be said of that.
    pub(super) async fn remove(&self, cluster: &Cluster) -> Option<String> {
        let path = format!("{NAMESPACES}/{}", self.namespace);
        match cluster.send(Method::DELETE, &path, None).await {
            Ok(_) => {}
            Err(error) if error.code() == Some(404) => return None,
            Err(error) => return Some(format!("the namespace {} could not be removed: {error}", self.namespace)),
        }
        let gone = async {
            while !cluster.get(&path).await.is_err_and(|error| error.code() == Some(404)) {
                tokio::time::sleep(PAUSE).await;
            }
        };
        let told = "is being removed; that needs the controllers of the cluster to run";
        let waited = tokio::time::timeout(REMOVAL, gone).await;
        waited.err().map(|_| format!("the namespace {} {told}", self.namespace))
    }

    /// The object to write for a resource, if one is known.
    fn object(&self, served: &Served) -> Option<Object> {
        let text = Value::Object(self.objects.object(&served.name())?.clone()).to_json();
        let text = text.replace("{namespace}", &self.namespace);
        let Ok(Value::Object(mut object)) = parse_yaml(text.as_bytes()).map(|parsed| parsed.value) else { return None };
        object.insert("apiVersion", served.api_version());
        object.insert("kind", &*served.kind);
        let metadata: Object = [("name", Value::from(name_for(served)))].into_iter().collect();
        object.insert("metadata", metadata);
        Some(object)
    }
}

/// What the object of a resource is called. Resources are tried side by side, so no two share a name: whoever deletes a
/// Service also deletes the Endpoints that are called as it is.
fn name_for(served: &Served) -> String {
    format!("{NAME_PREFIX}{}", served.plural)
}

/// Whether writes have later versions, and whether reads, lists and watches know them.
pub(super) async fn writes(probe: &Probe<'_>, ground: &Ground) -> Result<Findings, ClusterError> {
    let mut found = Findings::default();
    let Some(object) = ground.object(probe.served).filter(|_| probe.served.can("create")) else {
        found.skip("no object is known that could be made without doing harm");
        return Ok(found);
    };
    let start = match probe.list(&[("limit", "1")]).await? {
        Reply::Object(list) => Position::of(&list),
        Reply::Refused { error, .. } => {
            found.fault(probe.list_path(&[]), "a list of the new namespace", error);
            return Ok(found);
        }
    };
    let Ok(start) = start else {
        found.skip("the version of its list is none");
        return Ok(found);
    };
    let from = start.to_string();
    let watched = [("watch", "true"), ("resourceVersion", &*from), ("timeoutSeconds", "120")];
    let mut events = match probe.watch(&watched).await {
        Ok(events) => events,
        Err(error) if error.code().is_some() => {
            found.fault(probe.list_path(&watched), "a watch", error);
            return Ok(found);
        }
        Err(error) => return Err(error),
    };
    let name = name_for(probe.served);
    let done = Writing { probe, name: &name, found: &mut found, start }.run(object).await?;
    if let Some(written) = done {
        follow(&mut events, &name, Order::after(probe.list_path(&watched), start), &written, &mut found).await;
    }
    Ok(found)
}

/// The versions that the writes of one object had.
struct Written {
    created: Position,
    changed: Position,
}

struct Writing<'w, 'c> {
    probe: &'w Probe<'c>,
    name: &'w str,
    found: &'w mut Findings,
    start: Position,
}

impl Writing<'_, '_> {
    /// Makes, changes and deletes the object; `None` if it could not be made.
    async fn run(&mut self, object: Object) -> Result<Option<Written>, ClusterError> {
        let (collection, path) = (self.probe.list_path(&[]), self.probe.object_path(self.name, &[]));
        let cluster = self.probe.cluster;
        let made = Reply::of(cluster.send(Method::POST, &collection, Some(&Value::Object(object))).await)?;
        let made = match made {
            Reply::Object(made) => made,
            Reply::Refused { error, .. } => {
                self.found.skip(format!("it cannot be made here: {error}"));
                return Ok(None);
            }
        };
        let Some(created) = self.later(&format!("POST {collection}"), &made, self.start) else { return Ok(None) };
        self.known(created, None).await?;
        let Some(changed) = self.change(&path, created).await? else { return Ok(None) };
        self.known(changed, Some("changed")).await?;
        self.changes_nothing(&path).await?;
        self.conflicts(&path, created).await?;
        // The list of the moment when it was made shows it as it was then.
        self.listed_at(created).await?;
        let deleted = cluster
            .send(Method::DELETE, &format!("{path}?gracePeriodSeconds=0&propagationPolicy=Background"), None)
            .await;
        if let Reply::Refused { error, .. } = Reply::of(deleted)? {
            self.found.fault(format!("DELETE {path}"), "success", error);
            return Ok(None);
        }
        Ok(Some(Written { created, changed }))
    }

    /// The version of what a write answered, if it is later than what was before.
    fn later(&mut self, asked: &str, written: &Object, before: Position) -> Option<Position> {
        match Position::of(written) {
            Ok(position) => {
                self.found.expect(position > before, asked, format!("a version after {before}"), position);
                Some(position)
            }
            Err(problem) => {
                self.found.fault(asked, "a resource version", problem);
                None
            }
        }
    }

    async fn change(&mut self, path: &str, before: Position) -> Result<Option<Position>, ClusterError> {
        match Reply::of(self.probe.cluster.merge(path, &labelled("changed", None)).await)? {
            Reply::Object(object) => Ok(self.later(&format!("PATCH {path}"), &object, before)),
            Reply::Refused { error, .. } => {
                self.found.fault(format!("PATCH {path}"), "success", error);
                Ok(None)
            }
        }
    }

    /// Whether a read and a list that must not be older than a write know it.
    async fn known(&mut self, written: Position, label: Option<&str>) -> Result<(), ClusterError> {
        let version = written.to_string();
        let query = [("resourceVersion", &*version)];
        let path = self.probe.object_path(self.name, &query);
        match self.probe.get(self.name, &query).await? {
            Reply::Object(object) => {
                at_least(self.found, &path, &object, written);
                let shown = label_of(&object);
                self.found.expect(
                    label.is_none() || shown == label,
                    &path,
                    "the object as it was written",
                    format!("{shown:?}"),
                );
            }
            Reply::Refused { error, .. } => self.found.fault(&path, "the object that was written", error),
        }
        let query: &Query<'_> = &[("resourceVersion", &version), ("resourceVersionMatch", "NotOlderThan")];
        match self.probe.list(query).await? {
            Reply::Object(list) => {
                at_least(self.found, &self.probe.list_path(query), &list, written);
                let shown = item(&list, self.name).is_some();
                self.found.expect(
                    shown,
                    self.probe.list_path(query),
                    "a list with the object that was written",
                    "one without it",
                );
            }
            Reply::Refused { error, .. } => self.found.fault(self.probe.list_path(query), "a list", error),
        }
        Ok(())
    }

    /// Whether a write that changes nothing leaves the version as it is.
    async fn changes_nothing(&mut self, path: &str) -> Result<(), ClusterError> {
        for tried in 1..=TRIES {
            let Reply::Object(before) = self.probe.get(self.name, &[]).await? else { return Ok(()) };
            let Reply::Object(after) = Reply::of(self.probe.cluster.merge(path, &labelled("changed", None)).await)?
            else {
                return Ok(());
            };
            // Somebody else may have written in between, so once is enough.
            if text_of(&before) == text_of(&after) {
                self.found.pass();
                return Ok(());
            }
            if tried == TRIES {
                let want = format!("a write that changes nothing to keep the version {}", text_of(&before));
                self.found.fault(format!("PATCH {path}"), want, text_of(&after));
            }
        }
        Ok(())
    }

    /// Whether a write on top of an older version is refused.
    async fn conflicts(&mut self, path: &str, stale: Position) -> Result<(), ClusterError> {
        let patch = labelled("conflicting", Some(stale));
        match Reply::of(self.probe.cluster.merge(path, &patch).await)? {
            Reply::Object(_) => self.found.fault(format!("PATCH {path} at {stale}"), "409", "success"),
            Reply::Refused { code, error } => {
                self.found.expect(code == 409, format!("PATCH {path} at {stale}"), "409", error);
            }
        }
        Ok(())
    }

    async fn listed_at(&mut self, created: Position) -> Result<(), ClusterError> {
        let version = created.to_string();
        let query: &Query<'_> = &[("resourceVersion", &version), ("resourceVersionMatch", "Exact")];
        let path = self.probe.list_path(query);
        match self.probe.list(query).await? {
            Reply::Object(list) => {
                exactly(self.found, &path, &list, created);
                let shown = item(&list, self.name).map(text_of).unwrap_or_default().to_owned();
                self.found.expect(
                    shown == version,
                    &path,
                    format!("the object as it was at {version}"),
                    format!("{shown:?}"),
                );
            }
            Reply::Refused { code: 410, .. } => self.found.skip("the version was compacted meanwhile"),
            Reply::Refused { error, .. } => self.found.fault(path, "a list", error),
        }
        Ok(())
    }
}

/// Whether a watch that began before the writes shows each of them, with its version and in order.
async fn follow(events: &mut Events, name: &str, mut order: Order, written: &Written, found: &mut Findings) {
    let asked = "the watch over the writes";
    let (mut saw_created, mut saw_changed) = (false, false);
    loop {
        let event = match Event::next(events, PATIENCE).await {
            Ok(Some(event)) => event,
            Ok(None) => return found.fault(asked, "the event DELETED", "its end"),
            Err(error) => return found.fault(asked, "the event DELETED", error),
        };
        order.check(&event, found);
        if event.object.at(&["metadata", "name"]).and_then(Value::as_str) != Some(name) {
            continue;
        }
        let position = Position::of(&event.object).ok();
        saw_created |= event.kind == "ADDED" && position == Some(written.created);
        saw_changed |= event.kind == "MODIFIED" && position == Some(written.changed);
        match &*event.kind {
            "DELETED" => break,
            "ADDED" | "MODIFIED" | "BOOKMARK" => {}
            _ => return,
        }
    }
    found.expect(saw_created, asked, format!("ADDED of {}", written.created), "no such event");
    found.expect(saw_changed, asked, format!("MODIFIED of {}", written.changed), "no such event");
}

/// A patch that sets the label, on top of a version if one is named.
fn labelled(value: &str, version: Option<Position>) -> Value {
    let labels: Object = [(LABEL, Value::from(value))].into_iter().collect();
    let mut metadata: Object = [("labels", Value::Object(labels))].into_iter().collect();
    if let Some(version) = version {
        metadata.insert("resourceVersion", version.to_string());
    }
    let patch: Object = [("metadata", Value::Object(metadata))].into_iter().collect();
    Value::Object(patch)
}

fn label_of(object: &Object) -> Option<&str> {
    object.at(&["metadata", "labels", LABEL]).and_then(Value::as_str)
}

/// The object in a list.
fn item<'l>(list: &'l Object, name: &str) -> Option<&'l Object> {
    let mut items = list.array("items").iter().filter_map(Value::as_object);
    items.find(|item| item.at(&["metadata", "name"]).and_then(Value::as_str) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_objects_is_one() {
        let Value::Object(objects) = parse_yaml(OBJECTS.as_bytes()).expect("is YAML").value else {
            panic!("no object")
        };
        assert!(objects.len() > 20 && objects.iter().all(|(_, object)| object.as_object().is_some()));
    }
}
