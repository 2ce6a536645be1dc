//! Discovery: which groups, versions and resources there are.
//!
//! It is told twice. The plain documents are one per group and per version; the aggregated ones tell all of it at once,
//! to clients that ask for them by their type.

use std::sync::OnceLock;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, VARY};
use http::{HeaderMap, Response, StatusCode};
use revisor_catalog::{Feature, Features, GroupVersion, Resource, Subresource, Verb};
use serde_json::{Map, Value, json};

use crate::encoding::Encoding;
use crate::negotiate::FORM_OF_AGGREGATED;
use crate::publication::{Publication, PublishedGroup, PublishedVersion};
use crate::representation::Representation;
use crate::tag::Tag;
use crate::{Body, answer};

/// What is told of one group and version.
#[derive(Debug, Default)]
pub(crate) struct VersionDocuments {
    /// The document of its path.
    resources: OnceLock<Bytes>,
    /// What stands of it in the aggregated documents.
    aggregated: OnceLock<String>,
}

impl VersionDocuments {
    /// Those of a version of which others told this.
    pub(crate) fn told(discovery: &Value) -> VersionDocuments {
        VersionDocuments { resources: OnceLock::new(), aggregated: OnceLock::from(text(discovery)) }
    }
}

/// The document of a group.
pub(crate) type GroupDocuments = OnceLock<Bytes>;

/// What is told of all groups.
#[derive(Debug, Default)]
pub(crate) struct ListDocuments {
    groups: OnceLock<Bytes>,
    aggregated_core: OnceLock<Tagged>,
    aggregated_groups: OnceLock<Tagged>,
}

/// A document that clients keep.
#[derive(Debug)]
struct Tagged {
    body: Bytes,
    tag: Tag,
    /// In the encodings that were asked for, in the order of [`Encoding::ALL`].
    encoded: [OnceLock<Bytes>; Encoding::ALL.len()],
}

impl Tagged {
    fn encoded(&self, encoding: Encoding, representation: &Representation) -> Bytes {
        let at = Encoding::ALL.iter().position(|known| *known == encoding).unwrap_or_default();
        let made = self.encoded[at]
            .get_or_init(|| representation.tagged(encoding, self.body.clone()).unwrap_or_else(|_| self.body.clone()));
        made.clone()
    }
}

/// Which aggregated document is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aggregated {
    /// That of the core group.
    Core,
    /// That of all others.
    Groups,
}

impl Publication {
    /// `/api`. Clients are told where those outside reach the server; never where they say that they reached it.
    pub(crate) fn core_versions(&self, external_address: &str) -> Bytes {
        let versions: Vec<&str> = self.group("").into_iter().flat_map(version_names).collect();
        bytes(&json!({
            "kind": "APIVersions",
            "versions": versions,
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": external_address}],
        }))
    }

