//! kube-rs on typed objects: what controllers written in Rust do.

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;

use crate::harness::{Server, within};

pub(crate) async fn client(server: &Server) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.data().join("kubeconfig")).expect("the server wrote it");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("is complete");
    Client::try_from(config).expect("a client")
}

fn typed<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("a typed object")
}

#[tokio::test]
async fn typed_objects_are_listed_watched_and_updated() {
    let server = Server::start(&[]).await;
    let client = client(&server).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let start = within(maps.list(&ListParams::default())).await.expect("a list").metadata.resource_version;
    let start = start.expect("lists have a version");
    let made: ConfigMap = typed(json!({"metadata": {"name": "a", "labels": {"l": "x"}}, "data": {"k": "1"}}));
    let mut made = within(maps.create(&PostParams::default(), &made)).await.expect("is made");
    assert!(made.uid().is_some() && made.resource_version().is_some());

    let watching = WatchParams::default().labels("l=x").timeout(20);
    let mut events = within(maps.watch(&watching, &start)).await.expect("a watch").boxed();
    made.data.get_or_insert_default().insert("k".to_owned(), "2".to_owned());
    let stale = made.clone();
    within(maps.replace("a", &PostParams::default(), &made)).await.expect("is replaced");
    let error = within(maps.replace("a", &PostParams::default(), &stale)).await.expect_err("is stale");
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 409), "{error}");
    within(maps.delete("a", &DeleteParams::default())).await.expect("is deleted");

    let mut seen = Vec::new();
    while let Some(event) = within(events.try_next()).await.expect("the watch goes on") {
        match event {
            WatchEvent::Added(map) => seen.push(("added", map.data.and_then(|mut data| data.remove("k")))),
            WatchEvent::Modified(map) => seen.push(("modified", map.data.and_then(|mut data| data.remove("k")))),
            WatchEvent::Deleted(_) => break,
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(seen, [("added", Some("1".to_owned())), ("modified", Some("2".to_owned()))]);
}

#[tokio::test]
async fn workloads_have_their_types_and_subresources() {
    let server = Server::start(&[]).await;
    let client = client(&server).await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let body: Deployment = typed(json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web"}]},
            },
        },
    }));
    let made = within(deployments.create(&PostParams::default(), &body)).await.expect("is made");
    assert_eq!(made.spec.as_ref().and_then(|spec| spec.replicas), Some(1), "replicas are defaulted");

    let two = Patch::Merge(json!({"spec": {"replicas": 2}}));
    let scaled = within(deployments.patch_scale("web", &PatchParams::default(), &two)).await.expect("is scaled");
    assert_eq!(scaled.spec.and_then(|spec| spec.replicas), Some(2));
    let status = Patch::Merge(json!({"status": {"replicas": 2}}));
    within(deployments.patch_status("web", &PatchParams::default(), &status)).await.expect("has a status");
    let found = within(deployments.get_status("web")).await.expect("is there");
    assert_eq!(found.status.and_then(|status| status.replicas), Some(2));

    let meta = within(deployments.list_metadata(&ListParams::default())).await.expect("a list of metadata");
    assert_eq!(meta.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["web"]);
    let background =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    within(deployments.delete("web", &background)).await.expect("is deleted");

    // Pods belong to an account, which no controller makes here.
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let account: ServiceAccount = typed(json!({"metadata": {"name": "default"}}));
    within(accounts.create(&PostParams::default(), &account)).await.expect("is made");
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let nothing: Pod = typed(json!({"metadata": {"name": "p"}, "spec": {"containers": []}}));
    let error = within(pods.create(&PostParams::default(), &nothing)).await.expect_err("has no containers");
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 422), "{error}");
    let secrets: Api<Secret> = Api::default_namespaced(client);
    assert!(within(secrets.get_opt("none")).await.expect("an answer").is_none());
}
