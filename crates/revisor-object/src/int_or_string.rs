//! [`IntOrString`]: a field that holds a number, or a text such as a percentage or the name of a port.
//!
//! Borrowed from the [`Value`] that was read; nothing of it is copied. Which fields are of this type is the schema's.

use crate::atoi::{AtoiError, atoi};
use crate::bad_value::{BadValue, Quoted};
use crate::field_error::FieldError;
use crate::field_errors::FieldErrors;
use crate::field_path::FieldPath;
use crate::names;
use crate::value::Value;

/// A number or a text.
///
/// ```
/// use revisor_object::{IntOrString, Value};
///
/// let value = Value::from("25%");
/// let share = IntOrString::of(&value).unwrap();
/// assert_eq!(share.percent(), Some(25));
/// assert_eq!(share.scaled(10, true), Ok(3));
/// assert_eq!(share.scaled(10, false), Ok(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntOrString<'a> {
    /// A number.
    Int(i64),
    /// A text.
    String(&'a str),
}

/// Why an [`IntOrString`] is no share of a total.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    /// A text without a `%` at its end.
    #[error("invalid value for IntOrString: invalid type: string is not a percentage")]
    NotPercent,
    /// There is no number before the `%`.
    #[error("invalid value for IntOrString: invalid value {}: {reason}", Quoted(.text))]
    NotNumber {
        /// The whole text.
        text: String,
        /// What is wrong with the number.
        reason: String,
    },
}

