//! Cases on history: how far it reaches, and what compaction leaves.

use super::*;

/// `oldest_revision` is "`None` while all of history is there".
pub async fn history_is_whole_at_first(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    assert_eq!(store.oldest_revision(""), None);
    fill(&*store, 5).await;
    assert_eq!(store.oldest_revision(""), None);
    assert_eq!(state(&*store, Some(fixture.first_revision())).await.len(), 1);
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
    assert_eq!(store.oldest_revision(""), Some(oldest));
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
            assert_eq!(recorder.revisions(), (revision.get() + 1..=nth(fixture, 12).get()).collect::<Vec<_>>());
        }
    }
}

/// "The writes after `after` to keys that start with `prefix`, in order: at most `limit` …", and "who follows `through`
/// gets each once".
pub async fn events_of_the_past_come_in_pages(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let mut written = vec![];
    for number in 0..60 {
        let key = ["/a/1", "/a/2", "/b/1", "/ab"][number * 5 % 7 % 4];
        let there = store.get(key).await.expect("an open store answers").is_some();
        let is_deletion = there && number % 4 == 3;
        written.push(if is_deletion {
            remove(&*store, key).await
        } else {
            set(&*store, key, &number.to_string()).await
        });
    }
    let newest = written.last().map(|event| event.revision);
    for (prefix, after, limit) in
        [("", 0, 7), ("/a/", 0, 1), ("/a", 13, 4), ("/b/", 30, 1000), ("/c/", 5, 3), ("/", 60, 1)]
    {
        let after = (after > 0).then(|| nth(fixture, after));
        let mut position = after;
        let mut events = vec![];
        while position < newest {
            let page = store.events(prefix, position, limit).await.expect("history is whole");
            assert!(page.events.len() <= limit, "{prefix:?} in pages of {limit}");
            assert!(page.through > position, "{prefix:?} goes on after {position:?}");
            assert!(page.events.iter().all(|event| Some(event.revision) <= page.through), "{page:?}");
            position = page.through;
            events.extend(page.events);
        }
        assert_eq!(position, newest, "{prefix:?} after {after:?}");
        let want = written.iter().filter(|event| Some(event.revision) > after);
        let want: Vec<_> = want.filter(|event| event.key().as_str().starts_with(prefix)).cloned().collect();
        assert_eq!(events, want, "{prefix:?} after {after:?}");
    }
}

/// Events fail as a watch does: before the oldest revision, and after the newest.
pub async fn events_reach_as_far_as_history(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let result = store.events("/", None, 10).await.expect("history is whole");
    assert_eq!(result, EventPage::default());
    let last = fill(&*store, 5).await;
    let oldest = last.previous().expect("there are five");
    store.compact(oldest).await.expect("the revision was written");
    for after in [None, Some(fixture.first_revision())] {
        let result = store.events("/", after, 10).await;
        assert!(matches!(result, Err(StoreError::Compacted { oldest: at, .. }) if at == oldest), "{result:?}");
    }
    let page = store.events("/", Some(oldest), 10).await.expect("the oldest can be read from");
    assert_eq!((page.events.len(), page.through), (1, Some(last)));
    let result = store.events("/", Some(last.next()), 10).await;
    assert!(matches!(result, Err(StoreError::Future { newest: Some(newest), .. }) if newest == last), "{result:?}");
}

/// "No longer prefix has a later one."
pub async fn a_part_of_the_keys_reaches_back_as_far_as_all_of_them(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    for number in 0..20 {
        set(&*store, ["/a/b", "/a/c", "/d"][number % 3], "x").await;
        if number == 10 {
            let newest = store.current_revision().await.expect("an open store answers");
            store.compact(newest.expect("there were writes")).await.expect("the revision was written");
        }
    }
    for (longer, shorter) in [("/a/b", "/a/"), ("/a/", "/"), ("/d", ""), ("/none/", "/")] {
        assert!(store.oldest_revision(longer) <= store.oldest_revision(shorter), "{longer:?} in {shorter:?}");
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
    for revision in [oldest, oldest, fixture.first_revision()] {
        store.compact(revision).await.expect("the revision was written");
        assert_eq!(store.oldest_revision(""), Some(oldest));
    }
}

/// "… to a revision that was not written yet is Future."
pub async fn to_compact_to_the_future_fails(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let result = store.compact(fixture.first_revision()).await;
    assert!(matches!(result, Err(StoreError::Future { newest: None, .. })), "{result:?}");
    let last = fill(&*store, 3).await;
    let result = store.compact(last.next()).await;
    assert!(matches!(result, Err(StoreError::Future { newest: Some(newest), .. }) if newest == last), "{result:?}");
    assert_eq!(store.oldest_revision(""), None);
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
