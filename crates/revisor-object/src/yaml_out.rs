//! JSON values as YAML, laid out as the original lays them out: members sorted, blocks indented by two, long texts
//! folded, and everything quoted that a reader of YAML 1.1 would take for something else than a text.
//!
//! Here is the layout of blocks; how a text is written is chosen in `style.rs` and done in `text.rs`.

mod implicit_type;
mod name_order;
mod style;
mod text;

use crate::{Object, Value};

use self::name_order::sorted;
use self::style::is_break;

/// Names longer than this have a line of their own.
const MAX_SIMPLE_NAME: usize = 128;

/// A value as a YAML document.
pub fn yaml_document(value: &Value) -> String {
    let mut writer = Writer::default();
    writer.node(value, 0, Place::Root);
    writer.end_line();
    writer.out
}

/// A value as an element of a sequence that is not indented.
pub fn yaml_element(value: &Value) -> String {
    let mut writer = Writer::default();
    writer.element(value, 0);
    writer.end_line();
    writer.out
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// Behind the dash of an element.
    Element,
    /// Behind the colon of a member.
    Member,
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Characters in the current line.
    column: usize,
}

impl Writer {
    fn push(&mut self, character: char) {
        self.out.push(character);
        self.column = if character == '\n' { 0 } else { self.column + 1 };
    }

    fn push_str(&mut self, text: &str) {
        text.chars().for_each(|character| self.push(character));
    }

    fn new_line(&mut self, indent: usize) {
        self.push('\n');
        (0..indent).for_each(|_| self.push(' '));
    }

    fn end_line(&mut self) {
        if self.column > 0 {
            self.push('\n');
        }
    }

    /// Begins a line at this indent; the first node of a block stands in the line of its dash.
    fn begin(&mut self, indent: usize) {
        if self.column > indent || (self.column == 0 && indent > 0) {
            self.end_line();
            (0..indent).for_each(|_| self.push(' '));
        }
    }

    fn node(&mut self, value: &Value, indent: usize, place: Place) {
        match value {
            Value::Object(object) if !object.is_empty() => {
                let indent = if place == Place::Root { indent } else { indent + 2 };
                if place == Place::Member {
                    self.new_line(indent);
                }
                self.mapping(object, indent);
            }
            Value::Array(items) if !items.is_empty() => {
                // A sequence in a mapping is not indented further.
                let indent = if place == Place::Element { indent + 2 } else { indent };
                if place == Place::Member {
                    self.new_line(indent);
                }
                for item in items {
                    self.element(item, indent);
                }
            }
            Value::Object(_) => self.behind(place, "{}"),
            Value::Array(_) => self.behind(place, "[]"),
            Value::Raw(raw) => self.node(raw.value(), indent, place),
            Value::Null | Value::Nothing => self.behind(place, "null"),
            Value::Bool(truth) => self.behind(place, if *truth { "true" } else { "false" }),
            Value::Int(number) => self.behind(place, &number.to_string()),
            Value::Float(number) => self.behind(place, &float(*number)),
            Value::String(text) => {
                if place == Place::Member {
                    self.push(' ');
                }
                // What does not fit the line is indented below its place.
                self.text(text, indent + 2, false);
            }
        }
    }

    fn behind(&mut self, place: Place, text: &str) {
        if place == Place::Member {
            self.push(' ');
        }
        self.push_str(text);
    }

    fn element(&mut self, value: &Value, indent: usize) {
        self.begin(indent);
        self.push_str("- ");
        self.node(value, indent, Place::Element);
    }

    fn mapping(&mut self, object: &Object, indent: usize) {
        for (name, value) in sorted(object.iter().collect()) {
            self.begin(indent);
            if name.len() <= MAX_SIMPLE_NAME && !name.contains(is_break) {
                self.text(name, indent + 2, true);
                self.push(':');
                self.node(value, indent, Place::Member);
                continue;
            }
            self.push_str("? ");
            self.text(name, indent + 2, false);
            self.begin(indent);
            self.push(':');
            // A block begins in the line of the colon, as it does behind a dash.
            self.push(' ');
            self.node(value, indent, Place::Element);
        }
    }
}

/// The shortest text of a number, with an exponent where that is shorter.
fn float(number: f64) -> String {
    let text = format!("{number:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let Ok(power) = exponent.parse::<i32>() else { return text };
    if (-4..6).contains(&power) {
        return number.to_string();
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.unsigned_abs())
}

#[cfg(test)]
mod tests;
