//! The documents as clients meet them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use http::Method;
use http::header::{ACCEPT, IF_NONE_MATCH};
use revisor_catalog::{Catalog, Route};

use super::*;
use crate::custom_fixture::{defined, with_definition};
use crate::publication::{Publications, PublishedVersion};

const EPOCH: SystemTime = SystemTime::UNIX_EPOCH;

fn openapi() -> Arc<Publication> {
    Publications::new("1.36").of(&Arc::new(catalog()))
}

/// What is built in, and a custom resource.
fn catalog() -> Catalog {
    let schema = r#"{"type":"object","properties":{"spec":{"type":"object","description":"What it is."}}}"#;
    with_definition(&Catalog::default(), &defined("disco.example.com", "Gadget", schema))
}

fn document(publication: &Publication, path: &str) -> Value {
    let known = &publication.version(path).expect("is served").known;
    serde_json::from_str(&publication.source().version(known)).expect("JSON")
}

fn ask(openapi: &Publication, method: Method, address: &str, headers: &[(http::HeaderName, &str)]) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(address);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let request = request.body(()).expect("a request");
    let rest = request.uri().path().strip_prefix("/openapi/v3").expect("below the root").to_owned();
    openapi.openapi_v3(&rest, &request, EPOCH)
}

fn header(response: &Response<Body>, name: http::HeaderName) -> &str {
    response.headers().get(name).map_or("", |value| value.to_str().expect("a text"))
}

fn body(response: &Response<Body>) -> Value {
    let Body::Full(bytes) = response.body() else { panic!("a whole body") };
    serde_json::from_slice(bytes).expect("JSON")
}

#[test]
fn the_root_leads_to_every_document() {
    let openapi = openapi();
    let root = body(&ask(&openapi, Method::GET, "/openapi/v3", &[]));
    let paths = root["paths"].as_object().expect("paths");
    let mut served: Vec<String> = catalog()
        .group_versions()
        .iter()
        .map(|known| match known.group.as_str() {
            "" => format!("api/{}", known.version),
            group => format!("apis/{group}/{}", known.version),
        })
        .chain(document::OTHERS.iter().map(|path| path.trim_start_matches('/').to_owned()))
        .collect();
    let groups = catalog().group_versions().iter().map(|known| known.group.to_string()).collect::<BTreeSet<_>>();
    let groups = groups.into_iter().filter(|group| !["", "disco.example.com"].contains(&group.as_str()));
    served.extend(groups.map(|group| format!("apis/{group}")));
    served.sort();
    assert_eq!(paths.keys().collect::<Vec<_>>(), served.iter().collect::<Vec<_>>());
    for (name, entry) in paths {
        let address = entry["serverRelativeURL"].as_str().expect("an address");
        assert!(address.starts_with(&format!("/openapi/v3/{name}?hash=")), "{address}");
        let found = ask(&openapi, Method::GET, address, &[]);
        assert_eq!(found.status(), StatusCode::OK, "{address}");
        assert_eq!(header(&found, CONTENT_TYPE), "application/json");
        assert_eq!(header(&found, CACHE_CONTROL), "public, immutable");
        assert_eq!(header(&found, EXPIRES), "Fri, 01 Jan 1971 00:00:00 GMT");
        assert_eq!(body(&found)["openapi"], "3.0.0");
    }
    assert_eq!(root, body(&ask(&self::openapi(), Method::GET, "/openapi/v3", &[])), "the same hashes after a restart");
}

