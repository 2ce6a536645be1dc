//! Server-side apply by managers who know an object in different versions.

use serde_json::{Value, json};

use super::converter::{Converter, Mood};
use super::{DEFINITIONS, define, definition, objects, version};
use crate::client::{APPLY, Client, MERGE};
use crate::harness::{Server, eventually};

const GROUP: &str = "dock.example";

/// What the two versions call the colour of a crane.
const NAMES: [(&str, &str); 2] = [("v1", "colour"), ("v2", "color")];

fn cranes(same: bool, conversion: Option<Value>) -> Value {
    let spec = |colour: &str| {
        let text = json!({"type": "string"});
        json!({"type": "object", "properties": {colour: text, "reach": {"type": "integer"}, "note": text}})
    };
    let versions = NAMES.map(|(name, colour)| version(name, name == "v1", spec(if same { "colour" } else { colour })));
    let mut definition = definition(GROUP, "cranes", json!(versions));
    if let Some(conversion) = conversion {
        definition["spec"]["conversion"] = conversion;
    }
    definition
}

/// Gives the colour the name that the wanted version has for it.
fn convert(wanted: &str, crane: &mut Value) {
    let (from, to) = if wanted.ends_with("/v2") { ("colour", "color") } else { ("color", "colour") };
    if let Some(spec) = crane["spec"].as_object_mut()
        && let Some(colour) = spec.remove(from)
    {
        spec.insert(to.to_owned(), colour);
    }
}

/// Applies a spec in the name of a manager; answers what came of it in few words.
async fn apply(client: &Client, manager: &str, version: &str, spec: Value, force: bool) -> String {
    let crane = json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": "Crane", "metadata": {"name": "one"}, "spec": spec,
    });
    let query = format!("fieldManager={manager}&force={force}");
    let path = format!("{}/one?{query}", objects(GROUP, version, "cranes"));
    said(&client.patch(&path, APPLY, &crane).await.json())
}

/// A spec and who manages what of it, or a refusal.
fn said(answer: &Value) -> String {
    if answer["kind"] == "Status" {
        return format!("{} {}", answer["code"], answer["message"].as_str().unwrap_or_default());
    }
    let entries = answer["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let managers = entries.iter().map(|entry| {
        let version = entry["apiVersion"].as_str().and_then(|version| version.rsplit('/').next()).unwrap_or_default();
        let fields = entry["fieldsV1"]["f:spec"].as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
        format!("{}@{version} {}", entry["manager"].as_str().unwrap_or_default(), fields.unwrap_or_default().join(","))
    });
    let mut managers: Vec<String> = managers.collect();
    managers.sort_unstable();
    format!("{} {}", answer["spec"], managers.join("; "))
}

#[tokio::test]
async fn managers_of_different_versions_meet() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &cranes(true, None)).await;
    for (manager, version, spec, force, want) in [
        ("a", "v1", json!({"colour": "red", "reach": 1}), false, r#"{"colour":"red","reach":1} a@v1 f:colour,f:reach"#),
        (
            "b",
            "v2",
            json!({"colour": "blue"}),
            false,
            r#"409 Apply failed with 1 conflict: conflict with "a": .spec.colour"#,
        ),
        (
            "b",
            "v2",
            json!({"colour": "red", "note": "n"}),
            false,
            r#"{"colour":"red","note":"n","reach":1} a@v1 f:colour,f:reach; b@v2 f:colour,f:note"#,
        ),
        (
            "a",
            "v2",
            json!({"reach": 2}),
            false,
            r#"{"colour":"red","note":"n","reach":2} a@v2 f:reach; b@v2 f:colour,f:note"#,
        ),
        (
            "a",
            "v1",
            json!({"reach": 2, "colour": "green"}),
            true,
            r#"{"colour":"green","note":"n","reach":2} a@v1 f:colour,f:reach; b@v2 f:note"#,
        ),
        ("b", "v1", json!({}), false, r#"{"colour":"green","reach":2} a@v1 f:colour,f:reach; b@v1 "#),
    ] {
        assert_eq!(apply(&client, manager, version, spec.clone(), force).await, want, "{manager} {version} {spec}");
    }
    let path = format!("{}/one?fieldManager=u", objects(GROUP, "v2", "cranes"));
    let updated = client.patch(&path, MERGE, &json!({"spec": {"colour": "black"}})).await.expect(200).json();
    assert_eq!(said(&updated), r#"{"colour":"black","reach":2} a@v1 f:reach; b@v1 ; u@v2 f:colour"#);
}

#[tokio::test]
async fn what_a_version_does_not_know_cannot_be_compared_in_it() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &cranes(false, None)).await;
    apply(&client, "a", "v1", json!({"colour": "red"}), false).await;
    assert_eq!(
        apply(&client, "b", "v2", json!({"color": "red"}), false).await,
        "500 failed to convert new object: .spec.color: field not declared in schema"
    );
}

