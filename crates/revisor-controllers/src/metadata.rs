//! [`Metadata`]: what controllers look at in any object, read from its bytes without reading the rest.

use revisor_catalog::Resource;
use revisor_object::{Object, Value, parse_json};
use sonic_rs::{JsonValueTrait, LazyValue};

use crate::uid::Uid;

/// The finalizers that tell the garbage collector what to do about the objects that this one owns.
pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// What an object that is being deleted waits for the garbage collector to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Duty {
    /// Nothing.
    #[default]
    None,
    /// To take it out of its dependents' owners.
    Orphan,
    /// To delete its dependents first.
    Foreground,
}

/// One owner as its dependent names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: Uid,
    /// Whether the owner's deletion in the foreground waits for this dependent.
    pub(crate) blocks: bool,
}

/// A part of an object's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) uid: Uid,
    /// Whether it is being deleted.
    pub(crate) is_marked: bool,
    pub(crate) finalizers: Vec<String>,
    pub(crate) owners: Vec<Owner>,
}

impl Metadata {
    /// Reads the metadata of an encoded object; `None` if it is none that this server would have stored.
    pub(crate) fn read(bytes: &[u8]) -> Option<Metadata> {
        let raw = sonic_rs::get(bytes, ["metadata"]).ok()?;
        let (mut uid, mut is_marked, mut finalizers, mut owners) = (None, false, Vec::new(), Vec::new());
        for member in sonic_rs::to_object_iter(raw.as_raw_str()) {
            let (name, value) = member.ok()?;
            match &*name {
                "uid" => uid = value.as_str().map(Uid::new),
                "deletionTimestamp" => is_marked = !value.is_null(),
                "finalizers" => {
                    finalizers = array(&value).iter().filter_map(Value::as_str).map(str::to_owned).collect()
                }
                "ownerReferences" => owners = array(&value).iter().filter_map(Value::as_object).map(owner).collect(),
                _ => {}
            }
        }
        Some(Metadata { uid: uid?, is_marked, finalizers, owners })
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }

    /// What it waits for.
    pub(crate) fn duty(&self) -> Duty {
        match self.is_marked {
            true if self.has_finalizer(ORPHAN) => Duty::Orphan,
            true if self.has_finalizer(FOREGROUND) => Duty::Foreground,
            _ => Duty::None,
        }
    }
}

fn array(value: &LazyValue<'_>) -> Vec<Value> {
    match parse_json(value.as_raw_str().as_bytes()).map(|parsed| parsed.value) {
        Ok(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn owner(reference: &Object) -> Owner {
    let text = |name| reference.str(name).unwrap_or_default().to_owned();
    Owner {
        api_version: text("apiVersion"),
        kind: text("kind"),
        name: text("name"),
        uid: Uid::new(reference.str("uid").unwrap_or_default()),
        blocks: is_blocking(reference),
    }
}

/// Whether an owner reference holds back the deletion of the owner.
pub(crate) fn is_blocking(reference: &Object) -> bool {
    reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
}

/// The text at a path of an encoded object; empty if there is none.
pub(crate) fn text_at(bytes: &[u8], path: &[&str]) -> String {
    let found = sonic_rs::get(bytes, path).ok();
    found.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The array at a path of an encoded object; empty if there is none.
pub(crate) fn array_at(bytes: &[u8], path: &[&str]) -> Vec<Value> {
    sonic_rs::get(bytes, path).map(|value| array(&value)).unwrap_or_default()
}

/// The namespace, if the resource has namespaces, and the name that a key stands for.
pub(crate) fn place<'k>(resource: &Resource, key: &'k str) -> (Option<&'k str>, &'k str) {
    place_after(&resource.prefix, resource.namespaced, key)
}

/// The same for keys that begin with this prefix.
pub(crate) fn place_after<'k>(prefix: &str, namespaced: bool, key: &'k str) -> (Option<&'k str>, &'k str) {
    let place = key.strip_prefix(prefix).unwrap_or(key);
    match place.split_once('/') {
        Some((namespace, name)) if namespaced => (Some(namespace), name),
        _ => (None, place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_from_the_bytes() {
        let bytes = br#"{"kind":"K","metadata":{"name":"a","uid":"u","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["e.com/f","orphan"],"ownerReferences":[{"apiVersion":"apps/v1","kind":"D","name":"o","uid":"v","blockOwnerDeletion":true},{"uid":"w"}]},"spec":{"uid":"x"}}"#;
        let metadata = Metadata::read(bytes).expect("an object");
        assert_eq!((metadata.uid.clone(), metadata.is_marked), (Uid::new("u"), true));
        assert_eq!(metadata.finalizers, ["e.com/f", "orphan"]);
        assert_eq!(metadata.owners.iter().map(|owner| owner.blocks).collect::<Vec<_>>(), [true, false]);
        assert_eq!((&*metadata.owners[0].api_version, &*metadata.owners[0].kind), ("apps/v1", "D"));
        assert_eq!(metadata.duty(), Duty::Orphan);
        for text in ["", "{}", "[]", r#"{"metadata":[]}"#, r#"{"metadata":{}}"#] {
            assert_eq!(Metadata::read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn only_a_marked_object_waits_for_something() {
        for (members, want) in [
            (r#""finalizers":["orphan"]"#, Duty::None),
            (r#""finalizers":["orphan"],"deletionTimestamp":"t""#, Duty::Orphan),
            (r#""finalizers":["foregroundDeletion"],"deletionTimestamp":"t""#, Duty::Foreground),
            (r#""finalizers":["other"],"deletionTimestamp":"t""#, Duty::None),
        ] {
            let text = format!(r#"{{"metadata":{{"uid":"u",{members}}}}}"#);
            assert_eq!(Metadata::read(text.as_bytes()).expect("an object").duty(), want, "{members}");
        }
    }
}
