//! What a watcher yields, and what it costs others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use revisor_cache::{CacheOptions, EventKind, FrameForm, FrameKey, Scope, WatchItem, WatchRequest, WatchStart};
use revisor_object::Shape;
use revisor_store::Store;

use crate::fixture::{Fixture, at, key, look, next, next_many, settle, soon, text_begins};

#[tokio::test]
async fn the_state_comes_first_then_the_changes() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    fixture.put("a/x", "1");
    fixture.put("b/x", "1");
    let revision = fixture.put_elsewhere();
    let mut watcher = fixture.watch(Scope::All, None, WatchStart::State);
    fixture.put("a/x", "2");
    assert_eq!(next_many(&mut watcher, 4).await, ["state a/x 1", "state b/x 2", "initial end 3", "modified a/x 4"]);
    assert_eq!(revision, at(3), "the state is as fresh as the last write to any resource");
    fixture.put("a/y", "1");
    fixture.delete("b/x");
    assert_eq!(next_many(&mut watcher, 2).await, ["added a/y 5", "deleted b/x 6"]);
}

#[tokio::test]
async fn a_scope_bounds_the_state_and_the_changes() {
    for (name, scope, want) in [
        ("all", Scope::All, &["state a/x", "state aa/x", "initial", "modified a/x", "added a/y", "deleted aa/x"][..]),
        ("a namespace", Scope::Namespace("a".into()), &["state a/x", "initial", "modified a/x", "added a/y"]),
        ("an object", Scope::Object(key("a/x")), &["state a/x", "initial", "modified a/x"]),
        ("an object to come", Scope::Object(key("a/y")), &["initial", "added a/y"]),
        ("an empty namespace", Scope::Namespace("c".into()), &["initial"]),
    ] {
        let fixture = Fixture::new(CacheOptions::default()).await;
        fixture.put("a/x", "1");
        let before = fixture.put("aa/x", "1");
        let write = || {
            fixture.put("a/x", "2");
            fixture.put("a/y", "1");
            fixture.delete("aa/x")
        };
        // Half of the cases hear of the changes live, the others find them in the window.
        let mut live = fixture.watch(scope.clone(), None, WatchStart::State);
        let mut items = settle(&mut live, before).await;
        let mut late = fixture.watch(scope.clone(), None, WatchStart::State);
        let last = write();
        items.extend(settle(&mut live, last).await);
        for (how, items) in [("live", items), ("late", settle(&mut late, last).await)] {
            assert_eq!(items.len(), want.len(), "{name}, {how}: {items:?}");
            for (item, want) in items.iter().zip(want) {
                assert!(item.starts_with(want), "{name}, {how}: {item} is not {want}");
            }
        }
    }
}

#[tokio::test]
async fn a_filter_turns_entering_and_leaving_into_adding_and_deleting() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let start = fixture.put_elsewhere();
    let mut live = fixture.watch(Scope::All, Some(text_begins("red")), WatchStart::After(start));
    assert_eq!(settle(&mut live, start).await, [""; 0]);
    for (name, text, want) in [
        ("created outside", Some("blue"), None),
        ("stays outside", Some("green"), None),
        ("enters", Some("red"), Some("added")),
        ("stays inside", Some("reddish"), Some("modified")),
        ("leaves", Some("blue"), Some("deleted")),
        ("deleted outside", None, None),
        ("created inside", Some("red"), Some("added")),
        ("deleted inside", None, Some("deleted")),
    ] {
        let revision = match text {
            Some(text) => fixture.put("a/x", text),
            None => fixture.delete("a/x"),
        };
        let want: Vec<_> = want.map(|kind| format!("{kind} a/x {revision}")).into_iter().collect();
        assert_eq!(settle(&mut live, revision).await, want, "{name}, live");
        let before = WatchStart::After(revision.previous().expect("something was written before"));
        let mut late = fixture.watch(Scope::All, Some(text_begins("red")), before);
        assert_eq!(settle(&mut late, revision).await, want, "{name}, from the window");
    }
}

#[tokio::test]
async fn what_left_the_selection_is_shown_as_it_was_at_the_revision_of_leaving() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let start = fixture.put("a/x", "red");
    let mut watcher = fixture.watch(Scope::All, Some(text_begins("red")), WatchStart::After(start));
    fixture.put("a/x", "blue");
    let Some(WatchItem::Event(kind, delivery)) = soon(watcher.next()).await else { panic!("an event comes") };
    assert_eq!(&delivery.object(kind)[..], br#"{"resourceVersion":"2","text":"red"}"#);
}

#[tokio::test]
async fn a_watch_from_the_future_is_silent_until_then() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    fixture.put("a/x", "1");
    let mut watcher = fixture.watch(Scope::All, None, WatchStart::After(at(4)));
    assert!(look(&mut watcher).await.is_pending());
    assert_eq!(watcher.progress(), None, "a bookmark would take the client back to before where it began");
    for _ in 2..=5 {
        fixture.put("a/x", "2");
    }
    assert_eq!(next(&mut watcher).await, "modified a/x 5");
    assert_eq!(settle(&mut watcher, at(5)).await, [""; 0]);
}

