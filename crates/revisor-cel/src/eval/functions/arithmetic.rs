//! Operators: sums and the like, comparisons, negation, membership.

use std::cmp::Ordering;
use std::collections::HashMap;

use revisor_object::Duration;
use time::OffsetDateTime;

use super::{Scope, mismatch};
use crate::eval::equality::{self, map_key, set_key};
use crate::eval::error::EvalError;
use crate::eval::list::{List, Order};
use crate::eval::value::{Blob, CelValue, Text};

type Outcome<'a> = Result<CelValue<'a>, EvalError>;

const INT_OVERFLOW: &str = "integer overflow";
const UINT_OVERFLOW: &str = "unsigned integer overflow";
const TIMESTAMP_OVERFLOW: &str = "timestamp overflow";

/// What a value that has no such operator at all is told. Those that have methods are searched for one in vain.
fn no_operator<'a>(name: &str, args: &[CelValue<'a>]) -> Outcome<'a> {
    match args.first() {
        Some(CelValue::String(_) | CelValue::Timestamp(_) | CelValue::Duration(_)) => mismatch(),
        _ => Err(EvalError::failed(format!("no such overload: {name}"))),
    }
}

fn or_overflow<'a>(number: Option<i64>) -> Outcome<'a> {
    number.map(CelValue::Int).ok_or_else(|| EvalError::failed(INT_OVERFLOW))
}

fn or_uint_overflow<'a>(number: Option<u64>) -> Outcome<'a> {
    number.map(CelValue::Uint).ok_or_else(|| EvalError::failed(UINT_OVERFLOW))
}

fn or_duration_overflow<'a>(nanos: Option<i64>) -> Outcome<'a> {
    let duration = nanos.map(|nanos| CelValue::Duration(Duration::from_nanos(nanos)));
    duration.ok_or_else(|| EvalError::failed(INT_OVERFLOW))
}

pub(super) fn not<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Bool(truth)] => Ok(CelValue::Bool(!*truth)),
        _ => mismatch(),
    }
}

pub(super) fn not_strictly_false<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    Ok(CelValue::Bool(!matches!(args, [CelValue::Bool(false)])))
}

pub(super) fn negate<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Int(number)] => or_overflow(number.checked_neg()),
        [CelValue::Double(number)] => Ok(CelValue::Double(-*number)),
        [CelValue::Duration(duration)] => or_duration_overflow(duration.nanos().checked_neg()),
        [CelValue::Null | CelValue::List(_) | CelValue::Map(_)] => no_operator("-_", args),
        _ => mismatch(),
    }
}

pub(super) fn ordered<'a>(name: &str, args: &[CelValue<'a>], holds: fn(Ordering) -> bool) -> Outcome<'a> {
    use CelValue::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    match args {
        [one @ (Bool(_) | Bytes(_) | Double(_) | Duration(_) | Int(_) | String(_) | Timestamp(_) | Uint(_)), other] => {
            equality::compare(one, other).map(|order| CelValue::Bool(holds(order)))
        }
        _ => no_operator(name, args),
    }
}

pub(super) fn contains<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [value, CelValue::List(list)] => list_contains(scope, list, value).map(CelValue::Bool),
        [key, CelValue::Map(map)] => Ok(CelValue::Bool(map.get(key)?.is_some())),
        _ => mismatch(),
    }
}

/// Whether a value is in a list. What cannot be compared with it counts if it is not.
pub(super) fn list_contains<'a>(
    scope: &mut Scope<'_>,
    list: &List<'a>,
    value: &CelValue<'a>,
) -> Result<bool, EvalError> {
    let mut failure = None;
    for element in list.iter() {
        match element.and_then(|element| equality::equal(&element, value, scope.budget)) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
    }
    failure.map_or(Ok(false), Err)
}

pub(super) fn add<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [one, other] = &mut *args else { return mismatch() };
    match (&*one, &*other) {
        (CelValue::Int(one), CelValue::Int(other)) => or_overflow(one.checked_add(*other)),
        (CelValue::Uint(one), CelValue::Uint(other)) => or_uint_overflow(one.checked_add(*other)),
        (CelValue::Double(one), CelValue::Double(other)) => Ok(CelValue::Double(one + other)),
        (CelValue::String(one), CelValue::String(other)) => {
            let mut text = String::with_capacity(one.len() + other.len());
            text.push_str(one);
            text.push_str(other);
            Ok(CelValue::String(Text::from(text)))
        }
        (CelValue::Bytes(one), CelValue::Bytes(other)) => Ok(CelValue::Bytes(Blob::from([&**one, &**other].concat()))),
        (CelValue::Duration(one), CelValue::Duration(other)) => {
            or_duration_overflow(one.nanos().checked_add(other.nanos()))
        }
        (CelValue::Timestamp(time), CelValue::Duration(duration))
        | (CelValue::Duration(duration), CelValue::Timestamp(time)) => shifted(*time, i128::from(duration.nanos())),
        (CelValue::List(_), CelValue::List(_)) => {
            let (CelValue::List(one), CelValue::List(other)) =
                (std::mem::replace(one, CelValue::Null), std::mem::replace(other, CelValue::Null))
            else {
                return mismatch();
            };
            add_lists(scope, one, &other).map(CelValue::List)
        }
        (
            CelValue::Int(_)
            | CelValue::Uint(_)
            | CelValue::Double(_)
            | CelValue::String(_)
            | CelValue::Bytes(_)
            | CelValue::Duration(_)
            | CelValue::Timestamp(_)
            | CelValue::List(_),
            _,
        ) => mismatch(),
        _ => no_operator("_+_", args),
    }
}

