//! [`StoredSet`]: a set of places as it is stored, of which it is asked what a write asks without reading it.
//!
//! Most writes change a few places, whose manager the writer is already. That nothing comes of it for a set is seen in its
//! text, in a fraction of the time in which it could be read and written again. What is asked here is answered as
//! [`FieldSet`] would; where that takes more than a look, the answer is that the set has to be read.

use revisor_object::{JsonScan, Object, RawJson, Value, push_json_text};
use revisor_schema::{Shape, StructId, Types};

use super::field_set::{FieldSet, Node, SELF};
use super::granularity::{Granularity, granularity};

/// How deep a text may nest to be looked at.
const DEPTH: usize = 128;

/// A set of places as it is stored.
#[derive(Debug, Clone)]
pub(super) struct StoredSet(Box<RawJson>);

impl StoredSet {
    /// The set that this value is, if that is kept as a text of this program. Others are handed back.
    pub(super) fn of(value: Value) -> Result<StoredSet, Value> {
        match value {
            Value::Raw(raw) if raw.is_own() && is_set(&mut JsonScan::new(raw.text()), DEPTH).is_some() => {
                Ok(StoredSet(raw))
            }
            other => Err(other.into_plain()),
        }
    }

    /// The set, read.
    pub(super) fn read(&self) -> FieldSet {
        FieldSet::read_stored(self.0.value().clone()).unwrap_or_default()
    }

    pub(super) fn into_value(self) -> Value {
        Value::Raw(self.0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.text() == "{}"
    }

    /// Whether it may have a place of another set.
    pub(super) fn may_meet(&self, other: &FieldSet) -> bool {
        !other.is_empty() && meets(self.0.text(), other.tree()).unwrap_or(true)
    }

    /// Whether it surely has all places of another set.
    pub(super) fn has_all(&self, other: &FieldSet) -> bool {
        has_all(self.0.text(), other.tree()).unwrap_or(false)
    }

    /// Whether it surely has the places of another set, and no others, but for places that nobody manages.
    pub(super) fn is(&self, other: &FieldSet, nobodys: &[&[&str]]) -> bool {
        let mut scan = JsonScan::new(self.0.text());
        is_same(&mut scan, other.tree(), nobodys, false, DEPTH).is_some() && scan.at() == self.0.text().len()
    }

    /// Whether it surely is what its type would make of it today.
    pub(super) fn is_reconciled(&self, types: &Types, id: StructId) -> bool {
        is_reconciled(&mut JsonScan::new(self.0.text()), types, id, DEPTH).is_some()
    }
}

/// Passes a set by; nothing if it is none.
fn is_set(scan: &mut JsonScan<'_>, depth: usize) -> Option<()> {
    if scan.is_at_empty() {
        return scan.value().map(|_| ());
    }
    let depth = depth.checked_sub(1)?;
    scan.enter()?;
    while let Some(step) = scan.member()? {
        if !(step == SELF || matches!(step.as_bytes().get(..2)?, b"f:" | b"k:" | b"v:" | b"i:")) {
            return None;
        }
        is_set(scan, depth)?;
    }
    Some(())
}

/// What stands under a step that is written like this.
fn at_step<'o>(set: &'o Object, written: &str) -> Option<&'o Value> {
    let has_escapes = written.as_bytes().contains(&b'\\');
    if has_escapes { set.get(unescaped(written)?.as_str()?) } else { set.get(written) }
}

/// The step that is written like this.
fn unescaped(written: &str) -> Option<Value> {
    revisor_object::parse_json(format!("\"{written}\"").as_bytes()).ok().map(|parsed| parsed.value)
}

/// Whether the place that the text of a node stands for belongs to its set itself.
fn is_member(node: &str) -> bool {
    node == "{}" || node.starts_with("{\".\":")
}

fn meets(text: &str, other: &Object) -> Option<bool> {
    let mut scan = JsonScan::new(text);
    scan.enter()?;
    while let Some(step) = scan.member()? {
        let below = scan.value()?;
        let Some(other) = at_step(other, step).filter(|_| step != SELF).map(Node::of) else { continue };
        if is_member(below) && other.is_member {
            return Some(true);
        }
        if let Some(other) = other.below
            && meets(below, other)?
        {
            return Some(true);
        }
    }
    Some(false)
}

fn has_all(text: &str, other: &Object) -> Option<bool> {
    let mut scan = JsonScan::new(text);
    scan.enter()?;
    let mut missing = other.len() - usize::from(other.contains(SELF));
    while missing > 0 {
        let Some(step) = scan.member()? else { return Some(false) };
        let below = scan.value()?;
        let Some(other) = at_step(other, step).filter(|_| step != SELF).map(Node::of) else { continue };
        if other.is_member && !is_member(below) {
            return Some(false);
        }
        if let Some(other) = other.below
            && !has_all(below, other)?
        {
            return Some(false);
        }
        missing -= 1;
    }
    Some(true)
}

/// Passes the text of a set by that has the places of `set` without those that are left out. Those begin where `set` does;
/// `is_left_out` is whether one of them ends there.
fn is_same(scan: &mut JsonScan<'_>, set: &Object, left_out: &[&[&str]], is_left_out: bool, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    scan.enter()?;
    let mut written = Vec::new();
    for (step, node) in set.iter() {
        let node = Node::of(node);
        if step == SELF {
            if !is_left_out {
                expect(scan, SELF)?;
                scan.is_at_empty().then(|| scan.value())??;
            }
            continue;
        }
        let within: Vec<&[&str]> = left_out
            .iter()
            .filter_map(|place| place.split_first())
            .filter(|(first, _)| **first == step)
            .map(|(_, rest)| rest)
            .collect();
        let ends_here = within.iter().any(|place| place.is_empty());
        let Some(below) = node.below else {
            if !ends_here {
                expect_step(scan, step, &mut written)?;
                scan.is_at_empty().then(|| scan.value())??;
            }
            continue;
        };
        // Whether anything is left is not looked into: if nothing is, the text has no such step.
        expect_step(scan, step, &mut written)?;
        is_same(scan, below, &within, ends_here, depth)?;
    }
    scan.member()?.is_none().then_some(())
}

