//! Whom requests want to be, and who lets them.

use std::sync::{Arc, RwLock};

use http::{HeaderName, HeaderValue};

use super::*;
use crate::{Binding, Grants, PolicyRule, RoleKind, RoleRef, Subject};

fn headers(list: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        headers.append(name, HeaderValue::from_str(value).expect("a value"));
    }
    headers
}

fn wanted(list: &[(&str, &str)]) -> Impersonated {
    Impersonated::read(&headers(list)).expect("names a user").expect("wants to be somebody")
}

#[test]
fn headers_say_whom_a_request_wants_to_be() {
    assert_eq!(Impersonated::read(&headers(&[("accept", "x"), ("impersonate-user", "")])), Ok(None));
    let all = wanted(&[
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Uid", "u-1"),
        ("Impersonate-Extra-Scopes", "a"),
        ("impersonate-extra-scopes", "b"),
        ("Impersonate-Extra-acme.com%2Fproject", "x"),
    ]);
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let want = Claims {
        name: "jane".to_owned(),
        uid: Some("u-1".to_owned()),
        groups: texts(&["dev", "ops"]),
        extra: vec![("acme.com/project".to_owned(), texts(&["x"])), ("scopes".to_owned(), texts(&["a", "b"]))],
    };
    assert_eq!(all, Impersonated(want));
    for (list, shown, of_old) in [
        (
            ("Impersonate-Group", "g"),
            r#"UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)"#,
            "{Group  g    }",
        ),
        (
            ("Impersonate-Uid", "u"),
            r#"UID:"u", Groups:[]string(nil), Extra:map[string][]string(nil)"#,
            "{UID  u  authentication.k8s.io/v1  }",
        ),
        (
            ("Impersonate-Extra-k", "v"),
            r#"UID:"", Groups:[]string(nil), Extra:map[string][]string{"k":[]string{"v"}}"#,
            "{UserExtra  v  authentication.k8s.io/v1  k}",
        ),
    ] {
        let refused = Impersonated::read(&headers(&[list])).expect_err("names no user");
        let want = format!(r#"requested &user.DefaultInfo{{Name:"", {shown}}} without impersonating a user name"#);
        assert_eq!(with(&[]).nameless(&refused), want);
        let want = format!("requested [{of_old}] without impersonating a user");
        assert_eq!(in_the_oldest_way_only(&[]).nameless(&refused), want);
    }
}

#[tokio::test]
async fn without_narrower_ways_rights_are_asked_for_in_the_older_order() {
    let wanted = wanted(&[("Impersonate-User", "jane"), ("Impersonate-Group", "g"), ("Impersonate-Uid", "u")]);
    for (name, impersonation, want) in [
        ("narrower ways", with(&["impersonate core users jane"]), "impersonate-on:user-info:get"),
        (
            "the oldest only",
            in_the_oldest_way_only(&["impersonate core users jane"]),
            "cannot impersonate resource \"groups\" in API group \"\" at the cluster scope",
        ),
        (
            "the oldest only, with the group",
            in_the_oldest_way_only(&["impersonate core users jane", "impersonate core groups g"]),
            "cannot impersonate resource \"uids\" in API group \"authentication.k8s.io\" at the cluster scope",
        ),
    ] {
        let user = bot("bot", None);
        let asked = Attributes { user: &user, verb: "get", path: "/version", resource: None };
        let refused = impersonation.resolve(&wanted, &asked).await.expect_err(name);
        assert!(refused.message.contains(want), "{name}: {}", refused.message);
    }
}

/// An impersonation for which `bot` has these rights: `verb group resource name`, or `verb path`.
fn with(rights: &[&str]) -> Impersonation {
    Impersonation::new(authorizer(rights), true)
}

/// The same without the narrower ways.
fn in_the_oldest_way_only(rights: &[&str]) -> Impersonation {
    Impersonation::new(authorizer(rights), false)
}

fn authorizer(rights: &[&str]) -> Authorizer {
    let one = |text: &str| vec![if text == "core" { "" } else { text }.to_owned()];
    let rule = |text: &&str| match text.split(' ').collect::<Vec<_>>().as_slice() {
        [verb, path] => PolicyRule { verbs: one(verb), paths: one(path), ..PolicyRule::default() },
        [verb, group, resource, names @ ..] => PolicyRule {
            verbs: one(verb),
            groups: one(group),
            resources: one(resource),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..PolicyRule::default()
        },
        _ => panic!("not a right: {text}"),
    };
    let mut grants = Grants::default();
    grants.put_role(None, "r", rights.iter().map(rule).collect());
    let role = RoleRef { kind: RoleKind::ClusterRole, name: "r".to_owned() };
    let subjects = ["bot", "system:serviceaccount:n:bot"].map(|name| Subject::User(name.to_owned()));
    grants.put_binding(Binding::new(None, "b", role, subjects.into()));
    Authorizer::new(Default::default(), Arc::new(RwLock::new(grants)))
}

fn bot(name: &str, node: Option<&str>) -> Identity {
    let extra = node.map(|node| (NODE_NAME.to_owned(), vec![node.to_owned()]));
    Identity::authenticated(Claims { name: name.to_owned(), extra: extra.into_iter().collect(), ..Claims::default() })
}

#[tokio::test]
async fn each_thing_that_one_wants_to_be_needs_its_right() {
    let user = ("Impersonate-User", "jane");
    let get_version = "impersonate-on:user-info:get /version";
    for (case, rights, list, want) in [
        ("nothing", &[][..], &[user][..], Err(r#"cannot impersonate-on:user-info:get path "/version""#)),
        ("the oldest", &["impersonate core users jane"], &[user], Ok("system:authenticated")),
        ("another name", &["impersonate core users jim"], &[user], Err("impersonate-on:user-info:get")),
        (
            "a group without its right",
            &["impersonate core users jane"],
            &[user, ("Impersonate-Group", "g")],
            Err("impersonate-on:user-info:get"),
        ),
        (
            "everything of the oldest",
            &[
                "impersonate core users jane",
                "impersonate core groups g",
                "impersonate authentication.k8s.io uids u",
                "impersonate authentication.k8s.io userextras/k v",
            ],
            &[user, ("Impersonate-Group", "g"), ("Impersonate-Uid", "u"), ("Impersonate-Extra-k", "v")],
            Ok("g,system:authenticated"),
        ),
        ("only the deed", &[get_version], &[user], Err(r#"cannot impersonate:user-info resource "users""#)),
        (
            "narrowly",
            &[get_version, "impersonate:user-info authentication.k8s.io users jane"],
            &[user],
            Ok("system:authenticated"),
        ),
        (
            "narrowly in a group of all",
            &[
                get_version,
                "impersonate:user-info authentication.k8s.io users",
                "impersonate:user-info authentication.k8s.io groups",
            ],
            &[
                user,
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Group", "c"),
                ("Impersonate-Group", "d"),
            ],
            Ok("a,b,c,d,system:authenticated"),
        ),
        (
            "narrowly no master",
            &[
                get_version,
                "impersonate:user-info authentication.k8s.io users",
                "impersonate:user-info authentication.k8s.io groups",
            ],
            &[user, ("Impersonate-Group", "system:masters")],
            Err("impersonating the system:masters group is not allowed"),
        ),
        (
            "narrowly no odd facts",
            &[get_version, "impersonate:user-info * *"],
            &[user, ("Impersonate-Extra-k", "v")],
            Err("impersonating an invalid key in extra is not allowed"),
        ),
        (
            "a service account",
            &["impersonate core serviceaccounts b"],
            &[("Impersonate-User", "system:serviceaccount:a:b")],
            Ok("system:serviceaccounts,system:serviceaccounts:a,system:authenticated"),
        ),
        (
            "a service account narrowly",
            &[
                "impersonate-on:serviceaccount:get /version",
                "impersonate:serviceaccount authentication.k8s.io serviceaccounts b",
            ],
            &[("Impersonate-User", "system:serviceaccount:a:b")],
            Ok("system:serviceaccounts,system:serviceaccounts:a,system:authenticated"),
        ),
        (
            "a node in the oldest way",
            &["impersonate core users"],
            &[("Impersonate-User", "system:node:m")],
            Ok("system:authenticated"),
        ),
        (
            "any node",
            &["impersonate-on:arbitrary-node:get /version", "impersonate:arbitrary-node authentication.k8s.io nodes m"],
            &[("Impersonate-User", "system:node:m")],
            Ok("system:nodes,system:authenticated"),
        ),
        (
            "anonymous",
            &["impersonate core users"],
            &[("Impersonate-User", "system:anonymous")],
            Ok("system:unauthenticated"),
        ),
    ] {
        let requester = bot("bot", None);
        let asked = Attributes { user: &requester, verb: "get", path: "/version", resource: None };
        match (with(rights).resolve(&wanted(list), &asked).await, want) {
            (Ok((identity, _)), Ok(groups)) => assert_eq!(identity.groups().join(","), groups, "{case}"),
            (Err(refusal), Err(part)) => assert!(refusal.message.contains(part), "{case}: {}", refusal.message),
            (got, _) => panic!("{case}: {got:?}"),
        }
    }
}

#[tokio::test]
async fn a_service_account_may_be_let_be_the_node_that_it_is_on() {
    let rights =
        ["impersonate-on:associated-node:get /version", "impersonate:associated-node authentication.k8s.io nodes *"];
    let node = wanted(&[("Impersonate-User", "system:node:m")]);
    for (name, on, allowed) in [
        ("system:serviceaccount:n:bot", Some("m"), true),
        ("system:serviceaccount:n:bot", Some("other"), false),
        ("system:serviceaccount:n:bot", None, false),
        ("bot", Some("m"), false),
    ] {
        let requester = bot(name, on);
        let asked = Attributes { user: &requester, verb: "get", path: "/version", resource: None };
        assert_eq!(with(&rights).resolve(&node, &asked).await.is_ok(), allowed, "{name} on {on:?}");
    }
}

#[tokio::test]
async fn whoever_was_allowed_in_one_way_is_told_what_that_way_misses() {
    let impersonation = with(&["impersonate core users jane"]);
    let requester = bot("bot", None);
    let asked = Attributes { user: &requester, verb: "get", path: "/version", resource: None };
    let (_, constraint) = impersonation.resolve(&wanted(&[("Impersonate-User", "jane")]), &asked).await.expect("may");
    assert_eq!(constraint, None, "the oldest way has none");
    let refused = impersonation.resolve(&wanted(&[("Impersonate-User", "jim")]), &asked).await.expect_err("may not");
    let want = r#"users "jim" is forbidden: User "bot" cannot impersonate resource "users" in API group "" at the cluster scope"#;
    assert_eq!(refused.message, want);
}
