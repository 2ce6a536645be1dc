//! Admission webhooks: what they are told, what they may change, and what becomes of a write when they fail.

mod inner_writes;
mod own_writes;
mod reviewer;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Barrier;

use self::reviewer::{Answer, Reviewer, allow, deny, patch};
use crate::client::{APPLY, Client, MERGE};
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, SERVICE_ACCOUNTS, config_map};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// All writes to config maps.
fn config_maps() -> Value {
    json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]})
}

/// All that can be asked, of every resource and part.
fn everything() -> Value {
    json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]})
}

async fn register(client: &Client, kind: &str, name: &str, webhooks: &[Value]) {
    let configuration = json!({"metadata": {"name": name}, "webhooks": webhooks});
    client.post(&format!("{CONFIGURATIONS}/{kind}webhookconfigurations"), &configuration).await.expect(201);
}

/// Makes a pod, and the account that it runs as: no controller does.
async fn make_pod(client: &Client, name: &str) -> Value {
    client.post(SERVICE_ACCOUNTS, &json!({"metadata": {"name": "default"}})).await.expect(201);
    client.post(PODS, &pod(name)).await.expect(201).json()
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

/// What a request is about, in one line.
fn told(request: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let shown = |value: &Value| if value.is_null() { "no" } else { "an" };
    format!(
        "{} {}/{} {} {} {} object {} old {}",
        text(&request["operation"]),
        text(&request["resource"]["resource"]),
        text(&request["subResource"]),
        text(&request["kind"]["kind"]),
        text(&request["name"]),
        shown(&request["object"]),
        shown(&request["oldObject"]),
        text(&request["options"]["kind"]),
    )
}

/// What is wrong with a patch is told, also where its webhook may fail; what is unwise about an object is told although it is
/// refused.
#[tokio::test]
async fn refusals_tell_why_and_what_was_unwise() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|_, request| async move {
        match request["name"].as_str() {
            Some("remove") => patch(&json!([{"op": "remove", "path": "/nope"}])),
            Some("test") => patch(&json!([{"op": "test", "path": "/kind", "value": "x"}])),
            Some("odd") => patch(&json!([{"op": "odd", "path": "/kind"}])),
            Some("unwise") => deny("not today"),
            _ => allow(),
        }
    })
    .await;
    make_pod(&client, "before").await;
    let more = json!({"failurePolicy": "Ignore"});
    register(&client, "mutating", "all", &[reviewer.webhook("m", &config_maps(), &more)]).await;
    let pods = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
    register(&client, "validating", "all", &[reviewer.webhook("v", &pods, &json!({}))]).await;
    for (name, wanted) in [
        ("remove", "error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value"),
        ("test", "testing value /kind failed: test failed"),
        ("odd", "Unexpected kind: odd"),
    ] {
        let refused = client.post(CONFIG_MAPS, &config_map(name, "1")).await.fails(500, "InternalError");
        assert_eq!(refused["message"], format!("Internal error occurred: {wanted}"));
    }
    let mut unwise = pod("unwise");
    unwise["metadata"]["annotations"] = json!({"container.apparmor.security.beta.kubernetes.io/c": "unconfined"});
    let refused = client.post(PODS, &unwise).await.expect(400);
    let warnings = refused.warnings();
    assert!(warnings.iter().any(|text| text.contains("deprecated since v1.30")), "{warnings:?}");
}

/// What a webhook makes of an object must still be the one that was written, and in the state that it was.
#[tokio::test]
async fn a_changed_object_stays_where_it_is() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|_, request| async move {
        let set = |path: &str, value: &str| patch(&json!([{"op": "add", "path": path, "value": value}]));
        match request["object"]["data"]["k"].as_str() {
            Some("name") => set("/metadata/name", "other"),
            Some("namespace") => set("/metadata/namespace", "other"),
            Some("version") => set("/metadata/resourceVersion", "7"),
            Some("managers") => patch(&json!([{"op": "add", "path": "/metadata/managedFields", "value": []}])),
            Some("odd managers") => {
                patch(&json!([{"op": "add", "path": "/metadata/managedFields", "value": [{"manager": "m"}]}]))
            }
            Some("shown") if !request["object"]["metadata"]["resourceVersion"].is_null() => deny("it has a version"),
            _ => allow(),
        }
    })
    .await;
    client.post(CONFIG_MAPS, &config_map("one", "1")).await.expect(201);
    register(&client, "mutating", "all", &[reviewer.webhook("m", &config_maps(), &json!({}))]).await;
    let one = format!("{CONFIG_MAPS}/one");
    for (word, code, reason, message) in [
        (
            "name",
            422,
            "Invalid",
            "ConfigMap \"other\" is invalid: metadata.name: Invalid value: \"other\": field is immutable",
        ),
        (
            "namespace",
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            "version",
            409,
            "Conflict",
            "Operation cannot be fulfilled on configmaps \"one\": the object has been modified; please apply your \
             changes to the latest version and try again",
        ),
    ] {
        let refused = client.put(&one, &config_map("one", word)).await.fails(code, reason);
        assert_eq!(refused["message"], message, "{word}");
    }
    client.put(&one, &config_map("one", "shown")).await.expect(200);
    let begun_anew = client.put(&one, &config_map("one", "managers")).await.expect(200).json();
    assert_eq!(begun_anew["metadata"].get("managedFields"), None, "{begun_anew}");
    let answer = client.put(&one, &config_map("one", "odd managers")).await.expect(200);
    let warnings = answer.warnings();
    assert!(warnings.iter().any(|text| text.contains("operation must be `Apply` or `Update`")), "{warnings:?}");
}

