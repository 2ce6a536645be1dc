//! One program that behaves as any of the last four releases: what it serves, what it stores, and that it can go forward
//! and back on one folder without losing or changing anything.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use crate::client::{Client, MERGE};
use crate::custom::{DEFINITIONS, define, definition, objects, version};
use crate::harness::{Process, Server};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

/// A library of lists that came with 1.34.
const SORTED: &str = "self.items.sort() == self.items";

/// An object of a kind whose versions come and go between the releases.
struct Sample {
    group: &'static str,
    namespace: &'static str,
    plural: &'static str,
    body: Value,
}

fn samples() -> Vec<Sample> {
    let in_default = "/namespaces/default";
    let selected = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]});
    let requests = json!({"requests": [{"name": "r", "exactly": {"deviceClassName": "a"}}]});
    let mutation =
        json!({"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'test', path: '/a', value: 1}]"}});
    let sample = |group, namespace, plural, body: Value| {
        let mut object = json!({"metadata": {"name": "a"}});
        for (name, value) in body.as_object().expect("an object") {
            object[name] = value.clone();
        }
        Sample { group, namespace, plural, body: object }
    };
    vec![
        sample(
            "storage.k8s.io",
            "",
            "volumeattributesclasses",
            json!({"driverName": "disk.example", "parameters": {"speed": "high"}}),
        ),
        sample("resource.k8s.io", "", "deviceclasses", json!({"spec": {}})),
        sample(
            "resource.k8s.io",
            "",
            "resourceslices",
            json!({"spec": {"driver": "d.example", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}}}),
        ),
        sample("resource.k8s.io", in_default, "resourceclaims", json!({"spec": {"devices": requests}})),
        sample(
            "resource.k8s.io",
            in_default,
            "resourceclaimtemplates",
            json!({"spec": {"spec": {"devices": requests}}}),
        ),
        sample(
            "resource.k8s.io",
            "",
            "devicetaintrules",
            json!({"spec": {"taint": {"key": "k", "effect": "NoExecute"}}}),
        ),
        sample(
            "admissionregistration.k8s.io",
            "",
            "mutatingadmissionpolicies",
            json!({"spec": {"matchConstraints": selected, "mutations": [mutation], "reinvocationPolicy": "Never"}}),
        ),
        sample(
            "admissionregistration.k8s.io",
            "",
            "mutatingadmissionpolicybindings",
            json!({"spec": {"policyName": "a"}}),
        ),
        sample(
            "admissionregistration.k8s.io",
            "",
            "validatingadmissionpolicies",
            json!({"spec": {"matchConstraints": selected, "validations": [{"expression": "true"}]}}),
        ),
        sample(
            "coordination.k8s.io",
            in_default,
            "leasecandidates",
            json!({"spec": {"leaseName": "l", "binaryVersion": "1.36.0", "emulationVersion": "1.36.0", "strategy": "OldestEmulationVersion"}}),
        ),
        sample("networking.k8s.io", "", "servicecidrs", json!({"spec": {"cidrs": ["10.9.0.0/24"]}})),
        sample(
            "storagemigration.k8s.io",
            "",
            "storageversionmigrations",
            json!({"spec": {"resource": {"resource": "pods"}}}),
        ),
    ]
}

/// The versions of a group that have a resource.
async fn versions_with(client: &Client, group: &str, plural: &str) -> Vec<String> {
    let reply = client.get(&format!("/apis/{group}")).await;
    if reply.code == 404 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for version in reply.expect(200).json()["versions"].as_array().expect("a list") {
        let version = version["version"].as_str().expect("a version").to_owned();
        let list = client.get(&format!("/apis/{group}/{version}")).await.expect(200).json();
        let resources = list["resources"].as_array().expect("a list");
        if resources.iter().any(|resource| resource["name"] == plural) {
            found.push(version);
        }
    }
    found
}

