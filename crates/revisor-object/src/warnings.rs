//! [`Warnings`]: what a client should be told beside its answer, in the space that Kubernetes gives it.
//!
//! Each text is told once. As long as all of them together are short, they are told in full; once they are not, each
//! is cut, and what comes after the room is used up is dropped. How they travel in headers is decided where answers
//! are made.

use std::collections::HashSet;
use std::ops::Deref;

use crate::clip::clip;

/// How many characters all warnings of an answer have together, before they are cut.
const MAX_CHARACTERS: usize = 4096;

/// How many characters one warning has, when they are cut.
const MAX_CHARACTERS_OF_ONE: usize = 256;

/// What was found unwise about a request, in the order in which it was found.
///
/// ```
/// use revisor_object::Warnings;
///
/// let warnings = Warnings::from_iter(["a", "b", "a"].map(str::to_owned));
/// assert_eq!(warnings.told().collect::<Vec<_>>(), ["a", "b"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Warnings {
    texts: Vec<String>,
    seen: HashSet<String>,
    characters: usize,
    is_cut: bool,
}

impl Warnings {
    /// Adds a warning, if there is room and it was not given before. One with control characters fits in no header.
    pub fn push(&mut self, text: impl Into<String>) {
        let text = text.into();
        if text.is_empty() || (self.is_cut && self.characters >= MAX_CHARACTERS) {
            return;
        }
        let shown = if self.is_cut { start(&text) } else { &text };
        if shown.contains(char::is_control) {
            return;
        }
        let characters = shown.chars().count();
        // Nobody sees that: what is as long makes all of them be cut, to less.
        let text = clip(text);
        if !self.seen.insert(text.clone()) {
            return;
        }
        self.characters += characters;
        self.texts.push(text);
        if !self.is_cut && self.characters > MAX_CHARACTERS {
            self.is_cut = true;
            self.characters = self.told().map(|text| text.chars().count()).sum();
        }
    }

    /// The texts as far as they are told.
    pub fn told(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| if self.is_cut { start(text) } else { text })
    }
}

/// As much of a text as is told when warnings are cut.
fn start(text: &str) -> &str {
    text.char_indices().nth(MAX_CHARACTERS_OF_ONE).map_or(text, |(end, _)| &text[..end])
}

impl Deref for Warnings {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.texts
    }
}

impl Extend<String> for Warnings {
    fn extend<I: IntoIterator<Item = String>>(&mut self, texts: I) {
        for text in texts {
            self.push(text);
        }
    }
}

impl FromIterator<String> for Warnings {
    fn from_iter<I: IntoIterator<Item = String>>(texts: I) -> Warnings {
        let mut warnings = Warnings::default();
        warnings.extend(texts);
        warnings
    }
}

impl IntoIterator for Warnings {
    type Item = String;
    type IntoIter = std::vec::IntoIter<String>;

    fn into_iter(self) -> Self::IntoIter {
        self.texts.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_told_as_in_kubernetes() {
        let long = "x".repeat(300);
        let (most, more) = ("y".repeat(MAX_CHARACTERS), "y".repeat(MAX_CHARACTERS + 1));
        let cut = |text: &str| text[..MAX_CHARACTERS_OF_ONE].to_owned();
        for (name, given, told) in [
            ("nothing", vec![], vec![]),
            ("an empty text", vec!["".to_owned()], vec![]),
            ("a text with control characters", vec!["a\nb".to_owned(), "c".to_owned()], vec!["c".to_owned()]),
            ("as much as there is room", vec![most.clone()], vec![most.clone()]),
            ("one that is too long", vec![more.clone()], vec![cut(&more)]),
            ("one more", vec![long.clone(), most.clone()], vec![cut(&long), cut(&most)]),
            (
                "when they are cut, only what is told counts",
                vec![more.clone(), format!("{long}\n")],
                vec![cut(&more), cut(&long)],
            ),
            ("each once", vec![long.clone(), more.clone(), long.clone()], vec![cut(&long), cut(&more)]),
        ] {
            assert_eq!(given.into_iter().collect::<Warnings>().told().collect::<Vec<_>>(), told, "{name}");
        }
    }

    #[test]
    fn forty_thousand_warnings_take_four_thousand_characters() {
        let warnings: Warnings = (0..40_000).map(|at| format!("unknown field \"spec.field{at}\"")).collect();
        let told: usize = warnings.told().map(|text| text.chars().count()).sum();
        assert!((MAX_CHARACTERS..MAX_CHARACTERS + MAX_CHARACTERS_OF_ONE).contains(&told), "{told}");
    }

    #[test]
    fn characters_count_and_not_bytes() {
        let text = "é".repeat(MAX_CHARACTERS);
        let warnings: Warnings = [text.clone()].into_iter().collect();
        assert_eq!(warnings.told().collect::<Vec<_>>(), [text]);
    }
}
