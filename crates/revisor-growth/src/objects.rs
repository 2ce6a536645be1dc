//! The small object of each kind that grows: the table `objects.txt`, of lines `GROUP RESOURCE JSON`.

use revisor_catalog::Resource;
use revisor_object::{Object, Value, parse_json};

const TABLE: &str = include_str!("../tables/objects.txt");

/// What objects are called that have no name in the table.
const NAME: &str = "growth";

/// The small object of a resource, with its type and name; without a line of the table it has nothing else.
pub fn small(resource: &Resource) -> Object {
    let group = if resource.group.is_empty() { "core" } else { resource.group.as_str() };
    let line = TABLE.lines().find_map(|line| {
        let mut parts = line.splitn(3, ' ');
        (parts.next() == Some(group) && parts.next() == Some(resource.plural.as_str())).then(|| parts.next()).flatten()
    });
    let parsed = line.and_then(|text| parse_json(text.as_bytes()).ok()).map(|parsed| parsed.value);
    let mut object = match parsed {
        Some(Value::Object(object)) => object,
        _ => Object::new(),
    };
    object.insert("kind", resource.kind.as_str());
    object.insert("apiVersion", resource.api_version.as_str());
    let metadata = object.object_mut("metadata");
    if !metadata.contains("name") {
        metadata.insert("name", NAME);
    }
    object
}

/// The name of an object.
pub fn name(object: &Object) -> &str {
    object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default()
}

/// The same object under another name, where its kind lets it have any.
pub fn renamed(object: &Object, number: usize) -> Object {
    let mut object = object.clone();
    let metadata = object.object_mut("metadata");
    if metadata.str("name") == Some(NAME) {
        metadata.insert("name", format!("{NAME}-{number}"));
    }
    object
}
