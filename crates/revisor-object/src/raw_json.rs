//! [`RawJson`]: a part of an object that is kept as the text that it was sent as.
//!
//! Upstream: `runtime.RawExtension`. Nobody but its owner knows what it says, so blanks, the order of names and the
//! spelling of numbers stay as they are; whoever has to look into it sees what was read of it.
//!
//! Parts of stored objects that are seldom looked into are kept so too, and read only if somebody does: to read sets of
//! managed fields and to write them again takes longer than most of what is done to an object.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::go_json::{compact_json, push_json_value};
use crate::{Value, json_problem, parse_json};

/// JSON with its text.
#[derive(Debug, Clone)]
pub struct RawJson {
    text: Box<str>,
    /// What it says, once that is known.
    value: OnceLock<Value>,
    problem: Option<String>,
    /// Whether the text is as this program writes it.
    is_own: bool,
}

impl RawJson {
    /// What a client sent. It need not be JSON: that it is not is told by the rules of the kind.
    pub fn read(text: &str) -> RawJson {
        let (value, problem) = match parse_json(text.as_bytes()) {
            Ok(parsed) => (parsed.value, None),
            Err(error) => (Value::Null, Some(json_problem(text.as_bytes()).unwrap_or_else(|| error.to_string()))),
        };
        RawJson { text: text.into(), value: value.into(), problem, is_own: false }
    }

    /// A value that was sent in another way than as JSON, in the notation of the original.
    pub fn of(value: Value) -> RawJson {
        let mut text = Vec::new();
        push_json_value(&value, &mut text);
        RawJson { text: String::from_utf8_lossy(&text).into(), value: value.into(), problem: None, is_own: false }
    }

    /// A text of which it is known what it says.
    pub fn known(text: &str, value: Value) -> RawJson {
        RawJson { text: text.into(), value: value.into(), problem: None, is_own: false }
    }

    /// A text that this program wrote in its own notation, in which there are only bytes of UTF-8. What it says is read
    /// when somebody asks.
    pub fn own(text: &str) -> RawJson {
        RawJson { text: text.into(), value: OnceLock::new(), problem: None, is_own: true }
    }

    /// Whether the text is as this program writes it.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it says; null if it is no JSON.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| parse_json(self.text.as_bytes()).map(|parsed| parsed.value).unwrap_or_default())
    }

    /// What it says.
    pub fn into_value(mut self) -> Value {
        self.value();
        self.value.take().unwrap_or_default()
    }

    /// Why it is no JSON, in Go's words.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether it says the same as a value.
    pub fn says(&self, value: &Value) -> bool {
        if self.is_own && self.value.get().is_none() {
            // To write it takes less than to read it.
            let mut text = Vec::with_capacity(self.text.len());
            push_json_value(value, &mut text);
            if text == self.text.as_bytes() {
                return true;
            }
        }
        self.value() == value
    }

    /// Whether it is shown to those who read JSON as it is.
    pub fn is_compact(&self) -> bool {
        self.is_own || matches!(compact_json(self.text.as_bytes()), Cow::Borrowed(_))
    }
}

/// What is spelled otherwise is another text, as in the original.
impl PartialEq for RawJson {
    fn eq(&self, other: &RawJson) -> bool {
        self.text == other.text
    }
}
