//! [`Keyword`]: what a schema says of a value beside what is below it, word by word, so that each difference can be shown
//! for itself.

use revisor_object::Value;
use revisor_schema::{Checks, Structural};

use crate::values::MAX_ITEMS;

/// One keyword of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    Enum,
    Minimum,
    Maximum,
    MultipleOf,
    MinLength,
    MaxLength,
    Pattern,
    Format,
    MinItems,
    MaxItems,
    UniqueItems,
    MinProperties,
    MaxProperties,
    AllOf,
    AnyOf,
    OneOf,
    Not,
}

/// The size from which on nobody makes a text or a list to show something.
pub(crate) const MAX_SHOWN: i64 = 4096;

impl Keyword {
    pub(crate) const ALL: [Keyword; 17] = [
        Keyword::Enum,
        Keyword::Minimum,
        Keyword::Maximum,
        Keyword::MultipleOf,
        Keyword::MinLength,
        Keyword::MaxLength,
        Keyword::Pattern,
        Keyword::Format,
        Keyword::MinItems,
        Keyword::MaxItems,
        Keyword::UniqueItems,
        Keyword::MinProperties,
        Keyword::MaxProperties,
        Keyword::AllOf,
        Keyword::AnyOf,
        Keyword::OneOf,
        Keyword::Not,
    ];

    /// Whether two schemas say the same with it.
    pub(crate) fn is_same(self, old: &Structural, new: &Structural) -> bool {
        let nothing = Checks::default();
        let (old, new) = (old.checks.as_deref().unwrap_or(&nothing), new.checks.as_deref().unwrap_or(&nothing));
        match self {
            Keyword::Enum => {
                let has = |list: &[Value], value: &Value| list.contains(value);
                old.allowed.len() == new.allowed.len() && old.allowed.iter().all(|value| has(&new.allowed, value))
            }
            Keyword::Minimum => (old.minimum, old.exclusive_minimum) == (new.minimum, new.exclusive_minimum),
            Keyword::Maximum => (old.maximum, old.exclusive_maximum) == (new.maximum, new.exclusive_maximum),
            Keyword::MultipleOf => old.multiple_of == new.multiple_of,
            Keyword::MinLength => old.min_length == new.min_length,
            Keyword::MaxLength => old.max_length == new.max_length,
            Keyword::Pattern => old.pattern == new.pattern,
            Keyword::Format => old.format == new.format,
            Keyword::MinItems => old.min_items == new.min_items,
            Keyword::MaxItems => old.max_items == new.max_items,
            Keyword::UniqueItems => old.unique_items == new.unique_items,
            Keyword::MinProperties => old.min_properties == new.min_properties,
            Keyword::MaxProperties => old.max_properties == new.max_properties,
            Keyword::AllOf => old.all_of == new.all_of,
            Keyword::AnyOf => old.any_of == new.any_of,
            Keyword::OneOf => old.one_of == new.one_of,
            Keyword::Not => old.not == new.not,
        }
    }

    /// Lets a schema say with it what another one does.
    pub(crate) fn put(self, target: &mut Structural, source: &Structural) {
        let mut checks = target.checks.take().unwrap_or_default();
        let new = source.checks.as_deref().cloned().unwrap_or_default();
        match self {
            Keyword::Enum => checks.allowed = new.allowed,
            Keyword::Minimum => {
                (checks.minimum, checks.exclusive_minimum) = (new.minimum, new.exclusive_minimum);
            }
            Keyword::Maximum => {
                (checks.maximum, checks.exclusive_maximum) = (new.maximum, new.exclusive_maximum);
            }
            Keyword::MultipleOf => checks.multiple_of = new.multiple_of,
            Keyword::MinLength => checks.min_length = new.min_length,
            Keyword::MaxLength => checks.max_length = new.max_length,
            Keyword::Pattern => checks.pattern = new.pattern,
            Keyword::Format => checks.format = new.format,
            Keyword::MinItems => checks.min_items = new.min_items,
            Keyword::MaxItems => checks.max_items = new.max_items,
            Keyword::UniqueItems => checks.unique_items = new.unique_items,
            Keyword::MinProperties => checks.min_properties = new.min_properties,
            Keyword::MaxProperties => checks.max_properties = new.max_properties,
            Keyword::AllOf => checks.all_of = new.all_of,
            Keyword::AnyOf => checks.any_of = new.any_of,
            Keyword::OneOf => checks.one_of = new.one_of,
            Keyword::Not => checks.not = new.not,
        }
        target.checks = Some(checks);
    }