/// The flags of a server that serves all that a release has.
fn everything(release: &str) -> Vec<String> {
    let flags = [
        "--runtime-config=api/all=true",
        "--feature-gates=AllAlpha=true,AllBeta=true",
        "--allow-alpha-under-emulation",
    ];
    flags.iter().map(|flag| (*flag).to_owned()).chain([format!("--emulation-version={release}")]).collect()
}

/// What must not change about an object but by a write.
fn identity(object: &Value) -> (Value, Value) {
    (object["metadata"]["uid"].clone(), object["metadata"]["resourceVersion"].clone())
}

#[tokio::test]
async fn an_upgrade_can_be_taken_back_and_made_again() {
    let samples = samples();
    let mut known: BTreeMap<&str, (Value, Value)> = BTreeMap::new();
    let mut server: Option<Server> = None;
    for (turn, release) in ["1.33", "1.36", "1.33", "1.34", "1.35", "1.36", "1.34"].into_iter().enumerate() {
        let flags = everything(release);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let current = match server.take() {
            None => Server::start(&flags).await,
            Some(before) => {
                let (stopped, status) = before.terminate().await;
                assert!(status.success(), "{status}");
                stopped.with_flags(&flags).start().await
            }
        };
        let client = current.client();
        for sample in &samples {
            let Sample { group, namespace, plural, body } = sample;
            let versions = versions_with(&client, group, plural).await;
            let place = |version: &str| format!("/apis/{group}/{version}{namespace}/{plural}");
            let Some(best) = versions.first() else { continue };
            if !known.contains_key(plural) {
                let made = client.post(&place(best), &in_version(body, best, plural)).await.expect(201).json();
                known.insert(plural, identity(&made));
            }
            // Every version shows the object as its own, and reading it changes nothing.
            for version in &versions {
                let shown = client.get(&format!("{}/a", place(version))).await.expect(200).json();
                assert_eq!(shown["apiVersion"], format!("{group}/{version}"), "{plural} at {release}");
                assert_eq!(identity(&shown), known[plural], "{plural} of {version} at {release}");
                let list = client.get(&place(version)).await.expect(200).json();
                let items = list["items"].as_array().expect("a list");
                let item = items.iter().find(|item| item["metadata"]["name"] == "a").expect("is in the list");
                assert_eq!(identity(item), known[plural], "{plural} of {version} at {release}");
            }
            let label = json!({"metadata": {"labels": {"turn": turn.to_string()}}});
            let written = client.patch(&format!("{}/a", place(best)), MERGE, &label).await.expect(200).json();
            let before = std::mem::replace(known.get_mut(plural).expect("is known"), identity(&written));
            assert_eq!(before.0, written["metadata"]["uid"]);
            assert_ne!(before.1, written["metadata"]["resourceVersion"], "{plural} at {release}");
        }
        server = Some(current);
    }
    let lost: Vec<&str> = samples.iter().map(|sample| sample.plural).filter(|name| !known.contains_key(name)).collect();
    assert!(lost.is_empty(), "{lost:?} were never served");
}

/// A sample as a version has it.
fn in_version(body: &Value, version: &str, plural: &str) -> Value {
    let mut body = body.clone();
    if version == "v1beta1" && plural.starts_with("resourceclaim") {
        let spec = if plural == "resourceclaims" { &mut body["spec"] } else { &mut body["spec"]["spec"] };
        spec["devices"]["requests"] = json!([{"name": "r", "deviceClassName": "a"}]);
    }
    if version == "v1alpha1" && plural == "storageversionmigrations" {
        body["spec"]["resource"]["version"] = json!("v1");
    }
    body
}

