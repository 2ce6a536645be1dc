//! Roles and bindings: that they count as soon as they are written, that nobody grants more than they have, and that the
//! server's own are put in order at every start.

use revisor_auth::{Attributes, Claims, Decision, Identity, ResourceAttributes};
use revisor_catalog::Requester;
use revisor_object::Value;
use revisor_registry::{DeleteOptions, Place, RegistryError, WriteOptions};

use crate::fixture::{Fixture, decode};

const GROUP: &str = "rbac.authorization.k8s.io";

fn user(name: &str) -> Identity {
    Identity::authenticated(Claims { name: name.to_owned(), ..Claims::default() })
}

/// Whether somebody may get config maps in the default namespace.
fn may(fixture: &Fixture, name: &str) -> bool {
    let resource =
        ResourceAttributes { resource: "configmaps", namespace: Some("default"), ..ResourceAttributes::default() };
    let user = user(name);
    let asked = Attributes { user: &user, verb: "get", path: "", resource: Some(resource) };
    fixture.registry.authorizer().authorize(&asked) == Decision::Allow
}

fn role(name: &str, verb: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}"}},"rules":[{{"verbs":["{verb}"],"apiGroups":[""],"resources":["configmaps"]}}]}}"#
    )
}

fn binding(name: &str, role: &str, user: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}"}},"roleRef":{{"apiGroup":"{GROUP}","kind":"Role","name":"{role}"}},"subjects":[{{"kind":"User","apiGroup":"{GROUP}","name":"{user}"}}]}}"#
    )
}

async fn delete(fixture: &Fixture, plural: &str, name: &str) {
    let resource = fixture.resource(plural);
    let namespace = resource.namespaced.then_some("default");
    let place = Place { resource: &resource, namespace, name: Some(name) };
    fixture.registry.delete(place, &DeleteOptions::default()).await.expect("is deleted");
}

#[tokio::test]
async fn what_is_written_counts_at_once() {
    let fixture = Fixture::new().await;
    for round in 0..20 {
        let (name, who) = (format!("r{round}"), format!("user{round}"));
        fixture.create("rolebindings", &binding(&name, &name, &who)).await.expect("is made");
        assert!(!may(&fixture, &who), "the role is not there yet");
        fixture.create("roles", &role(&name, "get")).await.expect("is made");
        assert!(may(&fixture, &who));
        fixture.update("roles", &name, &role(&name, "list")).await.expect("is changed");
        assert!(!may(&fixture, &who));
        fixture.update("roles", &name, &role(&name, "get")).await.expect("is changed");
        fixture.update("rolebindings", &name, &binding(&name, &name, "other")).await.expect("is changed");
        assert!(!may(&fixture, &who) && may(&fixture, "other"));
        delete(&fixture, "rolebindings", &name).await;
        assert!(!may(&fixture, "other"));
    }
    fixture.create("rolebindings", &binding("kept", "r0", "ann")).await.expect("is made");
    let fixture = fixture.reopened().await;
    assert!(may(&fixture, "ann") && !may(&fixture, "other"), "also after a restart");
}

