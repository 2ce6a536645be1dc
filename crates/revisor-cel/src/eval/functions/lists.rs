//! Functions of lists, and of lists as sets.

use std::cmp::Ordering;

use revisor_object::Duration;

use super::arithmetic::{add, list_contains};
use super::{Scope, mismatch};
use crate::eval::error::EvalError;
use crate::eval::list::List;
use crate::eval::value::CelValue;
use crate::eval::{cost, equality};

type Outcome<'a> = Result<CelValue<'a>, EvalError>;

/// Whether the elements of a list can be compared, as far as the first one shows.
fn is_ordered(list: &List<'_>) -> bool {
    match list.get(0) {
        Some(Ok(CelValue::Double(_))) | None => true,
        Some(Ok(first)) => equality::compare(&first, &first).is_ok(),
        Some(Err(_)) => true,
    }
}

pub(super) fn is_sorted<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::List(list)] = args else { return mismatch() };
    if !is_ordered(list) {
        return mismatch();
    }
    let mut before: Option<CelValue<'a>> = None;
    for element in list.iter() {
        let element = element?;
        if let Some(before) = &before
            && equality::compare(before, &element).is_ok_and(Ordering::is_gt)
        {
            return Ok(CelValue::Bool(false));
        }
        before = Some(element);
    }
    Ok(CelValue::Bool(true))
}

/// The element after which no other comes, in one direction or the other.
pub(super) fn extreme<'a>(args: &[CelValue<'a>], name: &str, replaced_if: Ordering) -> Outcome<'a> {
    let [CelValue::List(list)] = args else { return mismatch() };
    if !is_ordered(list) {
        return mismatch();
    }
    let mut result: Option<CelValue<'a>> = None;
    for element in list.iter() {
        let element = element?;
        let replaces = match &result {
            None => true,
            Some(result) => equality::compare(result, &element).is_ok_and(|order| order == replaced_if),
        };
        if replaces {
            result = Some(element);
        }
    }
    result.ok_or_else(|| EvalError::failed(format!("{name} called on empty list")))
}

pub(super) fn sum<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>], zero: CelValue<'a>) -> Outcome<'a> {
    let [CelValue::List(list)] = args else { return mismatch() };
    // If the type was not known beforehand, the first element shows it.
    let mut sum = match (zero, list.get(0)) {
        (CelValue::Int(0), Some(Ok(CelValue::Uint(_)))) => CelValue::Uint(0),
        (CelValue::Int(0), Some(Ok(CelValue::Double(_)))) => CelValue::Double(0.0),
        (CelValue::Int(0), Some(Ok(CelValue::Duration(_)))) => CelValue::Duration(Duration::from_nanos(0)),
        (CelValue::Int(0), Some(Ok(CelValue::Int(_))) | None) => CelValue::Int(0),
        (CelValue::Int(0), Some(_)) => return mismatch(),
        (zero, _) => zero,
    };
    for element in list.iter() {
        sum = add(scope, &mut [sum, element?])?;
    }
    Ok(sum)
}

/// How many values an attribute of a device may have (`ResourceSliceMaxAttributeValuesPerDevice`).
pub(crate) const MOST_ATTRIBUTE_VALUES: usize = 48;

/// Whether an attribute of a device is a value, or has it among its values.
pub(super) fn includes<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [attribute, value] = args else { return mismatch() };
    let CelValue::List(list) = attribute else {
        let is_value = match equality::equal(attribute, value, scope.budget) {
            Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
            compared => compared.unwrap_or(false),
        };
        return Ok(CelValue::Bool(is_value));
    };
    for (at, element) in list.iter().enumerate() {
        if at >= MOST_ATTRIBUTE_VALUES {
            return Err(EvalError::failed(format!(
                "'includes' function cannot be applied to lists longer than {MOST_ATTRIBUTE_VALUES} values"
            )));
        }
        match equality::equal(&element?, value, scope.budget) {
            Ok(true) => return Ok(CelValue::Bool(true)),
            Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
            // What cannot be compared is not the value.
            Ok(false) | Err(_) => {}
        }
    }
    Ok(CelValue::Bool(false))
}

pub(super) fn sort<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::List(list)] => {
            let keys = list.clone();
            sorted(scope, list, &keys)
        }
        _ => Err(EvalError::failed("no such overload: sort")),
    }
}

pub(super) fn sort_by_keys<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::List(list), CelValue::List(keys)] => {
            let keys = keys.clone();
            sorted(scope, list, &keys)
        }
        _ => mismatch(),
    }
}

