//! EventRateLimit: so many events in a second, of the server, of a namespace, of a user or about one thing.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use revisor_object::{Object, Value};
use time::OffsetDateTime;

use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

/// What events are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventLimitType {
    /// All of them together.
    Server,
    /// Their namespace.
    Namespace,
    /// Who writes them.
    User,
    /// Who saw what about which object.
    SourceAndObject,
}

impl EventLimitType {
    /// All of them.
    pub const ALL: [EventLimitType; 4] =
        [EventLimitType::Server, EventLimitType::Namespace, EventLimitType::User, EventLimitType::SourceAndObject];

    /// Its name in configurations and messages.
    pub fn name(self) -> &'static str {
        match self {
            EventLimitType::Server => "Server",
            EventLimitType::Namespace => "Namespace",
            EventLimitType::User => "User",
            EventLimitType::SourceAndObject => "SourceAndObject",
        }
    }

    fn key(self, attributes: &Attributes<'_>, event: &Object) -> String {
        let text = |path: &[&str]| event.at(path).and_then(Value::as_str).unwrap_or_default();
        match self {
            EventLimitType::Server => String::new(),
            EventLimitType::Namespace => attributes.namespace.unwrap_or_default().to_owned(),
            EventLimitType::User => attributes.requester.name.to_owned(),
            EventLimitType::SourceAndObject => {
                let object =
                    ["kind", "namespace", "name", "uid", "apiVersion"].map(|name| text(&["involvedObject", name]));
                [&[text(&["source", "component"]), text(&["source", "host"])][..], &object].concat().concat()
            }
        }
    }
}

/// One limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLimit {
    /// What events are counted by.
    pub kind: EventLimitType,
    /// How many a second.
    pub qps: u32,
    /// How many at once, after a pause.
    pub burst: u32,
    /// Of how many keys the count is kept.
    pub cache_size: usize,
}

pub(super) struct EventRateLimit(Vec<Enforcer>);

struct Enforcer {
    limit: EventLimit,
    buckets: Mutex<Buckets>,
}

/// The counts by key; beyond their number the one that was used least recently goes.
#[derive(Default)]
struct Buckets {
    by_key: HashMap<String, (u64, Bucket)>,
    by_use: BTreeMap<u64, String>,
    uses: u64,
}

/// Tokens, of which an event takes one, and which come again as time goes by.
#[derive(Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: OffsetDateTime,
}

impl EventRateLimit {
    pub(super) fn new(limits: &[EventLimit]) -> EventRateLimit {
        EventRateLimit(limits.iter().map(|limit| Enforcer { limit: *limit, buckets: Mutex::default() }).collect())
    }
}

impl Admission for EventRateLimit {
    fn name(&self) -> &'static str {
        "EventRateLimit"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, event: &Object) -> Result<(), RegistryError> {
        // As in the original, those who write them in the newer group are not counted.
        if attributes.shown.name() != ("", "events") || attributes.dry_run {
            return Ok(());
        }
        let now = registry.environment.now();
        let refusals: Vec<String> = self
            .0
            .iter()
            .filter_map(|enforcer| {
                let (kind, key) = (enforcer.limit.kind, enforcer.limit.kind.key(attributes, event));
                let refusal = format!("limit reached on type {} for key {key}", kind.name());
                (!enforcer.accepts(key, now)).then_some(refusal)
            })
            .collect();
        match refusals.as_slice() {
            [] => Ok(()),
            [only] => Err(RegistryError::TooManyRequests(only.clone())),
            several => Err(RegistryError::TooManyRequests(format!("[{}]", several.join(", ")))),
        }
    }
}

impl Enforcer {
    fn accepts(&self, key: String, now: OffsetDateTime) -> bool {
        let mut buckets = self.buckets();
        let (qps, burst) = (f64::from(self.limit.qps), f64::from(self.limit.burst));
        let most = if self.limit.kind == EventLimitType::Server { 1 } else { self.limit.cache_size.max(1) };
        buckets.uses += 1;
        let this_use = buckets.uses;
        let known = buckets.by_key.remove(&key);
        if let Some((last_use, _)) = known {
            buckets.by_use.remove(&last_use);
        } else if buckets.by_key.len() >= most
            && let Some((_, oldest)) = buckets.by_use.pop_first()
        {
            buckets.by_key.remove(&oldest);
        }
        let mut bucket = known.map_or(Bucket { tokens: burst, at: now }, |(_, bucket)| bucket);
        let passed = (now - bucket.at).as_seconds_f64().max(0.0);
        bucket.tokens = (bucket.tokens + passed * qps).min(burst);
        bucket.at = now.max(bucket.at);
        let is_accepted = bucket.tokens >= 1.0;
        if is_accepted {
            bucket.tokens -= 1.0;
        }
        buckets.by_use.insert(this_use, key.clone());
        buckets.by_key.insert(key, (this_use, bucket));
        is_accepted
    }

    fn buckets(&self) -> MutexGuard<'_, Buckets> {
        // Nothing in there panics half way.
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_once_and_then_so_many_a_second() {
        let limit = EventLimit { kind: EventLimitType::Namespace, qps: 2, burst: 3, cache_size: 2 };
        let enforcer = Enforcer { limit, buckets: Mutex::default() };
        let at = |seconds: f64| OffsetDateTime::UNIX_EPOCH + time::Duration::seconds_f64(seconds);
        for (key, time, want) in [
            ("a", 0.0, true),
            ("a", 0.0, true),
            ("a", 0.0, true),
            ("a", 0.0, false),
            ("b", 0.0, true),
            ("a", 0.4, false),
            ("a", 0.5, true),
            ("a", 0.5, false),
            // A clock that is set back gives nothing away.
            ("a", 0.1, false),
            // A third key, and the one that was used least recently begins anew.
            ("c", 0.5, true),
            ("b", 0.5, true),
            ("a", 0.5, true),
        ] {
            assert_eq!(enforcer.accepts(key.to_owned(), at(time)), want, "{key} {time}");
        }
    }
}
