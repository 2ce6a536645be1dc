//! What roles let their holders do, over the wire.

use http::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::harness::{GUEST_TOKEN, Server, eventually};
use crate::objects::{CONFIG_MAPS, LEASES, config_map};

const CLUSTER: &str = "/apis/rbac.authorization.k8s.io/v1";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const MAY_I: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const WHAT_MAY_I: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

fn rule(verbs: &[&str], group: &str, resource: &str) -> Value {
    json!({"verbs": verbs, "apiGroups": [group], "resources": [resource]})
}

fn role(name: &str, rules: &[Value]) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    })
}

/// Gives somebody rules in the default namespace.
async fn grant(admin: &Client, name: &str, rules: &[Value], user: &str) {
    admin.post(ROLES, &role(name, rules)).await.expect(201);
    admin.post(BINDINGS, &binding(name, "Role", name, user)).await.expect(201);
}

#[tokio::test]
async fn a_binding_counts_in_the_next_request_and_not_after_it_is_gone() {
    let server = Server::start(&[]).await;
    let (admin, guest) = (server.client(), server.client().with_token(GUEST_TOKEN));
    for round in 0..10 {
        let name = format!("r{round}");
        guest.get(CONFIG_MAPS).await.fails(403, "Forbidden");
        grant(&admin, &name, &[rule(&["list"], "", "configmaps")], "jane").await;
        guest.get(CONFIG_MAPS).await.expect(200);
        guest.get("/api/v1/configmaps").await.fails(403, "Forbidden");
        guest.post(CONFIG_MAPS, &config_map("a", "1")).await.fails(403, "Forbidden");
        admin.delete(&format!("{BINDINGS}/{name}")).await.expect(200);
    }
    guest.get(CONFIG_MAPS).await.fails(403, "Forbidden");
    admin.post(BINDINGS, &binding("lost", "ClusterRole", "lost", "jane")).await.expect(201);
    let status = guest.get(CONFIG_MAPS).await.fails(403, "Forbidden");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.ends_with(r#": RBAC: clusterrole.rbac.authorization.k8s.io "lost" not found"#), "{message}");
}

#[tokio::test]
async fn everybody_who_is_known_may_discover_what_is_served() {
    let server = Server::start(&[]).await;
    let guest = server.client().with_token(GUEST_TOKEN);
    for path in ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/openapi/v2", "/openapi/v3", "/version"] {
        guest.get(path).await.expect(200);
    }
    for path in ["/", "/metrics", "/healthz/ping", "/apis/nobody.knows/v1/things"] {
        guest.get(path).await.fails(403, "Forbidden");
    }
    guest.get("/apis/nobody.knows/v1").await.expect(404);
    // A verb without anything that it is about is never taken for a bare path.
    assert_eq!(guest.get("/api/v1/watch").await.code, 500);
}

#[tokio::test]
async fn names_limit_what_a_rule_is_about() {
    let server = Server::start(&[]).await;
    let (admin, guest) = (server.client(), server.client().with_token(GUEST_TOKEN));
    for name in ["a", "b"] {
        admin.post(CONFIG_MAPS, &config_map(name, "1")).await.expect(201);
    }
    let mut named = rule(&["get", "list", "create", "update"], "", "configmaps");
    named["resourceNames"] = json!(["a"]);
    grant(&admin, "named", &[named], "jane").await;
    guest.get(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    guest.get(&format!("{CONFIG_MAPS}/b")).await.fails(403, "Forbidden");
    guest.get(CONFIG_MAPS).await.fails(403, "Forbidden");
    let only = guest.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Da")).await.expect(200).json();
    assert_eq!(only["items"].as_array().map(Vec::len), Some(1));
    guest.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Db")).await.fails(403, "Forbidden");
    guest.post(CONFIG_MAPS, &config_map("a", "1")).await.fails(403, "Forbidden");
}

#[tokio::test]
async fn whoever_makes_an_object_by_an_update_needs_both_rights() {
    let server = Server::start(&[]).await;
    let (admin, guest) = (server.client(), server.client().with_token(GUEST_TOKEN));
    grant(&admin, "updater", &[rule(&["update", "patch"], "coordination.k8s.io", "leases")], "jane").await;
    let lease = json!({"metadata": {"name": "l"}, "spec": {}});
    let status = guest.put(&format!("{LEASES}/l"), &lease).await.fails(403, "Forbidden");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains(r#"User "jane" cannot create resource "leases""#), "{message}");
    let applied = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}});
    let path = format!("{LEASES}/l?fieldManager=m");
    guest.patch(&path, "application/apply-patch+yaml", &applied).await.fails(403, "Forbidden");
    let made = admin.put(&format!("{LEASES}/l"), &lease).await.expect(201).json();
    guest.put(&format!("{LEASES}/l"), &made).await.expect(200);
}

