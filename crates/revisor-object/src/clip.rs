//! How much of what clients sent is repeated to them: the bound of every single text that is made of input.
//!
//! Names of fields, values, details and messages are cut here, and nowhere else, at [`MAX_TEXT_BYTES`]. The end says
//! how much is missing. Texts are cut while they are written, so that what is cut off never takes up memory. How many
//! texts an answer has is bounded by [`FieldErrors`](crate::FieldErrors).

use std::fmt::{self, Write as _};

/// How many bytes of a text that is made of input are shown. Whole pods fit in.
pub const MAX_TEXT_BYTES: usize = 16 * 1024;

/// A text as far as it may be shown.
///
/// ```
/// use revisor_object::{MAX_TEXT_BYTES, clip};
///
/// assert_eq!(clip("short"), "short");
/// let long = clip("é".repeat(MAX_TEXT_BYTES));
/// assert!(long.ends_with("é… (16384 more bytes)"));
/// ```
pub fn clip(text: impl Into<String>) -> String {
    clip_at(text.into(), MAX_TEXT_BYTES)
}

/// Anything that has a text, as far as it may be shown.
pub fn clip_shown(shown: impl fmt::Display) -> String {
    let mut text = Clipped::new(MAX_TEXT_BYTES);
    // Only a `Display` that is broken fails; what it wrote is still there.
    let _ = write!(text, "{shown}");
    text.finish()
}

/// Texts with a separator between them, as far as they may be shown.
///
/// ```
/// assert_eq!(revisor_object::clip_joined(["a", "b"], ", "), "a, b");
/// ```
pub fn clip_joined<T: fmt::Display>(parts: impl IntoIterator<Item = T>, separator: &str) -> String {
    let mut text = Clipped::new(MAX_TEXT_BYTES);
    for (at, part) in parts.into_iter().enumerate() {
        let between = if at == 0 { "" } else { separator };
        let _ = write!(text, "{between}{part}");
    }
    text.finish()
}

/// Cuts a text at another bound.
pub(crate) fn clip_at(mut text: String, most: usize) -> String {
    if text.len() > most {
        let kept = text.floor_char_boundary(most);
        let cut = text.len() - kept;
        text.truncate(kept);
        text.shrink_to_fit();
        tell_cut(&mut text, cut);
    }
    text
}

/// How long something is as a text, which is not made.
pub(crate) fn shown_bytes(shown: impl fmt::Display) -> usize {
    let mut text = Clipped::new(0);
    let _ = write!(text, "{shown}");
    text.cut
}

fn tell_cut(text: &mut String, cut: usize) {
    let _ = write!(text, "… ({cut} more bytes)");
}

/// A text that is cut while it is written.
struct Clipped {
    text: String,
    most: usize,
    cut: usize,
}

impl Clipped {
    fn new(most: usize) -> Clipped {
        Clipped { text: String::new(), most, cut: 0 }
    }

    fn finish(mut self) -> String {
        if self.cut > 0 {
            tell_cut(&mut self.text, self.cut);
        }
        self.text
    }
}

impl fmt::Write for Clipped {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let room = if self.cut > 0 { 0 } else { self.most - self.text.len() };
        let kept = piece.floor_char_boundary(room);
        self.text.push_str(&piece[..kept]);
        self.cut += piece.len() - kept;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_not_touched() {
        let exact = "x".repeat(MAX_TEXT_BYTES);
        assert_eq!(clip(exact.as_str()), exact);
        assert_eq!(clip_shown(&exact), exact);
        assert_eq!(clip_joined([&exact], ", "), exact);
    }

    #[test]
    fn what_is_cut_is_counted() {
        let rest = "x".repeat(MAX_TEXT_BYTES - 1);
        for (name, text) in [
            ("a text", clip(format!("{rest}yz"))),
            ("what is shown", clip_shown(format_args!("{rest}{}{}", "y", "z"))),
            ("what is joined", clip_joined([rest.as_str(), "z"], "y")),
        ] {
            assert_eq!(text, format!("{rest}y… (1 more bytes)"), "{name}");
        }
    }

    #[test]
    fn characters_stay_whole() {
        let text = format!("{}é", "x".repeat(MAX_TEXT_BYTES - 1));
        for (name, text) in [("a text", clip(text.as_str())), ("what is shown", clip_shown(&text))] {
            assert!(text.ends_with("x… (2 more bytes)"), "{name}");
        }
        // Nothing comes behind what was cut off, even if it would fit.
        assert!(clip_joined([text.as_str(), "a"], "").ends_with("x… (3 more bytes)"));
    }

    #[test]
    fn lengths_are_counted() {
        assert_eq!(shown_bytes(format_args!("{}-{}", 12, "é")), 5);
    }
}
