//! Admission webhooks are stored and not called yet: whoever relies on them is told.

use serde_json::json;

use crate::client::MERGE;
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, config_map};

const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const NOT_CALLED: &str = "this server does not call admission webhooks";

#[tokio::test]
async fn a_server_with_webhooks_says_that_it_does_not_call_them() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let one = format!("{CONFIG_MAPS}/one");
    assert!(client.post(CONFIG_MAPS, &config_map("one", "1")).await.expect(201).warnings().is_empty());
    assert!(!server.process.log().contains(NOT_CALLED));

    let webhook = json!({"metadata": {"name": "guard"}, "webhooks": [{
        "name": "guard.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": "https://guard.example.com/"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
    }]});
    client.post(WEBHOOKS, &webhook).await.expect(201);
    assert!(server.process.log().contains(NOT_CALLED), "{}", server.process.log());
    let warning = format!("299 - \"{NOT_CALLED}: 1 configuration was not consulted\"");
    for reply in [
        client.post(CONFIG_MAPS, &config_map("two", "1")).await.expect(201),
        client.patch(&one, MERGE, &json!({"data": {"k": "2"}})).await.expect(200),
        client.put(&one, &config_map("one", "3")).await.expect(200),
        client.delete(&one).await.expect(200),
    ] {
        assert_eq!(reply.warnings(), [&*warning], "{}", reply.text());
    }
    // Who only reads, or was refused, has nothing to fear.
    assert!(client.get(CONFIG_MAPS).await.expect(200).warnings().is_empty());
    assert!(client.post(CONFIG_MAPS, &config_map("two", "1")).await.expect(409).warnings().is_empty());

    // A server that starts with them says so at once; one from which they are gone is silent.
    let before = server.process.log().matches(NOT_CALLED).count();
    let server = server.restart_in_order().await;
    let client = server.client();
    assert!(server.process.log().matches(NOT_CALLED).count() > before, "{}", server.process.log());
    client.delete(&format!("{WEBHOOKS}/guard")).await.expect(200);
    assert!(client.post(CONFIG_MAPS, &config_map("four", "1")).await.expect(201).warnings().is_empty());
}