/// Goes on to a member, which must have this name.
fn expect(scan: &mut JsonScan<'_>, name: &str) -> Option<()> {
    (scan.member()?? == name).then_some(())
}

fn expect_step(scan: &mut JsonScan<'_>, step: &str, written: &mut Vec<u8>) -> Option<()> {
    let found = scan.member()??;
    if found == step {
        return Some(());
    }
    written.clear();
    push_json_text(step, written);
    let within = written.get(1..written.len() - 1)?;
    (found.as_bytes() == within).then_some(())
}

/// Passes a set by that is as its type sees it; nothing where that may be otherwise.
fn is_reconciled(scan: &mut JsonScan<'_>, types: &Types, id: StructId, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let of = types.get(id);
    if of.fields.is_empty() && of.is_open {
        return scan.value().map(|_| ());
    }
    scan.enter()?;
    while let Some(step) = scan.member()? {
        let Some(name) = step.strip_prefix("f:").filter(|_| !scan.is_at_empty()) else {
            scan.value()?;
            continue;
        };
        if name.as_bytes().contains(&b'\\') {
            return None;
        }
        let Some(field) = of.member(name) else {
            scan.value()?;
            continue;
        };
        match (granularity(types, field), &field.shape) {
            (Granularity::One, Shape::List(_) | Shape::Map(_) | Shape::Struct(_) | Shape::Any | Shape::Raw) => {
                return None;
            }
            (Granularity::Many, Shape::Struct(id)) => is_reconciled(scan, types, *id, depth)?,
            (Granularity::Many, Shape::List(element) | Shape::Map(element)) => {
                elements_are_reconciled(scan, types, element, depth)?;
            }
            _ => {
                scan.value()?;
            }
        }
    }
    Some(())
}

fn elements_are_reconciled(scan: &mut JsonScan<'_>, types: &Types, element: &Shape, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    scan.enter()?;
    while let Some(step) = scan.member()? {
        match element {
            Shape::Struct(id) if step != SELF && !scan.is_at_empty() => {
                if types.get(*id).is_atomic {
                    return None;
                }
                is_reconciled(scan, types, *id, depth)?;
            }
            _ => {
                scan.value()?;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(text: &str) -> StoredSet {
        StoredSet::of(Value::Raw(Box::new(RawJson::own(text)))).expect("is a set")
    }

    const SETS: [&str; 9] = [
        "{}",
        r#"{"f:a":{}}"#,
        r#"{"f:a":{".":{},"f:x":{},"f:y":{}},"f:b":{},"f:d":{"f:z":{}}}"#,
        r#"{"f:a":{"f:y":{}},"f:b":{".":{},"f:q":{}},"f:c":{}}"#,
        r#"{"f:a":{"f:x":{},"f:y":{}}}"#,
        r#"{"f:d":{".":{},"f:z":{}}}"#,
        r#"{"f:l":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{"f:x":{}},"v:\"\\\"{\"":{}}}"#,
        r#"{"f:l":{"k:{\"name\":\"b\"}":{"f:x":{}}}}"#,
        r#"{"f:l":{"v:\"\\\"{\"":{}}}"#,
    ];

    #[test]
    fn what_is_asked_is_answered_as_of_a_set_that_was_read() {
        for one in SETS {
            let (stored, read) = (stored(one), stored(one).read());
            assert_eq!(read.clone().into_value(), revisor_object::parse_json(one.as_bytes()).expect("JSON").value);
            assert_eq!(stored.is_empty(), read.is_empty(), "{one}");
            for two in SETS {
                let other = self::stored(two).read();
                assert_eq!(stored.may_meet(&other), !read.intersection(&other).is_empty(), "{one} {two}");
                assert_eq!(stored.has_all(&other), other.is_within(&read), "{one} {two}");
                assert_eq!(stored.is(&other, &[]), read == other, "{one} {two}");
            }
        }
    }

    #[test]
    fn what_nobody_manages_is_left_out() {
        let nobodys: &[&[&str]] = &[&["f:kind"], &["f:metadata"], &["f:metadata", "f:name"]];
        let with =
            stored(r#"{"f:kind":{},"f:metadata":{".":{},"f:labels":{},"f:name":{}},"f:spec":{"f:name":{}}}"#).read();
        assert!(stored(r#"{"f:metadata":{"f:labels":{}},"f:spec":{"f:name":{}}}"#).is(&with, nobodys));
        for other in [
            r#"{"f:metadata":{"f:labels":{}},"f:spec":{}}"#,
            r#"{"f:metadata":{"f:labels":{}}}"#,
            r#"{"f:metadata":{"f:labels":{},"f:x":{}},"f:spec":{"f:name":{}}}"#,
            r#"{"f:metadata":{".":{},"f:labels":{}},"f:spec":{"f:name":{}}}"#,
        ] {
            assert!(!stored(other).is(&with, nobodys), "{other}");
        }
    }

    #[test]
    fn what_is_no_set_is_handed_back() {
        for text in ["[]", r#"{"a":{}}"#, r#"{"f:a":1}"#, r#"{"f:a":{"x":{}}}"#, r#"{"f:a":{}"#] {
            assert!(StoredSet::of(Value::Raw(Box::new(RawJson::own(text)))).is_err(), "{text}");
        }
        assert!(StoredSet::of(Value::Object(Object::new())).is_err(), "it is read already");
    }
}
