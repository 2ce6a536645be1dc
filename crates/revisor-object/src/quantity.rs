//! [`Quantity`]: an amount of a resource, such as `500m`, `1Gi` or `12e6`.
//!
//! Reads what Kubernetes reads and writes it as Kubernetes writes it again, which is not always the shortest form: a
//! text that is regular enough is kept as it came. Values are exact and of any size; the usual ones need no heap.
//!
//! The number behind a quantity is [`Decimal`](decimal::Decimal), which knows nothing of suffixes.

mod decimal;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use compact_str::CompactString;

use crate::value::Value;
use decimal::Decimal;

/// The longest text that is read. Any sensible amount fits many times over, and the work to read one stays small.
pub const MAX_QUANTITY_BYTES: usize = 1024;

/// How many digits a text has at most of which it is told at a glance how it is written.
const SURE_DIGITS: usize = 4;

/// The smallest unit. What is finer is rounded away from zero, so that who asks for a little gets a little.
const NANO: i32 = -9;

/// An exact amount, and the notation in which it is written.
///
/// Quantities compare by amount; the notation does not matter.
///
/// ```
/// use revisor_object::Quantity;
///
/// let half = Quantity::parse("0.5").unwrap();
/// assert_eq!(half.to_string(), "500m");
/// assert_eq!(half, Quantity::parse("500m").unwrap());
/// assert!(half < Quantity::parse("1Ki").unwrap());
/// ```
#[derive(Debug, Clone)]
pub struct Quantity {
    amount: Decimal,
    notation: Notation,
    // The text as it was read, where Kubernetes writes that again instead of the canonical form.
    kept: Option<CompactString>,
}

/// How a [`Quantity`] is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Notation {
    /// With a power of ten: `12e6`.
    DecimalExponent,
    /// With a power of 1024: `12Mi`.
    BinarySi,
    /// With a letter for a power of 1000: `12M`.
    DecimalSi,
}

