//! [`Source`]: the text of an expression and where its lines begin, and [`Issue`]: what is wrong with it, and where.

use std::fmt::Write;

/// Where in an expression something stands. Both count characters, not bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The line, from 1; -1 if what is said concerns no place.
    pub line: i32,
    /// The column, from 0; -1 if what is said concerns no place.
    pub column: i32,
}

impl Location {
    /// The location of what concerns the expression as a whole.
    pub const NONE: Location = Location { line: -1, column: -1 };
}

/// Something that is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Where.
    pub location: Location,
    /// What.
    pub message: String,
}

/// How many issues are shown of one expression.
const SHOWN: usize = 100;

/// How long a line may be to be shown with an issue, in bytes.
const LONGEST_SNIPPET: usize = 16_384;

/// The text of an expression.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    text: Vec<char>,
    /// The offset at which each line begins.
    lines: Vec<u32>,
}

impl Source {
    pub(crate) fn new(text: &str) -> Source {
        let text: Vec<char> = text.chars().collect();
        let after_breaks = text.iter().enumerate().filter(|(_, char)| **char == '\n').map(|(at, _)| at as u32 + 1);
        let lines = std::iter::once(0).chain(after_breaks).collect();
        Source { text, lines }
    }

    pub(crate) fn chars(&self) -> &[char] {
        &self.text
    }

    pub(crate) fn text(&self, start: u32, end: u32) -> String {
        self.text[start as usize..end as usize].iter().collect()
    }

    pub(crate) fn location(&self, offset: u32) -> Location {
        if self.text.is_empty() {
            // Nothing has no first column.
            return Location { line: 1, column: -1 };
        }
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines[line - 1];
        Location { line: line as i32, column: (offset - start) as i32 }
    }

    fn line(&self, number: i32) -> Option<String> {
        let index = usize::try_from(number).ok().filter(|_| !self.text.is_empty())?.checked_sub(1)?;
        let start = *self.lines.get(index)?;
        let end = self.lines.get(index + 1).map_or(self.text.len() as u32, |next| next - 1);
        Some(self.text(start, end))
    }

    /// All issues in the order of their places, each with the line that it is about and a mark under the place.
    pub(crate) fn render(&self, issues: &[Issue]) -> String {
        let mut sorted: Vec<&Issue> = issues.iter().take(SHOWN).collect();
        sorted.sort_by_key(|issue| issue.location);
        let mut text = String::new();
        for issue in sorted {
            if !text.is_empty() {
                text.push('\n');
            }
            self.render_one(issue, &mut text);
        }
        if issues.len() > SHOWN {
            let _ = write!(text, "\n{} more errors were truncated", issues.len() - SHOWN);
        }
        text
    }

    fn render_one(&self, issue: &Issue, into: &mut String) {
        let Location { line, column } = issue.location;
        let _ = write!(into, "ERROR: <input>:{line}:{}: {}", column + 1, issue.message);
        let Some(snippet) = self.line(line).filter(|snippet| snippet.len() <= LONGEST_SNIPPET) else { return };
        into.push_str("\n | ");
        into.push_str(&snippet.replace('\t', " "));
        into.push_str("\n | ");
        let mut chars = snippet.chars();
        for char in chars.by_ref().take(column.max(0) as usize) {
            // Characters that are probably wide get wide marks below them.
            into.push(if char.len_utf8() > 1 { '\u{ff0e}' } else { '.' });
        }
        into.push(if chars.next().is_some_and(|char| char.len_utf8() > 1) { '\u{ff3e}' } else { '^' });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issues_are_shown_in_order_with_the_place_marked() {
        let source = Source::new("a +\n\t'é' + b");
        let issue = |offset: u32, message: &str| Issue { location: source.location(offset), message: message.into() };
        let shown = source.render(&[
            issue(11, "later"),
            issue(2, "earlier"),
            Issue { location: Location::NONE, message: "whole".into() },
        ]);
        assert_eq!(
            shown,
            "ERROR: <input>:-1:0: whole\n\
             ERROR: <input>:1:3: earlier\n | a +\n | ..^\n\
             ERROR: <input>:2:8: later\n |  'é' + b\n | ..\u{ff0e}....^"
        );
    }

    #[test]
    fn of_nothing_no_line_is_shown() {
        let source = Source::new("");
        let issue = Issue { location: source.location(0), message: "nothing".into() };
        assert_eq!(source.render(&[issue]), "ERROR: <input>:1:0: nothing");
    }

    #[test]
    fn many_issues_are_cut_and_counted() {
        let source = Source::new("x");
        let issues = vec![Issue { location: source.location(0), message: "no".into() }; 103];
        let shown = source.render(&issues);
        assert!(shown.ends_with("\n3 more errors were truncated"), "{shown}");
        assert_eq!(shown.matches("ERROR").count(), 100);
    }
}
