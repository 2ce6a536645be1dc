//! What a resource's cache does with the news of the store.

use std::time::SystemTime;

use revisor_store::{Draft, Entry, Event, Key};

use super::*;
use crate::pace::Pace;
use crate::queue::Taken;

fn at(number: u64) -> Revision {
    Revision::new(number).expect("not zero")
}

fn pods() -> Arc<ResourceCache> {
    let layout = Layout { prefix: "/r/".into(), namespaced: false };
    let options = CacheOptions::default();
    ResourceCache::new(layout, None, [], None, &options, alone(&Arc::new(Budget::new(options.window_bytes))))
}

/// Without a store.
fn alone(budget: &Arc<Budget>) -> Surroundings {
    let (_, progress) = tokio::sync::watch::channel(None);
    let store = Weak::<revisor_store::embedded::EmbeddedStore>::new();
    Surroundings { store, progress, inbox: Arc::default(), budget: budget.clone() }
}

fn write(pods: &ResourceCache, number: u64) {
    let old = pods.get("/r/x").map(|item| item.entry().clone());
    let entry = Entry::new(Key::new("/r/x"), at(number), &Draft::opaque(&b"x"[..]));
    let event = Event { revision: at(number), time: SystemTime::UNIX_EPOCH, old, new: Some(Arc::new(entry)) };
    pods.deliver(News::Events(&[event]));
}

fn received(seat: &Seat) -> (Taken, Vec<u64>) {
    let mut events = VecDeque::new();
    let taken = seat.queue.take(&mut events, std::task::Waker::noop());
    (taken, events.iter().map(|(_, delivery)| delivery.revision().get()).collect())
}

#[test]
fn a_seat_is_only_for_those_who_have_seen_everything() {
    let pods = pods();
    for others in [false, true] {
        // With and without somebody whom the dispatcher serves already, and is behind for.
        let before = pods.delivered.read();
        let other = Seat::new(Scope::All, None, 8);
        pods.enter();
        if others {
            assert!(matches!(pods.join(&other, before), Joined::Live));
        }
        let first = before.map_or(at(1), Revision::next);
        write(&pods, first.get());
        write(&pods, first.next().get());
        let seat = Seat::new(Scope::All, None, 8);
        pods.enter();
        assert!(matches!(pods.join(&seat, before), Joined::Behind), "nothing was seen");
        assert!(matches!(pods.join(&seat, Some(first)), Joined::Behind), "one was seen");
        assert!(matches!(pods.join(&seat, Some(first.next())), Joined::Live));
        let last = first.next().next();
        write(&pods, last.get());
        assert_eq!(pods.dispatch(&mut Scratch::default()), Turn::Over);
        assert_eq!(received(&seat), (Taken::Events, vec![last.get()]), "what was seen does not come again");
        if others {
            assert_eq!(received(&other).1, [first.get(), first.next().get(), last.get()]);
        }
        assert_eq!(pods.settled(), Some(last));
        pods.leave(&seat);
        pods.leave(&other);
    }
    assert_eq!(pods.watcher_count(), 0);
}

#[test]
fn a_step_is_bounded_and_the_rest_follows() {
    let pods = pods();
    let seat = Seat::new(Scope::All, None, 1000);
    pods.enter();
    assert!(matches!(pods.join(&seat, None), Joined::Live));
    for number in 1..=150 {
        write(&pods, number);
    }
    let mut scratch = Scratch::default();
    let mut steps = Vec::new();
    for turn in [Turn::More, Turn::More, Turn::Over] {
        assert_eq!(pods.dispatch(&mut scratch), turn);
        assert_eq!(pods.settled(), pods.dispatched.read(), "no more than what is in the queue");
        steps.push(received(&seat).1.len());
    }
    assert_eq!(steps, [EVENTS_PER_STEP, EVENTS_PER_STEP, 150 - 2 * EVENTS_PER_STEP]);
    pods.leave(&seat);
}

/// So many who watch everything, and wait.
fn crowd(pods: &ResourceCache, count: usize) -> Vec<Arc<Seat>> {
    let sit = |_| {
        let seat = Seat::new(Scope::All, None, 8);
        pods.enter();
        assert!(matches!(pods.join(&seat, pods.delivered.read()), Joined::Live));
        assert_eq!(received(&seat), (Taken::Nothing, vec![]));
        seat
    };
    (0..count).map(sit).collect()
}