/// Why a text is not a [`Quantity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It has not the form of a number and a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number has no digits.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// No such suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// Longer than [`MAX_QUANTITY_BYTES`].
    #[error("quantities must be no more than {MAX_QUANTITY_BYTES} bytes")]
    TooLong,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Quantity = Quantity::of(Decimal::ZERO, Notation::DecimalSi);

    const fn of(amount: Decimal, notation: Notation) -> Quantity {
        Quantity { amount, notation, kept: None }
    }

    /// This many whole units.
    pub fn from_units(units: i64, notation: Notation) -> Quantity {
        Quantity::of(Decimal::new(units.into(), 0), notation)
    }

    /// This many thousandths of a unit.
    pub fn from_millis(millis: i64, notation: Notation) -> Quantity {
        Quantity::of(Decimal::new(millis.into(), -3), notation)
    }

    /// Reads a quantity.
    ///
    /// # Errors
    ///
    /// If the text is not a number with an optional suffix, in the words of Kubernetes.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        // DIFFERENCE: the original reads any length, in time that grows with its square.
        if text.len() > MAX_QUANTITY_BYTES {
            return Err(QuantityError::TooLong);
        }
        let parts = Parts::split(text)?;
        let suffix = Suffix::parse(parts.suffix).ok_or(QuantityError::Suffix)?;

        if parts.is_plain(suffix) {
            return Ok(Quantity::read_plain(text, &parts, suffix));
        }
        if !parts.has_digits {
            return Err(QuantityError::Number);
        }
        Ok(Quantity::read_unusual(&parts, suffix))
    }

    /// Whether a text is surely written again as it is. Nearly all are of a few digits and a usual suffix, of which that
    /// can be told without reading them.
    pub fn is_surely_canonical(text: &str) -> bool {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        if !(1..=SURE_DIGITS).contains(&digits) || text.starts_with('0') {
            return false;
        }
        let number = text.bytes().take(digits).fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        let is_canonical = match &text.as_bytes()[digits..] {
            b"" | b"m" | b"k" | b"M" | b"G" => number % 1000 != 0,
            b"Ki" | b"Mi" | b"Gi" => number % 1024 != 0,
            _ => return false,
        };
        debug_assert!(
            !is_canonical || Quantity::parse(text).is_ok_and(|read| read.to_string() == text),
            "{text} is written otherwise"
        );
        is_canonical
    }

    /// Reads the quantity that a field holds: a text, around which blanks are ignored, or a number. `null` is nothing.
    ///
    /// # Errors
    ///
    /// As [`parse`](Quantity::parse); what is neither text nor number has not the form of a quantity.
    pub fn from_value(value: &Value) -> Result<Quantity, QuantityError> {
        match value {
            Value::Null | Value::Nothing => Ok(Quantity::ZERO),
            Value::String(text) => Quantity::parse(text.trim()),
            Value::Int(number) => Quantity::parse(&number.to_string()),
            Value::Float(number) => Quantity::parse(&number.to_string()),
            Value::Raw(raw) => Quantity::from_value(raw.value()),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(QuantityError::Format),
        }
    }

    /// Reads a number of few digits. Only these can keep their text.
    fn read_plain(text: &str, parts: &Parts<'_>, suffix: Suffix) -> Quantity {
        let digits = parts.integer.bytes().chain(parts.fraction.bytes());
        let number = digits.fold(0_i128, |number, digit| number * 10 + i128::from(digit - b'0'));
        let sign = if parts.negative { -1 } else { 1 };
        let (amount, regular) = match suffix {
            Suffix::Binary(exponent) => (Decimal::new((sign * number) << exponent, 0), number % 8 != 0),
            Suffix::DecimalSi(exponent) | Suffix::DecimalExponent(exponent) => {
                let scale = exponent - parts.fraction.len() as i32;
                let first = parts.integer.bytes().chain(parts.fraction.bytes()).next();
                let thousands = parts.ends_with_three_zeros();
                (Decimal::new(sign * number, scale), scale % 3 == 0 && !thousands && first != Some(b'0'))
            }
        };
        Quantity { amount, notation: suffix.notation(), kept: regular.then(|| text.into()) }
    }

    /// Reads a number of many digits, a very small one, or a fraction of a power of two.
    fn read_unusual(parts: &Parts<'_>, suffix: Suffix) -> Quantity {
        let mut notation = suffix.notation();
        let fraction = parts.fraction.len() as i32;
        let exponent = match suffix {
            Suffix::Binary(_) => 0,
            Suffix::DecimalSi(exponent) | Suffix::DecimalExponent(exponent) => exponent,
        };
        let mut amount = Decimal::from_digits(parts.integer, parts.fraction, exponent.saturating_sub(fraction));
        if let Suffix::Binary(exponent) = suffix {
            amount = amount.shifted_left(exponent);
        }
        amount = amount.rounded_up(NANO);
        if notation == Notation::BinarySi {
            let most = Decimal::new(i64::MAX.into(), 0);
            if amount > most {
                amount = most;
            }
            if amount < Decimal::new(1, 0) && amount.sign() > 0 {
                notation = Notation::DecimalSi;
            }
        }
        Quantity::of(if parts.negative { amount.negated() } else { amount }, notation)
    }

    /// How it is written.
    pub fn notation(&self) -> Notation {
        self.notation
    }

    /// `-1`, `0` or `1`.
    pub fn sign(&self) -> i32 {
        self.amount.sign()
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.sign() == 0
    }

    /// Whether it is less than nothing.
    pub fn is_negative(&self) -> bool {
        self.sign() < 0
    }

    /// Whether it is a number of whole units.
    pub fn is_integer(&self) -> bool {
        self.amount.is_multiple_of_power(0)
    }

    /// Whether it is a number of whole thousandths. Processors are not divided further.
    pub fn is_whole_millis(&self) -> bool {
        self.amount.is_multiple_of_power(-3)
    }

    /// The number of units, rounded away from zero. Where an `i64` has no room for it, it is what the original makes of
    /// it: nothing, or what is left of its bits, which may be negative.
    pub fn value(&self) -> i64 {
        self.counted(0)
    }

    /// The number of thousandths, in the same way.
    pub fn milli_value(&self) -> i64 {
        self.counted(-3)
    }

    fn counted(&self, scale: i32) -> i64 {
        self.amount.rounded_up(scale).counted(scale, self.notation == Notation::BinarySi)
    }

    /// The sum. It is written as `self` is, or as `other` if `self` is nothing.
    pub fn add(&self, other: &Quantity) -> Quantity {
        Quantity::of(self.amount.plus(&other.amount), self.notation_with(other))
    }

    /// The difference. It is written as `self` is, or as `other` if `self` is nothing.
    pub fn sub(&self, other: &Quantity) -> Quantity {
        Quantity::of(self.amount.plus(&other.amount.clone().negated()), self.notation_with(other))
    }

    fn notation_with(&self, other: &Quantity) -> Notation {
        if self.is_zero() { other.notation } else { self.notation }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.amount == other.amount
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.amount.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.kept {
            return f.write_str(text);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        if self.notation == Notation::BinarySi
            // Below 1024 in either direction there is no binary suffix to write.
            && self.amount.magnitude_reaches(1024)
            && let Some((digits, power)) = self.amount.by_powers_of_1024()
            && let Some(suffix) = BINARY_SUFFIXES.get(power)
        {
            return write!(f, "{digits}{suffix}");
        }
        let (digits, exponent) = self.amount.by_powers_of_1000();
        let letter = DECIMAL_SUFFIXES.iter().find(|(_, power)| *power == exponent);
        match letter {
            Some((letter, _)) if self.notation != Notation::DecimalExponent => write!(f, "{digits}{letter}"),
            Some(("", _)) => f.write_str(&digits),
            // DIFFERENCE: for an amount of 1000E and more the original leaves the suffix out, and so writes another
            // amount than it read.
            _ => write!(f, "{digits}e{exponent}"),
        }
    }
}

