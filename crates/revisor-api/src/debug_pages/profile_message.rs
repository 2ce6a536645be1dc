//! [`Profile`]: the message that pprof reads (`perftools.profiles.Profile`). Texts stand in a table and are spoken of by
//! their place there; so are functions and places in them.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost::Message;

/// What a thread was doing when it was looked at, and how often it was found doing that.
pub(super) struct Stack {
    /// The innermost first; of calls that were inlined into each other too.
    pub(super) calls: Vec<Vec<Call>>,
    pub(super) thread: String,
    pub(super) count: i64,
}

/// Where a thread was.
pub(super) struct Call {
    pub(super) function: String,
}

impl Call {
    pub(super) fn named(function: &str) -> Call {
        Call { function: function.to_owned() }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
}

/// What numbers mean, and their unit.
#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
}

impl Profile {
    /// A profile of the processor that was looked at after each `period` of its time.
    pub(super) fn of_processor(
        stacks: impl Iterator<Item = Stack>,
        begun: SystemTime,
        time: Duration,
        period: Duration,
    ) -> Profile {
        let mut tables = Tables::default();
        // The first text is the empty one.
        tables.text("");
        let sample_type = vec![tables.value_type("samples", "count"), tables.value_type("cpu", "nanoseconds")];
        let period_type = Some(tables.value_type("cpu", "nanoseconds"));
        let period = nanoseconds(period);
        let sample = stacks.map(|stack| tables.sample(&stack, period)).collect();
        Profile {
            sample_type,
            sample,
            location: tables.locations,
            function: tables.functions,
            string_table: tables.texts,
            time_nanos: nanoseconds(begun.duration_since(UNIX_EPOCH).unwrap_or_default()),
            duration_nanos: nanoseconds(time),
            period_type,
            period,
        }
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// What samples speak of, each once.
#[derive(Default)]
struct Tables {
    texts: Vec<String>,
    known_texts: HashMap<String, i64>,
    functions: Vec<Function>,
    known_functions: HashMap<i64, u64>,
    locations: Vec<Location>,
    known_locations: HashMap<Vec<Line>, u64>,
}

impl Tables {
    fn text(&mut self, text: &str) -> i64 {
        if let Some(known) = self.known_texts.get(text) {
            return *known;
        }
        let at = self.texts.len() as i64;
        self.texts.push(text.to_owned());
        self.known_texts.insert(text.to_owned(), at);
        at
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType { r#type: self.text(kind), unit: self.text(unit) }
    }

    fn function(&mut self, call: &Call) -> u64 {
        let name = self.text(&call.function);
        let next = self.functions.len() as u64 + 1;
        let id = *self.known_functions.entry(name).or_insert(next);
        if id == next {
            self.functions.push(Function { id, name, system_name: name });
        }
        id
    }

    fn location(&mut self, calls: &[Call]) -> u64 {
        let line: Vec<Line> = calls.iter().map(|call| Line { function_id: self.function(call) }).collect();
        let next = self.locations.len() as u64 + 1;
        let id = *self.known_locations.entry(line.clone()).or_insert(next);
        if id == next {
            self.locations.push(Location { id, line });
        }
        id
    }

    fn sample(&mut self, stack: &Stack, period: i64) -> Sample {
        let location_id = stack.calls.iter().map(|calls| self.location(calls)).collect();
        let label = vec![Label { key: self.text("thread"), str: self.text(&stack.thread) }];
        Sample { location_id, value: vec![stack.count, stack.count.saturating_mul(period)], label }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spoken_of_twice_stands_there_once() {
        let stack = |inner: &str, count| Stack {
            calls: vec![vec![Call::named(inner), Call::named("outer")], vec![Call::named("main")]],
            thread: "worker".to_owned(),
            count,
        };
        let stacks = [stack("a", 2), stack("b", 1), stack("a", 4)].into_iter();
        let second = Duration::from_secs(1);
        let profile = Profile::of_processor(stacks, UNIX_EPOCH + second, 2 * second, second / 100);
        let names: Vec<&str> =
            profile.function.iter().map(|function| profile.string_table[function.name as usize].as_str()).collect();
        assert_eq!(names, ["a", "outer", "main", "b"]);
        assert_eq!(profile.location.len(), 3);
        let shown: Vec<(&[u64], &[i64])> =
            profile.sample.iter().map(|sample| (&*sample.location_id, &*sample.value)).collect();
        assert_eq!(
            shown,
            [
                (&[1, 2][..], &[2, 20_000_000][..]),
                (&[3, 2][..], &[1, 10_000_000][..]),
                (&[1, 2][..], &[4, 40_000_000][..])
            ]
        );
        assert_eq!(profile.string_table[0], "");
        assert_eq!((profile.time_nanos, profile.duration_nanos), (1_000_000_000, 2_000_000_000));
        assert_eq!(Profile::decode(profile.encode_to_vec().as_slice()).expect("a message"), profile);
    }
}
