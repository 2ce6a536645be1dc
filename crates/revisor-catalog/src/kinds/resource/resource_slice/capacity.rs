//! How much of a device there is, and in what portions it can be had.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Quantity};

use super::super::lists;
use crate::kinds::amounts::amount;

/// At most so many portions to choose from.
const MAX_VALUES: usize = 10;

/// What is wrong with a capacity of a device that is shared, or is not.
pub(super) fn validate(path: FieldPath<'_>, capacity: &Object, is_shared: bool) -> FieldErrors {
    let Some(policy) = capacity.object("requestPolicy") else { return FieldErrors::new() };
    let path = path.child("requestPolicy");
    if !is_shared {
        return FieldErrors::from([FieldError::forbidden(path, "allowMultipleAllocations must be true")]);
    }
    let most = capacity.get("value").map_or(Quantity::ZERO, amount);
    let default = policy.get("default").filter(|value| !value.is_null()).map(amount);
    let values: Vec<Quantity> = policy.array("validValues").iter().map(amount).collect();
    let missing = |what: &str| {
        FieldErrors::from([FieldError::required(path.child("default"), format!("required when {what} is defined"))])
    };
    match (policy.object("validRange"), values.is_empty()) {
        (Some(_), false) => {
            let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at \
                          the same time";
            FieldErrors::from([FieldError::forbidden(path, detail)])
        }
        (None, false) => match default {
            Some(default) => validate_values(path.child("validValues"), &values, &default, &most),
            None => missing("validValues"),
        },
        (Some(range), true) => match default {
            Some(default) => validate_range(path.child("validRange"), range, &default, &most),
            None => missing("validRange"),
        },
        (None, true) => FieldErrors::new(),
    }
}

fn validate_values(path: FieldPath<'_>, values: &[Quantity], default: &Quantity, most: &Quantity) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (at, pair) in values.windows(2).enumerate() {
        if pair[0] > pair[1] {
            let detail = "values must be sorted in ascending order";
            errors.push(FieldError::invalid(path.index(at + 1), pair[1].to_string(), detail));
        }
    }
    // Too many are not looked at, so the default is not found among them either.
    let is_bounded = values.len() <= MAX_VALUES;
    if is_bounded {
        for (at, value) in values.iter().enumerate().filter(|(_, value)| *value > most) {
            let detail = format!("option is larger than capacity value: {most}");
            errors.push(FieldError::invalid(path.index(at), value.to_string(), detail));
        }
        let units: Vec<String> = values.iter().map(|value| value.value().to_string()).collect();
        errors.extend(lists::duplicates(path, units.iter().map(String::as_str)));
    } else {
        errors.push(FieldError::too_many(path, values.len(), MAX_VALUES));
    }
    if !is_bounded || !values.contains(default) {
        let detail = "default value is not valid according to the requestPolicy";
        errors.push(FieldError::invalid(path, default.to_string(), detail));
    }
    errors
}

fn validate_range(path: FieldPath<'_>, range: &Object, default: &Quantity, most: &Quantity) -> FieldErrors {
    let Some(min) = range.get("min").map(amount) else {
        return FieldErrors::from([FieldError::required(path.child("min"), "required when validRange is defined")]);
    };
    let mut errors = FieldErrors::new();
    let mut invalid = |name: &str, shown: &Quantity, detail: String| {
        errors.push(FieldError::invalid(path.child(name), shown.to_string(), detail));
    };
    if min > *most {
        invalid("min", &min, format!("min is larger than capacity value: {most}"));
    }
    if *default < min {
        invalid("min", default, format!("default is less than min: {min}"));
    }
    let max = range.get("max").map(amount);
    if let Some(max) = &max {
        if min > *max {
            invalid("max", &min, format!("min is larger than max: {max}"));
        }
        if max > most {
            invalid("max", max, format!("max is larger than capacity value: {most}"));
        }
        if default > max {
            invalid("max", default, format!("default is more than max: {max}"));
        }
    }
    if let Some(step) = range.get("step").map(amount) {
        let first = min.add(&step);
        if first > *most {
            invalid("step", &step, format!("one step {first} is larger than capacity value: {most}"));
        }
        for value in std::iter::once(default).chain(&max) {
            // DIFFERENCE: to a step of nothing the original answers 500.
            let is_multiple = value.value().saturating_sub(min.value()).checked_rem(step.value()) == Some(0);
            if !is_multiple {
                invalid("step", value, format!("value is not a multiple of a given step ({step}) from ({min})"));
            }
        }
    }
    errors
}
