//! What the server writes in the midst of another write: whoever is asked about that may refuse it, change it, hang or
//! talk nonsense, and a write is done together with what it brings about, or not at all.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::reviewer::{Answer, Reviewer, allow, deny, patch};
use super::{CONFIGURATIONS, PODS, make_pod, pod, register};
use crate::client::{Client, MERGE};
use crate::custom::{DEFINITIONS, definition};
use crate::harness::{Server, eventually};
use crate::objects::{NAMESPACES, config_map, namespace};

const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const DENIED: &str = "admission webhook \"h.example.com\" denied the request: not now";

fn rule(group: &str, resource: &str) -> Value {
    json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]})
}

/// Takes back what was registered.
async fn forget(client: &Client, kind: &str) {
    client.delete(&format!("{CONFIGURATIONS}/{kind}webhookconfigurations/h")).await.expect(200);
}

/// Webhooks that answer by what their path says, which is changed by registering another.
async fn reviewer() -> Reviewer {
    Reviewer::start(|path, _| async move {
        match &*path {
            "no" | "h" => deny("not now"),
            "hang" => Answer::Hang,
            "nonsense" => Answer::Text(200, "[1,2".to_owned()),
            _ => allow(),
        }
    })
    .await
}

async fn register_as(client: &Client, reviewer: &Reviewer, path: &str, rule: &Value) {
    let more = json!({"name": "h.example.com", "timeoutSeconds": 1});
    register(client, "validating", "h", &[reviewer.webhook(path, rule, &more)]).await;
}

/// A namespace with a quota that counts one of at most nine config maps.
async fn limited(client: &Client, name: &str) {
    client.post(NAMESPACES, &namespace(name)).await.expect(201);
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "9"}}});
    client.post(&format!("/api/v1/namespaces/{name}/resourcequotas"), &quota).await.expect(201);
    let status = json!({"status": {"hard": {"configmaps": "9"}, "used": {"configmaps": "1"}}});
    client.patch(&format!("/api/v1/namespaces/{name}/resourcequotas/q/status"), MERGE, &status).await.expect(200);
}

async fn used(client: &Client, namespace: &str) -> Value {
    let quota = client.get(&format!("/api/v1/namespaces/{namespace}/resourcequotas/q")).await.expect(200).json();
    quota["status"]["used"]["configmaps"].clone()
}

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// The server, as webhooks are told of it.
fn assert_is_server(request: &Value) {
    assert_eq!(request["userInfo"]["username"], "system:apiserver");
    assert_eq!(request["userInfo"]["groups"], json!(["system:authenticated", "system:masters"]));
}

#[tokio::test]
async fn a_charge_is_refused_together_with_its_write() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    limited(&client, "a").await;
    let reviewer = reviewer().await;
    let charges = rule("", "resourcequotas/status");

    register_as(&client, &reviewer, "yes", &charges).await;
    client.post(&maps("a"), &config_map("one", "1")).await.expect(201);
    let [asked] = &reviewer.requests("yes")[..] else { panic!("asked once") };
    assert_is_server(asked);
    assert_eq!((&asked["operation"], &asked["subResource"]), (&json!("UPDATE"), &json!("status")));
    let counts = ["oldObject", "object"].map(|object| asked[object]["status"]["used"]["configmaps"].clone());
    assert_eq!(counts, ["1", "2"]);
    client.post(&format!("{}?dryRun=All", maps("a")), &config_map("dry", "1")).await.expect(201);
    assert_eq!(reviewer.requests("yes").len(), 1, "a dry run charges nothing");
    forget(&client, "validating").await;

    // As in the original, whoever refuses is asked three times more.
    for (path, code, message) in
        [("no", 400, DENIED), ("nonsense", 500, "failed calling webhook"), ("hang", 500, "deadline")]
    {
        register_as(&client, &reviewer, path, &charges).await;
        let refused = client.post(&maps("a"), &config_map("two", "1")).await.expect(code).json();
        assert!(refused["message"].as_str().is_some_and(|text| text.contains(message)), "{path}: {refused}");
        assert_eq!(reviewer.requests(path).len(), 4, "{path}");
        assert_eq!(used(&client, "a").await, "2", "{path}");
        client.get(&format!("{}/two", maps("a"))).await.expect(404);
        forget(&client, "validating").await;
    }
}

