//! Writing: names, versions, what may change, odd fields.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::client::{JSON_PATCH, MERGE};
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, LEASES, SECRETS, config_map};

#[tokio::test]
async fn names_are_generated_from_their_beginning() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut names = BTreeSet::new();
    for _ in 0..20 {
        let made = client.post(CONFIG_MAPS, &json!({"metadata": {"generateName": "page-"}})).await.expect(201).json();
        let name = made["metadata"]["name"].as_str().expect("a name").to_owned();
        let end = name.strip_prefix("page-").expect("the beginning is kept");
        assert!(end.len() == 5 && end.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name}");
        assert_eq!(made["metadata"]["generateName"], "page-");
        assert!(names.insert(name));
    }
    let named = json!({"metadata": {"generateName": "page-", "name": "own"}});
    assert_eq!(client.post(CONFIG_MAPS, &named).await.expect(201).json()["metadata"]["name"], "own");
    for nameless in [json!({}), json!({"metadata": {"name": ""}})] {
        let status = client.post(CONFIG_MAPS, &nameless).await.fails(422, "Invalid");
        assert_eq!(status["details"]["causes"][0]["field"], "metadata.name", "{status}");
    }
    for bad in ["-", "UPPER", "a b", "a/b", "..", &"x".repeat(254)] {
        client.post(CONFIG_MAPS, &config_map(bad, "1")).await.fails(422, "Invalid");
    }
}

#[tokio::test]
async fn a_write_that_changes_nothing_keeps_the_version_and_is_no_event() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let one = format!("{CONFIG_MAPS}/a");
    let made = client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201);
    let operations = json!([{"op": "replace", "path": "/data/k", "value": "1"}]);
    for reply in [
        client.put(&one, &made.json()).await,
        client.put(&one, &config_map("a", "1")).await,
        client.patch(&one, MERGE, &json!({})).await,
        client.patch(&one, MERGE, &json!({"data": {"k": "1"}})).await,
        client.patch(&one, JSON_PATCH, &operations).await,
        client.patch(&one, JSON_PATCH, &json!([])).await,
    ] {
        assert_eq!(reply.expect(200).json(), made.json());
    }
    let changed = client.patch(&one, MERGE, &json!({"data": {"k": "2"}})).await.expect(200);
    let mut watch = client.watch(CONFIG_MAPS, &format!("resourceVersion={}", made.version())).await;
    watch.expect("MODIFIED", "a", changed.version()).await;
}

#[tokio::test]
async fn of_writers_with_one_version_one_wins() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let one = format!("{CONFIG_MAPS}/a");
    let made = client.post(CONFIG_MAPS, &config_map("a", "0")).await.expect(201).json();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (client, one, mut object) = (client.apart(), one.clone(), made.clone());
            object["data"]["k"] = json!(format!("of {writer}"));
            tokio::spawn(async move { client.put(&one, &object).await.code })
        })
        .collect();
    let mut codes = Vec::new();
    for writer in writers {
        codes.push(writer.await.expect("no writer panics"));
    }
    codes.sort_unstable();
    assert_eq!(codes, [200, 409, 409, 409, 409, 409, 409, 409]);

    // Who does not insist on a version is tried again until it fits: no patch is lost.
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (client, one) = (client.apart(), one.clone());
            let patch = json!({"data": {format!("w{writer}"): "1"}});
            tokio::spawn(async move { client.patch(&one, MERGE, &patch).await.expect(200) })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no writer panics");
    }
    let data = client.get(&one).await.json()["data"].take();
    assert_eq!(data.as_object().map(serde_json::Map::len), Some(9), "{data}");
}

#[tokio::test]
async fn a_version_is_needed_where_the_kind_says_so_and_must_be_one() {
    let server = Server::start(&[]).await;
    let client = server.client();
    client.post(LEASES, &json!({"metadata": {"name": "a"}, "spec": {}})).await.expect(201);
    let update = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}});
    let status = client.put(&format!("{LEASES}/a"), &update).await.fails(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.resourceVersion", "{status}");

    let mut object = config_map("a", "1");
    object["metadata"]["resourceVersion"] = json!("7");
    client.post(CONFIG_MAPS, &object).await.fails(400, "BadRequest");
    object["metadata"]["resourceVersion"] = json!("0");
    client.post(CONFIG_MAPS, &object).await.expect(201);
    object["metadata"]["resourceVersion"] = json!("newest");
    client.put(&format!("{CONFIG_MAPS}/a"), &object).await.fails(400, "BadRequest");
    let mut other = config_map("b", "1");
    client.put(&format!("{CONFIG_MAPS}/a"), &other).await.fails(400, "BadRequest");
    other = config_map("a", "1");
    other["metadata"]["uid"] = json!("another");
    client.put(&format!("{CONFIG_MAPS}/a"), &other).await.fails(409, "Conflict");
    let patch = json!({"metadata": {"uid": "another"}});
    client.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &patch).await.fails(422, "Invalid");
}

