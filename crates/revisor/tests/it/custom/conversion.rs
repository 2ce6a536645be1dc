//! Versions of different shapes, between which a webhook converts.

use serde_json::{Value, json};

use super::converter::{Converter, Mood};
use super::{DEFINITIONS, define, definition, gone, objects, version};
use crate::client::{Client, JSON_PATCH, MERGE, name_of};
use crate::harness::{Server, eventually};
use crate::objects::{CONFIG_MAPS, config_map};

const GROUP: &str = "yard.example";
const NAME: &str = "/boats.yard.example";

/// In the old version a boat has a text for its length, in the new one a number and a unit.
fn convert(wanted: &str, boat: &mut Value) {
    let spec = &mut boat["spec"];
    if wanted.ends_with("/v2") {
        let length = spec["length"].as_str().unwrap_or_default();
        let end = length.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(length.len());
        let (amount, unit) = length.split_at(end);
        *spec = json!({"size": {"amount": amount.parse::<i64>().unwrap_or_default(), "unit": unit}});
    } else {
        let size = &spec["size"];
        *spec = json!({"length": format!("{}{}", size["amount"], size["unit"].as_str().unwrap_or_default())});
    }
}

fn boats(conversion: &Value) -> Value {
    let old = version("v1", true, json!({"type": "object", "properties": {"length": {"type": "string"}}}));
    let amount = json!({"type": "integer", "minimum": 1});
    let unit = json!({"type": "string", "default": "m"});
    let size = json!({"type": "object", "properties": {"amount": amount, "unit": unit}});
    let mut new = version("v2", false, json!({"type": "object", "properties": {"size": size}}));
    new["selectableFields"] = json!([{"jsonPath": ".spec.size.unit"}]);
    let mut definition = definition(GROUP, "boats", json!([old, new]));
    definition["spec"]["conversion"] = conversion.clone();
    definition
}

fn old(name: &str, length: &str) -> Value {
    json!({"apiVersion": "yard.example/v1", "kind": "Boat", "metadata": {"name": name}, "spec": {"length": length}})
}

fn new(name: &str, amount: i64) -> Value {
    let spec = json!({"size": {"amount": amount}});
    json!({"apiVersion": "yard.example/v2", "kind": "Boat", "metadata": {"name": name}, "spec": spec})
}

/// A server with the definition, its webhook, and where objects of the old and the new version are.
async fn start() -> (Server, Client, Converter, String, String) {
    let server = Server::start(&[]).await;
    let client = server.client();
    let converter = Converter::start("localhost", convert).await;
    define(&client, &boats(&converter.by_url())).await;
    (server, client, converter, objects(GROUP, "v1", "boats"), objects(GROUP, "v2", "boats"))
}

/// Makes the new version the one that is stored.
async fn store_new(client: &Client) {
    let swap = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    let swapped = client.patch(&format!("{DEFINITIONS}{NAME}"), JSON_PATCH, &swap).await.expect(200).json();
    assert_eq!(swapped["spec"]["versions"][1]["storage"], true);
}

