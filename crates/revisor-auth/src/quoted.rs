//! [`quoted`]: text in double quotes, as it stands in messages that clients compare.

/// `text` in double quotes, with everything that does not print escaped as Go's `%q` does.
///
/// The escapes are also those of a double-quoted YAML scalar.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{07}' => out.push_str("\\a"),
            '\u{08}' => out.push_str("\\b"),
            '\u{0c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0b}' => out.push_str("\\v"),
            c if prints(c) => out.push(c),
            c if u32::from(c) < 0x80 => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if u32::from(c) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Whether `c` is shown as itself. A letter goes before it because combining marks print, but not alone.
fn prints(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut text = String::from("a");
    text.push(c);
    text.escape_debug().eq(text.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_prints_is_shown_as_itself() {
        for (text, want) in [
            ("", r#""""#),
            ("bob's", r#""bob's""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("\u{07}\u{08}\u{0c}\n\r\t\u{0b}", r#""\a\b\f\n\r\t\v""#),
            ("\0\u{1b}\u{7f}", r#""\x00\x1b\x7f""#),
            ("é日本🦀", r#""é日本🦀""#),
            ("e\u{301}", "\"e\u{301}\""),
            ("\u{85}\u{a0}\u{200b}\u{e0001}", r#""\u0085\u00a0\u200b\U000e0001""#),
        ] {
            assert_eq!(quoted(text), want);
        }
    }
}
