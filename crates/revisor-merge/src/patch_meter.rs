//! [`Meter`]: what one JSON patch may cost.
//!
//! A body of a few kilobytes can ask for gigabytes: copies double what they copy, and to insert before a long array
//! moves all of it. The size of a body alone therefore bounds nothing.

use revisor_object::Value;

use crate::PatchError;

/// How many bytes of JSON the copies of one patch may add together.
pub(crate) const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// How deep objects and arrays may nest. The same as in the parser of the object crate: what is patched is written as
/// JSON and must be readable again, and everything that walks a value recurses this deep.
pub(crate) const MAX_DEPTH: usize = revisor_object::MAX_DEPTH;

/// How many elements one patch may shift or look at. About a second's worth, and ten thousand operations on an object
/// or array of ten thousand elements stay below it.
pub(crate) const MAX_WORK: usize = 1 << 27;

/// Adds up what the operations of one patch have cost so far.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    copied: usize,
    work: usize,
}

impl Meter {
    /// Counts a copy of `value`, before it is made.
    pub(crate) fn copy(&mut self, value: &Value) -> Result<(), PatchError> {
        self.copied = self.copied.saturating_add(encoded_size(value));
        if self.copied > MAX_COPIED_BYTES {
            return Err(PatchError::CopyTooLarge { size: self.copied, limit: MAX_COPIED_BYTES });
        }
        Ok(())
    }

    /// Counts `elements` that make room or close a gap.
    pub(crate) fn shift(&mut self, elements: usize) -> Result<(), PatchError> {
        self.work = self.work.saturating_add(elements);
        if self.work > MAX_WORK {
            return Err(PatchError::TooMuchWork { limit: MAX_WORK });
        }
        Ok(())
    }

    /// Checks that `value` may stand inside of `depth` objects and arrays. Every operation that places a value asks
    /// here and not only the patch at its end, because copies into copies double the depth each time and to clone
    /// the next one would overflow the stack.
    pub(crate) fn nest(&mut self, value: &Value, depth: usize) -> Result<(), PatchError> {
        let mut seen = 0;
        if !fits(value, MAX_DEPTH.saturating_sub(depth), &mut seen) {
            return Err(PatchError::TooDeep { limit: MAX_DEPTH });
        }
        self.shift(seen)
    }
}

/// Whether `value` nests no deeper than `room` levels; counts the values it has `seen` to tell.
fn fits(value: &Value, room: usize, seen: &mut usize) -> bool {
    *seen += 1;
    match value {
        Value::Array(items) => room > 0 && items.iter().all(|item| fits(item, room - 1, seen)),
        Value::Object(object) => room > 0 && object.iter().all(|(_, member)| fits(member, room - 1, seen)),
        Value::Raw(raw) => fits(raw.value(), room, seen),
        Value::Null | Value::Nothing | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => true,
    }
}

/// How many bytes `value` takes up as compact JSON. Floats count as the longest of them, for their exact length would
/// cost as much as to write them.
fn encoded_size(value: &Value) -> usize {
    const LONGEST_FLOAT: usize = 24;
    let brackets_and_commas = |elements: usize| 2 + elements.saturating_sub(1);
    match value {
        Value::Null | Value::Nothing | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Int(number) => {
            let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
            digits + usize::from(*number < 0)
        }
        Value::Float(_) => LONGEST_FLOAT,
        Value::String(text) => string_size(text),
        Value::Raw(raw) => raw.text().len(),
        Value::Array(items) => brackets_and_commas(items.len()) + items.iter().map(encoded_size).sum::<usize>(),
        Value::Object(object) => {
            let members = object.iter().map(|(name, member)| string_size(name) + 1 + encoded_size(member));
            brackets_and_commas(object.len()) + members.sum::<usize>()
        }
    }
}

fn string_size(text: &str) -> usize {
    let escaped = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    });
    2 + escaped.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use revisor_object::{Object, parse_json};

    use super::*;
    use crate::arbitrary_value::any_value;

    fn nested_arrays(depth: usize) -> Value {
        (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]))
    }

    fn nested_objects(depth: usize) -> Value {
        (0..depth).fold(Value::Null, |inner, _| Value::Object([("k", inner)].into_iter().collect::<Object>()))
    }

    #[test]
    fn what_the_meter_lets_nest_is_what_the_parser_reads() {
        for (depth, fits) in [(0, true), (MAX_DEPTH, true), (MAX_DEPTH + 1, false)] {
            for value in [nested_arrays(depth), nested_objects(depth)] {
                assert_eq!(Meter::default().nest(&value, 0).is_ok(), fits, "{depth}");
                assert_eq!(parse_json(value.to_json().as_bytes()).is_ok(), fits, "{depth}");
            }
        }
    }

    #[test]
    fn depth_counts_from_the_root() {
        let limit = Err(PatchError::TooDeep { limit: MAX_DEPTH });
        assert_eq!(Meter::default().nest(&nested_arrays(MAX_DEPTH - 3), 3), Ok(()));
        assert_eq!(Meter::default().nest(&nested_arrays(MAX_DEPTH - 2), 3), limit);
        assert_eq!(Meter::default().nest(&Value::Null, MAX_DEPTH), Ok(()));
    }

    #[test]
    fn work_adds_up() {
        let mut meter = Meter::default();
        assert_eq!(meter.shift(MAX_WORK - 1), Ok(()));
        assert_eq!(meter.nest(&Value::Null, 1), Ok(()));
        assert_eq!(meter.shift(1), Err(PatchError::TooMuchWork { limit: MAX_WORK }));
        assert_eq!(meter.shift(usize::MAX), Err(PatchError::TooMuchWork { limit: MAX_WORK }));
    }

    #[test]
    fn sizes_of_scalars_are_exact() {
        for text in [
            "null",
            "true",
            "false",
            "0",
            "-1",
            "10",
            "9223372036854775807",
            "-9223372036854775808",
            r#""é\"\\\n\r\t\b\f\u0001\u001f""#,
            r#"{"a":[],"b\"":{},"c":[1,2,[3]]}"#,
        ] {
            let value = parse_json(text.as_bytes()).expect("is JSON").value;
            assert_eq!(encoded_size(&value), value.to_json().len(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn sizes_are_never_less_than_the_text(value in any_value()) {
            prop_assert!(encoded_size(&value) >= value.to_json().len());
        }
    }
}