#[tokio::test]
async fn both_versions_are_read_listed_watched_and_written() {
    let (_server, client, converter, v1, v2) = start().await;
    let first = client.post(&v1, &old("first", "3m")).await.expect(201);
    let mut events = client.watch(&v2, &format!("resourceVersion={}", first.version() - 1)).await;
    let seen = events.expect("ADDED", "first", first.version()).await;
    assert_eq!(
        (&seen["apiVersion"], &seen["spec"]),
        (&json!("yard.example/v2"), &json!({"size": {"amount": 3, "unit": "m"}}))
    );

    let second = client.post(&v2, &new("second", 5)).await.expect(201).json();
    assert_eq!(second["spec"], json!({"size": {"amount": 5, "unit": "m"}}), "defaults of the version that was sent");
    let read = client.get(&format!("{v1}/second")).await.expect(200).json();
    assert_eq!((&read["apiVersion"], &read["spec"]), (&json!("yard.example/v1"), &json!({"length": "5m"})));
    for key in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
        assert_eq!(read["metadata"][key], second["metadata"][key], "{key}");
    }
    let specs = |list: Value| -> Vec<Value> {
        list["items"].as_array().expect("a list").iter().map(|item| item["spec"].clone()).collect()
    };
    let list = client.get(&v1).await.expect(200).json();
    assert_eq!(specs(list), [json!({"length": "3m"}), json!({"length": "5m"})]);
    let list = client.get(&v2).await.expect(200).json();
    assert_eq!(specs(list), [3, 5].map(|amount| json!({"size": {"amount": amount, "unit": "m"}})));

    // A patch speaks of the fields of the version to which it is sent.
    let patched = client.patch(&format!("{v2}/first"), MERGE, &json!({"spec": {"size": {"amount": 4}}})).await;
    assert_eq!(patched.expect(200).json()["spec"], json!({"size": {"amount": 4, "unit": "m"}}));
    let test = json!([{"op": "test", "path": "/spec/length", "value": "4m"}, {"op": "replace", "path": "/spec/length", "value": "6ft"}]);
    client.patch(&format!("{v1}/first"), JSON_PATCH, &test).await.expect(200);
    let found = client.get(&format!("{v2}/first")).await.expect(200).json();
    assert_eq!(found["spec"], json!({"size": {"amount": 6, "unit": "ft"}}));
    let status = client.patch(&format!("{v2}/first"), MERGE, &json!({"spec": {"size": {"amount": 0}}})).await;
    assert_eq!(super::causes(&status.fails(422, "Invalid"))[0].0, "spec.size.amount");

    let mut told = async |kinds: &[&str]| {
        for kind in kinds {
            let event = events.event().await;
            assert_eq!((&*event.kind, &event.object["apiVersion"]), (*kind, &json!("yard.example/v2")));
            assert!(event.object["spec"]["size"]["amount"].is_i64(), "{event:?}");
        }
    };
    // The watch has what it asks for converted too, so its questions are over before questions are counted.
    told(&["ADDED", "MODIFIED", "MODIFIED"]).await;

    // What was converted once is not converted again for every list; who wants one object as it is now has it asked for.
    client.get(&v2).await.expect(200);
    let before = converter.asked();
    client.get(&v2).await.expect(200);
    client.get(&format!("{v2}/first?resourceVersion=0")).await.expect(200);
    assert_eq!(converter.asked(), before);
    for reads in 1..3 {
        client.get(&format!("{v2}/first")).await.expect(200);
        assert_eq!(converter.asked(), before + reads);
    }
    converter.set(Mood::Away);
    client.get(&format!("{v2}/first")).await.fails(500, "");
    assert_eq!(client.get(&v2).await.expect(200).names(), ["first", "second"]);
    converter.set(Mood::Works);

    let deleted = client.delete(&format!("{v2}/second")).await.expect(200);
    assert_eq!(deleted.json()["status"], "Success");
    told(&["DELETED"]).await;
}