#[tokio::test]
async fn the_state_of_a_store_that_was_never_written_waits_for_its_first_revision() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let mut watcher = fixture.watch(Scope::All, None, WatchStart::State);
    assert!(look(&mut watcher).await.is_pending());
    fixture.put_elsewhere();
    assert_eq!(next(&mut watcher).await, "initial end 1");
    fixture.put("a/x", "1");
    assert_eq!(next(&mut watcher).await, "added a/x 2");
}

struct CountWakes(AtomicUsize);

impl Wake for CountWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn an_event_wakes_only_those_whose_scope_it_is_in() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let start = WatchStart::After(fixture.put("a/x", "1"));
    let wakes: Vec<_> = (0..3).map(|_| Arc::new(CountWakes(AtomicUsize::new(0)))).collect();
    let scopes = [Scope::Namespace("a".into()), Scope::Namespace("b".into()), Scope::Object(key("a/y"))];
    let mut watchers: Vec<_> = scopes.into_iter().map(|scope| fixture.watch(scope, None, start)).collect();
    for (watcher, wakes) in watchers.iter_mut().zip(&wakes) {
        let waker = Waker::from(wakes.clone());
        assert!(watcher.poll_next(&mut Context::from_waker(&waker)).is_pending());
    }
    let mut witness = fixture.watch(Scope::All, None, start);
    for _ in 0..10 {
        let revision = fixture.put("a/x", "2");
        // Once this one has the event, the others have had theirs: it came last.
        assert_eq!(settle(&mut witness, revision).await.len(), 1);
    }
    let counts: Vec<_> = wakes.iter().map(|wakes| wakes.0.load(Ordering::SeqCst)).collect();
    assert_eq!(counts, [1, 0, 0], "and one who does not take what there is, is woken once");
}

#[tokio::test]
async fn a_frame_is_made_once_for_all_who_watch() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let start = WatchStart::After(fixture.put_elsewhere());
    let mut watchers: Vec<_> = (0..5).map(|_| fixture.watch(Scope::All, None, start)).collect();
    for live in &mut watchers[..3] {
        assert!(look(live).await.is_pending());
    }
    fixture.put("a/x", "1");
    let key =
        FrameKey { shape: Shape::STORED, kind: EventKind::Added, form: FrameForm::Sent { encoding: 0, shape: 7 } };
    let mut made = 0;
    let mut held = Vec::new();
    for watcher in &mut watchers {
        let Some(WatchItem::Event(_, delivery)) = soon(watcher.next()).await else { panic!("an event comes") };
        let frame = delivery.frame(key, || {
            made += 1;
            "frame".into()
        });
        assert_eq!(frame, "frame");
        held.push(delivery);
    }
    assert_eq!(made, 1, "three got it from the dispatcher and two from the window");
}

#[tokio::test]
async fn a_watcher_is_counted_while_it_lives() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let start = WatchStart::After(fixture.put("a/x", "1"));
    let mut first = fixture.watch(Scope::All, None, start);
    let second = fixture.watch(Scope::Object(key("a/x")), None, start);
    assert!(look(&mut first).await.is_pending());
    assert_eq!(fixture.pods.watcher_count(), 2);
    drop(first);
    drop(second);
    assert_eq!(fixture.pods.watcher_count(), 0);
    let revision = fixture.put("a/x", "2");
    let mut third = fixture.watch(Scope::All, None, start);
    assert_eq!(settle(&mut third, revision).await, ["modified a/x 2"], "also after a time without watchers");
}

#[tokio::test]
async fn watchers_get_what_there_is_and_end_with_their_resource() {
    for name in ["removed", "closed", "dropped"] {
        let fixture = Fixture::new(CacheOptions::default()).await;
        let start = WatchStart::After(fixture.put_elsewhere());
        let mut idle = fixture.watch(Scope::All, None, start);
        assert!(look(&mut idle).await.is_pending());
        let mut behind = fixture.watch(Scope::All, None, start);
        fixture.put("a/x", "1");
        let Fixture { store, cache, pods } = fixture;
        match name {
            "removed" => cache.remove(pods.prefix()),
            "closed" => store.close().await,
            _ => drop(cache),
        }
        assert_eq!(next_many(&mut idle, 3).await, ["added a/x 2", "end", "end"], "{name}");
        assert_eq!(next_many(&mut behind, 2).await, ["added a/x 2", "end"], "{name}");
        assert_eq!(store.sink_count(), 0, "{name}: the store feeds nobody");
        let request = WatchRequest { scope: Scope::All, filter: None, start };
        let mut late = pods.watch(request).expect("history is there");
        assert_eq!(next_many(&mut late, 2).await, ["added a/x 2", "end"], "{name}: also for one who comes late");
    }
}

#[tokio::test]
async fn a_filter_that_panics_ends_its_own_watch_only() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let start = WatchStart::After(fixture.put_elsewhere());
    let mut bad = fixture.watch(Scope::All, Some(Arc::new(|_| panic!("as the test wants"))), start);
    let mut good = fixture.watch(Scope::All, None, start);
    assert!(matches!(look(&mut bad).await, Poll::Pending));
    assert!(matches!(look(&mut good).await, Poll::Pending));
    fixture.put("a/x", "1");
    assert_eq!(next(&mut bad).await, "end");
    assert_eq!(next(&mut good).await, "added a/x 2");
    fixture.put("a/x", "2");
    assert_eq!(next(&mut good).await, "modified a/x 3", "the dispatcher goes on");
}
