//! Definitions and their objects outlive the process that served them.

use serde_json::{Value, json};

use super::{DEFINITIONS, anything, define, definition, gone, objects, version};
use crate::client::MERGE;
use crate::harness::{SILENT, Server};

const GROUP: &str = "stone.example";

fn stones() -> Value {
    let first = version("v1", false, anything());
    definition(GROUP, "stones", json!([first, version("v2", true, anything())]))
}

fn stone(name: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Stone", "metadata": {"name": name}, "spec": {"weight": 3}})
}

#[tokio::test]
async fn objects_are_served_at_once_and_versions_go_on() {
    let mut server = Server::start(&SILENT).await;
    define(&server.client(), &stones()).await;
    let mut last = server.client().post(&objects(GROUP, "v1", "stones"), &stone("first")).await.expect(201).version();
    let made = server.client().get(&format!("{DEFINITIONS}/stones.{GROUP}")).await.expect(200).body;
    for (turn, is_orderly) in [true, false, true, false].into_iter().enumerate() {
        server = if is_orderly { server.restart_in_order().await } else { server.restart().await };
        let client = server.client();
        // The first request after a restart already finds everything. All that is written meanwhile is who asked.
        let list = client.get(&objects(GROUP, "v2", "stones")).await.expect(200);
        assert!(list.version() >= last);
        assert_eq!(list.names().len(), turn + 1);
        assert_eq!(client.get(&format!("{DEFINITIONS}/stones.{GROUP}")).await.expect(200).body, made);
        let mut events = client.watch(&objects(GROUP, "v1", "stones"), &format!("resourceVersion={last}")).await;
        let name = format!("later{turn}");
        let version = client.post(&objects(GROUP, "v1", "stones"), &stone(&name)).await.expect(201).version();
        assert!(version > last);
        events.expect("ADDED", &name, version).await;
        last = version;
    }
}

#[tokio::test]
async fn a_definition_that_was_going_goes_on_going() {
    for is_orderly in [true, false] {
        let server = Server::start(&[]).await;
        let client = server.client();
        let path = format!("{DEFINITIONS}/stones.{GROUP}");
        let stones_path = objects(GROUP, "v2", "stones");
        define(&client, &stones()).await;
        let mut held = stone("held");
        held["metadata"]["finalizers"] = json!(["stone.example/heavy"]);
        client.post(&objects(GROUP, "v1", "stones"), &held).await.expect(201);
        client.post(&objects(GROUP, "v1", "stones"), &stone("light")).await.expect(201);
        client.delete(&path).await.expect(200);
        gone(&client, &format!("{stones_path}/light")).await;

        let server = if is_orderly { server.restart_in_order().await } else { server.restart().await };
        let client = server.client();
        let found = client.get(&path).await.expect(200).json();
        assert!(found["metadata"]["deletionTimestamp"].is_string(), "{found}");
        assert_eq!(client.get(&stones_path).await.expect(200).names(), ["held"]);
        client.post(&objects(GROUP, "v1", "stones"), &stone("new")).await.fails(403, "Forbidden");
        let free = json!({"metadata": {"finalizers": null}});
        client.patch(&format!("{stones_path}/held"), MERGE, &free).await.expect(200);
        gone(&client, &path).await;
        // What a definition served goes when its going is noticed, which is not when it is gone.
        gone(&client, &stones_path).await;

        // The same name may come again, and has nothing of what was there before.
        define(&client, &stones()).await;
        assert_eq!(client.get(&stones_path).await.expect(200).names(), Vec::<String>::new());
        let server = server.restart().await;
        assert_eq!(server.client().get(&stones_path).await.expect(200).names(), Vec::<String>::new());
    }
}
