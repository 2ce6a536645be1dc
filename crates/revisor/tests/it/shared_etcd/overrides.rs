//! Resources on an etcd of their own.

use serde_json::json;

use super::etcd::Etcd;
use crate::client::MERGE;
use crate::harness::eventually;
use crate::objects::{CONFIG_MAPS, config_map};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

#[tokio::test]
async fn a_resource_with_an_etcd_of_its_own_has_its_own_versions() {
    let (main, own) = (Etcd::start().await, Etcd::start().await);
    let flag = format!("--etcd-servers-overrides=coordination.k8s.io/leases#{}", own.url);
    let (one, two) = (main.serve(&[&flag]).await, main.serve(&[&flag]).await);
    let (a, b) = (one.client(), two.client());
    // The other etcd is far ahead: nothing that is known of one may be asked of the other.
    for name in ["a", "b", "c"] {
        a.post(CONFIG_MAPS, &config_map(name, "1")).await.expect(201);
    }
    let lease = json!({"metadata": {"name": "x"}, "spec": {"leaseDurationSeconds": 1}});
    let made = a.post(LEASES, &lease).await.expect(201);
    assert!(own.value("/registry/leases/default/x").await.is_some());
    assert_eq!(main.value("/registry/leases/default/x").await, None);
    assert_eq!(own.value("/registry/configmaps/default/a").await, None);
    assert_eq!(b.get(&format!("{LEASES}/x")).await.expect(200).json(), made.json());
    let mut watch = b.watch(LEASES, &format!("resourceVersion={}", made.version())).await;
    let path = format!("{LEASES}/x");
    let changed = a.patch(&path, MERGE, &json!({"spec": {"leaseDurationSeconds": 2}})).await.expect(200);
    watch.expect("MODIFIED", "x", changed.version()).await;
    // Reads at a version, pages and lists of the past are those of its own etcd.
    b.get(&format!("{LEASES}?resourceVersion={}&resourceVersionMatch=Exact", made.version())).await.expect(200);
    a.post(LEASES, &json!({"metadata": {"name": "y"}})).await.expect(201);
    let page = a.get(&format!("{LEASES}?limit=1")).await.expect(200).json();
    let token = page["metadata"]["continue"].as_str().expect("there is more").to_owned();
    assert_eq!(b.get(&format!("{LEASES}?limit=1&continue={token}")).await.expect(200).names(), ["y"]);
    let newest = a.get(CONFIG_MAPS).await.expect(200).json()["metadata"]["resourceVersion"].clone();
    assert_ne!(newest, page["metadata"]["resourceVersion"], "each has its own sequence");
}

#[tokio::test]
async fn the_etcds_of_resources_are_told_apart_by_those_who_ask_how_a_server_is() {
    let (main, mut own) = (Etcd::start().await, Etcd::start().await);
    let flag = format!("--etcd-servers-overrides=/events#{0},/configmaps#{0}", own.url);
    let server = main.serve(&[&flag]).await;
    let client = server.client();
    let report = client.get("/readyz?verbose").await.expect(200).text();
    for check in ["[+]etcd ok", "[+]etcd-readiness ok", "[+]etcd-override-0 ok", "[+]etcd-override-readiness-0 ok"] {
        assert!(report.lines().any(|line| line == check), "{check} in {report}");
    }
    assert!(!report.contains("etcd-override-1"), "one etcd, one check: {report}");
    own.kill();
    eventually(|| async { (client.get("/readyz/etcd-override-0").await.code == 500).then_some(()) }).await;
    client.get("/readyz/etcd").await.expect(200);
    let left_out = client.get("/readyz?verbose&exclude=etcd&exclude=etcd-readiness").await.expect(200).text();
    assert!(left_out.contains("[+]etcd-override-0 excluded with etcd: ok"), "{left_out}");
    // Others are served as ever.
    client.get("/api/v1/namespaces/default/secrets").await.expect(200);
    assert!(client.post(CONFIG_MAPS, &config_map("x", "1")).await.code >= 500);
}