const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// The unit after a number.
#[derive(Debug, Clone, Copy)]
enum Suffix {
    /// Two to the power of this.
    Binary(u32),
    /// Ten to the power of this, as a letter.
    DecimalSi(i32),
    /// Ten to the power of this, as a number.
    DecimalExponent(i32),
}

impl Suffix {
    fn parse(text: &str) -> Option<Suffix> {
        if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(letter, _)| *letter == text) {
            return Some(Suffix::DecimalSi(*exponent));
        }
        if let Some(power) = BINARY_SUFFIXES.iter().position(|suffix| *suffix == text) {
            return Some(Suffix::Binary(power as u32 * 10));
        }
        let digits = text.strip_prefix(['e', 'E'])?;
        // Read as 64 bits of which 32 are used. What lies beyond is cut off, as the original does.
        digits.parse::<i64>().ok().map(|exponent| Suffix::DecimalExponent(exponent as i32))
    }

    fn notation(self) -> Notation {
        match self {
            Suffix::Binary(_) => Notation::BinarySi,
            Suffix::DecimalSi(_) => Notation::DecimalSi,
            Suffix::DecimalExponent(_) => Notation::DecimalExponent,
        }
    }
}

/// The pieces of a text that looks like a quantity.
struct Parts<'a> {
    negative: bool,
    /// The digits before the point, without leading zeros, but not empty.
    integer: &'a str,
    /// The digits after the point.
    fraction: &'a str,
    suffix: &'a str,
    /// Whether there was a digit at all. A sign or point alone passes for zero where few digits are expected.
    has_digits: bool,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Parts<'a>, QuantityError> {
        let digits = |text: &'a str| {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text.split_at(end)
        };
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (all, rest) = digits(unsigned);
        let significant = all.trim_start_matches('0');
        let integer = if significant.is_empty() { "0" } else { significant };
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);

        let after_letters = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
        let exponent = after_letters.strip_prefix(['-', '+']).unwrap_or(after_letters);
        if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(QuantityError::Format);
        }
        let has_digits = !all.is_empty() || !fraction.is_empty();
        Ok(Parts { negative: text.starts_with('-'), integer, fraction, suffix, has_digits })
    }

    /// Whether the number is small enough for the short way, by the estimate that the original makes.
    ///
    /// The estimate decides which texts are kept, so it must be this one.
    fn is_plain(&self, suffix: Suffix) -> bool {
        let digits = self.integer.len() + self.fraction.len();
        match suffix {
            Suffix::Binary(exponent) => self.fraction.is_empty() && digits + exponent as usize * 3 / 10 < 15,
            Suffix::DecimalSi(exponent) | Suffix::DecimalExponent(exponent) => {
                digits <= 18 && exponent.saturating_sub(self.fraction.len() as i32) >= NANO
            }
        }
    }

    fn ends_with_three_zeros(&self) -> bool {
        let mut backwards = self.fraction.bytes().rev().chain(self.integer.bytes().rev());
        (0..3).all(|_| backwards.next() == Some(b'0'))
    }
}

#[cfg(test)]
mod tests;
