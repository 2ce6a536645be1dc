//! Amounts of resources, and comparisons, which versions have as well.

use std::cmp::Ordering;
use std::sync::Arc;

use revisor_object::{Notation, Quantity};

use super::{Scope, mismatch};
use crate::eval::error::EvalError;
use crate::eval::opaque::Opaque;
use crate::eval::value::CelValue;

type Outcome<'a> = Result<CelValue<'a>, EvalError>;

pub(super) fn quantity<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::String(text)] = args else { return mismatch() };
    match Quantity::parse(text) {
        Ok(quantity) => {
            let (quantity, scale) = (Arc::new(quantity), scale_of(text));
            Ok(CelValue::Opaque(Opaque::Quantity { quantity, scale, computed: false }))
        }
        Err(error) => Err(EvalError::failed(error.to_string())),
    }
}

/// How many powers of ten the digits of a quantity are multiplied by; `None` if it is too long to be kept that way.
fn scale_of(text: &str) -> Option<i32> {
    let text = text.trim_start_matches(['+', '-']);
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let length = i32::try_from(whole.trim_start_matches('0').len().max(1) + fraction.len()).ok()?;
    if let Some(unit) = suffix.strip_suffix('i') {
        let bits = 10 * (1 + i32::try_from("KMGTPE".find(unit)?).ok()?);
        return (fraction.is_empty() && length + bits * 3 / 10 < 15).then_some(0);
    }
    let exponent = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        exponent => exponent.strip_prefix(['e', 'E'])?.parse().ok()?,
    };
    let scale = exponent - i32::try_from(fraction.len()).ok()?;
    (length <= 18 && scale >= -9).then_some(scale)
}

pub(super) fn is_quantity<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text)] => Ok(CelValue::Bool(Quantity::parse(text).is_ok())),
        _ => mismatch(),
    }
}

/// The scale of a sum: the smaller one, unless one of both is nothing.
fn common_scale(one: &CelValue<'_>, other: &CelValue<'_>) -> Option<i32> {
    let (one_scale, other_scale) = (scale(one)?, scale(other)?);
    Some(match (amount(one).is_ok_and(Quantity::is_zero), amount(other).is_ok_and(Quantity::is_zero)) {
        (_, true) => one_scale,
        (true, false) => other_scale,
        (false, false) => one_scale.min(other_scale),
    })
}

fn scale(value: &CelValue<'_>) -> Option<i32> {
    match value {
        CelValue::Opaque(Opaque::Quantity { scale, .. }) => *scale,
        CelValue::Int(_) => Some(0),
        _ => None,
    }
}

fn amount<'v>(value: &'v CelValue<'_>) -> Result<&'v Quantity, EvalError> {
    match value {
        CelValue::Opaque(Opaque::Quantity { quantity, .. }) => Ok(quantity),
        _ => Err(EvalError::no_such_overload()),
    }
}

pub(super) fn sign<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [value] = args else { return mismatch() };
    Ok(CelValue::Int(i64::from(amount(value)?.sign())))
}

/// The number of units, if it is written as a whole one and fits.
fn whole(value: &CelValue<'_>) -> Result<Option<i64>, EvalError> {
    let quantity = amount(value)?;
    let units = quantity.value();
    // At either end the number of units may have been cut off.
    let exact = Quantity::from_units(units, Notation::DecimalSi) == *quantity;
    Ok((exact && scale(value).is_some_and(|scale| scale >= 0)).then_some(units))
}

pub(super) fn is_integer<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [value] = args else { return mismatch() };
    Ok(CelValue::Bool(whole(value)?.is_some()))
}

pub(super) fn as_integer<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [value] = args else { return mismatch() };
    let units = whole(value)?.ok_or_else(|| EvalError::failed("cannot convert value to integer"))?;
    Ok(CelValue::Int(units))
}

pub(super) fn as_float<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [value] = args else { return mismatch() };
    if let Some(units) = whole(value)? {
        return Ok(CelValue::Double(units as f64));
    }
    let quantity = amount(value)?;
    Ok(CelValue::Double(float_of(&quantity.to_string()).unwrap_or(f64::NAN)))
}

/// The number that the text of a quantity stands for.
fn float_of(text: &str) -> Option<f64> {
    let end = text.find(|char: char| char.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    Some(match suffix {
        "" => number,
        "n" => number / 1e9,
        "u" => number / 1e6,
        "m" => number / 1e3,
        "k" => number * 1e3,
        "M" => number * 1e6,
        "G" => number * 1e9,
        "T" => number * 1e12,
        "P" => number * 1e15,
        "E" => number * 1e18,
        "Ki" => number * 1024_f64,
        "Mi" => number * 1024_f64.powi(2),
        "Gi" => number * 1024_f64.powi(3),
        "Ti" => number * 1024_f64.powi(4),
        "Pi" => number * 1024_f64.powi(5),
        "Ei" => number * 1024_f64.powi(6),
        exponent => number * 10_f64.powi(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

pub(super) fn combine<'a>(args: &[CelValue<'a>], subtract: bool) -> Outcome<'a> {
    let [one, other] = args else { return mismatch() };
    let scale = common_scale(one, other);
    let one = amount(one)?;
    let other = match other {
        CelValue::Int(units) => &Quantity::from_units(*units, Notation::DecimalExponent),
        other => amount(other)?,
    };
    let quantity = Arc::new(if subtract { one.sub(other) } else { one.add(other) });
    Ok(CelValue::Opaque(Opaque::Quantity { quantity, scale, computed: true }))
}

fn order(args: &[CelValue<'_>]) -> Result<Ordering, EvalError> {
    match args {
        [CelValue::Opaque(Opaque::Semver(one)), CelValue::Opaque(Opaque::Semver(other))] => {
            Ok(one.cmp_precedence(other))
        }
        [one, other] => Ok(amount(one)?.cmp(amount(other)?)),
        _ => Err(EvalError::no_such_overload()),
    }
}

pub(super) fn compare_to<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    order(args).map(|order| CelValue::Int(order as i64))
}

pub(super) fn ordered<'a>(args: &[CelValue<'a>], wanted: Ordering) -> Outcome<'a> {
    order(args).map(|order| CelValue::Bool(order == wanted))
}
