//! deny.toml, as far as tidy needs it, so that `cargo deny` and tidy go by the same lists.
//!
//! Not a TOML parser: it reads strings and lists of strings under a `[section]`, which is all that the file holds.

/// The file, relative to the root.
pub(super) const NAME: &str = "deny.toml";

/// The strings of `key = "…"` or `key = ["…", "…"]` in a section; nothing if the key is not there.
pub(super) fn strings(text: &str, section: &str, key: &str) -> Option<Vec<String>> {
    let mut in_section = false;
    let mut lines = text.lines().map(without_comment);
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            in_section = name.trim() == section;
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        if !in_section || name.trim() != key {
            continue;
        }
        let mut strings = quoted(value);
        if value.trim_start().starts_with('[') && !value.contains(']') {
            for line in lines.by_ref() {
                strings.extend(quoted(line));
                if line.contains(']') {
                    break;
                }
            }
        }
        return Some(strings);
    }
    None
}

/// The line up to a `#` that stands outside quotes.
fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    let end = line.find(|c| {
        quoted ^= c == '"';
        c == '#' && !quoted
    });
    line[..end.unwrap_or(line.len())].trim()
}

fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_lists_are_read_from_their_section() {
        let text = r#"
[licenses]
# allow = ["GPL-3.0"]
allow = [
    "MIT", # the usual
    "Apache-2.0 WITH LLVM-exception",
]
[bans]
multiple-versions = "warn"
allow = ["a", "b"]
"#;
        for (section, key, want) in [
            ("licenses", "allow", Some(vec!["MIT", "Apache-2.0 WITH LLVM-exception"])),
            ("bans", "multiple-versions", Some(vec!["warn"])),
            ("bans", "allow", Some(vec!["a", "b"])),
            ("bans", "skip", None),
            ("sources", "allow", None),
        ] {
            let found = strings(text, section, key);
            assert_eq!(found, want.map(|list| list.into_iter().map(String::from).collect()), "{section}.{key}");
        }
    }
}
