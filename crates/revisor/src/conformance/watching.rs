//! What watches show: events in order, streamed lists, and versions that are too old.

use std::collections::BTreeMap;
use std::time::Duration;

use revisor_object::{Object, Value};

use super::position::{Position, text_of};
use super::probe::{Listed, Probe, key_of};
use super::report::Findings;
use crate::cluster::{ClusterError, Events};

/// How long the server is asked to keep a short watch open.
const SHORT: &str = "1";

/// The same for a watch that is left as soon as it has shown what it is to show.
const LONG: &str = "30";

/// How long the next event or the end of a watch may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many events of a short watch are looked at.
const MAX_EVENTS: usize = 50_000;

/// The annotation of the bookmark behind the last object of a streamed list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// An event, taken apart.
pub(super) struct Event {
    pub(super) kind: String,
    pub(super) object: Object,
}

impl Event {
    pub(super) async fn next(events: &mut Events, patience: Duration) -> Result<Option<Event>, ClusterError> {
        let Some(mut event) = events.next(patience).await? else { return Ok(None) };
        let object = match event.remove("object") {
            Some(Value::Object(object)) => object,
            _ => Object::default(),
        };
        Ok(Some(Event { kind: event.str("type").unwrap_or_default().to_owned(), object }))
    }

    fn ends_initial_events(&self) -> bool {
        let mark = self.object.at(&["metadata", "annotations", INITIAL_EVENTS_END]).and_then(Value::as_str);
        self.kind == "BOOKMARK" && mark == Some("true")
    }

    fn code(&self) -> Option<i64> {
        self.object.get("code").and_then(Value::as_i64)
    }
}

/// Holds the order of events of one watch.
pub(super) struct Order {
    path: String,
    last: Position,
}

impl Order {
    pub(super) fn after(path: String, last: Position) -> Order {
        Order { path, last }
    }

    /// Notes whether an event comes where it may.
    pub(super) fn check(&mut self, event: &Event, found: &mut Findings) {
        let Order { path, last } = self;
        let position = match Position::of(&event.object) {
            Ok(position) => position,
            Err(problem) => return found.fault(path, "events with resource versions", problem),
        };
        match &*event.kind {
            "ADDED" | "MODIFIED" | "DELETED" => {
                found.expect(
                    position > *last,
                    &path,
                    format!("events after {last}"),
                    format!("{} of {position}", event.kind),
                );
            }
            "BOOKMARK" => {
                found.expect(position >= *last, &path, format!("a bookmark not before {last}"), position);
            }
            other => found.fault(&path, "ADDED, MODIFIED, DELETED or BOOKMARK", other),
        }
        *last = position.max(*last);
    }
}

/// Whether events of a watch that begins at the list come after it, and in order.
pub(super) async fn watch(probe: &Probe<'_>, at: Position) -> Result<Findings, ClusterError> {
    let mut found = Findings::default();
    let now = at.to_string();
    let query =
        [("watch", "true"), ("resourceVersion", &*now), ("allowWatchBookmarks", "true"), ("timeoutSeconds", SHORT)];
    let path = probe.list_path(&query);
    match probe.watch(&query).await {
        Ok(mut events) => {
            found.pass();
            let mut order = Order::after(path, at);
            for _ in 0..MAX_EVENTS {
                let Some(event) = Event::next(&mut events, PATIENCE).await? else { break };
                order.check(&event, &mut found);
            }
        }
        Err(error) if error.code().is_some() => found.fault(path, "a watch", error),
        Err(error) => return Err(error),
    }
    let query = [("watch", "true"), ("resourceVersionMatch", "NotOlderThan"), ("timeoutSeconds", SHORT)];
    let path = probe.list_path(&query);
    match probe.watch(&query).await {
        Ok(_) => found.fault(path, "400 or 422 without sendInitialEvents", "a watch"),
        Err(error) => match error.code() {
            Some(code) => found.expect(matches!(code, 400 | 422), path, "400 or 422", error),
            None => return Err(error),
        },
    }
    Ok(found)
}

