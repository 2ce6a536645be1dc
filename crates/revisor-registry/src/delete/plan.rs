//! What a deletion does to an object: a pure decision over the object, the options and the time.
//!
//! An object that takes time to end is marked first, with the time by which it must have ended; whoever runs it deletes
//! it again with no time left. One that finalizers hold is marked until they are gone. Everything else goes at once.

use revisor_catalog::Resource;
use revisor_object::{Object, Value};
use revisor_schema::{Precision, format_timestamp};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::{DeleteOptions, FOREGROUND, ORPHAN};
use crate::definitions::is_definitions;

/// What a deletion does to the object.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    /// It is on its way out already, and nothing changes about that.
    Nothing,
    /// It is marked and stays for now.
    Mark(Object),
    /// It is marked, so that those who watch see that its end was asked for, and then removed.
    MarkAndRemove(Object),
    /// It is removed, as it is.
    Remove(Object),
}

/// How long an object has, as far as it has any time at all.
enum Grace {
    /// Its kind ends at once, or its time was up before.
    None,
    /// It has been given time that this deletion does not shorten.
    Pending,
    /// It has so many seconds from now on.
    Seconds(i64),
}

pub(super) fn plan(resource: &Resource, mut object: Object, options: &DeleteOptions, now: OffsetDateTime) -> Plan {
    if goes_at_once(resource, &object, options) {
        return Plan::Remove(object);
    }
    let was_marked = object.object("metadata").is_some_and(|metadata| metadata.contains("deletionTimestamp"));
    let before = marks(object.object_mut("metadata"));
    let grace = grant(resource, &mut object, was_marked, options, now);
    if matches!(grace, Grace::Pending) {
        return Plan::Nothing;
    }
    let is_first_mark = !was_marked && matches!(grace, Grace::None) && resource.strategy.marks_deleted();
    // Of a definition the first deletion does nothing but mark it, whatever is asked of the garbage collector.
    if !(is_first_mark && is_definitions(resource)) {
        set_finalizers(resource, object.object_mut("metadata"), options);
    }
    let is_held = !object.object_mut("metadata").array("finalizers").is_empty();
    match grace {
        Grace::Seconds(seconds) if is_held || seconds > 0 => return Plan::Mark(object),
        Grace::Seconds(_) => return Plan::MarkAndRemove(object),
        Grace::None | Grace::Pending => {}
    }
    if is_first_mark {
        object.object_mut("metadata").insert("deletionTimestamp", text(now));
        resource.strategy.mark_deleted(&mut object);
        return Plan::Mark(object);
    }
    if !(was_marked && resource.strategy.is_held(&object)) {
        if !is_held {
            return Plan::Remove(object);
        }
        mark_for_finalizers(object.object_mut("metadata"), now);
    }
    if marks(object.object_mut("metadata")) == before { Plan::Nothing } else { Plan::Mark(object) }
}

/// All that a deletion notes in the metadata of an object that it does not remove.
pub(super) const MARKS: [&str; 4] = ["deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "generation"];

fn marks(metadata: &Object) -> [Option<Value>; 4] {
    MARKS.map(|name| metadata.get(name).cloned())
}

/// Whether nothing holds an object and nothing has to be noted on it, as of most: then nobody needs a copy.
fn goes_at_once(resource: &Resource, old: &Object, options: &DeleteOptions) -> bool {
    let Some(metadata) = old.object("metadata") else { return false };
    let is_unheld = metadata.array("finalizers").is_empty()
        && !matches!(options.wanted_finalizer(resource, metadata), Some(Some(_)))
        && !resource.strategy.is_held(old);
    is_unheld
        && if metadata.contains("deletionTimestamp") {
            metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).is_none_or(|seconds| seconds == 0)
        } else {
            !resource.strategy.marks_deleted()
                && resource.strategy.grace_period(old, options.grace_period_seconds).is_none()
        }
}

