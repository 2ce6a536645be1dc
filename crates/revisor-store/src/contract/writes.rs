//! Cases on writes: revisions, preconditions, answers.

use super::*;

/// "… one sequence over all keys, starting at 1, or at the first number that a backend has for others."
pub async fn the_first_write_is_the_first_revision(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    assert_eq!(store.current_revision().await.expect("an open store answers"), None);
    let first = fixture.first_revision();
    assert_eq!(set(&*store, "/a", "1").await.revision, first);
    assert_eq!(store.current_revision().await.expect("an open store answers"), Some(first));
}

/// "Every write that happens gets the next number of one sequence over all keys."
pub async fn every_write_gets_the_next_revision(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let mut before = set(&*store, "/a", "1").await.revision;
    for write in [
        put("/b", Expect::Absent, "1"),
        put("/a", Expect::At(before), "2"),
        delete("/b", Expect::Anything),
        put("/b", Expect::Absent, "2"),
        put("/a", Expect::Anything, "2"),
    ] {
        let committed = store.write(write.clone()).await.expect("the precondition holds");
        assert_eq!(committed.revision, before.next(), "{write:?}");
        before = committed.revision;
    }
}

/// "A write that does not happen takes none."
pub async fn a_write_that_does_not_happen_takes_no_revision(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let first = set(&*store, "/a", "1").await.revision;
    store.write(put("/a", Expect::Absent, "2")).await.expect_err("the key is taken");
    store.write(delete("/b", Expect::Anything)).await.expect_err("there is nothing to delete");
    assert_eq!(store.current_revision().await.expect("an open store answers"), Some(first));
    assert_eq!(set(&*store, "/b", "1").await.revision, first.next());
}

/// A write answers with its event.
pub async fn a_write_answers_with_what_was_there_and_what_is_now(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let created = set(&*store, "/a", "1").await;
    assert_eq!((created.key().as_str(), &created.old), ("/a", &None));
    let first = created.new.expect("a put leaves something");
    assert_eq!((first.revision(), &first.bytes()[..]), (created.revision, &b"1"[..]));
    let replaced = set(&*store, "/a", "2").await;
    assert_eq!(replaced.old.as_ref(), Some(&first));
    let deleted = remove(&*store, "/a").await;
    assert_eq!((deleted.old, deleted.new), (replaced.new, None));
}

/// The meaning of each [`Expect`].
pub async fn preconditions_hold_exactly_when_they_say_so(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let other = set(&*store, "/other", "x").await.revision;
    let old = set(&*store, "/there", "1").await.revision;
    for (number, (name, key, expect, holds)) in [
        ("absent, and it is", "/new", Expect::Absent, true),
        ("absent, but it is there", "/there", Expect::Absent, false),
        ("at its revision", "/there", Expect::At(old), true),
        ("at the revision it had before", "/there", Expect::At(old), false),
        ("at the revision of another key", "/there", Expect::At(other), false),
        ("at a revision, but it is absent", "/nowhere", Expect::At(old), false),
        ("anything, and it is absent", "/newer", Expect::Anything, true),
        ("anything, and it is there", "/there", Expect::Anything, true),
    ]
    .into_iter()
    .enumerate()
    {
        let before = state(&*store, None).await;
        let result = store.write(put(key, expect, &format!("value {number}"))).await;
        assert_eq!(result.is_ok(), holds, "{name}: {result:?}");
        assert_eq!(state(&*store, None).await != before, holds, "{name}");
    }
    let now = store.get("/there").await.expect("an open store answers").expect("it was put").revision();
    store.write(delete("/there", Expect::At(old))).await.expect_err("it has moved on");
    store.write(delete("/there", Expect::Absent)).await.expect_err("it is there");
    store.write(delete("/there", Expect::At(now))).await.expect("it is at this revision");
}

/// "To delete a key that holds nothing is a Conflict."
pub async fn to_delete_nothing_is_a_conflict(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let once = set(&*store, "/once", "1").await.revision;
    remove(&*store, "/once").await;
    for expect in [Expect::Anything, Expect::Absent, Expect::At(once)] {
        for key in ["/once", "/never"] {
            let result = store.write(delete(key, expect)).await;
            let conflict =
                matches!(&result, Err(StoreError::Conflict { key: of, current: None }) if of.as_str() == key);
            assert!(conflict, "{key} expecting {expect:?}: {result:?}");
        }
    }
}

