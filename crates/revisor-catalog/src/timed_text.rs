//! [`TimedText`]: a text that tells how long ago things were, made once and written at any later moment.

use std::fmt::{self, Write};

use crate::Moment;
use crate::moment::MARKS;

/// A text with holes. Each holds a time, and is filled with how long ago that was when the text is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedText {
    text: Box<str>,
    holes: Box<[Hole]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hole {
    /// Where it is in the text.
    at: usize,
    /// The time it holds, in microseconds since 1970.
    since: i64,
}

impl TimedText {
    /// The text that `render` makes, whatever the moment. It must use the moment for nothing but [`Moment::since`], and
    /// keep what that tells as it is.
    ///
    /// `None` if the text can not be told from one with holes: it has characters that mark them.
    pub fn of(render: impl Fn(Moment) -> String) -> Option<TimedText> {
        // At a moment that is known there are no holes, so marks come from elsewhere.
        if render(Moment::from_micros(0)).contains(MARKS) {
            return None;
        }
        let marked = render(Moment::OPEN);
        let mut text = String::with_capacity(marked.len());
        let mut holes = Vec::new();
        let mut rest = marked.as_str();
        while let Some((before, after)) = rest.split_once(MARKS[0]) {
            let (since, after) = after.split_once(MARKS[1])?;
            text.push_str(before);
            holes.push(Hole { at: text.len(), since: since.parse().ok()? });
            rest = after;
        }
        text.push_str(rest);
        Some(TimedText { text: text.into(), holes: holes.into() })
    }

    /// Writes it as it reads at this moment.
    pub fn write(&self, now: Moment, out: &mut impl Write) -> fmt::Result {
        let mut from = 0;
        for hole in &self.holes {
            out.write_str(&self.text[from..hole.at])?;
            match now.span_since(hole.since) {
                Some(span) => write!(out, "{span}")?,
                None => out.write_str("<unknown>")?,
            }
            from = hole.at;
        }
        out.write_str(&self.text[from..])
    }

    /// What does not depend on the moment.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Moment {
        Moment::parse(text).expect("a time")
    }

    #[test]
    fn holes_are_filled_when_it_is_written() {
        let (born, seen) = (at("2026-11-15T20:00:00.5Z"), at("2026-11-15T20:04:00Z"));
        let render = |now: Moment| format!("é {}, 3 ({} ago), {}", now.since(born), now.since(seen), seen.since(born));
        let text = TimedText::of(render).expect("has no marks");
        assert_eq!(text.text(), "é , 3 ( ago), 3m59s");
        for (now, want) in [
            ("2026-11-15T20:05:00Z", "é 4m59s, 3 (60s ago), 3m59s"),
            ("2026-11-17T21:05:00Z", "é 2d1h, 3 (2d1h ago), 3m59s"),
            ("2026-11-15T20:00:00Z", "é 0s, 3 (<invalid> ago), 3m59s"),
        ] {
            let mut written = String::new();
            text.write(at(now), &mut written).expect("writing to a string does not fail");
            assert_eq!(written, want, "{now}");
            assert_eq!(written, render(at(now)), "{now}");
        }
    }

    #[test]
    fn a_text_with_marks_of_its_own_is_none() {
        for text in ["\u{e000}7\u{e001}", "a\u{e000}", "\u{e001}b"] {
            let render = |now: Moment| format!("{text}{}", now.since(Moment::from_micros(0)));
            assert_eq!(TimedText::of(render), None, "{text:?}");
        }
    }
}
