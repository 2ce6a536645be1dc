//! PEM as far as certificates are kept in it: blocks between lines of dashes, whatever stands around them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// One block of a PEM file.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::kinds) struct Block<'a> {
    /// What it says that it is, such as `CERTIFICATE`.
    pub(in crate::kinds) label: &'a str,
    /// Whether lines of `Name: value` stand before the content.
    pub(in crate::kinds) has_headers: bool,
    /// The bytes.
    pub(in crate::kinds) content: Vec<u8>,
}

/// The well-formed blocks of a text, in their order. What is malformed is passed over, as it is between blocks.
pub(in crate::kinds) fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            let Some(label) = line.trim_end().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(DASHES)) else {
                continue;
            };
            // A block that does not end well may contain the beginning of one that does.
            let mut ahead = lines.clone();
            if let Some(block) = read_block(label, &mut ahead) {
                lines = ahead;
                return Some(block);
            }
        }
    })
}

fn read_block<'a>(label: &'a str, lines: &mut std::str::Lines<'a>) -> Option<Block<'a>> {
    let mut has_headers = false;
    let mut base64 = String::new();
    for line in lines {
        let line = line.trim();
        if let Some(end) = line.strip_prefix(END) {
            let is_same = end.strip_suffix(DASHES) == Some(label);
            let content = STANDARD.decode(&base64).ok().filter(|_| is_same)?;
            return Some(Block { label, has_headers, content });
        }
        if base64.is_empty() && line.contains(':') {
            has_headers = true;
        } else {
            base64.push_str(line);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_between_other_lines() {
        let block = |label, content: &str| Block { label, has_headers: false, content: content.into() };
        for (name, text, want) in [
            ("nothing", "hello", vec![]),
            ("one", "-----BEGIN A-----\naGVs\nbG8=\n-----END A-----\n", vec![block("A", "hello")]),
            (
                "two with words around them",
                "a\n-----BEGIN A-----\r\naGVsbG8=\r\n-----END A-----\r\nb\n-----BEGIN B C-----\n-----END B C-----",
                vec![block("A", "hello"), block("B C", "")],
            ),
            (
                "headers",
                "-----BEGIN A-----\nName: value\n\naGVsbG8=\n-----END A-----",
                vec![Block { has_headers: true, ..block("A", "hello") }],
            ),
            ("no end", "-----BEGIN A-----\naGVsbG8=\n", vec![]),
            ("another end", "-----BEGIN A-----\naGVsbG8=\n-----END B-----\n", vec![]),
            (
                "an unfinished one before a good one",
                "-----BEGIN A-----\na!\n-----BEGIN B-----\naGVsbG8=\n-----END B-----",
                vec![block("B", "hello")],
            ),
        ] {
            assert_eq!(blocks(text).collect::<Vec<_>>(), want, "{name}");
        }
    }
}
