//! Random operations, reopening included, against a plain model: a list of events and the states between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
use revisor_store::{Change, Draft, Entry, Event, Expect, Key, Page, Store, StoreError, Write};
use revisor_version::Revision;
use tempfile::TempDir;

use crate::ledger::replay;

#[derive(Debug, Clone)]
enum Operation {
    /// A write to one of a few keys, with a precondition that is chosen when the state is known.
    Write {
        key: u8,
        expect: Belief,
        put: bool,
        length: u16,
        shows: bool,
    },
    /// Compaction to somewhere in history, in 255ths.
    Compact(u8),
    Close,
    Drop,
}

/// What a writer believes about its key.
#[derive(Debug, Clone, Copy)]
enum Belief {
    Right,
    Absent,
    Outdated,
    Nothing,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let belief = prop_oneof![
        4 => Just(Belief::Right),
        1 => Just(Belief::Absent),
        1 => Just(Belief::Outdated),
        2 => Just(Belief::Nothing),
    ];
    let write = (0..6u8, belief, prop::bool::weighted(0.75), 0..600u16, any::<bool>())
        .prop_map(|(key, expect, put, length, shows)| Operation::Write { key, expect, put, length, shows });
    let operation = prop_oneof![
        24 => write,
        2 => any::<u8>().prop_map(Operation::Compact),
        1 => Just(Operation::Close),
        1 => Just(Operation::Drop),
    ];
    prop::collection::vec(operation, 1..60)
}

/// The events that happened, and the state after each of them.
#[derive(Default)]
struct Model {
    events: Vec<Event>,
    states: Vec<BTreeMap<Key, Arc<Entry>>>,
}

impl Model {
    fn newest(&self) -> Option<Revision> {
        self.events.last().map(|event| event.revision)
    }

    fn state(&self) -> BTreeMap<Key, Arc<Entry>> {
        self.states.last().cloned().unwrap_or_default()
    }

    /// Performs a write as the contract says, and compares what the store said.
    fn apply(&mut self, write: &Write, said: Result<Event, StoreError>) {
        let mut state = self.state();
        let old = state.get(&write.key).cloned();
        let holds = match write.expect {
            Expect::Absent => old.is_none(),
            Expect::At(revision) => old.as_ref().is_some_and(|entry| entry.revision() == revision),
            Expect::Anything => true,
        };
        if !holds || (old.is_none() && write.change.needs_entry()) {
            match said {
                Err(StoreError::Conflict { key, current }) => assert_eq!((key, current), (write.key.clone(), old)),
                other => panic!("expected a conflict, got {other:?}"),
            }
            return;
        }
        let said = said.expect("the precondition holds");
        let revision = self.newest().map_or(Revision::FIRST, Revision::next);
        let new = write.change.draft().map(|draft| Arc::new(Entry::new(write.key.clone(), revision, draft)));
        assert_eq!((said.revision, &said.old, &said.new), (revision, &old, &new));
        match new {
            Some(entry) => state.insert(write.key.clone(), entry),
            None => state.remove(&write.key),
        };
        self.events.push(said);
        self.states.push(state);
    }

    /// Compares every state and every suffix of history that the store still has.
    async fn check(&self, store: &EmbeddedStore) {
        assert_eq!(store.current_revision().await.expect("an open store answers"), self.newest());
        let oldest = store.oldest_revision().map_or(0, |oldest| oldest.get() as usize);
        for number in oldest..=self.events.len() {
            let at = Revision::new(number as u64);
            if let Some(at) = at {
                let page = Page { at: Some(at), ..Page::default() };
                let listing = store.list("", page).await.expect("the revision is within history");
                assert!(listing.entries.iter().eq(self.states[number - 1].values()), "the state at {at}");
            }
            assert_eq!(replay(store, at).await, self.events[number..], "the events after {number}");
        }
        let listing = store.list("", Page::default()).await.expect("an open store can be listed");
        assert!(listing.entries.iter().eq(self.state().values()));
    }
}

async fn run(operations: Vec<Operation>, events: usize) {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let mut options = EmbeddedOptions::new(folder.path());
    options.tuning.memtable_bytes = 4 << 10;
    options.history.events = events;
    let open = async || EmbeddedStore::open(options.clone()).await.expect("the store can be opened");
    let mut store = open().await;
    let mut model = Model::default();
    for operation in operations {
        match operation {
            Operation::Write { key, expect, put, length, shows } => {
                let key = Key::new(format!("/k/{key}"));
                let current = model.state().get(&key).map(|entry| entry.revision());
                let expect = match expect {
                    Belief::Right => current.map_or(Expect::Absent, Expect::At),
                    Belief::Absent => Expect::Absent,
                    Belief::Outdated => current.and_then(Revision::previous).map_or(Expect::Absent, Expect::At),
                    Belief::Nothing => Expect::Anything,
                };
                let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(length.into()));
                let draft = if shows { Draft::showing_revision_at(text, 1) } else { Draft::opaque(text) };
                let change = if put { Change::Put(draft) } else { Change::Delete };
                let write = Write { key, expect, change };
                model.apply(&write, store.write(write.clone()).await);
            }
            Operation::Compact(part) => {
                if let Some(revision) = Revision::new(model.events.len() as u64 * u64::from(part) / 255) {
                    store.compact(revision).await.expect("the revision was written");
                    assert!(store.oldest_revision() >= Some(revision));
                }
            }
            Operation::Close => {
                let oldest = store.oldest_revision();
                store.close().await;
                drop(store);
                store = open().await;
                assert_eq!(store.oldest_revision(), oldest, "a close keeps the beginning of history");
                model.check(&store).await;
            }
            Operation::Drop => {
                drop(store);
                store = open().await;
                model.check(&store).await;
            }
        }
    }
    model.check(&store).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_does_what_the_model_does(operations in operations(), events in prop_oneof![Just(12usize), Just(100_000)]) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        runtime.expect("a runtime can be started").block_on(run(operations, events));
    }
}