#[test]
fn clients_are_told_what_they_may_keep() {
    let openapi = openapi();
    let path = "/openapi/v3/api/v1";
    let plain = ask(&openapi, Method::GET, path, &[]);
    let tag = header(&plain, ETAG).to_owned();
    let current = format!("{path}?hash={}", tag.trim_matches('"'));
    let weak = format!("\"other\", W/{tag}");
    for (name, address, known, code, cache, location) in [
        ("no hash", path, "", 200, "no-cache, private", ""),
        ("no hash, known", path, &*tag, 304, "no-cache, private", ""),
        ("no hash, one of several", path, &*weak, 304, "no-cache, private", ""),
        ("no hash, another known", path, "\"other\"", 200, "no-cache, private", ""),
        ("current", &*current, "", 200, "public, immutable", ""),
        ("current, known", &*current, &*tag, 304, "public, immutable", ""),
        ("outdated", "/openapi/v3/api/v1?hash=0", "", 301, "no-cache, private", &*current),
        ("outdated, known", "/openapi/v3/api/v1?hash=0", &*tag, 301, "no-cache, private", &*current),
    ] {
        let headers: &[_] = if known.is_empty() { &[] } else { &[(IF_NONE_MATCH, known)] };
        let response = ask(&openapi, Method::GET, address, headers);
        assert_eq!(response.status().as_u16(), code, "{name}");
        assert_eq!(header(&response, CACHE_CONTROL), cache, "{name}");
        assert_eq!(header(&response, LOCATION), location, "{name}");
        assert_eq!(header(&response, ETAG), tag, "{name}");
        assert_eq!(matches!(response.body(), Body::Full(_)), code == 200, "{name}");
    }
}

#[test]
fn documents_are_written_as_clients_accept_them() {
    let openapi = openapi();
    let asked = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    let protobuf = document_protobuf::MEDIA_TYPE;
    let with_fallback = format!("{asked}, application/json;q=0.9");
    let rather_json = format!("{asked};q=0.5, application/json");
    let document = "/openapi/v3/api/v1";
    for (method, address, accept, code, content_type) in [
        (Method::GET, "/openapi/v3", "*/*", 200, "text/plain; charset=utf-8"),
        (Method::GET, "/openapi/v3", "text/html", 200, "text/plain; charset=utf-8"),
        (Method::GET, document, "*/*", 200, "application/json"),
        (Method::GET, document, "", 200, "application/json"),
        (Method::GET, document, asked, 200, protobuf),
        (Method::GET, document, protobuf, 200, protobuf),
        (Method::GET, document, &*with_fallback, 200, protobuf),
        (Method::GET, document, &*rather_json, 200, "application/json"),
        (Method::GET, document, "application/yaml, */*;q=0.1", 200, "application/json"),
        (Method::GET, document, "application/yaml", 406, ""),
        (Method::HEAD, document, "*/*", 200, "application/json"),
        (Method::POST, document, "*/*", 200, "application/json"),
        (Method::GET, "/openapi/v3/", "*/*", 404, ""),
        (Method::GET, "/openapi/v3/api/v2", "*/*", 404, ""),
        (Method::GET, "/openapi/v3api/v1", "*/*", 404, ""),
    ] {
        let response = ask(&openapi, method.clone(), address, &[(ACCEPT, accept)]);
        assert_eq!(response.status().as_u16(), code, "{method} {address} {accept}");
        assert_eq!(header(&response, CONTENT_TYPE), content_type, "{method} {address} {accept}");
    }
    let tags = ["*/*", asked]
        .map(|accept| header(&ask(&openapi, Method::GET, document, &[(ACCEPT, accept)]), ETAG).to_owned());
    assert_eq!(tags[0], tags[1], "a document has one hash");
}

/// Every `$ref` in a document.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get("$ref") {
                found.insert(target.clone());
            }
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn documents_hold_together() {
    let publication = openapi();
    for version in &publication.versions {
        let document = document(&publication, &path_of(&version.known));
        let mut used = BTreeSet::new();
        references(&document, &mut used);
        let defined: BTreeSet<String> = document["components"]["schemas"]
            .as_object()
            .expect("schemas")
            .keys()
            .map(|name| format!("#/components/schemas/{name}"))
            .collect();
        assert!(used.is_subset(&defined), "{:?}", used.difference(&defined));
        let unused = defined.difference(&used).filter(|target| !target.ends_with("APIResourceList"));
        let unused: Vec<&String> = unused.collect();
        assert!(unused.is_empty(), "{unused:?}");

        let mut ids = BTreeSet::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            let real = path.replace("{namespace}", "n").replace("{name}", "a").replace("{path}", "p");
            let route = Route::parse(&publication.catalog, real.trim_end_matches('/'));
            assert!(matches!(route, Route::Objects(_) | Route::Resources { .. }), "{path} is served");
            for (method, operation) in
                item.as_object().expect("an item").iter().filter(|(name, _)| *name != "parameters")
            {
                let id = operation["operationId"].as_str().expect("a name");
                assert!(ids.insert(id.to_owned()), "{method} {path}: {id} is taken");
            }
        }
    }
}