#[tokio::test]
async fn what_is_stored_in_the_way_of_another_release_is_rewritten_when_it_is_written() {
    let classes = |version: &str| format!("/apis/storage.k8s.io/{version}/volumeattributesclasses");
    let class = json!({"metadata": {"name": "a"}, "driverName": "disk.example", "parameters": {"speed": "high"}});
    let server = Server::start(&["--emulation-version=1.34"]).await;
    let made = server.client().post(&classes("v1"), &class).await.expect(201);
    let (stopped, _) = server.terminate().await;

    let server = stopped.with_flags(&[]).start().await;
    let client = server.client();
    let path = format!("{}/a", classes("v1"));
    let start = client.get(&classes("v1")).await.expect(200).version();
    let mut watch = client.watch(&classes("v1"), &format!("resourceVersion={start}")).await;
    let read = client.get(&path).await.expect(200);
    assert_eq!(read.json(), made.json());
    // Nothing is different about it, but its form.
    let written = client.put(&path, &read.json()).await.expect(200);
    assert!(written.version() > read.version());
    assert_eq!(watch.expect("MODIFIED", "a", written.version()).await["apiVersion"], "storage.k8s.io/v1");
    let again = client.put(&path, &written.json()).await.expect(200);
    assert_eq!(again.version(), written.version());
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let path = format!("{}?includeObject=Object", classes("v1"));
    let shown = client.send(Method::GET, &path, &[("accept", table)], "").await.expect(200).json();
    assert_eq!(shown["rows"][0]["object"]["apiVersion"], "storage.k8s.io/v1", "{shown}");
}

#[tokio::test]
async fn what_a_release_lacks_is_nowhere() {
    let server = Server::start(&["--emulation-version=1.33"]).await;
    let client = server.client();
    let version = client.get("/version").await.expect(200).json();
    for (field, want) in [
        ("minor", "36"),
        ("emulationMajor", "1"),
        ("emulationMinor", "33"),
        ("minCompatibilityMajor", "1"),
        ("minCompatibilityMinor", "33"),
    ] {
        assert_eq!(version[field], want, "{field}");
    }
    assert_eq!(client.get("/apis/resource.k8s.io").await.code, 404);
    client.get("/apis/storage.k8s.io/v1/volumeattributesclasses").await.fails(404, "NotFound");
    let document = client.get("/openapi/v3/apis/storage.k8s.io/v1").await.expect(200).json();
    assert_eq!(document["info"]["version"], "1.33");
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.keys().all(|path| !path.contains("volumeattributesclasses")), "{paths:?}");
    let services = client.get("/apis/apiregistration.k8s.io/v1/apiservices").await.expect(200).names();
    assert!(services.iter().all(|name| !name.ends_with("resource.k8s.io")), "{services:?}");
    let preferred = client.get("/apis/storage.k8s.io").await.expect(200).json();
    assert_eq!(preferred["preferredVersion"]["version"], "v1");
    let roles = client.get("/apis/rbac.authorization.k8s.io/v1/clusterroles").await.expect(200);
    assert!(!roles.names().iter().any(|name| name == "system:controller:resource-claim-controller"));
    let rules = roles.json().to_string();
    assert!(!rules.contains("resourceslices") && !rules.contains("/statusz"), "{rules}");
    let checks = client.get("/healthz?verbose").await.expect(200).text();
    assert!(checks.contains("poststarthook/rbac/bootstrap-roles") && !checks.contains("storage-readiness"), "{checks}");
}

#[tokio::test]
async fn types_of_versions_that_are_gone_are_described_as_what_became_of_them() {
    let server = Server::start(&["--emulation-version=1.33", "--runtime-config=api/beta=true"]).await;
    let document =
        server.client().get("/openapi/v3/apis/admissionregistration.k8s.io/v1beta1").await.expect(200).json();
    let schemas = &document["components"]["schemas"];
    let of = |name: &str| schemas[format!("io.k8s.api.admissionregistration.v1beta1.{name}")]["properties"].clone();
    let kind = of("ValidatingAdmissionPolicySpec")["paramKind"].clone();
    assert!(kind["description"].as_str().is_some_and(|text| text.starts_with("paramKind")), "{kind}");
    let binding = of("ValidatingAdmissionPolicyBindingSpec");
    assert_eq!(binding["validationActions"]["items"]["enum"], json!(["Audit", "Deny", "Warn"]));
}

