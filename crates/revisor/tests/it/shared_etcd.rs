//! Several servers on one etcd: what one writes, the other reads, watches and keeps.

mod corrupt;
mod etcd;
mod faults;
mod faulty_proxy;
mod history;
mod interop;
mod leaders;
mod linearizability;
mod overrides;
mod peer;

use serde_json::json;

pub(crate) use self::etcd::{Etcd, spare};
use crate::harness::eventually;
use crate::objects::{CONFIG_MAPS, config_map};

#[tokio::test]
async fn what_one_server_acknowledges_the_other_shows_at_once() {
    let etcd = Etcd::start().await;
    let (one, two) = (etcd.serve(&[]).await, etcd.serve(&[]).await);
    let (a, b) = (one.client(), two.client());
    let made = a.post(CONFIG_MAPS, &config_map("x", "1")).await.expect(201);
    assert_eq!(b.get(&format!("{CONFIG_MAPS}/x")).await.expect(200).json(), made.json());
    b.post(CONFIG_MAPS, &config_map("x", "2")).await.fails(409, "AlreadyExists");
    let mut watch = b.watch(CONFIG_MAPS, &format!("resourceVersion={}", made.version())).await;
    let changed = a.put(&format!("{CONFIG_MAPS}/x"), &config_map("x", "3")).await.expect(200);
    watch.expect("MODIFIED", "x", changed.version()).await;
    // The pages of a list may come from both.
    b.post(CONFIG_MAPS, &config_map("y", "1")).await.expect(201);
    let page = a.get(&format!("{CONFIG_MAPS}?limit=1")).await.expect(200).json();
    let token = page["metadata"]["continue"].as_str().expect("there is more").to_owned();
    b.delete(&format!("{CONFIG_MAPS}/y")).await.expect(200);
    let rest = b.get(&format!("{CONFIG_MAPS}?limit=5&continue={token}")).await.expect(200);
    assert!(rest.names().contains(&"y".to_owned()), "all pages are one state: {:?}", rest.names());
}

#[tokio::test]
async fn ports_and_definitions_are_known_to_both() {
    let etcd = Etcd::start().await;
    let ports = "--service-node-port-range=30100-30101";
    let (one, two) = (etcd.serve(&[ports]).await, etcd.serve(&[ports]).await);
    let (a, b) = (one.client(), two.client());
    let services = "/api/v1/namespaces/default/services";
    let service =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let mut taken = Vec::new();
    for (client, name) in [(&a, "a"), (&b, "b")] {
        let made = client.post(services, &service(name)).await.expect(201).json();
        taken.push(made["spec"]["ports"][0]["nodePort"].as_i64());
    }
    taken.sort();
    assert_eq!(taken, [Some(30100), Some(30101)]);
    assert!(a.post(services, &service("c")).await.code >= 400, "there is no third port");
    b.delete(&format!("{services}/a")).await.expect(200);
    a.post(services, &service("c")).await.expect(201);

    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    a.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"text": "<&>"}});
    let made = a.post(widgets, &widget).await.expect(201).json();
    let seen = eventually(|| async {
        let reply = b.get(&format!("{widgets}/w")).await;
        (reply.code == 200).then(|| reply.json())
    });
    assert_eq!(seen.await, made);
}

/// Who takes the place of a server must find what they know: the original would not have this group.
#[tokio::test]
async fn nothing_of_our_own_shows_on_an_etcd_unless_it_is_switched_on() {
    const GROUP: &str = "versioning.revisor.dev";
    let etcd = Etcd::start().await;
    let (one, two) =
        (etcd.serve(&[]).await, etcd.serve(&["--runtime-config=versioning.revisor.dev/v1alpha1=true"]).await);
    let (a, b) = (one.client(), two.client());
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    b.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let groups = |reply: serde_json::Value| reply["groups"].as_array().expect("groups").clone();
    let served = eventually(|| async {
        let groups = groups(a.get("/apis").await.expect(200).json());
        groups.iter().any(|group| group["name"] == "example.com").then_some(groups)
    });
    assert!(served.await.iter().all(|group| group["name"] != GROUP), "the group shows");
    a.get(&format!("/apis/{GROUP}/v1alpha1/versionreports")).await.expect(404);
    b.get(&format!("/apis/{GROUP}/v1alpha1/versionreports/gadgets.example.com")).await.expect(200);
    let registration = format!("/registry/apiregistration.k8s.io/apiservices/v1alpha1.{GROUP}");
    assert_eq!(etcd.value(&registration).await, None, "the original would take it for a group that it cannot reach");
}

/// As in the original, what a write begins with is what the server knows; the write itself shows whether that is true.
#[tokio::test]
async fn changes_and_deletions_do_not_ask_for_what_is_known() {
    const OBJECTS: u64 = 40;
    let etcd = Etcd::start().await;
    let (one, two) = (etcd.serve(&[]).await, etcd.serve(&[]).await);
    let (a, b) = (one.client(), two.client());
    let path = |number: u64| format!("{CONFIG_MAPS}/x{number}");
    for number in 0..OBJECTS {
        a.post(CONFIG_MAPS, &config_map(&format!("x{number}"), "1")).await.expect(201);
    }
    let before = etcd.reads().await;
    for number in 0..OBJECTS {
        a.put(&path(number), &config_map(&format!("x{number}"), "2")).await.expect(200);
        a.delete(&path(number)).await.expect(200);
    }
    let asked = etcd.reads().await - before;
    assert!(asked < OBJECTS, "{asked} reads for {OBJECTS} changes and as many deletions");
    // What another server did in between counts, whether this one has heard of it or not.
    for round in 0..20 {
        a.post(CONFIG_MAPS, &config_map("y", "1")).await.expect(201);
        let old = b.get(&format!("{CONFIG_MAPS}/y")).await.expect(200);
        let new = b.put(&format!("{CONFIG_MAPS}/y"), &config_map("y", "2")).await.expect(200);
        let of = |version: u64| json!({"preconditions": {"resourceVersion": version.to_string()}});
        a.delete_with(&format!("{CONFIG_MAPS}/y"), &of(old.version())).await.fails(409, "Conflict");
        a.delete_with(&format!("{CONFIG_MAPS}/y"), &of(new.version())).await.expect(200);
        assert_eq!(b.delete(&format!("{CONFIG_MAPS}/y")).await.code, 404, "round {round}");
    }
}