#[test]
fn every_verb_is_an_operation() {
    let publication = openapi();
    let document = document(&publication, "/api/v1");
    let shown = |path: &str| {
        let item = document["paths"][path].as_object().unwrap_or_else(|| panic!("{path} is described"));
        let operations = item.iter().filter(|(name, _)| *name != "parameters");
        let mut lines: Vec<String> = operations
            .map(|(method, operation)| {
                let text = |name: &str| operation[name].as_str().unwrap_or_default().to_owned();
                format!("{method} {} {}", text("x-kubernetes-action"), text("operationId"))
            })
            .collect();
        lines.sort();
        lines
    };
    let object = "/api/v1/namespaces/{namespace}/configmaps/{name}";
    for (path, want) in [
        ("/api/v1/configmaps", &["get list listCoreV1ConfigMapForAllNamespaces"][..]),
        (
            "/api/v1/namespaces/{namespace}/configmaps",
            &[
                "delete deletecollection deleteCoreV1CollectionNamespacedConfigMap",
                "get list listCoreV1NamespacedConfigMap",
                "post post createCoreV1NamespacedConfigMap",
            ],
        ),
        (
            object,
            &[
                "delete delete deleteCoreV1NamespacedConfigMap",
                "get get readCoreV1NamespacedConfigMap",
                "patch patch patchCoreV1NamespacedConfigMap",
                "put put replaceCoreV1NamespacedConfigMap",
            ],
        ),
        ("/api/v1/namespaces", &["get list listCoreV1Namespace", "post post createCoreV1Namespace"]),
        ("/api/v1/namespaces/{namespace}/pods/{name}/eviction", &["post post createCoreV1NamespacedPodEviction"]),
        (
            "/api/v1/namespaces/{namespace}/pods/{name}/exec",
            &["get connect connectCoreV1GetNamespacedPodExec", "post connect connectCoreV1PostNamespacedPodExec"],
        ),
        ("/api/v1/namespaces/{name}/finalize", &["put put replaceCoreV1NamespaceFinalize"]),
        ("/api/v1/watch/configmaps", &["get watchlist watchCoreV1ConfigMapListForAllNamespaces"]),
        ("/api/v1/watch/namespaces/{name}", &["get watch watchCoreV1Namespace"]),
    ] {
        assert_eq!(shown(path), want, "{path}");
    }
    let eviction = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"];
    assert_eq!(
        eviction["requestBody"]["content"]["*/*"]["schema"]["$ref"],
        "#/components/schemas/io.k8s.api.policy.v1.Eviction"
    );
    let kind = json!({"group": "policy", "version": "v1", "kind": "Eviction"});
    assert_eq!(eviction["x-kubernetes-group-version-kind"], kind);
    assert_eq!(
        document["components"]["schemas"]["io.k8s.api.policy.v1.Eviction"]["x-kubernetes-group-version-kind"],
        json!([kind])
    );
    // kubectl looks here for what a server can do.
    let asked: Vec<&str> = document["paths"][object]["patch"]["parameters"]
        .as_array()
        .expect("parameters")
        .iter()
        .filter_map(|parameter| parameter["name"].as_str())
        .collect();
    assert_eq!(asked, ["dryRun", "fieldManager", "fieldValidation", "force"]);
}

