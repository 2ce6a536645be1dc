//! Every kind through all of its verbs.

use serde_json::{Value, json};

use crate::client::{Client, JSON_PATCH, MERGE, name_of};
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, SECRETS, SERVICE_ACCOUNTS, namespace};

/// What is peculiar to a kind.
struct Kind {
    path: &'static str,
    object: Value,
    /// A list of this kind says that it is one of these.
    list: (&'static str, &'static str),
    /// Whether the answer to a deletion is the object and not a `Status`.
    deletion_shows_object: bool,
    /// Whether an update creates what is not there.
    update_creates: bool,
}

fn kinds() -> Vec<Kind> {
    let about = json!({"kind": "ConfigMap", "namespace": "default", "name": "a"});
    let kind = |path, object, list| Kind {
        path,
        object,
        list: ("v1", list),
        deletion_shows_object: false,
        update_creates: false,
    };
    vec![
        kind(CONFIG_MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "1"}}), "ConfigMapList"),
        kind(SECRETS, json!({"metadata": {"name": "a"}, "data": {"k": "MQ=="}}), "SecretList"),
        Kind {
            deletion_shows_object: true,
            ..kind(SERVICE_ACCOUNTS, json!({"metadata": {"name": "a"}}), "ServiceAccountList")
        },
        Kind {
            update_creates: true,
            ..kind(EVENTS, json!({"metadata": {"name": "a"}, "involvedObject": about, "reason": "R"}), "EventList")
        },
        Kind {
            list: ("coordination.k8s.io/v1", "LeaseList"),
            update_creates: true,
            ..kind(LEASES, json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}), "LeaseList")
        },
    ]
}

#[tokio::test]
async fn every_kind_can_be_made_read_changed_listed_watched_and_deleted() {
    let server = Server::start(&[]).await;
    for kind in kinds() {
        for client in [server.client(), server.client().over_http1()] {
            lives_and_dies(&client, &kind).await;
        }
    }
}

