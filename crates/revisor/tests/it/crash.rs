//! The program killed at random moments, again and again: what it has acknowledged is there, what it has shown it does
//! not show again, and what it shows next comes after (S1, S2, W1).
//!
//! Each writer has names of its own, so that it knows what must be there. The one write of each that was under way
//! when the program died may have happened or not; both are looked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::client::{Client, Event, MERGE, Reply, name_of, version_of};
use crate::dice::Dice;
use crate::harness::{Server, within};
use crate::objects::{CONFIG_MAPS, config_map};

const LIVES: usize = 110;
const WRITERS: u64 = 4;
const NAMES: u64 = 5;

/// The most writes that a life lasts for.
const LONGEST_LIFE: u64 = 40;

/// The longest time in which a server that is killed at its start gets ready.
const LONGEST_START: u64 = 60;

/// A version and a value; nothing for an object that is not there.
type State = Option<(u64, String)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stderr, reason = "the seed gives a failure again")]
async fn nothing_acknowledged_is_lost_and_no_version_is_used_twice() {
    let seed = Dice::any_seed();
    eprintln!("REVISOR_TEST_SEED={seed}");
    let mut dice = Dice::new(seed);
    let mut server = Server::start(&[]).await;
    let start = server.client().get(CONFIG_MAPS).await.version();
    let mut writers: Vec<Writer> = (0..WRITERS).map(|number| Writer::new(number, seed)).collect();
    let mut watchers = vec![Watcher::new(start), Watcher::new(start)];

    for life in 0..LIVES {
        if dice.below(8) == 0 {
            let stopped = server.kill9();
            stopped.start_and_kill(Duration::from_millis(dice.below(LONGEST_START))).await;
            server = stopped.start().await;
            continue;
        }
        (writers, watchers) = live(&server, life, dice.below(LONGEST_LIFE), writers, watchers).await;
        server = server.restart().await;
        let list = server.client().get(CONFIG_MAPS).await.expect(200).json();
        writers.iter_mut().for_each(|writer| writer.compare(&list));
    }

    let client = server.client();
    let last = client.post(CONFIG_MAPS, &config_map("last", "1")).await.expect(201).version();
    for (watcher, client) in watchers.iter_mut().zip(clients(&server)) {
        let caught_up = watcher.follow(&client, Some(last));
        within(caught_up).await.expect("the server lives");
    }
    let list = client.get(CONFIG_MAPS).await.expect(200).json();
    check(start, &writers, &watchers, &list);
    let count: usize = writers.iter().map(|writer| writer.acknowledged.len()).sum();
    assert!(count > LIVES, "only {count} writes were acknowledged, which proves little");
}

/// One client per protocol, each on a connection of its own.
fn clients(server: &Server) -> [Client; 2] {
    [server.client(), server.client().over_http1()]
}

/// Lets all write and watch until `writes` were acknowledged; then the server is killed under their hands.
async fn live(
    server: &Server,
    life: usize,
    writes: u64,
    writers: Vec<Writer>,
    watchers: Vec<Watcher>,
) -> (Vec<Writer>, Vec<Watcher>) {
    let acknowledged = Arc::new(Semaphore::new(0));
    let mut writing = Vec::new();
    for mut writer in writers {
        let (client, acknowledged) = (server.client(), acknowledged.clone());
        writing.push(tokio::spawn(async move {
            writer.write(&client, life, &acknowledged).await;
            writer
        }));
    }
    let mut watching = Vec::new();
    for (mut watcher, client) in watchers.into_iter().zip(clients(server)) {
        watching.push(tokio::spawn(async move {
            // It ends with the server.
            let _ = watcher.follow(&client, None).await;
            watcher
        }));
    }
    let enough = within(acknowledged.acquire_many(writes as u32)).await;
    drop(enough.expect("never closed"));
    server.process.signal("KILL");
    let mut ended = (Vec::new(), Vec::new());
    for writer in writing {
        ended.0.push(within(writer).await.expect("no writer panics"));
    }
    for watcher in watching {
        ended.1.push(within(watcher).await.expect("no watcher panics"));
    }
    ended
}

/// Writes its own names, one at a time, and remembers all that it was told.
struct Writer {
    number: u64,
    dice: Dice,
    known: BTreeMap<String, State>,
    /// The write that was under way when the server died: the name, and the value if it was no deletion.
    under_way: Option<(String, Option<String>)>,
    /// Every acknowledged write of a value.
    acknowledged: Vec<(u64, String, String)>,
    /// Every acknowledged deletion, with the version that was deleted.
    deleted: Vec<(u64, String)>,
    written: u64,
}

impl Writer {
    fn new(number: u64, seed: u64) -> Writer {
        let known = (0..NAMES).map(|name| (format!("w{number}-{name}"), None)).collect();
        let dice = Dice::new(seed ^ (number + 1));
        Writer { number, dice, known, under_way: None, acknowledged: vec![], deleted: vec![], written: 0 }
    }