#[test]
fn custom_resources_are_described_as_built_in_ones_are() {
    let publication = openapi();
    let document = document(&publication, "/apis/disco.example.com/v1");
    let schemas = &document["components"]["schemas"];
    let gadget = &schemas["com.example.disco.v1.Gadget"];
    assert_eq!(gadget["properties"]["spec"]["description"], "What it is.");
    let text =
        |schema: &Value, field: &str| schema["properties"][field]["description"].as_str().unwrap_or_default().len();
    for field in ["apiVersion", "kind", "metadata"] {
        assert!(text(gadget, field) > 0, "{field} is explained");
    }
    let list = &schemas["com.example.disco.v1.GadgetList"];
    assert_eq!(list["x-kubernetes-group-version-kind"][0]["kind"], "GadgetList");
    assert_eq!(list["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.color"}]));
    let paths: Vec<&str> = document["paths"].as_object().expect("paths").keys().map(String::as_str).collect();
    let base = "/apis/disco.example.com/v1/namespaces/{namespace}/gadgets";
    assert_eq!(
        paths,
        [
            "/apis/disco.example.com/v1/gadgets".to_owned(),
            base.to_owned(),
            format!("{base}/{{name}}"),
            format!("{base}/{{name}}/scale"),
            format!("{base}/{{name}}/status"),
        ]
    );
    let scale = &document["paths"][&paths[3]]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(scale["$ref"], "#/components/schemas/io.k8s.api.autoscaling.v1.Scale");
}

#[test]
fn a_definition_changes_its_own_document_only() {
    let publications = Publications::new("1.36");
    let first = publications.of(&Arc::new(catalog()));
    let root = |publication: &Publication| body(&ask(publication, Method::GET, "/openapi/v3", &[]))["paths"].clone();
    let before = root(&first);
    let other = defined("other.example.com", "Thing", r#"{"type":"object"}"#);
    let second = publications.of(&Arc::new(with_definition(&first.catalog, &other)));
    let mut after = root(&second);
    assert!(after.as_object_mut().and_then(|after| after.remove("apis/other.example.com/v1")).is_some());
    assert_eq!(before, after);
    // The same schema once more is the same document, although it was made anew.
    let schema = r#"{"type":"object","properties":{"spec":{"type":"object","description":"What it is."}}}"#;
    let again = defined("disco.example.com", "Gadget", schema);
    let third = publications.of(&Arc::new(with_definition(&second.catalog, &again)));
    assert_eq!(root(&third), root(&second));
    let changed = defined("disco.example.com", "Gadget", r#"{"type":"object"}"#);
    let fourth = publications.of(&Arc::new(with_definition(&third.catalog, &changed)));
    let changes: Vec<String> = root(&fourth)
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(path, address)| root(&third)[*path] != **address)
        .map(|(path, _)| path.clone())
        .collect();
    assert_eq!(changes, ["apis/disco.example.com/v1"]);
}

/// What was made for a publication, by where it is kept: to be made anew is to be elsewhere.
fn made(publication: &Publication) -> BTreeMap<String, (Arc<Tag>, *const swagger::Part)> {
    let version = |version: &Arc<PublishedVersion>| {
        let never = || panic!("{} was made before", path_of(&version.known));
        let part: *const _ = version.openapi.swagger.get().expect("was made before");
        (path_of(&version.known), (version.openapi.tag(never), part))
    };
    publication.versions.iter().map(version).collect()
}

#[test]
fn of_a_thousand_definitions_the_one_that_changes_is_described_anew() {
    let group = |number: usize| format!("g{number}.example.com");
    let mut catalog = Catalog::default();
    for number in 0..1000 {
        catalog = with_definition(&catalog, &defined(&group(number), "Gadget", r#"{"type":"object"}"#));
    }
    let publications = Publications::new("1.36");
    let ask_everything = |publication: &Publication| {
        let root = ask(publication, Method::GET, "/openapi/v3", &[]);
        let request = Request::builder().uri("/openapi/v2").body(()).expect("a request");
        (body(&root), header(&publication.openapi_v2(&request), ETAG).to_owned())
    };
    let first = publications.of(&Arc::new(catalog));
    let (root, tag) = ask_everything(&first);
    let changed = defined(&group(500), "Gadget", r#"{"type":"object","description":"new"}"#);
    let second = publications.of(&Arc::new(with_definition(&first.catalog, &changed)));
    let (new_root, new_tag) = ask_everything(&second);
    assert_ne!(tag, new_tag);

    let (before, after) = (made(&first), made(&second));
    assert_eq!(before.len(), after.len());
    let is_same = |path: &&String| Arc::ptr_eq(&before[*path].0, &after[*path].0) && before[*path].1 == after[*path].1;
    let anew: Vec<&String> = after.keys().filter(|path| !is_same(path)).collect();
    let path = format!("/apis/{}/v1", group(500));
    assert_eq!(anew, [&path]);
    let address = |root: &Value, path: &str| root["paths"][path]["serverRelativeURL"].clone();
    let moved = root["paths"]
        .as_object()
        .expect("paths")
        .keys()
        .filter(|path| address(&root, path) != address(&new_root, path));
    assert_eq!(moved.collect::<Vec<_>>(), [path.trim_start_matches('/')]);
}

#[test]
fn who_asks_for_what_is_being_made_waits_for_it() {
    let document = VersionOpenApi::default();
    let (times, started) = (AtomicUsize::new(0), Barrier::new(8));
    let write = || {
        times.fetch_add(1, Ordering::SeqCst);
        "{}".to_owned()
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                started.wait();
                let (_, body) = document.read(write, |_| true);
                assert_eq!(body.as_deref(), Some(&b"{}"[..]));
            });
        }
    });
    assert_eq!(times.load(Ordering::SeqCst), 1);
}

