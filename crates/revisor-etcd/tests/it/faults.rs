//! When etcd is away, forgets, or is another one.

use std::sync::Arc;
use std::time::Duration;

use revisor_store::{Expect, Page, Store, StoreError};

use crate::etcd::Etcd;
use crate::several::{Heard, freshen, put};

#[tokio::test]
async fn when_etcd_comes_back_the_stream_goes_on_without_a_gap() {
    let etcd = Etcd::start();
    let (one, two) = (etcd.store().await, etcd.store().await);
    let heard = Arc::new(Heard::default());
    let _guard = one.watch("/", None, heard.clone()).await.expect("history is whole");
    let mut want = Vec::new();
    for round in 0..3 {
        let key = format!("/k/{round}");
        // What is not answered may or may not have happened; it is tried until it is known.
        let revision = loop {
            match two.write(put(&key, Expect::Absent, "x")).await {
                Ok(event) => break event.revision,
                Err(StoreError::Conflict { current: Some(current), .. }) => break current.revision(),
                Err(_) => {}
            }
        };
        want.push(format!("{revision} {key}"));
        etcd.kill();
        etcd.run();
    }
    while one.current_revision().await.is_err() {}
    freshen(&one).await;
    assert_eq!(heard.all(), want);
}

#[tokio::test]
async fn what_etcd_forgot_while_nobody_listened_is_told_as_a_new_state() {
    let etcd = Etcd::start();
    let one = etcd.store().await;
    let first = one.write(put("/k/a", Expect::Absent, "x")).await.expect("is free").revision;
    etcd.kill();
    // The follower is held off while others write and compact: it has to be told that it missed something.
    let heard = Arc::new(Heard::default());
    let _guard = one.watch("/", Some(first), heard.clone()).await.expect("is remembered");
    etcd.run();
    let two = etcd.store().await;
    for number in 0..20 {
        two.write(put(&format!("/k/{number}"), Expect::Anything, "y")).await.expect("takes anything");
    }
    let newest = two.current_revision().await.expect("etcd answers").expect("there were writes");
    two.compact(newest).await.expect("was written");
    freshen(&one).await;
    let state = one.list("/", Page::default()).await.expect("is open");
    assert_eq!(state.entries, two.list("/", Page::default()).await.expect("is open").entries);
    // Either the follower was in time, and heard of each, or it was told the state.
    assert!(matches!(heard.all().len(), 1 | 20), "{:?}", heard.all());
}

#[tokio::test]
async fn an_etcd_that_was_set_back_is_read_anew_and_never_told_as_it_was() {
    let etcd = Etcd::start();
    let one = etcd.store().await;
    for number in 0..5 {
        one.write(put(&format!("/k/{number}"), Expect::Absent, "x")).await.expect("is free");
    }
    // Another one in its place, as after a restore.
    etcd.begin_anew();
    let other = etcd.store().await;
    other.write(put("/other", Expect::Absent, "x")).await.expect("is free");
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        assert!(tokio::time::Instant::now() < deadline, "it is never read again");
        match one.current_revision().await {
            Ok(newest) => {
                assert_eq!(newest, other.current_revision().await.expect("etcd answers"));
                break;
            }
            Err(_) => tokio::task::yield_now().await,
        }
    }
    freshen(&one).await;
    let state = one.list("/", Page::default()).await.expect("is open");
    assert_eq!(state.entries.iter().map(|entry| entry.key().as_str()).collect::<Vec<_>>(), ["/other"]);
}

#[tokio::test]
async fn who_only_listens_is_told_that_etcd_was_set_back() {
    let etcd = Etcd::start();
    let one = etcd.store().await;
    let mut last = None;
    for number in 0..5 {
        last = Some(one.write(put(&format!("/k/{number}"), Expect::Absent, "x")).await.expect("is free").revision);
    }
    let heard = Arc::new(Heard::default());
    let _guard = one.watch("/", last, heard.clone()).await.expect("is remembered");
    etcd.begin_anew();
    etcd.put_raw("/test/other", &[0xff, 0xff, 0xff, 0xff]).await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while !heard.all().iter().any(|told| told.contains("objects at")) {
        assert!(tokio::time::Instant::now() < deadline, "it is never told: {:?}", heard.all());
        tokio::task::yield_now().await;
    }
}

/// Its revision alone does not tell then that what is known is not what it holds.
#[tokio::test]
async fn an_etcd_that_was_restored_and_went_further_is_read_anew() {
    let etcd = Etcd::start();
    let one = etcd.store().await;
    one.write(put("/k/kept", Expect::Absent, "x")).await.expect("is free");
    let backup = etcd.fork();
    let lost = loop {
        if let Ok(event) = one.write(put("/k/lost", Expect::Anything, "x")).await {
            break event.revision;
        }
    };
    etcd.kill();
    backup.run();
    for number in 0..10 {
        backup.put_raw(&format!("/test/k/{number}"), &[0xff, 0xff, 0xff, 0xff]).await;
    }
    let heard = Arc::new(Heard::default());
    let _guard = one.watch("/", Some(lost), heard.clone()).await.expect("is remembered");
    etcd.restore(&backup);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while !heard.all().iter().any(|told| told.contains("objects at")) {
        assert!(tokio::time::Instant::now() < deadline, "it is never told: {:?}", heard.all());
        tokio::task::yield_now().await;
    }
    freshen(&one).await;
    let state = one.list("/", Page::default()).await.expect("is open");
    assert!(state.entries.iter().all(|entry| entry.key().as_str() != "/k/lost"), "{:?}", heard.all());
    assert_eq!(state.entries.len(), 11);
}

#[tokio::test]
async fn keys_outside_of_the_layout_are_nobodys() {
    let etcd = Etcd::start();
    for foreign in ["/test", "/tester/k/a", "test/k/a", "/other/k/a", "/test/k/\u{fc}"] {
        etcd.put_raw(foreign, &[0xff, 0xff, 0xff, 0xff]).await;
    }
    etcd.put_raw("/test/k/a", &[0xff, 0xff, 0xff, 0xff]).await;
    let store = etcd.store().await;
    let state = store.list("/", Page::default()).await.expect("is open");
    assert_eq!(state.entries.iter().map(|entry| entry.key().as_str()).collect::<Vec<_>>(), ["/k/a", "/k/\u{fc}"]);
}

#[tokio::test]
async fn a_value_that_cannot_be_read_is_named_and_hides_nothing_else() {
    let etcd = Etcd::start();
    etcd.put_raw("/test/k/bad", b"x").await;
    let store = etcd.store().await;
    store.write(put("/k/good", Expect::Absent, "x")).await.expect("is free");
    let state = store.list("/k/", Page::default()).await.expect("is open");
    let problems: Vec<_> = state.entries.iter().map(|entry| entry.problem().map(|why| why.to_string())).collect();
    assert_eq!(problems, [Some("there is no frame".to_owned()), None]);
    // It can be overwritten and removed.
    let bad = state.entries[0].revision();
    let event = store.write(put("/k/bad", Expect::At(bad), "good")).await.expect("nobody was faster");
    assert!(event.old.is_some_and(|old| old.problem().is_some()));
    // And comes while one listens.
    etcd.put_raw("/test/k/worse", b"").await;
    freshen(&store).await;
    let worse = store.get("/k/worse").await.expect("etcd answers").expect("is there");
    assert!(worse.problem().is_some());
}
