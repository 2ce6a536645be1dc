//! [`Source`]: where the values are that a message is made of. That is a value in memory ([`Tree`]), or the text of an
//! object that was looked through ([`Outline`](super::outline::Outline)).

use std::borrow::Cow;
use std::marker::PhantomData;

use revisor_object::{Value, bytes_of_text, push_json_value};

use crate::fields::Fields;

/// Knows what values say. Whatever is of another type than it is asked for says nothing.
pub(super) trait Source {
    /// One value.
    type Node: Copy;

    fn is_null(&self, node: Self::Node) -> bool;
    fn is_object(&self, node: Self::Node) -> bool;
    fn truth(&self, node: Self::Node) -> bool;
    fn integer(&self, node: Self::Node) -> i64;
    fn float(&self, node: Self::Node) -> f64;
    fn text(&self, node: Self::Node) -> Option<Cow<'_, str>>;

    /// The JSON text of a value.
    fn json(&self, node: Self::Node) -> Cow<'_, [u8]>;

    /// The items of an array, the last one first.
    fn items(&self, node: Self::Node) -> Option<impl Iterator<Item = Self::Node>>;

    /// The members of an object of free names, the last one first. They are in the order of their bytes.
    fn members(&self, node: Self::Node) -> Option<impl Iterator<Item = (&str, Self::Node)>>;

    /// Puts the members of an object to the places of their fields.
    fn gather(&self, node: Self::Node, fields: &Fields, values: &mut [Option<Self::Node>]);
}

/// Values in memory.
pub(super) struct Tree<'v>(PhantomData<&'v Value>);

impl Tree<'_> {
    pub(super) const fn new() -> Self {
        Tree(PhantomData)
    }
}

impl<'v> Source for Tree<'v> {
    type Node = &'v Value;

    fn is_null(&self, node: &'v Value) -> bool {
        node.is_null()
    }

    fn is_object(&self, node: &'v Value) -> bool {
        node.as_object().is_some()
    }

    fn truth(&self, node: &'v Value) -> bool {
        node.as_bool().unwrap_or_default()
    }

    fn integer(&self, node: &'v Value) -> i64 {
        integer(node)
    }

    fn float(&self, node: &'v Value) -> f64 {
        float(node)
    }

    fn text(&self, node: &'v Value) -> Option<Cow<'_, str>> {
        node.as_str().map(Cow::Borrowed)
    }

    fn json(&self, node: &'v Value) -> Cow<'_, [u8]> {
        match node {
            Value::Raw(raw) => bytes_of_text(raw.text()),
            value => {
                let mut text = Vec::new();
                push_json_value(value, &mut text);
                Cow::Owned(text)
            }
        }
    }

    fn items(&self, node: &'v Value) -> Option<impl Iterator<Item = &'v Value>> {
        node.as_array().map(|items| items.iter().rev())
    }

    fn members(&self, node: &'v Value) -> Option<impl Iterator<Item = (&str, &'v Value)>> {
        node.as_object().map(|object| object.iter().rev().map(|(name, value)| -> (&str, _) { (name, value) }))
    }

    fn gather(&self, node: &'v Value, fields: &Fields, values: &mut [Option<&'v Value>]) {
        if let Value::Object(object) = node {
            fields.gather(object, values);
        }
    }
}

/// The integer that a number is, without its fraction.
pub(super) fn integer(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        Value::Float(number) => *number as i64,
        _ => 0,
    }
}

pub(super) fn float(value: &Value) -> f64 {
    match value {
        Value::Float(float) => *float,
        other => integer(other) as f64,
    }
}
