//! [`FieldSelector`]: which objects a request is about, by some of their fields.
//!
//! Reads the form that stands in a query (`metadata.name=a,spec.nodeName!=b`) and explains what it cannot read in the
//! words of Kubernetes. Which fields a resource can be selected by is the catalog's.

use std::fmt;
use std::str::FromStr;

/// The longest selector that is read, in bytes. No longer one fits into the URL of a request.
pub const MAX_FIELD_SELECTOR_BYTES: usize = 64 * 1024;

/// The most terms in one selector. Each of them is evaluated for each object that a list or watch passes over.
pub const MAX_FIELD_TERMS: usize = 1024;

/// A condition on the fields of an object: all of its terms must hold.
///
/// ```
/// use revisor_object::FieldSelector;
///
/// let selector: FieldSelector = "metadata.name=web,spec.nodeName!=".parse().unwrap();
/// assert_eq!(selector.exact("metadata.name"), Some("web"));
/// assert!(selector.matches(|field| Some(if field == "metadata.name" { "web" } else { "node-1" })));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// A condition on one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTerm {
    /// The path of the field, as the client wrote it.
    pub field: String,
    /// How the field relates to the value.
    pub operator: FieldOperator,
    /// The value, without escapes.
    pub value: String,
}

/// How a [`FieldTerm`] relates a field to its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldOperator {
    /// The field has the value. Written `=` or `==`.
    Equals,
    /// The field has another value.
    NotEquals,
}

impl FieldSelector {
    /// The selector that every object satisfies.
    pub const fn everything() -> FieldSelector {
        FieldSelector { terms: Vec::new() }
    }

    /// The selector that asks for all of these.
    pub fn new(terms: Vec<FieldTerm>) -> FieldSelector {
        FieldSelector { terms }
    }

    /// Whether every object satisfies it.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// What it asks for.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The same, for those who know a field by another name.
    pub fn terms_mut(&mut self) -> &mut [FieldTerm] {
        &mut self.terms
    }

    /// The value that it asks of this field, if it asks for one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| term.field == field && term.operator == FieldOperator::Equals)
            .map(|term| term.value.as_str())
    }

    /// Whether an object satisfies it, whose fields `lookup` knows. A field that is missing counts as empty.
    pub fn matches<T: AsRef<str>>(&self, lookup: impl Fn(&str) -> Option<T>) -> bool {
        self.terms.iter().all(|term| {
            let equal = lookup(&term.field).as_ref().map_or("", AsRef::as_ref) == term.value;
            equal == (term.operator == FieldOperator::Equals)
        })
    }
}

impl fmt::Display for FieldTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.field)?;
        f.write_str(match self.operator {
            FieldOperator::Equals => "=",
            FieldOperator::NotEquals => "!=",
        })?;
        for character in self.value.chars() {
            if matches!(character, '\\' | ',' | '=') {
                f.write_str("\\")?;
            }
            fmt::Write::write_char(f, character)?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            term.fmt(f)?;
        }
        Ok(())
    }
}

/// Why a text is not a [`FieldSelector`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// More than [`MAX_FIELD_SELECTOR_BYTES`].
    #[error("field selector is longer than {MAX_FIELD_SELECTOR_BYTES} bytes")]
    TooLong,
    /// More than [`MAX_FIELD_TERMS`].
    #[error("field selector has more than {MAX_FIELD_TERMS} terms")]
    TooManyTerms,
    /// A term without an operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    NotUnderstood {
        /// The whole selector.
        selector: String,
        /// The term.
        term: String,
    },
    /// A backslash before something that needs none.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// A character that needs a backslash. Shown by its number, as clients know the message.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorError;

    fn from_str(text: &str) -> Result<FieldSelector, FieldSelectorError> {
        if text.len() > MAX_FIELD_SELECTOR_BYTES {
            return Err(FieldSelectorError::TooLong);
        }
        let mut parts = split_terms(text);
        if parts.len() > MAX_FIELD_TERMS {
            return Err(FieldSelectorError::TooManyTerms);
        }
        // Sorted first, so that of several faults the same one is reported whatever their order.
        parts.sort_unstable();
        let mut terms = Vec::with_capacity(parts.len());
        for part in parts {
            let Some((field, operator, value)) = split_term(part) else {
                return Err(FieldSelectorError::NotUnderstood { selector: text.to_owned(), term: part.to_owned() });
            };
            let value = unescape(value)?;
            // A bare operator asks for nothing and is dropped, as Kubernetes does.
            if !field.is_empty() || !value.is_empty() {
                terms.push(FieldTerm { field: field.to_owned(), operator, value });
            }
        }
        Ok(FieldSelector { terms })
    }
}

