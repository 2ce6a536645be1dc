//! Cases on the end of a store, and on what is there when it is opened again.

use super::*;

/// Writes something of every sort; the last write was answered.
async fn write_some(store: &dyn Store) -> Vec<Event> {
    let mut events = vec![];
    for number in 0..20 {
        events.push(set(store, &format!("/k/{}", number % 6), &number.to_string()).await);
    }
    events.push(remove(store, "/k/2").await);
    let draft = Draft::showing_revision_at(&br#"{"name":"a"}"#[..], 1);
    let write = Write { key: Key::new("/shows"), expect: Expect::Absent, change: Change::Put(draft) };
    events.push(store.write(write).await.expect("the key is free"));
    events
}

/// Compares a store that was opened again with what was written to it.
async fn check_all_there(store: &dyn Store, events: &[Event], want: &[(String, String)]) {
    assert_eq!(state(store, None).await, want);
    assert_eq!(store.current_revision().await.expect("an open store answers"), events.last().map(|last| last.revision));
    let recorder = Recorder::new();
    let _guard = store.watch("/", None, recorder.clone()).await.expect("history is whole");
    assert_eq!(recorder.events(), events);
    assert_eq!(*store.progress().borrow(), events.last().map(|last| last.revision));
}

/// "When `write` answers, the change survives": a close.
pub async fn what_was_written_is_there_after_a_close(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let events = write_some(&*store).await;
    let want = state(&*store, None).await;
    store.close().await;
    drop(store);
    check_all_there(&*fixture.open().await, &events, &want).await;
}

/// "When `write` answers, the change survives": the store is dropped without a close.
pub async fn what_was_written_is_there_after_a_drop(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let events = write_some(&*store).await;
    let want = state(&*store, None).await;
    drop(store);
    check_all_there(&*fixture.open().await, &events, &want).await;
}

/// "A number is never given twice."
pub async fn revisions_go_on_after_a_reopen(fixture: &dyn Fixture) {
    let mut last = None;
    for round in 0..4 {
        let store = fixture.open().await;
        assert_eq!(store.current_revision().await.expect("an open store answers"), last);
        let revision = set(&*store, "/k", &round.to_string()).await.revision;
        assert_eq!(revision, last.map_or(fixture.first_revision(), Revision::next));
        last = Some(revision);
        if round % 2 == 0 {
            store.close().await;
        }
    }
}

/// "A number is never given twice", also when neither objects nor history are left to count from.
pub async fn revisions_go_on_when_nothing_is_left(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&*store, 3).await;
    let mut last = None;
    for number in 0..3 {
        last = Some(remove(&*store, &format!("/n/{number}")).await.revision);
    }
    let last = last.expect("three were removed");
    store.compact(last).await.expect("the revision was written");
    store.close().await;
    drop(store);
    for _ in 0..2 {
        let store = fixture.open().await;
        assert_eq!(state(&*store, None).await, []);
        assert_eq!(store.current_revision().await.expect("an open store answers"), Some(last));
        store.close().await;
    }
    let store = fixture.open().await;
    assert_eq!(set(&*store, "/again", "x").await.revision, last.next());
}

/// History that is gone stays gone, and the state where it begins stays whole.
pub async fn compaction_outlasts_a_close(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let events = write_some(&*store).await;
    let oldest = events[14].revision;
    let want = (state(&*store, Some(oldest)).await, state(&*store, None).await);
    store.compact(oldest).await.expect("the revision was written");
    store.close().await;
    drop(store);
    let store = fixture.open().await;
    assert_eq!(store.oldest_revision(""), Some(oldest));
    assert_eq!((state(&*store, Some(oldest)).await, state(&*store, None).await), want);
    let recorder = Recorder::new();
    let _guard = store.watch("/", Some(oldest), recorder.clone()).await.expect("the oldest can be watched from");
    assert_eq!(recorder.events(), events[15..]);
}

/// `close` "refuses further writes, finishes those that wait".
pub async fn close_finishes_the_writes_that_wait(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..50 {
        let store = store.clone();
        writers.spawn(async move { (writer, store.write(put(&format!("/w/{writer}"), Expect::Absent, "x")).await) });
    }
    tokio::task::yield_now().await;
    store.close().await;
    let mut happened = vec![];
    while let Some(result) = writers.join_next().await {
        match result.expect("no writer panics") {
            (writer, Ok(_)) => happened.push(format!("/w/{writer}")),
            (_, Err(StoreError::Closed)) => {}
            (_, Err(other)) => panic!("expected it to be done or refused, got {other}"),
        }
    }
    drop(store);
    happened.sort();
    let there: Vec<_> = state(&*fixture.open().await, None).await.into_iter().map(|(key, _)| key).collect();
    assert_eq!(there, happened);
}

/// After a close everything is [`StoreError::Closed`].
pub async fn a_closed_store_refuses_everything(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let first = set(&*store, "/a", "x").await.revision;
    store.close().await;
    store.close().await;
    let closed = [
        store.get("/a").await.map(drop),
        store.list("/", Page::default()).await.map(drop),
        store.write(put("/a", Expect::Anything, "y")).await.map(drop),
        store.watch("/", None, Recorder::new()).await.map(drop),
        store.events("/", None, 1).await.map(drop),
        store.current_revision().await.map(drop),
        store.compact(first).await,
    ];
    for (number, result) in closed.into_iter().enumerate() {
        assert!(matches!(result, Err(StoreError::Closed)), "call {number}: {result:?}");
    }
}

/// Ended is "the last thing a sink hears".
pub async fn the_end_is_the_last_thing_that_a_sink_hears(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let recorder = Recorder::new();
    let _guard = store.watch("/", None, recorder.clone()).await.expect("history is whole");
    let last = fill(&*store, 3).await;
    store.close().await;
    recorder.until("the end", |heard| matches!(heard.ended[..], [StoreError::Closed])).await;
    assert_eq!(recorder.revisions(), from_first(fixture, last));
}
