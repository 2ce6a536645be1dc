//! Looking into encoded objects without decoding them: where a member stands in the text of an object.
//!
//! The text is what the server encoded itself. On anything else the answer is `None`, and the caller decodes.

use std::ops::Range;

/// Where the value of the member `name` stands in the text of an object.
pub(crate) fn member(object: &[u8], name: &str) -> Option<Range<usize>> {
    Members::of(object).find(|found| &object[found.name.clone()] == name.as_bytes()).map(|found| found.value)
}

/// The text of an object without the member `name` of its member that stands at `parent`; `None` if there is no such
/// member.
pub(crate) fn without(object: &[u8], parent: Range<usize>, name: &str) -> Option<Vec<u8>> {
    let inner = &object[parent.clone()];
    let mut previous_end = None;
    for found in Members::of(inner) {
        if &inner[found.name.clone()] != name.as_bytes() {
            previous_end = Some(found.value.end);
            continue;
        }
        // A member takes the comma before it along, or the one after it if it is the first.
        let cut = match previous_end {
            Some(end) => end..found.value.end,
            None if inner.get(found.value.end) == Some(&b',') => found.name.start - 1..found.value.end + 1,
            None => found.name.start - 1..found.value.end,
        };
        let mut rest = Vec::with_capacity(object.len() - cut.len());
        rest.extend_from_slice(&object[..parent.start + cut.start]);
        rest.extend_from_slice(&object[parent.start + cut.end..]);
        return Some(rest);
    }
    None
}

struct Member {
    /// Without its quotes.
    name: Range<usize>,
    value: Range<usize>,
}

/// The members of an object in the order of its compact text.
struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Members<'a> {
    fn of(text: &'a [u8]) -> Members<'a> {
        // One who does not begin like an object has no members; a blank tells that parts of it are shown otherwise.
        let at = match text {
            [b'{', ..] => 1,
            [b' ', b'{', ..] => 2,
            _ => text.len(),
        };
        Members { text, at }
    }
}

impl Iterator for Members<'_> {
    type Item = Member;

    fn next(&mut self) -> Option<Member> {
        if self.text.get(self.at) != Some(&b'"') {
            return None;
        }
        let name_end = end_of_string(self.text, self.at)?;
        if self.text.get(name_end) != Some(&b':') {
            return None;
        }
        let end = end_of_value(self.text, name_end + 1)?;
        let found = Member { name: self.at + 1..name_end - 1, value: name_end + 1..end };
        self.at = if self.text.get(end) == Some(&b',') { end + 1 } else { self.text.len() };
        Some(found)
    }
}

/// The end of the string that begins at `at`, past its quote.
fn end_of_string(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn end_of_value(text: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match text.get(at)? {
            b'"' => {
                at = end_of_string(text, at)?;
                if depth == 0 {
                    return Some(at);
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return Some(if depth == 0 { at } else { at + 1 }),
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return Some(at),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str =
        r#"{"kind":"A","metadata":{"name":"a\"}","managedFields":[{"m":"]"}]},"n":12,"list":[],"t":true}"#;

    #[test]
    fn members_are_found_in_the_text() {
        for (name, want) in [
            ("kind", Some(r#""A""#)),
            ("metadata", Some(r#"{"name":"a\"}","managedFields":[{"m":"]"}]}"#)),
            ("n", Some("12")),
            ("list", Some("[]")),
            ("t", Some("true")),
            ("name", None),
        ] {
            let found = member(OBJECT.as_bytes(), name).map(|range| &OBJECT[range]);
            assert_eq!(found, want, "{name}");
        }
        for text in ["", "{", "[]", r#"{"a""#, r#"{"a":"#, r#"{"a":"x"#, r#"{"a":{"b":"#] {
            assert_eq!(member(text.as_bytes(), "a"), None, "{text}");
        }
    }

    #[test]
    fn a_member_is_left_out_with_its_comma() {
        for (object, want) in [
            (r#"{"m":{"a":1,"x":[2],"b":3},"o":4}"#, Some(r#"{"m":{"a":1,"b":3},"o":4}"#)),
            (r#"{"m":{"x":[2],"b":3},"o":4}"#, Some(r#"{"m":{"b":3},"o":4}"#)),
            (r#"{"m":{"a":1,"x":{"x":2}},"o":4}"#, Some(r#"{"m":{"a":1},"o":4}"#)),
            (r#"{"m":{"x":2},"o":4}"#, Some(r#"{"m":{},"o":4}"#)),
            (r#"{"m":{"a":1},"x":4}"#, None),
        ] {
            let parent = member(object.as_bytes(), "m").expect("has one");
            let rest = without(object.as_bytes(), parent, "x");
            assert_eq!(rest.as_deref(), want.map(str::as_bytes), "{object}");
        }
    }
}