/// Who sent what is not stored is told too.
#[tokio::test]
async fn webhooks_are_told_who_manages_what_is_not_stored() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|_, request| async move {
        let manager = &request["object"]["metadata"]["managedFields"][0];
        match (&request["subResource"], &manager["operation"], &manager["subresource"]) {
            (part, operation, of) if operation == "Update" && part == of => allow(),
            _ => deny("nobody manages it"),
        }
    })
    .await;
    make_pod(&client, "p").await;
    let parts = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["pods/binding", "pods/eviction"]});
    let reviews = json!({"apiGroups": ["authorization.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["subjectaccessreviews"]});
    let webhooks = [reviewer.webhook("parts", &parts, &json!({})), reviewer.webhook("reviews", &reviews, &json!({}))];
    register(&client, "validating", "all", &webhooks).await;
    let binding = json!({"target": {"name": "n"}, "metadata": {"name": "p"}});
    client.post(&format!("{PODS}/p/binding"), &binding).await.expect(201);
    let eviction = json!({"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 0}});
    client.post(&format!("{PODS}/p/eviction"), &eviction).await.expect(201);
    let review = json!({"spec": {"user": "u", "nonResourceAttributes": {"verb": "get", "path": "/"}}});
    client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await.expect(201);
}

#[tokio::test]
async fn every_operation_is_told_with_its_objects_and_options() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|_, _| async { allow() }).await;
    make_pod(&client, "before").await;
    register(&client, "validating", "all", &[reviewer.webhook("all", &everything(), &json!({}))]).await;

    let one = format!("{CONFIG_MAPS}/one");
    client.post(CONFIG_MAPS, &config_map("one", "1")).await.expect(201);
    client.put(&one, &config_map("one", "2")).await.expect(200);
    client.patch(&one, MERGE, &json!({"data": {"k": "3"}})).await.expect(200);
    client.delete(&one).await.expect(200);
    client.post(CONFIG_MAPS, &config_map("two", "1")).await.expect(201);
    client.delete(CONFIG_MAPS).await.expect(200);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    client.post(deployments, &deployment).await.expect(201);
    client.patch(&format!("{deployments}/d/scale"), MERGE, &json!({"spec": {"replicas": 3}})).await.expect(200);
    client.patch(&format!("{deployments}/d/status"), MERGE, &json!({"status": {"replicas": 1}})).await.expect(200);
    let binding = json!({"metadata": {"name": "before"}, "target": {"kind": "Node", "name": "n"}});
    client.post(&format!("{PODS}/before/binding"), &binding).await.expect(201);
    client.post(&format!("{PODS}/before/exec?command=ls&container=c"), &json!({})).await;
    client.post(&format!("{PODS}/before/exec?command=ls&dryRun=All"), &json!({})).await.fails(400, "BadRequest");
    client.get(&format!("{PODS}/before/proxy/a/b?x=y")).await.fails(400, "BadRequest");
    client.get("/api/v1/nodes/n/proxy/").await.fails(404, "NotFound");
    client.put("/api/v1/namespaces/default/services/kubernetes:https/proxy", &json!({})).await;
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "before"}});
    client.post(&format!("{PODS}/before/eviction"), &eviction).await.expect(201);
    client.post(SERVICE_ACCOUNTS, &json!({"metadata": {"name": "a"}})).await.expect(201);
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    client.post(&format!("{SERVICE_ACCOUNTS}/a/token"), &token).await.expect(201);
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await.expect(201);

    let requests = reviewer.requests("all");
    let told: Vec<String> = requests.iter().map(told).collect();
    assert_eq!(
        told,
        [
            "CREATE configmaps/- ConfigMap one an object no old CreateOptions",
            "UPDATE configmaps/- ConfigMap one an object an old UpdateOptions",
            "UPDATE configmaps/- ConfigMap one an object an old UpdateOptions",
            "DELETE configmaps/- ConfigMap one no object an old DeleteOptions",
            "CREATE configmaps/- ConfigMap two an object no old CreateOptions",
            // As in the original, who deletes a collection names nothing.
            "DELETE configmaps/- ConfigMap - no object an old DeleteOptions",
            "CREATE deployments/- Deployment d an object no old CreateOptions",
            "UPDATE deployments/scale Scale d an object an old UpdateOptions",
            "UPDATE deployments/status Deployment d an object an old UpdateOptions",
            "CREATE pods/binding Binding before an object no old CreateOptions",
            "CONNECT pods/exec PodExecOptions before an object no old -",
            "CONNECT pods/proxy PodProxyOptions before an object no old -",
            "CONNECT nodes/proxy NodeProxyOptions n an object no old -",
            "CONNECT services/proxy ServiceProxyOptions kubernetes:https an object no old -",
            "CREATE pods/eviction Eviction before an object no old CreateOptions",
            "CREATE serviceaccounts/- ServiceAccount a an object no old CreateOptions",
            "CREATE serviceaccounts/token TokenRequest a an object no old CreateOptions",
            "CREATE selfsubjectaccessreviews/- SelfSubjectAccessReview - an object no old CreateOptions",
        ]
    );
    // What is changed or deleted is told with its version.
    for (at, member) in
        [(1, "object"), (1, "oldObject"), (2, "object"), (2, "oldObject"), (3, "oldObject"), (8, "object")]
    {
        let version = &requests[at][member]["metadata"]["resourceVersion"];
        assert!(version.as_str().is_some_and(|text| text.parse::<u64>().is_ok()), "{at} {member}: {version}");
    }
    assert_eq!(requests[0]["object"]["metadata"]["resourceVersion"], Value::Null);
    assert_eq!(requests[7]["object"]["spec"]["replicas"], 3);
    assert_eq!(
        (&requests[10]["object"]["command"], &requests[10]["object"]["container"]),
        (&json!(["ls"]), &json!("c"))
    );
    assert_eq!([11, 12, 13].map(|at| &requests[at]["object"]["path"]), [&json!("/a/b"), &json!("/"), &Value::Null]);
    assert!(
        requests[0]["userInfo"]["groups"].as_array().is_some_and(|groups| groups.contains(&json!("system:masters")))
    );
}