impl<'a> IntOrString<'a> {
    /// What the value holds; `None` if it is neither.
    pub fn of(value: &'a Value) -> Option<IntOrString<'a>> {
        match value {
            Value::Int(number) => Some(IntOrString::Int(*number)),
            Value::String(text) => Some(IntOrString::String(text)),
            _ => None,
        }
    }

    /// The number before the `%`, if this is a percentage by the rule of [`names::percent`].
    pub fn percent(self) -> Option<i64> {
        let IntOrString::String(text) = self else { return None };
        if !names::percent(text).is_empty() {
            return None;
        }
        text.strip_suffix('%').map(nearest)
    }

    /// The number; of a text the number that it spells, or zero.
    pub fn int_value(self) -> i64 {
        match self {
            IntOrString::Int(number) => number,
            IntOrString::String(text) => nearest(text),
        }
    }

    /// The number, be it a percentage or not. Tells whether it is nothing.
    pub fn int_or_percent(self) -> i64 {
        self.percent().unwrap_or_else(|| self.int_value())
    }

    /// How many of `total` it stands for: a number stands for itself, a percentage for that share.
    ///
    /// # Errors
    ///
    /// If it is a text but no percentage.
    pub fn scaled(self, total: i64, round_up: bool) -> Result<i64, ScaleError> {
        let text = match self {
            IntOrString::Int(number) => return Ok(number),
            IntOrString::String(text) => text,
        };
        let number = text.strip_suffix('%').ok_or(ScaleError::NotPercent)?;
        let percent =
            atoi(number).map_err(|error| ScaleError::NotNumber { text: text.to_owned(), reason: error.to_string() })?;
        // In the integers of twice the size nothing is lost, where the original counts in floats. Both agree wherever
        // a float is exact.
        let product = i128::from(percent) * i128::from(total);
        let floor = product.div_euclid(100);
        let share = if round_up && product.rem_euclid(100) != 0 { floor + 1 } else { floor };
        Ok(i64::try_from(share).unwrap_or(if share < 0 { i64::MIN } else { i64::MAX }))
    }

    /// Checks that it is a percentage or a number that is not negative.
    pub fn check_int_or_percent(self, path: &FieldPath<'_>) -> FieldErrors {
        match self {
            IntOrString::Int(number) if number < 0 => {
                FieldErrors::from([FieldError::invalid(path, number, "must be greater than or equal to 0")])
            }
            IntOrString::Int(_) => FieldErrors::new(),
            IntOrString::String(text) => {
                names::percent(text).into_iter().map(|problem| FieldError::invalid(path, text, problem)).collect()
            }
        }
    }

    /// Checks that it is not a percentage above a hundred. A number passes, whatever it is.
    pub fn check_at_most_100_percent(self, path: &FieldPath<'_>) -> FieldErrors {
        match self.percent() {
            Some(percent) if percent > 100 => {
                FieldErrors::from([FieldError::invalid(path, BadValue::from(self), "must not be greater than 100%")])
            }
            _ => FieldErrors::new(),
        }
    }
}

/// The number that a text spells, or the nearest one, or zero.
fn nearest(text: &str) -> i64 {
    atoi(text).unwrap_or_else(|AtoiError { nearest, .. }| nearest.unwrap_or(0))
}

impl From<IntOrString<'_>> for BadValue {
    fn from(value: IntOrString<'_>) -> BadValue {
        match value {
            IntOrString::Int(number) => number.into(),
            IntOrString::String(text) => text.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

    #[test]
    fn numbers_and_percentages() {
        use IntOrString::{Int, String};
        for (value, percent, number, either) in [
            (Int(3), None, 3, 3),
            (Int(-3), None, -3, -3),
            (String("3"), None, 3, 3),
            (String("25%"), Some(25), 0, 25),
            (String("0%"), Some(0), 0, 0),
            (String("http"), None, 0, 0),
            (String("-1%"), None, 0, 0),
            (String(""), None, 0, 0),
            (String("9999999999999999999%"), Some(i64::MAX), 0, i64::MAX),
            (String("99999999999999999999"), None, i64::MAX, i64::MAX),
        ] {
            assert_eq!(
                (value.percent(), value.int_value(), value.int_or_percent()),
                (percent, number, either),
                "{value:?}"
            );
        }
        assert_eq!(IntOrString::of(&Value::Bool(true)), None);
        assert_eq!(IntOrString::of(&Value::Int(1)), Some(Int(1)));
    }

    #[test]
    fn shares_of_a_total() {
        use IntOrString::{Int, String};
        for (value, total, up, down) in [
            (Int(3), 100, 3, 3),
            (String("0%"), 10, 0, 0),
            (String("50%"), 10, 5, 5),
            (String("25%"), 10, 3, 2),
            (String("1%"), 1, 1, 0),
            (String("100%"), 7, 7, 7),
            (String("150%"), 3, 5, 4),
            (String("-50%"), 3, -1, -2),
            (String("9223372036854775807%"), i64::MAX, i64::MAX, i64::MAX),
        ] {
            assert_eq!(
                (value.scaled(total, true), value.scaled(total, false)),
                (Ok(up), Ok(down)),
                "{value:?} of {total}"
            );
        }
        for (text, want) in [
            ("5", "invalid value for IntOrString: invalid type: string is not a percentage"),
            ("x%", r#"invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax"#),
        ] {
            assert_eq!(String(text).scaled(1, true).map_err(|error| error.to_string()), Err(want.to_owned()));
        }
    }

    #[test]
    fn rules_of_rolling_updates() {
        let path = FieldPath::root("f");
        let texts = |errors: FieldErrors| errors.iter().map(FieldError::to_string).collect::<Vec<_>>();
        for (value, want) in [
            (IntOrString::Int(0), vec![]),
            (IntOrString::Int(-1), vec!["f: Invalid value: -1: must be greater than or equal to 0".to_owned()]),
            (IntOrString::String("10%"), vec![]),
            (IntOrString::String("10"), vec![format!(r#"f: Invalid value: "10": {NO_PERCENT}"#)]),
            (IntOrString::String("101%"), vec![]),
        ] {
            assert_eq!(texts(value.check_int_or_percent(&path)), want, "{value:?}");
        }
        for (value, want) in [
            (IntOrString::Int(101), vec![]),
            (IntOrString::String("100%"), vec![]),
            (IntOrString::String("101"), vec![]),
            (IntOrString::String("101%"), vec![r#"f: Invalid value: "101%": must not be greater than 100%"#]),
        ] {
            assert_eq!(texts(value.check_at_most_100_percent(&path)), want, "{value:?}");
        }
    }
}
