//! Who asked for which version is known after a restart.

use http::Method;
use serde_json::{Value, json};

use super::{DEFINITIONS, anything, define, definition, gone, objects, version};
use crate::client::Client;
use crate::harness::Server;

const GROUP: &str = "mole.example";
const REPORT: &str = "/apis/versioning.revisor.dev/v1alpha1/versionreports/moles.mole.example";

fn moles() -> Value {
    definition(GROUP, "moles", json!([version("v1", true, anything()), version("v2", false, anything())]))
}

async fn ask(client: &Client, agent: &str) {
    let headers = [("user-agent", agent)];
    client.send(Method::GET, &objects(GROUP, "v2", "moles"), &headers, String::new()).await.expect(200);
}

/// Who asked for the second version, how often and when last, and since when that is known.
async fn asked(client: &Client) -> (Vec<Value>, Value) {
    let status = client.get(REPORT).await.expect(200).json()["status"].clone();
    let clients = status["versions"][1]["clients"].as_array().cloned().unwrap_or_default();
    (clients, status["requestsSince"].clone())
}

#[tokio::test]
async fn who_asked_is_known_after_a_restart_and_counting_goes_on() {
    let server = Server::start(&[]).await;
    define(&server.client(), &moles()).await;
    for agent in ["old-operator/0.9", "old-operator/0.9", "kubectl/v1.36"] {
        ask(&server.client(), agent).await;
    }
    let before = asked(&server.client()).await;
    assert_eq!(before.0.len(), 2, "{before:?}");
    let server = server.restart_in_order().await;
    assert_eq!(asked(&server.client()).await, before);
    ask(&server.client(), "old-operator/0.9").await;

    // Whoever kills it loses what was not written down yet, and nothing else.
    let server = server.restart().await;
    let (clients, since) = asked(&server.client()).await;
    assert_eq!((clients, since), before);
    ask(&server.client(), "old-operator/0.9").await;
    let (clients, _) = asked(&server.client()).await;
    let count =
        |agent: &str| clients.iter().find(|client| client["userAgent"] == agent).map(|known| &known["requests"]);
    assert_eq!((count("old-operator/0.9"), count("kubectl/v1.36")), (Some(&json!(3)), Some(&json!(1))), "{clients:?}");
}

#[tokio::test]
async fn another_definition_of_the_same_name_begins_anew() {
    let server = Server::start(&[]).await;
    define(&server.client(), &moles()).await;
    ask(&server.client(), "old-operator/0.9").await;
    let server = server.restart_in_order().await;
    let client = server.client();
    let path = format!("{DEFINITIONS}/moles.{GROUP}");
    client.delete(&path).await.expect(200);
    gone(&client, &path).await;
    define(&client, &moles()).await;
    assert_eq!(asked(&client).await.0, [] as [Value; 0]);
    let server = server.restart_in_order().await;
    assert_eq!(asked(&server.client()).await.0, [] as [Value; 0]);
}