#[tokio::test]
async fn a_version_that_is_no_more_stands_in_nobodys_way() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &cranes(true, None)).await;
    apply(&client, "a", "v1", json!({"colour": "red"}), false).await;
    apply(&client, "b", "v2", json!({"note": "n"}), false).await;
    let path = format!("{DEFINITIONS}/cranes.{GROUP}");
    let mut definition = client.get(&path).await.expect(200).json();
    definition["spec"]["versions"].as_array_mut().expect("a list").pop();
    client.put(&path, &definition).await.expect(200);
    let v2 = objects(GROUP, "v2", "cranes");
    eventually(|| async { (client.get(&v2).await.code == 404).then_some(()) }).await;
    // Who wrote in it manages nothing any more; what was written stays, and everybody else manages what they did.
    let path = format!("{}/one?fieldManager=u", objects(GROUP, "v1", "cranes"));
    let updated = client.patch(&path, MERGE, &json!({"spec": {"reach": 1}})).await.expect(200).json();
    assert_eq!(said(&updated), r#"{"colour":"red","note":"n","reach":1} a@v1 f:colour; u@v1 f:reach"#);
    for (manager, spec, want) in [
        ("a", json!({"colour": "blue"}), r#"{"colour":"blue","note":"n","reach":1} a@v1 f:colour; u@v1 f:reach"#),
        ("b", json!({"colour": "grey"}), r#"409 Apply failed with 1 conflict: conflict with "a": .spec.colour"#),
        (
            "b",
            json!({"note": "m"}),
            r#"{"colour":"blue","note":"m","reach":1} a@v1 f:colour; b@v1 f:note; u@v1 f:reach"#,
        ),
    ] {
        assert_eq!(apply(&client, manager, "v1", spec.clone(), false).await, want, "{manager} {spec}");
    }
}

/// The same where the first to write after the version has gone is somebody who applies, or puts the whole object.
#[tokio::test]
async fn whoever_writes_first_after_a_version_is_gone_takes_nothing_from_others() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &cranes(true, None)).await;
    let definition_path = format!("{DEFINITIONS}/cranes.{GROUP}");
    let path = format!("{}/one", objects(GROUP, "v1", "cranes"));
    for way in ["apply", "put", "status"] {
        apply(&client, "a", "v1", json!({"colour": "red"}), true).await;
        apply(&client, "b", "v2", json!({"note": "n"}), true).await;
        let mut definition = client.get(&definition_path).await.expect(200).json();
        let gone = definition["spec"]["versions"].as_array_mut().expect("a list").pop().expect("there are two");
        client.put(&definition_path, &definition).await.expect(200);
        let written = match way {
            "apply" => {
                let crane = json!({
                    "apiVersion": format!("{GROUP}/v1"), "kind": "Crane", "metadata": {"name": "one"},
                    "spec": {"colour": "blue"},
                });
                client.patch(&format!("{path}?fieldManager=a"), APPLY, &crane).await
            }
            "put" => {
                let mut crane = client.get(&path).await.expect(200).json();
                crane["spec"]["colour"] = json!("blue");
                client.put(&format!("{path}?fieldManager=a"), &crane).await
            }
            _ => client.patch(&format!("{path}/status?fieldManager=u"), MERGE, &json!({"status": {"up": true}})).await,
        };
        let colour = if way == "status" { "red" } else { "blue" };
        let spec = written.expect(200).json();
        assert_eq!(spec["spec"], json!({"colour": colour, "note": "n"}), "{way}");
        let managers = said(&spec);
        assert!(managers.contains("@v1 f:colour") && !managers.contains("@v2"), "{way}: {managers}");
        client.delete(&path).await.expect(200);
        let mut definition = client.get(&definition_path).await.expect(200).json();
        definition["spec"]["versions"].as_array_mut().expect("a list").push(gone);
        client.put(&definition_path, &definition).await.expect(200);
    }
}

#[tokio::test]
async fn webhooks_convert_for_managers() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let converter = Converter::start("localhost", convert).await;
    define(&client, &cranes(false, Some(converter.by_url()))).await;
    for (manager, version, spec, want) in [
        ("a", "v1", json!({"colour": "red"}), r#"{"colour":"red"} a@v1 f:colour"#),
        ("b", "v2", json!({"color": "blue"}), r#"409 Apply failed with 1 conflict: conflict with "a": .spec.colour"#),
        ("b", "v2", json!({"color": "red"}), r#"{"color":"red"} a@v1 f:colour; b@v2 f:color"#),
        ("a", "v1", json!({"reach": 1}), r#"{"colour":"red","reach":1} a@v1 f:reach; b@v2 f:color"#),
        ("b", "v1", json!({"reach": 1}), r#"{"reach":1} a@v1 f:reach; b@v1 f:reach"#),
        ("b", "v2", json!({"color": "red"}), r#"{"color":"red","reach":1} a@v1 f:reach; b@v2 f:color"#),
    ] {
        assert_eq!(apply(&client, manager, version, spec.clone(), false).await, want, "{manager} {version} {spec}");
    }
    let path = format!("{}/one?fieldManager=u", objects(GROUP, "v1", "cranes"));
    let updated = client.patch(&path, MERGE, &json!({"spec": {"colour": "black"}})).await.expect(200).json();
    assert_eq!(said(&updated), r#"{"colour":"black","reach":1} a@v1 f:reach; u@v1 f:colour"#);

    // Who cannot see the object as its managers do is told so; an update is done, and nobody is recorded any more.
    apply(&client, "b", "v2", json!({"note": "n"}), false).await;
    converter.set(Mood::Lies(|review| {
        review["response"]["result"] = json!({"status": "Failure", "message": "no paint"});
        review["response"]["convertedObjects"] = json!([]);
    }));
    assert_eq!(
        apply(&client, "a", "v1", json!({"reach": 1}), false).await,
        "500 conversion webhook for dock.example/v1, Kind=Crane failed: no paint"
    );
    let updated = client.patch(&path, MERGE, &json!({"spec": {"reach": 2}})).await.expect(200).json();
    assert_eq!(said(&updated), r#"{"colour":"black","note":"n","reach":2} "#);
}
