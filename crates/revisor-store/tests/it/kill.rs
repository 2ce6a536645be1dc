//! A process that is killed again and again while it writes and watches.

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
use revisor_store::{Change, Draft, Expect, Key, News, Sink, Store, Write};
use revisor_version::Revision;

use crate::child;
use crate::dice::Dice;
use crate::fixture::Folder;
use crate::ledger::{Ledger, tell};

const KILLS: u64 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_store_loses_nothing_and_a_watcher_misses_nothing() {
    let seed = Dice::any_seed();
    let mut dice = Dice::new(seed);
    let folder = Folder::new();
    let mut ledger = Ledger::default();
    let mut watched = 0;
    let mut told = 0;
    for life in 0..KILLS {
        let context = format!("seed {seed}, life {life}");
        let output = live(folder.path(), &format!("{life} {watched}"), &mut dice);
        for line in child::said(&output) {
            let (what, event) = line.split_once(' ').expect("a line says what it tells");
            let revision = ledger.note_line(event);
            if what == "saw" {
                watched += 1;
                assert_eq!(revision, watched, "the watcher missed or doubled something ({context})");
            }
            told += 1;
        }
        // Not every time, so that the next life recovers from the kill itself.
        if dice.below(3) == 0 || life + 1 == KILLS {
            let store =
                EmbeddedStore::open(options(folder.path())).await.unwrap_or_else(|error| panic!("{error} ({context})"));
            ledger.check(&store).await;
            if dice.below(2) == 0 {
                store.close().await;
            }
        }
    }
    assert!(told > KILLS, "the children lived too short to show anything");
}

/// Runs a child and kills it: some as soon as it has started, most after some lines.
fn live(folder: &Path, argument: &str, dice: &mut Dice) -> String {
    let mut child = child::command("killed", folder, argument).spawn().expect("the child can be started");
    let mut pipe = child.stdout.take().expect("the output is piped");
    let (sender, pieces) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = pipe.read(&mut piece) {
            if sender.send(piece[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut output = vec![];
    if dice.below(8) == 0 {
        let moment = Duration::from_millis(dice.below(30));
        output.extend(pieces.recv_timeout(moment).unwrap_or_default());
    } else {
        let lines = dice.below(80) as usize;
        while output.iter().filter(|byte| **byte == b'>').count() <= lines {
            let piece = pieces.recv_timeout(Duration::from_secs(60)).expect("a child that is alive goes on");
            output.extend(piece);
        }
    }
    child.kill().expect("the child can be killed");
    child.wait().expect("the child has ended");
    reader.join().expect("the reader does not panic");
    // What was in the pipe when the child died was said.
    pieces.try_iter().for_each(|piece| output.extend(piece));
    String::from_utf8_lossy(&output).into_owned()
}

fn options(folder: &Path) -> EmbeddedOptions {
    let mut options = EmbeddedOptions::new(folder);
    // Small, so that history is forgotten and tables are written and merged all the time. The window is still longer
    // than anything that a watcher can be behind.
    options.tuning.memtable_bytes = 16 << 10;
    options.history.events = 1000;
    options
}

/// Tells the parent of each event.
struct Teller(mpsc::Sender<String>);

impl Sink for Teller {
    fn deliver(&self, news: News<'_>) {
        if let News::Events(events) = news {
            // The receiver ends with the process only.
            events.iter().for_each(|event| drop(self.0.send(tell(event))));
        }
    }
}

/// Writers that never stop, and a watcher that resumes where the parent last heard of it.
pub(crate) async fn child(folder: &Path, argument: &str) {
    let (life, watched) = argument.split_once(' ').expect("the parent tells where it is");
    let store = Arc::new(EmbeddedStore::open(options(folder)).await.expect("the store can be opened"));
    let (sender, events) = mpsc::channel();
    std::thread::spawn(move || events.iter().for_each(|event| child::say(&format!("saw {event}"))));
    let after = Revision::new(watched.parse().expect("the parent tells a number"));
    let _guard = store.watch("", after, Arc::new(Teller(sender))).await.expect("the watcher can resume");
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let (store, life) = (store.clone(), life.to_owned());
        writers.spawn(async move {
            for number in 0.. {
                let key = Key::new(format!("/w/{writer}/{}", number % 7));
                let there = store.get(key.as_str()).await.expect("an open store answers").is_some();
                let change = if there && number % 5 == 0 {
                    Change::Delete
                } else {
                    Change::Put(Draft::opaque(format!("{life}-{writer}-{number}-{}", "x".repeat(number % 300))))
                };
                let event =
                    store.write(Write { key, expect: Expect::Anything, change }).await.expect("the write happens");
                child::say(&format!("ack {}", tell(&event)));
            }
        });
    }
    while let Some(result) = writers.join_next().await {
        result.expect("no writer panics");
    }
}
