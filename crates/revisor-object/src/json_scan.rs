//! [`JsonScan`]: walks through a text that is known to be JSON, and passes by what nobody asks for.
//!
//! Of what is passed by only quotes and brackets are looked at, so that takes a fraction of the time in which it could be
//! read. It decides nothing: where a text turns out not to be JSON, nothing more is found in it.

use crate::plain_text_length;

/// A place in a JSON text.
#[derive(Debug, Clone)]
pub struct JsonScan<'t> {
    text: &'t str,
    at: usize,
}

/// What a byte outside of texts does to the depth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    Quote,
    Opens,
    Closes,
}

const MARKS: [Mark; 256] = {
    let mut marks = [Mark::None; 256];
    marks[b'"' as usize] = Mark::Quote;
    marks[b'{' as usize] = Mark::Opens;
    marks[b'[' as usize] = Mark::Opens;
    marks[b'}' as usize] = Mark::Closes;
    marks[b']' as usize] = Mark::Closes;
    marks
};

impl<'t> JsonScan<'t> {
    /// Before the value that `text` is.
    pub fn new(text: &'t str) -> JsonScan<'t> {
        JsonScan { text, at: 0 }
    }

    /// Before the value that begins so many bytes behind the beginning of `text`.
    pub fn starting_at(text: &'t str, at: usize) -> JsonScan<'t> {
        JsonScan { text, at }
    }

    /// How many bytes of the text have been passed.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether the object with nothing in it comes next, as this program writes it.
    pub fn is_at_empty(&self) -> bool {
        self.text.as_bytes()[self.at..].starts_with(b"{}")
    }

    /// Steps into the object that begins here, before the first of its members.
    pub fn enter(&mut self) -> Option<()> {
        (self.peek()? == b'{').then(|| self.at += 1)
    }

    /// Goes on to the next member of an object, before its value. Answers its name as it stands there, without its quotes;
    /// nothing inside at the end of the object, which is passed then.
    pub fn member(&mut self) -> Option<Option<&'t str>> {
        if self.peek()? == b',' {
            self.at += 1;
        }
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(None);
        }
        let name = self.value()?;
        let name = name.strip_prefix('"')?.strip_suffix('"')?;
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        Some(Some(name))
    }

    /// Passes a value by; answers its text.
    pub fn value(&mut self) -> Option<&'t str> {
        let first = self.peek()?;
        let start = self.at;
        self.at = match MARKS[usize::from(first)] {
            Mark::Quote => self.behind_text(start)?,
            Mark::Opens => self.behind_nested(start)?,
            Mark::Closes => return None,
            Mark::None => {
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b' ' | b'\t' | b'\n' | b'\r');
                let rest = &self.text.as_bytes()[start..];
                start + rest.iter().position(ends).unwrap_or(rest.len())
            }
        };
        self.text.get(start..self.at)
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

    /// Where the object or array that begins here has ended.
    fn behind_nested(&self, start: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let (mut at, mut depth) = (start, 0_usize);
        loop {
            match MARKS[usize::from(*bytes.get(at)?)] {
                Mark::None => {}
                Mark::Quote => {
                    at = self.behind_text(at)?;
                    continue;
                }
                Mark::Opens => depth += 1,
                Mark::Closes if depth == 1 => return Some(at + 1),
                Mark::Closes => depth = depth.checked_sub(1)?,
            }
            at += 1;
        }
    }

    /// Where the text that begins with this quote has ended.
    fn behind_text(&self, quote: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = quote + 1;
        loop {
            at += plain_text_length(bytes.get(at..)?);
            match bytes.get(at)? {
                b'"' => return Some(at + 1),
                // Whatever is escaped, it is one byte at least.
                b'\\' => at += 2,
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_json;

    /// The members of the object that a text is, by name.
    fn members(text: &str) -> Option<Vec<(&str, &str)>> {
        let mut scan = JsonScan::new(text);
        scan.enter()?;
        let mut found = Vec::new();
        while let Some(name) = scan.member()? {
            found.push((name, scan.value()?));
        }
        (scan.at() == text.len()).then_some(found)
    }

    #[test]
    fn members_are_found_whatever_they_are() {
        for (text, want) in [
            ("{}", vec![]),
            (r#"{"a":1,"b":{"c":[{}]},"d":"}"}"#, vec![("a", "1"), ("b", r#"{"c":[{}]}"#), ("d", r#""}""#)]),
            (
                r#"{ "a" : [ "]\"" , {"}\\":"{"} ] , "b" : null }"#,
                vec![("a", r#"[ "]\"" , {"}\\":"{"} ]"#), ("b", "null")],
            ),
            (
                r#"{"a\"b":-1.5e3,"é":"ä\u0022, long enough to be looked at in words"}"#,
                vec![(r#"a\"b"#, "-1.5e3"), ("é", r#""ä\u0022, long enough to be looked at in words""#)],
            ),
        ] {
            assert_eq!(members(text), Some(want), "{text}");
            for (_, value) in members(text).into_iter().flatten() {
                assert!(parse_json(value.as_bytes()).is_ok(), "{value} of {text}");
            }
        }
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for text in [
            "",
            "[]",
            "1",
            "{",
            r#"{"a"#,
            r#"{"a":"#,
            r#"{"a":[}"#,
            r#"{"a":"\"#,
            r#"{"a" 1}"#,
            r#"{1:2}"#,
            "{]",
            r#"{"a":}"#,
        ] {
            assert_eq!(members(text), None, "{text}");
        }
    }

    #[test]
    fn it_can_be_stepped_into_what_is_within() {
        let mut scan = JsonScan::new(r#"{"a":{"b":1,"c":2},"d":3}"#);
        let mut names = Vec::new();
        scan.enter().expect("an object");
        assert_eq!(scan.member(), Some(Some("a")));
        scan.enter().expect("an object");
        while let Some(Some(name)) = scan.member() {
            names.push((name, scan.value()));
        }
        assert_eq!(names, [("b", Some("1")), ("c", Some("2"))]);
        assert_eq!(scan.member(), Some(Some("d")));
    }
}
