//! Objects in other forms than their own: tables, metadata only, YAML.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Client, MERGE, Reply};
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, SERVICE_ACCOUNTS, config_map, make_config_maps};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const YAML: &str = "application/yaml";

async fn get_as(client: &Client, path: &str, accept: &str) -> Reply {
    client.send(Method::GET, path, &[("accept", accept)], "").await
}

/// The events of a watch that ends by itself.
async fn events_as(client: &Client, query: &str, accept: &str) -> Vec<Value> {
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1&{query}");
    let reply = get_as(client, &path, accept).await.expect(200);
    reply.text().lines().map(|line| serde_json::from_str(line).expect("an event a line")).collect()
}

fn names_in(table: &Value) -> Vec<&str> {
    let rows = table["rows"].as_array().expect("rows");
    rows.iter().map(|row| row["cells"][0].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn objects_are_shown_in_tables() {
    let server = Server::start(&[]).await;
    let client = server.client();
    make_config_maps(&client, &["a", "b", "c"]).await;
    let listed = client.get(CONFIG_MAPS).await;
    let table = get_as(&client, CONFIG_MAPS, TABLE).await.expect(200);
    assert_eq!(table.header("content-type"), Some("application/json"));
    let table = table.json();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(table["metadata"], listed.json()["metadata"]);
    let columns: Vec<&Value> = table["columnDefinitions"].as_array().expect("columns").iter().collect();
    assert_eq!(columns.iter().map(|column| &column["name"]).collect::<Vec<_>>(), ["Name", "Data", "Age"]);
    assert_eq!(names_in(&table), ["a", "b", "c"]);
    let row = &table["rows"][0];
    assert_eq!(row["cells"][1], 1);
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row["object"]["metadata"], listed.json()["items"][0]["metadata"]);

    let one = get_as(&client, &format!("{CONFIG_MAPS}/b"), TABLE).await.expect(200).json();
    assert_eq!(names_in(&one), ["b"]);
    assert_eq!(one["metadata"]["resourceVersion"], listed.json()["items"][1]["metadata"]["resourceVersion"]);
    for (include, kind) in [("None", Value::Null), ("Object", json!("ConfigMap")), ("", json!("PartialObjectMetadata"))]
    {
        let table = get_as(&client, &format!("{CONFIG_MAPS}?includeObject={include}"), TABLE).await.expect(200).json();
        assert_eq!(table["rows"][0]["object"]["kind"], kind, "{include}");
    }
    let bad = format!("{CONFIG_MAPS}?includeObject=all");
    get_as(&client, &bad, TABLE).await.fails(400, "BadRequest");
    get_as(&client, &bad, "application/json").await.expect(200);

    let first = get_as(&client, &format!("{CONFIG_MAPS}?limit=2"), TABLE).await.expect(200).json();
    assert_eq!((names_in(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(1)));
    let token = first["metadata"]["continue"].as_str().expect("there is more");
    let rest = get_as(&client, &format!("{CONFIG_MAPS}?limit=2&continue={token}"), TABLE).await.expect(200).json();
    assert_eq!(names_in(&rest), ["c"]);
    assert_eq!(rest["metadata"].get("continue"), None);
    let none = get_as(&client, &format!("{CONFIG_MAPS}?labelSelector=no"), TABLE).await.expect(200).json();
    assert_eq!(none["rows"], json!([]));
    let older = get_as(&client, CONFIG_MAPS, "application/json;as=Table;v=v1beta1;g=meta.k8s.io").await.json();
    assert_eq!(older["apiVersion"], "meta.k8s.io/v1beta1");
}

#[tokio::test]
async fn writes_are_answered_in_the_form_that_is_wanted() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let one = format!("{CONFIG_MAPS}/a");
    let headers = |accept| [("accept", accept), ("content-type", "application/json")];
    let body = config_map("a", "1").to_string();
    let made = client.send(Method::POST, CONFIG_MAPS, &headers(METADATA), body.clone()).await.expect(201).json();
    assert_eq!((&made["kind"], made.get("data")), (&json!("PartialObjectMetadata"), None));
    let put = client.send(Method::PUT, &one, &headers(TABLE), body).await.expect(200).json();
    assert_eq!(names_in(&put), ["a"]);
    let merge = [("accept", METADATA), ("content-type", MERGE)];
    let patch = r#"{"metadata":{"labels":{"l":"m"}}}"#;
    let patched = client.send(Method::PATCH, &one, &merge, patch).await.expect(200).json();
    assert_eq!(patched["metadata"]["labels"], json!({"l": "m"}));

    // A status is a status, whatever was wanted.
    let gone = client.send(Method::DELETE, &one, &[("accept", TABLE)], "").await.expect(200).json();
    assert_eq!((&gone["kind"], &gone["status"]), (&json!("Status"), &json!("Success")));
    get_as(&client, &one, TABLE).await.fails(404, "NotFound");
    client.post(SERVICE_ACCOUNTS, &json!({"metadata": {"name": "s"}})).await.expect(201);
    let account = format!("{SERVICE_ACCOUNTS}/s");
    let gone = client.send(Method::DELETE, &account, &[("accept", TABLE)], "").await.expect(200).json();
    assert_eq!(names_in(&gone), ["s"]);
    make_config_maps(&client, &["x", "y"]).await;
    let gone = client.send(Method::DELETE, CONFIG_MAPS, &[("accept", TABLE)], "").await.expect(200).json();
    assert_eq!(names_in(&gone), ["x", "y"]);
}

#[tokio::test]
async fn metadata_can_be_had_alone() {
    let server = Server::start(&[]).await;
    let client = server.client();
    // Where there is nothing, the original has no list.
    assert_eq!(get_as(&client, CONFIG_MAPS, METADATA_LIST).await.expect(200).json()["items"], json!(null));
    let made = client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201).json();
    let want = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]});
    assert_eq!(get_as(&client, &format!("{CONFIG_MAPS}/a"), METADATA).await.expect(200).json(), want);
    let list = get_as(&client, CONFIG_MAPS, METADATA_LIST).await.expect(200).json();
    assert_eq!((&list["kind"], &list["items"]), (&json!("PartialObjectMetadataList"), &json!([want])));
    let none = get_as(&client, &format!("{CONFIG_MAPS}?labelSelector=no"), METADATA_LIST).await.expect(200).json();
    assert_eq!(none.get("items"), Some(&json!(null)), "as the original has it: {none}");
    for (path, accept, message) in [
        (
            CONFIG_MAPS.to_owned(),
            METADATA,
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
        ),
        (
            format!("{CONFIG_MAPS}/a"),
            METADATA_LIST,
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
        ),
    ] {
        assert_eq!(get_as(&client, &path, accept).await.fails(406, "NotAcceptable")["message"], message);
    }
}