#[tokio::test]
async fn objects_are_selected_by_the_fields_of_the_version_that_is_asked_for() {
    let (_server, client, converter, v1, v2) = start().await;
    for (name, length) in [("a", "3m"), ("b", "6ft"), ("c", "9m"), ("d", "2ft")] {
        client.post(&v1, &old(name, length)).await.expect(201);
    }
    let feet = format!("{v2}?fieldSelector=spec.size.unit%3Dft");
    converter.set(Mood::Away);
    client.get(&feet).await.fails(500, "");
    converter.set(Mood::Works);
    let list = client.get(&feet).await.expect(200);
    assert_eq!(list.names(), ["b", "d"]);
    let amounts = |list: Value| -> Vec<Value> {
        list["items"].as_array().expect("a list").iter().map(|item| item["spec"]["size"]["amount"].clone()).collect()
    };
    assert_eq!(amounts(list.json()), [6, 2]);
    // Whoever asks next, and asks for all, gets what the webhook makes of each too.
    assert_eq!(amounts(client.get(&v2).await.expect(200).json()), [3, 6, 9, 2]);
    assert_eq!(client.get(&format!("{v2}/a")).await.expect(200).json()["spec"]["size"]["unit"], "m");
    let page = client.get(&format!("{feet}&limit=1")).await.expect(200);
    assert_eq!(page.names(), ["b"]);
    let token = page.json()["metadata"]["continue"].as_str().expect("there is more").to_owned();
    let page = client.get(&format!("{feet}&limit=1&continue={token}")).await.expect(200);
    assert_eq!((page.names(), &page.json()["metadata"]["continue"]), (vec!["d".to_owned()], &json!("")));

    // What a watch tells depends on what the object is, and was, in the version that is watched.
    let mut events =
        client.watch(&v2, &format!("fieldSelector=spec.size.unit%3Dft&resourceVersion={}", list.version())).await;
    let lengthen = async |name: &str, length: &str| {
        let patch = json!({"spec": {"length": length}});
        client.patch(&format!("{v1}/{name}"), MERGE, &patch).await.expect(200).version()
    };
    for (name, length, seen) in
        [("a", "4m", None), ("a", "5ft", Some("ADDED")), ("a", "7ft", Some("MODIFIED")), ("b", "1m", Some("DELETED"))]
    {
        let version = lengthen(name, length).await;
        if let Some(kind) = seen {
            let object = events.expect(kind, name, version).await;
            assert_eq!(
                (&object["apiVersion"], &object["spec"]["size"]["unit"]),
                (&json!("yard.example/v2"), &json!("ft"))
            );
        }
    }
    let mut state = client.watch(&v2, "fieldSelector=spec.size.unit%3Dft&resourceVersion=0").await;
    let mut names = Vec::new();
    for _ in 0..2 {
        let event = state.event().await;
        assert_eq!((&*event.kind, &event.object["spec"]["size"]["unit"]), ("ADDED", &json!("ft")));
        names.push(name_of(&event.object).to_owned());
    }
    names.sort();
    assert_eq!(names, ["a", "d"]);
}

