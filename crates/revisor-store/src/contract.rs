//! The contract suite: one case per sentence of the documentation of [`Store`], for every implementation to run.
//!
//! An implementation brings a [`Fixture`] and calls [`contract_tests!`](crate::contract_tests) with it, which makes a
//! test of each case:
//!
//! ```text
//! mod contract {
//!     revisor_store::contract_tests!(MyFixture::new());
//! }
//! ```
//!
//! Cases wait for what they need to see; none sleeps.

mod history;
mod reads;
mod reopening;
mod watches;
mod writes;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use revisor_version::Revision;
use tokio::sync::Notify;

pub use history::*;
pub use reads::*;
pub use reopening::*;
pub use watches::*;
pub use writes::*;

use crate::{
    BoxFuture, Change, Committed, Draft, Event, EventPage, Expect, Key, Listing, News, Page, Sink, Store, StoreError,
    Write,
};

/// How a case gets at the store under test. Each case has a fixture of its own.
pub trait Fixture: Send + Sync {
    /// Opens the store: empty at first, and with what was written to it when it was closed or dropped before.
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>>;

    /// The revision that the first write gets.
    fn first_revision(&self) -> Revision {
        Revision::FIRST
    }
}

/// Makes a `#[tokio::test]` of each case of the [contract](crate::contract), with `$fixture` evaluated for each.
#[macro_export]
macro_rules! contract_tests {
    ($fixture:expr) => {
        $crate::contract_tests! { @each $fixture;
            the_first_write_is_the_first_revision
            every_write_gets_the_next_revision
            a_write_that_does_not_happen_takes_no_revision
            a_write_answers_with_what_was_there_and_what_is_now
            preconditions_hold_exactly_when_they_say_so
            to_delete_nothing_is_a_conflict
            to_mark_is_to_put_where_something_is
            a_conflict_shows_what_is_there
            of_two_writers_with_one_precondition_one_wins
            an_object_shows_its_revision
            a_dropped_write_may_or_may_not_happen
            get_reads_the_newest_entry
            an_empty_store_lists_nothing
            a_listing_is_ordered_and_keeps_to_its_prefix
            a_listing_comes_in_pages
            a_listing_at_a_revision_is_the_state_of_then
            the_pages_of_one_revision_are_one_state
            a_listing_of_the_future_fails
            a_write_is_there_to_be_read_when_it_answers
            a_watch_hears_of_every_later_write_once_and_in_order
            a_watch_keeps_to_its_prefix
            a_watch_from_the_past_hears_it_before_it_is_set_up
            a_watch_from_the_beginning_hears_all
            a_watch_from_the_future_fails
            a_watch_ends_with_its_guard
            sinks_and_progress_have_a_write_when_it_answers
            a_watch_that_starts_among_writes_misses_nothing
            history_is_whole_at_first
            the_oldest_revision_can_be_read_and_watched_from
            events_of_the_past_come_in_pages
            events_reach_as_far_as_history
            a_part_of_the_keys_reaches_back_as_far_as_all_of_them
            compaction_keeps_the_newest_state
            to_compact_to_where_history_begins_is_no_error
            to_compact_to_the_future_fails
            sinks_hear_of_compaction
            what_was_written_is_there_after_a_close
            what_was_written_is_there_after_a_drop
            revisions_go_on_after_a_reopen
            revisions_go_on_when_nothing_is_left
            compaction_outlasts_a_close
            close_finishes_the_writes_that_wait
            a_closed_store_refuses_everything
            the_end_is_the_last_thing_that_a_sink_hears
        }
    };
    (@each $fixture:expr; $($case:ident)*) => {
        $(
            #[::tokio::test]
            async fn $case() {
                $crate::contract::$case(&$fixture).await;
            }
        )*
    };
}

