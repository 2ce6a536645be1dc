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
        Ok(quantity) => Ok(CelValue::Opaque(Opaque::Quantity { quantity: Arc::new(quantity), computed: false })),
        Err(error) => Err(EvalError::failed(error.to_string())),
    }
}

pub(super) fn is_quantity<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text)] => Ok(CelValue::Bool(Quantity::parse(text).is_ok())),
        _ => mismatch(),
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

/// The number of units, if it is a whole one that fits.
fn whole(quantity: &Quantity) -> Option<i64> {
    let units = quantity.value();
    // At either end the number of units may have been cut off.
    let exact = Quantity::from_units(units, Notation::DecimalSi) == *quantity;
    (quantity.is_integer() && exact).then_some(units)
}

pub(super) fn is_integer<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [value] = args else { return mismatch() };
    Ok(CelValue::Bool(whole(amount(value)?).is_some()))
}

pub(super) fn as_integer<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [value] = args else { return mismatch() };
    let units = whole(amount(value)?).ok_or_else(|| EvalError::failed("cannot convert value to integer"))?;
    Ok(CelValue::Int(units))
}

pub(super) fn as_float<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [value] = args else { return mismatch() };
    let quantity = amount(value)?;
    if let Some(units) = whole(quantity) {
        return Ok(CelValue::Double(units as f64));
    }
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
    let one = amount(one)?;
    let other = match other {
        CelValue::Int(units) => &Quantity::from_units(*units, Notation::DecimalExponent),
        other => amount(other)?,
    };
    let quantity = Arc::new(if subtract { one.sub(other) } else { one.add(other) });
    Ok(CelValue::Opaque(Opaque::Quantity { quantity, computed: true }))
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
