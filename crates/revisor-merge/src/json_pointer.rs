//! [`Pointer`]: where in a document an operation works (RFC 6901), and [`Place`]: what it finds there.
//!
//! Arrays are addressed as Kubernetes does, which is wider than the RFC: an index may be negative and then counts from
//! the end, and it may have a sign and leading zeros.

use std::borrow::Cow;

use revisor_object::{Object, Value};

use crate::PatchError;
use crate::patch_meter::Meter;

/// How much of a pointer is shown in an error; the whole of it can be as long as a request.
const SHOWN_CHARS: usize = 200;

/// A pointer as it was written. It is taken apart only while it is followed: most are used once, and their parts would
/// take up many times the room of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pointer {
    text: String,
}

impl Pointer {
    pub(crate) fn new(text: String) -> Pointer {
        Pointer { text }
    }

    /// Whether it means the whole document.
    pub(crate) fn is_root(&self) -> bool {
        self.text.is_empty()
    }

    /// The text for errors, cut short if it is long.
    pub(crate) fn shown(&self) -> String {
        format!("{:.SHOWN_CHARS$}", self.text)
    }

    /// That there is nothing that could hold what this pointer means.
    fn no_holder(&self, usage: Usage) -> PatchError {
        let path = self.shown();
        let missing = match usage {
            Usage::Add | Usage::Remove => format!("doc is missing path: \"{path}\""),
            Usage::Replace => format!("doc is missing path: {path}"),
            Usage::Test => format!("is missing path: {path}"),
            Usage::MoveFrom | Usage::CopyFrom => format!("doc is missing from path: {path}"),
            Usage::MoveTo | Usage::CopyTo => format!("doc is missing destination path: {path}"),
        };
        PatchError::NotApplicable(format!("{} operation does not apply: {missing}: missing value", usage.operation()))
    }

    /// Follows this pointer up to its last token. All that it passes must exist; what the last token names need not.
    ///
    /// What is written before the first slash is ignored, as in Kubernetes: `spec/x` means `/x`.
    pub(crate) fn resolve<'v>(&self, root: &'v mut Value, usage: Usage) -> Result<Place<'v, '_>, PatchError> {
        let missing = || self.no_holder(usage);
        let (_, tokens) = self.text.split_once('/').ok_or_else(missing)?;
        let (parents, last) = match tokens.rsplit_once('/') {
            Some((parents, last)) => (Some(parents), last),
            None => (None, tokens),
        };
        let mut holder = root;
        let mut depth = 1;
        for token in parents.into_iter().flat_map(|parents| parents.split('/')) {
            holder = child(holder, &unescape(token)).ok_or_else(missing)?;
            depth += 1;
        }
        let holder = match opened(holder) {
            Value::Object(object) => Holder::Object(object),
            Value::Array(items) => Holder::Array(items),
            Value::Null
            | Value::Nothing
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::String(_)
            | Value::Raw(_) => {
                return Err(missing());
            }
        };
        Ok(Place { holder, token: unescape(last), depth, pointer: self, usage })
    }
}

/// A member of an object or an element of an array that exists or could.
#[derive(Debug)]
pub(crate) struct Place<'v, 'p> {
    holder: Holder<'v>,
    token: Cow<'p, str>,
    /// How many objects and arrays are around it.
    depth: usize,
    pointer: &'p Pointer,
    usage: Usage,
}

/// For what a pointer is followed. Errors are told in the words of the library that the original uses, and they depend
/// on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Usage {
    Add,
    Remove,
    Replace,
    Test,
    MoveFrom,
    MoveTo,
    CopyFrom,
    CopyTo,
}

impl Usage {
    fn operation(self) -> &'static str {
        match self {
            Usage::Add => "add",
            Usage::Remove => "remove",
            Usage::Replace => "replace",
            Usage::Test => "test",
            Usage::MoveFrom | Usage::MoveTo => "move",
            Usage::CopyFrom | Usage::CopyTo => "copy",
        }
    }
}

