//! How a text is written: plain where that is read as the same text, and quoted or as a block where it is not.

use super::implicit_type::is_other_than_text;

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

pub(super) fn style(text: &str, is_name: bool) -> Style {
    if text.is_empty() {
        // Nothing at all would be read as null.
        return Style::DoubleQuoted;
    }
    let found = Findings::of(text);
    if text.contains('\n') && !is_name {
        return if found.spoils_blocks { Style::DoubleQuoted } else { Style::Literal };
    }
    if is_other_than_text(text) || (is_name && found.has_breaks) {
        return Style::DoubleQuoted;
    }
    match (found.spoils_plain, found.spoils_single_quotes) {
        (false, _) => Style::Plain,
        (true, false) => Style::SingleQuoted,
        (true, true) => Style::DoubleQuoted,
    }
}

/// What stands in the way of a style.
struct Findings {
    has_breaks: bool,
    spoils_plain: bool,
    spoils_single_quotes: bool,
    spoils_blocks: bool,
}

impl Findings {
    fn of(text: &str) -> Findings {
        let mut indicates = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut has_breaks, mut space_break, mut break_space) = (false, false, false, false);
        let mut previous: Option<char> = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let before_blank = characters.peek().is_none_or(|next| is_blank(*next));
            indicates |= match (previous, character) {
                (
                    None,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`',
                ) => true,
                (None, '?' | '-') | (_, ':') => before_blank,
                (Some(previous), '#') => is_blank(previous) || is_break(previous),
                _ => false,
            };
            special |= !is_printable(character);
            has_breaks |= is_break(character);
            break_space |= character == ' ' && previous.is_some_and(is_break);
            space_break |= is_break(character) && previous == Some(' ');
            previous = Some(character);
        }
        let at_edge = |edge: Option<char>| edge.is_some_and(|edge| edge == ' ' || is_break(edge));
        let has_edge = at_edge(text.chars().next()) || at_edge(text.chars().next_back());
        let spoils_all = space_break || special;
        Findings {
            has_breaks,
            spoils_plain: indicates || has_edge || break_space || has_breaks || spoils_all,
            spoils_single_quotes: break_space || spoils_all,
            spoils_blocks: spoils_all || text.ends_with(' '),
        }
    }
}

pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// What YAML lets stand outside of double quotes.
pub(super) fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}
