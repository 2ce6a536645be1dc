//! Cases on watches: who hears what, when, and from where.

use super::*;

/// "Tells `sink` of every write after `after` …, each once and in order (W1)."
pub async fn a_watch_hears_of_every_later_write_once_and_in_order(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let before = set(&*store, "/before", "x").await.revision;
    let recorder = Recorder::new();
    let _guard = store.watch("/", Some(before), recorder.clone()).await.expect("history is whole");
    let mut want = vec![];
    for number in 0..10 {
        want.push(set(&*store, &format!("/k/{}", number % 3), &number.to_string()).await);
    }
    want.push(remove(&*store, "/k/0").await);
    store.write(put("/k/1", Expect::Absent, "x")).await.expect_err("the key is taken");
    want.push(set(&*store, "/k/0", "again").await);
    assert_eq!(recorder.events(), want);
}

/// "… to keys that start with `prefix`."
pub async fn a_watch_keeps_to_its_prefix(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let keys = ["/a", "/a/1", "/a/1/x", "/ab", "/b/1"];
    let watched = ["", "/", "/a", "/a/", "/a/1", "/a/1/", "/c/"];
    let mut watches = vec![];
    for prefix in watched {
        let recorder = Recorder::new();
        let guard = store.watch(prefix, None, recorder.clone()).await.expect("history is whole");
        watches.push((prefix, recorder, guard));
    }
    for key in keys {
        set(&*store, key, "x").await;
    }
    for (prefix, recorder, _guard) in watches {
        let heard: Vec<_> = recorder.events().iter().map(|event| event.key().to_string()).collect();
        let want: Vec<_> = keys.iter().filter(|key| key.starts_with(prefix)).collect();
        assert_eq!(heard.iter().collect::<Vec<_>>(), want, "prefix {prefix:?}");
    }
}

/// "… those of the past before this call's future is done, the later ones as they happen."
pub async fn a_watch_from_the_past_hears_it_before_it_is_set_up(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let mut events = vec![];
    for number in 0..30 {
        events.push(set(&*store, &format!("/k/{}", number % 4), &number.to_string()).await);
        set(&*store, "/other", "x").await;
    }
    for from in [1, 2, 17, 59, 60].map(|number| nth(fixture, number)) {
        let recorder = Recorder::new();
        let _guard = store.watch("/k/", Some(from), recorder.clone()).await.expect("history is whole");
        let want: Vec<_> = events.iter().filter(|event| event.revision > from).cloned().collect();
        assert_eq!(recorder.events(), want, "from {from}");
    }
}

/// "`None` is from the beginning of history, which fails once anything was compacted."
pub async fn a_watch_from_the_beginning_hears_all(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let last = fill(&*store, 5).await;
    let recorder = Recorder::new();
    let _guard = store.watch("/", None, recorder.clone()).await.expect("history is whole");
    assert_eq!(recorder.revisions(), from_first(fixture, last));
    let first = fixture.first_revision();
    store.compact(first).await.expect("the first revision was written");
    let result = store.watch("/", None, Recorder::new()).await;
    assert!(matches!(result, Err(StoreError::Compacted { oldest, .. }) if oldest == first), "{result:?}");
}

/// "A revision that was not written yet is Future."
pub async fn a_watch_from_the_future_fails(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let first = set(&*store, "/a", "x").await.revision;
    let recorder = Recorder::new();
    let result = store.watch("/", Some(first.next()), recorder.clone()).await;
    let future = matches!(result, Err(StoreError::Future { asked, newest: Some(newest) }) if (asked, newest) == (first.next(), first));
    assert!(future, "{result:?}");
    set(&*store, "/a", "y").await;
    assert_eq!(recorder.events(), []);
}

/// To drop a guard "ends the watch".
pub async fn a_watch_ends_with_its_guard(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let (short, long) = (Recorder::new(), Recorder::new());
    let guard = store.watch("/", None, short.clone()).await.expect("history is whole");
    let _guard = store.watch("/", None, long.clone()).await.expect("history is whole");
    let first = set(&*store, "/a", "1").await.revision;
    drop(guard);
    set(&*store, "/a", "2").await;
    assert_eq!((short.revisions(), long.revisions()), (vec![first.get()], vec![first.get(), first.next().get()]));
}

/// "When `write` answers, every sink has heard of the change and `progress` has reached its revision."
pub async fn sinks_and_progress_have_a_write_when_it_answers(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let recorder = Recorder::new();
    let _guard = store.watch("/", None, recorder.clone()).await.expect("history is whole");
    let progress = store.progress();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let (store, recorder, progress) = (store.clone(), recorder.clone(), progress.clone());
        writers.spawn(async move {
            for number in 0..10 {
                let revision = set(&*store, &format!("/w/{writer}"), &number.to_string()).await.revision;
                assert!(*progress.borrow() >= Some(revision), "progress is behind {revision}");
                assert!(recorder.revisions().contains(&revision.get()), "the sink has not heard of {revision}");
            }
        });
    }
    while let Some(result) = writers.join_next().await {
        result.expect("no writer panics");
    }
    assert_eq!(recorder.revisions(), from_first(fixture, nth(fixture, 80)));
}

/// "Each once and in order", also when the watch is set up while others write.
pub async fn a_watch_that_starts_among_writes_misses_nothing(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let first = set(&*store, "/w", "0").await.revision;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let store = store.clone();
        writers.spawn(async move {
            for number in 0..25 {
                set(&*store, &format!("/w/{writer}"), &number.to_string()).await;
            }
        });
    }
    // A new watch for every step that the store makes.
    let mut progress = store.progress();
    let mut watches = vec![];
    let mut from = first;
    let last = nth(fixture, 101);
    while from < last {
        let recorder = Recorder::new();
        let guard = store.watch("/", Some(from), recorder.clone()).await.expect("history is whole");
        watches.push((from, recorder, guard));
        from = progress.wait_for(|now| *now > Some(from)).await.expect("the store is open").expect("there were writes");
    }
    while let Some(result) = writers.join_next().await {
        result.expect("no writer panics");
    }
    for (from, recorder, _guard) in watches {
        assert_eq!(recorder.revisions(), (from.get() + 1..=last.get()).collect::<Vec<_>>(), "from {from}");
    }
}