    /// Writes until there is no answer any more.
    async fn write(&mut self, client: &Client, life: usize, acknowledged: &Semaphore) {
        loop {
            let name = format!("w{}-{}", self.number, self.dice.below(NAMES));
            let before = self.known[&name].clone();
            self.written += 1;
            let value = format!("{life}-{}-{}", self.number, self.written);
            let is_deletion = before.is_some() && self.dice.below(4) == 0;
            self.under_way = Some((name.clone(), (!is_deletion).then(|| value.clone())));
            let answer = match &before {
                _ if is_deletion => send(client, Method::DELETE, &one(&name), "", Value::Null).await,
                None => send(client, Method::POST, CONFIG_MAPS, "application/json", config_map(&name, &value)).await,
                Some((version, _)) if self.dice.below(2) == 0 => {
                    let mut object = config_map(&name, &value);
                    object["metadata"]["resourceVersion"] = json!(version.to_string());
                    send(client, Method::PUT, &one(&name), "application/json", object).await
                }
                Some(_) => send(client, Method::PATCH, &one(&name), MERGE, json!({"data": {"k": value}})).await,
            };
            let Some(reply) = answer else { return };
            self.under_way = None;
            let reply = reply.expect(if before.is_none() { 201 } else { 200 });
            match before {
                Some((version, _)) if is_deletion => {
                    self.deleted.push((version, name.clone()));
                    self.known.insert(name, None);
                }
                _ => {
                    self.acknowledged.push((reply.version(), name.clone(), value.clone()));
                    self.known.insert(name, Some((reply.version(), value)));
                }
            }
            acknowledged.add_permits(1);
        }
    }

    /// Compares what the server has after a restart with what it must have, and learns what became of the last write.
    fn compare(&mut self, list: &Value) {
        let newest = self.acknowledged.last().map_or(0, |(version, ..)| *version);
        assert!(version_of(list) >= newest, "version {newest} was acknowledged, but now is {}", version_of(list));
        for (name, known) in &mut self.known {
            let found = find(list, name);
            if found == *known {
                continue;
            }
            let under_way = self.under_way.take_if(|(written, _)| written == name);
            let Some((_, attempted)) = under_way else { panic!("{name} is {found:?} instead of {known:?}") };
            assert_eq!(found.as_ref().map(|(_, value)| value), attempted.as_ref(), "{name} was {known:?}");
            let before = known.as_ref().map_or(0, |(version, _)| *version);
            assert!(found.as_ref().is_none_or(|(version, _)| *version > before), "{name} is {found:?}, was {known:?}");
            *known = found;
        }
        self.under_way = None;
    }
}

fn one(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

/// The answer, if the server lives to give one.
async fn send(client: &Client, method: Method, path: &str, media_type: &str, body: Value) -> Option<Reply> {
    if body.is_null() {
        return within(client.try_send(method, path, &[], "")).await.ok();
    }
    within(client.try_send(method, path, &[("content-type", media_type)], body.to_string())).await.ok()
}

fn find(list: &Value, name: &str) -> State {
    let items = list["items"].as_array().expect("a list");
    let item = items.iter().find(|item| name_of(item) == name)?;
    Some((version_of(item), item["data"]["k"].as_str().unwrap_or_default().to_owned()))
}

/// Watches from where it was when the server died.
struct Watcher {
    seen: u64,
    events: Vec<Event>,
}

impl Watcher {
    fn new(start: u64) -> Watcher {
        Watcher { seen: start, events: Vec::new() }
    }

    /// Follows the changes up to a version, or to the end of the server.
    async fn follow(&mut self, client: &Client, until: Option<u64>) -> Result<(), crate::client::NoAnswer> {
        let mut watch = client.try_watch(CONFIG_MAPS, &format!("resourceVersion={}", self.seen)).await?;
        while until.is_none_or(|until| self.seen < until) {
            let Some(event) = watch.try_next().await? else { return Ok(()) };
            assert_ne!(event.kind, "ERROR", "{}", event.object);
            assert!(event.version() > self.seen, "{} came after {}", event.version(), self.seen);
            self.seen = event.version();
            self.events.push(event);
        }
        Ok(())
    }
}

fn check(start: u64, writers: &[Writer], watchers: &[Watcher], list: &Value) {
    let stories: Vec<Vec<(&str, &str, u64)>> =
        watchers.iter().map(|watcher| watcher.events.iter().map(Event::facts).collect()).collect();
    assert_eq!(stories[0], stories[1], "all who watch see the same");

    // Every acknowledged write was told, once, as it was acknowledged.
    let told: BTreeMap<u64, &Event> = watchers[0].events.iter().map(|event| (event.version(), event)).collect();
    let mut versions = std::collections::BTreeSet::new();
    for (version, name, value) in writers.iter().flat_map(|writer| &writer.acknowledged) {
        assert!(*version > start && versions.insert(*version), "version {version} was given twice");
        let event = told.get(version).unwrap_or_else(|| panic!("{name} at {version} was acknowledged, but never told"));
        assert_eq!((name_of(&event.object), &event.object["data"]["k"]), (&**name, &json!(value)), "at {version}");
        assert_ne!(event.kind, "DELETED", "at {version}");
    }
    for (version, name) in writers.iter().flat_map(|writer| &writer.deleted) {
        let mut later = told.range(version + 1..).map(|(_, event)| event);
        let next = later.find(|event| name_of(&event.object) == name).map(|event| &*event.kind);
        assert_eq!(next, Some("DELETED"), "the deletion of {name} at {version} was acknowledged");
    }

    // Told from the beginning, the story ends with what is there.
    let mut replayed: BTreeMap<&str, &Value> = BTreeMap::new();
    for event in &watchers[0].events {
        let (kind, name, version) = event.facts();
        let before = match kind {
            "DELETED" => replayed.remove(name),
            _ => replayed.insert(name, &event.object),
        };
        assert_eq!(before.is_some(), kind != "ADDED", "{kind} of {name} at {version}");
    }
    let items = list["items"].as_array().expect("a list").iter();
    let found: BTreeMap<&str, (u64, &Value)> =
        items.map(|item| (name_of(item), (version_of(item), &item["data"]))).collect();
    let replayed: BTreeMap<&str, (u64, &Value)> =
        replayed.into_iter().map(|(name, object)| (name, (version_of(object), &object["data"]))).collect();
    assert_eq!(replayed, found);
}
