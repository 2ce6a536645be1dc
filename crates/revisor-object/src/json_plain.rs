//! [`read_plain`]: the short way from JSON to a [`Value`], which nearly all texts take.
//!
//! Serde hands a parser's finds on one by one, through a visitor for each. Here members and elements are gathered on one
//! stack for the whole text, so that each object and array is allocated once and as large as it is, and members are
//! sorted by the beginnings of their names, which are numbers.
//!
//! It decides nothing: whatever is not plain (what is no JSON, members that occur twice, deep nesting) is left to the
//! thorough reader, [`parse_json`](crate::parse_json), and so are single texts with characters escaped by number, and numbers with fractions.

use compact_str::CompactString;

use crate::name_prefix::name_prefix;
use crate::{JsonScan, Object, RawJson, Value};

/// How deep objects and arrays may nest here.
const DEPTH: usize = 128;

/// For the order of up to so many members, few or many, there is room on the stack.
const FEW: usize = 8;
const MANY: usize = 48;

/// Room on the stack for what is gathered; few objects have more in one place.
const ROOM: usize = 64;

/// Reads a text that is plain. `thorough` reads its tokens that are not; it is given one that is whole if the text is
/// JSON, and answers nothing if it is not.
pub(crate) fn read_plain(text: &str, thorough: impl Fn(&str) -> Option<Value>) -> Option<Value> {
    read_from(Within::Elsewhere, text, thorough)
}

/// The same for an object that this program wrote, whose sets of managed fields are kept as their texts.
pub(crate) fn read_own(text: &str, thorough: impl Fn(&str) -> Option<Value>) -> Option<Value> {
    read_from(Within::Object, text, thorough)
}

fn read_from(within: Within, text: &str, thorough: impl Fn(&str) -> Option<Value>) -> Option<Value> {
    let members = Vec::with_capacity(ROOM);
    let mut reader = Reader { text, at: 0, depth: 0, within, members, items: Vec::new(), thorough };
    let value = reader.value()?;
    reader.peek().is_none().then_some(value)
}

/// How far it is to a set of managed fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// There is none.
    Elsewhere,
    /// An object that has metadata.
    Object,
    Metadata,
    /// The list of who manages what, or an entry of it.
    Managers,
    /// It comes next.
    Set,
}

impl Within {
    /// The same within a member of the object that is so deep.
    fn member(self, depth: usize, name: &str) -> Within {
        match (self, depth, name) {
            (Within::Object, 1, "metadata") => Within::Metadata,
            (Within::Metadata, 2, "managedFields") => Within::Managers,
            (Within::Managers, 4, "fieldsV1") => Within::Set,
            _ => Within::Elsewhere,
        }
    }
}

struct Reader<'t, F> {
    text: &'t str,
    at: usize,
    depth: usize,
    within: Within,
    /// The members of all objects that are not at their end, and the same of arrays.
    members: Vec<(CompactString, Value)>,
    items: Vec<Value>,
    thorough: F,
}