#[tokio::test]
async fn a_charge_may_be_changed_to_what_is_valid() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    limited(&client, "a").await;
    let reviewer = Reviewer::start(|path, _| async move {
        let (at, value) = match &*path {
            "more" => ("/status/used/configmaps", "7"),
            "less" => ("/status/used/configmaps", "-7"),
            _ => ("/spec/hard/configmaps", "70"),
        };
        patch(&json!([{"op": "add", "path": at, "value": value}]))
    })
    .await;
    let charges = rule("", "resourcequotas/status");
    for (path, code, count) in [("more", 201, "7"), ("less", 422, "7"), ("spec", 201, "8")] {
        register(&client, "mutating", "h", &[reviewer.webhook(path, &charges, &json!({}))]).await;
        let answer = client.post(&maps("a"), &config_map(path, "1")).await.expect(code).json();
        if code == 422 {
            let message = answer["message"].as_str().unwrap_or_default();
            assert!(message.starts_with("ResourceQuota \"q\" is invalid: status.used[configmaps]"), "{message}");
        }
        assert_eq!(used(&client, "a").await, count, "{path}");
        forget(&client, "mutating").await;
    }
    let quota = client.get("/api/v1/namespaces/a/resourcequotas/q").await.expect(200).json();
    assert_eq!(quota["spec"]["hard"]["configmaps"], "9", "a charge is of the status only");
}

#[tokio::test]
async fn a_policy_may_refuse_a_charge() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    limited(&client, "a").await;
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [rule("", "resourcequotas/status")]},
        "validations": [{"expression": "request.userInfo.username != 'system:apiserver'", "message": "no charges"}],
    }});
    client.post(&format!("{CONFIGURATIONS}/validatingadmissionpolicies"), &policy).await.expect(201);
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    client.post(&format!("{CONFIGURATIONS}/validatingadmissionpolicybindings"), &binding).await.expect(201);
    let refused = client.post(&maps("a"), &config_map("one", "1")).await.fails(422, "Invalid");
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("resourcequotas \"q\" is forbidden: ") && message.ends_with("no charges"), "{message}");
    assert_eq!(used(&client, "a").await, "1");
}

/// Who asks gives up; the charge is made later, and given back.
#[tokio::test]
async fn a_charge_that_nobody_waits_for_is_given_back() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    limited(&client, "a").await;
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let reviewer = Reviewer::start(move |_, _| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            allow()
        }
    })
    .await;
    let before = client.get("/api/v1/namespaces/a/resourcequotas/q").await.expect(200).version();
    let charges = rule("", "resourcequotas/status");
    register(&client, "validating", "h", &[reviewer.webhook("h", &charges, &json!({"timeoutSeconds": 30}))]).await;
    client.post(&format!("{}?timeout=1s", maps("a")), &config_map("one", "1")).await.fails(504, "Timeout");
    go.notify_one();
    eventually(|| async {
        let quota = client.get("/api/v1/namespaces/a/resourcequotas/q").await.expect(200);
        let is_given_back = quota.json()["status"]["used"]["configmaps"] == "1";
        // A charge, and what takes it back.
        (is_given_back && quota.version() > before + 1).then_some(())
    })
    .await;
    client.get(&format!("{}/one", maps("a"))).await.expect(404);
}

