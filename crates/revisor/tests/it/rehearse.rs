//! `revisor rehearse`: what a release, definitions and Conversions that are to come would do to what is stored.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::client::MERGE;
use crate::custom::{define, definition, objects, version};
use crate::harness::{ADMIN_TOKEN, Server};

const GROUP: &str = "loft.example";

/// Sails of two versions that differ by name; the first is stored.
fn sails(spec: &Value) -> Value {
    definition(GROUP, "sails", json!([version("v1", true, spec.clone()), version("v2", false, spec.clone())]))
}

fn spec() -> Value {
    json!({"type": "object", "properties": {
        "size": {"type": "integer"}, "colour": {"type": "string"}, "reefs": {"type": "integer"},
    }})
}

async fn make(server: &Server, name: &str, spec: Value) {
    let sail = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Sail", "metadata": {"name": name}, "spec": spec});
    server.client().post(&objects(GROUP, "v1", "sails"), &sail).await.expect(201);
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_revisor"));
    command.arg("rehearse").args(arguments).output().expect("the program can be started")
}

/// The exit code, and of each finding its resource, name and effect.
fn rehearse(arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let done = run(&[arguments, &["-o", "json"]].concat());
    let report: Value = serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&done.stderr)));
    (done.status.code(), report["findings"].as_array().expect("a list").clone())
}

fn effects(findings: &[Value]) -> BTreeSet<(&str, &str, &str)> {
    fn effect(found: &Value) -> (&str, &str, &str) {
        let of = |name: &str| found[name].as_str().expect("a text");
        assert!(!of("message").is_empty(), "{found}");
        (of("resource"), of("name"), of("effect"))
    }
    findings.iter().map(effect).collect()
}