fn sorted<'a>(scope: &mut Scope<'_>, list: &List<'a>, keys: &List<'a>) -> Outcome<'a> {
    if list.len() != keys.len() {
        return Err(EvalError::failed(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    if list.is_empty() {
        return Ok(CelValue::List(list.clone()));
    }
    scope.budget.toil(list.len().saturating_mul(8))?;
    let mut pairs: Vec<(CelValue<'a>, CelValue<'a>)> = keys.to_vec()?.into_iter().zip(list.to_vec()?).collect();
    let first = pairs[0].0.clone();
    if equality::compare(&first, &first).is_err() && !matches!(first, CelValue::Double(_)) {
        return Err(EvalError::failed("list elements must be comparable"));
    }
    if pairs.iter().any(|(key, _)| key.type_name() != first.type_name()) {
        return Err(EvalError::failed("list elements must have the same type"));
    }
    pairs.sort_by(|(one, _), (other, _)| equality::compare(one, other).unwrap_or(Ordering::Equal));
    Ok(CelValue::list(pairs.into_iter().map(|(_, element)| element).collect()))
}

pub(super) fn distinct<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::List(list)] = args else { return mismatch() };
    let mut kept: Vec<CelValue<'a>> = Vec::new();
    for element in list.iter() {
        let element = element?;
        let mut seen = false;
        for other in &kept {
            match equality::equal(&element, other, scope.budget) {
                Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
                equal => seen = equal == Ok(true),
            }
            if seen {
                break;
            }
        }
        if !seen {
            kept.push(element);
        }
    }
    Ok(CelValue::list(kept))
}

pub(super) fn flatten<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let (list, depth) = match args {
        [CelValue::List(list)] => (list, 1),
        [CelValue::List(list), CelValue::Int(depth)] => (list, *depth),
        _ => return mismatch(),
    };
    if depth < 0 {
        return Err(EvalError::failed("level must be non-negative"));
    }
    let mut elements = Vec::new();
    flatten_into(scope, list, depth, &mut elements)?;
    Ok(CelValue::list(elements))
}

/// Goes no deeper than the values do, which is as deep as an object or an expression can be.
fn flatten_into<'a>(
    scope: &mut Scope<'_>,
    list: &List<'a>,
    depth: i64,
    elements: &mut Vec<CelValue<'a>>,
) -> Result<(), EvalError> {
    scope.budget.toil(list.len())?;
    for element in list.iter() {
        match element? {
            CelValue::List(inner) if depth > 0 => flatten_into(scope, &inner, depth - 1, elements)?,
            element => elements.push(element),
        }
    }
    Ok(())
}

pub(super) fn range<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::Int(end)] = args else { return mismatch() };
    // Paid for by what comes out, so what nobody can pay for must not come out.
    let cost = u64::try_from(*end).unwrap_or(0).saturating_add(1 + cost::LIST);
    if !scope.budget.allows(cost) {
        scope.budget.spend(cost)?;
    }
    Ok(CelValue::list((0..*end).map(CelValue::Int).collect()))
}

pub(super) fn reverse<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::List(list)] = args else { return mismatch() };
    let mut elements = list.to_vec()?;
    elements.reverse();
    Ok(CelValue::list(elements))
}

pub(super) fn slice<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::List(list), CelValue::Int(start), CelValue::Int(end)] = args else { return mismatch() };
    let failed = |why: String| Err(EvalError::failed(format!("cannot slice({start}, {end}), {why}")));
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return failed("negative indexes not supported".to_owned());
    };
    if from > to {
        return failed("start index must be less than or equal to end index".to_owned());
    }
    if list.len() < to {
        return failed(format!("list is length {}", list.len()));
    }
    let elements: Result<Vec<CelValue<'a>>, EvalError> = (from..to).filter_map(|at| list.get(at)).collect();
    Ok(CelValue::list(elements?))
}

/// The first or the last element, if there is one.
pub(super) fn end<'a>(args: &[CelValue<'a>], last: bool) -> Outcome<'a> {
    let [CelValue::List(list)] = args else { return mismatch() };
    let at = if last { list.len().saturating_sub(1) } else { 0 };
    Ok(match list.get(at) {
        Some(element) => CelValue::some(element?),
        None => CelValue::none(),
    })
}

fn contains_all<'a>(scope: &mut Scope<'_>, list: &List<'a>, part: &List<'a>) -> Result<bool, EvalError> {
    for element in part.iter() {
        if !list_contains(scope, list, &element?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn set_contains<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::List(one), CelValue::List(other)] = args else { return mismatch() };
    contains_all(scope, one, other).map(CelValue::Bool)
}

pub(super) fn set_equivalent<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::List(one), CelValue::List(other)] = args else { return mismatch() };
    Ok(CelValue::Bool(contains_all(scope, one, other)? && contains_all(scope, other, one)?))
}

pub(super) fn set_intersects<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::List(one), CelValue::List(other)] = args else { return mismatch() };
    for element in one.iter() {
        match element.and_then(|element| list_contains(scope, other, &element)) {
            Ok(true) => return Ok(CelValue::Bool(true)),
            Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
            _ => {}
        }
    }
    Ok(CelValue::Bool(false))
}
