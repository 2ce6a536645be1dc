//! The past as it was: exact reads, and what a restart leaves of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::{MERGE, name_of, version_of};
use crate::dice::Dice;
use crate::harness::{SILENT, Server};
use crate::objects::{CONFIG_MAPS, config_map, make_config_maps};

/// A list as a map from names to versions and data.
fn state(list: &Value) -> BTreeMap<String, (u64, Value)> {
    let items = list["items"].as_array().expect("a list").iter();
    items.map(|item| (name_of(item).to_owned(), (version_of(item), item["data"].clone()))).collect()
}

#[tokio::test]
async fn exact_lists_at_every_version_agree_with_a_watch() {
    // With the recent past in memory, and with all of it on disk.
    for flags in [&[][..], &["--history-memory=0"]] {
        exact_lists_agree_with_a_watch(&Server::start(flags).await).await;
    }
}

async fn exact_lists_agree_with_a_watch(server: &Server) {
    let seed = Dice::any_seed();
    let mut dice = Dice::new(seed);
    let client = server.client();
    let start = client.get(CONFIG_MAPS).await.version();
    let mut changes = 0;
    for step in 0..120 {
        let name = format!("n{}", dice.below(6));
        let one = format!("{CONFIG_MAPS}/{name}");
        let value = step.to_string();
        let reply = match dice.below(3) {
            0 => client.post(CONFIG_MAPS, &config_map(&name, &value)).await,
            1 => client.patch(&one, MERGE, &json!({"data": {"k": value}})).await,
            _ => client.delete(&one).await,
        };
        assert!([200, 201, 404, 409].contains(&reply.code), "{}", reply.text());
        changes += usize::from(reply.code < 300);
    }

    let mut watch = client.watch(CONFIG_MAPS, &format!("resourceVersion={start}")).await;
    let mut replayed = BTreeMap::new();
    let mut last = start;
    for _ in 0..changes {
        let event = watch.event().await;
        let (kind, name, version) = event.facts();
        assert!(version > last, "seed {seed}: {version} comes after {last}");
        last = version;
        let existed = match kind {
            "DELETED" => replayed.remove(name).is_some(),
            _ => replayed.insert(name.to_owned(), (version, event.object["data"].clone())).is_some(),
        };
        assert_eq!(existed, kind != "ADDED", "seed {seed}: {kind} of {name} at {version}");
        let exact = format!("{CONFIG_MAPS}?resourceVersionMatch=Exact&resourceVersion={version}");
        let list = client.get(&exact).await.expect(200).json();
        assert_eq!(version_of(&list), version);
        assert_eq!(state(&list), replayed, "seed {seed}: the state at {version}");
    }
    let newest = client.get(CONFIG_MAPS).await.json();
    assert_eq!((version_of(&newest), state(&newest)), (last, replayed), "seed {seed}");
}

#[tokio::test]
async fn a_restart_keeps_versions_growing_and_lets_watchers_go_on() {
    let mut server = Server::start(&SILENT).await;
    let start = server.client().get(CONFIG_MAPS).await.version();
    let mut versions = Vec::new();
    for (turn, in_order) in [true, false, true, false].into_iter().enumerate() {
        let client = server.client();
        let name = format!("n{turn}");
        versions.extend(make_config_maps(&client, &[&name]).await);
        let patch = json!({"data": {"k": "2"}});
        let patched = client.patch(&format!("{CONFIG_MAPS}/{name}"), MERGE, &patch).await.expect(200);
        versions.push(patched.version());
        let before = client.get(CONFIG_MAPS).await.expect(200).json();
        server = if in_order { server.restart_in_order().await } else { server.restart().await };
        assert_eq!(server.client().get(CONFIG_MAPS).await.expect(200).json(), before);
    }
    let client = server.client();
    versions.extend(make_config_maps(&client, &["last"]).await);
    assert!(versions.is_sorted_by(|earlier, later| earlier < later), "{versions:?}");
    // From each point before any of the restarts all that came later is there.
    let points: Vec<u64> = std::iter::once(start).chain(versions.iter().copied()).collect();
    for (at, from) in points.iter().enumerate() {
        let mut watch = client.watch(CONFIG_MAPS, &format!("resourceVersion={from}")).await;
        for version in &versions[at..] {
            assert_eq!(watch.event().await.version(), *version, "from {from}");
        }
    }
    for (at, version) in versions.iter().enumerate() {
        let exact = format!("{CONFIG_MAPS}?resourceVersionMatch=Exact&resourceVersion={version}");
        assert_eq!(client.get(&exact).await.expect(200).names().len(), at / 2 + 1, "the state at {version}");
    }
}

