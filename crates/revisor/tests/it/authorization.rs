//! May they, by others than roles: webhooks that a file names, the rules of nodes, and lines of a file.

use std::path::Path;

use serde_json::{Value, json};

use crate::client::Client;
use crate::harness::{GUEST_TOKEN, Server, eventually};
use crate::outsider::Outsider;

fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).expect("can be written");
    std::fs::rename(new, path).expect("can be renamed");
}

fn configuration(kubeconfig: &Path, conditions: &[&str], failure_policy: &str) -> String {
    let conditions: Vec<Value> = conditions.iter().map(|text| json!({"expression": text})).collect();
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
        "authorizers": [
            {"type": "Webhook", "name": "hook", "webhook": {
                "timeout": "3s", "subjectAccessReviewVersion": "v1", "failurePolicy": failure_policy,
                "cacheAuthorizedRequests": false, "cacheUnauthorizedRequests": false,
                "matchConditionSubjectAccessReviewVersion": "v1", "matchConditions": conditions,
                "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig},
            }},
            {"type": "RBAC", "name": "rbac"},
        ],
    })
    .to_string()
}

#[tokio::test]
async fn a_webhook_decides_about_what_its_conditions_say_until_the_file_says_otherwise() {
    let reviewer = Outsider::start(|_, review| {
        let asked = &review["spec"]["resourceAttributes"];
        let selects = asked["fieldSelector"]["requirements"][0]["values"] == json!(["here"]);
        let status = match asked["resource"].as_str() {
            Some("pods") if selects => json!({"allowed": true, "reason": "by its selector"}),
            Some("secrets") => json!({"allowed": false, "denied": true, "reason": "never"}),
            _ => json!({"allowed": false}),
        };
        json!({"apiVersion": review["apiVersion"], "kind": "SubjectAccessReview", "status": status})
    })
    .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (kubeconfig, path) = (folder.path().join("hook.yaml"), folder.path().join("authorization.yaml"));
    write(&kubeconfig, &reviewer.kubeconfig("/authorize"));
    let about_core = "has(request.resourceAttributes) && request.resourceAttributes.group == ''";
    write(&path, &configuration(&kubeconfig, &[about_core], "Deny"));
    let server = Server::start(&[&format!("--authorization-config={}", path.display())]).await;
    let jane = Client::new(server.kubeconfig.clone()).with_token(GUEST_TOKEN);
    jane.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dhere").await.expect(200);
    jane.get("/api/v1/pods").await.fails(403, "Forbidden");
    let refused = jane.get("/api/v1/namespaces/default/secrets").await.fails(403, "Forbidden");
    let message = refused["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.ends_with("in the namespace \"default\": never"), "{message}");
    let question = json!({"spec": {"user": "x", "resourceAttributes": {
        "resource": "pods", "verb": "list",
        "fieldSelector": {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["here"]}]},
    }}});
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let status = server.client().post(reviews, &question).await.expect(201).json()["status"].clone();
    assert_eq!(status, json!({"allowed": true, "reason": "by its selector"}));

    write(&path, &configuration(&kubeconfig, &["request.nonsense"], "Deny"));
    let counted = async |status: &str| {
        let text = String::from_utf8_lossy(&server.client().get("/metrics").await.expect(200).body).into_owned();
        let name = "apiserver_authorization_config_controller_automatic_reloads_total";
        text.lines().any(|line| line.starts_with(name) && line.contains(status))
    };
    eventually(|| async { counted("failure").await.then_some(()) }).await;
    jane.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dhere").await.expect(200);
    write(&path, &configuration(&kubeconfig, &["false"], "Deny"));
    eventually(|| async {
        (jane.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dhere").await.code == 403).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_kubelet_may_read_what_its_pods_need_from_when_they_are_bound() {
    let server = Server::start(&["--authorization-mode=Node,RBAC"]).await;
    let admin = server.client();
    let pods = "/api/v1/namespaces/default/pods";
    let secrets = "/api/v1/namespaces/default/secrets";
    admin.post("/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "default"}})).await;
    admin.post("/api/v1/nodes", &json!({"metadata": {"name": "one"}})).await.expect(201);
    for name in ["needed", "other"] {
        admin.post(secrets, &json!({"metadata": {"name": name}})).await.expect(201);
    }
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "nodeName": "one",
        "containers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "needed"}}]}],
    }});
    let allowed = async |node: &str, attributes: Value| {
        let spec = json!({
            "user": format!("system:node:{node}"), "groups": ["system:nodes"], "resourceAttributes": attributes,
        });
        let reply = admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &json!({"spec": spec})).await;
        let status = reply.expect(201).json()["status"].clone();
        (status["allowed"] == true, status["reason"].as_str().unwrap_or_default().to_owned())
    };
    let get =
        |resource: &str, name: &str| json!({"verb": "get", "resource": resource, "namespace": "default", "name": name});
    assert!(!allowed("one", get("secrets", "needed")).await.0, "no pod is there yet");
    admin.post(pods, &pod).await.expect(201);
    let lease = |name: &str| json!({"verb": "update", "group": "coordination.k8s.io", "resource": "leases", "namespace": "kube-node-lease", "name": name});
    let token = json!({"verb": "create", "resource": "serviceaccounts", "subresource": "token", "namespace": "default", "name": "default"});
    let list = |node: &str| {
        let term = json!({"key": "spec.nodeName", "operator": "In", "values": [node]});
        json!({"verb": "list", "resource": "pods", "fieldSelector": {"requirements": [term]}})
    };
    for (name, node, attributes, want) in [
        ("the secret of its pod", "one", get("secrets", "needed"), true),
        ("another secret", "one", get("secrets", "other"), false),
        ("a secret of a pod elsewhere", "two", get("secrets", "needed"), false),
        ("all secrets", "one", json!({"verb": "list", "resource": "secrets", "namespace": "default"}), false),
        ("its pod", "one", get("pods", "p"), true),
        ("a pod elsewhere", "two", get("pods", "p"), false),
        ("its pods", "one", list("one"), true),
        ("pods of others", "one", list("two"), false),
        ("itself", "one", json!({"verb": "get", "resource": "nodes", "name": "one"}), true),
        ("others", "one", json!({"verb": "get", "resource": "nodes", "name": "two"}), false),
        ("its lease", "one", lease("one"), true),
        ("the lease of another", "one", lease("two"), false),
        ("a token of its pod's account", "one", token.clone(), true),
        ("a token of an account of nobody there", "two", token, false),
        ("services", "one", json!({"verb": "list", "resource": "services"}), true),
        ("deployments", "one", json!({"verb": "list", "group": "apps", "resource": "deployments"}), false),
    ] {
        let (is_allowed, reason) = allowed(node, attributes).await;
        assert_eq!(is_allowed, want, "{name}: {reason}");
    }
    let (_, reason) = allowed("two", get("secrets", "needed")).await;
    assert_eq!(reason, "no relationship found between node 'two' and this object");
    admin.delete_with(&format!("{pods}/p"), &json!({"gracePeriodSeconds": 0})).await.expect(200);
    assert!(!allowed("one", get("secrets", "needed")).await.0, "the pod is gone");
}

#[tokio::test]
async fn lines_of_a_file_allow_what_they_say() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("policy.jsonl");
    let spec = json!({"user": "jane", "namespace": "default", "resource": "configmaps", "readonly": true});
    write(
        &path,
        &json!({"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": spec}).to_string(),
    );
    let server =
        Server::start(&["--authorization-mode=ABAC", &format!("--authorization-policy-file={}", path.display())]).await;
    let jane = Client::new(server.kubeconfig.clone()).with_token(GUEST_TOKEN);
    jane.get("/api/v1/namespaces/default/configmaps").await.expect(200);
    jane.get("/api/v1/namespaces/kube-system/configmaps").await.fails(403, "Forbidden");
    let map = json!({"metadata": {"name": "m"}});
    let refused = jane.post("/api/v1/namespaces/default/configmaps", &map).await.fails(403, "Forbidden");
    assert!(refused["message"].as_str().unwrap_or_default().ends_with(": No policy matched."), "{refused}");
}