#[derive(Debug)]
enum Holder<'v> {
    Object(&'v mut Object),
    Array(&'v mut Vec<Value>),
}

impl<'v> Place<'v, '_> {
    /// What is there. A member that is missing is nothing, an element that is missing an error.
    pub(crate) fn get(self) -> Result<Option<&'v Value>, PatchError> {
        match self.holder {
            Holder::Object(object) => Ok(object.get(&self.token)),
            Holder::Array(items) => {
                let at = index(&self.token, items.len());
                let at = at.ok_or_else(|| no_element(self.pointer, &self.token, self.usage))?;
                Ok(items.get(at))
            }
        }
    }

    /// Sets a member, or inserts an element before the one that is there; `-` and the length mean after the last.
    pub(crate) fn add(self, value: Value, meter: &mut Meter) -> Result<(), PatchError> {
        meter.nest(&value, self.depth)?;
        match self.holder {
            Holder::Object(object) => set_member(object, &self.token, value, meter),
            Holder::Array(items) => {
                let at = match &*self.token {
                    "-" => items.len(),
                    // A negative index counts from the end of the array as it will be: -1 appends.
                    token => {
                        index(token, items.len() + 1).ok_or_else(|| no_element(self.pointer, token, self.usage))?
                    }
                };
                meter.shift(items.len() - at)?;
                items.insert(at, value);
                Ok(())
            }
        }
    }

    /// Sets a member, also one that is missing, or an element that exists.
    pub(crate) fn replace(self, value: Value, meter: &mut Meter) -> Result<(), PatchError> {
        meter.nest(&value, self.depth)?;
        match self.holder {
            // The RFC wants the member to exist. Kubernetes never did, and clients send such patches.
            Holder::Object(object) => set_member(object, &self.token, value, meter),
            Holder::Array(items) => {
                let at = index(&self.token, items.len());
                let at = at.ok_or_else(|| no_element(self.pointer, &self.token, self.usage))?;
                items[at] = value;
                Ok(())
            }
        }
    }

    /// Takes out what is there, which must exist.
    pub(crate) fn remove(self, meter: &mut Meter) -> Result<Value, PatchError> {
        match self.holder {
            Holder::Object(object) => {
                meter.shift(object.len())?;
                object.remove(&self.token).ok_or_else(|| {
                    let why = format!("Unable to remove nonexistent key: {:.SHOWN_CHARS$}: missing value", self.token);
                    misplaced(self.pointer, &self.token, self.usage, &why)
                })
            }
            Holder::Array(items) => {
                let at = index(&self.token, items.len());
                let at = at.ok_or_else(|| no_element(self.pointer, &self.token, self.usage))?;
                meter.shift(items.len() - at)?;
                Ok(items.remove(at))
            }
        }
    }
}

/// That an array has no such element.
fn no_element(pointer: &Pointer, token: &str, usage: Usage) -> PatchError {
    if usage == Usage::Replace {
        let path = pointer.shown();
        let why = format!("replace operation does not apply: doc is missing key: {path}: missing value");
        return PatchError::NotApplicable(why);
    }
    let no_number = || format!("strconv.Atoi: parsing \"{token:.SHOWN_CHARS$}\": invalid syntax");
    let why = match (token.parse::<i64>(), usage) {
        (Ok(index), _) => format!("Unable to access invalid index: {index}: invalid index referenced"),
        (Err(_), Usage::Add | Usage::MoveTo | Usage::CopyTo) => {
            format!("value was not a proper array index: '{token:.SHOWN_CHARS$}': {}", no_number())
        }
        (Err(_), _) => no_number(),
    };
    misplaced(pointer, token, usage, &why)
}

