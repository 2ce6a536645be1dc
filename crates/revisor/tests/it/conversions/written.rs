//! What becomes of a Conversion when it is written.

use serde_json::{Value, json};

use super::*;
use crate::client::{APPLY, MERGE};
use crate::custom::gone;
use crate::harness::Server;

const LEVELS: &str = r#"{"low": "Low", "lo": "Low", "high": "High"}"#;

/// Boats whose levels have other names in each version.
fn levels() -> Value {
    let level = |names: &[&str]| json!({"level": {"type": "string", "enum": names}});
    boats(&[("v1", level(&["low", "lo", "high"])), ("v2", level(&["Low", "High"]))])
}

fn map(map: &str) -> Value {
    let map: Value = serde_json::from_str(map).expect("is JSON");
    json!({"steps": [step("v1", "v2", json!([{"values": {"path": ".spec.level", "map": map}}]))]})
}

#[tokio::test]
async fn whoever_wrote_one_finds_it_in_effect_with_all_that_is_known() {
    let server = Server::start(&[]).await;
    let client = server.client();
    client.get(CONVERSIONS).await.expect(404);
    let defined = define(&client, &renamed()).await;
    let made = propose(&client, &rename()).await.expect(201);
    assert_eq!(warnings(&made), "");
    let body = made.json();
    let yes = |kind: &str, reason: &str| (kind.to_owned(), "True".to_owned(), reason.to_owned());
    assert_eq!(
        conditions(&body),
        [yes("Accepted", "LawsKept"), yes("Complete", "AllReached"), yes("InUse", "RulesConvert")]
    );
    let status = &body["status"];
    assert_eq!(status["steps"], json!([{"from": "v1", "to": "v2", "verdict": "Proved", "objects": 0}]));
    assert_eq!((&status["observedGeneration"], &status["definitionGeneration"]), (&json!(1), &json!(1)));
    assert_eq!(defined["metadata"]["generation"], 1);
    assert_eq!(client.get(&at()).await.expect(200).json(), body, "nothing is written behind its back");

    // Labels are no other rules; other rules are another generation; the status is not its writer's.
    let patched = client.patch(&at(), MERGE, &json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200).json();
    assert_eq!((&patched["metadata"]["generation"], &patched["status"]), (&json!(1), status));
    let mut more = patched;
    more["spec"]["steps"][0]["rules"] = json!([]);
    more["status"] = json!({});
    let changed = client.put(&at(), &more).await.expect(200).json();
    assert_eq!((&changed["metadata"]["generation"], &changed["status"]["observedGeneration"]), (&json!(2), &json!(2)));
    assert_eq!(conditions(&changed), conditions(&body));
    let path = format!("{}/status", at());
    let forged = json!({"spec": {"steps": []}, "status": {"steps": []}});
    let forged = client.patch(&path, MERGE, &forged).await.expect(200).json();
    assert_eq!((forged["spec"]["steps"].as_array().map(Vec::len), &forged["status"]["steps"]), (Some(1), &Value::Null));

    // After a restart it is there, and in effect, without being written again.
    let before = client.get(&at()).await.expect(200).body;
    let server = server.restart().await;
    assert_eq!(server.client().get(&at()).await.expect(200).body, before);
}

#[tokio::test]
async fn a_broken_law_is_told_with_the_rule_and_the_smallest_object() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &levels()).await;
    for query in ["?dryRun=All", ""] {
        let reply = client.post(&format!("{CONVERSIONS}{query}"), &conversion(&map(LEVELS))).await.expect(422);
        let told = causes(&reply);
        let (field, message) = &told[0];
        assert_eq!((told.len(), field.as_str()), (1, "spec.steps[0].rules[0]"), "{told:?}");
        let lines: Vec<&str> = message.lines().collect();
        assert!(lines[0].contains("L1: "), "{message}");
        let object =
            r#"{"apiVersion":"rules.example/v1","kind":"Boat","metadata":{"name":"x"},"spec":{"level":"low"}}"#;
        assert_eq!(lines[1], format!("object: {object}"));
        assert_eq!(lines[2], format!("becomes: {}", object.replace("/v1", "/v2").replace("low", "Low")));
        assert_eq!(lines[3..], [format!("back: {}", object.replace("low", "lo"))]);
    }
    client.get(&at()).await.expect(404);
    // Every way to write is one in which it is checked.
    let apply = format!("{}?fieldManager=me", at());
    client.patch(&apply, APPLY, &conversion(&map(LEVELS))).await.expect(422);
    let tolerant = json!({
        "steps": map(LEVELS)["steps"],
        "tolerate": [{"version": "v1", "path": ".spec.level", "reason": "nobody writes lo"}],
    });
    let applied = client.patch(&apply, APPLY, &conversion(&tolerant)).await.expect(201).json();
    assert_eq!(applied["status"]["steps"][0]["verdict"], "Tolerated");
    client.patch(&at(), MERGE, &json!({"spec": {"tolerate": null}})).await.expect(422);
    let mut body = client.get(&at()).await.expect(200).json();
    body["spec"]["tolerate"] = json!([]);
    client.put(&at(), &body).await.expect(422);
    assert_eq!(client.get(&at()).await.expect(200).json(), applied);
}

