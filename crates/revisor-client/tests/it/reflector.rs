//! What a reflector makes of the answers of its servers.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use revisor_client::{Event, Key, Reflector, ReflectorError, ResourceVersion, Store, WaitError};
use serde_json::Value;

use crate::scripted::{Answer, Scripted, bookmark, event, list, map, status};

fn reflector(server: &Scripted) -> (Store<ConfigMap>, Reflector<ConfigMap>) {
    Reflector::new(api(server))
}

fn api(server: &Scripted) -> Api<ConfigMap> {
    Api::namespaced(server.client(), "default")
}

fn typed(value: Value) -> ConfigMap {
    serde_json::from_value(value).expect("a ConfigMap")
}

fn version(text: &str) -> ResourceVersion {
    ResourceVersion::new(text)
}

/// Names and versions in the store.
fn shown(store: &Store<ConfigMap>) -> Vec<(String, String)> {
    let mut shown: Vec<(String, String)> = store
        .objects()
        .iter()
        .map(|map| {
            let meta = map.metadata.clone();
            (meta.name.unwrap_or_default(), meta.resource_version.unwrap_or_default())
        })
        .collect();
    shown.sort();
    shown
}

fn pair(name: &str, version: &str) -> (String, String) {
    (name.to_owned(), version.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_goes_on_as_the_watch() {
    let server = Scripted::new([Answer::OpenEvents(vec![
        event("ADDED", map("a", "3")),
        event("ADDED", map("b", "5")),
        bookmark("7", true),
        event("MODIFIED", map("a", "8")),
        event("DELETED", map("b", "9")),
        bookmark("20", false),
    ])]);
    let (store, mut reflector) = reflector(&server);
    assert_eq!((store.version(), store.len()), (None, 0));
    assert!(matches!(reflector.next().await, Ok(Event::Listed(at)) if at == version("7")));
    assert_eq!(shown(&store), [pair("a", "3"), pair("b", "5")]);
    assert!(matches!(reflector.next().await, Ok(Event::Applied(_))));
    assert_eq!(store.version(), Some(version("8")));
    assert!(matches!(reflector.next().await, Ok(Event::Deleted(_))));
    assert_eq!(shown(&store), [pair("a", "8")]);
    assert!(matches!(reflector.next().await, Ok(Event::Bookmark(at)) if at == version("20")));
    // One request for all of it, which wanted nothing older than now.
    let asked = server.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    for part in ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "allowWatchBookmarks=true"] {
        assert!(asked[0].contains(part), "{asked:?}");
    }
    let metrics = store.metrics();
    assert_eq!((metrics.lists, metrics.watches, metrics.events, metrics.bookmarks), (1, 1, 2, 1));
    assert!(
        metrics.to_prometheus("configmaps").contains("revisor_client_resource_version{resource=\"configmaps\"} 20")
    );
}

#[tokio::test(start_paused = true)]
async fn servers_without_streamed_lists_are_asked_for_pages() {
    let mut first = list("7", &[map("a", "3")]);
    first["metadata"]["continue"] = "next".into();
    let server = Scripted::new([
        Answer::Json(422, status(422)),
        Answer::Json(200, first),
        Answer::Json(200, list("7", &[map("b", "5")])),
        Answer::OpenEvents(vec![event("ADDED", map("c", "8"))]),
    ]);
    let (store, mut reflector) = reflector(&server);
    assert!(matches!(reflector.next().await, Ok(Event::Listed(at)) if at == version("7")));
    assert!(matches!(reflector.next().await, Ok(Event::Applied(_))));
    assert_eq!(shown(&store), [pair("a", "3"), pair("b", "5"), pair("c", "8")]);
    assert!(server.asked()[2].contains("continue=next"), "{:?}", server.asked());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_goes_on_where_it_was() {
    let server = Scripted::new([
        Answer::Events(vec![bookmark("7", true), event("ADDED", map("a", "9"))]),
        // An event that is known already changes nothing.
        Answer::OpenEvents(vec![event("ADDED", map("a", "8")), event("MODIFIED", map("a", "12"))]),
    ]);
    let (store, mut reflector) = reflector(&server);
    for _ in 0..3 {
        reflector.next().await.expect("all is well");
    }
    assert_eq!(shown(&store), [pair("a", "12")]);
    assert!(server.asked()[1].contains("resourceVersion=9"), "{:?}", server.asked());
    assert_eq!((store.metrics().lists, store.metrics().stale_events), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn another_server_takes_over_without_a_new_list() {
    let gone = Scripted::new([Answer::Events(vec![event("ADDED", map("a", "3")), bookmark("7", true)])]);
    let other = Scripted::new([Answer::OpenEvents(vec![event("MODIFIED", map("a", "8"))])]);
    let (store, reflector) = reflector(&gone);
    let mut reflector = reflector.also_at(api(&other));
    assert!(matches!(reflector.next().await, Ok(Event::Listed(_))));
    assert!(matches!(reflector.next().await, Err(ReflectorError::Watch(_))));
    assert!(matches!(reflector.next().await, Ok(Event::Applied(_))));
    assert!(other.asked()[0].contains("resourceVersion=7"), "{:?}", other.asked());
    let metrics = store.metrics();
    assert_eq!((metrics.lists, metrics.moves, metrics.errors), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_nobody_knows_any_more_is_listed_anew() {
    let expired = |code| event("ERROR", status(code));
    let server = Scripted::new([
        Answer::Events(vec![event("ADDED", map("a", "3")), bookmark("7", true)]),
        Answer::Json(410, status(410)),
        Answer::Events(vec![event("ADDED", map("b", "90")), bookmark("99", true), expired(410)]),
        Answer::OpenEvents(vec![bookmark("120", true)]),
    ]);
    let (store, mut reflector) = reflector(&server);
    let mut versions = Vec::new();
    for _ in 0..3 {
        match reflector.next().await.expect("nothing is an error") {
            Event::Listed(at) => versions.push((at.to_string(), shown(&store))),
            other => panic!("{other:?}"),
        }
    }
    let want = [
        ("7".to_owned(), vec![pair("a", "3")]),
        ("99".to_owned(), vec![pair("b", "90")]),
        ("120".to_owned(), Vec::new()),
    ];
    assert_eq!(versions, want);
    assert_eq!(store.metrics().expired_watches, 2);
}

#[tokio::test(start_paused = true)]
async fn waits_end_when_the_store_is_there() {
    let server = Scripted::new([Answer::OpenEvents(vec![
        event("ADDED", map("a", "3")),
        event("ADDED", map("late", "6")),
        bookmark("7", true),
        event("MODIFIED", map("a", "9")),
        bookmark("20", false),
    ])]);
    let (store, reflector) = reflector(&server);
    let working = tokio::spawn(reflector.run());
    store.ready().await.expect("is listed");
    store.after(&typed(map("a", "9"))).await.expect("the event comes");
    assert_eq!(shown(&store), [pair("a", "9"), pair("late", "6")]);
    // Of what was there at 7, one was written since.
    let meant = store.up_to(&version("7")).await.expect("is there");
    assert_eq!(meant.len(), 1);
    store.at_least(&version("20")).await.expect("the bookmark comes");
    assert_eq!(store.after(&ConfigMap::default()).await, Err(WaitError::NoVersion));
    working.abort();
    assert_eq!(store.at_least(&version("21")).await, Err(WaitError::Stopped));
}

#[tokio::test(start_paused = true)]
async fn versions_that_do_not_compare_are_waited_for_by_other_means() {
    let streamed = |items: Vec<Value>, end: &str| {
        let events = items.into_iter().map(|item| event("ADDED", item)).chain([bookmark(end, true)]);
        Answer::OpenEvents(events.collect())
    };
    let server = Scripted::new([
        streamed(vec![map("a", "x1")], "x1"),
        // Somebody wrote over what was written; only a new list can tell.
        streamed(vec![map("a", "x5")], "x9"),
        streamed(vec![map("a", "x5"), map("b", "xa")], "xb"),
    ]);
    let (store, reflector) = reflector(&server);
    let working = tokio::spawn(reflector.run());
    store.ready().await.expect("is listed");
    assert_eq!(store.at_least(&version("x3")).await, Err(WaitError::Incomparable { version: "x3".to_owned() }));
    // A number does not help if the store has none.
    assert_eq!(store.at_least(&version("3")).await, Err(WaitError::Incomparable { version: "x1".to_owned() }));
    store.after(&typed(map("a", "x1"))).await.expect("is there already");
    assert_eq!(server.asked().len(), 1);
    store.after(&typed(map("a", "x3"))).await.expect("a list that began later has it");
    let seen = store.get(&Key::namespaced("default", "a")).expect("is there");
    assert_eq!(ResourceVersion::of(&*seen), Some(version("x5")));
    let all = store.up_to(&version("x9")).await.expect("a new list");
    assert_eq!(all.len(), 2);
    working.abort();
}