    /// Whether it is narrower in a way that only something very large could show.
    pub(crate) fn is_narrower_for_the_large(self, old: &Structural, new: &Structural) -> bool {
        let bound = |schema: &Structural| {
            let checks = schema.checks.as_deref()?;
            match self {
                Keyword::MaxLength => checks.max_length,
                Keyword::MaxItems => checks.max_items,
                Keyword::MaxProperties => checks.max_properties,
                _ => None,
            }
        };
        if self == Keyword::MaxProperties && old.additional.is_none() && !old.preserves_unknown_fields {
            return false;
        }
        let Some(new) = bound(new) else { return false };
        let most_shown = if self == Keyword::MaxLength { MAX_SHOWN } else { MAX_ITEMS };
        new >= most_shown && bound(old).is_none_or(|old| old > new)
    }

    /// What is different, in words.
    pub(crate) fn told(self, old: &Structural, new: &Structural) -> String {
        let nothing = Checks::default();
        let (old, new) = (old.checks.as_deref().unwrap_or(&nothing), new.checks.as_deref().unwrap_or(&nothing));
        let number = |number: Option<f64>, is_exclusive: bool| {
            number.map(|number| format!("{number}{}", if is_exclusive { " (exclusive)" } else { "" }))
        };
        let count = |count: Option<i64>| count.map(|count| count.to_string());
        let text = |text: &str| (!text.is_empty()).then(|| Value::from(text).to_json());
        let values = |values: &[Value]| (!values.is_empty()).then(|| Value::Array(values.to_vec()).to_json());
        let (name, old, new) = match self {
            Keyword::Enum => ("enum", values(&old.allowed), values(&new.allowed)),
            Keyword::Minimum => {
                let of = |checks: &Checks| number(checks.minimum, checks.exclusive_minimum);
                ("minimum", of(old), of(new))
            }
            Keyword::Maximum => {
                let of = |checks: &Checks| number(checks.maximum, checks.exclusive_maximum);
                ("maximum", of(old), of(new))
            }
            Keyword::MultipleOf => ("multipleOf", number(old.multiple_of, false), number(new.multiple_of, false)),
            Keyword::MinLength => ("minLength", count(old.min_length), count(new.min_length)),
            Keyword::MaxLength => ("maxLength", count(old.max_length), count(new.max_length)),
            Keyword::Pattern => ("pattern", text(&old.pattern), text(&new.pattern)),
            Keyword::Format => ("format", text(&old.format), text(&new.format)),
            Keyword::MinItems => ("minItems", count(old.min_items), count(new.min_items)),
            Keyword::MaxItems => ("maxItems", count(old.max_items), count(new.max_items)),
            Keyword::UniqueItems => return unique(new.unique_items),
            Keyword::MinProperties => ("minProperties", count(old.min_properties), count(new.min_properties)),
            Keyword::MaxProperties => ("maxProperties", count(old.max_properties), count(new.max_properties)),
            Keyword::AllOf => return "allOf is another".to_owned(),
            Keyword::AnyOf => return "anyOf is another".to_owned(),
            Keyword::OneOf => return "oneOf is another".to_owned(),
            Keyword::Not => return "not is another".to_owned(),
        };
        was(name, old.as_deref(), new.as_deref())
    }
}

fn unique(is_unique: bool) -> String {
    if is_unique { "items must be unique" } else { "items need not be unique any more" }.to_owned()
}

/// That something is so now and was otherwise.
pub(crate) fn was(name: &str, old: Option<&str>, new: Option<&str>) -> String {
    match (old, new) {
        (None, Some(new)) => format!("{name} is {new} now, and there was none"),
        (Some(old), None) => format!("there is no {name} any more; it was {old}"),
        (old, new) => format!("{name} is {} now, and was {}", new.unwrap_or("nothing"), old.unwrap_or("nothing")),
    }
}
