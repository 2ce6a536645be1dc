//! [`PriorityLevel`]: how much of the server the requests of a level get, and what happens to those beyond it.

use revisor_object::{Object, Value};

use crate::Dealer;

/// The level of those who are never kept waiting.
const EXEMPT: &str = "exempt";

/// A PriorityLevelConfiguration, as far as requests are concerned.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorityLevel {
    /// Its name.
    pub name: String,
    /// What tells it from others that had the name.
    pub uid: String,
    /// How many of the server's seats are its own.
    pub shares: Shares,
    /// What happens to its requests.
    pub queuing: Queuing,
}

/// The seats of a level, in comparison with those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Its part of all.
    pub nominal: u64,
    /// How much of that it lends, in percent.
    pub lendable_percent: u64,
    /// How much it borrows at most, in percent of its own; no limit if it does not say.
    pub borrowing_limit_percent: Option<u64>,
}

/// What happens to the requests of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queuing {
    /// They are all served at once.
    Exempt,
    /// Those beyond its seats are refused.
    Reject,
    /// Those beyond its seats wait.
    Queue {
        /// How many queues there are.
        queues: usize,
        /// Which of them flows may use.
        dealer: Dealer,
        /// How many of them a flow may use.
        hand_size: usize,
        /// How many requests may wait in each.
        length_limit: usize,
    },
}

impl PriorityLevel {
    /// The level that a stored object describes; `None` if it is broken, and then it is as if it were not there.
    pub fn read(object: &Object) -> Option<PriorityLevel> {
        let metadata = object.object("metadata")?;
        let name = metadata.str("name")?.to_owned();
        let spec = object.object("spec")?;
        let is_exempt = match spec.str("type")? {
            "Exempt" => true,
            "Limited" => false,
            _ => return None,
        };
        if is_exempt != (name == EXEMPT) {
            return None;
        }
        let part = spec.object(if is_exempt { "exempt" } else { "limited" })?;
        let number = |name: &str| part.get(name).and_then(Value::as_i64).and_then(|number| u64::try_from(number).ok());
        let shares = Shares {
            nominal: number("nominalConcurrencyShares").unwrap_or(if is_exempt { 0 } else { 30 }),
            lendable_percent: number("lendablePercent").unwrap_or_default(),
            borrowing_limit_percent: number("borrowingLimitPercent").filter(|_| !is_exempt),
        };
        let queuing = if is_exempt { Queuing::Exempt } else { read_queuing(part.object("limitResponse")?)? };
        Some(PriorityLevel { name, uid: metadata.str("uid").unwrap_or_default().to_owned(), shares, queuing })
    }

    /// Whether its requests are never kept waiting.
    pub fn is_exempt(&self) -> bool {
        self.queuing == Queuing::Exempt
    }
}

fn read_queuing(response: &Object) -> Option<Queuing> {
    match response.str("type")? {
        "Reject" => Some(Queuing::Reject),
        "Queue" => {
            let queuing = response.object("queuing")?;
            let number =
                |name: &str| queuing.get(name).and_then(Value::as_i64).and_then(|number| usize::try_from(number).ok());
            let (queues, hand_size) = (number("queues")?, number("handSize")?);
            let dealer = Dealer::new(queues, hand_size)?;
            Some(Queuing::Queue { queues, dealer, hand_size, length_limit: number("queueLengthLimit")? })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn read(text: &str) -> Option<PriorityLevel> {
        let parsed = parse_json(text.as_bytes()).expect("JSON").value;
        PriorityLevel::read(parsed.as_object().expect("an object"))
    }

    #[test]
    fn broken_levels_are_none() {
        let queue = r#"{"type":"Queue","queuing":{"queues":8,"handSize":2,"queueLengthLimit":5}}"#;
        let limited = |name: &str, response: &str| {
            format!(
                r#"{{"metadata":{{"name":"{name}"}},"spec":{{"type":"Limited","limited":{{"nominalConcurrencyShares":5,"limitResponse":{response}}}}}}}"#
            )
        };
        for (text, want) in [
            (limited("a", queue), true),
            (limited("a", r#"{"type":"Reject"}"#), true),
            (limited("exempt", queue), false),
            (limited("a", r#"{"type":"Queue"}"#), false),
            (limited("a", &queue.replace(":2", ":9")), false),
            (r#"{"metadata":{"name":"exempt"},"spec":{"type":"Exempt","exempt":{}}}"#.to_owned(), true),
            (r#"{"metadata":{"name":"b"},"spec":{"type":"Exempt","exempt":{}}}"#.to_owned(), false),
            (r#"{"metadata":{"name":"b"},"spec":{"type":"Limited"}}"#.to_owned(), false),
        ] {
            assert_eq!(read(&text).is_some(), want, "{text}");
        }
    }
}