/// A sink that remembers what it hears.
#[derive(Debug, Default)]
struct Recorder {
    heard: Mutex<Heard>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Heard {
    events: Vec<Event>,
    compacted: Vec<Revision>,
    ended: Vec<StoreError>,
}

impl Sink for Recorder {
    fn deliver(&self, news: News<'_>) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(heard.ended.is_empty(), "{news:?} came after the end");
        match news {
            News::Events(events) => {
                assert!(!events.is_empty(), "a delivery without events");
                heard.events.extend_from_slice(events);
            }
            News::Compacted(oldest) => heard.compacted.push(oldest),
            News::Replaced { revision, .. } => panic!("nothing was missed, and yet all is told anew at {revision}"),
            News::Ended(error) => heard.ended.push(error),
        }
        self.changed.notify_one();
    }
}

impl Recorder {
    fn new() -> Arc<Recorder> {
        Arc::default()
    }

    fn events(&self) -> Vec<Event> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).events.clone()
    }

    fn revisions(&self) -> Vec<u64> {
        self.events().iter().map(|event| event.revision.get()).collect()
    }

    /// Waits until what was heard is as `wanted` says.
    async fn until(&self, what: &str, wanted: impl Fn(&Heard) -> bool) {
        let waiting = async {
            loop {
                if wanted(&self.heard.lock().unwrap_or_else(PoisonError::into_inner)) {
                    return;
                }
                self.changed.notified().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), waiting).await;
        assert!(waited.is_ok(), "waited in vain for {what}; heard {:?}", self.heard);
    }
}

fn put(key: &str, expect: Expect, text: &str) -> Write {
    Write { key: Key::new(key), expect, change: Change::Put(Draft::opaque(text.to_owned())) }
}

fn delete(key: &str, expect: Expect) -> Write {
    Write { key: Key::new(key), expect, change: Change::Delete }
}

/// Puts `text` whatever is there.
async fn set(store: &dyn Store, key: &str, text: &str) -> Committed {
    store.write(put(key, Expect::Anything, text)).await.expect("a write without precondition happens")
}

/// Deletes what is there.
async fn remove(store: &dyn Store, key: &str) -> Committed {
    store.write(delete(key, Expect::Anything)).await.expect("what is there can be deleted")
}

/// Writes `/n/0`, `/n/1` and so on, and returns the revision of the last.
async fn fill(store: &dyn Store, count: usize) -> Revision {
    let mut last = None;
    for number in 0..count {
        last = Some(set(store, &format!("/n/{number}"), "filled").await.revision);
    }
    last.expect("at least one was asked for")
}

/// The revision of the `number`th write, counted from one.
fn nth(fixture: &dyn Fixture, number: u64) -> Revision {
    Revision::new(fixture.first_revision().get() + number - 1).expect("writes are counted from one")
}

/// The numbers of all revisions from the first to `last`.
fn from_first(fixture: &dyn Fixture, last: Revision) -> Vec<u64> {
    (fixture.first_revision().get()..=last.get()).collect()
}

fn page_at(at: Revision) -> Page {
    Page { at: Some(at), ..Page::default() }
}

/// A listing as keys and texts, to compare and to read.
fn shown(listing: &Listing) -> Vec<(String, String)> {
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    listing.entries.iter().map(|entry| (entry.key().to_string(), show(entry.bytes()))).collect()
}

/// What the store holds under `/`, now or at a revision.
async fn state(store: &dyn Store, at: Option<Revision>) -> Vec<(String, String)> {
    shown(&store.list("/", Page { at, ..Page::default() }).await.expect("the state can be read"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_case_is_among_the_tests_that_the_macro_makes() {
        let listed = include_str!("contract.rs");
        let sources = [
            include_str!("contract/history.rs"),
            include_str!("contract/reads.rs"),
            include_str!("contract/reopening.rs"),
            include_str!("contract/watches.rs"),
            include_str!("contract/writes.rs"),
        ];
        for line in sources.iter().flat_map(|source| source.lines()) {
            if let Some(rest) = line.strip_prefix("pub async fn ") {
                let name = rest.split('(').next().expect("split yields a first part");
                assert!(listed.contains(&format!("            {name}\n")), "{name} is missing from contract_tests!");
            }
        }
    }
}
