//! Bindings and roles as they come, count and go.

use super::*;
use crate::{Claims, ResourceAttributes};

fn rule(verb: &str, resource: &str) -> PolicyRule {
    PolicyRule {
        verbs: vec![verb.to_owned()],
        groups: vec![String::new()],
        resources: vec![resource.to_owned()],
        ..PolicyRule::default()
    }
}

fn of_cluster(name: &str) -> RoleRef {
    RoleRef { kind: RoleKind::ClusterRole, name: name.to_owned() }
}

fn of_namespace(name: &str) -> RoleRef {
    RoleRef { kind: RoleKind::Role, name: name.to_owned() }
}

fn user(name: &str, groups: &[&str]) -> Identity {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Identity::exactly(Claims { name: name.to_owned(), groups, ..Claims::default() })
}

fn account(namespace: Option<&str>, name: &str) -> Subject {
    Subject::ServiceAccount { namespace: namespace.map(str::to_owned), name: name.to_owned() }
}

/// The reason why somebody may or may not get pods; in a namespace, or in the cluster.
fn reason(grants: &Grants, user: &Identity, namespace: Option<&str>) -> (bool, String) {
    let resource = ResourceAttributes { resource: "pods", namespace, ..ResourceAttributes::default() };
    let verdict = grants.decide(&Attributes { user, verb: "get", path: "", resource: Some(resource) });
    (matches!(verdict, Verdict::Allowed(_)), verdict.reason(user))
}

fn sample() -> Grants {
    let mut grants = Grants::default();
    grants.put_role(None, "reader", vec![rule("list", "pods"), rule("get", "pods")]);
    grants.put_role(Some("x"), "reader", vec![rule("get", "pods")]);
    let bind = |namespace, name, role, subjects| Binding::new(namespace, name, role, subjects);
    let user = |name: &str| Subject::User(name.to_owned());
    for binding in [
        bind(None, "all", of_cluster("reader"), vec![user("ann"), Subject::Group("dev".to_owned())]),
        bind(Some("x"), "here", of_namespace("reader"), vec![user("bob"), account(None, "bot")]),
        bind(Some("x"), "global", of_cluster("reader"), vec![user("carl"), account(Some("y"), "bot")]),
        bind(Some("x"), "lost", of_namespace("gone"), vec![user("dora")]),
        bind(None, "lost", of_cluster("gone"), vec![user("dora")]),
        bind(None, "homeless", of_cluster("reader"), vec![account(None, "bot")]),
    ] {
        grants.put_binding(binding);
    }
    grants
}