/// Whether a streamed list ends with a bookmark, and shows what the list of that version shows.
pub(super) async fn streamed_list(probe: &Probe<'_>, listed: &Listed, at: Position) -> Result<Findings, ClusterError> {
    let mut found = Findings::default();
    if !listed.is_whole {
        found.skip(format!("there are more than {} objects", probe.max_objects));
        return Ok(found);
    }
    let now = at.to_string();
    let query = [
        ("watch", "true"),
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("allowWatchBookmarks", "true"),
        ("resourceVersion", &*now),
        ("timeoutSeconds", LONG),
    ];
    let path = probe.list_path(&query);
    let mut events = match probe.watch(&query).await {
        Ok(events) => events,
        Err(error) if matches!(error.code(), Some(400 | 422)) => {
            found.skip(format!("lists are not streamed here: {error}"));
            return Ok(found);
        }
        Err(error) if error.code().is_some() => {
            found.fault(path, "a streamed list", error);
            return Ok(found);
        }
        Err(error) => return Err(error),
    };
    // Objects may change while they are streamed; what counts is what there is at the bookmark.
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    let bookmark = loop {
        let Some(event) = Event::next(&mut events, PATIENCE).await? else {
            found.fault(path, format!("a bookmark with {INITIAL_EVENTS_END}"), "the end of the watch");
            return Ok(found);
        };
        if event.ends_initial_events() {
            break event.object;
        }
        match &*event.kind {
            "ADDED" | "MODIFIED" => {
                shown.insert(key_of(&event.object), text_of(&event.object).to_owned());
            }
            "DELETED" => {
                shown.remove(&key_of(&event.object));
            }
            "BOOKMARK" => {}
            other => {
                found.fault(path, "the objects and a bookmark", format!("{other} {:?}", event.object.str("message")));
                return Ok(found);
            }
        }
        if shown.len() > probe.max_objects.saturating_mul(2) {
            found.skip(format!("there are more than {} objects", probe.max_objects));
            return Ok(found);
        }
    };
    drop(events);
    super::reading::at_least(&mut found, &path, &bookmark, at);
    let Ok(end) = Position::of(&bookmark) else { return Ok(found) };
    for (key, version) in &shown {
        if let Ok(position) = Position::parse(version) {
            found.expect(
                position <= end,
                &path,
                format!("no object newer than the bookmark, {end}"),
                format!("{key} of {position}"),
            );
        }
    }
    let end = end.to_string();
    let asked = [("resourceVersion", &*end), ("resourceVersionMatch", "Exact")];
    match probe.list_all(&asked).await {
        Ok(list) if list.is_whole => compare(&mut found, &probe.list_path(&asked), &shown, &list.objects),
        Ok(_) => found.skip(format!("there are more than {} objects", probe.max_objects)),
        Err(error) if error.code() == Some(410) => found.skip("the version was compacted meanwhile"),
        Err(error) if error.code().is_some() => found.fault(probe.list_path(&asked), "a list", error),
        Err(error) => return Err(error),
    }
    Ok(found)
}

/// Notes what one of two views of the same moment shows otherwise.
fn compare(found: &mut Findings, path: &str, shown: &BTreeMap<String, String>, listed: &BTreeMap<String, String>) {
    for (key, version) in listed {
        match shown.get(key) {
            Some(same) if same == version => found.pass(),
            Some(other) => found.fault(path, format!("{key} of {other}, as it was streamed"), version),
            None => found.fault(path, "what was streamed", format!("{key} as well, which was not")),
        }
    }
    for key in shown.keys().filter(|key| !listed.contains_key(*key)) {
        found.fault(path, "what was streamed", format!("a list without {key}"));
    }
}

/// Whether a watch from the oldest version shows history, or is refused with 410.
pub(super) async fn gone(probe: &Probe<'_>, listed: &Listed, found: &mut Findings) -> Result<(), ClusterError> {
    // All objects that are there were written after version 1, so that history has events of them.
    let is_quiet = listed.objects.values().all(|version| version == "1");
    // A busy server may take a while to read history; where nothing is in it, nothing is waited for.
    let open_for = if is_quiet { SHORT } else { LONG };
    let query = [("watch", "true"), ("resourceVersion", "1"), ("timeoutSeconds", open_for)];
    let path = probe.list_path(&query);
    let want = "410, as an answer or as an event, or the events since version 1";
    let mut events = match probe.watch(&query).await {
        Ok(events) => events,
        Err(error) => match error.code() {
            Some(code) => {
                found.expect(code == 410, path, want, error);
                return Ok(());
            }
            None => return Err(error),
        },
    };
    match Event::next(&mut events, PATIENCE).await? {
        Some(event) if event.kind == "ERROR" => {
            found.expect(event.code() == Some(410), path, want, format!("an ERROR event with {:?}", event.code()));
        }
        Some(event) => Order::after(path, Position::FIRST).check(&event, found),
        None => found.expect(is_quiet, path, want, "no event at all, although there are objects"),
    }
    Ok(())
}
