//! [`RawJson`]: a part of an object that is kept as the text that it was sent as.
//!
//! Upstream: `runtime.RawExtension`. Nobody but its owner knows what it says, so blanks, the order of names and the
//! spelling of numbers stay as they are; whoever has to look into it sees what was read of it.

use std::borrow::Cow;

use crate::go_json::{compact_json, push_json_value};
use crate::{Value, json_problem, parse_json};

/// JSON with its text.
#[derive(Debug, Clone)]
pub struct RawJson {
    text: Box<str>,
    value: Value,
    problem: Option<String>,
}

impl RawJson {
    /// What a client sent. It need not be JSON: that it is not is told by the rules of the kind.
    pub fn read(text: &str) -> RawJson {
        let (value, problem) = match parse_json(text.as_bytes()) {
            Ok(parsed) => (parsed.value, None),
            Err(error) => (Value::Null, Some(json_problem(text.as_bytes()).unwrap_or_else(|| error.to_string()))),
        };
        RawJson { text: text.into(), value, problem }
    }

    /// A value that was sent in another way than as JSON, in the notation of the original.
    pub fn of(value: Value) -> RawJson {
        let mut text = Vec::new();
        push_json_value(&value, &mut text);
        RawJson { text: String::from_utf8_lossy(&text).into(), value, problem: None }
    }

    /// A text of which it is known what it says.
    pub fn known(text: &str, value: Value) -> RawJson {
        RawJson { text: text.into(), value, problem: None }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it says; null if it is no JSON.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// What it says.
    pub fn into_value(self) -> Value {
        self.value
    }

    /// Why it is no JSON, in Go's words.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether it is shown to those who read JSON as it is.
    pub fn is_compact(&self) -> bool {
        matches!(compact_json(self.text.as_bytes()), Cow::Borrowed(_))
    }
}

/// What is spelled otherwise is another text, as in the original.
impl PartialEq for RawJson {
    fn eq(&self, other: &RawJson) -> bool {
        self.text == other.text
    }
}