#[test]
fn bindings_hold_where_they_are_and_for_whom_they_name() {
    let grants = sample();
    let cases = [
        ("by name", user("ann", &[]), None, r#"ClusterRoleBinding "all" of ClusterRole "reader" to User "ann""#),
        (
            "everywhere",
            user("ann", &[]),
            Some("z"),
            r#"ClusterRoleBinding "all" of ClusterRole "reader" to User "ann""#,
        ),
        (
            "by group",
            user("eve", &["ops", "dev"]),
            Some("x"),
            r#"ClusterRoleBinding "all" of ClusterRole "reader" to Group "dev""#,
        ),
        ("a role", user("bob", &[]), Some("x"), r#"RoleBinding "here/x" of Role "reader" to User "bob""#),
        (
            "an account of the binding's namespace",
            user("system:serviceaccount:x:bot", &[]),
            Some("x"),
            r#"RoleBinding "here/x" of Role "reader" to ServiceAccount "bot/x""#,
        ),
        (
            "an account of another",
            user("system:serviceaccount:y:bot", &[]),
            Some("x"),
            r#"RoleBinding "global/x" of ClusterRole "reader" to ServiceAccount "bot/y""#,
        ),
        (
            "a cluster role here",
            user("carl", &[]),
            Some("x"),
            r#"RoleBinding "global/x" of ClusterRole "reader" to User "carl""#,
        ),
    ];
    for (case, user, namespace, want) in cases {
        assert_eq!(reason(&grants, &user, namespace), (true, format!("RBAC: allowed by {want}")), "{case}");
    }
    for (case, user, namespace) in [
        ("a role of another namespace", user("bob", &[]), Some("y")),
        ("a role of a namespace in the cluster", user("bob", &[]), None),
        ("a name is not a group", user("dev", &[]), None),
        ("a group is not a name", user("eve", &["ann"]), None),
        ("an account without a namespace", user("system:serviceaccount::bot", &[]), None),
    ] {
        assert_eq!(reason(&grants, &user, namespace), (false, String::new()), "{case}");
    }
}

#[test]
fn roles_that_are_missing_are_named() {
    let grants = sample();
    let dora = user("dora", &[]);
    let lost = r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#;
    assert_eq!(reason(&grants, &dora, None), (false, format!("RBAC: {lost}")));
    let both = format!(r#"RBAC: [{lost}, role.rbac.authorization.k8s.io "gone" not found]"#);
    assert_eq!(reason(&grants, &dora, Some("x")), (false, both));
    let (rules, missing) = grants.rules_of(&dora, None);
    assert_eq!((rules, missing.in_decisions()), (vec![], lost.to_owned()));
    assert_eq!(missing.in_writes("roles"), r#"roles.rbac.authorization.k8s.io "gone" not found"#);
}

#[test]
fn what_is_taken_away_holds_no_longer() {
    let mut grants = sample();
    let ann = user("ann", &["dev"]);
    assert!(reason(&grants, &ann, None).0);
    grants.put_binding(Binding::new(None, "all", of_cluster("reader"), vec![Subject::Group("ops".to_owned())]));
    assert!(!reason(&grants, &ann, None).0, "the binding is for others now");
    assert!(reason(&grants, &user("zoe", &["ops"]), None).0);
    grants.put_role(None, "reader", vec![rule("list", "pods")]);
    assert!(!reason(&grants, &user("zoe", &["ops"]), None).0, "the role allows something else");
    assert!(reason(&grants, &user("bob", &[]), Some("x")).0);
    grants.remove_role(Some("x"), "reader");
    assert!(!reason(&grants, &user("bob", &[]), Some("x")).0);
    for (namespace, name) in [
        (None, "all"),
        (None, "lost"),
        (None, "homeless"),
        (Some("x"), "here"),
        (Some("x"), "global"),
        (Some("x"), "lost"),
    ] {
        grants.remove_binding(namespace, name);
    }
    grants.remove_binding(None, "never there");
    grants.remove_role(None, "reader");
    assert!(grants.roles.cluster.is_empty() && grants.roles.namespaces.is_empty(), "{grants:?}");
    assert!(grants.bindings.namespaces.is_empty() && grants.bindings.cluster.is_empty(), "{grants:?}");
    assert!(grants.bindings.cluster.users.is_empty() && grants.bindings.cluster.groups.is_empty(), "{grants:?}");
}

#[test]
fn each_binding_counts_once_among_the_rules() {
    let grants = sample();
    let (rules, missing) = grants.rules_of(&user("ann", &["dev", "dev"]), Some("x"));
    assert_eq!((rules, missing), (vec![rule("list", "pods"), rule("get", "pods")], MissingRoles::default()));
    let (rules, _) = grants.rules_of(&user("bob", &["dev"]), Some("x"));
    assert_eq!(rules.len(), 3, "those of the cluster and those of the namespace");
}

#[test]
fn stored_bindings_are_read() {
    let binding = revisor_object::parse_json(
        br#"{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"},
            "subjects":[{"kind":"User","name":"u"},{"kind":"Group","name":"g"},{"kind":"Robot","name":"x"},
                        {"kind":"ServiceAccount","name":"s"},{"kind":"ServiceAccount","name":"s","namespace":"n"}]}"#,
    );
    let binding = binding.expect("is JSON").value;
    let read = Binding::read(Some("x"), "b", binding.as_object().expect("an object"));
    let subjects = vec![
        Subject::User("u".to_owned()),
        Subject::Group("g".to_owned()),
        account(None, "s"),
        account(Some("n"), "s"),
    ];
    assert_eq!(read, Some(Binding::new(Some("x"), "b", of_cluster("r"), subjects)));
    assert_eq!(Binding::read(None, "b", &Object::new()), None);
}