#[tokio::test]
async fn a_review_tells_the_versions_of_the_objects_in_it() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|_, _| async { allow() }).await;
    register(&client, "validating", "all", &[reviewer.webhook("all", &everything(), &json!({}))]).await;
    let one = format!("{CONFIG_MAPS}/one");
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    let made = version(&client.post(CONFIG_MAPS, &config_map("one", "1")).await.expect(201).json());
    let changed = version(&client.patch(&one, MERGE, &json!({"data": {"k": "2"}})).await.expect(200).json());
    client.delete(&one).await.expect(200);
    let versions = |review: &Value| [version(&review["object"]), version(&review["oldObject"])];
    let told: Vec<[Value; 2]> = reviewer.requests("all").iter().map(versions).collect();
    assert_eq!(told, [[Value::Null, Value::Null], [made.clone(), made], [Value::Null, changed]]);
}

#[tokio::test]
async fn every_operation_can_be_refused_and_leaves_everything_as_it_was() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|_, _| async { deny("not today") }).await;
    make_pod(&client, "p").await;
    let before = client.post(CONFIG_MAPS, &config_map("one", "1")).await.expect(201).version();
    register(&client, "validating", "no", &[reviewer.webhook("no", &everything(), &json!({}))]).await;
    let one = format!("{CONFIG_MAPS}/one");
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    for reply in [
        client.post(CONFIG_MAPS, &config_map("two", "1")).await,
        client.put(&one, &config_map("one", "2")).await,
        client.delete(&one).await,
        client.delete(CONFIG_MAPS).await,
        client.post(&format!("{PODS}/p/binding"), &binding).await,
        client.post(&format!("{PODS}/p/eviction"), &eviction).await,
        client.post(&format!("{PODS}/p/exec?command=ls"), &json!({})).await,
    ] {
        let status = reply.expect(400).json();
        assert_eq!(status["message"], "admission webhook \"no.example.com\" denied the request: not today");
    }
    assert_eq!(client.get(&one).await.expect(200).version(), before);
    assert_eq!(client.get(&format!("{PODS}/p")).await.expect(200).json()["spec"].get("nodeName"), None);
    client.get(&format!("{CONFIG_MAPS}/two")).await.expect(404);
}

