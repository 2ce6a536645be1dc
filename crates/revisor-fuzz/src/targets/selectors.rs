//! Label and field selectors, as they stand in queries.

use revisor_object::{FieldSelector, LabelSelector, MAX_FIELD_SELECTOR_BYTES, MAX_LABEL_SELECTOR_BYTES};

/// A selector that was read says itself: its text reads as the same selector.
pub(super) fn label(data: &[u8]) {
    let Some(first) = std::str::from_utf8(data).ok().and_then(|text| text.parse::<LabelSelector>().ok()) else {
        return;
    };
    let text = first.to_string();
    // The canonical text has a space here and there that the original did without.
    if text.len() <= MAX_LABEL_SELECTOR_BYTES {
        let second: LabelSelector = match text.parse() {
            Ok(second) => second,
            Err(error) => panic!("{error}: {text:?}"),
        };
        assert_eq!(first, second, "{text:?}");
    }
    assert_eq!(first.is_everything(), first.requirements().is_empty());
    // A selector matches what all of its requirements match.
    let matches = first.matches(|_| None);
    assert_eq!(matches, first.requirements().iter().all(|requirement| requirement.matches(None)), "{text:?}");
}

/// A selector that was read says itself, and a single term matches the value it asks for, or all but the one it forbids.
pub(super) fn field(data: &[u8]) {
    let Some(first) = std::str::from_utf8(data).ok().and_then(|text| text.parse::<FieldSelector>().ok()) else {
        return;
    };
    let text = first.to_string();
    if text.len() <= MAX_FIELD_SELECTOR_BYTES {
        let second: FieldSelector = match text.parse() {
            Ok(second) => second,
            Err(error) => panic!("{error}: {text:?}"),
        };
        // `a==b` and `a=b` sort differently and say the same, so the order of the terms may change.
        assert_eq!(sorted_terms(&first), sorted_terms(&second), "{text:?}");
    }
    assert_eq!(first.is_everything(), first.terms().is_empty());
    if let [term] = first.terms() {
        let matches = first.matches(|_| Some(&term.value));
        assert_eq!(matches, first.exact(&term.field).is_some(), "{text:?}");
    }
}

fn sorted_terms(selector: &FieldSelector) -> Vec<String> {
    let mut terms: Vec<String> = selector.terms().iter().map(|term| format!("{term:?}")).collect();
    terms.sort_unstable();
    terms
}
