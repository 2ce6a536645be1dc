//! Flow schemas and priority levels.

use revisor_object::{Object, Value};

use super::cells;
use super::fields::{age, condition, name, number, object, text};
use crate::Moment;

/// Flow schemas are listed in the order in which they are tried.
pub(crate) fn rank(schema: &Object) -> i64 {
    number(schema, "spec.matchingPrecedence")
}

pub(super) fn flow_schema(schema: &Object, now: Moment) -> Vec<Value> {
    let distinguisher = object(schema, "spec.distinguisherMethod").map_or("<none>", |method| text(method, "type"));
    let dangling = condition(schema, "status.conditions", "Dangling");
    cells![
        name(schema),
        text(schema, "spec.priorityLevelConfiguration.name"),
        rank(schema),
        distinguisher,
        age(schema, now),
        dangling.map_or("?", |condition| text(condition, "status")),
    ]
}

pub(super) fn priority_level(level: &Object, now: Moment) -> Vec<Value> {
    let number_in = |place: Option<&Object>, field: &str| match place {
        Some(place) => Value::from(number(place, field)),
        None => Value::from("<none>"),
    };
    let limited = object(level, "spec.limited");
    let queuing = limited.and_then(|limited| object(limited, "limitResponse.queuing"));
    cells![
        name(level),
        text(level, "spec.type"),
        number_in(limited, "nominalConcurrencyShares"),
        number_in(queuing, "queues"),
        number_in(queuing, "handSize"),
        number_in(queuing, "queueLengthLimit"),
        age(level, now),
    ]
}
