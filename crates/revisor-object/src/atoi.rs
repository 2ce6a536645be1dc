//! [`atoi`]: integers in texts, with the errors of Go's `strconv.Atoi`, which other errors quote.

use crate::bad_value::Quoted;

/// Why a text is not an integer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("strconv.Atoi: parsing {}: {}", Quoted(.text), if .nearest.is_some() { "value out of range" } else { "invalid syntax" })]
pub(crate) struct AtoiError {
    text: String,
    /// What comes nearest, if the number is merely too large.
    pub(crate) nearest: Option<i64>,
}

/// Reads decimal digits after an optional sign.
pub(crate) fn atoi(text: &str) -> Result<i64, AtoiError> {
    text.parse().map_err(|_| {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let digits = unsigned.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        // Of two faults the one is named that comes first, and a number is too large as soon as 64 bits are full.
        let too_large = !digits.is_empty() && (digits == unsigned || digits.parse::<u64>().is_err());
        let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
        AtoiError { text: text.to_owned(), nearest: too_large.then_some(limit) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_what_is_none() {
        for (text, want) in [
            ("0", Ok(0)),
            ("+7", Ok(7)),
            ("-007", Ok(-7)),
            ("9223372036854775807", Ok(i64::MAX)),
            ("", Err(r#"strconv.Atoi: parsing "": invalid syntax"#)),
            ("-", Err(r#"strconv.Atoi: parsing "-": invalid syntax"#)),
            ("1_0", Err(r#"strconv.Atoi: parsing "1_0": invalid syntax"#)),
            ("a\n", Err(r#"strconv.Atoi: parsing "a\n": invalid syntax"#)),
            ("9223372036854775808", Err(r#"strconv.Atoi: parsing "9223372036854775808": value out of range"#)),
            ("9999999999999999999x", Err(r#"strconv.Atoi: parsing "9999999999999999999x": invalid syntax"#)),
            ("99999999999999999999x", Err(r#"strconv.Atoi: parsing "99999999999999999999x": value out of range"#)),
            ("-9223372036854775809", Err(r#"strconv.Atoi: parsing "-9223372036854775809": value out of range"#)),
        ] {
            assert_eq!(atoi(text).map_err(|error| error.to_string()), want.map_err(str::to_owned), "{text:?}");
        }
    }
}