/// That what a pointer means is not where it should be.
fn misplaced(pointer: &Pointer, token: &str, usage: Usage, why: &str) -> PatchError {
    let (operation, path) = (usage.operation(), pointer.shown());
    PatchError::NotApplicable(match usage {
        Usage::MoveFrom => format!("error in move for path: '{token:.SHOWN_CHARS$}': {why}"),
        Usage::CopyFrom => format!("error in copy for from: '{path}': {why}"),
        Usage::CopyTo => format!("error while adding value during copy: {why}"),
        _ => format!("error in {operation} for path: '{path}': {why}"),
    })
}

fn set_member(object: &mut Object, name: &str, value: Value, meter: &mut Meter) -> Result<(), PatchError> {
    match object.get_mut(name) {
        Some(member) => *member = value,
        None => {
            meter.shift(object.len())?;
            object.insert(name, value);
        }
    }
    Ok(())
}

/// A value that is kept as the text of this program, read: who points into it sees what it says.
fn opened(value: &mut Value) -> &mut Value {
    if matches!(value, Value::Raw(raw) if raw.is_own()) {
        *value = std::mem::take(value).into_plain();
    }
    value
}

/// Reads all in a value that is kept as the text of this program: where it goes it may be looked at otherwise.
pub(crate) fn open_all(value: &mut Value) {
    match opened(value) {
        Value::Array(items) => items.iter_mut().for_each(open_all),
        Value::Object(object) => object.iter_mut().for_each(|(_, member)| open_all(member)),
        _ => {}
    }
}

fn child<'v>(holder: &'v mut Value, token: &str) -> Option<&'v mut Value> {
    match opened(holder) {
        Value::Object(object) => object.get_mut(token),
        Value::Array(items) => {
            let at = index(token, items.len())?;
            items.get_mut(at)
        }
        Value::Null
        | Value::Nothing
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::String(_)
        | Value::Raw(_) => None,
    }
}

/// The position below `len` that `token` means.
fn index(token: &str, len: usize) -> Option<usize> {
    let number: i64 = token.parse().ok()?;
    let at = match usize::try_from(number) {
        Ok(from_start) => from_start,
        Err(_) => len.checked_sub(usize::try_from(number.unsigned_abs()).ok()?)?,
    };
    (at < len).then_some(at)
}

/// The name that a token stands for. A tilde that begins no escape stands for itself.
fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') { token.replace("~1", "/").replace("~0", "~").into() } else { token.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unescaped_once() {
        for (token, want) in [
            ("", ""),
            ("plain", "plain"),
            ("~0", "~"),
            ("~1", "/"),
            ("~01", "~1"),
            ("~10", "/0"),
            ("~001", "~01"),
            ("app.kubernetes.io~1name", "app.kubernetes.io/name"),
            ("~", "~"),
            ("~2~", "~2~"),
            ("~~1", "~/"),
        ] {
            assert_eq!(unescape(token), want, "{token}");
        }
    }

    #[test]
    fn indices_may_count_from_the_end() {
        for (token, len, want) in [
            ("0", 3, Some(0)),
            ("2", 3, Some(2)),
            ("3", 3, None),
            ("-1", 3, Some(2)),
            ("-3", 3, Some(0)),
            ("-4", 3, None),
            ("-0", 3, Some(0)),
            ("+1", 3, Some(1)),
            ("02", 3, Some(2)),
            ("0", 0, None),
            ("-1", 0, None),
            ("", 3, None),
            ("-", 3, None),
            ("1.0", 3, None),
            (" 1", 3, None),
            ("9223372036854775807", 3, None),
            ("-9223372036854775808", 3, None),
            ("9223372036854775808", 3, None),
        ] {
            assert_eq!(index(token, len), want, "{token} of {len}");
        }
    }

    #[test]
    fn long_pointers_are_cut_short_in_errors() {
        let error = Pointer::new("é".repeat(1_000_000)).no_holder(Usage::Add);
        assert!(error.to_string().len() < 3 * SHOWN_CHARS, "{error}");
    }
}