#[tokio::test]
async fn a_webhook_that_is_asked_about_a_charge_may_have_others_charged() {
    let server = Server::start(&["--controllers=*"]).await;
    let client = server.client();
    limited(&client, "a").await;
    limited(&client, "b").await;
    let again = client.clone();
    let reviewer = Reviewer::start(move |_, request: Value| {
        let client = again.clone();
        async move {
            let is_first = request["namespace"] == "a" && request["userInfo"]["username"] == "system:apiserver";
            if is_first {
                let made = client.post(&maps("b"), &config_map("by-webhook", "1")).await.code;
                // A count must not wait for those who charge, nor they for a count.
                let quota = json!({"metadata": {"name": "late"}, "spec": {"hard": {"secrets": "9"}}});
                client.post("/api/v1/namespaces/a/resourcequotas", &quota).await;
                if made != 201 {
                    return deny(&format!("{made}"));
                }
            }
            allow()
        }
    })
    .await;
    let charges = rule("", "resourcequotas/status");
    register(&client, "validating", "h", &[reviewer.webhook("h", &charges, &json!({}))]).await;
    client.post(&maps("a"), &config_map("one", "1")).await.expect(201);
    client.get(&format!("{}/by-webhook", maps("b"))).await.expect(200);
}

#[tokio::test]
async fn an_address_that_is_refused_is_given_to_nobody() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = reviewer().await;
    let service = |name: &str, more: Value| {
        let mut service = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
        service["spec"].as_object_mut().expect("is one").extend(more.as_object().cloned().unwrap_or_default());
        service
    };
    let addresses = rule("networking.k8s.io", "ipaddresses");
    let known = client.get(ADDRESSES).await.expect(200).names();
    for (path, more, wanted) in [
        ("no", json!({}), format!("[\"\"]: failed to allocate IP: {DENIED}")),
        (
            "no",
            json!({"clusterIP": "10.0.0.77"}),
            format!("[\"10.0.0.77\"]: failed to allocate IP 10.0.0.77: {DENIED}"),
        ),
        ("nonsense", json!({}), "[\"\"]: failed to allocate IP: Internal error occurred: failed calling".to_owned()),
        ("hang", json!({}), "[\"\"]: failed to allocate IP: Internal error occurred: failed calling".to_owned()),
    ] {
        register_as(&client, &reviewer, path, &addresses).await;
        let refused = client.post(SERVICES, &service("s", more)).await.fails(422, "Invalid");
        let message = refused["message"].as_str().unwrap_or_default();
        let wanted = format!("Service \"s\" is invalid: spec.clusterIPs: Invalid value: {wanted}");
        assert!(message.starts_with(&wanted), "{path}: {message}");
        client.post(&format!("{SERVICES}?dryRun=All"), &service("dry", json!({}))).await.expect(201);
        forget(&client, "validating").await;
    }
    assert_is_server(&reviewer.requests("no")[0]);
    assert_eq!(reviewer.requests("no").len(), 2);
    assert_eq!(client.get(ADDRESSES).await.expect(200).names(), known);
}

#[tokio::test]
async fn an_address_that_may_not_go_goes_later() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|path, _| async move {
        match &*path {
            "label" => patch(&json!([{"op": "add", "path": "/metadata/labels/x", "value": "y"}])),
            _ => deny("not now"),
        }
    })
    .await;
    let mut making = rule("networking.k8s.io", "ipaddresses");
    making["operations"] = json!(["CREATE"]);
    register(&client, "mutating", "h", &[reviewer.webhook("label", &making, &json!({}))]).await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let made = client.post(SERVICES, &service).await.expect(201).json();
    let address = format!("{ADDRESSES}/{}", made["spec"]["clusterIP"].as_str().expect("has one"));
    assert_eq!(client.get(&address).await.expect(200).json()["metadata"]["labels"]["x"], "y");
    let mut removing = rule("networking.k8s.io", "ipaddresses");
    removing["operations"] = json!(["DELETE"]);
    register_as(&client, &reviewer, "h", &removing).await;
    client.delete(&format!("{SERVICES}/s")).await.expect(200);
    let asked = reviewer.requests("h");
    assert_is_server(&asked[0]);
    assert_eq!(asked[0]["oldObject"]["spec"]["parentRef"]["name"], "s");
    client.get(&format!("{SERVICES}/s")).await.expect(404);
    client.get(&address).await.expect(200);
    forget(&client, "validating").await;
    eventually(|| async { (client.get(&address).await.code == 404).then_some(()) }).await;
}