#[tokio::test]
async fn what_its_author_should_know_is_a_warning() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let text = json!({"a": {"type": "string"}});
    define(&client, &boats(&[("v1", text.clone()), ("v2", text.clone()), ("v3", json!({"a": {"type": "integer"}}))]))
        .await;
    for (spec, told, complete) in [
        (json!({"steps": [step("v1", "v2", json!([]))]}), "v3", "False"),
        (
            json!({"steps": [step("v1", "v2", json!([])), step("v2", "v3", json!([])), step("v3", "v4", json!([]))]}),
            "v4",
            "True",
        ),
        (json!({"steps": [step("v1", "v2", json!([])), step("v2", "v3", json!([]))]}), ".spec.a", "True"),
        (
            json!({
                "steps": [step("v1", "v2", json!([])), step("v2", "v3", json!([]))],
                "tolerate": [{"version": "v1", "path": ".spec.a", "reason": "why not"}],
            }),
            "nothing is lost at .spec.a of v1",
            "True",
        ),
    ] {
        let reply = client.post(&format!("{CONVERSIONS}?dryRun=All"), &conversion(&spec)).await.expect(201);
        assert!(warnings(&reply).contains(told), "{told}: {}", warnings(&reply));
        let found = conditions(&reply.json());
        assert_eq!(found[1].1, complete, "{spec}: {found:?}");
    }
}

#[tokio::test]
async fn one_may_be_there_before_its_definition() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define_another(&client).await;
    let reply = propose(&client, &rename()).await.expect(201);
    assert!(warnings(&reply).contains(&format!("there is no definition {NAME} yet")), "{}", warnings(&reply));
    assert_eq!(conditions(&reply.json())[0].1, "Unknown");
    let reply = client.post(DEFINITIONS, &renamed()).await.expect(201);
    assert_eq!(warnings(&reply), "");
    let body = client.get(&at()).await.expect(200).json();
    assert!(conditions(&body).iter().all(|(_, status, _)| status == "True"), "{body}");
    assert_eq!(body["status"]["definitionGeneration"], 1);

    // With its definition it goes.
    client.delete(&format!("{DEFINITIONS}/{NAME}")).await.expect(200);
    gone(&client, &format!("{DEFINITIONS}/{NAME}")).await;
    client.get(&at()).await.expect(404);

    // One that does not fit the definition that comes is in nobody's way.
    propose(&client, &rename()).await.expect(201);
    let reply = client.post(DEFINITIONS, &boats(&[("v1", json!({})), ("v2", json!({}))])).await.expect(201);
    assert!(warnings(&reply).contains("it is not used: spec.steps[0].rules[0]"), "{}", warnings(&reply));
    let body = client.get(&at()).await.expect(200).json();
    let found: Vec<_> =
        conditions(&body).into_iter().map(|(kind, status, reason)| format!("{kind}={status} {reason}")).collect();
    assert_eq!(found, ["Accepted=False RulesRefused", "Complete=Unknown NotAccepted", "InUse=False NotAccepted"]);
    amend(&client, |definition| definition["spec"]["versions"] = renamed()["spec"]["versions"].clone(), "")
        .await
        .expect(200);
    assert_eq!(conditions(&client.get(&at()).await.expect(200).json())[2].1, "True");
}

#[tokio::test]
async fn parts_of_one_are_applied_by_several() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let text = |name: &str| json!({name: {"type": "string"}});
    define(&client, &boats(&[("v1", text("a")), ("v2", text("b")), ("v3", text("c"))])).await;
    let part = |from: &str, to: &str, old: &str, new: &str| {
        let rule = json!({"move": {"from": format!(".spec.{old}"), "to": format!(".spec.{new}")}});
        conversion(&json!({"steps": [step(from, to, json!([rule]))]}))
    };
    client.patch(&format!("{}?fieldManager=ada", at()), APPLY, &part("v1", "v2", "a", "b")).await.expect(201);
    let bob = format!("{}?fieldManager=bob", at());
    let both = client.patch(&bob, APPLY, &part("v2", "v3", "b", "c")).await.expect(200).json();
    assert_eq!(both["spec"]["steps"].as_array().map(Vec::len), Some(2));
    assert_eq!(both["status"]["steps"].as_array().map(Vec::len), Some(2));
    let reply = client.patch(&bob, APPLY, &part("v1", "v2", "a", "c")).await.expect(409);
    assert!(reply.json()["message"].as_str().is_some_and(|text| text.contains("ada")), "{}", reply.json());
}
