//! [`Ledger`]: everything that was ever seen of a store's history, to hold the store to it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use revisor_store::{Event, News, Page, Sink, Store};
use revisor_version::Revision;

/// One write: the key, and the text that was put there or nothing for a deletion.
pub(crate) type Seen = (String, Option<String>);

/// Writes by revision. What was seen once can never read differently.
#[derive(Default)]
pub(crate) struct Ledger {
    writes: BTreeMap<u64, Seen>,
}

impl Ledger {
    /// Notes that `write` was seen at `revision`.
    pub(crate) fn note(&mut self, revision: u64, write: Seen) {
        if let Some(before) = self.writes.insert(revision, write.clone()) {
            assert_eq!(before, write, "revision {revision} was given twice");
        }
    }

    /// Notes an event as a child tells it, see [`tell`].
    pub(crate) fn note_line(&mut self, line: &str) -> u64 {
        let mut words = line.split(' ');
        let revision = words.next().and_then(|word| word.parse().ok()).expect("a line begins with a revision");
        let key = words.next().expect("then comes the key").to_owned();
        self.note(revision, (key, words.next().map(str::to_owned)));
        revision
    }

    /// The newest revision that was seen.
    pub(crate) fn newest(&self) -> u64 {
        self.writes.last_key_value().map_or(0, |(revision, _)| *revision)
    }

    /// What keys hold after the writes up to `revision`.
    pub(crate) fn state(&self, revision: u64) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        for (key, text) in self.writes.range(..=revision).map(|(_, write)| write) {
            match text {
                Some(text) => state.insert(key.clone(), text.clone()),
                None => state.remove(key),
            };
        }
        state
    }

    /// Checks that an opened store has lost nothing that was seen, and tells the same about every revision that it
    /// still knows. Notes what is new.
    pub(crate) async fn check(&mut self, store: &dyn Store) {
        let newest = store.current_revision().await.expect("an open store answers").map_or(0, Revision::get);
        assert!(newest >= self.newest(), "revision {} is lost, the newest is {newest}", self.newest());
        let oldest = store.oldest_revision("");
        for event in replay(store, oldest).await {
            self.note(event.revision.get(), (event.key().to_string(), text(&event)));
        }
        assert_eq!(self.writes.len() as u64, newest, "there is a write for every revision");
        for revision in oldest.map_or(1, Revision::get)..=newest {
            // Every state is the fold of the writes; to read a few of them is enough.
            if revision == newest || revision % 17 == 0 {
                let page = Page { at: Revision::new(revision), ..Page::default() };
                let listing = store.list("/", page).await.expect("the revision is within history");
                let texts = listing.entries.iter();
                let state: BTreeMap<_, _> = texts.map(|entry| (entry.key().to_string(), utf8(entry.bytes()))).collect();
                assert_eq!(state, self.state(revision), "the state at {revision}");
            }
        }
    }
}

/// An event in a line, for [`Ledger::note_line`].
pub(crate) fn tell(event: &Event) -> String {
    let text = text(event).map_or(String::new(), |text| format!(" {text}"));
    format!("{} {}{text}", event.revision, event.key())
}

fn text(event: &Event) -> Option<String> {
    event.new.as_ref().map(|entry| utf8(entry.bytes()))
}

fn utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All events after `after`, without a gap.
pub(crate) async fn replay(store: &dyn Store, after: Option<Revision>) -> Vec<Event> {
    #[derive(Default)]
    struct Events(Mutex<Vec<Event>>);
    impl Sink for Events {
        fn deliver(&self, news: News<'_>) {
            if let News::Events(events) = news {
                self.0.lock().expect("not poisoned").extend_from_slice(events);
            }
        }
    }
    let heard = std::sync::Arc::new(Events::default());
    drop(store.watch("", after, heard.clone()).await.expect("history reaches back to where it begins"));
    let events = std::mem::take(&mut *heard.0.lock().expect("not poisoned"));
    for (number, event) in (after.map_or(1, |after| after.get() + 1)..).zip(&events) {
        assert_eq!(event.revision.get(), number, "events come without a gap");
    }
    events
}
