//! [`JsonPatch`]: a list of operations on a document (RFC 6902).
//!
//! Kubernetes takes more than the RFC does, and here it is followed: `replace` sets a member that does not exist,
//! `copy` of a missing member and an absent `value` mean `null`, `test` for `null` accepts a missing member, and
//! indices count from the end when negative. It also takes less: only `replace` and `test` may address the whole
//! document. Two numbers are the same in a `test` if both are integers or neither is: `1` is not `1.0`.
//!
//! How pointers are followed is in `json_pointer`, what a patch may cost in `patch_meter`.

use revisor_object::{Object, Value};

use crate::PatchError;
use crate::json_pointer::{Pointer, Usage, open_all};
use crate::patch_meter::Meter;

/// A JSON patch that can be applied to any number of values.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

impl JsonPatch {
    /// How many operations a patch may have.
    pub const MAX_OPERATIONS: usize = 10_000;

    /// Reads a patch from its JSON: an array of objects, or `null` for a patch that does nothing.
    ///
    /// Members of the wrong type are [`PatchError::Malformed`]. An operation that lacks a member or has a name that
    /// nobody knows is [`PatchError::NotApplicable`], as if it had been tried.
    ///
    /// ```
    /// use revisor_merge::{JsonPatch, PatchError};
    /// use revisor_object::parse_json;
    ///
    /// let patch = parse_json(br#"[{"op":"add","path":"/metadata/labels/app","value":"web"}]"#)?.value;
    /// assert!(JsonPatch::parse(patch).is_ok());
    ///
    /// let patch = parse_json(br#"{"op":"add"}"#)?.value;
    /// assert!(matches!(JsonPatch::parse(patch), Err(PatchError::Malformed(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(patch: Value) -> Result<JsonPatch, PatchError> {
        let elements = match patch {
            Value::Array(elements) => elements,
            Value::Null => Vec::new(),
            other => return Err(cannot_decode(&other, "value of type []handlers.jsonPatchOp")),
        };
        // Two passes: a type that is wrong anywhere weighs more than an operation that cannot work.
        let written: Vec<Written> = elements.into_iter().map(Written::read).collect::<Result<_, _>>()?;
        if written.len() > JsonPatch::MAX_OPERATIONS {
            return Err(PatchError::TooManyOperations { count: written.len(), limit: JsonPatch::MAX_OPERATIONS });
        }
        let operations = written.into_iter().map(Operation::of).collect::<Result<_, _>>()?;
        Ok(JsonPatch { operations })
    }

    /// Applies the operations to `target`, one after the other.
    ///
    /// On an error the operations before the one that failed have been applied, and that one perhaps in part: the
    /// target is then to be thrown away.
    ///
    /// ```
    /// use revisor_merge::JsonPatch;
    /// use revisor_object::parse_json;
    ///
    /// let patch = br#"[{"op":"test","path":"/spec/replicas","value":1},{"op":"remove","path":"/spec/paused"}]"#;
    /// let patch = JsonPatch::parse(parse_json(patch)?.value)?;
    /// let mut target = parse_json(br#"{"spec":{"replicas":1,"paused":true}}"#)?.value;
    /// patch.apply(&mut target)?;
    /// assert_eq!(target.to_json(), r#"{"spec":{"replicas":1}}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn apply(&self, target: &mut Value) -> Result<(), PatchError> {
        let mut meter = Meter::default();
        self.operations.iter().try_for_each(|operation| operation.apply(target, &mut meter))
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Operation {
    Add { path: Pointer, value: Value },
    Remove { path: Pointer },
    Replace { path: Pointer, value: Value },
    Move { from: Pointer, path: Pointer },
    Copy { from: Pointer, path: Pointer },
    Test { path: Pointer, value: Value },
}

