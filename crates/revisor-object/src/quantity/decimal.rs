//! [`Decimal`]: an exact decimal number of any size, in the machine's integers as long as they suffice.
//!
//! A number is `mantissa · 10^scale`. It is always kept with the shortest mantissa, so that equal numbers are equal
//! in every bit. Scales can be absurd (`1e2000000000` is a quantity), so nothing here writes out a power of ten that
//! is larger than the digits at hand call for.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

/// Numbers of so many digits the original keeps in an `i64` and an exponent.
const FEW_DIGITS: u32 = 18;
/// Beyond so many digits a sum forgets its smaller part.
const MAX_DIGITS: u32 = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    mantissa: Mantissa,
    scale: i32,
}

/// Always `Small` if it fits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Mantissa {
    Small(i128),
    Big(BigInt),
}

impl Decimal {
    pub(super) const ZERO: Decimal = Decimal { mantissa: Mantissa::Small(0), scale: 0 };

    pub(super) fn new(mantissa: i128, scale: i32) -> Decimal {
        let (mut mantissa, mut scale) = (mantissa, scale);
        if mantissa == 0 {
            return Decimal::ZERO;
        }
        while mantissa % 10 == 0 && scale < i32::MAX {
            mantissa /= 10;
            scale += 1;
        }
        Decimal { mantissa: Mantissa::Small(mantissa), scale }
    }

    fn from_big(mut mantissa: BigInt, mut scale: i32) -> Decimal {
        loop {
            if let Ok(small) = i128::try_from(&mantissa) {
                return Decimal::new(small, scale);
            }
            let tenth = &mantissa / 10;
            if &tenth * 10 != mantissa || scale == i32::MAX {
                return Decimal { mantissa: Mantissa::Big(mantissa), scale };
            }
            mantissa = tenth;
            scale += 1;
        }
    }

    /// The number whose mantissa has the digits `first` and then `second`.
    pub(super) fn from_digits(first: &str, second: &str, scale: i32) -> Decimal {
        let digits = [first, second].concat();
        match digits.parse::<i128>() {
            Ok(small) => Decimal::new(small, scale),
            Err(_) => Decimal::from_big(BigInt::parse_bytes(digits.as_bytes(), 10).unwrap_or_default(), scale),
        }
    }

    pub(super) fn sign(&self) -> i32 {
        match &self.mantissa {
            Mantissa::Small(number) => number.signum() as i32,
            Mantissa::Big(number) => match number.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
        }
    }

    pub(super) fn negated(self) -> Decimal {
        match self.mantissa {
            Mantissa::Small(number) if number != i128::MIN => {
                Decimal { mantissa: Mantissa::Small(-number), scale: self.scale }
            }
            // One number fits in one direction only, so the sign decides how it is kept.
            Mantissa::Small(number) => Decimal::from_big(-BigInt::from(number), self.scale),
            Mantissa::Big(number) => Decimal::from_big(-number, self.scale),
        }
    }

    /// Whether the number is a multiple of `10^scale`.
    pub(super) fn is_multiple_of_power(&self, scale: i32) -> bool {
        // The mantissa is the shortest one, so a lower scale is needed.
        self.sign() == 0 || self.scale >= scale
    }

    /// The number times two to the power of this.
    pub(super) fn shifted_left(&self, exponent: u32) -> Decimal {
        Decimal::from_big(self.big() << exponent, self.scale)
    }

    /// The next multiple of `10^scale`, away from zero.
    pub(super) fn rounded_up(&self, scale: i32) -> Decimal {
        if self.is_multiple_of_power(scale) {
            return self.clone();
        }
        let excess = scale.saturating_sub(self.scale).unsigned_abs();
        if excess > self.digits() {
            // Less than one, however much less.
            return Decimal::new(self.sign().into(), scale);
        }
        // The shortest mantissa is no multiple of ten, so there always is a remainder.
        Decimal::from_big(self.big() / ten_to(excess) + self.sign(), scale)
    }

    /// How many times `10^scale` it is, of which it must be a multiple. What an `i64` has no room for is counted as the
    /// original counts (`ScaledValue`): few digits come to nothing, and of many the lowest bits are left.
    pub(super) fn counted(&self, scale: i32, is_binary: bool) -> i64 {
        let zeros = self.scale.saturating_sub(scale).unsigned_abs();
        let exact = match self.mantissa {
            Mantissa::Small(number) => 10_i128.checked_pow(zeros).and_then(|power| number.checked_mul(power)),
            Mantissa::Big(_) => None,
        };
        if let Some(fitting) = exact.and_then(|number| i64::try_from(number).ok()) {
            return fitting;
        }
        if self.digits() <= FEW_DIGITS && !is_binary {
            return 0;
        }
        let lowest = match &self.mantissa {
            Mantissa::Small(number) => *number as i64,
            Mantissa::Big(number) => {
                let magnitude = number.iter_u64_digits().next().unwrap_or_default() as i64;
                if number.sign() == Sign::Minus { magnitude.wrapping_neg() } else { magnitude }
            }
        };
        lowest.wrapping_mul(10_i64.wrapping_pow(zeros))
    }

