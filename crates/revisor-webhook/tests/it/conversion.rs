//! Conversion by a webhook, over the wire.

use std::time::Duration;

use bytes::Bytes;
use revisor_object::{Object, Value, parse_json};
use revisor_webhook::{ConversionError, ConversionWebhook, Limits};
use serde_json::{Value as Json, json};

use crate::harness::{Hook, PATIENCE, Reply, client, client_with, good, reply};

fn object(json: Json) -> Object {
    let Value::Object(object) = parse_json(json.to_string().as_bytes()).expect("it is JSON").value else {
        panic!("not an object: {json}")
    };
    object
}

fn widget(version: &str, name: &str) -> Json {
    let metadata = json!({"name": name, "namespace": "ns", "uid": name, "generation": 3});
    json!({"apiVersion": format!("g.io/{version}"), "kind": "Widget", "metadata": metadata, "spec": {"v": version}})
}

/// The answer of a webhook that does its work.
fn converted(body: &Bytes) -> Json {
    let review: Json = serde_json::from_slice(body).expect("the server sends JSON");
    let desired = review["request"]["desiredAPIVersion"].clone();
    let objects = review["request"]["objects"].as_array().expect("objects are a list").iter();
    let objects: Vec<Json> = objects
        .map(|object| {
            let mut object = object.clone();
            object["apiVersion"] = desired.clone();
            object["spec"] = json!({"v": "v2"});
            object["metadata"]["generation"] = json!(99);
            object
        })
        .collect();
    let response =
        json!({"uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": objects});
    json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response})
}

async fn start(behaviour: impl Fn(&Bytes) -> Reply + Send + Sync + 'static) -> (Hook, ConversionWebhook) {
    let (hook, client) = good(&["http/1.1"], move |_, body| behaviour(body)).await;
    (hook, ConversionWebhook { client, review_versions: vec!["v1".into()] })
}

fn json_reply(answer: &Json) -> Reply {
    reply(200, "application/json", answer.to_string())
}

/// What is said when the webhook's answer is changed like this.
async fn error_of(tamper: impl Fn(&mut Json) + Send + Sync + 'static) -> String {
    let (_hook, webhook) = start(move |body| {
        let mut answer = converted(body);
        tamper(&mut answer);
        json_reply(&answer)
    })
    .await;
    let objects = vec![object(widget("v1", "a"))];
    let result = client().convert(&webhook, "u", "g.io/v2", objects, PATIENCE).await;
    result.expect_err("the answer is wrong").to_string()
}

#[tokio::test]
async fn objects_are_converted_in_one_batch_and_keep_their_places() {
    let (hook, webhook) = start(|body| json_reply(&converted(body))).await;
    let objects =
        [widget("v1", "a"), widget("v2", "b"), widget("v1", "c"), json!({"apiVersion": "g.io/v1", "kind": "Widget"})];
    let objects = objects.into_iter().map(object).collect();
    let found = client().convert(&webhook, "u", "g.io/v2", objects, PATIENCE).await.expect("it converts");
    let empty = json!({"apiVersion": "g.io/v2", "kind": "Widget"});
    let want: Vec<Object> =
        [widget("v2", "a"), widget("v2", "b"), widget("v2", "c"), empty].into_iter().map(object).collect();
    assert_eq!(found, want);

    let requests = hook.requests();
    let review: Json = serde_json::from_slice(&requests[0].1).expect("the server sends JSON");
    assert_eq!((requests.len(), &review["apiVersion"]), (1, &json!("apiextensions.k8s.io/v1")));
    let want = json!({"uid": "u", "desiredAPIVersion": "g.io/v2", "objects": [widget("v1", "a"), widget("v1", "c")]});
    assert_eq!(review["request"], want);
}

#[tokio::test]
async fn nobody_is_asked_when_nothing_is_to_be_converted() {
    let (hook, webhook) = start(|_| Reply::Hang).await;
    let objects = vec![object(widget("v2", "a"))];
    let found = client().convert(&webhook, "u", "g.io/v2", objects.clone(), PATIENCE).await.expect("nothing to do");
    assert_eq!((found, hook.connections()), (objects, 0));
    let found = client().convert(&webhook, "u", "g.io/v2", Vec::new(), PATIENCE).await.expect("nothing to do");
    assert_eq!((found, hook.connections()), (Vec::new(), 0));
}

