//! [`Book`]: all APIServices that are stored, read once for each change.

use std::collections::HashMap;
use std::sync::Arc;

use revisor_object::{Object, Value};

use crate::Remote;
use crate::remote::Whereabouts;

/// The APIService of the core group, which has no name.
const LEGACY: &str = "v1.";

/// What an APIService says.
#[derive(Debug)]
pub struct Registration {
    /// Its name.
    pub name: String,
    /// The group that it is about; empty for the core group.
    pub group: String,
    /// The version that it is about.
    pub version: String,
    /// The place of the group among others.
    pub group_priority: i64,
    /// The place of the version among those of the group.
    pub version_priority: i64,
    /// Whether it is said to be available.
    pub is_available: bool,
    /// Why it is, or is not.
    pub(crate) reason: String,
    /// Who serves it; `None` for this server.
    pub remote: Option<Arc<Remote>>,
}

/// All APIServices.
#[derive(Debug, Default)]
pub struct Book {
    /// The last change that it knows of.
    pub(crate) seen: u64,
    registrations: HashMap<String, Arc<Registration>>,
    /// Those that others serve, by what their paths begin with.
    remotes: HashMap<String, Arc<Registration>>,
}

impl Registration {
    fn read(service: &Object, before: &Book) -> Option<Registration> {
        let spec = service.object("spec")?;
        let name = service.at(&["metadata", "name"]).and_then(Value::as_str)?.to_owned();
        let number = |name| spec.get(name).and_then(Value::as_i64).unwrap_or_default();
        let status = service.object("status");
        let mut conditions =
            status.map(|status| status.array("conditions")).unwrap_or_default().iter().filter_map(Value::as_object);
        let condition = conditions.find(|condition| condition.str("type") == Some("Available"));
        let remote = Whereabouts::read(spec).map(|whereabouts| {
            // Connections outlive everything but a change of where they lead.
            let kept = before.registrations.get(&name).and_then(|known| known.remote.clone());
            kept.filter(|kept| kept.whereabouts == whereabouts).unwrap_or_else(|| Arc::new(Remote::new(whereabouts)))
        });
        Some(Registration {
            group: spec.str("group").unwrap_or_default().to_owned(),
            version: spec.str("version").unwrap_or_default().to_owned(),
            group_priority: number("groupPriorityMinimum"),
            version_priority: number("versionPriority"),
            is_available: condition.is_some_and(|condition| condition.str("status") == Some("True")),
            reason: condition.and_then(|condition| condition.str("reason")).unwrap_or_default().to_owned(),
            remote,
            name,
        })
    }

    /// What the paths begin with that it is about.
    pub(crate) fn path(&self) -> String {
        if self.name == LEGACY { "/api".to_owned() } else { format!("/apis/{}/{}", self.group, self.version) }
    }
}

impl Book {
    /// One that knows of nothing, not even that nothing is stored.
    pub(crate) fn unread() -> Book {
        Book { seen: u64::MAX, ..Book::default() }
    }

    pub(crate) fn read(services: &[Object], seen: u64, before: &Book) -> Book {
        let read = services.iter().filter_map(|service| Registration::read(service, before));
        let registrations: HashMap<String, Arc<Registration>> =
            read.map(|registration| (registration.name.clone(), Arc::new(registration))).collect();
        let remotes = registrations.values().filter(|registration| registration.remote.is_some());
        let remotes = remotes.map(|registration| (registration.path(), registration.clone())).collect();
        Book { seen, registrations, remotes }
    }

    /// The APIService with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Registration>> {
        self.registrations.get(name)
    }

    /// All of them, in no order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Registration>> {
        self.registrations.values()
    }

    /// The APIService of another server that a path, as it stands in a request, is about.
    pub fn remote_of(&self, path: &str) -> Option<&Arc<Registration>> {
        if self.remotes.is_empty() {
            return None;
        }
        if path == "/api" || path.starts_with("/api/") {
            return self.remotes.get("/api");
        }
        let rest = path.strip_prefix("/apis/")?;
        let (group, rest) = rest.split_once('/')?;
        let version = rest.split('/').next().unwrap_or_default();
        self.remotes.get(&format!("/apis/{group}/{version}"))
    }

    /// Whether another server serves a version of this group.
    pub fn has_remote_group(&self, group: &str) -> bool {
        self.remotes.values().any(|known| known.group == group)
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn service(name: &str, group: &str, version: &str, service: &str, available: &str) -> Object {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"group":"{group}","version":"{version}",{service}
            "groupPriorityMinimum":100,"versionPriority":10}},
            "status":{{"conditions":[{{"type":"Available","status":"{available}","reason":"R"}}]}}}}"#
        );
        match parse_json(text.as_bytes()).expect("is JSON").value {
            Value::Object(object) => object,
            other => panic!("no object: {other:?}"),
        }
    }

    #[test]
    fn paths_lead_to_whoever_serves_them() {
        let remote = r#""service":{"namespace":"n","name":"s"},"#;
        let services = [service("v1.a.io", "a.io", "v1", remote, "True"), service("v1.b.io", "b.io", "v1", "", "True")];
        let book = Book::read(&services, 1, &Book::default());
        for (path, want) in [
            ("/apis/a.io/v1", Some("v1.a.io")),
            ("/apis/a.io/v1/things/x", Some("v1.a.io")),
            ("/apis/a.io/v12", None),
            ("/apis/a.io", None),
            ("/apis/b.io/v1", None),
            ("/api/v1/pods", None),
            ("/", None),
        ] {
            assert_eq!(book.remote_of(path).map(|found| found.name.as_str()), want, "{path}");
        }
        assert!(book.has_remote_group("a.io") && !book.has_remote_group("b.io"));
    }

    #[test]
    fn connections_outlive_a_change_of_status() {
        let at = |port: u16| format!(r#""service":{{"namespace":"n","name":"s","port":{port}}},"#);
        let first = Book::read(&[service("v1.a.io", "a.io", "v1", &at(443), "False")], 1, &Book::default());
        let second = Book::read(&[service("v1.a.io", "a.io", "v1", &at(443), "True")], 2, &first);
        let third = Book::read(&[service("v1.a.io", "a.io", "v1", &at(444), "True")], 3, &second);
        let remote = |book: &Book| book.get("v1.a.io").and_then(|known| known.remote.clone()).expect("is remote");
        assert!(Arc::ptr_eq(&remote(&first), &remote(&second)));
        assert!(!Arc::ptr_eq(&remote(&second), &remote(&third)));
        assert!(!first.get("v1.a.io").expect("is there").is_available);
        assert!(second.get("v1.a.io").expect("is there").is_available);
    }
}
