//! The window and its snapshots against a model.

use std::collections::BTreeMap;
use std::time::SystemTime;

use revisor_store::{Draft, Entry, Key};

use super::*;
use crate::layout::Layout;

type Model = BTreeMap<String, u64>;

fn at(number: u64) -> Revision {
    Revision::new(number).expect("not zero")
}

fn empty(keep_every: usize) -> History {
    let layout = Layout { prefix: "/r/".into(), namespaced: false };
    let keep = Keep { events: keep_every, bytes: usize::MAX };
    History::new(Table::empty(Arc::new(layout)), None, keep)
}

/// Writes a key at a revision, or deletes it if it is there and `delete` says so.
fn write(history: &mut History, number: u64, name: &str, delete: bool) {
    let key = Key::new(format!("/r/{name}"));
    let old = history.newest().get(key.as_str()).map(|item| item.entry().clone());
    let entry = Arc::new(Entry::new(key, at(number), &Draft::opaque(name.to_owned())));
    let new = (!delete || old.is_none()).then_some(entry);
    history.apply(&Event { revision: at(number), time: SystemTime::UNIX_EPOCH, old, new });
}

fn contents(table: &Table) -> Model {
    let snapshot = crate::Snapshot::new(table.clone(), None, Arc::default());
    snapshot.range("", None).map(|item| (item.key().to_string(), item.revision().get())).collect()
}

fn state_at(history: &History, number: u64) -> Result<Model, Expired> {
    Ok(match history.at(at(number))? {
        Past::Ready(table) => contents(&table),
        Past::After(revision) => contents(&history.replay(revision).run()),
        Past::Stored => panic!("the state at {number} is not in memory"),
    })
}

/// A history of writes to seven keys at every other revision up to 200, and the state after each.
fn busy(keep_every: usize) -> (History, Vec<Model>) {
    let mut history = empty(keep_every);
    let mut models = vec![Model::new()];
    for number in 1..=200 {
        if number % 2 == 0 {
            write(&mut history, number, &format!("key-{}", number * number % 7), number % 3 == 0);
        }
        models.push(contents(history.newest()));
    }
    (history, models)
}

#[test]
fn every_retained_state_can_be_read() {
    for keep_every in [1, 7, 64, 1000] {
        let (mut history, models) = busy(keep_every);
        for oldest in [0, 1, 2, 15, 16, 100, 155, 199, 200] {
            if let Some(oldest) = Revision::new(oldest) {
                history.compact(oldest);
            }
            for number in 1..=200 {
                let want = match Revision::new(oldest) {
                    Some(oldest) if number < oldest.get() => Err(Expired { asked: at(number), oldest }),
                    _ => Ok(models[number as usize].clone()),
                };
                let what = format!("state at {number}, kept every {keep_every}, compacted to {oldest}");
                assert_eq!(state_at(&history, number), want, "{what}");
            }
        }
    }
}

#[test]
fn events_after_a_position_are_all_there_or_expired() {
    let (mut history, _) = busy(10);
    let after = |history: &History, number| {
        let changes = history.changes_after(Revision::new(number));
        changes.map(|changes| changes.map(|change| change.revision().get()).collect::<Vec<_>>())
    };
    assert_eq!(after(&history, 0).map(|all| all.len()), Ok(100), "from the beginning");
    assert_eq!(after(&history, 193), Ok(vec![194, 196, 198, 200]));
    assert_eq!(after(&history, 200), Ok(vec![]));
    assert_eq!(after(&history, 900), Ok(vec![]), "the future is silent");
    history.compact(at(105));
    assert_eq!(after(&history, 105).map(|all| all[0]), Ok(106));
    assert_eq!(after(&history, 50), Err(Beyond::History(Expired { asked: at(50), oldest: at(105) })));
    assert_eq!(history.check_kept(at(104)), Err(Expired { asked: at(104), oldest: at(105) }));
    assert_eq!(history.check_kept(at(105)), Ok(()));
}

