//! Watches: what they begin with, what they select, and that nobody else suffers from a slow one.

use std::sync::Arc;

use futures_util::future::try_join_all;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::client::{JSON_PATCH, MERGE, name_of};
use crate::harness::{Server, within};
use crate::objects::{CONFIG_MAPS, config_map, labelled, make_config_maps};

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let one = format!("{CONFIG_MAPS}/a");
    let start = client.get(CONFIG_MAPS).await.version();
    let mut watches = Vec::new();
    for client in [client.clone(), client.clone().over_http1()] {
        watches.push(client.watch(CONFIG_MAPS, &format!("labelSelector=l%3Dx&resourceVersion={start}")).await);
    }
    client.post(CONFIG_MAPS, &labelled("other", "l", "y")).await.expect(201);
    let made = client.post(CONFIG_MAPS, &labelled("a", "l", "x")).await.expect(201).version();
    let label = |value: &str| json!({"metadata": {"labels": {"l": value}}, "data": {"k": value}});
    let left = client.patch(&one, MERGE, &label("y")).await.expect(200).version();
    client.patch(&one, MERGE, &json!({"data": {"unseen": "1"}})).await.expect(200);
    let entered = client.patch(&one, MERGE, &label("x")).await.expect(200).version();
    let changed = client.patch(&one, MERGE, &json!({"data": {"k": "2"}})).await.expect(200).version();
    client.delete(&one).await.expect(200);
    // A watch that begins later tells the same story.
    watches.push(client.watch(CONFIG_MAPS, &format!("labelSelector=l%3Dx&resourceVersion={start}")).await);
    for mut watch in watches {
        watch.expect("ADDED", "a", made).await;
        let old = watch.expect("DELETED", "a", left).await;
        assert_eq!(old["metadata"]["labels"], json!({"l": "x"}), "the state that was selected");
        watch.expect("ADDED", "a", entered).await;
        watch.expect("MODIFIED", "a", changed).await;
        let gone = watch.event().await;
        assert_eq!((&*gone.kind, name_of(&gone.object)), ("DELETED", "a"));
        assert!(gone.version() > changed);
    }
}

#[tokio::test]
async fn a_watch_can_be_of_one_object_of_a_namespace_or_of_all() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let start = client.get(CONFIG_MAPS).await.version();
    make_config_maps(&client, &["a", "b"]).await;
    client.post("/api/v1/namespaces/kube-system/configmaps", &config_map("a", "1")).await.expect(201);
    let from = format!("resourceVersion={start}");
    for (path, query, want) in [
        (CONFIG_MAPS, String::new(), vec!["default/a", "default/b"]),
        (CONFIG_MAPS, "&fieldSelector=metadata.name%3Db".to_owned(), vec!["default/b"]),
        ("/api/v1/configmaps", String::new(), vec!["default/a", "default/b", "kube-system/a"]),
        ("/api/v1/configmaps", "&fieldSelector=metadata.name%3Da".to_owned(), vec!["default/a", "kube-system/a"]),
        ("/api/v1/watch/namespaces/default/configmaps/b", String::new(), vec!["default/b"]),
        ("/api/v1/watch/configmaps", String::new(), vec!["default/a", "default/b", "kube-system/a"]),
    ] {
        // The watch ends by itself, so that it is known that nothing else comes.
        let mut watch = client.watch(path, &format!("{from}{query}&timeoutSeconds=1")).await;
        let mut seen = Vec::new();
        while let Some(event) = watch.next().await {
            let namespace = event.object["metadata"]["namespace"].as_str().unwrap_or_default();
            seen.push(format!("{namespace}/{}", name_of(&event.object)));
        }
        assert_eq!(seen, want, "{path} {query}");
    }
    for field in ["metadata.name%3Da", "metadata.name%21%3Db", "metadata.namespace%3Ddefault"] {
        let path = format!("/api/v1/watch/namespaces/default/configmaps/b?fieldSelector={field}");
        let status = client.get(&path).await.fails(400, "BadRequest");
        assert_eq!(status["message"], "fieldSelector metadata.name doesn't match requested name", "{field}");
    }
}

