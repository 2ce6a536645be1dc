//! Discovery: which groups, versions and resources there are.

use std::collections::HashSet;

use bytes::Bytes;
use revisor_catalog::{Catalog, GroupVersion, Resource, Verb};
use serde_json::{Value, json};

/// `/api`
pub(crate) fn core_versions(catalog: &Catalog) -> Bytes {
    let versions: Vec<&str> = catalog.versions_of("").map(|known| known.version.as_str()).collect();
    bytes(&json!({"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []}))
}

/// `/apis`
pub(crate) fn groups(catalog: &Catalog) -> Bytes {
    let mut names: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    for known in catalog.group_versions().iter().filter(|known| !known.group.is_empty()) {
        if seen.insert(known.group.as_str()) {
            names.push(&known.group);
        }
    }
    let groups: Vec<Value> = names.iter().map(|name| group_value(catalog, name)).collect();
    bytes(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

/// `/apis/GROUP`
pub(crate) fn group(catalog: &Catalog, name: &str) -> Bytes {
    let mut value = group_value(catalog, name);
    value["kind"] = json!("APIGroup");
    value["apiVersion"] = json!("v1");
    bytes(&value)
}

/// `/api/VERSION` and `/apis/GROUP/VERSION`
pub(crate) fn resources(group_version: &GroupVersion) -> Bytes {
    let resources: Vec<Value> = group_version.resources.iter().flat_map(|resource| resource_values(resource)).collect();
    bytes(&json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": qualified(group_version),
        "resources": resources,
    }))
}

fn qualified(known: &GroupVersion) -> String {
    if known.group.is_empty() { known.version.to_string() } else { format!("{}/{}", known.group, known.version) }
}

fn group_value(catalog: &Catalog, name: &str) -> Value {
    let versions: Vec<Value> = catalog
        .versions_of(name)
        .map(|known| json!({"groupVersion": qualified(known), "version": known.version.as_str()}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

fn resource_values(resource: &Resource) -> Vec<Value> {
    let mut whole = json!({
        "name": resource.plural.as_str(),
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind.as_str(),
        "verbs": verb_names(&resource.verbs),
    });
    if !resource.short_names.is_empty() {
        whole["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        whole["categories"] = json!(resource.categories);
    }
    if resource.is_stored() {
        whole["storageVersionHash"] = json!(resource.storage_version_hash());
    }
    let parts = resource.subresources.iter().map(|part| {
        let mut shown = json!({
            "name": format!("{}/{}", resource.plural, part.name),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": part.other_kind.map_or(resource.kind.as_str(), |(_, kind)| kind),
            "verbs": verb_names(&part.verbs),
        });
        let api_version = part.other_kind.map_or("", |(api_version, _)| api_version);
        if let Some((group, version)) = api_version.split_once('/') {
            shown["group"] = json!(group);
            shown["version"] = json!(version);
        }
        shown
    });
    std::iter::once(whole).chain(parts).collect()
}

fn verb_names(verbs: &[Verb]) -> Vec<&'static str> {
    let mut names: Vec<&str> = verbs.iter().map(|verb| verb.as_str()).collect();
    names.sort_unstable();
    names
}

fn bytes(value: &Value) -> Bytes {
    value.to_string().into()
}