#[tokio::test]
async fn nobody_grants_what_they_do_not_have() {
    let fixture = Fixture::new().await;
    fixture.create("roles", &role("own", "get")).await.expect("is made");
    fixture.create("roles", &role("wide", "delete")).await.expect("is made");
    fixture.create("rolebindings", &binding("own", "own", "ann")).await.expect("is made");
    let groups = ["system:authenticated".to_owned()];
    let ann = Requester { name: "ann", groups: &groups, ..Requester::default() };
    let by_ann = WriteOptions { requester: ann, ..WriteOptions::default() };
    fixture.create_with("roles", &role("narrow", "get"), by_ann).await.expect("she has it");
    let refused = fixture.create_with("roles", &role("more", "list"), by_ann).await;
    let Err(RegistryError::Forbidden { why, .. }) = refused else { panic!("{refused:?}") };
    let want = "user \"ann\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently \
                held:\n{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"list\"]}";
    assert_eq!(why, want);
    fixture.create_with("rolebindings", &binding("mine", "narrow", "bob"), by_ann).await.expect("she has it");
    for (name, role) in [("a", "wide"), ("b", "missing")] {
        let refused = fixture.create_with("rolebindings", &binding(name, role, "bob"), by_ann).await;
        let is_right = match role {
            "wide" => matches!(refused, Err(RegistryError::Forbidden { .. })),
            _ => matches!(refused, Err(RegistryError::NotFound { .. })),
        };
        assert!(is_right, "{role}: {refused:?}");
    }
    let gathering =
        r#"{"metadata":{"name":"g"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}"#;
    let refused = fixture.create_with("clusterroles", gathering, by_ann).await;
    let Err(RegistryError::Forbidden { why, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(why, "must have cluster-admin privileges to use the aggregationRule");

    // Who only says that something depends on a role grants nothing.
    let roles = fixture.resource("roles");
    let place = Place { resource: &roles, namespace: Some("default"), name: Some("wide") };
    let mut held = fixture.get("roles", "wide").await.expect("is there");
    held.object_mut("metadata").insert("finalizers", vec![Value::from("example.com/held")]);
    let text = Value::from(held).to_json();
    fixture.registry.update(place, decode(&roles, &text).expect("fits"), by_ann).await.expect("changes no rule");
    let labelled =
        text.replace(r#""name":"wide""#, r#""name":"wide","labels":{"a":"b"}"#).replace("resourceVersion", "-");
    let refused = fixture.registry.update(place, decode(&roles, &labelled).expect("fits"), by_ann).await;
    assert!(matches!(refused, Err(RegistryError::Forbidden { .. })), "{refused:?}");
}

#[tokio::test]
async fn an_update_that_makes_an_object_needs_the_right_to_create() {
    let fixture = Fixture::new().await;
    let groups = ["system:authenticated".to_owned()];
    let ann = Requester { name: "ann", groups: &groups, ..Requester::default() };
    let by_ann = WriteOptions { requester: ann, ..WriteOptions::default() };
    let leases = fixture.resource("leases");
    let place = Place { resource: &leases, namespace: Some("default"), name: Some("l") };
    let lease = || decode(&leases, r#"{"metadata":{"name":"l"}}"#).expect("fits");
    let refused = fixture.registry.update(place, lease(), by_ann).await;
    let Err(RegistryError::Forbidden { why, .. }) = refused else { panic!("{refused:?}") };
    let want = "User \"ann\" cannot create resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \
                \"default\"";
    assert_eq!(why, want);
    let made = fixture.registry.update(place, lease(), WriteOptions::default()).await.expect("the server may");
    let same = decode(&leases, std::str::from_utf8(&made.bytes).expect("is text")).expect("fits");
    fixture.registry.update(place, same, by_ann).await.expect("it is there now");
}

#[tokio::test]
async fn the_servers_own_roles_are_put_in_order_at_the_start() {
    let fixture = Fixture::new().await;
    let before = fixture.revision();
    let fixture = fixture.reopened().await;
    assert_eq!(fixture.revision(), before, "nothing is written where all is there");

    let reference = |name: &str| format!(r#""roleRef":{{"apiGroup":"{GROUP}","kind":"ClusterRole","name":"{name}"}}"#);
    fixture
        .update(
            "clusterroles",
            "system:discovery",
            r#"{"metadata":{"name":"system:discovery"},"rules":[{"verbs":["get"],"nonResourceURLs":["/mine"]}]}"#,
        )
        .await
        .expect("is changed");
    let alone = r#"{"metadata":{"name":"system:basic-user","annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}}}"#;
    fixture.update("clusterroles", "system:basic-user", alone).await.expect("is changed");
    delete(&fixture, "clusterroles", "view").await;
    let mine = format!(
        r#"{{"metadata":{{"name":"system:discovery"}},{},"subjects":[{{"kind":"User","apiGroup":"{GROUP}","name":"me"}}]}}"#,
        reference("system:discovery")
    );
    fixture.update("clusterrolebindings", "system:discovery", &mine).await.expect("is changed");
    delete(&fixture, "clusterrolebindings", "system:basic-user").await;
    let other = format!(r#"{{"metadata":{{"name":"system:basic-user"}},{}}}"#, reference("view"));
    fixture.create("clusterrolebindings", &other).await.expect("is made");

    let fixture = fixture.reopened().await;
    let discovery = fixture.get("clusterroles", "system:discovery").await.expect("is there");
    assert!(discovery.array("rules").len() > 1, "what is missing comes back: {discovery:?}");
    assert_eq!(
        discovery.at(&["metadata", "labels", "kubernetes.io/bootstrapping"]).and_then(Value::as_str),
        Some("rbac-defaults")
    );
    let own = discovery.array("rules")[0].as_object().map(|rule| rule.array("nonResourceURLs").to_vec());
    assert_eq!(own, Some(vec![Value::from("/mine")]), "what was added stays");
    let basic = fixture.get("clusterroles", "system:basic-user").await.expect("is there");
    assert!(basic.array("rules").is_empty(), "what says so is left alone");
    fixture.get("clusterroles", "view").await.expect("is made again");
    let binding = fixture.get("clusterrolebindings", "system:discovery").await.expect("is there");
    assert_eq!(binding.array("subjects").len(), 2);
    let binding = fixture.get("clusterrolebindings", "system:basic-user").await.expect("is there");
    assert_eq!(binding.at(&["roleRef", "name"]).and_then(Value::as_str), Some("system:basic-user"));
    let before = fixture.revision();
    assert_eq!(fixture.reopened().await.revision(), before, "and then all is there");
}
