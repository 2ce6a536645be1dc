//! Random operations, reopening included, against a plain model: a list of events and the states between them. The keys
//! are of two resources, one of which is written more than its share of history holds.

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
    let write = (0..8u8, belief, prop::bool::weighted(0.75), 0..600u16, any::<bool>())
        .prop_map(|(key, expect, put, length, shows)| Operation::Write { key, expect, put, length, shows });
    let operation = prop_oneof![
        24 => write,
        2 => any::<u8>().prop_map(Operation::Compact),
        1 => Just(Operation::Close),
        1 => Just(Operation::Drop),
    ];
    prop::collection::vec(operation, 1..60)
}

/// What the keys begin with.
const RESOURCES: [&str; 2] = ["/k/", "/q/"];

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

    /// Compares every state and every suffix of history that the store still has, of all keys and of each resource,
    /// whose history may be longer.
    async fn check(&self, store: &EmbeddedStore, events: usize) {
        assert_eq!(store.current_revision().await.expect("an open store answers"), self.newest());
        assert!(store.history_events() <= events as u64, "{} events", store.history_events());
        let oldest = store.oldest_revision("");
        assert_eq!(replay(store, oldest).await, self.events[index(oldest)..]);
        assert_eq!(oldest, RESOURCES.iter().map(|prefix| store.oldest_revision(prefix)).max().flatten());
        for prefix in ["", "/k/", "/q/", "/k/1"] {
            let is_own = |key: &Key| key.as_str().starts_with(prefix);
            let oldest = store.oldest_revision(prefix);
            for number in index(oldest)..=self.events.len() {
                let at = Revision::new(number as u64);
                if let Some(at) = at {
                    let page = Page { at: Some(at), ..Page::default() };
                    let listing = store.list(prefix, page).await.expect("the revision is within history");
                    let want = self.states[number - 1].values().filter(|entry| is_own(entry.key()));
                    assert!(listing.entries.iter().eq(want), "the state of {prefix:?} at {at}");
                }
                let page = store.events(prefix, at, usize::MAX).await.expect("the revision is within history");
                assert_eq!(page.through, self.newest());
                let want = self.events[number..].iter().filter(|event| is_own(event.key()));
                assert!(page.events.iter().eq(want), "the events of {prefix:?} after {number}");
            }
            if let Some(before) = oldest.and_then(Revision::previous) {
                let page = Page { at: Some(before), ..Page::default() };
                let result = store.list(prefix, page).await;
                assert!(matches!(result, Err(StoreError::Compacted { .. })), "{prefix:?} at {before}: {result:?}");
            }
        }
        let listing = store.list("", Page::default()).await.expect("an open store can be listed");
        assert!(listing.entries.iter().eq(self.state().values()));
    }
}

/// How many events there are up to `oldest`.
fn index(oldest: Option<Revision>) -> usize {
    oldest.map_or(0, |oldest| oldest.get() as usize)
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
                // One key of eight is of the quiet resource.
                let key = Key::new(format!("{}{key}", RESOURCES[usize::from(key == 7)]));
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
                    assert!(store.oldest_revision("") >= Some(revision));
                }
            }
            Operation::Close => {
                let oldest = RESOURCES.map(|prefix| store.oldest_revision(prefix));
                store.close().await;
                drop(store);
                store = open().await;
                let again = RESOURCES.map(|prefix| store.oldest_revision(prefix));
                assert_eq!(again, oldest, "a close keeps the beginning of history");
                model.check(&store, events).await;
            }
            Operation::Drop => {
                drop(store);
                store = open().await;
                model.check(&store, events).await;
            }
        }
    }
    model.check(&store, events).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_does_what_the_model_does(operations in operations(), events in prop_oneof![Just(12usize), Just(100_000)]) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        runtime.expect("a runtime can be started").block_on(run(operations, events));
    }
}