#[tokio::test]
async fn what_a_webhook_adds_is_validated_defaulted_and_nobodys() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|path, request: Value| async move {
        match &*path {
            "ports" => {
                patch(&json!([{"op": "add", "path": "/spec/containers/0/ports", "value": [{"containerPort": 80}]}]))
            }
            "bad" => patch(&json!([{"op": "add", "path": "/data/a key", "value": "x"}])),
            "gone" => patch(&json!([{"op": "remove", "path": "/data/none"}])),
            "named" => {
                let name = request["name"].as_str().unwrap_or("none");
                patch(&json!([{"op": "add", "path": "/metadata/annotations", "value": {"named": name}}]))
            }
            _ => patch(&json!([{"op": "add", "path": "/data/added", "value": "x"}])),
        }
    })
    .await;
    let pods = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
    let of = |label: &str| json!({"objectSelector": {"matchLabels": {"say": label}}});
    let hooks: Vec<Value> = ["added", "bad", "gone", "named"]
        .iter()
        .map(|path| reviewer.webhook(path, &config_maps(), &of(path)))
        .chain([reviewer.webhook("ports", &pods, &json!({}))])
        .collect();
    register(&client, "mutating", "change", &hooks).await;

    let made = make_pod(&client, "p").await;
    assert_eq!(made["spec"]["containers"][0]["ports"], json!([{"containerPort": 80, "protocol": "TCP"}]));

    let labelled = |name: &str, label: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"say": label}}, "data": {"k": "v"}});
    let status = client.post(CONFIG_MAPS, &labelled("bad", "bad")).await.fails(422, "Invalid");
    assert!(status["message"].as_str().is_some_and(|message| message.contains("a key")), "{status}");
    client.post(CONFIG_MAPS, &labelled("gone", "gone")).await.fails(500, "InternalError");

    let applied = client
        .patch(&format!("{CONFIG_MAPS}/a?fieldManager=me"), APPLY, &labelled("a", "added"))
        .await
        .expect(201)
        .json();
    assert_eq!(applied["data"], json!({"k": "v", "added": "x"}));
    let managers = applied["metadata"]["managedFields"].as_array().expect("a list");
    assert_eq!(managers.len(), 1, "{managers:?}");
    assert_eq!(managers[0]["fieldsV1"]["f:data"], json!({"f:k": {}}));

    // A name that is yet to be generated is not known to those who may change the object.
    let mut generated = labelled("", "named");
    generated["metadata"]["generateName"] = "g-".into();
    let made = client.post(CONFIG_MAPS, &generated).await.expect(201).json();
    assert_eq!(made["metadata"]["annotations"]["named"], "none");
    assert!(made["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("g-")), "{made}");
}

#[tokio::test]
async fn a_webhook_that_fails_is_obeyed_or_passed_over_as_its_policy_says() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|path, request: Value| async move {
        match &*path {
            "hang" => Answer::Hang,
            "drip" => Answer::Drip,
            "redirect" => Answer::Redirect("https://127.0.0.1:1/elsewhere".to_owned()),
            "error" => Answer::Text(500, "oops".to_owned()),
            "text" => Answer::Text(200, "no JSON".to_owned()),
            "huge" => Answer::Text(200, format!("{{\"response\":\"{}\"}}", "x".repeat(9 << 20))),
            "stranger" => Answer::Response(json!({"uid": "another", "allowed": true})),
            "changes" => patch(&json!([])),
            _ => Answer::Response(json!({"allowed": "yes", "uid": request["uid"]})),
        }
    })
    .await;
    let faults = [
        ("hang", "context deadline exceeded"),
        ("drip", "context deadline exceeded"),
        ("redirect", "the server responded with the status code 302 but did not return more information"),
        ("error", "an error on the server (\"unknown\") has prevented the request from succeeding"),
        ("text", "couldn't get version/kind"),
        ("huge", "the response is larger than 8388608 bytes"),
        ("stranger", "expected response.uid="),
        ("changes", "validating webhook may not return response.patch"),
        ("odd", "cannot unmarshal string into Go struct field"),
    ];
    for policy in ["Fail", "Ignore"] {
        let webhook = |(path, _): &(&str, &str)| {
            let mut hook =
                reviewer.webhook(path, &config_maps(), &json!({"failurePolicy": policy, "timeoutSeconds": 1}));
            hook["objectSelector"] = json!({"matchLabels": {"say": format!("{path}-{policy}")}});
            hook
        };
        let hooks: Vec<Value> = faults.iter().map(webhook).collect();
        register(&client, "validating", &policy.to_lowercase(), &hooks).await;
    }
    for (path, why) in faults {
        let labelled = |policy: &str| {
            let labels = json!({"say": format!("{path}-{policy}")});
            json!({"metadata": {"name": format!("{path}-{}", policy.to_lowercase()), "labels": labels}})
        };
        let status = client.post(CONFIG_MAPS, &labelled("Fail")).await.fails(500, "InternalError");
        let message = status["message"].as_str().unwrap_or_default();
        let start = format!("Internal error occurred: failed calling webhook \"{path}.example.com\": ");
        assert!(message.starts_with(&start) && message.contains(why), "{path}: {message}");
        client.post(CONFIG_MAPS, &labelled("Ignore")).await.expect(201);
    }
    let metrics = String::from_utf8_lossy(&client.get("/metrics").await.expect(200).body).into_owned();
    for series in [
        r#"apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="error.example.com",operation="CREATE",rejection_code="500",type="validating"} 1"#,
        r#"apiserver_admission_webhook_fail_open_count{name="hang.example.com",type="validating"} 1"#,
        r#"apiserver_admission_webhook_admission_duration_seconds_count{name="text.example.com",operation="CREATE",rejected="true",type="validating"} 1"#,
        r#"apiserver_admission_controller_admission_duration_seconds_count{name="LimitRanger",operation="CREATE",rejected="false",type="admit"}"#,
    ] {
        assert!(metrics.contains(series), "{series} in {metrics}");
    }
}