#[tokio::test]
async fn the_older_review_is_spoken_when_it_is_asked_for() {
    let (hook, mut webhook) = start(|body| {
        let mut answer = converted(body);
        answer["response"]["uid"] = json!("other");
        json_reply(&answer)
    })
    .await;
    webhook.review_versions = vec!["v9".into(), "v1beta1".into(), "v1".into()];
    let objects = vec![object(widget("v1", "a"))];
    client().convert(&webhook, "u", "g.io/v2", objects.clone(), PATIENCE).await.expect("it converts");
    let review: Json = serde_json::from_slice(&hook.requests()[0].1).expect("the server sends JSON");
    assert_eq!(review["apiVersion"], "apiextensions.k8s.io/v1beta1");

    webhook.review_versions = vec!["v9".into()];
    let error = client().convert(&webhook, "u", "g.io/v2", objects, PATIENCE).await.expect_err("nothing in common");
    assert_eq!(error.to_string(), "no supported conversion review versions");
}

#[tokio::test]
async fn wrong_answers_are_told() {
    const HOOK: &str = "conversion webhook for g.io/v1, Kind=Widget";
    let wrong_uid = error_of(|answer| answer["response"]["uid"] = json!("other")).await;
    assert_eq!(wrong_uid, format!("{HOOK} failed: expected response.uid=\"u\", got \"other\""));
    let few = error_of(|answer| answer["response"]["convertedObjects"] = json!([])).await;
    assert_eq!(few, format!("{HOOK} returned 0 objects, expected 1"));
    let many = error_of(|answer| answer["response"]["convertedObjects"] = json!([{}, {}])).await;
    assert_eq!(many, format!("{HOOK} returned 2 objects, expected 1"));
    let failed = json!({"status": "Failed", "message": "no can do"});
    let failed = error_of(move |answer| answer["response"]["result"] = failed.clone()).await;
    assert_eq!(failed, format!("{HOOK} failed: no can do"));
    for (field, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let error = error_of(move |answer| {
            answer["response"]["convertedObjects"][0]["metadata"][field] = json!("other");
        })
        .await;
        let was = if field == "namespace" { "ns" } else { "a" };
        assert_eq!(error, format!("{HOOK} returned invalid object: must have the same {shown}: {was} != other"));
    }
}

#[tokio::test]
async fn what_is_no_answer_is_told() {
    const FAILED: &str = "conversion webhook for g.io/v1, Kind=Widget failed: ";
    let limits = Limits { max_response_bytes: 1 << 20, ..Limits::default() };
    for (body, want) in [
        ("{\"a\":".to_owned(), "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (String::new(), "0-length response with status code: 200 and content type: application/json"),
        ("{}".to_owned(), "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="),
        (" ".repeat(2 << 20), "the response is larger than 1048576 bytes"),
        (
            format!("{{\"a\":{}", "[".repeat(1 << 19)),
            "couldn't get version/kind; json parse error: exceeded max depth of 512",
        ),
    ] {
        let (_hook, webhook) = start(move |_| reply(200, "application/json", body.clone())).await;
        let objects = vec![object(widget("v1", "a"))];
        let result = client_with(limits.clone()).convert(&webhook, "u", "g.io/v2", objects, PATIENCE).await;
        assert_eq!(result.expect_err(want).to_string(), format!("{FAILED}{want}"));
    }
}

#[tokio::test]
async fn an_answer_may_be_as_large_as_so_many_objects() {
    let (_hook, webhook) = start(|body| {
        let mut answer = converted(body);
        answer["padding"] = json!(" ".repeat(5 << 20));
        json_reply(&answer)
    })
    .await;
    let objects = vec![object(widget("v1", "a")), object(widget("v1", "b"))];
    client().convert(&webhook, "u", "g.io/v2", objects.clone(), PATIENCE).await.expect("it is enough for two");
    let error = client().convert(&webhook, "u", "g.io/v2", objects[..1].to_vec(), PATIENCE).await;
    let want = "conversion webhook for g.io/v1, Kind=Widget failed: the response is larger than 4194304 bytes";
    assert_eq!(error.expect_err("it is too much for one").to_string(), want);
}

#[tokio::test]
async fn a_webhook_that_hangs_is_given_up() {
    let (_hook, webhook) = start(|_| Reply::Hang).await;
    let objects = vec![object(widget("v1", "a"))];
    let soon = Duration::from_millis(200);
    let error = client().convert(&webhook, "u", "g.io/v2", objects, soon).await.expect_err("it never answers");
    assert!(matches!(error, ConversionError::Call { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.starts_with("conversion webhook for g.io/v1, Kind=Widget failed: Post \"https://127.0.0.1:"),
        "{text}"
    );
    assert!(text.ends_with("/hook?timeout=200ms\": context deadline exceeded"), "{text}");
}

#[tokio::test]
async fn the_webhook_of_a_definition_is_read() {
    let webhook = object(json!({
        "conversionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": {"url": "https://h/x"},
    }));
    let webhook = ConversionWebhook::from_object(&webhook).expect("it is whole");
    assert_eq!(webhook.review_versions, ["v1", "v1beta1"]);
    let error = ConversionWebhook::from_object(&Object::new()).expect_err("it says nothing");
    assert_eq!(error.to_string(), "webhook configuration must have either service or URL");
}