#[tokio::test]
async fn events_come_in_the_form_that_is_wanted() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let made = client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201).json();
    let start = made["metadata"]["resourceVersion"].as_str().expect("a version");
    client.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &json!({"data": {"k": "2", "l": "3"}})).await.expect(200);
    client.delete(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    client.post(CONFIG_MAPS, &config_map("b", "1")).await.expect(201);

    let events = events_as(&client, &format!("resourceVersion={start}"), TABLE).await;
    let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["MODIFIED", "DELETED", "ADDED"]);
    assert_eq!(events[0]["object"]["columnDefinitions"].as_array().map(Vec::len), Some(3));
    for event in &events[1..] {
        assert_eq!(event["object"]["columnDefinitions"], Value::Null, "columns are told once");
    }
    assert_eq!(events[0]["object"]["rows"][0]["cells"][1], 2);
    // Another watcher that begins later gets the same from what was kept, but its own columns.
    let again = events_as(&client, &format!("resourceVersion={start}"), TABLE).await;
    assert_eq!(again[0]["object"]["columnDefinitions"], events[0]["object"]["columnDefinitions"]);

    let query = "allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&includeObject=None";
    let events = events_as(&client, query, TABLE).await;
    assert_eq!((names_in(&events[0]["object"]), &events[0]["object"]["rows"][0]["object"]), (vec!["b"], &Value::Null));
    assert_eq!(events[1]["type"], "BOOKMARK");
    assert_eq!(events[1]["object"]["rows"][0]["cells"], json!(["", 0, "<unknown>"]));
    let end = &events[1]["object"]["rows"][0]["object"]["metadata"]["annotations"];
    assert_eq!(end, &json!({"k8s.io/initial-events-end": "true"}));

    let events = events_as(&client, "", METADATA).await;
    assert_eq!(events[0]["object"]["kind"], "PartialObjectMetadata");
    assert!(events_as(&client, "", METADATA_LIST).await.is_empty(), "no event is a list");
    let expired = events_as(&client, "resourceVersion=999999999&allowWatchBookmarks=true", TABLE).await;
    assert!(expired.iter().all(|event| event["object"]["kind"] != "ConfigMap"));
    get_as(&client, &format!("{CONFIG_MAPS}?watch=1"), YAML).await.expect(406);
}

