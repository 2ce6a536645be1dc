//! Cases on history: how far it reaches, and what compaction leaves.

use super::*;

/// `oldest_revision` is "`None` while all of history is there".
pub async fn history_is_whole_at_first(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    assert_eq!(store.oldest_revision(), None);
    fill(&*store, 5).await;
    assert_eq!(store.oldest_revision(), None);
    assert_eq!(state(&*store, Some(Revision::FIRST)).await.len(), 1);
}

/// "The state at the oldest revision can be read and watched from; before it everything is Compacted."
pub async fn the_oldest_revision_can_be_read_and_watched_from(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let mut states = vec![];
    for number in 0..12 {
        let key = format!("/k/{}", number % 3);
        let committed = if number % 5 == 4 { remove(&*store, &key).await } else { set(&*store, &key, "x").await };
        states.push((committed.revision, state(&*store, None).await));
    }
    let oldest = states[6].0;
    store.compact(oldest).await.expect("the revision was written");
    assert_eq!(store.oldest_revision(), Some(oldest));
    for (revision, want) in states {
        let listing = store.list("/", page_at(revision)).await;
        let recorder = Recorder::new();
        let watch = store.watch("/", Some(revision), recorder.clone()).await;
        if revision < oldest {
            for error in [listing.expect_err("compacted"), watch.expect_err("compacted")] {
                let told =
                    matches!(error, StoreError::Compacted { asked, oldest: at } if (asked, at) == (revision, oldest));
                assert!(told, "{error:?}");
            }
            assert_eq!(recorder.events(), []);
        } else {
            assert_eq!(shown(&listing.expect("not compacted")), want);
            watch.expect("not compacted");
            assert_eq!(recorder.revisions(), (revision.get() + 1..=12).collect::<Vec<_>>());
        }
    }
}

/// The oldest revision "never passes the newest", and the newest state stays.
pub async fn compaction_keeps_the_newest_state(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&*store, 5).await;
    let newest = remove(&*store, "/n/3").await.revision;
    let want = state(&*store, None).await;
    store.compact(newest).await.expect("the revision was written");
    assert_eq!(state(&*store, None).await, want);
    assert_eq!(state(&*store, Some(newest)).await, want);
    let recorder = Recorder::new();
    let _guard = store.watch("/", Some(newest), recorder.clone()).await.expect("the newest can be watched from");
    assert_eq!(set(&*store, "/n/3", "again").await.revision, newest.next());
    assert_eq!(recorder.revisions(), [newest.next().get()]);
    assert_eq!(state(&*store, Some(newest)).await, want);
}

/// "To compact to where history already begins is no error."
pub async fn to_compact_to_where_history_begins_is_no_error(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let last = fill(&*store, 5).await;
    let oldest = last.previous().expect("there are five");
    for revision in [oldest, oldest, Revision::FIRST] {
        store.compact(revision).await.expect("the revision was written");
        assert_eq!(store.oldest_revision(), Some(oldest));
    }
}

/// "… to a revision that was not written yet is Future."
pub async fn to_compact_to_the_future_fails(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let result = store.compact(Revision::FIRST).await;
    assert!(matches!(result, Err(StoreError::Future { newest: None, .. })), "{result:?}");
    let last = fill(&*store, 3).await;
    let result = store.compact(last.next()).await;
    assert!(matches!(result, Err(StoreError::Future { newest: Some(newest), .. }) if newest == last), "{result:?}");
    assert_eq!(store.oldest_revision(), None);
}

/// Sinks are told that history "before this revision is gone".
pub async fn sinks_hear_of_compaction(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let recorder = Recorder::new();
    let _guard = store.watch("/nothing/", None, recorder.clone()).await.expect("history is whole");
    let last = fill(&*store, 3).await;
    store.compact(last).await.expect("the revision was written");
    recorder.until("compaction", |heard| heard.compacted.last() == Some(&last)).await;
}
