//! What is counted, how it is bounded, and what servers on one store tell of each other.

use std::time::Duration;

use revisor_cache::{Cache, CacheOptions};
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
use revisor_store::{Change, Draft, Expect, Key, Store, Write};

use super::*;

const PREFIX: &str = "/registry/example.com/widgets/";
const DEFINITION: &str = "u";

fn at(seconds: u64) -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// What servers on one store count.
struct Fixture {
    store: Arc<dyn Store>,
    records: Arc<ResourceCache>,
    /// What is followed ends with it.
    _cache: Arc<Cache>,
    _folder: tempfile::TempDir,
}

impl Fixture {
    async fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let store = EmbeddedStore::open(EmbeddedOptions::new(folder.path().join("store"))).await.expect("a new store");
        let store = Arc::new(store);
        let cache = Cache::start(store.clone(), CacheOptions::default());
        let records = cache.add(RECORDS, false).await.expect("can be followed");
        Fixture { records, store, _cache: cache, _folder: folder }
    }

    fn server(&self, name: &str) -> VersionUsage {
        let usage = VersionUsage::new(name.to_owned(), self.records.clone());
        usage.begin(PREFIX, DEFINITION, at(0));
        usage
    }

    async fn write_down(&self, usage: &VersionUsage) {
        for (key, bytes) in usage.unwritten() {
            let write = Write { key, expect: Expect::Anything, change: Change::Put(Draft::opaque(bytes)) };
            self.store.write(write).await.expect("is written");
        }
    }
}

fn told(usage: &VersionUsage) -> Vec<UsedVersion> {
    usage.of(PREFIX).expect("is counted").versions
}

#[tokio::test]
async fn requests_are_counted_by_version_and_client() {
    let fixture = Fixture::new().await;
    let usage = fixture.server("a");
    for (second, version, agent, verb) in [
        (1, "v1", "kubectl", Verb::Get),
        (2, "v1", "operator", Verb::Watch),
        (3, "v1beta1", "kubectl", Verb::List),
        (4, "v1", "kubectl", Verb::Update),
    ] {
        usage.note(PREFIX, version, agent, verb, at(second));
    }
    let client = |agent: &str, requests, last, verb| Client { agent: agent.to_owned(), requests, last, verb };
    let [v1, v1beta1] = &told(&usage)[..] else { panic!("two versions were asked for") };
    assert_eq!((v1.version.as_str(), v1.requests, v1.last), ("v1", 3, at(4)));
    assert_eq!(v1.clients, [client("kubectl", 2, at(4), Verb::Update), client("operator", 1, at(2), Verb::Watch)]);
    assert_eq!((v1beta1.version.as_str(), v1beta1.requests), ("v1beta1", 1));
    assert_eq!(v1beta1.clients, [client("kubectl", 1, at(3), Verb::List)]);
}

#[tokio::test]
async fn what_is_remembered_is_bounded() {
    let fixture = Fixture::new().await;
    let usage = fixture.server("a");
    for number in 0..100 {
        usage.note(PREFIX, "v1", &format!("client-{number}"), Verb::Get, at(number));
        // One that asks again and again stays.
        usage.note(PREFIX, "v1", "client-0", Verb::Get, at(number));
    }
    let [v1] = &told(&usage)[..] else { panic!("one version was asked for") };
    assert_eq!((v1.clients.len(), v1.requests), (MAX_CLIENTS, 200));
    let is_known = |agent: &str| v1.clients.iter().any(|client| client.agent == agent);
    assert!(is_known("client-0") && is_known("client-99") && !is_known("client-50"));

    for number in 0..100 {
        usage.note(PREFIX, &format!("v{number}"), "x", Verb::Get, at(200 + number));
    }
    let versions = told(&usage);
    assert_eq!(versions.len(), MAX_VERSIONS);
    assert!(versions.iter().any(|known| known.version == "v99"));

    let long = "ä".repeat(1000);
    usage.note(PREFIX, "v1", &long, Verb::Get, at(1000));
    usage.note(PREFIX, "v1", &long, Verb::Get, at(1000));
    let versions = told(&usage);
    let client = versions.iter().flat_map(|known| &known.clients).find(|client| client.agent.starts_with('ä'));
    assert_eq!(client.map(|client| (client.agent.len(), client.requests)), Some((MAX_AGENT, 2)));
}