async fn lives_and_dies(client: &Client, kind: &Kind) {
    let (path, one) = (kind.path, format!("{}/a", kind.path));
    let before = client.get(path).await.expect(200).version();
    client.get(&one).await.fails(404, "NotFound");

    let made = client.post(path, &kind.object).await.expect(201);
    client.post(path, &kind.object).await.fails(409, "AlreadyExists");
    let metadata = &made.json()["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["uid"].as_str().map(str::len), Some(36), "{metadata}");
    assert!(metadata["creationTimestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{metadata}");
    assert_eq!(client.get(&one).await.expect(200).json(), made.json());

    let listed = client.get(path).await.expect(200);
    let list = listed.json();
    assert_eq!((list["apiVersion"].as_str(), list["kind"].as_str()), (Some(kind.list.0), Some(kind.list.1)));
    let mut item = made.json();
    let item = item.as_object_mut().expect("an object");
    // The list says once what each of its objects is.
    item.remove("kind");
    item.remove("apiVersion");
    assert_eq!(list["items"], json!([item]));

    let mut changed = made.json();
    changed["metadata"]["labels"] = json!({"l": "1"});
    let replaced = client.put(&one, &changed).await.expect(200);
    assert_eq!(replaced.json()["metadata"]["labels"], json!({"l": "1"}));
    client.put(&one, &changed).await.fails(409, "Conflict");
    let merged = client.patch(&one, MERGE, &json!({"metadata": {"labels": {"m": "2", "l": null}}})).await.expect(200);
    assert_eq!(merged.json()["metadata"]["labels"], json!({"m": "2"}));
    let operations = json!([
        {"op": "test", "path": "/metadata/labels/m", "value": "2"},
        {"op": "replace", "path": "/metadata/labels/m", "value": "3"},
    ]);
    let patched = client.patch(&one, JSON_PATCH, &operations).await.expect(200);
    assert_eq!(patched.json()["metadata"]["labels"], json!({"m": "3"}));
    client.patch(&one, JSON_PATCH, &operations).await.fails(422, "Invalid");
    assert_eq!(client.get(&one).await.json(), patched.json());

    let deleted = client.delete(&one).await.expect(200).json();
    if kind.deletion_shows_object {
        assert_eq!(deleted["metadata"]["uid"], metadata["uid"]);
    } else {
        assert_eq!((&deleted["kind"], &deleted["status"]), (&json!("Status"), &json!("Success")));
        assert_eq!((&deleted["details"]["name"], &deleted["details"]["uid"]), (&json!("a"), &metadata["uid"]));
    }
    client.delete(&one).await.fails(404, "NotFound");
    client.patch(&one, MERGE, &json!({})).await.fails(404, "NotFound");

    let mut watch = client.watch(path, &format!("resourceVersion={before}")).await;
    watch.expect("ADDED", "a", made.version()).await;
    watch.expect("MODIFIED", "a", replaced.version()).await;
    watch.expect("MODIFIED", "a", merged.version()).await;
    assert_eq!(watch.expect("MODIFIED", "a", patched.version()).await, patched.json());
    let last = watch.event().await;
    assert_eq!((&*last.kind, name_of(&last.object)), ("DELETED", "a"));
    assert!(last.version() > patched.version());
}

#[tokio::test]
async fn an_update_creates_leases_and_events_only() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for kind in kinds() {
        let reply = client.put(&format!("{}/a", kind.path), &kind.object).await;
        if kind.update_creates {
            reply.expect(201);
            client.get(&format!("{}/a", kind.path)).await.expect(200);
        } else {
            reply.fails(404, "NotFound");
            client.get(&format!("{}/a", kind.path)).await.fails(404, "NotFound");
        }
    }
    client.put(&format!("{NAMESPACES}/a"), &namespace("a")).await.fails(404, "NotFound");
}

#[tokio::test]
async fn a_dry_run_of_any_verb_answers_as_if_and_leaves_no_trace() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for kind in kinds() {
        let (path, one) = (kind.path, format!("{}/a", kind.path));
        let dry = |path: &str| format!("{path}?dryRun=All");
        // The version of a list may grow by what the server itself writes; what is there tells of the client alone.
        let before = client.get(path).await.expect(200).names();
        let shown = client.post(&dry(path), &kind.object).await.expect(201).json();
        assert!(shown["metadata"].get("resourceVersion").is_none(), "{shown}");
        assert_eq!(client.get(path).await.expect(200).names(), before, "{path}");

        let made = client.post(path, &kind.object).await.expect(201);
        client.post(&dry(path), &kind.object).await.fails(409, "AlreadyExists");
        let mut changed = made.json();
        changed["metadata"]["labels"] = json!({"l": "1"});
        let replaced = client.put(&dry(&one), &changed).await.expect(200).json();
        let patch = json!({"metadata": {"labels": {"l": "1"}}});
        let patched = client.patch(&dry(&one), MERGE, &patch).await.expect(200).json();
        // Who manages the new label is recorded in either answer.
        let plain = |object: &Value| {
            let mut object = object.clone();
            object["metadata"]["managedFields"] = Value::Null;
            object
        };
        for shown in [replaced, patched] {
            assert_eq!(plain(&shown), plain(&changed), "{path}");
        }
        client.delete(&dry(&one)).await.expect(200);
        client.delete_with(&one, &json!({"dryRun": ["All"]})).await.expect(200);
        assert_eq!(client.delete(&dry(path)).await.expect(200).names(), ["a"]);

        assert_eq!(client.get(path).await.expect(200).names(), ["a"], "{path}");
        assert_eq!(client.get(&one).await.json(), made.json());
    }
    client.post(&format!("{NAMESPACES}?dryRun=All"), &namespace("n")).await.expect(201);
    client.get(&format!("{NAMESPACES}/n")).await.fails(404, "NotFound");
    let status = client.post(&format!("{CONFIG_MAPS}?dryRun=some"), &json!({})).await.fails(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "dryRun", "{status}");
}
