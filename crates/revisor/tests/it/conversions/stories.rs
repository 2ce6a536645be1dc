//! The lives of definitions that change, and of objects that survive it.

use http::Method;
use serde_json::json;

use super::*;
use crate::client::MERGE;
use crate::custom::gone;
use crate::dice::Dice;
use crate::harness::{Server, within};

async fn spec(client: &Client, version: &str, name: &str) -> Value {
    client.get(&format!("{}/{name}", fleet(version))).await.expect(200).json()["spec"].clone()
}

/// Gives the definition these versions.
async fn redefine(client: &Client, versions: &[(&str, Value)]) {
    let changed = boats(versions)["spec"]["versions"].clone();
    amend(client, |definition| definition["spec"]["versions"] = changed.clone(), "").await.expect(200);
}

/// As policies of gateways lived: a field of an experimental version is renamed in place, then the version is promoted,
/// and the experimental one dropped.
#[tokio::test]
async fn objects_of_an_old_client_survive_a_rename_a_promotion_and_the_end_of_their_version() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let tls = || json!({"type": "object", "properties": {"hostname": {"type": "string"}}});
    let hostname = |name: &str| json!({"hostname": name});
    let old = fleet("v1alpha2");
    define(&client, &boats(&[("v1alpha2", json!({"tls": tls()}))])).await;
    client.post(&old, &boat("v1alpha2", "first", json!({"tls": hostname("a")}))).await.expect(201);

    // The field is renamed, and the version is not.
    let experimental = || ("v1alpha2", json!({"validation": tls()}));
    redefine(&client, &[experimental()]).await;
    let rules = json!([{"move": {"from": ".spec.tls", "to": ".spec.validation"}}]);
    let canonical = json!([{"version": "v1alpha2", "rules": rules}]);
    propose(&client, &json!({"canonicalize": canonical})).await.expect(201);
    assert_eq!(spec(&client, "v1alpha2", "first").await, json!({"validation": hostname("a")}));
    let written = client.post(&old, &boat("v1alpha2", "second", json!({"tls": hostname("b")}))).await.expect(201);
    assert_eq!(written.json()["spec"], json!({"validation": hostname("b")}), "the old client knows no other name");

    // The version is promoted; the rules are there before it is.
    let promote = json!([{"move": {"from": ".spec.validation", "to": ".spec.trust"}}]);
    let steps = json!({"spec": {"steps": [step("v1alpha2", "v1", promote)]}});
    client.patch(&at(), MERGE, &steps).await.expect(200);
    let promoted = || ("v1", json!({"trust": tls(), "depth": {"type": "integer"}}));
    redefine(&client, &[promoted(), experimental()]).await;
    assert_eq!(spec(&client, "v1", "first").await, json!({"trust": hostname("a")}));
    client.patch(&format!("{}/first", fleet("v1")), MERGE, &json!({"spec": {"depth": 2}})).await.expect(200);
    client.post(&old, &boat("v1alpha2", "third", json!({"tls": hostname("c")}))).await.expect(201);
    let change = json!({"spec": {"tls": hostname("z")}});
    client.patch(&format!("{old}/first"), MERGE, &change).await.expect(200);
    assert_eq!(spec(&client, "v1alpha2", "first").await, json!({"validation": hostname("a")}), "the new name wins");
    let change = json!({"spec": {"validation": hostname("z")}});
    client.patch(&format!("{old}/first"), MERGE, &change).await.expect(200);
    assert_eq!(spec(&client, "v1", "first").await, json!({"trust": hostname("z"), "depth": 2}));

    // One object is still stored as it was; until it is not, the Conversion stays.
    let refused = client.delete(&at()).await.expect(409).json();
    assert!(refused["message"].as_str().is_some_and(|text| text.contains(": 1 object is stored")), "{refused}");
    let touch = json!({"metadata": {"labels": {"moved": "yes"}}});
    client.patch(&format!("{}/second", fleet("v1")), MERGE, &touch).await.expect(200);
    amend(&client, |definition| definition["spec"]["versions"][1]["served"] = json!(false), "").await.expect(200);
    let status = format!("{DEFINITIONS}/{NAME}/status");
    client.patch(&status, MERGE, &json!({"status": {"storedVersions": ["v1"]}})).await.expect(200);
    redefine(&client, &[promoted()]).await;
    client.delete(&at()).await.expect(200);
    gone(&client, &old).await;
    for (name, want) in [
        ("first", json!({"trust": hostname("z"), "depth": 2})),
        ("second", json!({"trust": hostname("b")})),
        ("third", json!({"trust": hostname("c")})),
    ] {
        assert_eq!(spec(&client, "v1", name).await, want, "{name}");
    }
}