impl<F: Fn(&str) -> Option<Value>> Reader<'_, F> {
    fn value(&mut self) -> Option<Value> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' => self.nested(Reader::object),
            b'[' => self.nested(Reader::array),
            b't' => self.literal("true", Value::Bool(true)),
            b'f' => self.literal("false", Value::Bool(false)),
            b'n' => self.literal("null", Value::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<Value>) -> Option<Value> {
        if self.depth == DEPTH {
            return None;
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Option<Value> {
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(Value::Object(Object::new()));
        }
        let start = self.members.len();
        loop {
            if self.peek()? != b'"' {
                return None;
            }
            let Value::String(name) = self.string()? else { return None };
            if self.peek()? != b':' {
                return None;
            }
            self.at += 1;
            let value = if self.within == Within::Elsewhere { self.value()? } else { self.value_of(&name)? };
            self.members.push((name, value));
            match self.separator()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        let members = &mut self.members[start..];
        if !members.is_sorted_by(|(one, _), (two, _)| name_prefix(one) < name_prefix(two)) {
            return sorted(members).map(|sorted| {
                self.members.truncate(start);
                Value::Object(Object::from_sorted(sorted))
            });
        }
        Some(Value::Object(Object::from_sorted(self.members.split_off(start))))
    }

    /// The value of a member on the way to a set of managed fields, or beside it.
    fn value_of(&mut self, name: &str) -> Option<Value> {
        let outer = self.within;
        self.within = outer.member(self.depth, name);
        let value = if self.within == Within::Set && self.peek()? == b'{' { self.unread() } else { self.value() };
        self.within = outer;
        value
    }

    /// A value that is kept as its text.
    fn unread(&mut self) -> Option<Value> {
        let mut scan = JsonScan::starting_at(self.text, self.at);
        let text = scan.value()?;
        self.at = scan.at();
        Some(Value::Raw(Box::new(RawJson::own(text))))
    }

    fn array(&mut self) -> Option<Value> {
        if self.peek()? == b']' {
            self.at += 1;
            return Some(Value::Array(Vec::new()));
        }
        let start = self.items.len();
        loop {
            let item = self.value()?;
            self.items.push(item);
            match self.separator()? {
                b',' => {}
                b']' => return Some(Value::Array(self.items.split_off(start))),
                _ => return None,
            }
        }
    }

    /// What stands behind a member or element.
    fn separator(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn literal(&mut self, word: &str, value: Value) -> Option<Value> {
        self.text.as_bytes()[self.at..].starts_with(word.as_bytes()).then(|| {
            self.at += word.len();
            value
        })
    }

    /// A number. Integers that are surely within their range are read here.
    fn number(&mut self) -> Option<Value> {
        const SURE: usize = 18;
        let rest = &self.text.as_bytes()[self.at..];
        let sign = usize::from(rest.first() == Some(&b'-'));
        let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = sign + digits;
        let is_plain = !matches!(rest.get(end), Some(b'.' | b'e' | b'E' | b'+' | b'-'))
            && (1..=SURE).contains(&digits)
            && (rest[sign] != b'0' || end == 1);
        if is_plain {
            let number = rest[sign..end].iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
            self.at += end;
            return Some(Value::Int(if sign == 1 { -number } else { number }));
        }
        let is_of_number = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
        let length = rest.iter().take_while(is_of_number).count();
        self.thoroughly(length)
    }

    fn string(&mut self) -> Option<Value> {
        let start = self.at + 1;
        let rest = &self.text.as_bytes()[start..];
        let length = plain_text_length(rest);
        if rest.get(length)? == &b'"' {
            self.at = start + length + 1;
            return Some(Value::String(self.text.get(start..start + length)?.into()));
        }
        self.escaped(start, length)
    }

    /// The string from `start` on, of which so many bytes are plain.
    fn escaped(&mut self, start: usize, plain: usize) -> Option<Value> {
        let rest = &self.text.as_bytes()[start..];
        let (mut text, mut done, mut at) = (CompactString::default(), 0, plain);
        loop {
            let escape = match rest.get(at)? {
                b'"' => {
                    text.push_str(self.text.get(start + done..start + at)?);
                    self.at = start + at + 1;
                    return Some(Value::String(text));
                }
                b'\\' => rest.get(at + 1)?,
                _ => return None,
            };
            let character = match escape {
                b'"' | b'\\' | b'/' => char::from(*escape),
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                _ => return self.escaped_by_number(start, at),
            };
            text.push_str(self.text.get(start + done..start + at)?);
            text.push(character);
            done = at + 2;
            at = done + plain_text_length(rest.get(done..)?);
        }
    }

    /// The string from `start` on, in which a character is escaped at this place that only the thorough reader knows.
    fn escaped_by_number(&mut self, start: usize, mut at: usize) -> Option<Value> {
        let rest = &self.text.as_bytes()[start..];
        while rest.get(at)? == &b'\\' {
            at += 2;
            at += plain_text_length(rest.get(at..)?);
        }
        self.thoroughly(at + 2)
    }

    /// Leaves the token of this length to the thorough reader.
    fn thoroughly(&mut self, length: usize) -> Option<Value> {
        let token = self.text.get(self.at..self.at + length)?;
        self.at += length;
        (self.thorough)(token)
    }
}

/// Takes members out into the order of their names; nothing if two have the same.
fn sorted(members: &mut [(CompactString, Value)]) -> Option<Vec<(CompactString, Value)>> {
    match members.len() {
        count @ ..=FEW => sorted_with(&mut [(0, 0); FEW][..count], members),
        count @ ..=MANY => sorted_with(&mut [(0, 0); MANY][..count], members),
        count => sorted_with(&mut vec![(0, 0); count], members),
    }
}

/// The same with room for their order.
fn sorted_with(
    order: &mut [(u64, usize)],
    members: &mut [(CompactString, Value)],
) -> Option<Vec<(CompactString, Value)>> {
    for (at, ((name, _), place)) in members.iter().zip(order.iter_mut()).enumerate() {
        *place = (name_prefix(name), at);
    }
    order.sort_unstable_by(|(one, first), (two, second)| {
        one.cmp(two).then_with(|| members[*first].0.cmp(&members[*second].0))
    });
    let is_repeated = |pair: &[(u64, usize)]| pair[0].0 == pair[1].0 && members[pair[0].1].0 == members[pair[1].1].0;
    if order.windows(2).any(is_repeated) {
        return None;
    }
    Some(order.iter().map(|(_, at)| std::mem::take(&mut members[*at])).collect())
}

/// How many bytes from the start neither end a text nor have to be looked at more closely.
pub fn plain_text_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let special = special_in_word(u64::from_le_bytes(*word));
        if special != 0 {
            return at * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    rest.iter().position(is_special).map_or(bytes.len(), |at| words.len() * 8 + at)
}

/// Marks the bytes of a word that are special by their highest bits. Of several only the lowest mark is sure to be true:
/// what is borrowed for it is missing above it.
#[inline]
fn special_in_word(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    let less = |bytes: u64, than: u8| bytes.wrapping_sub(ONES * u64::from(than)) & !bytes;
    let equal = |bytes: u64, to: u8| less(bytes ^ (ONES * u64::from(to)), 1);
    (less(word, 0x20) | equal(word, b'"') | equal(word, b'\\')) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::read_thoroughly;

    /// Reads a text by both ways; answers whether the short one was enough.
    #[track_caller]
    fn is_plain(text: &str) -> bool {
        let plain = read_plain(text, |token| read_thoroughly(token).ok().map(|parsed| parsed.value));
        if let Some(plain) = &plain {
            let thorough = read_thoroughly(text).map(|parsed| (parsed.value.to_json(), parsed.duplicates));
            assert_eq!(thorough, Ok((plain.to_json(), Vec::new())), "{text}");
        }
        plain.is_some()
    }

    #[test]
    fn sets_of_managed_fields_of_own_objects_are_read_when_they_are_looked_at() {
        let text = r#"{"metadata":{"managedFields":[{"fieldsV1":{"f:spec":{"k:{\"name\":\"}\"}":{}}},"manager":"m"},{"fieldsV1":null}]},"spec":{"managedFields":[{"fieldsV1":{"a":1}}],"metadata":{"managedFields":[{"fieldsV1":{}}]}}}"#;
        let read = |own| {
            let thorough = |token: &str| read_thoroughly(token).ok().map(|parsed| parsed.value);
            if own { read_own(text, thorough) } else { read_plain(text, thorough) }.expect("is plain")
        };
        let (own, plain) = (read(true), read(false));
        let sets = |value: &Value| {
            let object = value.as_object().expect("an object").clone();
            ["metadata", "spec"].map(|part| {
                let entries = object.object(part).expect("is there").array("managedFields").to_vec();
                let is_raw =
                    |entry: Value| matches!(entry.as_object().and_then(|it| it.get("fieldsV1")), Some(Value::Raw(_)));
                entries.into_iter().map(is_raw).collect::<Vec<_>>()
            })
        };
        assert_eq!(sets(&own), [vec![true, false], vec![false]]);
        assert_eq!(own, plain);
        assert_eq!(own.to_json(), plain.to_json());
        let mut written = Vec::new();
        crate::push_json_value(&own, &mut written);
        assert_eq!(String::from_utf8_lossy(&written), text);
    }

    #[test]
    fn what_is_usual_is_plain() {
        for text in [
            "{}",
            " [ ] ",
            r#"{"b":1,"a":[true,false,null,"x",{"c":-12}],"abcdefgh2":0,"abcdefgh1":"é"}"#,
            r#"{"a\n":"\"\\\/\b\f\n\r\tx","b\\":"\"\\\n\u0001\ud83d\ude00\"y\n","b":2.5,"c":-0,"d":1e3,"e":123456789012345678901}"#,
            "{\n\t\"a\" : [ 1 , 2 ] ,\r\n \"b\" : \"eight characters and more\"\n}",
            "9223372036854775807",
            r#""""#,
        ] {
            assert!(is_plain(text), "{text}");
        }
    }

    #[test]
    fn all_else_is_left_to_others() {
        for text in [
            "",
            "{",
            "}",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{a:1}",
            "nul",
            "truefalse",
            "{} x",
            "01",
            "-",
            "1.",
            "+1",
            "--1",
            "1-2",
            "'a'",
            "\"a",
            "\"a\\",
            "\"\\x\"",
            "\"\n\"",
            r#"{"a":1,"b":2,"a":3}"#,
            r#"{"a":1,"a":1}"#,
            "[1 2]",
            "\u{feff}1",
        ] {
            assert!(!is_plain(text), "{text}");
        }
        assert!(!is_plain(&["[".repeat(DEPTH + 1), "]".repeat(DEPTH + 1)].concat()));
        assert!(is_plain(&["[".repeat(DEPTH), "]".repeat(DEPTH)].concat()));
    }

    proptest! {
        #[test]
        fn it_is_read_as_the_thorough_reader_does(text in r#"([{}\[\],:"\\ \-+.eE019tn]|true|null|"a"|"[a-c]{0,9}":|é|\\u00e9){0,24}"#) {
            is_plain(&text);
        }

        #[test]
        fn objects_are_sorted_whatever_their_names(names in proptest::collection::vec("[ab\0é]{0,10}", 0..60)) {
            let members: Vec<String> = names.iter().map(|name| format!("{}:1", Value::from(name.as_str()).to_json())).collect();
            is_plain(&format!("{{{}}}", members.join(",")));
        }
    }
}
