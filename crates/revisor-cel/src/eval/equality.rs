//! When two values are the same, and which of two comes first.

use std::cmp::Ordering;
use std::collections::HashMap;

use revisor_object::Value;

use super::error::{Budget, EvalError};
use super::list::{List, Order};
use super::map::{Map, same_json};
use super::value::CelValue;

/// Whether two values are the same. Numbers are the same whatever their types; values that only libraries know can be
/// compared with their own kind only.
pub(crate) fn equal(one: &CelValue<'_>, other: &CelValue<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    use CelValue::{Bool, Bytes, Double, Duration, Int, List, Map, Null, Opaque, Optional, Preserved, Uint};
    use CelValue::{String, Structure, Timestamp, Type};
    budget.toil(1)?;
    Ok(match (one, other) {
        (Null, Null) => true,
        (Null, _) | (_, Null) => false,
        (Bool(one), Bool(other)) => one == other,
        (Int(_) | Uint(_) | Double(_), Int(_) | Uint(_) | Double(_)) => {
            compare_numbers(one, other) == Some(Ordering::Equal)
        }
        (String(one), String(other)) => {
            budget.toil(one.len() / 64)?;
            **one == **other
        }
        (Bytes(one), Bytes(other)) => **one == **other,
        (Timestamp(one), Timestamp(other)) => one == other,
        (Duration(one), Duration(other)) => one == other,
        (Type(one), Type(other)) => one.runtime_name() == other.runtime_name(),
        (Optional(one), Optional(other)) => match (one, other) {
            (Some(one), Some(other)) => equal(one, other, budget)?,
            (one, other) => one.is_none() && other.is_none(),
        },
        (List(one), List(other)) => return equal_lists(one, other, budget),
        (Map(one), Map(other)) => return equal_maps(one, other, budget),
        (Opaque(one), Opaque(other)) => return one.equals(other).ok_or_else(EvalError::no_such_overload),
        (Opaque(_), _) => return Err(EvalError::no_such_overload()),
        (List(one), _) if one.order() != Order::Plain => return Err(EvalError::no_such_overload()),
        (Map(one), _) if one.as_json().is_some_and(|(_, seen)| !seen.is_dynamic()) => {
            return Err(EvalError::no_such_overload());
        }
        (Preserved(one), Preserved(other)) => {
            budget.toil(weight(one))?;
            same_json(one, other)
        }
        (Structure(one), Structure(other)) => {
            if one.name != other.name || one.fields.len() != other.fields.len() {
                return Ok(false);
            }
            for (name, value) in &one.fields {
                match other.field(name) {
                    Some(found) if equal(value, found, budget)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        _ => false,
    })
}

fn weight(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(weight).sum::<usize>(),
        Value::Object(object) => 1 + object.iter().map(|(_, value)| weight(value)).sum::<usize>(),
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

fn equal_lists(one: &List<'_>, other: &List<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    if one.len() != other.len() {
        return Ok(false);
    }
    match one.order() {
        Order::Plain | Order::Atomic => {
            for (left, right) in one.iter().zip(other.iter()) {
                match equal(&left?, &right?, budget) {
                    Ok(true) => {}
                    Ok(false) => return Ok(false),
                    // In lists of expressions, what cannot be compared decides nothing.
                    Err(EvalError::Failed(_)) if one.order() == Order::Plain => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(true)
        }
        Order::Set => {
            budget.toil(one.len())?;
            let known: HashMap<String, ()> =
                one.iter().map(|element| Ok((set_key(&element?), ()))).collect::<Result<_, EvalError>>()?;
            for element in other.iter() {
                budget.toil(1)?;
                if !known.contains_key(&set_key(&element?)) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Order::Map(keys) => {
            budget.toil(one.len())?;
            let mut known = HashMap::new();
            for element in one.iter() {
                let element = element?;
                known.insert(map_key(&element, keys), element);
            }
            for element in other.iter() {
                let element = element?;
                let Some(found) = known.get(&map_key(&element, keys)) else { return Ok(false) };
                if !equal(found, &element, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// What tells an element of a set apart from others.
pub(crate) fn set_key(value: &CelValue<'_>) -> String {
    match value {
        CelValue::String(text) => format!("s{}", &**text),
        value => super::functions::display(value),
    }
}

/// What tells an element of a list with keys apart from others.
pub(crate) fn map_key(value: &CelValue<'_>, keys: &[Box<str>]) -> String {
    let mut text = String::new();
    for name in keys {
        let member = match value {
            CelValue::Map(map) => match map.as_json() {
                Some((object, _)) => object.get(name).map(Value::to_json),
                None => map.field(name).ok().flatten().map(|value| match value {
                    CelValue::String(text) => Value::from(&*text).to_json(),
                    value => super::functions::display(&value),
                }),
            },
            _ => None,
        };
        text.push_str(&member.unwrap_or_default());
        text.push('\0');
    }
    text
}

fn equal_maps(one: &Map<'_>, other: &Map<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    if one.len() != other.len() {
        return Ok(false);
    }
    budget.toil(one.len())?;
    let of_schema = one.as_json().is_some_and(|(_, seen)| !seen.is_dynamic());
    // Members that the schema does not name are compared as they are.
    if let Some((object, seen)) = one.as_json()
        && let Some((other_object, _)) = other.as_json()
    {
        for (name, value) in object.iter().filter(|(name, _)| seen.member(name).is_none()) {
            budget.toil(weight(value))?;
            if other_object.get(name).is_some_and(|found| !same_json(value, found)) {
                return Ok(false);
            }
        }
    }
    for key in one.keys() {
        match (one.get(&key)?, other.get(&key)?) {
            (Some(value), Some(found)) => match equal(&value, &found, budget) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                // As in lists of expressions.
                Err(EvalError::Failed(_)) if !of_schema => {}
                Err(error) => return Err(error),
            },
            (None, None) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Which of two numbers is larger; `None` if one is none, as NaN is.
fn compare_numbers(one: &CelValue<'_>, other: &CelValue<'_>) -> Option<Ordering> {
    use CelValue::{Double, Int, Uint};
    let integer = |value: &CelValue<'_>| match value {
        Int(number) => Some(i128::from(*number)),
        Uint(number) => Some(i128::from(*number)),
        _ => None,
    };
    match (one, other) {
        (Double(one), Double(other)) => one.partial_cmp(other),
        (Double(one), other) => compare_double(*one, integer(other)?),
        (one, Double(other)) => compare_double(*other, integer(one)?).map(Ordering::reverse),
        (one, other) => Some(integer(one)?.cmp(&integer(other)?)),
    }
}

fn compare_double(double: f64, integer: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // All integers of 64 bits lie within.
    if double >= 1e30 {
        return Some(Ordering::Greater);
    }
    if double <= -1e30 {
        return Some(Ordering::Less);
    }
    let whole = double.floor();
    Some((whole as i128).cmp(&integer).then(if double > whole { Ordering::Greater } else { Ordering::Equal }))
}

/// Which of two values comes first. Fails if they have no order.
pub(crate) fn compare(one: &CelValue<'_>, other: &CelValue<'_>) -> Result<Ordering, EvalError> {
    use CelValue::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    Ok(match (one, other) {
        (Bool(one), Bool(other)) => one.cmp(other),
        (Int(_) | Uint(_) | Double(_), Int(_) | Uint(_) | Double(_)) => {
            return compare_numbers(one, other).ok_or_else(|| EvalError::failed("NaN values cannot be ordered"));
        }
        (String(one), String(other)) => (**one).cmp(&**other),
        (Bytes(one), Bytes(other)) => (**one).cmp(&**other),
        (Timestamp(one), Timestamp(other)) => one.cmp(other),
        (Duration(one), Duration(other)) => one.cmp(other),
        _ => return Err(EvalError::no_such_overload()),
    })
}