/// A mark is "stored in place of what is there"; "to mark a key that holds nothing is a Conflict".
pub async fn to_mark_is_to_put_where_something_is(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let mark =
        || Write { key: Key::new("/a"), expect: Expect::Anything, change: Change::Mark(Draft::opaque("marked")) };
    let refused = store.write(mark()).await;
    assert!(matches!(refused, Err(StoreError::Conflict { current: None, .. })), "{refused:?}");
    set(&*store, "/a", "x").await;
    store.write(mark()).await.expect("there is something to mark");
    assert_eq!(state(&*store, None).await, [("/a".to_owned(), "marked".to_owned())]);
}

/// "… the other gets Conflict with what is there now."
pub async fn a_conflict_shows_what_is_there(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let first = set(&*store, "/a", "1").await.revision;
    let second = set(&*store, "/a", "2").await;
    match store.write(put("/a", Expect::At(first), "3")).await {
        Err(StoreError::Conflict { key, current }) => {
            assert_eq!(key.as_str(), "/a");
            assert_eq!(current, second.new);
        }
        other => panic!("expected a conflict, got {other:?}"),
    }
}

/// "Of two writers with one precondition, one wins (S3)."
pub async fn of_two_writers_with_one_precondition_one_wins(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let mut expect = Expect::Absent;
    for round in 0..10 {
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..16 {
            let store = store.clone();
            let write = put("/contested", expect, &format!("{round} by {writer}"));
            writers.spawn(async move { store.write(write).await });
        }
        let mut winner = None;
        let mut losers = vec![];
        while let Some(result) = writers.join_next().await {
            match result.expect("no writer panics") {
                Ok(committed) => assert_eq!(winner.replace(committed), None, "two winners"),
                Err(StoreError::Conflict { current, .. }) => losers.push(current),
                Err(other) => panic!("expected a conflict, got {other}"),
            }
        }
        let winner = winner.expect("one wins");
        assert!(losers.iter().all(|current| *current == winner.new), "a loser saw something else: {losers:?}");
        expect = Expect::At(winner.revision);
    }
}

/// The revision is spliced into the bytes of a draft that shows it.
pub async fn an_object_shows_its_revision(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let draft = Draft::showing_revision_at(&br#"{"metadata":{"name":"a"}}"#[..], 13);
    let write = Write { key: Key::new("/a"), expect: Expect::Absent, change: Change::Put(draft.clone()) };
    let revision = store.write(write).await.expect("the key is free").revision;
    let entry = store.get("/a").await.expect("an open store answers").expect("it was put");
    assert_eq!(
        String::from_utf8_lossy(entry.bytes()),
        format!(r#"{{"metadata":{{"resourceVersion":"{revision}","name":"a"}}}}"#)
    );
    assert_eq!(entry.to_draft(), draft);
}

/// "To drop the future of a `write` does not take the write back: it may or may not happen."
pub async fn a_dropped_write_may_or_may_not_happen(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let recorder = Recorder::new();
    let _guard = store.watch("/", None, recorder.clone()).await.expect("history is whole");
    for number in 0..20 {
        let key = format!("/dropped/{number}");
        let mut write = store.write(put(&key, Expect::Absent, "x"));
        // Polled once, so that it may be under way, and then dropped.
        std::future::poll_fn(|context| {
            let _ = write.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
        drop(write);
    }
    set(&*store, "/last", "x").await;
    // Some may happen only now.
    let listing = store.list("/", Page::default()).await.expect("the state can be read");
    let last = listing.revision.expect("there was a write");
    let happened = listing.entries.len() as u64;
    assert_eq!(last, nth(fixture, happened), "what happened has a revision each, and nothing else has");
    let heard = recorder.revisions();
    assert_eq!(heard.get(..listing.entries.len()), Some(&from_first(fixture, last)[..]));
}