#[tokio::test]
async fn secrets_take_texts_and_keep_bytes() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let object = json!({
        "metadata": {"name": "a"},
        "data": {"k": "b2xk", "other": "AAEC"},
        "stringData": {"k": "new", "text": "häßlich"},
    });
    let made = client.post(SECRETS, &object).await.expect(201).json();
    assert_eq!(made["data"], json!({"k": "bmV3", "other": "AAEC", "text": "aMOkw59saWNo"}));
    assert_eq!((&made["type"], made.get("stringData")), (&json!("Opaque"), None));
    let patch = json!({"stringData": {"k": "newer"}});
    let patched = client.patch(&format!("{SECRETS}/a"), MERGE, &patch).await.expect(200).json();
    assert_eq!(patched["data"]["k"], "bmV3ZXI=");
    let bad = json!({"metadata": {"name": "b"}, "data": {"k": "not base64!"}});
    client.post(SECRETS, &bad).await.fails(400, "BadRequest");
    let incomplete = json!({"metadata": {"name": "b"}, "type": "kubernetes.io/tls", "data": {"tls.crt": ""}});
    let status = client.post(SECRETS, &incomplete).await.fails(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "data[tls.key]", "{status}");
}

#[tokio::test]
async fn what_is_immutable_stays() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut object = config_map("a", "1");
    object["immutable"] = json!(true);
    client.post(CONFIG_MAPS, &object).await.expect(201);
    let secret = json!({"metadata": {"name": "a"}, "data": {"k": "MQ=="}, "immutable": true});
    client.post(SECRETS, &secret).await.expect(201);
    for (path, patch, field) in [
        (CONFIG_MAPS, json!({"data": {"k": "2"}}), "data"),
        (CONFIG_MAPS, json!({"binaryData": {"b": "MQ=="}}), "binaryData"),
        (CONFIG_MAPS, json!({"immutable": false}), "immutable"),
        (SECRETS, json!({"data": {"k": "Mg=="}}), "data"),
        (SECRETS, json!({"immutable": null}), "immutable"),
    ] {
        let status = client.patch(&format!("{path}/a"), MERGE, &patch).await.fails(422, "Invalid");
        assert_eq!(status["details"]["causes"][0]["field"], field, "{status}");
    }
    for path in [CONFIG_MAPS, SECRETS] {
        let patch = json!({"metadata": {"labels": {"l": "1"}}});
        client.patch(&format!("{path}/a"), MERGE, &patch).await.expect(200);
        client.delete(&format!("{path}/a")).await.expect(200);
    }
}

#[tokio::test]
async fn odd_fields_are_warned_of_refused_or_ignored_as_the_client_likes() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let body = |name: &str| {
        format!(r#"{{"metadata":{{"name":"{name}","odd":1}},"data":{{"k":"1","k":"2"}},"unknown":{{"deep":[]}}}}"#)
    };
    let json = [("content-type", "application/json")];
    let post = |query: &'static str, name: &'static str| {
        let (client, body) = (client.clone(), body(name));
        async move { client.send(http::Method::POST, &format!("{CONFIG_MAPS}{query}"), &json, body).await }
    };
    for (query, name) in [("", "a"), ("?fieldValidation=Warn", "b")] {
        let made = post(query, name).await.expect(201);
        let warnings = made.warnings().join("\n");
        for field in
            [r#"unknown field \"metadata.odd\""#, r#"unknown field \"unknown\""#, r#"duplicate field \"data.k\""#]
        {
            assert!(warnings.contains(field), "{field} in {warnings}");
        }
        assert_eq!(made.json().get("unknown"), None);
        assert_eq!(made.json()["data"], json!({"k": "2"}));
    }
    let made = post("?fieldValidation=Ignore", "c").await.expect(201);
    assert_eq!(made.warnings(), Vec::<&str>::new());
    let status = post("?fieldValidation=Strict", "d").await.fails(400, "BadRequest");
    let message = status["message"].as_str().expect("a message");
    for field in [r#"unknown field "metadata.odd""#, r#"unknown field "unknown""#, r#"duplicate field "data.k""#] {
        assert!(message.contains("strict decoding error: ") && message.contains(field), "{field} in {message}");
    }
    post("?fieldValidation=Perhaps", "d").await.fails(422, "Invalid");
    client.get(&format!("{CONFIG_MAPS}/d")).await.fails(404, "NotFound");

    let one = format!("{CONFIG_MAPS}/a");
    let patched = client.patch(&one, MERGE, &json!({"unknown": 1, "data": {"k": "3"}})).await.expect(200);
    assert_eq!(patched.warnings(), [r#"299 - "unknown field \"unknown\"""#]);
    let strict = client.patch(&format!("{one}?fieldValidation=Strict"), MERGE, &json!({"unknown": 1})).await;
    let status = strict.fails(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "patch", "{status}");
    assert_eq!(client.get(&one).await.json()["unknown"], Value::Null);
}