#[tokio::test]
async fn nothing_is_remembered_of_what_is_not_served() {
    let fixture = Fixture::new().await;
    let usage = fixture.server("a");
    let other = "/registry/example.com/gadgets/";
    usage.note(other, "v1", "kubectl", Verb::Get, at(1));
    assert_eq!(usage.of(other), None);
    usage.note(PREFIX, "v1", "kubectl", Verb::Get, at(1));
    usage.begin(PREFIX, DEFINITION, at(2));
    assert_eq!(told(&usage).len(), 1, "a definition that is changed is the same one");
    fixture.write_down(&usage).await;
    for definition in ["another", "a third"] {
        usage.end(PREFIX);
        usage.begin(PREFIX, definition, at(2));
        assert_eq!(usage.of(PREFIX), Some(Usage::since(at(2))), "one of the same name is another one");
    }
}

#[tokio::test]
async fn a_clock_that_goes_back_does_not_make_requests_older() {
    let fixture = Fixture::new().await;
    let usage = fixture.server("a");
    usage.note(PREFIX, "v1", "kubectl", Verb::Get, at(9));
    usage.note(PREFIX, "v1", "kubectl", Verb::Get, at(5));
    let [v1] = &told(&usage)[..] else { panic!("one version was asked for") };
    assert_eq!((v1.last, v1.clients[0].last), (at(9), at(9)));
}

#[tokio::test]
async fn a_server_goes_on_where_it_left_off() {
    let fixture = Fixture::new().await;
    let usage = fixture.server("a");
    usage.note(PREFIX, "v1", "kubectl", Verb::Get, at(1));
    fixture.write_down(&usage).await;
    assert!(usage.unwritten().is_empty(), "nothing is written twice");
    let before = usage.of(PREFIX);

    let usage = VersionUsage::new("a".to_owned(), fixture.records.clone());
    usage.begin(PREFIX, DEFINITION, at(100));
    assert_eq!(usage.of(PREFIX), before);
    usage.note(PREFIX, "v1", "kubectl", Verb::List, at(101));
    let [v1] = &told(&usage)[..] else { panic!("one version was asked for") };
    assert_eq!((v1.requests, v1.clients[0].requests, v1.clients[0].last), (2, 2, at(101)));
    assert_eq!(usage.of(PREFIX).map(|usage| usage.since), Some(at(0)));
}

#[tokio::test]
async fn what_several_servers_counted_is_summed() {
    let fixture = Fixture::new().await;
    let (a, b) = (fixture.server("a"), fixture.server("b"));
    b.begin("/registry/example.com/widgetsandmore/", "w", at(0));
    b.note("/registry/example.com/widgetsandmore/", "v1", "other", Verb::Get, at(1));
    a.note(PREFIX, "v1", "kubectl", Verb::Get, at(1));
    b.note(PREFIX, "v1", "kubectl", Verb::Watch, at(5));
    b.note(PREFIX, "v2", "operator", Verb::List, at(3));
    fixture.write_down(&b).await;
    let client = |agent: &str, requests, last, verb| Client { agent: agent.to_owned(), requests, last, verb };
    let [v1, v2] = &told(&a)[..] else { panic!("two versions were asked for") };
    assert_eq!((v1.requests, v1.last), (2, at(5)));
    assert_eq!(v1.clients, [client("kubectl", 2, at(5), Verb::Watch)]);
    assert_eq!((v2.requests, &v2.clients[..]), (1, &[client("operator", 1, at(3), Verb::List)][..]));
    // What was counted for another definition of that name is not.
    let c = VersionUsage::new("c".to_owned(), fixture.records.clone());
    c.begin(PREFIX, "another", at(9));
    assert_eq!(c.of(PREFIX), Some(Usage::since(at(9))));
}

#[tokio::test]
async fn records_that_nobody_needs_are_found() {
    let fixture = Fixture::new().await;
    for number in 0..40 {
        let server = fixture.server(&format!("server-{number:02}"));
        server.note(PREFIX, "v1", "kubectl", Verb::Get, at(number));
        fixture.write_down(&server).await;
    }
    let gone = "/registry/example.com/gone/";
    let server = fixture.server("server-39");
    server.begin(gone, "g", at(0));
    server.note(gone, "v1", "kubectl", Verb::Get, at(1));
    fixture.write_down(&server).await;
    assert_eq!(server.useless(), (0..8).map(|number| key(PREFIX, number)).rev().collect::<Vec<_>>());
    server.end(gone);
    assert_eq!(server.useless().first(), Some(&key(gone, 39)));
    // To another definition of the same name none of them belongs.
    server.begin(PREFIX, "another", at(50));
    assert_eq!(server.useless().len(), 41);
}

fn key(prefix: &str, number: u64) -> Key {
    Key::new(prefix.replacen("/registry/", RECORDS, 1) + &format!("server-{number:02}"))
}
