//! Cases on reads: get and list, now and in the past.

use super::*;

/// "The newest entry of `key`."
pub async fn get_reads_the_newest_entry(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let get = async |key: &str| store.get(key).await.expect("an open store answers");
    assert_eq!(get("/a").await, None);
    set(&*store, "/a", "1").await;
    let second = set(&*store, "/a", "2").await;
    set(&*store, "/ab", "other").await;
    assert_eq!(get("/a").await, second.new);
    remove(&*store, "/a").await;
    assert_eq!(get("/a").await, None);
}

/// The revision of a listing is "`None` while nothing was ever written".
pub async fn an_empty_store_lists_nothing(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let listing = store.list("/", Page::default()).await.expect("an empty store can be listed");
    assert_eq!(listing, Listing { entries: vec![], revision: None, remaining: 0 });
}

/// "The entries whose keys start with `prefix`", "in byte order of their keys".
pub async fn a_listing_is_ordered_and_keeps_to_its_prefix(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    for key in ["/b/2", "/b/10", "/a/1", "/b", "/b0", "/b/é", "/c/1"] {
        set(&*store, key, "x").await;
    }
    let newest = store.current_revision().await.expect("an open store answers");
    for (prefix, want) in [
        ("/b/", vec!["/b/10", "/b/2", "/b/é"]),
        ("/b", vec!["/b", "/b/10", "/b/2", "/b/é", "/b0"]),
        ("/b/1", vec!["/b/10"]),
        ("/d", vec![]),
        ("", vec!["/a/1", "/b", "/b/10", "/b/2", "/b/é", "/b0", "/c/1"]),
    ] {
        let listing = store.list(prefix, Page::default()).await.expect("an open store can be listed");
        let keys: Vec<_> = listing.entries.iter().map(|entry| entry.key().as_str()).collect();
        assert_eq!((keys, listing.revision, listing.remaining), (want, newest, 0), "prefix {prefix:?}");
    }
}

/// The meaning of `after`, `limit` and `remaining`, now and in the past.
pub async fn a_listing_comes_in_pages(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    for key in ["/n/a", "/n/b", "/n/bb", "/n/c", "/n/d", "/o"] {
        set(&*store, key, "x").await;
    }
    let then = remove(&*store, "/n/bb").await.revision;
    set(&*store, "/n/c", "y").await;
    for (name, after, limit, want, remaining) in [
        ("all", None, None, "a b c d", 0),
        ("the first two", None, Some(2), "a b", 2),
        ("exactly all", None, Some(4), "a b c d", 0),
        ("after a key", Some("/n/b"), None, "c d", 0),
        ("after a key, with a limit", Some("/n/a"), Some(2), "b c", 1),
        ("after a key that is not there", Some("/n/bb"), Some(2), "c d", 0),
        ("after the last", Some("/n/d"), Some(2), "", 0),
        ("after a key before the prefix", Some("/a"), Some(1), "a", 3),
        ("after a key past the prefix", Some("/z"), None, "", 0),
        ("none", None, Some(0), "", 4),
    ] {
        for (state, at) in [("now", None), ("then", Some(then))] {
            let page = Page { after: after.map(Key::new), limit, at };
            let listing = store.list("/n/", page).await.expect("an open store can be listed");
            let keys: Vec<_> = listing.entries.iter().map(|entry| &entry.key().as_str()[3..]).collect();
            assert_eq!((keys.join(" ").as_str(), listing.remaining), (want, remaining), "{name}, {state}");
        }
    }
}

/// "The state at this revision."
pub async fn a_listing_at_a_revision_is_the_state_of_then(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let mut states = vec![];
    for number in 0..40 {
        let key = format!("/k/{}", number * 7 % 11);
        let there = store.get(&key).await.expect("an open store answers").is_some();
        let committed = if there && number % 3 == 0 {
            remove(&*store, &key).await
        } else {
            set(&*store, &key, &number.to_string()).await
        };
        states.push((committed.revision, state(&*store, None).await));
    }
    for (revision, want) in states {
        let listing = store.list("/", page_at(revision)).await.expect("history is whole");
        assert_eq!((shown(&listing), listing.revision), (want, Some(revision)));
    }
}

/// "… all of one state": pages at one revision show nothing of what is written between them.
pub async fn the_pages_of_one_revision_are_one_state(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let at = fill(&*store, 20).await;
    let want = state(&*store, None).await;
    let mut pages = vec![];
    let mut after = None;
    loop {
        let page = Page { after: after.clone(), limit: Some(3), at: Some(at) };
        let listing = store.list("/", page).await.expect("history is whole");
        pages.extend(shown(&listing));
        after = listing.entries.last().map(|entry| entry.key().clone());
        if listing.remaining == 0 {
            break;
        }
        let round = pages.len();
        remove(&*store, &want[round].0).await;
        set(&*store, &want[round - 1].0, "changed").await;
        set(&*store, &format!("/n/0{round}"), "added").await;
    }
    assert_eq!(pages, want);
}

/// "At a revision that was not written yet: Future."
pub async fn a_listing_of_the_future_fails(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let first = fixture.first_revision();
    for newest in [None, Some(first)] {
        let asked = newest.map_or(first, Revision::next);
        let result = store.list("/", page_at(asked)).await;
        let future = matches!(result, Err(StoreError::Future { asked: of, newest: at }) if (of, at) == (asked, newest));
        assert!(future, "{result:?}");
        set(&*store, "/a", "x").await;
    }
}

/// A write that was answered is in every read that follows.
pub async fn a_write_is_there_to_be_read_when_it_answers(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    for number in 0..20 {
        let key = format!("/k/{number}");
        let committed = set(&*store, &key, "x").await;
        assert_eq!(store.get(&key).await.expect("an open store answers"), committed.new);
        let listing = store.list("/k/", Page::default()).await.expect("an open store can be listed");
        assert_eq!((listing.revision, listing.entries.len()), (Some(committed.revision), number + 1));
        assert_eq!(store.current_revision().await.expect("an open store answers"), Some(committed.revision));
    }
}