/// Every file below a folder, with what is in it and when it was changed.
fn contents(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>, SystemTime)> {
    let mut found = Vec::new();
    for item in std::fs::read_dir(folder).expect("can be listed") {
        let path = item.expect("can be listed").path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let changed = path.metadata().and_then(|metadata| metadata.modified()).expect("has a time");
            found.push((path.clone(), std::fs::read(&path).expect("can be read"), changed));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_folder_is_rehearsed_and_stays_as_it_is() {
    let server = Server::start(&[]).await;
    define(&server.client(), &sails(&spec())).await;
    make(&server, "small", json!({"size": 1})).await;
    make(&server, "big", json!({"size": 50})).await;
    make(&server, "red", json!({"colour": "red"})).await;
    let data = server.data();
    let folder = data.to_str().expect("a text").to_owned();
    let refused = run(&["--data-dir", &folder]);
    assert_eq!(refused.status.code(), Some(2), "a server has it open");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--server"), "{refused:?}");
    let (stopped, _) = server.terminate().await;

    let files = tempfile::tempdir().expect("a folder");
    let path = files.path().join("sails.json");
    let definitions = path.to_str().expect("a text");
    let before = contents(&data);
    let with = |new: &Value, flags: &[&str]| {
        std::fs::write(&path, new.to_string()).expect("a file can be written");
        rehearse(&[&["--data-dir", &folder, "--definitions", definitions], flags].concat())
    };

    assert_eq!(with(&sails(&spec()), &["--emulation-version=1.36"]), (Some(0), Vec::new()));
    let mut smaller = spec();
    smaller["properties"]["size"]["maximum"] = json!(10);
    let (code, found) = with(&sails(&smaller), &[]);
    assert_eq!((code, effects(&found)), (Some(1), [("sails.loft.example", "big", "refused")].into()));
    assert_eq!(found[0]["namespace"], "default");
    let message = found[0]["message"].as_str().expect("a text");
    assert!(message.contains("spec.size: Invalid value: 50"), "{message}");
    let mut plainer = spec();
    plainer["properties"].as_object_mut().expect("is one").remove("colour");
    let (code, found) = with(&sails(&plainer), &[]);
    assert_eq!((code, effects(&found)), (Some(1), [("sails.loft.example", "red", "shows less")].into()));
    let mut filled = spec();
    filled["properties"]["reefs"]["default"] = json!(2);
    let (code, found) = with(&sails(&filled), &[]);
    assert_eq!((code, effects(&found).len()), (Some(0), 3), "they are stored otherwise");
    assert!(found.iter().all(|found| found["effect"] == "stored otherwise"), "{found:?}");

    // What cannot come is told, too, and so is that no version is served.
    let mut unserved = sails(&spec());
    for version in unserved["spec"]["versions"].as_array_mut().expect("a list") {
        version["served"] = json!(false);
    }
    let (code, found) = with(&unserved, &[]);
    assert_eq!((code, effects(&found).len()), (Some(1), 4), "the objects, and the requests that made them");
    assert!(found.iter().all(|found| found["effect"] == "gone"), "{found:?}");
    let mut other_scope = sails(&spec());
    other_scope["spec"]["scope"] = json!("Cluster");
    let (code, found) = with(&other_scope, &[]);
    let crd = ("customresourcedefinitions.apiextensions.k8s.io", "sails.loft.example", "refused");
    assert!(code == Some(1) && effects(&found).contains(&crd), "{found:?}");

    assert_eq!(contents(&data), before, "nothing was written");
    let client = stopped.start().await;
    let list = client.client().get(&objects(GROUP, "v1", "sails")).await.expect(200).json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(3));
}

/// What only a Conversion carries over is lost without it, and not if it comes along.
#[tokio::test]
async fn conversions_to_come_carry_over_what_definitions_rename() {
    let server = Server::start(&[]).await;
    let old = definition(GROUP, "sails", json!([version("v1", true, spec())]));
    define(&server.client(), &old).await;
    make(&server, "big", json!({"size": 50, "colour": "red"})).await;
    let folder = server.data().to_str().expect("a text").to_owned();
    let (_stopped, _) = server.terminate().await;

    let mut renamed = spec();
    let properties = renamed["properties"].as_object_mut().expect("is one");
    let size = properties.remove("size").expect("is there");
    properties.insert("area".to_owned(), size);
    let mut first = version("v1", false, spec());
    first["served"] = json!(false);
    let new = definition(GROUP, "sails", json!([first, version("v2", true, renamed)]));
    let step = |path: &str| {
        json!({
            "apiVersion": "versioning.revisor.dev/v1alpha1", "kind": "Conversion",
            "metadata": {"name": format!("sails.{GROUP}")},
            "spec": {"steps": [{"from": "v1", "to": "v2", "rules": [{"move": {"from": path, "to": ".spec.area"}}]}]},
        })
    };
    let files = tempfile::tempdir().expect("a folder");
    let definitions = files.path().to_str().expect("a text").to_owned();
    let write = |name: &str, what: &Value| {
        std::fs::write(files.path().join(name), what.to_string()).expect("a file can be written");
    };
    write("crd.json", &new);
    let arguments = ["--data-dir", &folder, "--definitions", &definitions];
    // Who made the object asked for v1, which is not served then.
    let requests = ("sails.loft.example", "", "gone");
    let told = |found: &[Value]| {
        let object = found.iter().find(|found| found["name"] == "big").expect("the object is found");
        object["message"].as_str().expect("a text").to_owned()
    };
    let (code, found) = rehearse(&arguments);
    assert_eq!((code, effects(&found)), (Some(1), [("sails.loft.example", "big", "shows less"), requests].into()));
    assert!(told(&found).contains(".spec.size"), "{found:?}");
    write("conversion.json", &step(".spec.size"));
    let (code, found) = rehearse(&arguments);
    let otherwise = ("sails.loft.example", "big", "stored otherwise");
    assert_eq!((code, effects(&found)), (Some(1), [otherwise, requests].into()));
    assert_eq!(told(&found), "as loft.example/v2 instead of loft.example/v1, with changes at .spec.size, .spec.area");
    write("conversion.json", &step(".spec.nothing"));
    let (code, found) = rehearse(&arguments);
    let refused = ("conversions.versioning.revisor.dev", "sails.loft.example", "refused");
    assert!(code == Some(1) && effects(&found).contains(&refused), "{found:?}");
}

/// Versions of built-in kinds come and go with releases.
#[tokio::test]
async fn a_release_to_come_stores_otherwise_and_lets_go() {
    let flags = ["--emulation-version=1.33", "--runtime-config=api/all=true", "--allow-alpha-under-emulation"];
    let server = Server::start(&flags).await;
    let client = server.client();
    let class = json!({
        "apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": {"name": "dc"},
        "spec": {"selectors": [{"cel": {"expression": "true"}}]},
    });
    client.post("/apis/resource.k8s.io/v1beta1/deviceclasses", &class).await.expect(201);
    let candidate = json!({
        "apiVersion": "coordination.k8s.io/v1alpha2", "kind": "LeaseCandidate", "metadata": {"name": "lc"},
        "spec": {"leaseName": "x", "binaryVersion": "1.33.0", "emulationVersion": "1.33.0",
            "strategy": "OldestEmulationVersion"},
    });
    client.post("/apis/coordination.k8s.io/v1alpha2/namespaces/default/leasecandidates", &candidate).await.expect(201);
    let want: BTreeSet<_> = [
        ("deviceclasses.resource.k8s.io", "dc", "stored otherwise"),
        ("leasecandidates.coordination.k8s.io", "lc", "gone"),
    ]
    .into();
    let folder = server.data().to_str().expect("a text").to_owned();
    let (_stopped, _) = server.terminate().await;
    let (code, found) = rehearse(&["--data-dir", &folder, "--emulation-version=1.36"]);
    assert_eq!((code, effects(&found)), (Some(1), want));
    let same = ["--emulation-version=1.33", "--runtime-config=api/all=true", "--allow-alpha-under-emulation"];
    assert_eq!(rehearse(&[&["--data-dir", folder.as_str()], &same[..]].concat()), (Some(0), Vec::new()));
}

#[tokio::test]
async fn a_live_server_is_rehearsed_through_its_api() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut renamed = spec();
    let properties = renamed["properties"].as_object_mut().expect("is one");
    let size = properties.remove("size").expect("is there");
    properties.insert("area".to_owned(), size);
    properties.insert("maker".to_owned(), json!({"type": "string"}));
    let mut two = definition(GROUP, "sails", json!([version("v1", true, spec()), version("v2", false, renamed)]));
    define(&client, &two).await;
    let rules = json!([{"move": {"from": ".spec.size", "to": ".spec.area"}}]);
    let conversion = json!({
        "apiVersion": "versioning.revisor.dev/v1alpha1", "kind": "Conversion",
        "metadata": {"name": format!("sails.{GROUP}")},
        "spec": {"steps": [{"from": "v1", "to": "v2", "rules": rules}]},
    });
    client.post("/apis/versioning.revisor.dev/v1alpha1/conversions", &conversion).await.expect(201);
    make(&server, "small", json!({"size": 1})).await;
    make(&server, "big", json!({"size": 50})).await;
    // What the stored version cannot say, no list of it shows.
    let maker = json!({"spec": {"maker": "me"}});
    client.patch(&format!("{}/small", objects(GROUP, "v2", "sails")), MERGE, &maker).await.expect(200);

    let files = tempfile::tempdir().expect("a folder");
    let path = files.path().join("crd.json");
    let kubeconfig = server.data().join("kubeconfig");
    let of_server = ["--kubeconfig", kubeconfig.to_str().expect("a text")];
    let with = |new: &Value| {
        std::fs::write(&path, new.to_string()).expect("a file can be written");
        rehearse(&[&of_server[..], &["--definitions", path.to_str().expect("a text")]].concat())
    };
    assert_eq!(with(&two), (Some(0), Vec::new()));
    let properties = |two: &mut Value, at: usize| {
        two["spec"]["versions"][at]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            .as_object_mut()
            .expect("is one")
            .to_owned()
    };
    let mut changed = properties(&mut two, 1);
    changed.remove("maker");
    two["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!(changed);
    let mut first = properties(&mut two, 0);
    first["size"]["maximum"] = json!(10);
    two["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!(first);
    let (code, found) = with(&two);
    assert_eq!(code, Some(1));
    let sails = |name, effect| ("sails.loft.example", name, effect);
    let told = effects(&found);
    assert!(told.contains(&sails("big", "refused")) && told.contains(&sails("small", "shows less")), "{found:?}");

    // A version that somebody asks for is not let go unnoticed.
    two["spec"]["versions"][1]["served"] = json!(false);
    let (_, found) = with(&two);
    let gone = found.iter().find(|found| found["effect"] == "gone" && found["name"] == "");
    let gone = gone.unwrap_or_else(|| panic!("requests for v2 would fail: {found:?}"));
    assert!(gone["message"].as_str().is_some_and(|message| message.contains("v2 is not served")), "{gone}");

    let url = format!("https://{}", server.kubeconfig.address);
    let refused = run(&["--server", &url, "--token", ADMIN_TOKEN]);
    assert_eq!(refused.status.code(), Some(2), "nobody vouches for the server: {refused:?}");
}

#[test]
fn what_cannot_be_rehearsed_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a text").to_owned();
    std::fs::write(path("none.yaml"), "kind: ConfigMap\n").expect("a file can be written");
    std::fs::write(path("broken.yaml"), "a: [\n").expect("a file can be written");
    std::fs::create_dir(path("empty")).expect("a folder can be made");
    for (arguments, want) in [
        (vec![], "--data-dir"),
        (vec!["--data-dir".to_owned(), path("nowhere")], "is no folder"),
        (vec!["--data-dir".to_owned(), path("empty")], "is not a store"),
        (vec!["--data-dir".to_owned(), path("empty"), "--definitions".to_owned(), path("none.yaml")], "none.yaml"),
        (vec!["--data-dir".to_owned(), path("empty"), "--definitions".to_owned(), path("broken.yaml")], "line 1"),
        (vec!["--data-dir".to_owned(), path("empty"), "--emulation-version=1.2".to_owned()], "1.2"),
        (vec!["--data-dir".to_owned(), path("empty"), "--server=https://127.0.0.1:1".to_owned()], "leave out"),
        (vec!["--nonsense".to_owned()], "--nonsense"),
    ] {
        let done = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(want), "{arguments:?}: {said}");
    }
    assert!(std::fs::read_dir(path("empty")).expect("can be listed").next().is_none(), "nothing was made");
}
