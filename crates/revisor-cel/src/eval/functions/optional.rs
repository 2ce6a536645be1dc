//! Values that may be absent, and maps that macros build up.

use super::{Scope, display, mismatch};
use crate::eval::error::EvalError;
use crate::eval::map::Map;
use crate::eval::value::CelValue;

type Outcome<'a> = Result<CelValue<'a>, EvalError>;

fn take<'a>(arg: &mut CelValue<'a>) -> CelValue<'a> {
    std::mem::replace(arg, CelValue::Null)
}

pub(super) fn of<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [value] => Ok(CelValue::some(take(value))),
        _ => mismatch(),
    }
}

pub(super) fn of_non_zero<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [value] = args else { return mismatch() };
    let zero = match value {
        CelValue::Null => true,
        CelValue::Bool(truth) => !*truth,
        CelValue::Int(number) => *number == 0,
        CelValue::Uint(number) => *number == 0,
        CelValue::Double(number) => *number == 0.0,
        CelValue::String(text) => text.is_empty(),
        CelValue::Bytes(bytes) => bytes.is_empty(),
        // Lists and maps of a schema are never taken for nothing.
        CelValue::List(list) => list.is_empty() && list.order() == crate::eval::list::Order::Plain,
        CelValue::Map(map) => map.is_empty() && map.as_json().is_none_or(|(_, seen)| seen.is_dynamic()),
        CelValue::Duration(duration) => duration.nanos() == 0,
        // The first instant that there is, rather than that from which seconds are counted.
        CelValue::Timestamp(time) => time.unix_timestamp() == -62_135_596_800 && time.nanosecond() == 0,
        // What is absent is a value as well.
        _ => false,
    };
    Ok(if zero { CelValue::none() } else { CelValue::some(take(value)) })
}

pub(super) fn unwrap<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::List(list)] = args else { return mismatch() };
    if !matches!(list.get(0), None | Some(Ok(CelValue::Optional(_)))) {
        return mismatch();
    }
    let mut elements = Vec::new();
    for element in list.iter() {
        match element? {
            CelValue::Optional(held) => elements.extend(held.map(|held| (*held).clone())),
            element => return Err(EvalError::failed(format!("value {} is not optional", display(&element)))),
        }
    }
    Ok(CelValue::list(elements))
}

pub(super) fn has_value<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Optional(held)] => Ok(CelValue::Bool(held.is_some())),
        _ => mismatch(),
    }
}

pub(super) fn value<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Optional(Some(held))] => Ok((**held).clone()),
        [CelValue::Optional(None)] => Err(EvalError::failed("optional.none() dereference")),
        _ => mismatch(),
    }
}

pub(super) fn map_insert<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [map @ CelValue::Map(_), key, value] => insert(take(map), take(key), take(value)),
        [map @ CelValue::Map(_), CelValue::Map(entries)] => {
            scope.budget.toil(entries.len())?;
            let mut map = take(map);
            for key in entries.keys() {
                let value = entries.get(&key)?.unwrap_or(CelValue::Null);
                map = insert(map, key, value)?;
            }
            Ok(map)
        }
        _ => mismatch(),
    }
}

fn insert<'a>(map: CelValue<'a>, key: CelValue<'a>, value: CelValue<'a>) -> Outcome<'a> {
    let CelValue::Map(map) = map else { return mismatch() };
    let name = display(&key);
    let inserted: Option<Map<'a>> = map.inserted(key, value)?;
    inserted.map(CelValue::Map).ok_or_else(|| EvalError::failed(format!("insert failed: key {name} already exists")))
}