#[test]
fn compaction_bounds_what_is_kept() {
    for (name, oldest, window, kept) in [
        ("nothing yet", 1, 100, 11),
        ("back to the kept state before it", 105, 50, 6),
        ("at a kept state", 120, 40, 5),
        ("at the newest event", 200, 0, 1),
        ("past the newest event", 230, 0, 1),
    ] {
        let (mut history, models) = busy(10);
        history.compact(at(oldest));
        assert_eq!((history.window_len(), history.kept.len()), (window, kept), "{name}");
        assert_eq!(state_at(&history, 230).as_ref(), Ok(&models[200]), "{name}: the newest state stays");
    }
}

#[test]
fn a_window_gives_way_in_steps_and_what_it_loses_is_in_the_store() {
    let weight = |history: &History| history.window.iter().map(|change| change.weight()).sum::<usize>();
    let (mut history, models) = busy(10);
    let whole = history.weight();
    assert_eq!(whole, weight(&history));
    for (excess, window, start) in [(1, 90, 20), (10 * 1024, 80, 40), (15 * 1024, 60, 80), (whole, 0, 200)] {
        let before = history.weight();
        let removed = history.shorten(excess).weight;
        assert!(removed >= excess.min(before), "{removed} of {excess}");
        assert_eq!((history.weight(), history.weight()), (before - removed, weight(&history)));
        assert_eq!((history.window_len(), history.start()), (window, Some(at(start))), "{excess} less");
        assert_eq!(history.check_kept(at(1)), Ok(()), "the store still has it");
        assert!(matches!(history.at(at(start - 1)), Ok(Past::Stored)));
        assert_eq!(history.changes_after(Some(at(start - 1))).err(), Some(Beyond::Window));
        assert_eq!(history.changes_after(Some(at(start))).map(Iterator::count).ok(), Some(window));
        assert_eq!(state_at(&history, start).as_ref(), Ok(&models[start as usize]));
    }
    history.compact(at(150));
    assert_eq!(
        history.changes_after(Some(at(149))).err(),
        Some(Beyond::History(Expired { asked: at(149), oldest: at(150) }))
    );
    assert_eq!(history.changes_after(Some(at(150))).err(), Some(Beyond::Window));
}

#[test]
fn large_events_are_kept_apart() {
    let layout = Arc::new(Layout { prefix: "/r/".into(), namespaced: false });
    let mut history = History::new(Table::empty(layout), None, Keep { events: 1000, bytes: 3 * 1024 });
    for number in 1..=9 {
        write(&mut history, number, "a", false);
    }
    let kept: Vec<_> = history.kept.iter().map(|kept| kept.at.map_or(0, Revision::get)).collect();
    assert_eq!(kept, [0, 3, 6, 9]);
}

#[test]
fn an_older_compaction_changes_nothing() {
    let (mut history, _) = busy(10);
    history.compact(at(150));
    let before = history.window_len();
    history.compact(at(100));
    assert_eq!(history.window_len(), before);
    assert_eq!(history.check_kept(at(149)), Err(Expired { asked: at(149), oldest: at(150) }));
}

#[test]
fn nothing_is_applied_after_the_end() {
    let mut history = empty(10);
    write(&mut history, 1, "a", false);
    history.end();
    write(&mut history, 2, "b", false);
    assert_eq!((history.last(), history.newest().len()), (Some(at(1)), 1));
}

#[test]
fn what_was_deleted_is_let_go_when_history_has_passed() {
    let mut history = empty(16);
    let mut items = vec![];
    for number in 1..=200 {
        let name = format!("key-{number}");
        write(&mut history, number, &name, false);
        let item = history.newest().get(&format!("/r/{name}")).expect("was written");
        items.push((Arc::downgrade(item), Arc::downgrade(item.entry())));
    }
    for number in 1..=200 {
        write(&mut history, 200 + number, &format!("key-{number}"), true);
    }
    let held = |items: &[(std::sync::Weak<Item>, std::sync::Weak<Entry>)]| {
        items.iter().filter(|(item, entry)| item.strong_count() + entry.strong_count() > 0).count()
    };
    assert_eq!(held(&items), 200, "history shows them");
    drop(history.compact(at(400)));
    assert_eq!(held(&items), 0);
}
