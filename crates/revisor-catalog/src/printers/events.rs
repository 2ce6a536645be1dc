//! Events, which have other names for their fields in the group `events.k8s.io` than in the core.

use revisor_object::{Object, Value};

use super::cells;
use super::fields::{name, number, object, or, since, text, value};
use crate::Moment;

pub(super) fn event(event: &Object, now: Moment) -> Vec<Value> {
    // The older name first; an event has only one of them.
    let either = |one: &'static str, other: &'static str| if value(event, one).is_some() { one } else { other };
    let ago = |path: &str| value(event, path).map(|_| since(event, path, now));
    let unknown = || "<unknown>".to_owned();

    let first = ago(either("firstTimestamp", "deprecatedFirstTimestamp")).or_else(|| ago("eventTime"));
    let first = first.unwrap_or_else(unknown);
    let last = ago(either("lastTimestamp", "deprecatedLastTimestamp")).unwrap_or_else(|| first.clone());
    let count = number(event, either("count", "deprecatedCount"));
    let (last, count) = match object(event, "series") {
        Some(series) => (since(series, "lastObservedTime", now), number(series, "count")),
        None => (last, if count == 0 { 1 } else { count }),
    };
    let about = object(event, either("involvedObject", "regarding"));
    let of_object = |field| about.map_or("", |about| text(about, field));
    let kind = of_object("kind").to_lowercase();
    let target = if of_object("name").is_empty() { kind } else { format!("{kind}/{}", of_object("name")) };
    cells![
        last,
        text(event, "type"),
        text(event, "reason"),
        target,
        of_object("fieldPath"),
        source(event, object(event, either("source", "deprecatedSource"))),
        text(event, either("message", "note")).trim(),
        first,
        count,
        name(event),
    ]
}

/// Who reported the event, and where.
fn source(event: &Object, source: Option<&Object>) -> String {
    let of_source = |field| source.map_or("", |source| text(source, field));
    let controller = or(text(event, "reportingComponent"), text(event, "reportingController"));
    let component = or(of_source("component"), controller);
    match or(of_source("host"), text(event, "reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