    /// `/apis`
    pub(crate) fn group_list(&self) -> Bytes {
        let made = self.lists.groups.get_or_init(|| {
            let groups: Vec<Value> =
                self.groups.iter().filter(|group| !group.name.is_empty()).map(group_value).collect();
            bytes(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        });
        made.clone()
    }

    /// `/apis/GROUP`
    pub(crate) fn group_document(&self, name: &str) -> Option<Bytes> {
        let group = self.group(name)?;
        let made = group.documents.get_or_init(|| {
            let mut value = group_value(group);
            value["kind"] = json!("APIGroup");
            value["apiVersion"] = json!("v1");
            bytes(&value)
        });
        Some(made.clone())
    }

    /// `/api/VERSION` and `/apis/GROUP/VERSION`
    pub(crate) fn resources(&self, path: &str) -> Option<Bytes> {
        let version = self.version(path)?;
        Some(
            version
                .documents
                .resources
                .get_or_init(|| bytes(&resource_list(&version.known, self.catalog.features())))
                .clone(),
        )
    }

    /// `/api` or `/apis`, aggregated.
    pub(crate) fn aggregated(
        &self,
        which: Aggregated,
        encoding: Encoding,
        representation: &Representation,
        headers: &HeaderMap,
    ) -> Response<Body> {
        let (made, is_wanted): (_, fn(&PublishedGroup) -> bool) = match which {
            Aggregated::Core => (&self.lists.aggregated_core, |group| group.name.is_empty()),
            Aggregated::Groups => (&self.lists.aggregated_groups, |group| !group.name.is_empty()),
        };
        let document = made.get_or_init(|| {
            let body = Bytes::from(aggregated_list(self.groups.iter().filter(|group| is_wanted(group))));
            Tagged { tag: Tag::of(&body), body, encoded: Default::default() }
        });
        let mut response = if document.tag.is_known(headers) {
            let mut response = Response::new(Body::Empty);
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let body = document.encoded(encoding, representation);
            let mut response = answer::encoded(StatusCode::OK, encoding, body);
            let content_type = format!("{};{FORM_OF_AGGREGATED}", encoding.media_type());
            let content_type = HeaderValue::try_from(content_type).expect("the names of types are plain text");
            response.headers_mut().insert(CONTENT_TYPE, content_type);
            response
        };
        let headers = response.headers_mut();
        headers.insert(ETAG, document.tag.header());
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        response
    }
}

fn version_names(group: &PublishedGroup) -> impl Iterator<Item = &str> {
    group.versions.iter().map(|version| version.known.version.as_str())
}

fn qualified(known: &GroupVersion) -> String {
    if known.group.is_empty() { known.version.to_string() } else { format!("{}/{}", known.group, known.version) }
}

fn group_value(group: &PublishedGroup) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| json!({"groupVersion": qualified(&version.known), "version": version.known.version.as_str()}))
        .collect();
    json!({"name": group.name, "versions": versions, "preferredVersion": versions.first()})
}

fn resource_list(known: &GroupVersion, features: Features) -> Value {
    let values = |resource| resource_values(resource, features);
    let resources: Vec<Value> = known.resources.iter().flat_map(|resource| values(resource)).collect();
    let mut list = json!({"kind": "APIResourceList", "groupVersion": qualified(known), "resources": resources});
    // The core group is older than versions of this document.
    if !known.group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    list
}

fn resource_values(resource: &Resource, features: Features) -> Vec<Value> {
    let mut whole = json!({
        "name": resource.plural.as_str(),
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind.as_str(),
        "verbs": verbs_of(resource),
    });
    add_names(&mut whole, resource);
    // The original knows the storage version of a definition only if it is served.
    let is_known = resource.custom().is_none_or(|custom| custom.serves_storage_version());
    if resource.is_stored() && is_known && features.has(Feature::StorageVersionHash) {
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
        if let Some((group, version)) = other_version(part) {
            shown["group"] = json!(group);
            shown["version"] = json!(version);
        }
        shown
    });
    std::iter::once(whole).chain(parts).collect()
}

fn add_names(shown: &mut Value, resource: &Resource) {
    if !resource.short_names.is_empty() {
        shown["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        shown["categories"] = json!(resource.categories);
    }
}

/// The group and version of what a subresource speaks of, where they are not those of the resource.
fn other_version(part: &Subresource) -> Option<(&'static str, &'static str)> {
    part.other_kind.and_then(|(api_version, _)| api_version.split_once('/'))
}

/// What can be done with a resource. Of one whose definition is being deleted nothing new is made.
fn verbs_of(resource: &Resource) -> Vec<&'static str> {
    let is_terminating = resource.custom().is_some_and(|custom| custom.is_terminating);
    let is_left = |verb: &Verb| !(is_terminating && matches!(verb, Verb::Create | Verb::Patch | Verb::Update));
    let mut names = verb_names(&resource.verbs.iter().copied().filter(is_left).collect::<Vec<_>>());
    // Those of custom resources stand in an order of their own.
    if resource.custom().is_some() {
        names.sort_by_key(|name| CUSTOM_VERBS.iter().position(|known| known == name));
    }
    names
}

