//! Of several servers on one etcd, one runs the controllers.

use serde_json::json;

use super::etcd::Etcd;
use crate::client::{Client, MERGE};
use crate::harness::{Server, eventually};
use crate::objects::{NAMESPACES, namespace};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/apiserver-controllers";

/// Elections that are soon over.
const SOON: [&str; 4] = [
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=200ms",
    "--controllers=serviceaccount-controller",
];

async fn serve(etcd: &Etcd) -> Server {
    etcd.serve_at(&etcd.url, &SOON).await
}

/// Who leads, and how often that changed.
async fn leader(client: &Client) -> Option<(String, i64)> {
    let reply = client.get(LEASE).await;
    let lease = if reply.code == 200 { reply.json() } else { return None };
    let holder = lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?.to_owned();
    Some((holder, lease["spec"]["leaseTransitions"].as_i64().unwrap_or_default()))
}

fn says_it_leads(server: &Server) -> bool {
    server.process.log().contains("leading")
}

#[tokio::test]
async fn who_leads_is_replaced_when_it_is_killed_and_when_it_stops() {
    let etcd = Etcd::start().await;
    let (one, two) = (serve(&etcd).await, serve(&etcd).await);
    let client = two.client();
    let (first, transitions) = eventually(|| leader(&client)).await;
    assert_eq!(transitions, 0);
    let lease = client.get(LEASE).await.expect(200).json();
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 3);
    assert_ne!(says_it_leads(&one), says_it_leads(&two), "exactly one leads");
    let (leading, waiting) = if says_it_leads(&one) { (one, two) } else { (two, one) };
    let client = waiting.client();
    drop(leading.kill9());
    let (second, transitions) = eventually(|| async { leader(&client).await.filter(|now| now.0 != first) }).await;
    assert_eq!(transitions, 1);
    eventually(|| async { says_it_leads(&waiting).then_some(()) }).await;
    // It does what a leader does.
    client.post(NAMESPACES, &namespace("led")).await.expect(201);
    let account = format!("{NAMESPACES}/led/serviceaccounts/default");
    eventually(|| async { (client.get(&account).await.code == 200).then_some(()) }).await;
    // Who stops in order leaves at once, however long the lease would last.
    let third = serve(&etcd).await;
    assert!(!says_it_leads(&third));
    let client = third.client();
    waiting.terminate().await;
    let (_, transitions) = eventually(|| async { leader(&client).await.filter(|now| now.0 != second) }).await;
    assert_eq!(transitions, 2);
    third.terminate().await;
}

#[tokio::test]
async fn who_does_not_hold_the_lease_does_nothing() {
    let etcd = Etcd::start().await;
    let first = serve(&etcd).await;
    let client = first.client();
    eventually(|| leader(&client)).await;
    first.terminate().await;
    // Somebody else leads, and says so for a long time. Who has no controllers does not ask.
    let held = etcd.serve_at(&etcd.url, &["--leader-elect=false", "--controllers=none"]).await;
    let client = held.client();
    let spec = json!({"spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600}});
    client.patch(LEASE, MERGE, &spec).await.expect(200);
    let waiting = serve(&etcd).await;
    client.post(NAMESPACES, &namespace("quiet")).await.expect(201);
    // It is given up: from then on there is one who acts, and nobody did before.
    client.get(&format!("{NAMESPACES}/quiet/serviceaccounts/default")).await.fails(404, "NotFound");
    assert!(!says_it_leads(&waiting));
    client.patch(LEASE, MERGE, &json!({"spec": {"holderIdentity": ""}})).await.expect(200);
    let account = format!("{NAMESPACES}/quiet/serviceaccounts/default");
    eventually(|| async { (client.get(&account).await.code == 200).then_some(()) }).await;
}
