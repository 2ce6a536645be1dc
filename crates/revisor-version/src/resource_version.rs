//! [`compare_resource_versions`]: which of two resource versions is the later one.
//!
//! Works on the text, so that it holds for servers whose sequence outgrows any machine integer. The type of this
//! project's own sequence is [`Revision`](crate::Revision).

use std::cmp::Ordering;
use std::fmt;

/// Compares two resource versions by their place in history.
///
/// A resource version is a decimal number of any length: digits only, no leading zero, not zero. Two of them compare
/// by length and then digit by digit, which needs neither allocation nor big integers. Whether the comparison means
/// anything is the caller's knowledge: both must come from the same server, and on older servers from the same
/// resource.
///
/// # Errors
///
/// An operand that is not a resource version. `"0"` and the empty text are words of requests ("any", "the newest")
/// and not places in history, so they are refused. When both operands are bad, the error is about the left one.
///
/// ```
/// use revisor_version::compare_resource_versions;
/// use std::cmp::Ordering;
///
/// assert_eq!(compare_resource_versions("9", "10"), Ok(Ordering::Less));
/// assert_eq!(compare_resource_versions("340282366920938463463374607431768211456", "1"), Ok(Ordering::Greater));
/// assert_eq!(
///     compare_resource_versions("1", "0").unwrap_err().to_string(),
///     "right resource version is zero, which is no place in history"
/// );
/// ```
pub fn compare_resource_versions(left: &str, right: &str) -> Result<Ordering, CompareResourceVersionError> {
    let checked = |operand, text| check(text).map_err(|fault| CompareResourceVersionError { operand, fault });
    checked(Operand::Left, left)?;
    checked(Operand::Right, right)?;
    // Without leading zeros more digits mean a larger number, and digits order as ASCII bytes do.
    Ok(left.len().cmp(&right.len()).then_with(|| left.as_bytes().cmp(right.as_bytes())))
}

fn check(text: &str) -> Result<(), ResourceVersionFault> {
    if let Some(at) = text.bytes().position(|byte| !byte.is_ascii_digit()) {
        return Err(ResourceVersionFault::NotADigit { at });
    }
    match text.as_bytes() {
        [] => Err(ResourceVersionFault::Empty),
        [b'0'] => Err(ResourceVersionFault::Zero),
        [b'0', ..] => Err(ResourceVersionFault::LeadingZero),
        _ => Ok(()),
    }
}

/// Why two texts could not be compared as resource versions.
///
/// ```
/// use revisor_version::{Operand, ResourceVersionFault, compare_resource_versions};
///
/// let error = compare_resource_versions("12a", "13").unwrap_err();
/// assert_eq!(error.operand, Operand::Left);
/// assert_eq!(error.fault, ResourceVersionFault::NotADigit { at: 2 });
/// assert_eq!(error.to_string(), "left resource version has something other than a digit at byte 2");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{operand} resource version {fault}")]
pub struct CompareResourceVersionError {
    /// Which operand is at fault.
    pub operand: Operand,
    /// What is wrong with it.
    pub fault: ResourceVersionFault,
}

/// One side of a comparison.
///
/// ```
/// assert_eq!(revisor_version::Operand::Right.to_string(), "right");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The first argument.
    Left,
    /// The second argument.
    Right,
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operand::Left => "left",
            Operand::Right => "right",
        })
    }
}

/// What keeps a text from being a resource version.
///
/// ```
/// assert_eq!(revisor_version::ResourceVersionFault::Empty.to_string(), "is empty");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceVersionFault {
    /// There is no text at all.
    Empty,
    /// A byte that is not an ASCII digit.
    NotADigit {
        /// The byte's offset in the text.
        at: usize,
    },
    /// A number of several digits that begins with a zero.
    LeadingZero,
    /// The number zero.
    Zero,
}

impl fmt::Display for ResourceVersionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResourceVersionFault::Empty => f.write_str("is empty"),
            ResourceVersionFault::NotADigit { at } => {
                write!(f, "has something other than a digit at byte {at}")
            }
            ResourceVersionFault::LeadingZero => f.write_str("has a leading zero"),
            ResourceVersionFault::Zero => f.write_str("is zero, which is no place in history"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn orders_by_length_then_digits() {
        let past_128_bits = "340282366920938463463374607431768211456";
        let past_256_bits = "1".to_owned() + &"0".repeat(90);
        for (left, right, want) in [
            ("1", "1", Ordering::Equal),
            ("1", "2", Ordering::Less),
            ("9", "10", Ordering::Less),
            ("100", "99", Ordering::Greater),
            ("18446744073709551615", "18446744073709551616", Ordering::Less),
            (past_128_bits, "340282366920938463463374607431768211455", Ordering::Greater),
            (past_128_bits, past_128_bits, Ordering::Equal),
            (past_128_bits, &past_256_bits, Ordering::Less),
        ] {
            assert_eq!(compare_resource_versions(left, right), Ok(want), "{left} and {right}");
            assert_eq!(compare_resource_versions(right, left), Ok(want.reverse()), "{right} and {left}");
        }
    }

    #[test]
    fn refuses_what_is_no_resource_version() {
        use ResourceVersionFault::{Empty, LeadingZero, NotADigit, Zero};
        for (text, fault) in [
            ("", Empty),
            ("0", Zero),
            ("00", LeadingZero),
            ("01", LeadingZero),
            ("-1", NotADigit { at: 0 }),
            ("+1", NotADigit { at: 0 }),
            ("1 ", NotADigit { at: 1 }),
            ("1_000", NotADigit { at: 1 }),
            ("12\0", NotADigit { at: 2 }),
            ("1٣", NotADigit { at: 1 }),
            ("0x1f", NotADigit { at: 1 }),
        ] {
            let at = |operand| Err(CompareResourceVersionError { operand, fault });
            assert_eq!(compare_resource_versions(text, "7"), at(Operand::Left), "{text:?} on the left");
            assert_eq!(compare_resource_versions("7", text), at(Operand::Right), "{text:?} on the right");
            assert_eq!(compare_resource_versions(text, ""), at(Operand::Left), "{text:?} before another bad one");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_padded_numbers(left in "[1-9][0-9]{0,79}", right in "[1-9][0-9]{0,79}") {
            let want = format!("{left:0>80}").cmp(&format!("{right:0>80}"));
            prop_assert_eq!(compare_resource_versions(&left, &right), Ok(want));
        }

        #[test]
        fn agrees_with_integers(left in 1u128.., right in 1u128..) {
            prop_assert_eq!(compare_resource_versions(&left.to_string(), &right.to_string()), Ok(left.cmp(&right)));
        }

        #[test]
        fn never_panics(left in any::<String>(), right in any::<String>()) {
            // What is accepted compares equal to itself, whatever it is.
            if compare_resource_versions(&left, &right).is_ok() {
                prop_assert_eq!(compare_resource_versions(&left, &left), Ok(Ordering::Equal));
            }
        }
    }
}