#[tokio::test]
async fn a_version_far_ahead_is_a_timeout_that_can_be_retried() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let ahead = make_config_maps(&client, &["a"]).await[0] + 1_000_000;
    let reads: Vec<_> = [
        format!("{CONFIG_MAPS}?resourceVersion={ahead}"),
        format!("{CONFIG_MAPS}?resourceVersion={ahead}&resourceVersionMatch=Exact"),
        format!("{CONFIG_MAPS}/a?resourceVersion={ahead}"),
        format!("{CONFIG_MAPS}/a?resourceVersion={ahead}&resourceVersionMatch=Exact"),
    ]
    .into_iter()
    .map(|path| {
        let client = client.clone();
        tokio::spawn(async move { client.get(&path).await })
    })
    .collect();
    for read in reads {
        let reply = read.await.expect("no reader panics");
        assert_eq!(reply.header("retry-after"), Some("1"));
        let status = reply.fails(504, "Timeout");
        assert!(status["message"].as_str().is_some_and(|text| text.contains("Too large resource version")), "{status}");
        assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge", "{status}");
        assert_eq!(status["details"]["retryAfterSeconds"], 1, "{status}");
    }
    // A version that is about to come is waited for.
    let next = client.get(CONFIG_MAPS).await.version() + 1;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.get(&format!("{CONFIG_MAPS}?resourceVersion={next}")).await }
    });
    make_config_maps(&client, &["b"]).await;
    assert_eq!(waiting.await.expect("no reader panics").expect(200).names(), ["a", "b"]);
}

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

#[tokio::test]
async fn a_read_of_one_object_looks_at_a_match_only_where_it_can_be_held_to() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let made = make_config_maps(&client, &["a"]).await[0];
    for query in ["Exact", "Exact&resourceVersion=0", "NotOlderThan", "bogus", &format!("bogus&resourceVersion={made}")]
    {
        let path = format!("{CONFIG_MAPS}/a?resourceVersionMatch={query}");
        assert_eq!(client.get(&path).await.expect(200).version(), made, "{query}");
    }
}

fn secret(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name}, "stringData": {"k": value}})
}

/// One editor writes more than all of history may take. Others can go on with their lists, read the past as it was and
/// watch from there, also after a restart; only the editor's own past is gone.
#[tokio::test]
async fn who_writes_a_lot_loses_their_own_history_only() {
    let flags = ["--history-bytes=2097152", SILENT[0], SILENT[1]];
    let mut server = Server::start(&flags).await;
    let client = server.client();
    for name in ["a", "b", "c", "d", "e"] {
        client.post(SECRETS, &secret(name, "old")).await.expect(201);
    }
    let first = client.get(&format!("{SECRETS}?limit=2")).await.expect(200);
    let (version, token) = (first.version(), first.json()["metadata"]["continue"].as_str().expect("more").to_owned());
    client.put(&format!("{SECRETS}/c"), &secret("c", "new")).await.expect(200);
    client.delete(&format!("{SECRETS}/d")).await.expect(200);

    let noisy = make_config_maps(&client, &["noisy"]).await[0];
    for turn in 0..24 {
        let large = config_map("noisy", &format!("{turn} {}", "x".repeat(200_000)));
        client.put(&format!("{CONFIG_MAPS}/noisy"), &large).await.expect(200);
    }

    let exact = format!("resourceVersionMatch=Exact&resourceVersion={version}");
    for restarted in [false, true] {
        if restarted {
            server = server.restart().await;
        }
        let client = server.client();
        let rest = client.get(&format!("{SECRETS}?limit=9&continue={token}")).await.expect(200);
        assert_eq!((rest.version(), rest.names()), (version, vec!["c".to_owned(), "d".to_owned(), "e".to_owned()]));
        let old = client.get(&format!("{SECRETS}?{exact}")).await.expect(200);
        assert_eq!((old.version(), old.names().len()), (version, 5), "restarted {restarted}");
        let one = client.get(&format!("{SECRETS}/c?{exact}")).await.expect(200).json();
        assert_eq!(one["data"]["k"], "b2xk", "restarted {restarted}");
        let mut watch = client.watch(SECRETS, &format!("resourceVersion={version}")).await;
        assert_eq!(watch.event().await.facts().0, "MODIFIED");
        assert_eq!(watch.event().await.facts().0, "DELETED");

        client
            .get(&format!("{CONFIG_MAPS}?resourceVersionMatch=Exact&resourceVersion={noisy}"))
            .await
            .fails(410, "Expired");
        let mut watch = client.watch(CONFIG_MAPS, &format!("resourceVersion={noisy}")).await;
        assert_eq!(watch.event().await.object["code"], 410, "restarted {restarted}");
    }
}
