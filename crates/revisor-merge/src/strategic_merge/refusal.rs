//! What is wrong with a strategic merge patch, in the words of the original, which people search for.
//!
//! Values of the client are shown as Go prints them, and cut short: they can be as long as a request.

use std::fmt::{self, Write};

use revisor_object::{Object, Value};
use revisor_schema::Shape;

use crate::PatchError;

/// How many bytes of a value are shown, give or take a character.
const SHOWN_BYTES: usize = 1024;

pub(super) fn no_object(found: &Value) -> PatchError {
    let found = found.type_name();
    PatchError::Malformed(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"))
}

pub(super) fn wrong_type(expected: &Value, found: &Value) -> PatchError {
    PatchError::Malformed(format!("expected a {}, but received a {}", go_type(expected), go_type(found)))
}

pub(super) fn unknown_directive(directive: &Value, object: &Value) -> PatchError {
    let [directive, object] = [directive, object].map(|value| shown(|out| write_value(out, value)));
    PatchError::Malformed(format!("unknown patch type: {directive} in map: {object}"))
}

pub(super) fn merge_directive() -> PatchError {
    PatchError::Malformed("merging lists cannot yet be specified in the patch".to_owned())
}

pub(super) fn bad_retained_keys() -> PatchError {
    PatchError::Malformed("invalid patch format of retainKeys".to_owned())
}

pub(super) fn bad_deletion() -> PatchError {
    PatchError::Malformed("invalid patch format of primitive list".to_owned())
}

pub(super) fn bad_order() -> PatchError {
    PatchError::Malformed("invalid patch format of setElementOrder list".to_owned())
}

pub(super) fn other_order(patch: &[Value], order: &[Value]) -> PatchError {
    let [patch, order] = [patch, order].map(|list| shown(|out| write_list(out, list)));
    PatchError::Malformed(format!(
        "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
    ))
}

pub(super) fn key_missing(object: &Object, key: &str) -> PatchError {
    let object = shown(|out| write_object(out, object));
    PatchError::Malformed(format!("map: {object} does not contain declared merge key: {key}"))
}

pub(super) fn no_merge_key(element: &Shape) -> PatchError {
    PatchError::Malformed(format!("cannot merge lists without merge key for {}", go_kind(element)))
}

pub(super) fn no_scalar(found: &Value) -> PatchError {
    let found = shown(|out| write_value(out, found));
    PatchError::Malformed(format!("an element of a list of scalars is none: {found}"))
}

pub(super) fn no_elements() -> PatchError {
    PatchError::Malformed("no elements in any of the given slices".to_owned())
}

pub(super) fn mixed_elements(target: &[Value], patch: &[Value]) -> PatchError {
    let [target, patch] = [target, patch].map(|list| shown(|out| write_list(out, list)));
    PatchError::Malformed(format!("list element types are not identical: [{target} {patch}]"))
}

pub(super) fn list_of_lists() -> PatchError {
    PatchError::NotApplicable("lists of lists are not supported".to_owned())
}

pub(super) fn no_struct(found: &Shape) -> PatchError {
    let found = go_kind(found);
    PatchError::Malformed(format!("merging an object in json but data type is not struct, instead is: {found}"))
}

pub(super) fn no_field(of: &str, name: &str) -> PatchError {
    PatchError::Malformed(format!("unable to find api field in struct {of} for the json field \"{name:.100}\""))
}

pub(super) fn no_list_field() -> PatchError {
    PatchError::Malformed("expected slice or array type, but got: struct".to_owned())
}

pub(super) fn list_of_lists_field() -> PatchError {
    PatchError::Malformed("unexpected slice of slice".to_owned())
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::Nothing => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Raw(raw) => go_type(raw.value()),
    }
}

fn go_kind(shape: &Shape) -> &'static str {
    match shape {
        Shape::String => "string",
        Shape::Bool => "bool",
        Shape::Int32 => "int32",
        Shape::Int64 => "int64",
        Shape::Double => "float64",
        Shape::Bytes | Shape::List(_) => "slice",
        Shape::Map(_) => "map",
        Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Quantity
        | Shape::IntOrString
        | Shape::Any
        | Shape::Raw
        | Shape::Struct(_)
        | Shape::Either(..) => "struct",
    }
}

/// Text that takes no more once it is long enough.
struct Shown(String);

impl Write for Shown {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = SHOWN_BYTES.saturating_sub(self.0.len());
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        if text.len() > room { Err(fmt::Error) } else { Ok(()) }
    }
}

fn shown(write: impl FnOnce(&mut Shown) -> fmt::Result) -> String {
    let mut out = Shown(String::new());
    // An error only says that the text was cut.
    let cut = write(&mut out).is_err();
    if cut {
        out.0.push('…');
    }
    out.0
}

fn write_value(out: &mut Shown, value: &Value) -> fmt::Result {
    match value {
        Value::Null | Value::Nothing => out.write_str("<nil>"),
        Value::Bool(truth) => write!(out, "{truth}"),
        Value::Int(number) => write!(out, "{number}"),
        Value::Float(number) => write!(out, "{number}"),
        Value::String(text) => out.write_str(text),
        Value::Array(items) => write_list(out, items),
        Value::Object(object) => write_object(out, object),
        Value::Raw(raw) => write_value(out, raw.value()),
    }
}

fn write_list(out: &mut Shown, items: &[Value]) -> fmt::Result {
    out.write_str("[")?;
    for (at, item) in items.iter().enumerate() {
        out.write_str(if at == 0 { "" } else { " " })?;
        write_value(out, item)?;
    }
    out.write_str("]")
}

fn write_object(out: &mut Shown, object: &Object) -> fmt::Result {
    out.write_str("map[")?;
    for (at, (name, value)) in object.iter().enumerate() {
        out.write_str(if at == 0 { "" } else { " " })?;
        write!(out, "{name}:")?;
        write_value(out, value)?;
    }
    out.write_str("]")
}
