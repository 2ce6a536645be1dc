//! Bounds and multiples of numbers. Integers are compared as integers where the bound is one, and whether a number fits
//! the type and format of its schema is a check of its own, also for the bounds themselves.

use revisor_object::{BadValue, Value};

use super::super::{Checks as SchemaChecks, JsonType, Structural};
use super::finding::{Finding, Findings};

/// What a schema says of numbers.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    range: Range,
    multiple_of: Option<f64>,
    minimum: Option<(f64, bool)>,
    maximum: Option<(f64, bool)>,
}

/// The numbers that a type and format can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    All,
    Int32,
    Int64 { is_named: bool },
    Float32,
}

impl Range {
    fn holds_integer(self, number: i64) -> bool {
        self != Range::Int32 || i32::try_from(number).is_ok()
    }

    fn holds(self, number: f64) -> bool {
        let is_within = |low: f64, high: f64| number.fract() == 0.0 && number >= low && number < high;
        match self {
            Range::All => true,
            Range::Int32 => is_within(-2_147_483_648.0, 2_147_483_648.0),
            Range::Int64 { .. } => is_within(-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0),
            Range::Float32 => (number as f32).is_finite(),
        }
    }

    fn refusal(self, what: &str, place: &str) -> Finding {
        let wanted = match self {
            Range::All | Range::Int64 { is_named: false } => "integer (default format)",
            Range::Int32 => "integer with format int32",
            Range::Int64 { is_named: true } => "integer with format int64",
            Range::Float32 => "number with format float",
        };
        Finding::general(format!("{what} value must be of type {wanted} in {place}"))
    }
}

impl Numbers {
    pub(super) fn of(schema: &Structural, checks: &SchemaChecks, format: Option<&str>) -> Option<Numbers> {
        let range = range_of(schema, format);
        let numbers = Numbers {
            range,
            multiple_of: checks.multiple_of,
            minimum: checks.minimum.map(|bound| (bound, checks.exclusive_minimum)),
            maximum: checks.maximum.map(|bound| (bound, checks.exclusive_maximum)),
        };
        let says_something = range != Range::All
            || numbers.multiple_of.is_some()
            || numbers.minimum.is_some()
            || numbers.maximum.is_some();
        says_something.then_some(numbers)
    }

    /// For a schema without any checks but its type.
    pub(super) fn check_type_only(is_integer: bool, value: &Value, found: &mut Findings<'_>) -> bool {
        let range = if is_integer { Range::Int64 { is_named: false } } else { Range::All };
        let numbers = Numbers { range, multiple_of: None, minimum: None, maximum: None };
        numbers.check(value, found)
    }

    /// Checks a value that is a number; answers whether nothing was found.
    pub(super) fn check(&self, value: &Value, found: &mut Findings<'_>) -> bool {
        let mut is_valid = true;
        let (number, holds) = match value {
            Value::Int(number) => (*number as f64, self.range.holds_integer(*number)),
            Value::Float(number) => (*number, self.range.holds(*number)),
            _ => return true,
        };
        // A bound that the type cannot hold is a fault of its own, and the comparison is one of general numbers.
        let integer = |bound: f64| match value {
            Value::Int(number) if self.range.holds(bound) => Some((*number, bound as i64)),
            _ => None,
        };
        if !holds {
            is_valid = false;
            found.add(|place| self.range.refusal("Checked", place));
        }
        if let Some(factor) = self.multiple_of {
            is_valid &= self.bound_fits("MultipleOf", factor, found);
            is_valid &= match integer(factor) {
                Some((number, factor)) => check_multiple_integer(number, factor, found),
                None => check_multiple(number, factor, found),
            };
        }
        if let Some((bound, is_exclusive)) = self.minimum {
            is_valid &= self.bound_fits("Minimum boundary", bound, found);
            let words = if is_exclusive { "greater than" } else { "greater than or equal to" };
            let (is_good, shown, value) = match integer(bound) {
                Some((number, bound)) => {
                    (number > bound || (number == bound && !is_exclusive), bound.into(), BadValue::from(number))
                }
                None => (!(number < bound || (is_exclusive && number == bound)), bound.into(), BadValue::from(number)),
            };
            is_valid &= is_good || found.refuse_bound(words, shown, value);
        }
        if let Some((bound, is_exclusive)) = self.maximum {
            is_valid &= self.bound_fits("Maximum boundary", bound, found);
            let words = if is_exclusive { "less than" } else { "less than or equal to" };
            let (is_good, shown, value) = match integer(bound) {
                Some((number, bound)) => {
                    (number < bound || (number == bound && !is_exclusive), bound.into(), BadValue::from(number))
                }
                None => (!(number > bound || (is_exclusive && number == bound)), bound.into(), BadValue::from(number)),
            };
            is_valid &= is_good || found.refuse_bound(words, shown, value);
        }
        is_valid
    }

    fn bound_fits(&self, what: &str, bound: f64, found: &mut Findings<'_>) -> bool {
        let fits = self.range.holds(bound);
        if !fits {
            found.add(|place| self.range.refusal(what, place));
        }
        fits
    }
}

fn range_of(schema: &Structural, format: Option<&str>) -> Range {
    match (schema.kind, format) {
        _ if schema.is_int_or_string => Range::All,
        (Some(JsonType::Integer), Some("int32")) => Range::Int32,
        (Some(JsonType::Integer), format) => Range::Int64 { is_named: format == Some("int64") },
        (Some(JsonType::Number), Some("float")) => Range::Float32,
        _ => Range::All,
    }
}

fn check_multiple_integer(number: i64, factor: i64, found: &mut Findings<'_>) -> bool {
    if factor <= 0 {
        return found.refuse_factor(factor.into());
    }
    number % factor == 0 || found.refuse_multiple(factor.into(), number.into())
}

fn check_multiple(number: f64, factor: f64, found: &mut Findings<'_>) -> bool {
    if factor <= 0.0 {
        return found.refuse_factor(factor.into());
    }
    let times = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
    is_json_integer(times) || found.refuse_multiple(factor.into(), number.into())
}

/// Whether a number is an integer that JSON can hold, give or take what arithmetic costs.
pub(super) fn is_json_integer(number: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    const EPSILON: f64 = 1e-9;
    if !(-LARGEST..=LARGEST).contains(&number) {
        return false;
    }
    if number.fract() == 0.0 {
        return true;
    }
    // Only what a number is above the integer below it is seen, and of negative ones nothing.
    let below = if number < 0.0 { 0.0 } else { number.trunc() };
    if below == 0.0 {
        return false;
    }
    (number - below).abs() / (number.abs() + below) < EPSILON
}