/// Notes on the object how long it has. Time that was given can only be shortened.
fn grant(
    resource: &Resource,
    object: &mut Object,
    was_marked: bool,
    options: &DeleteOptions,
    now: OffsetDateTime,
) -> Grace {
    let at_least_one = |seconds: i64| if seconds < 0 { 1 } else { seconds };
    let asked = options.grace_period_seconds.map(at_least_one);
    if !was_marked {
        let Some(seconds) = resource.strategy.grace_period(object, asked) else { return Grace::None };
        let metadata = object.object_mut("metadata");
        metadata.insert("deletionTimestamp", text(later(now, seconds)));
        metadata.insert("deletionGracePeriodSeconds", seconds);
        raise_generation(metadata);
        return Grace::Seconds(seconds);
    }
    let metadata = object.object_mut("metadata");
    let given = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).map_or(0, at_least_one);
    if given == 0 {
        return Grace::None;
    }
    let Some(mut seconds) = asked.filter(|asked| *asked < given) else { return Grace::Pending };
    let end = metadata.str("deletionTimestamp").and_then(|end| OffsetDateTime::parse(end, &Rfc3339).ok());
    let asked_at = end.map_or(now, |end| later(end, -given));
    let mut end = later(asked_at, seconds);
    if end < now {
        end = now;
        // The time is up, but it was asked for with grace: whoever runs the object still has the last word.
        seconds = seconds.min(1);
    }
    metadata.insert("deletionTimestamp", text(end));
    metadata.insert("deletionGracePeriodSeconds", seconds);
    Grace::Seconds(seconds)
}

/// Puts the finalizer of the garbage collector that the options ask for in place of the one that is there.
fn set_finalizers(resource: &Resource, metadata: &mut Object, options: &DeleteOptions) {
    let Some(wanted) = options.wanted_finalizer(resource, metadata) else { return };
    let mut finalizers = metadata.array("finalizers").to_vec();
    finalizers.retain(|name| {
        let name = name.as_str().unwrap_or_default();
        ![ORPHAN, FOREGROUND].contains(&name) || wanted == Some(name)
    });
    if let Some(wanted) = wanted.filter(|wanted| !finalizers.contains(&Value::from(*wanted))) {
        finalizers.push(Value::from(wanted));
    }
    metadata.set("finalizers", (!finalizers.is_empty()).then_some(Value::Array(finalizers)));
}

/// Marks an object that only its finalizers hold.
fn mark_for_finalizers(metadata: &mut Object, now: OffsetDateTime) {
    let end = metadata.str("deletionTimestamp").map(str::to_owned);
    if end.is_none() {
        raise_generation(metadata);
    }
    let is_later = |end: &str| OffsetDateTime::parse(end, &Rfc3339).is_ok_and(|end| end > now);
    if end.as_deref().is_none_or(is_later) {
        metadata.insert("deletionTimestamp", text(now));
    }
    metadata.insert("deletionGracePeriodSeconds", 0);
}

fn raise_generation(metadata: &mut Object) {
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64).filter(|number| *number > 0) {
        metadata.insert("generation", generation.saturating_add(1));
    }
}

/// A point in time so many seconds from another; that itself if there is none so far away.
fn later(time: OffsetDateTime, seconds: i64) -> OffsetDateTime {
    time.checked_add(Duration::seconds(seconds)).unwrap_or(time)
}

fn text(time: OffsetDateTime) -> String {
    format_timestamp(time, Precision::Seconds)
}

#[cfg(test)]
mod tests {
    use revisor_catalog::Catalog;
    use revisor_object::parse_json;

    use super::*;

    fn object(text: &str) -> Object {
        match parse_json(text.as_bytes()).expect("is JSON").value {
            Value::Object(object) => object,
            other => panic!("no object: {other:?}"),
        }
    }

    /// What a plan does, in few words.
    fn shown(plan: &Plan) -> String {
        let marks = |object: &Object| {
            let metadata = object.object("metadata").expect("has metadata");
            let number = |name: &str| metadata.get(name).and_then(Value::as_i64).unwrap_or(-1);
            let end = metadata.str("deletionTimestamp").unwrap_or("never");
            let end = end.trim_start_matches("1970-01-01T00:").trim_end_matches('Z').to_owned();
            format!("{end} grace={} generation={}", number("deletionGracePeriodSeconds"), number("generation"))
        };
        match plan {
            Plan::Nothing => "nothing".to_owned(),
            Plan::Remove(_) => "remove".to_owned(),
            Plan::Mark(object) => format!("mark {}", marks(object)),
            Plan::MarkAndRemove(object) => format!("mark and remove {}", marks(object)),
        }
    }