#[tokio::test]
async fn what_is_written_is_stored_in_the_version_of_the_moment() {
    let (server, client, converter, v1, v2) = start().await;
    client.post(&v1, &old("a", "3m")).await.expect(201);
    client.post(&v1, &old("b", "4m")).await.expect(201);
    store_new(&client).await;
    let stored = client.get(&format!("{DEFINITIONS}{NAME}")).await.expect(200).json();
    assert_eq!(stored["status"]["storedVersions"], json!(["v1", "v2"]));
    // An update that changes nothing but the version in which the object is stored.
    let a = client.get(&format!("{v1}/a")).await.expect(200).json();
    let rewritten = client.put(&format!("{v1}/a"), &a).await.expect(200).json();
    assert_eq!(rewritten["metadata"]["generation"], a["metadata"]["generation"]);
    client.post(&v2, &new("c", 5)).await.expect(201);

    // After a restart nothing is remembered: only what is still stored as it was has to be converted.
    let server = server.restart().await;
    let client = server.client();
    converter.set(Mood::Away);
    assert_eq!(client.get(&format!("{v2}/a")).await.expect(200).json()["spec"]["size"]["amount"], 3);
    assert_eq!(client.get(&format!("{v2}/c")).await.expect(200).json()["spec"]["size"]["amount"], 5);
    client.get(&format!("{v2}/b")).await.fails(500, "");
    client.get(&format!("{v1}/a")).await.fails(500, "");
    converter.set(Mood::Works);
    assert_eq!(client.get(&v2).await.expect(200).names(), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_webhook_that_fails_is_named_and_hurts_nobody_else() {
    let (server, client, converter, v1, v2) = start().await;
    client.post(&v1, &old("a", "3m")).await.expect(201);
    let failures: [(Mood, &str); 6] = [
        (Mood::Away, "Post \"https://"),
        (Mood::Lies(|review| review["response"]["uid"] = "another".into()), "expected response.uid"),
        (Mood::Lies(|review| review["response"]["convertedObjects"] = json!([])), "returned 0 objects, expected 1"),
        (
            Mood::Lies(|review| review["response"]["convertedObjects"][0]["metadata"]["name"] = "another".into()),
            "must have the same name: a != another",
        ),
        (
            Mood::Lies(|review| review["response"]["result"] = json!({"status": "Failure", "message": "too tired"})),
            "too tired",
        ),
        (Mood::Lies(|review| *review = json!([])), "Kind=Boat failed: "),
    ];
    for (mood, told) in failures {
        converter.set(mood);
        for path in [format!("{v2}/a"), v2.clone()] {
            let status = client.get(&path).await.fails(500, "");
            let message = super::text(&status["message"]);
            assert!(message.contains("conversion webhook for yard.example/v1, Kind=Boat "), "{message}");
            assert!(message.contains(told), "{told}: {message}");
        }
        client.post(&v2, &new("b", 1)).await.fails(500, "");
        // Who asks for the version that is stored needs no webhook.
        assert_eq!(client.get(&v1).await.expect(200).names(), ["a"]);
        client.put(&format!("{v1}/a"), &old_of(&client, &v1).await).await.expect(200);
        server.assert_well().await;
    }

    converter.set(Mood::Hangs);
    let path = format!("{v2}/a?timeout=1s");
    let hanging = client.get(&path);
    let others = async {
        client.post(CONFIG_MAPS, &config_map("c", "1")).await.expect(201);
        assert_eq!(client.get(&v1).await.expect(200).names(), ["a"]);
        server.assert_well().await;
    };
    let (reply, ()) = tokio::join!(hanging, others);
    reply.fails(504, "Timeout");
    converter.set(Mood::Works);
    client.get(&format!("{v2}/a")).await.expect(200);
}

async fn old_of(client: &Client, v1: &str) -> Value {
    client.get(&format!("{v1}/a")).await.expect(200).json()
}

#[tokio::test]
async fn a_definition_waits_for_its_webhook_before_it_goes() {
    let (_server, client, converter, v1, _) = start().await;
    client.post(&v1, &old("a", "3m")).await.expect(201);
    store_new(&client).await;
    converter.set(Mood::Away);
    let path = format!("{DEFINITIONS}{NAME}");
    client.delete(&path).await.expect(200);
    let told = eventually(|| async {
        let found = client.get(&path).await.expect(200).json();
        let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["reason"] == "InstanceDeletionFailed")
    })
    .await;
    let message = super::text(&told["message"]);
    assert!(message.starts_with("could not issue all deletes: conversion webhook for "), "{message}");
    converter.set(Mood::Works);
    gone(&client, &path).await;
}

#[tokio::test]
async fn a_webhook_may_stand_behind_a_service() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let converter = Converter::start("hook.default.svc", convert).await;
    let port = converter.address.port();
    let service = json!({"service": {"namespace": "default", "name": "hook", "path": "/convert", "port": port}});
    define(&client, &boats(&converter.conversion(service))).await;
    let (v1, v2) = (objects(GROUP, "v1", "boats"), objects(GROUP, "v2", "boats"));
    client.post(&v1, &old("a", "3m")).await.expect(201);
    let status = client.get(&format!("{v2}/a")).await.fails(500, "");
    assert!(super::text(&status["message"]).contains("service \"hook\" not found"), "{status}");

    // Endpoints cannot be on loopback, but names can.
    let services = "/api/v1/namespaces/default/services";
    let spec = json!({"type": "ExternalName", "externalName": "127.0.0.1"});
    client.post(services, &json!({"metadata": {"name": "hook"}, "spec": spec})).await.expect(201);
    assert_eq!(client.get(&format!("{v2}/a")).await.expect(200).json()["spec"]["size"]["amount"], 3);
    client.post(&v2, &new("b", 1)).await.expect(201);
}