#[tokio::test]
async fn the_state_that_a_watch_begins_with_ends_with_a_bookmark() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let versions = make_config_maps(&client, &["a", "b"]).await;
    let newest = versions[1];
    let asked = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    for query in [
        format!("{asked}&allowWatchBookmarks=true"),
        format!("{asked}&allowWatchBookmarks=true&resourceVersion={newest}"),
        "allowWatchBookmarks=true".to_owned(),
        "allowWatchBookmarks=true&resourceVersion=0".to_owned(),
    ] {
        let mut watch = client.watch(CONFIG_MAPS, &query).await;
        for (name, version) in ["a", "b"].into_iter().zip(&versions) {
            watch.expect("ADDED", name, *version).await;
        }
        let bookmark = watch.expect("BOOKMARK", "", newest).await;
        assert_eq!(bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true", "{query}");
        assert_eq!((&bookmark["kind"], &bookmark["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    }
    let mut watch = client.watch(CONFIG_MAPS, &format!("{asked}&allowWatchBookmarks=true")).await;
    for _ in 0..3 {
        watch.event().await;
    }
    let operations = json!([{"op": "add", "path": "/data/more", "value": "1"}]);
    let changed = client.patch(&format!("{CONFIG_MAPS}/b"), JSON_PATCH, &operations).await.expect(200).version();
    watch.expect("MODIFIED", "b", changed).await;

    let ahead = newest + 1_000_000;
    let mut watch = client.watch(CONFIG_MAPS, &format!("{asked}&resourceVersion={ahead}")).await;
    let error = watch.event().await;
    assert_eq!((&*error.kind, &error.object["code"]), ("ERROR", &json!(504)), "{}", error.object);
    for query in ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "sendInitialEvents=true&continue=x"] {
        client.get(&format!("{CONFIG_MAPS}?watch=1&{query}")).await.fails(422, "Invalid");
    }
}

#[tokio::test]
async fn a_last_bookmark_comes_before_the_end() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let start = make_config_maps(&client, &["a"]).await[0];
    let query = format!("allowWatchBookmarks=true&resourceVersion={start}&timeoutSeconds=3");
    let mut watch = client.watch(CONFIG_MAPS, &query).await;
    let elsewhere = "/api/v1/namespaces/kube-system/configmaps";
    let newest = client.post(elsewhere, &config_map("a", "1")).await.expect(201).version();
    watch.expect("BOOKMARK", "", newest).await;
    assert!(watch.next().await.is_none(), "the end is a clean one");
}

/// How many writes make a client that does not read fall so far behind that its place in history is gone, and how
/// large each is: more than the buffers between it and the server hold, and the queue of its watch.
const WRITES: usize = 2_000;
const SIZE: usize = 16 * 1024;

/// How many events the server keeps. Every resource that was written since the start has its share of them, and what was
/// written at the start uses up its own.
const HISTORY: &str = "--history-events=512";

/// How many writes may be ahead of a client that reads: far fewer than history has, whatever the shares of others.
const AHEAD: usize = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_disturbs_nobody() {
    let server = Server::start(&[HISTORY]).await;
    let client = server.client();
    let start = make_config_maps(&client, &["a"]).await[0];
    let query = format!("resourceVersion={start}");
    let mut slow =
        [client.apart().watch(CONFIG_MAPS, &query).await, client.apart().over_http1().watch(CONFIG_MAPS, &query).await];
    let mut quick = client.apart().watch(CONFIG_MAPS, &query).await;
    // Nobody writes so far ahead of the one who reads that its place in history would be gone, too.
    let ahead = Arc::new(Semaphore::new(AHEAD));
    let read = ahead.clone();
    let reading = tokio::spawn(async move {
        let mut versions = Vec::new();
        while versions.len() < WRITES {
            versions.push(quick.event().await.version());
            read.add_permits(1);
        }
        versions
    });
    let writing = (0..8).map(|writer| {
        let (client, ahead) = (client.apart(), ahead.clone());
        tokio::spawn(async move {
            let name = format!("w{writer}");
            ahead.acquire().await.expect("is never closed").forget();
            client.post(CONFIG_MAPS, &config_map(&name, "")).await.expect(201);
            for turn in 1..WRITES / 8 {
                let object = config_map(&name, &format!("{turn:0>SIZE$}"));
                ahead.acquire().await.expect("is never closed").forget();
                client.put(&format!("{CONFIG_MAPS}/{name}"), &object).await.expect(200);
            }
        })
    });
    // Together, because writers wait for the one who reads, and would do so for ever if that one panicked.
    let (_, versions) = tokio::try_join!(try_join_all(writing), reading).expect("nobody panics");
    assert!(versions.is_sorted_by(|earlier, later| earlier < later));

    // Who was slow sees a beginning of the story without gaps, and then is told that it is over; or is broken off, on a
    // machine on which the writes take longer than clients have to read.
    for (at, watch) in slow.iter_mut().enumerate() {
        let mut seen = Vec::new();
        let mut is_over = false;
        while seen.len() < WRITES && !is_over {
            match within(watch.try_next()).await {
                Ok(Some(event)) if event.kind == "ERROR" => {
                    let status = event.object;
                    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")), "{status}");
                    assert!(watch.next().await.is_none(), "nothing comes after an error");
                    is_over = true;
                }
                Ok(event) => seen.push(event.expect("no end without an error").version()),
                Err(_) => is_over = true,
            }
        }
        assert_eq!(seen, versions[..seen.len()]);
        // What buffers hold over HTTP/2 is known; over HTTP/1.1 the kernel decides, and may hold all.
        assert!(at > 0 || is_over, "a client that reads nothing falls behind");
    }
    server.assert_well().await;
}
