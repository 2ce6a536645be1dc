//! May they, by others than roles: webhooks that a file names, the rules of nodes, and lines of a file.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::custom::certified;
use crate::harness::{GUEST_TOKEN, Server, eventually, within};
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
async fn what_a_webhook_does_not_decide_is_not_known() {
    let reviewer = Outsider::start(|_, review| {
        let status = match review["spec"]["user"].as_str() {
            Some("denied") => json!({"allowed": false, "denied": true, "reason": "never"}),
            Some("both") => json!({"allowed": true, "denied": true, "reason": "both"}),
            Some("odd") => return json!({"apiVersion": "v1", "kind": "Pod"}),
            _ => json!({"allowed": false}),
        };
        json!({"apiVersion": review["apiVersion"], "kind": "SubjectAccessReview", "status": status})
    })
    .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (kubeconfig, path) = (folder.path().join("hook.yaml"), folder.path().join("authorization.yaml"));
    let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
    write(&kubeconfig, &reviewer.kubeconfig("/authorize"));
    write(&path, &configuration(&kubeconfig, &[], "NoOpinion"));
    write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n");
    let flags = [
        format!("--authorization-config={}", path.display()),
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log.display()),
    ];
    let server = Server::start(&flags.each_ref().map(String::as_str)).await;
    let (admin, unread) = (server.client(), "converting (v1.Pod) to (v1.SubjectAccessReview): unknown conversion");
    let both = "webhook subject access review returned both allow and deny response";
    for (user, want) in [
        ("denied", json!({"allowed": false, "denied": true, "reason": "never"})),
        ("both", json!({"allowed": false, "denied": true, "reason": "both", "evaluationError": both})),
        ("odd", json!({"allowed": false, "evaluationError": unread})),
        ("nobody", json!({"allowed": false})),
    ] {
        let question = json!({"spec": {"user": user, "resourceAttributes": {"resource": "pods", "verb": "list"}}});
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        assert_eq!(admin.post(reviews, &question).await.expect(201).json()["status"], want, "{user}");
    }
    // Whether they may is not known, which is not the fault of whoever asks.
    for (user, why) in [("both", both), ("odd", unread)] {
        let reply = admin.acting_as(user).get("/api/v1/pods").await.expect(500);
        assert_eq!(reply.text(), format!("Internal Server Error: \"/api/v1/pods\": {why}\n"));
    }
    admin.acting_as("denied").get("/api/v1/pods").await.fails(403, "Forbidden");
    let noted = async |user: &str| {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut own = events.filter(|event| event["impersonatedUser"]["username"] == user);
        own.find(|event| event["stage"] == "ResponseComplete").map(|event| event["annotations"].clone())
    };
    let notes = eventually(|| noted("odd")).await;
    assert_eq!(notes, json!({"authorization.k8s.io/reason": "internal error"}));
    let notes = eventually(|| noted("denied")).await;
    let decided = json!({"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": "never"});
    assert_eq!(notes, decided);
    let told = String::from_utf8_lossy(&admin.get("/metrics").await.expect(200).body).into_owned();
    for result in ["allowed", "denied", "error"] {
        let line = format!("authorization_attempts_total{{result=\"{result}\"}}");
        assert!(told.lines().any(|told| told.starts_with(&line)), "{line} in {told}");
    }
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

/// Somebody who takes connections and never says a word.
async fn silent_listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be listened on");
    let url = format!("https://{}", listener.local_addr().expect("it has an address"));
    (listener, url)
}

