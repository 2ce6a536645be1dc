//! Single objects behave as if there were one server and one client at a time, whatever happens to connections.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::etcd::Etcd;
use super::faulty_proxy::{Fault, FaultyProxy};
use super::history::{Answer, Call, History, Operation};
use crate::client::Client;
use crate::dice::Dice;
use crate::objects::{CONFIG_MAPS, config_map};

const OBJECTS: u64 = 3;
const CLIENTS: usize = 6;
const OPERATIONS: usize = 25;

/// What happens to the connections to etcd, one after the other: something after each few operations.
const FAULTS: [Fault; 6] = [
    Fault::Delay(Duration::from_millis(15)),
    Fault::Cut,
    Fault::Nothing,
    Fault::HalfClose,
    Fault::Delay(Duration::from_millis(2)),
    Fault::Cut,
];
const OPERATIONS_PER_FAULT: u64 = 29;

/// What all clients share.
struct Scene {
    /// Counts calls and answers, and so orders them.
    clock: AtomicU64,
    proxies: [FaultyProxy; 2],
}

impl Scene {
    fn tick(&self) -> u64 {
        let now = self.clock.fetch_add(1, Ordering::SeqCst);
        if now.is_multiple_of(OPERATIONS_PER_FAULT) {
            let number = (now / OPERATIONS_PER_FAULT) as usize;
            self.proxies[number % 2].set(FAULTS[number / 2 % FAULTS.len()]);
        }
        now
    }
}

#[tokio::test]
async fn what_clients_are_told_of_an_object_can_have_happened() {
    let seed = Dice::any_seed();
    let etcd = Etcd::start().await;
    let proxies = [FaultyProxy::before(&etcd.url).await, FaultyProxy::before(&etcd.url).await];
    let none = ["--controllers=none"];
    let one = etcd.serve_at(&proxies[0].url(), &none).await;
    let two = etcd.serve_at(&proxies[1].url(), &none).await;
    let scene = Arc::new(Scene { clock: AtomicU64::new(1), proxies });
    let clients = (0..CLIENTS).map(|number| {
        let client = if number % 2 == 0 { one.client() } else { two.client() };
        let dice = Dice::new(seed.wrapping_add(number as u64));
        tokio::spawn(operate(scene.clone(), client.apart(), number, dice))
    });
    let clients: Vec<_> = clients.collect();
    let mut histories: HashMap<u64, History> = HashMap::new();
    let mut answered = 0;
    for client in clients {
        for (object, operation) in client.await.expect("does not panic") {
            answered += usize::from(operation.answer != Answer::Unknown);
            histories.entry(object).or_default().0.push(operation);
        }
    }
    assert!(answered > CLIENTS * OPERATIONS / 2, "{answered} operations were answered");
    for (object, history) in histories {
        if !history.is_linearizable() {
            let path = keep(&format!("history-{seed}-{object}.txt"), &history.to_text());
            panic!("seed {seed}: the history of object {object} cannot have happened; it is in {}", path.display());
        }
    }
}

/// Keeps a history where artefacts of tests are.
fn keep(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path
}

async fn operate(scene: Arc<Scene>, client: Client, number: usize, mut dice: Dice) -> Vec<(u64, Operation)> {
    let mut done = Vec::new();
    // What each object was when this client last saw it: its content and version.
    let mut seen: HashMap<u64, (u64, String)> = HashMap::new();
    for turn in 0..OPERATIONS {
        let object = dice.below(OBJECTS);
        let (name, new) = (format!("object-{object}"), (number * OPERATIONS + turn) as u64);
        let path = format!("{CONFIG_MAPS}/{name}");
        let (known, version) = seen.get(&object).cloned().unzip();
        let call = match (dice.below(10), known) {
            (0..4, _) => Call::Get,
            (4..8, Some(expected)) => Call::Replace { expected, new },
            (4..9, _) => Call::Create(new),
            _ => Call::Delete,
        };
        let called = scene.tick();
        let reply = match call {
            Call::Get => client.get(&path).await,
            Call::Create(_) => client.post(CONFIG_MAPS, &config_map(&name, &new.to_string())).await,
            Call::Delete => client.delete(&path).await,
            Call::Replace { .. } => {
                let mut object = config_map(&name, &new.to_string());
                object["metadata"]["resourceVersion"] = version.into();
                client.put(&path, &object).await
            }
        };
        let answered = scene.tick();
        let content = |reply: &serde_json::Value| {
            let content = reply["data"]["k"].as_str().and_then(|text| text.parse().ok()).expect("a number");
            let version = reply["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
            (content, version)
        };
        let answer = match (call, reply.code) {
            (Call::Get, 200) => {
                let now = content(&reply.json());
                seen.insert(object, now.clone());
                Answer::Is(Some(now.0))
            }
            (Call::Get, 404) => Answer::Is(None),
            // A read that fails says nothing.
            (Call::Get, _) => continue,
            (Call::Create(_) | Call::Replace { .. }, 200 | 201) => {
                seen.insert(object, content(&reply.json()));
                Answer::Done
            }
            (Call::Delete, 200) => Answer::Done,
            (Call::Create(_), 409) => Answer::Exists,
            (Call::Replace { .. }, 409) => Answer::Conflict,
            (Call::Replace { .. } | Call::Delete, 404) => Answer::NotFound,
            (_, code) => {
                assert!(code >= 500, "{call:?} was answered with {code}");
                Answer::Unknown
            }
        };
        done.push((object, Operation { client: number, call, answer, called, answered }));
    }
    done
}