    /// The sum. A part that is smaller by more than [`MAX_DIGITS`] digits is left out.
    pub(super) fn plus(&self, other: &Decimal) -> Decimal {
        let (fine, coarse) = if self.scale <= other.scale { (self, other) } else { (other, self) };
        if fine.sign() == 0 {
            return coarse.clone();
        }
        if coarse.sign() == 0 {
            return fine.clone();
        }
        let shift = coarse.scale.abs_diff(fine.scale);
        if let (Mantissa::Small(one), Mantissa::Small(two)) = (&fine.mantissa, &coarse.mantissa)
            && let Some(power) = 10_i128.checked_pow(shift)
            && let Some(sum) = two.checked_mul(power).and_then(|two| two.checked_add(*one))
        {
            return Decimal::new(sum, fine.scale);
        }
        if shift > MAX_DIGITS {
            return coarse.clone();
        }
        Decimal::from_big(coarse.big() * ten_to(shift) + fine.big(), fine.scale)
    }

    /// Whether it is at least `bound` in either direction.
    pub(super) fn magnitude_reaches(&self, bound: i128) -> bool {
        let magnitude = if self.sign() < 0 { self.clone().negated() } else { self.clone() };
        magnitude >= Decimal::new(bound, 0)
    }

    /// The digits of a mantissa, and the multiple of three that is its power of ten.
    pub(super) fn by_powers_of_1000(&self) -> (String, i32) {
        let beyond = self.scale.rem_euclid(3);
        let mut digits = self.mantissa_text();
        (0..beyond).for_each(|_| digits.push('0'));
        (digits, self.scale.saturating_sub(beyond))
    }

    /// The digits of a mantissa, and its power of 1024. Only of whole numbers, and none that is out of proportion.
    pub(super) fn by_powers_of_1024(&self) -> Option<(String, usize)> {
        let scale = u32::try_from(self.scale).ok().filter(|scale| *scale <= MAX_DIGITS)?;
        let mut number = self.big() * ten_to(scale);
        let mut power = 0;
        loop {
            let part = &number / 1024;
            if &part * 1024 != number || self.sign() == 0 {
                return Some((number.to_string(), power));
            }
            number = part;
            power += 1;
        }
    }

    fn big(&self) -> BigInt {
        match &self.mantissa {
            Mantissa::Small(number) => BigInt::from(*number),
            Mantissa::Big(number) => number.clone(),
        }
    }

    fn mantissa_text(&self) -> String {
        match &self.mantissa {
            Mantissa::Small(number) => number.to_string(),
            Mantissa::Big(number) => number.to_string(),
        }
    }

    /// How many digits the mantissa has.
    fn digits(&self) -> u32 {
        match &self.mantissa {
            Mantissa::Small(number) => number.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1),
            Mantissa::Big(number) => number.magnitude().to_string().len() as u32,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let by_sign = self.sign().cmp(&other.sign());
        if by_sign != Ordering::Equal || self.sign() == 0 {
            return by_sign;
        }
        let length = |number: &Decimal| i64::from(number.digits()) + i64::from(number.scale);
        let by_length = length(self).cmp(&length(other));
        if by_length != Ordering::Equal {
            return if self.sign() < 0 { by_length.reverse() } else { by_length };
        }
        // Of equal length, so the scales differ by no more than the digits do.
        let shift = self.scale.abs_diff(other.scale);
        if let (Mantissa::Small(one), Mantissa::Small(two)) = (&self.mantissa, &other.mantissa)
            && let Some(power) = 10_i128.checked_pow(shift)
        {
            let (left, right) = if self.scale > other.scale {
                (one.checked_mul(power), Some(*two))
            } else {
                (Some(*one), two.checked_mul(power))
            };
            if let (Some(left), Some(right)) = (left, right) {
                return left.cmp(&right);
            }
        }
        if self.scale > other.scale {
            (self.big() * ten_to(shift)).cmp(&other.big())
        } else {
            self.big().cmp(&(other.big() * ten_to(shift)))
        }
    }
}

fn ten_to(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}