/// The order in which the original tells what can be done with custom resources.
const CUSTOM_VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

fn verb_names(verbs: &[Verb]) -> Vec<&'static str> {
    let mut names: Vec<&str> = verbs.iter().map(|verb| verb.as_str()).collect();
    names.sort_unstable();
    names
}

/// The document of these groups, put together of what is known of their versions.
fn aggregated_list<'a>(groups: impl Iterator<Item = &'a PublishedGroup>) -> String {
    let items: Vec<String> = groups
        .map(|group| {
            let mut metadata = Map::new();
            if !group.name.is_empty() {
                metadata.insert("name".to_owned(), json!(group.name));
            }
            let versions: Vec<&str> = group.versions.iter().map(|version| aggregated_version(version)).collect();
            format!(r#"{{"metadata":{},"versions":[{}]}}"#, Value::Object(metadata), versions.join(","))
        })
        .collect();
    let head = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":["#;
    format!("{head}{}]}}", items.join(","))
}

fn aggregated_version(version: &PublishedVersion) -> &str {
    version.documents.aggregated.get_or_init(|| {
        let resources: Vec<Value> = version.known.resources.iter().map(|known| aggregated_resource(known)).collect();
        let name = version.known.version.as_str();
        text(&json!({"version": name, "resources": resources, "freshness": "Current"}))
    })
}

fn aggregated_resource(resource: &Resource) -> Value {
    // Built-in kinds are those of the group and version that they are listed in; the others say so.
    let own = match resource.custom() {
        Some(_) => (resource.group.as_str(), resource.version.as_str()),
        None => ("", ""),
    };
    let kind = |(group, version): (&str, &str), kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut shown = json!({
        "resource": resource.plural.as_str(),
        "responseKind": kind(own, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": verbs_of(resource),
    });
    add_names(&mut shown, resource);
    let parts: Vec<Value> = resource
        .subresources
        .iter()
        .map(|part| {
            let name = part.other_kind.map_or(resource.kind.as_str(), |(_, kind)| kind);
            json!({
                "subresource": part.name,
                "responseKind": kind(other_version(part).unwrap_or(own), name),
                "verbs": verb_names(&part.verbs),
            })
        })
        .collect();
    if !parts.is_empty() {
        shown["subresources"] = json!(parts);
    }
    shown
}

fn bytes(value: &Value) -> Bytes {
    text(value).into()
}

/// The members of the objects in these documents in the order in which the original writes them; the first that is found
/// in an object tells which of them it is.
const ORDERS: &[(&str, &[&str])] = &[
    (
        "singularName",
        &[
            "name",
            "singularName",
            "namespaced",
            "group",
            "version",
            "kind",
            "verbs",
            "shortNames",
            "categories",
            "storageVersionHash",
        ],
    ),
    (
        "resource",
        &["resource", "responseKind", "scope", "singularResource", "verbs", "shortNames", "categories", "subresources"],
    ),
    ("subresource", &["subresource", "responseKind", "verbs"]),
    ("group", &["group", "version", "kind"]),
    ("freshness", &["version", "resources", "freshness"]),
    (
        "",
        &[
            "kind",
            "apiVersion",
            "groupVersion",
            "name",
            "version",
            "versions",
            "preferredVersion",
            "groups",
            "resources",
            "serverAddressByClientCIDRs",
            "clientCIDR",
            "serverAddress",
        ],
    ),
];

fn text(value: &Value) -> String {
    let mut text = String::new();
    push(value, &mut text);
    text
}

fn push(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let order = ORDERS.iter().find(|(mark, _)| mark.is_empty() || members.contains_key(*mark));
            let order = order.map_or(&[][..], |(_, order)| order);
            let rank = |name: &str| order.iter().position(|known| *known == name).unwrap_or(order.len());
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| rank(name));
            out.push('{');
            for (at, (name, member)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                push(member, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests;