impl Operation {
    fn of(written: Written) -> Result<Operation, PatchError> {
        let Written { op, path, from, value } = written;
        let op = op.unwrap_or_default();
        let pointer = |name: &str, text: Option<String>| {
            let missing = || PatchError::NotApplicable(format!("operation \"{op}\": the member \"{name}\" is missing"));
            text.map(Pointer::new).ok_or_else(missing)
        };
        match op.as_str() {
            "add" => Ok(Operation::Add { path: pointer("path", path)?, value }),
            "remove" => Ok(Operation::Remove { path: pointer("path", path)? }),
            "replace" => Ok(Operation::Replace { path: pointer("path", path)?, value }),
            "move" => Ok(Operation::Move { from: pointer("from", from)?, path: pointer("path", path)? }),
            "copy" => Ok(Operation::Copy { from: pointer("from", from)?, path: pointer("path", path)? }),
            "test" => Ok(Operation::Test { path: pointer("path", path)?, value }),
            // The name is the client's and can be as long as its request.
            unknown => Err(PatchError::NotApplicable(format!("Unexpected kind: {unknown:.40}"))),
        }
    }

    fn apply(&self, target: &mut Value, meter: &mut Meter) -> Result<(), PatchError> {
        match self {
            Operation::Add { path, value } => path.resolve(target, Usage::Add)?.add(value.clone(), meter),
            Operation::Remove { path } => path.resolve(target, Usage::Remove)?.remove(meter).map(drop),
            Operation::Replace { path, value } if path.is_root() => replace_root(target, value, meter),
            Operation::Replace { path, value } => path.resolve(target, Usage::Replace)?.replace(value.clone(), meter),
            Operation::Move { from, path } => {
                // Where it goes is looked up when it is gone, so nothing can be moved into itself.
                let mut value = from.resolve(target, Usage::MoveFrom)?.remove(meter)?;
                open_all(&mut value);
                path.resolve(target, Usage::MoveTo)?.add(value, meter)
            }
            Operation::Copy { from, path } => {
                let mut value = match from.resolve(target, Usage::CopyFrom)?.get()? {
                    Some(value) => {
                        meter.copy(value)?;
                        value.clone()
                    }
                    None => Value::Null,
                };
                open_all(&mut value);
                path.resolve(target, Usage::CopyTo)?.add(value, meter)
            }
            Operation::Test { path, value } => {
                let found = if path.is_root() { Some(&*target) } else { path.resolve(target, Usage::Test)?.get()? };
                match found.map_or(value.is_null(), |found| found == value) {
                    true => Ok(()),
                    false => Err(PatchError::TestFailed { path: path.shown() }),
                }
            }
        }
    }
}

fn replace_root(target: &mut Value, value: &Value, meter: &mut Meter) -> Result<(), PatchError> {
    if !matches!(value, Value::Object(_) | Value::Array(_)) {
        return Err(PatchError::NotApplicable("replace operation value must be object or array".to_owned()));
    }
    meter.nest(value, 0)?;
    *target = value.clone();
    Ok(())
}

/// An operation as it was written: the types are right, but what it needs may be missing. `null` is as good as absent.
#[derive(Default)]
struct Written {
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    value: Value,
}

impl Written {
    fn read(element: Value) -> Result<Written, PatchError> {
        let mut members = match element {
            Value::Object(members) => members,
            Value::Null => return Ok(Written::default()),
            other => return Err(cannot_decode(&other, "value of type handlers.jsonPatchOp")),
        };
        Ok(Written {
            op: take_text(&mut members, "op")?,
            path: take_text(&mut members, "path")?,
            from: take_text(&mut members, "from")?,
            value: members.remove("value").unwrap_or_default(),
        })
    }
}

fn take_text(members: &mut Object, name: &str) -> Result<Option<String>, PatchError> {
    match members.remove(name) {
        Some(Value::String(text)) => Ok(Some(text.into())),
        None | Some(Value::Null) => Ok(None),
        Some(other) => Err(cannot_decode(&other, &format!("struct field jsonPatchOp.{name} of type string"))),
    }
}

/// The words of Go's decoder, which clients see and some of them match on.
fn cannot_decode(found: &Value, into: &str) -> PatchError {
    PatchError::Malformed(format!("error decoding patch: json: cannot unmarshal {} into Go {into}", found.type_name()))
}

#[cfg(test)]
mod tests;