#[tokio::test]
async fn answers_can_be_yaml() {
    let server = Server::start(&[]).await;
    let client = server.client();
    client.post(CONFIG_MAPS, &config_map("a", "yes")).await.expect(201);
    let one = get_as(&client, &format!("{CONFIG_MAPS}/a"), YAML).await.expect(200);
    assert_eq!(one.header("content-type"), Some(YAML));
    assert!(
        one.text().starts_with("apiVersion: v1\ndata:\n  k: \"yes\"\nkind: ConfigMap\nmetadata:\n"),
        "{}",
        one.text()
    );
    let missing = get_as(&client, &format!("{CONFIG_MAPS}/b"), YAML).await.expect(404);
    let want = "apiVersion: v1\ncode: 404\ndetails:\n  kind: configmaps\n  name: b\nkind: Status\n\
                message: configmaps \"b\" not found\nmetadata: {}\nreason: NotFound\nstatus: Failure\n";
    assert_eq!((missing.header("content-type"), missing.text().as_str()), (Some(YAML), want));

    let list = get_as(&client, CONFIG_MAPS, YAML).await.expect(200);
    assert!(
        list.text().starts_with("apiVersion: v1\nitems:\n- data:\n    k: \"yes\"\n  metadata:\n"),
        "{}",
        list.text()
    );
    let version = client.get(CONFIG_MAPS).await.version();
    let foot = format!("kind: ConfigMapList\nmetadata:\n  resourceVersion: \"{version}\"\n");
    assert!(list.text().ends_with(&foot), "{}", list.text());
    let none = get_as(&client, &format!("{CONFIG_MAPS}?labelSelector=no"), YAML).await.expect(200).text();
    assert_eq!(none, format!("apiVersion: v1\nitems: []\n{foot}"));
    let table = get_as(&client, CONFIG_MAPS, "application/yaml;as=Table;v=v1;g=meta.k8s.io").await.expect(200).text();
    assert!(table.starts_with("apiVersion: meta.k8s.io/v1\ncolumnDefinitions:\n- description: "));
    assert!(table.contains("\nrows:\n- cells:\n  - a\n  - 1\n  - "), "{table}");
    // As in the original, that of the core group names no version of its own.
    for (path, start) in [
        ("/api/v1", "groupVersion: v1\nkind: APIResourceList\n"),
        ("/apis/apps/v1", "apiVersion: v1\ngroupVersion: apps/v1\nkind: APIResourceList\n"),
    ] {
        let text = get_as(&client, path, YAML).await.expect(200).text();
        assert!(text.starts_with(start), "{text}");
    }
}