    #[test]
    fn time_to_end_is_given_once_and_only_shortened() {
        let catalog = Catalog::default();
        let pods = catalog.resource("", "v1", "pods").expect("is served");
        let now = OffsetDateTime::UNIX_EPOCH + Duration::minutes(10);
        let bound = r#""spec":{"nodeName":"n","terminationGracePeriodSeconds":40}"#;
        let marked = r#""generation":2,"deletionTimestamp":"1970-01-01T00:10:30Z","deletionGracePeriodSeconds":40"#;
        let over = r#""generation":2,"deletionTimestamp":"1970-01-01T00:09:00Z","deletionGracePeriodSeconds":40"#;
        let ended = r#""generation":2,"deletionTimestamp":"1970-01-01T00:09:00Z","deletionGracePeriodSeconds":0"#;
        let held = r#""finalizers":["a/b"]"#;
        for (name, metadata, rest, asked, want) in [
            ("an unbound pod", r#""generation":1"#, r#""spec":{}"#, None, "mark and remove 10:00 grace=0 generation=2"),
            ("a bound pod", r#""generation":1"#, bound, None, "mark 10:40 grace=40 generation=2"),
            ("less time", r#""generation":1"#, bound, Some(5), "mark 10:05 grace=5 generation=2"),
            ("negative time", r#""generation":1"#, bound, Some(-5), "mark 10:01 grace=1 generation=2"),
            ("no time", r#""generation":1"#, bound, Some(0), "mark and remove 10:00 grace=0 generation=2"),
            ("held", held, bound, Some(0), "mark 10:00 grace=0 generation=-1"),
            ("again", marked, bound, None, "nothing"),
            ("again with more time", marked, bound, Some(90), "nothing"),
            ("again with less time", marked, bound, Some(20), "mark 10:10 grace=20 generation=2"),
            ("again with time that is over", marked, bound, Some(2), "mark 10:00 grace=1 generation=2"),
            ("again with no time", marked, bound, Some(0), "mark and remove 10:00 grace=0 generation=2"),
            ("later with less time", over, bound, Some(30), "mark 10:00 grace=1 generation=2"),
            ("after its time", ended, bound, None, "remove"),
        ] {
            let options = DeleteOptions { grace_period_seconds: asked, ..DeleteOptions::default() };
            let plan = plan(pods, object(&format!("{{\"metadata\":{{{metadata}}},{rest}}}")), &options, now);
            assert_eq!(shown(&plan), want, "{name}");
        }
    }

    #[test]
    fn objects_without_grace_wait_for_finalizers_only() {
        let catalog = Catalog::default();
        let config_maps = catalog.resource("", "v1", "configmaps").expect("is served");
        let now = OffsetDateTime::UNIX_EPOCH;
        let waiting = r#"{"metadata":{"finalizers":["a/b"],"deletionTimestamp":"1970-01-01T00:00:00Z","deletionGracePeriodSeconds":0}}"#;
        for (text, want) in [
            (r#"{"metadata":{}}"#, "remove"),
            (r#"{"metadata":{"finalizers":["a/b"],"generation":1}}"#, "mark 00:00 grace=0 generation=2"),
            (waiting, "nothing"),
        ] {
            let options = DeleteOptions { grace_period_seconds: Some(9), ..DeleteOptions::default() };
            assert_eq!(shown(&plan(config_maps, object(text), &options, now)), want, "{text}");
        }
        let background =
            DeleteOptions { propagation_policy: Some("Background".to_owned()), ..DeleteOptions::default() };
        let orphaning = waiting.replace("a/b", ORPHAN);
        let removed = plan(config_maps, object(&orphaning), &background, now);
        assert!(matches!(removed, Plan::Remove(_)), "finalizers of before go: {removed:?}");
    }

    #[test]
    fn nothing_becomes_of_what_an_event_owns() {
        let catalog = Catalog::default();
        let now = OffsetDateTime::UNIX_EPOCH;
        for (group, policy) in [("", "Orphan"), ("", "Foreground"), ("events.k8s.io", "Orphan")] {
            let events = catalog.resource(group, "v1", "events").expect("is served");
            let options = DeleteOptions { propagation_policy: Some(policy.to_owned()), ..DeleteOptions::default() };
            for metadata in ["{}".to_owned(), format!(r#"{{"finalizers":["{ORPHAN}"]}}"#)] {
                let plan = plan(events, object(&format!(r#"{{"metadata":{metadata}}}"#)), &options, now);
                assert_eq!(shown(&plan), "remove", "{group} {policy} {metadata}");
            }
        }
    }
}