#[tokio::test]
async fn a_webhook_may_call_the_server_and_others_are_asked_at_the_same_time() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let (inner, both) = (client.apart(), Arc::new(Barrier::new(2)));
    let reviewer = Reviewer::start(move |path, request: Value| {
        let (client, both) = (inner.clone(), both.clone());
        async move {
            if path == "caller" {
                // Not about itself: else it would ask itself without an end.
                let name = request["name"].as_str().unwrap_or_default();
                if !name.starts_with("inner") {
                    client.post(CONFIG_MAPS, &config_map(&format!("inner-{name}"), "1")).await.expect(201);
                }
                return allow();
            }
            // Each waits for the other, so that one after the other would never come to an end.
            both.wait().await;
            allow()
        }
    })
    .await;
    register(&client, "mutating", "caller", &[reviewer.webhook("caller", &config_maps(), &json!({}))]).await;
    client.post(CONFIG_MAPS, &config_map("outer", "1")).await.expect(201);
    client.get(&format!("{CONFIG_MAPS}/inner-outer")).await.expect(200);

    let paired = json!({"objectSelector": {"matchLabels": {"say": "pair"}}});
    let hooks = ["left", "right"].map(|path| reviewer.webhook(path, &config_maps(), &paired));
    register(&client, "validating", "pair", &hooks).await;
    let object = json!({"metadata": {"name": "inner-pair", "labels": {"say": "pair"}}});
    client.post(CONFIG_MAPS, &object).await.expect(201);
    assert_eq!((reviewer.requests("left").len(), reviewer.requests("right").len()), (1, 1));
}

#[tokio::test]
async fn warnings_come_with_a_refusal_too_and_configurations_count_at_once() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|_, _| async {
        Answer::Response(
            json!({"allowed": false, "warnings": ["mind the gap"], "status": {"code": 409, "reason": "Conflict"}}),
        )
    })
    .await;
    let webhook = reviewer.webhook("warn", &config_maps(), &json!({}));
    for _ in 0..3 {
        register(&client, "validating", "warn", std::slice::from_ref(&webhook)).await;
        let reply = client.post(CONFIG_MAPS, &config_map("one", "1")).await.expect(409);
        assert_eq!(reply.warnings(), ["299 - \"mind the gap\""]);
        client.delete(&format!("{CONFIGURATIONS}/validatingwebhookconfigurations/warn")).await.expect(200);
        client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("one", "1")).await.expect(201);
    }
    assert_eq!(reviewer.requests("warn").len(), 3);
}