#[tokio::test]
async fn a_webhook_that_hangs_keeps_nobody_waiting_whom_it_is_not_asked_about() {
    let (listener, url) = silent_listener().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (kubeconfig, path) = (folder.path().join("hook.yaml"), folder.path().join("authorization.yaml"));
    let authority = base64::engine::general_purpose::STANDARD.encode(certified("localhost").1);
    let text = json!({
        "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    });
    write(&kubeconfig, &text.to_string());
    let about_path = "has(request.nonResourceAttributes) && request.nonResourceAttributes.path == '/hang'";
    let slow = configuration(&kubeconfig, &[about_path], "Deny").replace("\"3s\"", "\"30s\"");
    write(&path, &slow);
    let server = Server::start(&[&format!("--authorization-config={}", path.display())]).await;
    let admin = server.client();
    let jane = Client::new(server.kubeconfig.clone()).with_token(GUEST_TOKEN);
    let binding = json!({
        "metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}],
    });
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.expect(201);
    let registration = "/apis/admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let policy = json!({"metadata": {"name": "asks"}, "spec": {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "authorizer.path('/hang').check('get').allowed()"}],
    }});
    admin.post(&format!("{registration}/validatingadmissionpolicies"), &policy).await.expect(201);
    let bound = json!({"metadata": {"name": "asks"}, "spec": {"policyName": "asks", "validationActions": ["Deny"]}});
    admin.post(&format!("{registration}/validatingadmissionpolicybindings"), &bound).await.expect(201);

    // More reviews than there are threads that may wait for the disk, and writes that a policy asks about.
    let mut waiting = JoinSet::new();
    let question = json!({"spec": {"user": "x", "nonResourceAttributes": {"path": "/hang", "verb": "get"}}});
    let reviewer = admin.apart();
    for _ in 0..600 {
        let (reviewer, question) = (reviewer.clone(), question.clone());
        waiting.spawn(async move {
            reviewer.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &question).await;
        });
    }
    for number in 0..40 {
        let jane = jane.clone();
        waiting.spawn(async move {
            let object = json!({"metadata": {"name": format!("held-{number}")}});
            jane.post("/api/v1/namespaces/default/configmaps", &object).await;
        });
    }
    let _held = within(listener.accept()).await.expect("the webhook is asked");
    let others = admin.apart();
    for number in 0..20 {
        let object = json!({"metadata": {"name": format!("free-{number}")}});
        let written = others.post("/api/v1/namespaces/default/secrets", &object);
        let written = tokio::time::timeout(Duration::from_secs(10), written).await;
        written.expect("is served while others wait").expect(201);
    }
    waiting.abort_all();
}

#[tokio::test]
async fn who_binds_claims_of_devices_and_who_tells_of_devices_need_rights_of_their_own() {
    let server = Server::start(&[]).await;
    let admin = server.client();
    let (claims, rbac) =
        ("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", "/apis/rbac.authorization.k8s.io/v1");
    let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}},
    ]}}});
    admin.post(claims, &claim).await.expect(201);
    let jane = Client::new(server.kubeconfig.clone()).with_token(GUEST_TOKEN);
    let grant = async |name: &str, verbs: Value, resource: &str, names: Value| {
        let rule =
            json!({"apiGroups": ["resource.k8s.io"], "verbs": verbs, "resources": [resource], "resourceNames": names});
        let role = json!({"metadata": {"name": name}, "rules": [rule]});
        admin.post(&format!("{rbac}/clusterroles"), &role).await.expect(201);
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}],
        });
        admin.post(&format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
    };
    grant("status", json!(["update", "patch"]), "resourceclaims/status", json!([])).await;
    let status = format!("{claims}/c/status");
    let merge = "application/merge-patch+json";
    let device = json!({"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"});
    let bind = json!({"status": {"allocation": {"devices": {"results": [device]}}}});
    let refused = jane.patch(&status, merge, &bind).await.fails(422, "Invalid");
    let message = refused["message"].as_str().unwrap_or_default();
    let want = r#"status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: User "jane" cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope"#;
    assert!(message.contains(want), "{message}");
    grant("binding", json!(["patch"]), "resourceclaims/binding", json!([])).await;
    jane.patch(&status, merge, &bind).await.expect(200);

    let told = json!({"driver": "gpu.example.com", "pool": "p", "device": "d", "data": {"x": 1}});
    let tell = json!({"status": {"devices": [told]}});
    let refused = jane.patch(&status, merge, &tell).await.fails(422, "Invalid");
    let message = refused["message"].as_str().unwrap_or_default();
    let want = r#"status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "gpu.example.com" is forbidden: User "jane" cannot arbitrary-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "default""#;
    assert!(message.contains(want), "{message}");
    grant("driver", json!(["arbitrary-node:patch"]), "resourceclaims/driver", json!(["gpu.example.com"])).await;
    jane.patch(&status, merge, &tell).await.expect(200);

    // Without the feature the right to the status is enough.
    let gate = "--feature-gates=DRAResourceClaimGranularStatusAuthorization=false";
    let server = server.kill9().with_flags(&[gate]).start().await;
    let jane = Client::new(server.kubeconfig.clone()).with_token(GUEST_TOKEN);
    let reserve = json!({"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]}});
    jane.patch(&status, merge, &reserve).await.expect(200);
}