/// How often the server is killed.
const LIVES: u64 = 6;
/// The most changes of the storage version before that.
const CHANGES: u64 = 6;
const BOATS: usize = 3;

/// Writes one boat, through one version and then the other, and remembers what it was told.
struct Sailor {
    name: String,
    /// The last number that was acknowledged.
    written: i64,
}

impl Sailor {
    /// Writes until there is no answer any more.
    async fn write(mut self, client: Client) -> Sailor {
        loop {
            let next = self.written + 1;
            let (version, field) = if next % 2 == 0 { ("v1", "size") } else { ("v2", "length") };
            let patch = json!({"spec": {field: next}}).to_string();
            let path = format!("{}/{}", fleet(version), self.name);
            let sent = client.try_send(Method::PATCH, &path, &[("content-type", MERGE)], patch);
            let Ok(reply) = within(sent).await else { return self };
            reply.expect(200);
            self.written = next;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stderr, reason = "the seed gives a failure again")]
async fn nothing_is_lost_when_the_server_is_killed_while_the_storage_version_changes() {
    let seed = Dice::any_seed();
    eprintln!("REVISOR_TEST_SEED={seed}");
    let mut dice = Dice::new(seed);
    let mut server = Server::start(&[]).await;
    let client = server.client();
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let versions = [("v1", json!({"size": number, "old": text})), ("v2", json!({"length": number, "new": text}))];
    define(&client, &boats(&versions)).await;
    propose(&client, &rename()).await.expect(201);
    let mut sailors = Vec::new();
    for at in 0..BOATS {
        let name = format!("boat{at}");
        client.post(&fleet("v1"), &boat("v1", &name, json!({"size": 0, "old": name}))).await.expect(201);
        let new = json!({"spec": {"new": name}});
        client.patch(&format!("{}/{name}", fleet("v2")), MERGE, &new).await.expect(200);
        sailors.push(Sailor { name, written: 0 });
    }
    let mut storage = 0;
    for _ in 0..LIVES {
        let client = server.client();
        let writing: Vec<_> = sailors.drain(..).map(|sailor| tokio::spawn(sailor.write(server.client()))).collect();
        for _ in 0..=dice.below(CHANGES) {
            storage = 1 - storage;
            let store = |definition: &mut Value| {
                for at in 0..2 {
                    definition["spec"]["versions"][at]["storage"] = json!(at == storage);
                }
            };
            amend(&client, store, "").await.expect(200);
        }
        server.process.signal("KILL");
        for sailor in writing {
            sailors.push(within(sailor).await.expect("no sailor panics"));
        }
        server = server.restart().await;
        for sailor in &mut sailors {
            let client = server.client();
            let [one, two] = [spec(&client, "v1", &sailor.name).await, spec(&client, "v2", &sailor.name).await];
            let found = one["size"].as_i64().expect("a number");
            assert!([sailor.written, sailor.written + 1].contains(&found), "{found} instead of {}", sailor.written);
            assert_eq!(one, json!({"size": found, "old": sailor.name}));
            assert_eq!(two, json!({"length": found, "new": sailor.name}));
            sailor.written = found;
        }
    }
    assert!(sailors.iter().all(|sailor| sailor.written > 0), "something was written");
}
