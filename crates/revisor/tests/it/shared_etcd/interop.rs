//! Our server beside another one on one etcd, each in both parts. `cargo xtask interop` runs these with a genuine
//! kube-apiserver as the other one, and for longer.

use serde_json::{Value, json};

use super::etcd::Etcd;
use super::peer::Peer;
use crate::client::{Client, MERGE};
use crate::harness::eventually;
use crate::objects::{CONFIG_MAPS, config_map};

/// How often what takes long is done.
fn rounds() -> usize {
    std::env::var("REVISOR_INTEROP_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(10)
}

/// Objects of kinds that are stored in different ways, and where they are.
fn samples() -> Vec<(&'static str, Value)> {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    vec![
        (CONFIG_MAPS, config_map("sample", "<&> ü")),
        ("/api/v1/namespaces/default/secrets", json!({"metadata": {"name": "sample"}, "stringData": {"k": "v"}})),
        (
            "/api/v1/namespaces/default/services",
            json!({"metadata": {"name": "sample"},
            "spec": {"type": "NodePort", "ports": [{"port": 80}]}}),
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": {"name": "sample"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            json!({"metadata": {"name": "sample"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            json!({
            "metadata": {"name": "samples.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "samples", "kind": "Sample"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}),
        ),
        (
            "/apis/example.com/v1/namespaces/default/samples",
            json!({"apiVersion": "example.com/v1", "kind": "Sample",
            "metadata": {"name": "sample"}, "spec": {"n": [1, 1.5, null]}}),
        ),
    ]
}

/// Makes objects at one server, and lets the other one read, change and delete them.
async fn hand_over(from: &Client, to: &Client) {
    let mut made = Vec::new();
    for (collection, object) in samples() {
        // A definition takes effect at others after a while.
        eventually(|| async { (from.get(collection).await.code == 200).then_some(()) }).await;
        from.post(collection, &object).await.expect(201);
        let path = format!("{collection}/{}", object["metadata"]["name"].as_str().expect("a name"));
        eventually(|| async { (to.get(&path).await.code == 200).then_some(()) }).await;
        made.push(path);
    }
    for path in made.iter().rev() {
        // The conditions of a definition may still come.
        let [one, two] = [from.get(path).await.expect(200).json(), to.get(path).await.expect(200).json()];
        assert_eq!(one["spec"], two["spec"], "{path}");
        assert_eq!(one["metadata"]["uid"], two["metadata"]["uid"], "{path}");
        let label = json!({"metadata": {"labels": {"by": "other"}}});
        let changed = to.patch(path, MERGE, &label).await.expect(200);
        let seen = from.get(path).await.expect(200).json();
        assert_eq!(seen["metadata"]["labels"]["by"], "other", "{path}");
        assert_eq!(seen["metadata"]["generation"], changed.json()["metadata"]["generation"], "{path}");
        to.delete(path).await.expect(200);
        eventually(|| async { (from.get(path).await.code == 404).then_some(()) }).await;
    }
}

#[tokio::test]
async fn interop_what_one_writes_the_other_reads_changes_and_deletes() {
    let etcd = Etcd::start().await;
    let (peer, ours) = (Peer::start(&etcd).await, etcd.serve(&[]).await);
    hand_over(&peer.client(), &ours.client()).await;
    hand_over(&ours.client(), &peer.client()).await;
}

#[tokio::test]
async fn interop_no_write_of_either_is_lost() {
    let etcd = Etcd::start().await;
    let (peer, ours) = (Peer::start(&etcd).await, etcd.serve(&[]).await);
    let begun = ours.client().post(CONFIG_MAPS, &config_map("counter", "0")).await.expect(201).version();
    let mut watch = peer.client().watch(CONFIG_MAPS, &format!("resourceVersion={begun}")).await;
    let counting = [ours.client(), peer.client()].map(|client| tokio::spawn(count(client, rounds())));
    for counted in counting {
        counted.await.expect("does not panic");
    }
    let path = format!("{CONFIG_MAPS}/counter");
    let [one, two] = [ours.client().get(&path).await.json(), peer.client().get(&path).await.json()];
    assert_eq!(one, two);
    assert_eq!(one["data"]["k"], (2 * rounds()).to_string());
    for number in 1..=2 * rounds() {
        let event = watch.next().await.expect("the watch goes on");
        assert_eq!(event.object["data"]["k"], number.to_string(), "each change is told once and in order");
    }
}

/// Counts an object up, again and again.
async fn count(client: Client, times: usize) {
    let path = format!("{CONFIG_MAPS}/counter");
    for _ in 0..times {
        loop {
            let mut object = client.get(&path).await.expect(200).json();
            let number: usize = object["data"]["k"].as_str().and_then(|text| text.parse().ok()).expect("a number");
            object["data"]["k"] = (number + 1).to_string().into();
            match client.put(&path, &object).await {
                reply if reply.code == 409 => {}
                reply => break drop(reply.expect(200)),
            }
        }
    }
}
