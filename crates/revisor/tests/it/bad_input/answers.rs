//! Objects that are wrong in very many ways: what is answered stays small, and says how much it leaves out.

use serde_json::{Value, json};

use crate::client::{MERGE, Reply};
use crate::custom::DEFINITIONS;
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, SERVICE_ACCOUNTS, config_map};

const DRY_PODS: &str = "/api/v1/namespaces/default/pods?dryRun=All";

/// More than any answer that is no object has.
const MAX_ANSWER_BYTES: usize = 512 * 1024;

/// A refusal of an invalid object that told of some errors and counted the others, and how many they are together.
fn counted(reply: Reply) -> usize {
    let bytes = reply.body.len();
    assert!(bytes < MAX_ANSWER_BYTES, "{bytes} bytes");
    let status = reply.fails(422, "Invalid");
    let causes = status["details"]["causes"].as_array().expect("has causes");
    let (last, told) = causes.split_last().expect("has causes");
    let more = last["message"].as_str().expect("is a text");
    let message = status["message"].as_str().expect("is a text");
    assert!(message.ends_with(&format!("{more}]")), "{}", &message[message.len() - 100..]);
    let more: usize = more
        .strip_prefix("and ")
        .and_then(|more| more.strip_suffix(" more errors"))
        .and_then(|more| more.parse().ok())
        .unwrap_or_else(|| panic!("counts the rest: {more}"));
    told.len() + more
}

fn pod(claims: &Value, known: &Value) -> Value {
    let container = json!({"name": "a", "image": "i", "resources": {"claims": claims}});
    json!({"metadata": {"name": "a"}, "spec": {"resourceClaims": known, "containers": [container]}})
}

#[tokio::test]
async fn thousands_of_errors_are_counted_and_not_listed() {
    let server = Server::start(&[]).await;
    let client = server.client();
    client.post(SERVICE_ACCOUNTS, &json!({"metadata": {"name": "default"}})).await.expect(201);
    // Each error would list all that is known.
    let claims: Vec<Value> = (0..4000).map(|at| json!({"name": format!("unknown-claim-{at}")})).collect();
    let known: Vec<Value> = (0..2000)
        .map(|at| json!({"name": format!("known-claim-{at}"), "resourceClaimName": format!("claim-{at}")}))
        .collect();
    let reply = client.post(DRY_PODS, &pod(&json!(claims), &json!(known))).await;
    assert_eq!(counted(reply), 4000);

    // A few are told to the last byte.
    let few = pod(&json!([{"name": "b"}]), &json!([{"name": "c", "resourceClaimName": "d"}]));
    let status = client.post(DRY_PODS, &few).await.fails(422, "Invalid");
    let cause = json!({
        "reason": "FieldValueNotFound",
        "message": "Not found: \"b\": must be one of the names in pod.spec.resourceClaims: c",
        "field": "spec.containers[0].resources.claims[0]",
    });
    assert_eq!(status["details"]["causes"], json!([cause]));
    server.assert_well().await;
}

#[tokio::test]
async fn a_definition_with_thousands_of_map_keys_is_answered() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let keys: Vec<String> = (0..20_000).map(|at| format!("key{}", at % 10_000)).collect();
    let list = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "items": {"type": "object", "properties": {}},
    });
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"l": list}}}});
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let reply = client.post(DEFINITIONS, &definition).await;
    assert_eq!(counted(reply), 20_000 + 10_000, "each key is unknown, and half of them come twice");
    server.assert_well().await;
}

#[tokio::test]
async fn warnings_take_four_thousand_characters() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut object = config_map("a", "1");
    for at in 0..40_000 {
        object[format!("odd{at}")] = json!(1);
    }
    let reply = client.post(&format!("{CONFIG_MAPS}?fieldValidation=Warn"), &object).await.expect(201);
    let warnings = reply.warnings();
    assert_eq!(warnings[0], r#"299 - "unknown field \"odd0\"""#);
    let bytes: usize = warnings.iter().map(|warning| warning.len()).sum();
    assert!(bytes < 4096 + 256 + warnings.len() * r#"299 - "\"\"""#.len(), "{bytes} bytes");

    // One that is long makes all of them be cut.
    let long = format!("z{}", "x".repeat(5000));
    let patch = json!({"odd": 1, long.as_str(): 1});
    let path = format!("{CONFIG_MAPS}/a?fieldValidation=Warn");
    let reply = client.patch(&path, MERGE, &patch).await.expect(200);
    let cut = format!(r#"299 - "unknown field \"{}""#, &long[..256 - r#"unknown field ""#.len()]);
    assert_eq!(reply.warnings(), [r#"299 - "unknown field \"odd\"""#, &cut]);

    // Who asks for it is refused for a hundred of them.
    let reply = client.post(&format!("{CONFIG_MAPS}?fieldValidation=Strict"), &object).await;
    let status = reply.fails(400, "BadRequest");
    assert_eq!(status["message"].as_str().map(|message| message.matches("unknown field").count()), Some(100));
}

#[tokio::test]
async fn what_is_repeated_of_a_request_is_cut() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let long = "x".repeat(1 << 20);
    for (name, reply) in [
        ("a name", client.post(CONFIG_MAPS, &config_map(&long, "1")).await),
        ("a key", client.post(CONFIG_MAPS, &json!({"metadata": {"name": "a"}, "data": {long.as_str(): "1"}})).await),
        ("a label", client.post(CONFIG_MAPS, &json!({"metadata": {"name": "a", "labels": {"a": long}}})).await),
        ("a kind", client.post(CONFIG_MAPS, &json!({"kind": long, "metadata": {"name": "a"}})).await),
        ("a value", client.post(CONFIG_MAPS, &json!({"metadata": {"name": "a"}, "immutable": long})).await),
        (
            "an unknown field",
            client.post(&format!("{CONFIG_MAPS}?fieldValidation=Strict"), &json!({long.as_str(): 1})).await,
        ),
    ] {
        assert!(matches!(reply.code, 400 | 422), "{name}: {}", reply.code);
        assert!(reply.body.len() < MAX_ANSWER_BYTES, "{name}: {} bytes", reply.body.len());
    }
    server.assert_well().await;
}