#[test]
fn a_crowd_is_told_at_once_and_then_of_several_events_together() {
    let pods = pods();
    let seats = crowd(&pods, 100);
    let mut scratch = Scratch::default();
    write(&pods, 1);
    assert_eq!(pods.dispatch(&mut scratch), Turn::Over, "the first is told of without delay");
    assert_eq!(scratch.wakers.drain(..).count(), 100);
    assert!(seats.iter().all(|seat| received(seat) == (Taken::Events, vec![1])));
    write(&pods, 2);
    write(&pods, 3);
    assert!(matches!(pods.dispatch(&mut scratch), Turn::NotBefore(_)), "a crowd was woken");
    assert_eq!(pods.settled(), Some(at(1)), "a bookmark does not tell of what is not in the queues");
    assert!(scratch.wakers.is_empty());

    pods.index().pace = Pace::default();
    assert_eq!(pods.dispatch(&mut scratch), Turn::Over);
    assert!(seats.iter().all(|seat| received(seat) == (Taken::Events, vec![2, 3])));
    seats.iter().for_each(|seat| pods.leave(seat));
}

#[test]
fn few_are_told_of_every_event_at_once() {
    let pods = pods();
    let seats = crowd(&pods, 10);
    for number in 1..=3 {
        write(&pods, number);
        assert_eq!(pods.dispatch(&mut Scratch::default()), Turn::Over);
        assert!(seats.iter().all(|seat| received(seat) == (Taken::Events, vec![number])));
        assert!(seats.iter().all(|seat| received(seat) == (Taken::Nothing, vec![])), "they wait for the next");
    }
    seats.iter().for_each(|seat| pods.leave(seat));
}

#[tokio::test]
async fn nobody_who_rests_is_forgotten_at_the_end() {
    let pods = pods();
    let seats = crowd(&pods, 100);
    let running = tokio::spawn(crate::dispatcher::run(pods.around.inbox.clone()));
    write(&pods, 1);
    while pods.dispatched.read().is_none() {
        tokio::task::yield_now().await;
    }
    write(&pods, 2);
    pods.end();
    pods.around.inbox.close();
    running.await.expect("the dispatcher ends");
    assert!(seats.iter().all(|seat| received(seat) == (Taken::Events, vec![1, 2])));
    assert!(seats.iter().all(|seat| received(seat) == (Taken::Closed, vec![])));
}

#[test]
fn past_states_are_remembered_up_to_a_bound() {
    let pods = pods();
    for number in 1..=100 {
        write(&pods, number);
    }
    for round in 0..2 {
        for number in 1..=50 {
            pods.snapshot_at(at(number)).expect("nothing was compacted");
            assert!(pods.recalled().len() <= RECALLED, "round {round}");
        }
    }
    pods.deliver(News::Compacted(at(48)));
    let recalled: Vec<_> = pods.recalled().iter().map(|(after, _)| after.map_or(0, Revision::get)).collect();
    assert_eq!(recalled, [48, 49, 50], "what cannot be asked for is forgotten");
}

#[test]
fn the_one_that_holds_most_gives_way() {
    let budget = Arc::new(Budget::new(100 * 1024));
    let options = CacheOptions { snapshot_every: 4, ..CacheOptions::default() };
    let resource = || {
        let layout = Layout { prefix: "/r/".into(), namespaced: false };
        ResourceCache::new(layout, None, [], None, &options, alone(&budget))
    };
    let (noisy, quiet, gone) = (resource(), resource(), resource());
    (1..=20).for_each(|number| write(&quiet, number));
    (1..=20).for_each(|number| write(&gone, number));
    (1..=1000).for_each(|number| {
        write(&noisy, number);
        assert!(budget.used() <= 100 * 1024, "at {number}");
    });
    assert_eq!((quiet.window_len(), gone.window_len()), (20, 20));
    assert!((50..60).contains(&noisy.window_len()), "what the others leave: {}", noisy.window_len());
    let held = [&noisy, &quiet, &gone].map(|resource| resource.window_bytes());
    assert_eq!(budget.used(), held.iter().sum::<usize>());
    drop(gone);
    assert_eq!(budget.used(), held[0] + held[1]);
    quiet.deliver(News::Compacted(at(12)));
    assert_eq!(quiet.window_len(), 8);
    assert_eq!(budget.used(), held[0] + quiet.window_bytes());
}

#[test]
fn who_is_sent_to_the_store_goes_on_from_where_they_were() {
    let pods = pods();
    let (first, second) = (Seat::new(Scope::All, None, 8), Seat::new(Scope::All, None, 8));
    for _ in 0..2 {
        pods.enter();
    }
    assert!(matches!(pods.join(&first, None), Joined::Live));
    (1..=5).for_each(|number| write(&pods, number));
    // The dispatcher has not come to these events, but the second one has seen them.
    assert!(matches!(pods.join(&second, Some(at(5))), Joined::Live));
    (6..=9).for_each(|number| write(&pods, number));
    pods.shorten(usize::MAX);
    assert_eq!(pods.dispatch(&mut Scratch::default()), Turn::Over);
    assert_eq!(received(&first), (Taken::Overrun(None), vec![]));
    assert_eq!(received(&second), (Taken::Overrun(Some(at(5))), vec![]));
    pods.leave(&first);
    pods.leave(&second);
}