fn add_lists<'a>(scope: &mut Scope<'_>, one: List<'a>, other: &List<'a>) -> Result<List<'a>, EvalError> {
    match one.order() {
        Order::Plain | Order::Atomic => {
            scope.budget.toil(if one.grows_in_place() { other.len() } else { one.len() + other.len() })?;
            one.append(other)
        }
        Order::Set => {
            scope.budget.toil(one.len() + other.len())?;
            let mut elements = one.to_vec()?;
            let mut known: HashMap<String, ()> = elements.iter().map(|element| (set_key(element), ())).collect();
            for element in other.iter() {
                let element = element?;
                if known.insert(set_key(&element), ()).is_none() {
                    elements.push(element);
                }
            }
            Ok(List::ordered(elements, Order::Set))
        }
        Order::Map(keys) => {
            scope.budget.toil(one.len() + other.len())?;
            let mut elements = one.to_vec()?;
            let places: HashMap<String, usize> =
                elements.iter().enumerate().map(|(at, element)| (map_key(element, keys), at)).collect();
            for element in other.iter() {
                let element = element?;
                match places.get(&map_key(&element, keys)) {
                    Some(at) => elements[*at] = element,
                    None => elements.push(element),
                }
            }
            Ok(List::ordered(elements, Order::Map(keys)))
        }
    }
}

/// A point in time moved by so many nanoseconds, if it stays within the years that there are.
fn shifted<'a>(time: OffsetDateTime, nanos: i128) -> Outcome<'a> {
    let overflow = || EvalError::failed(TIMESTAMP_OVERFLOW);
    let nanos = i64::try_from(nanos).map_err(|_| overflow())?;
    let shifted = time.checked_add(time::Duration::nanoseconds(nanos)).ok_or_else(overflow)?;
    let year = shifted.to_offset(time::UtcOffset::UTC).year();
    if (1..=9999).contains(&year) { Ok(CelValue::Timestamp(shifted)) } else { Err(overflow()) }
}

pub(super) fn subtract<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [one, other] = &*args else { return mismatch() };
    match (one, other) {
        (CelValue::Int(one), CelValue::Int(other)) => or_overflow(one.checked_sub(*other)),
        (CelValue::Uint(one), CelValue::Uint(other)) => or_uint_overflow(one.checked_sub(*other)),
        (CelValue::Double(one), CelValue::Double(other)) => Ok(CelValue::Double(one - other)),
        (CelValue::Duration(one), CelValue::Duration(other)) => {
            or_duration_overflow(one.nanos().checked_sub(other.nanos()))
        }
        (CelValue::Timestamp(time), CelValue::Duration(duration)) => shifted(*time, -i128::from(duration.nanos())),
        (CelValue::Timestamp(one), CelValue::Timestamp(other)) => {
            or_duration_overflow(i64::try_from((*one - *other).whole_nanoseconds()).ok())
        }
        (
            CelValue::Int(_) | CelValue::Uint(_) | CelValue::Double(_) | CelValue::Duration(_) | CelValue::Timestamp(_),
            _,
        ) => mismatch(),
        _ => no_operator("_-_", args),
    }
}

pub(super) fn multiply<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Int(one), CelValue::Int(other)] => or_overflow(one.checked_mul(*other)),
        [CelValue::Uint(one), CelValue::Uint(other)] => or_uint_overflow(one.checked_mul(*other)),
        [CelValue::Double(one), CelValue::Double(other)] => Ok(CelValue::Double(*one * *other)),
        [CelValue::Int(_) | CelValue::Uint(_) | CelValue::Double(_), _] => mismatch(),
        _ => no_operator("_*_", args),
    }
}

pub(super) fn divide<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Int(_), CelValue::Int(0)] | [CelValue::Uint(_), CelValue::Uint(0)] => {
            Err(EvalError::failed("division by zero"))
        }
        [CelValue::Int(one), CelValue::Int(other)] => or_overflow(one.checked_div(*other)),
        [CelValue::Uint(one), CelValue::Uint(other)] => or_uint_overflow(one.checked_div(*other)),
        [CelValue::Double(one), CelValue::Double(other)] => Ok(CelValue::Double(*one / *other)),
        [CelValue::Int(_) | CelValue::Uint(_) | CelValue::Double(_), _] => mismatch(),
        _ => no_operator("_/_", args),
    }
}

pub(super) fn modulo<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Int(_), CelValue::Int(0)] | [CelValue::Uint(_), CelValue::Uint(0)] => {
            Err(EvalError::failed("modulus by zero"))
        }
        [CelValue::Int(one), CelValue::Int(other)] => or_overflow(one.checked_rem(*other)),
        [CelValue::Uint(one), CelValue::Uint(other)] => or_uint_overflow(one.checked_rem(*other)),
        [CelValue::Int(_) | CelValue::Uint(_), _] => mismatch(),
        _ => no_operator("_%_", args),
    }
}
