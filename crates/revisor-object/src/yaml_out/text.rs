//! Texts in each of their styles.

use super::Writer;
use super::style::{Style, is_break, is_printable, style};

/// Beyond this column a text goes on in the next line, where it has a space.
const WIDTH: usize = 80;

impl Writer {
    /// Writes a text at the current place. What does not fit the line goes on at this indent.
    pub(super) fn text(&mut self, text: &str, indent: usize, is_name: bool) {
        match style(text, is_name) {
            Style::Plain => self.folded(text, indent, is_name, false),
            Style::SingleQuoted => {
                self.push('\'');
                self.folded(text, indent, is_name, true);
                self.push('\'');
            }
            Style::DoubleQuoted => self.double_quoted(text, indent, is_name),
            Style::Literal => self.literal(text, indent),
        }
    }

    /// A text in one line, or in several that break at single spaces.
    fn folded(&mut self, text: &str, indent: usize, is_name: bool, is_quoted: bool) {
        let mut after_space = false;
        let mut characters = text.chars().enumerate().peekable();
        let last = text.chars().count().saturating_sub(1);
        while let Some((at, character)) = characters.next() {
            if character == ' ' {
                let is_inside = !is_quoted || (at > 0 && at < last);
                let is_single = !after_space && characters.peek().is_none_or(|(_, next)| *next != ' ');
                if !is_name && is_single && is_inside && self.column > WIDTH {
                    self.new_line(indent);
                } else {
                    self.push(' ');
                }
                after_space = true;
                continue;
            }
            if is_quoted && character == '\'' {
                self.push('\'');
            }
            self.push(character);
            after_space = false;
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, is_name: bool) {
        self.push('"');
        let mut after_space = false;
        let last = text.chars().count().saturating_sub(1);
        let mut characters = text.chars().enumerate().peekable();
        while let Some((at, character)) = characters.next() {
            if character == ' ' {
                if !is_name && !after_space && self.column > WIDTH && at > 0 && at < last {
                    self.new_line(indent);
                    if characters.peek().is_some_and(|(_, next)| *next == ' ') {
                        self.push('\\');
                    }
                } else {
                    self.push(' ');
                }
                after_space = true;
                continue;
            }
            after_space = false;
            if is_printable(character) && !is_break(character) && !matches!(character, '"' | '\\' | '\u{feff}') {
                self.push(character);
                continue;
            }
            self.push_str(&escape(character));
        }
        self.push('"');
    }

    /// A text as it stands, line by line.
    fn literal(&mut self, text: &str, indent: usize) {
        self.push('|');
        if text.starts_with(|first| first == ' ' || is_break(first)) {
            self.push('2');
        }
        let mut from_end = text.chars().rev();
        match (from_end.next().is_some_and(is_break), from_end.next().is_none_or(is_break)) {
            (false, _) => self.push('-'),
            (true, true) => self.push('+'),
            (true, false) => {}
        }
        self.push('\n');
        let mut at_start = true;
        for character in text.chars() {
            if is_break(character) {
                self.out.push(character);
                self.column = 0;
                at_start = true;
                continue;
            }
            if at_start {
                (0..indent).for_each(|_| self.push(' '));
            }
            self.push(character);
            at_start = false;
        }
    }
}

fn escape(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            return match u32::from(character) {
                code @ ..=0xff => format!("\\x{code:02X}"),
                code @ ..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}
