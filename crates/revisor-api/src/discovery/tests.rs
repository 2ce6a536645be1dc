//! The documents as clients meet them.

use std::sync::Arc;

use http::header::IF_NONE_MATCH;
use revisor_catalog::{Catalog, CatalogOptions};

use super::*;
use crate::custom_fixture::{defined, with_definition};
use crate::publication::Publications;

fn publication() -> Arc<Publication> {
    let definition = defined("disco.example.com", "Gadget", r#"{"type":"object"}"#);
    let catalog = Arc::new(with_definition(&Catalog::default(), &definition));
    Publications::new("1.36").of(&catalog)
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("is JSON")
}

fn aggregated(publication: &Publication, which: Aggregated) -> Value {
    let response =
        publication.aggregated(which, Encoding::Json, &Representation::of_own(&HeaderMap::new()), &HeaderMap::new());
    let Body::Full(body) = response.body() else { panic!("a whole body") };
    parsed(body)
}

fn resource<'a>(group: &'a Value, name: &str) -> &'a Value {
    let mut resources = group["versions"][0]["resources"].as_array().expect("resources").iter();
    resources.find(|known| known["resource"] == name).unwrap_or_else(|| panic!("{name} is listed"))
}

#[test]
fn the_version_that_is_stored_is_told_of_if_it_is_served() {
    let shown = |is_served: bool| {
        let mut definition = defined("disco.example.com", "Gadget", r#"{"type":"object"}"#);
        definition.versions[0].storage = false;
        let stored = defined("disco.example.com", "Gadget", r#"{"type":"object"}"#).versions.remove(0);
        definition.versions.push(revisor_catalog::DefinedVersion { name: "v2".into(), served: is_served, ..stored });
        let catalog = Arc::new(with_definition(&Catalog::default(), &definition));
        let resource = catalog.resource("disco.example.com", "v1", "gadgets").expect("is served");
        resource_values(resource, catalog.features()).remove(0)
    };
    assert!(shown(true)["storageVersionHash"].is_string());
    assert_eq!(shown(false).get("storageVersionHash"), None);
}

#[test]
fn everything_is_told_at_once() {
    let publication = publication();
    let core = aggregated(&publication, Aggregated::Core);
    assert_eq!(
        (&core["kind"], &core["apiVersion"]),
        (&json!("APIGroupDiscoveryList"), &json!("apidiscovery.k8s.io/v2"))
    );
    assert_eq!(core["items"].as_array().map(Vec::len), Some(1));
    let group = &core["items"][0];
    assert_eq!((&group["metadata"], &group["versions"][0]["freshness"]), (&json!({}), &json!("Current")));
    let pods = resource(group, "pods");
    assert_eq!(pods["responseKind"], json!({"group": "", "version": "", "kind": "Pod"}));
    assert_eq!((&pods["scope"], &pods["singularResource"]), (&json!("Namespaced"), &json!("pod")));
    assert_eq!((&pods["shortNames"], &pods["categories"]), (&json!(["po"]), &json!(["all"])));
    let mut parts = pods["subresources"].as_array().expect("parts").iter();
    let eviction = parts.find(|part| part["subresource"] == "eviction").expect("is there");
    assert_eq!(eviction["responseKind"], json!({"group": "policy", "version": "v1", "kind": "Eviction"}));

    let groups = aggregated(&publication, Aggregated::Groups);
    let names: Vec<&str> = groups["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|group| group["metadata"]["name"].as_str())
        .collect();
    assert_eq!((names.first(), names.last()), (Some(&"apiregistration.k8s.io"), Some(&"disco.example.com")));
    let own = json!({"group": "disco.example.com", "version": "v1", "kind": "Gadget"});
    let verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    let written = ["get", "patch", "update"];
    assert_eq!(
        resource(&groups["items"][names.len() - 1], "gadgets"),
        &json!({
            "resource": "gadgets",
            "responseKind": own,
            "scope": "Namespaced",
            "singularResource": "gadget",
            "verbs": verbs,
            "shortNames": ["gd"],
            "categories": ["all"],
            "subresources": [
                {"subresource": "status", "responseKind": own, "verbs": written},
                {
                    "subresource": "scale",
                    "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                    "verbs": written,
                },
            ],
        })
    );
}

/// What Kubernetes 1.36 tells when everything is switched on, in the order in which it tells it.
const SERVED: &str = include_str!("served-1.36.tsv");

/// The same lines of an aggregated document.
fn lines(document: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(",");
    let kind = |kind: &Value| match (text(&kind["group"]), text(&kind["version"]), text(&kind["kind"])) {
        (group, version, kind) if group.is_empty() && version.is_empty() => kind,
        (group, version, kind) => format!("{group}/{version}/{kind}"),
    };
    let mut lines = Vec::new();
    let members = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for group in members(&document["items"]) {
        for version in members(&group["versions"]) {
            assert_eq!(version["freshness"], "Current");
            let of = format!("{}\t{}", text(&group["metadata"]["name"]), text(&version["version"]));
            for known in members(&version["resources"]) {
                let name = text(&known["resource"]);
                lines.push(format!(
                    "{of}\t{name}\t{}\t{}\t{}\t{}\t{}\t{}",
                    kind(&known["responseKind"]),
                    text(&known["scope"]),
                    texts(&known["verbs"]),
                    text(&known["singularResource"]),
                    texts(&known["shortNames"]),
                    texts(&known["categories"]),
                ));
                lines.extend(members(&known["subresources"]).iter().map(|part| {
                    let (part, kind, verbs) =
                        (text(&part["subresource"]), kind(&part["responseKind"]), texts(&part["verbs"]));
                    format!("{of}\t{name}/{part}\t{kind}\t\t{verbs}\t\t\t")
                }));
            }
        }
    }
    lines
}

#[test]
fn everything_that_there_is_is_told_as_the_original_tells_it() {
    let catalog = Catalog::build(&CatalogOptions::everything()).expect("there is all of it");
    let publication = Publications::new("1.36").of(&Arc::new(catalog));
    let told = [Aggregated::Core, Aggregated::Groups].map(|which| lines(&aggregated(&publication, which))).concat();
    // The server's own group is not in the original.
    let told: Vec<String> = told.into_iter().filter(|line| !line.starts_with("versioning.revisor.dev\t")).collect();
    let served: Vec<&str> = SERVED.lines().skip(1).collect();
    assert_eq!(told.len(), served.len());
    for (told, served) in told.iter().zip(served) {
        assert_eq!(told, served);
    }
}

#[test]
fn both_ways_of_telling_agree() {
    let publication = publication();
    let listed = parsed(&publication.group_list());
    let told = aggregated(&publication, Aggregated::Groups);
    let (listed, told) = (listed["groups"].as_array().expect("groups"), told["items"].as_array().expect("items"));
    assert_eq!(listed.len(), told.len());
    for (listed, told) in listed.iter().zip(told) {
        assert_eq!(listed["name"], told["metadata"]["name"]);
        let name = listed["name"].as_str().expect("a name");
        let document = parsed(&publication.group_document(name).expect("is served"));
        assert_eq!((&document["versions"], &document["kind"]), (&listed["versions"], &json!("APIGroup")));
        let versions = listed["versions"].as_array().expect("versions");
        assert_eq!(listed["preferredVersion"], versions[0]);
        for (version, told) in versions.iter().zip(told["versions"].as_array().expect("versions")) {
            assert_eq!(version["version"], told["version"], "{name}");
            let path = format!("/apis/{}", version["groupVersion"].as_str().expect("a name"));
            let resources = parsed(&publication.resources(&path).expect("is served"));
            let mut names: Vec<String> = Vec::new();
            for resource in told["resources"].as_array().expect("resources") {
                let plural = resource["resource"].as_str().expect("a name");
                names.push(plural.to_owned());
                let parts = resource["subresources"].as_array().into_iter().flatten();
                names.extend(parts.map(|part| format!("{plural}/{}", part["subresource"].as_str().expect("a name"))));
            }
            let listed: Vec<&str> = resources["resources"]
                .as_array()
                .expect("resources")
                .iter()
                .filter_map(|one| one["name"].as_str())
                .collect();
            assert_eq!(listed, names, "{path}");
        }
    }
}

#[test]
fn a_client_is_not_told_again_what_it_knows() {
    let publication = publication();
    let ask = |publication: &Publication, known: &str, encoding| {
        let headers = HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::try_from(known).expect("a header"))]);
        publication.aggregated(Aggregated::Groups, encoding, &Representation::of_own(&headers), &headers)
    };
    let header = |response: &Response<Body>, name| {
        response.headers().get(name).map_or("", |value| value.to_str().expect("is text")).to_owned()
    };
    let first = ask(&publication, "\"other\"", Encoding::Json);
    let tag = header(&first, ETAG);
    assert_eq!((first.status(), tag.len()), (StatusCode::OK, 130));
    assert_eq!(header(&first, CONTENT_TYPE), format!("application/json;{FORM_OF_AGGREGATED}"));
    let yaml = ask(&publication, "\"other\"", Encoding::Yaml);
    assert_eq!(header(&yaml, CONTENT_TYPE), format!("application/yaml;{FORM_OF_AGGREGATED}"));
    let again = ask(&publication, &tag, Encoding::Json);
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert!(matches!(again.body(), Body::Empty));
    for response in [&first, &yaml, &again] {
        assert_eq!(header(response, ETAG), tag);
        assert_eq!(
            (header(response, VARY), header(response, CACHE_CONTROL)),
            ("Accept".to_owned(), "public".to_owned())
        );
    }
    let without = Publications::new("1.36").of(&Arc::new(Catalog::default()));
    assert_eq!(ask(&without, &tag, Encoding::Json).status(), StatusCode::OK, "something changed");
}

#[test]
fn nothing_new_is_made_of_what_is_being_deleted() {
    let mut definition = defined("disco.example.com", "Gadget", r#"{"type":"object"}"#);
    definition.is_terminating = true;
    let catalog = Arc::new(with_definition(&Catalog::default(), &definition));
    let publication = Publications::new("1.36").of(&catalog);
    let resources = parsed(&publication.resources("/apis/disco.example.com/v1").expect("is served"));
    assert_eq!(resources["resources"][0]["verbs"], json!(["delete", "deletecollection", "get", "list", "watch"]));
}

#[test]
fn clients_are_told_where_the_server_is() {
    let document = parsed(&publication().core_versions("[::1]:6443"));
    assert_eq!(document["versions"], json!(["v1"]));
    let addresses = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": "[::1]:6443"}]);
    assert_eq!(document["serverAddressByClientCIDRs"], addresses);
}