#[tokio::test]
async fn a_budget_that_may_not_be_charged_keeps_its_pod() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let mut labelled = make_pod(&client, "other").await;
    labelled["metadata"] = json!({"name": "p", "labels": {"app": "w"}});
    labelled["spec"] = pod("p")["spec"].clone();
    client.post(PODS, &labelled).await.expect(201);
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    client.patch(&format!("{PODS}/p/status"), MERGE, &running).await.expect(200);
    let budget =
        json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "w"}}}});
    client.post(BUDGETS, &budget).await.expect(201);
    let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 2,
        "desiredHealthy": 1, "expectedPods": 2}});
    client.patch(&format!("{BUDGETS}/b/status"), MERGE, &status).await.expect(200);
    let allowed = async || client.get(&format!("{BUDGETS}/b")).await.json()["status"]["disruptionsAllowed"].clone();
    let reviewer = reviewer().await;
    let charges = rule("policy", "poddisruptionbudgets/status");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let evict = async |query: &str| client.post(&format!("{PODS}/p/eviction{query}"), &eviction).await;
    for (path, code, message) in [("no", 400, DENIED), ("nonsense", 500, "failed calling"), ("hang", 500, "deadline")] {
        register_as(&client, &reviewer, path, &charges).await;
        let refused = evict("").await.expect(code).json();
        assert!(refused["message"].as_str().is_some_and(|text| text.contains(message)), "{path}: {refused}");
        evict("?dryRun=All").await.expect(201);
        assert_eq!(reviewer.requests(path).len(), 1, "{path}: a dry run charges nothing");
        assert_eq!(allowed().await, 2, "{path}");
        client.get(&format!("{PODS}/p")).await.expect(200);
        forget(&client, "validating").await;
    }
    register_as(&client, &reviewer, "yes", &charges).await;
    evict("").await.expect(201);
    assert_is_server(&reviewer.requests("yes")[0]);
    assert_eq!(allowed().await, 1);
    client.get(&format!("{PODS}/p")).await.expect(404);
}

#[tokio::test]
async fn a_definition_is_in_force_when_its_status_may_say_so() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = reviewer().await;
    let versions = json!([{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object"}}}]);
    let made = async |plural: &str| {
        let made = definition("inner.example.com", plural, versions.clone());
        client.post(DEFINITIONS, &made).await.expect(201)
    };
    let path = |plural: &str| format!("{DEFINITIONS}/{plural}.inner.example.com");
    let is_served = async |plural: &str| {
        let objects = format!("/apis/inner.example.com/v1/{plural}");
        client.get(&objects).await.code == 200
    };
    let statuses = rule("apiextensions.k8s.io", "customresourcedefinitions/status");
    for word in ["no", "hang", "nonsense"] {
        let plural = format!("{word}lamps");
        register_as(&client, &reviewer, word, &statuses).await;
        made(&plural).await;
        eventually(|| async { (reviewer.requests(word).len() > 1).then_some(()) }).await;
        assert_is_server(&reviewer.requests(word)[0]);
        assert!(!is_served(&plural).await, "{word}");
        let status = client.get(&path(&plural)).await.expect(200).json()["status"].clone();
        assert_eq!(status["conditions"].as_array().map_or(0, Vec::len), 0, "{word}: {status}");
        forget(&client, "validating").await;
        eventually(|| async { is_served(&plural).await.then_some(()) }).await;
    }
    // The end of one waits as well.
    register_as(&client, &reviewer, "h", &statuses).await;
    client.delete(&path("nolamps")).await.expect(200);
    eventually(|| async { (reviewer.requests("h").len() > 1).then_some(()) }).await;
    client.get(&path("nolamps")).await.expect(200);
    forget(&client, "validating").await;
    eventually(|| async { (client.get(&path("nolamps")).await.code == 404).then_some(()) }).await;
}
