//! [`is_same_text`]: whether two short texts are the same, at little cost.

/// Whether two texts are the same. To compare names is most of what is done to objects, and nearly all names are so short
/// that two words which may overlap have all of them: a call of a library would take longer than the comparison.
#[inline]
pub(crate) fn is_same_text(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    if one.len() > 16 {
        return one == other;
    }
    if let Some(ends) = ends::<8>(one).zip(ends::<8>(other)) {
        return ends.0.map(u64::from_le_bytes) == ends.1.map(u64::from_le_bytes);
    }
    if let Some(ends) = ends::<4>(one).zip(ends::<4>(other)) {
        return ends.0.map(u32::from_le_bytes) == ends.1.map(u32::from_le_bytes);
    }
    one.iter().zip(other).all(|(one, other)| one == other)
}

/// The first and the last bytes of a text that has so many.
#[inline]
fn ends<const N: usize>(text: &[u8]) -> Option<[[u8; N]; 2]> {
    Some([*text.first_chunk()?, *text.last_chunk()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length_are_told_apart_at_every_place() {
        for length in 0..40 {
            let text = "x".repeat(length);
            assert!(is_same_text(&text, &text.clone()));
            assert!(!is_same_text(&text, &format!("{text}x")));
            for at in 0..length {
                let mut other = text.clone();
                other.replace_range(at..=at, "y");
                assert!(!is_same_text(&text, &other), "{other}");
            }
        }
    }
}
