//! [`Recorded`]: what the other server answered to the script, for tests that have no other server.
//!
//! One line of JSON for each group: its title and the answers to its requests, `null` for those that are too large to be
//! kept. The groups are found by their titles.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::group::Group;
use crate::normal::Normal;

/// What the original answered to [`SCRIPT`](crate::script::SCRIPT).
pub const ANSWERS: &str = include_str!("../tables/answers.jsonl");

/// The largest answer that is kept: lists of everything that is served are looked at elsewhere.
const MOST: usize = 8192;

/// Answers by the titles of their groups.
#[derive(Debug, Default)]
pub struct Recorded {
    groups: BTreeMap<String, Vec<Option<Normal>>>,
}

impl Recorded {
    /// Reads what was recorded. Lines that say nothing are left out.
    pub fn parse(text: &str) -> Recorded {
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let groups = lines.filter_map(|line| {
            let answers = line["answers"].as_array()?.iter().map(Normal::from_json).collect();
            Some((line["group"].as_str()?.to_owned(), answers))
        });
        Recorded { groups: groups.collect() }
    }

    /// Keeps the answers to a group.
    pub fn add(&mut self, group: &Group, answers: &[Normal]) {
        let is_kept = |answer: &Normal| answer.to_json().to_string().len() <= MOST;
        let answers = answers.iter().map(|answer| Some(answer.clone()).filter(is_kept)).collect();
        self.groups.insert(group.title.clone(), answers);
    }

    /// The answers to a group; `None` for those that were not kept.
    pub fn answers(&self, group: &Group) -> Option<&[Option<Normal>]> {
        self.groups.get(&group.title).map(Vec::as_slice)
    }

    /// As it is read.
    pub fn text(&self) -> String {
        let line = |(title, answers): (&String, &Vec<Option<Normal>>)| {
            let answers: Vec<Value> =
                answers.iter().map(|answer| answer.as_ref().map_or(Value::Null, Normal::to_json)).collect();
            json!({"group": title, "answers": answers}).to_string() + "\n"
        };
        self.groups.iter().map(line).collect()
    }
}
