//! `revisor-client` against the real server: its examples, as they are, and what only a real server shows.

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use revisor_client::{Event, Key, Reflector, ResourceVersion};

use crate::harness::{Server, within};
use crate::kube_rs::client;

#[allow(dead_code, reason = "an example has a main function of its own")]
#[path = "../../../revisor-client/examples/lag.rs"]
mod lag;
#[allow(dead_code, reason = "an example has a main function of its own")]
#[path = "../../../revisor-client/examples/read_your_writes.rs"]
mod read_your_writes;
#[allow(dead_code, reason = "an example has a main function of its own")]
#[path = "../../../revisor-client/examples/up_to_a_version.rs"]
mod up_to_a_version;

#[tokio::test]
async fn the_examples_do_what_they_say() {
    let server = Server::start(&[]).await;
    within(read_your_writes::run(client(&server).await)).await.expect("every write is in the cache");
    within(up_to_a_version::run(client(&server).await)).await.expect("only what was there is worked on");
    let behind = within(lag::run(client(&server).await)).await.expect("the server says where it is");
    assert_eq!(behind, Some(0));
}

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

#[tokio::test]
async fn versions_are_places_in_one_history_across_restarts() {
    let server = Server::start(&[]).await;
    let api: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
    let before = within(api.create(&PostParams::default(), &map("before"))).await.expect("is made");
    let (store, reflector) = Reflector::new(api);
    let mut events = Box::pin(reflector.events());
    let listed = within(events.next()).await.expect("never ends").expect("is listed");
    assert!(matches!(listed, Event::Listed(_)), "{listed:?}");
    assert!(store.get(&Key::of(&before)).is_some());
    let known = store.version().expect("is listed");

    let server = server.restart().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
    let (other, reflector) = Reflector::new(api.clone());
    let working = tokio::spawn(reflector.run());
    within(other.at_least(&known)).await.expect("the new server is at least there");
    let after = within(api.create(&PostParams::default(), &map("after"))).await.expect("is made");
    within(other.after(&after)).await.expect("the write comes");
    assert!(ResourceVersion::of(&after).is_some_and(|version| version > known));
    assert!(other.get(&Key::of(&after)).is_some() && other.get(&Key::of(&before)).is_some());
    working.abort();
}

#[tokio::test]
async fn a_reflector_moves_to_another_server_of_the_same_history() {
    let server = Server::start(&[]).await;
    let api: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
    // Nobody listens there.
    let mut nowhere = kube::Config::new("http://127.0.0.1:9".parse().expect("a URL"));
    nowhere.default_namespace = "default".to_owned();
    let nowhere = kube::Client::try_from(nowhere).expect("a client");
    let (store, reflector) = Reflector::new(Api::default_namespaced(nowhere));
    let working = tokio::spawn(reflector.also_at(api.clone()).run());
    let written = within(api.create(&PostParams::default(), &map("moved"))).await.expect("is made");
    within(store.after(&written)).await.expect("the other server has it");
    assert!(store.get(&Key::of(&written)).is_some() && store.metrics().moves >= 1);
    working.abort();
}