#[tokio::test]
async fn expressions_that_are_stored_outlive_a_roll_back() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let items = json!({"type": "array", "maxItems": 5, "items": {"type": "integer"}});
    let ruled = |plural: &str, rules: &[&str]| {
        let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
        let spec = json!({"type": "object", "properties": {"items": items}, "x-kubernetes-validations": rules});
        definition("sorting.example", plural, json!([version("v1", true, spec)]))
    };
    define(&client, &ruled("ropes", &[SORTED])).await;
    let policy = |name: &str, expressions: &[&str]| {
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
        let validations: Vec<Value> = expressions.iter().map(|expression| json!({"expression": expression})).collect();
        json!({"metadata": {"name": name}, "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}})
    };
    let sorted = "[1, 2].sort() == [1, 2]";
    client.post(POLICIES, &policy("a", &[sorted])).await.expect(201);
    let (stopped, _) = server.terminate().await;

    let server = stopped.with_flags(&["--emulation-version=1.33"]).start().await;
    let client = server.client();
    let ropes = objects("sorting.example", "v1", "ropes");
    let rope = |items: Value| json!({"apiVersion": "sorting.example/v1", "kind": "Rope", "metadata": {"generateName": "s-"}, "spec": {"items": items}});
    client.post(&ropes, &rope(json!([1, 2]))).await.expect(201);
    client.post(&ropes, &rope(json!([2, 1]))).await.fails(422, "Invalid");

    // What is there can be kept beside other changes, but nothing new may use it.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    client.patch(&format!("{DEFINITIONS}/ropes.sorting.example"), MERGE, &label).await.expect(200);
    client.patch(&format!("{POLICIES}/a"), MERGE, &policy("a", &[sorted, "true"])).await.expect(200);
    let more = policy("a", &[sorted, "[1, 1].distinct() == [1]"]);
    let refused = client.patch(&format!("{POLICIES}/a"), MERGE, &more).await.fails(422, "Invalid");
    assert!(
        refused["message"].as_str().expect("a message").contains("undeclared reference to 'distinct'"),
        "{refused}"
    );
    let refused = client.post(DEFINITIONS, &ruled("bundles", &[SORTED])).await.fails(422, "Invalid");
    assert!(refused["message"].as_str().expect("a message").contains("undeclared reference to 'sort'"), "{refused}");
    client.post(POLICIES, &policy("b", &[sorted])).await.fails(422, "Invalid");
}

#[tokio::test]
async fn what_cannot_be_had_ends_the_program_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (at, (flags, want)) in [
        (&["--emulation-version=1.30"][..], "emulation version 1.30 is not between [1.33, 1.36]"),
        (&["--emulated-version=kube=1.35.1"], "patch version not allowed, got: kube=1.35.1"),
        (&["--emulated-version=1.34", "--min-compatibility-version=1.35"], "is not between [1.33, 1.34]"),
        (&["--feature-gates=NoSuchGate=true"], "unrecognized feature gate: NoSuchGate"),
        (&["--emulation-forward-compatible"], "EmulationForwardCompatible cannot be set"),
        (&["--emulation-version=1.34", "--runtime-config=api/alpha=true"], "--allow-alpha-under-emulation"),
        (&["--runtime-config=widgets.example.com/v1=true"], "unknown api groups widgets.example.com/v1"),
    ]
    .into_iter()
    .enumerate()
    {
        let data = format!("--data-dir={}", folder.path().join("data").display());
        let arguments: Vec<String> =
            ["serve", "--secure-port=0", &data].iter().chain(flags).map(|flag| (*flag).to_owned()).collect();
        let mut process = Process::start(&arguments, &folder.path().join(format!("log{at}")));
        let status = process.ended().await;
        let (_, log) = process.said();
        assert_eq!(status.code(), Some(1), "{flags:?}");
        assert!(log.contains(want), "{flags:?}: {log}");
        assert!(!folder.path().join("data").exists(), "{flags:?} left something behind");
    }
}