#[tokio::test]
async fn nobody_grants_more_than_they_have_unless_they_may() {
    let server = Server::start(&[]).await;
    let (admin, guest) = (server.client(), server.client().with_token(GUEST_TOKEN));
    let writes = rule(&["create", "update", "patch"], "rbac.authorization.k8s.io", "*");
    grant(&admin, "own", &[writes, rule(&["get"], "", "configmaps")], "jane").await;
    let wide = role("wide", &[rule(&["get", "delete"], "", "configmaps")]);
    let status = guest.post(ROLES, &wide).await.fails(403, "Forbidden");
    let want = concat!(
        r#"roles.rbac.authorization.k8s.io "wide" is forbidden: user "jane" (groups=["guests" "readers" "#,
        r#""system:authenticated"]) is attempting to grant RBAC permissions not currently held:"#,
        "\n",
        r#"{APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}"#
    );
    assert_eq!(status["message"], want);
    guest.post(ROLES, &role("narrow", &[rule(&["get"], "", "configmaps")])).await.expect(201);
    guest.post(BINDINGS, &binding("narrow", "Role", "narrow", "joe")).await.expect(201);
    guest.post(BINDINGS, &binding("admin", "ClusterRole", "cluster-admin", "jane")).await.fails(403, "Forbidden");

    let may = rule(&["escalate", "bind"], "rbac.authorization.k8s.io", "*");
    grant(&admin, "more", &[may], "jane").await;
    guest.post(ROLES, &wide).await.expect(201);
    guest.post(BINDINGS, &binding("admin", "ClusterRole", "cluster-admin", "jane")).await.expect(201);
    guest.delete(&format!("{BINDINGS}/narrow")).await.expect(200);
}

#[tokio::test]
async fn reviews_say_what_requests_would_be_told() {
    let server = Server::start(&[]).await;
    let (admin, guest) = (server.client(), server.client().with_token(GUEST_TOKEN));
    grant(&admin, "reader", &[rule(&["get"], "", "configmaps")], "jane").await;
    for (verb, allowed, reason) in [
        ("get", true, r#"RBAC: allowed by RoleBinding "reader/default" of Role "reader" to User "jane""#),
        ("list", false, ""),
    ] {
        let asked = json!({"verb": verb, "resource": "configmaps", "namespace": "default"});
        let review = guest.post(MAY_I, &json!({"spec": {"resourceAttributes": asked}})).await.expect(201).json();
        assert_eq!(review["status"]["allowed"], allowed, "{review}");
        assert_eq!(review["status"]["reason"].as_str().unwrap_or_default(), reason);
    }
    let rules = guest.post(WHAT_MAY_I, &json!({"spec": {"namespace": "default"}})).await.expect(201).json();
    let status = &rules["status"];
    assert_eq!(status["incomplete"], false);
    let own = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]});
    assert!(status["resourceRules"].as_array().is_some_and(|rules| rules.contains(&own)), "{status}");
    assert!(status["nonResourceRules"].as_array().is_some_and(|rules| !rules.is_empty()), "{status}");
}

#[tokio::test]
async fn acting_as_others_takes_a_right_for_each_thing_that_they_are() {
    let server = Server::start(&[]).await;
    let (admin, guest) = (server.client(), server.client().with_token(GUEST_TOKEN));
    let me = admin.acting_as("joe").post(WHO_AM_I, &json!({})).await.expect(201).json();
    let joe = json!({"username": "joe", "groups": ["system:authenticated"]});
    assert_eq!(me["status"]["userInfo"], joe);
    admin.acting_as("joe").get(CONFIG_MAPS).await.fails(403, "Forbidden");
    guest.acting_as("joe").get("/version").await.fails(403, "Forbidden");
    let mut users = rule(&["impersonate"], "", "users");
    users["resourceNames"] = json!(["joe"]);
    admin.post(&format!("{CLUSTER}/clusterroles"), &role("actor", &[users])).await.expect(201);
    let bound = binding("actor", "ClusterRole", "actor", "jane");
    admin.post(&format!("{CLUSTER}/clusterrolebindings"), &bound).await.expect(201);
    guest.acting_as("joe").get("/version").await.expect(200);
    guest.acting_as("ann").get("/version").await.fails(403, "Forbidden");
    let headers = [("impersonate-group", "system:masters")];
    guest.acting_as("joe").send(Method::GET, "/version", &headers, "").await.fails(403, "Forbidden");
    guest.send(Method::GET, "/version", &headers, "").await.fails(400, "BadRequest");
}

#[tokio::test]
async fn the_roles_of_users_are_gathered_and_hold() {
    let server = Server::start(&["--controllers=*"]).await;
    let (admin, guest) = (server.client(), server.client().with_token(GUEST_TOKEN));
    admin.post(BINDINGS, &binding("view", "ClusterRole", "view", "jane")).await.expect(201);
    eventually(|| async { (guest.get(CONFIG_MAPS).await.code == 200).then_some(()) }).await;
    guest.get("/api/v1/namespaces/default/secrets").await.fails(403, "Forbidden");
    guest.post(CONFIG_MAPS, &config_map("a", "1")).await.fails(403, "Forbidden");
}