/// The parts between commas that no backslash protects, without the empty ones.
fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    let at_comma = |character: char| {
        let ends = character == ',' && !escaped;
        escaped = character == '\\' && !escaped;
        ends
    };
    text.split(at_comma).filter(|part| !part.is_empty()).collect()
}

/// Splits at the first operator. There are no escapes in front of it.
fn split_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    // A `!` alone is part of the field.
    let at = term.char_indices().map(|(at, _)| at).find(|at| {
        let rest = &term[*at..];
        rest.starts_with('=') || rest.starts_with("!=")
    })?;
    let (field, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, FieldOperator::NotEquals, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, FieldOperator::Equals, value))
}

fn unescape(text: &str) -> Result<String, FieldSelectorError> {
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                Some(other) => return Err(FieldSelectorError::Escape(format!("\\{other}"))),
                None => return Err(FieldSelectorError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(character)),
            other => value.push(other),
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn selector(text: &str) -> FieldSelector {
        text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    #[test]
    fn reads_and_writes_the_canonical_form() {
        for (text, want) in [
            ("", ""),
            (",,", ""),
            ("a=b", "a=b"),
            ("a==b", "a=b"),
            ("a!=b", "a!=b"),
            ("a=", "a="),
            ("=b", "=b"),
            ("=", ""),
            ("!=", ""),
            ("==", ""),
            ("z=1,a=2", "a=2,z=1"),
            ("a=b,", "a=b"),
            (r"a=b\,c\=d\\", r"a=b\,c\=d\\"),
            ("a!b=c", "a!b=c"),
            (r"a\,b=c", r"a\,b=c"),
            ("a=b!c", "a=b!c"),
            (" a = b ", " a = b "),
        ] {
            assert_eq!(selector(text).to_string(), want, "{text:?}");
        }
        assert_eq!(
            selector(r"metadata.namespace!=b,metadata.name=a\,").terms(),
            [
                FieldTerm {
                    field: "metadata.name".to_owned(),
                    operator: FieldOperator::Equals,
                    value: "a,".to_owned()
                },
                FieldTerm {
                    field: "metadata.namespace".to_owned(),
                    operator: FieldOperator::NotEquals,
                    value: "b".to_owned()
                },
            ]
        );
    }

    #[test]
    fn explains_what_it_cannot_read() {
        for (text, want) in [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
            ("z,a", "invalid selector: 'z,a'; can't understand 'a'"),
            ("a!b", "invalid selector: 'a!b'; can't understand 'a!b'"),
            (r"a=\b", r"invalid field selector: invalid escape sequence: \b"),
            (r"a=\", r"invalid field selector: invalid escape sequence: \"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            ("a===b", "invalid field selector: unescaped character in value: 61"),
        ] {
            assert_eq!(text.parse::<FieldSelector>().expect_err(text).to_string(), want, "{text:?}");
        }
        let long = "a".repeat(MAX_FIELD_SELECTOR_BYTES + 1);
        assert_eq!(long.parse::<FieldSelector>(), Err(FieldSelectorError::TooLong));
        let many = vec!["a=b"; MAX_FIELD_TERMS + 1].join(",");
        assert_eq!(many.parse::<FieldSelector>(), Err(FieldSelectorError::TooManyTerms));
    }

    #[test]
    fn matches_fields() {
        let fields = |field: &str| (field == "metadata.name").then_some("web");
        for (text, want) in [
            ("", true),
            ("metadata.name=web", true),
            ("metadata.name=db", false),
            ("metadata.name!=db", true),
            ("metadata.name!=web", false),
            ("spec.nodeName=", true),
            ("spec.nodeName!=", false),
            ("metadata.name=web,spec.nodeName=x", false),
        ] {
            assert_eq!(selector(text).matches(fields), want, "{text:?}");
        }
        assert_eq!(selector("a!=b,a=c").exact("a"), Some("c"));
        assert_eq!(selector("a!=b").exact("a"), None);
        assert!(selector("").is_everything());
        assert!(FieldSelector::everything().is_everything());
    }

    proptest! {
        #[test]
        fn never_panics(text in any::<String>()) {
            if let Ok(selector) = text.parse::<FieldSelector>() {
                prop_assert!(selector.terms().len() <= MAX_FIELD_TERMS);
            }
        }

        #[test]
        fn any_value_survives(value in any::<String>()) {
            let term = FieldTerm { field: "metadata.name".to_owned(), operator: FieldOperator::NotEquals, value };
            let selector = FieldSelector::new(vec![term]);
            prop_assert_eq!(selector.to_string().parse(), Ok(selector));
        }
    }
}