#[test]
fn the_older_document_is_kept_by_its_tag() {
    let publication = openapi();
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let ask = |method: Method, accept: &str, known: &str| {
        let request = Request::builder().method(method).uri("/openapi/v2");
        let request = request.header(ACCEPT, accept).header(IF_NONE_MATCH, known).body(()).expect("a request");
        publication.openapi_v2(&request)
    };
    let json = ask(Method::GET, "*/*", "\"other\"");
    let tag = header(&json, ETAG).to_owned();
    for (name, method, accept, known, code, content_type) in [
        ("JSON", Method::GET, "*/*", "\"other\"", 200, "application/json"),
        ("protobuf", Method::GET, protobuf, "\"other\"", 200, swagger_protobuf::MEDIA_TYPE),
        ("JSON that is known", Method::GET, "*/*", &*tag, 304, ""),
        ("protobuf that is known", Method::GET, protobuf, &*tag, 304, ""),
        ("another form", Method::GET, "application/yaml", &*tag, 406, ""),
        ("another method", Method::POST, "*/*", "\"other\"", 200, "application/json"),
    ] {
        let response = ask(method, accept, known);
        assert_eq!(response.status().as_u16(), code, "{name}");
        assert_eq!(header(&response, CONTENT_TYPE), content_type, "{name}");
        assert_eq!(header(&response, ETAG), if code < 400 { &*tag } else { "" }, "{name}");
    }
}

#[test]
fn types_are_shaped_as_the_table_says() {
    let catalog = Catalog::default();
    let schemas = schemas::built_in(&catalog, &Descriptions::default());
    let meta_reference = |name: &str| json!([{"$ref": format!("#/components/schemas/{}", schemas::meta(name))}]);
    assert_eq!(
        schemas["io.k8s.api.core.v1.Secret"],
        json!({
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"default": {}, "allOf": meta_reference("ObjectMeta")},
                "immutable": {"type": "boolean"},
                "data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
                "stringData": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
                "type": {"type": "string"},
            },
            "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Secret"}],
        })
    );
    assert_eq!(
        schemas[&schemas::meta("ObjectMeta")]["properties"]["ownerReferences"],
        json!({
            "type": "array",
            "items": {"default": {}, "allOf": meta_reference("OwnerReference")},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-merge-key": "uid",
            "x-kubernetes-patch-strategy": "merge",
        })
    );
    assert_eq!(schemas["io.k8s.api.core.v1.EventSeries"]["properties"]["count"]["format"], "int32");
    assert_eq!(schemas["io.k8s.api.core.v1.Event"]["required"], json!(["metadata", "involvedObject"]));
}
