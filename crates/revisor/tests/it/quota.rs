//! A server that keeps as much as it may: it says so, refuses what would be more, and everything else goes on.

use serde_json::{Value, json};

use crate::client::{Client, MERGE};
use crate::harness::{Server, eventually};
use crate::objects::{CONFIG_MAPS, NAMESPACES, config_map, namespace};

const QUOTA: &str = "--quota-backend-bytes=4194304";

/// Makes large config maps in a namespace until the server refuses one; returns how many there are and the refusal.
async fn fill(client: &Client, collection: &str) -> (usize, Value) {
    let value = "x".repeat(200_000);
    for number in 0..32 {
        let reply = client.post(collection, &config_map(&format!("large-{number}"), &value)).await;
        if reply.code != 201 {
            return (number, reply.fails(507, "InsufficientStorage"));
        }
    }
    panic!("32 objects of 200,000 bytes do not fit into four megabytes")
}

async fn metric(client: &Client, name: &str) -> f64 {
    let text = String::from_utf8(client.get("/metrics").await.expect(200).body.to_vec()).expect("a text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}

#[tokio::test]
async fn a_full_server_says_so_and_lets_everything_pass_that_makes_it_smaller() {
    let server = Server::start(&[QUOTA, "--controllers=*"]).await;
    let client = server.client();
    client.post(NAMESPACES, &namespace("n")).await.expect(201);
    let (in_namespace, held) = (format!("{NAMESPACES}/n/configmaps"), format!("{CONFIG_MAPS}/held"));
    let mut object = config_map("held", "1");
    object["metadata"]["finalizers"] = json!(["example.com/held"]);
    client.post(CONFIG_MAPS, &object).await.expect(201);
    assert!(client.get("/readyz?verbose").await.expect(200).text().contains("[+]store-quota ok\n"));
    assert_eq!(metric(&client, "revisor_store_alarm").await, 0.0);

    let (count, refusal) = fill(&client, &in_namespace).await;
    assert!(count > 8, "{count} fit");
    let message = refusal["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("database space exceeded: ") && message.contains("4194304"), "{refusal}");
    assert!(refusal["details"].get("retryAfterSeconds").is_none(), "to try again does not help: {refusal}");

    // Told, but not as a failure: who tidies up must still be sent here.
    assert_eq!(client.get("/readyz").await.expect(200).text(), "ok");
    let report = client.get("/readyz?verbose").await.expect(200).text();
    assert!(report.contains("[!]store-quota alarm: reason withheld\n"), "{report}");
    let reason = client.get("/readyz/store-quota").await.expect(200).text();
    assert!(reason.starts_with("alarm: the store is full: "), "{reason}");
    assert_eq!(metric(&client, "revisor_store_alarm").await, 1.0);
    assert_eq!(metric(&client, "revisor_store_quota_bytes").await, 4_194_304.0);
    let state = metric(&client, "revisor_store_bytes{part=\"state\"}").await;
    let history = metric(&client, "revisor_store_bytes{part=\"history\"}").await;
    assert!(state > 3_000_000.0 && state + history <= 4_194_304.0, "{state} and {history}");
    assert!(metric(&client, "apiserver_storage_size_bytes{storage_cluster_id=\"embedded\"}").await > 0.0);

    // Everything is there after a crash, and the bound still holds.
    let server = server.restart().await;
    let client = server.client();
    assert_eq!(
        client.get(&in_namespace).await.expect(200).names().iter().filter(|n| n.starts_with("large")).count(),
        count
    );
    let (again, _) = fill(&client, CONFIG_MAPS).await;
    assert_eq!(again, 0, "as full as before");

    // A deletion that a finalizer holds needs a little room at first.
    client.delete(&held).await.expect(200);
    client.patch(&held, MERGE, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    client.get(&held).await.expect(404);
    client.delete(&format!("{NAMESPACES}/n")).await.expect(200);
    eventually(|| async { (client.get(&format!("{NAMESPACES}/n")).await.code == 404).then_some(()) }).await;
    client.post(CONFIG_MAPS, &config_map("after", &"x".repeat(200_000))).await.expect(201);
    let report = client.get("/readyz?verbose").await.expect(200).text();
    assert!(report.contains("[+]store-quota ok\n"), "{report}");
}
