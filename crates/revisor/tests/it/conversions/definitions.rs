//! Definitions that change under an accepted Conversion.

use serde_json::json;

use super::*;
use crate::custom::gone;
use crate::harness::Server;

/// Gives the definition this as its second version.
fn second(properties: Value) -> impl Fn(&mut Value) {
    move |definition| {
        let both = boats(&[("v1", json!({})), ("v2", properties.clone())]);
        let versions = definition["spec"]["versions"].as_array_mut().expect("versions");
        versions.truncate(1);
        versions.push(both["spec"]["versions"][1].clone());
    }
}

#[tokio::test]
async fn a_change_that_breaks_a_law_is_refused_and_one_that_breaks_none_is_taken() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &renamed()).await;
    propose(&client, &rename()).await.expect(201);
    let narrow = second(json!({"length": {"type": "integer", "maximum": 10}}));
    for query in ["?dryRun=All", ""] {
        let reply = amend(&client, &narrow, query).await.expect(422);
        let told = causes(&reply);
        assert_eq!((told.len(), told[0].0.as_str()), (1, "spec.steps[0].rules[0]"), "{told:?}");
        let message = &told[0].1;
        assert!(message.contains(&format!("in Conversion {NAME}: L2: ")), "{message}");
        assert!(message.contains("\nobject: {") && message.contains("\nbecomes: {"), "{message}");
    }
    // A field that a rule names cannot go either.
    amend(&client, second(json!({})), "").await.expect(422);
    let body = client.get(&at()).await.expect(200).json();
    assert_eq!(body["status"]["definitionGeneration"], 1);

    let wide = second(json!({"length": {"type": "integer"}, "mast": {"type": "boolean"}}));
    let changed = amend(&client, &wide, "").await.expect(200).json();
    assert_eq!(changed["metadata"]["generation"], 2);
    let body = client.get(&at()).await.expect(200).json();
    assert_eq!((&body["status"]["definitionGeneration"], &body["metadata"]["generation"]), (&json!(2), &json!(1)));
    // A definition that says the same again is not checked again.
    amend(&client, |definition| definition["metadata"]["labels"] = json!({"a": "b"}), "").await.expect(200);
    assert_eq!(client.get(&at()).await.expect(200).json(), body);
}

#[tokio::test]
async fn a_version_that_comes_later_is_checked_before_it_comes() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &boats(&[("v1", json!({"size": {"type": "integer"}}))])).await;
    let reply = propose(&client, &rename()).await.expect(201);
    assert!(warnings(&reply).contains("has no version v2 yet"), "{}", warnings(&reply));
    assert_eq!(conditions(&reply.json())[0].1, "True");
    amend(&client, second(json!({"length": {"type": "string"}})), "").await.expect(422);
    amend(&client, second(json!({"length": {"type": "integer"}})), "").await.expect(200);
    let body = client.get(&at()).await.expect(200).json();
    assert_eq!(body["status"]["steps"][0]["verdict"], "Proved");
    // One that no step reaches is said to be none.
    let third = |definition: &mut Value| {
        let mut third = definition["spec"]["versions"][1].clone();
        third["name"] = json!("v3");
        definition["spec"]["versions"].as_array_mut().expect("versions").push(third);
    };
    let reply = amend(&client, third, "").await.expect(200);
    assert!(warnings(&reply).contains(&format!("Conversion {NAME}: no step reaches v3")), "{}", warnings(&reply));
    assert_eq!(conditions(&client.get(&at()).await.expect(200).json())[1].1, "False");
}

#[tokio::test]
async fn a_webhook_goes_before_the_rules() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut definition = renamed();
    let config = json!({"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}});
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": config});
    define(&client, &definition).await;
    let made = propose(&client, &rename()).await.expect(201).json();
    let in_use = |body: &Value| conditions(body)[2].clone();
    assert_eq!(in_use(&made), ("InUse".to_owned(), "False".to_owned(), "WebhookConverts".to_owned()));
    amend(&client, |definition| definition["spec"]["conversion"] = json!({"strategy": "None"}), "").await.expect(200);
    assert_eq!(in_use(&client.get(&at()).await.expect(200).json()).1, "True");
}

#[tokio::test]
async fn conversions_are_kept_while_they_are_not_served() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &renamed()).await;
    client.post(CONVERSIONS, &held()).await.expect(201);
    client.delete(&format!("{DEFINITIONS}/{NAME}")).await.expect(200);
    gone(&client, CONVERSIONS).await;
    let server = server.restart().await;
    let client = server.client();
    client.get(&at()).await.expect(404);
    define_another(&client).await;
    let body = client.get(&at()).await.expect(200).json();
    assert!(body["metadata"]["deletionTimestamp"].is_string() && conditions(&body)[0].2 == "NoDefinition", "{body}");
}
