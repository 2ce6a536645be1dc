//! `successPolicy`: when an indexed job has succeeded although not every index has.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use super::indexes;
use crate::checks::not_negative;
use crate::kinds::workload::given_number;

const MAX_RULES: usize = 20;
const MAX_INDEXES_BYTES: usize = 64 * 1024;

pub(super) fn validate(path: FieldPath<'_>, policy: &Object, completions: Option<i64>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let at_rules = path.child("rules");
    let rules = policy.array("rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(at_rules, detail));
    }
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(at_rules, rules.len(), MAX_RULES));
    }
    for (at, rule) in rules.iter().filter_map(Value::as_object).enumerate() {
        // DIFFERENCE: the original fails where completions are missing, which is an error of its own.
        errors.extend(validate_rule(at_rules.index(at), rule, completions.unwrap_or_default()));
    }
    errors
}

fn validate_rule(path: FieldPath<'_>, rule: &Object, completions: i64) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (list, least) = (rule.str("succeededIndexes"), given_number(rule, "succeededCount"));
    if list.is_none() && least.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, detail));
    }
    let mut total = 0;
    if let Some(list) = list {
        let at = path.child("succeededIndexes");
        if list.len() > MAX_INDEXES_BYTES {
            errors.push(FieldError::too_long(at, MAX_INDEXES_BYTES));
        }
        match indexes::count(list, completions) {
            Ok(count) => total = count,
            Err(problem) => {
                let detail = format!("error parsing succeededIndexes: {problem}");
                errors.push(FieldError::invalid(at, list, detail));
            }
        }
    }
    if let Some(least) = least {
        let at = path.child("succeededCount");
        errors.extend(not_negative(at, least));
        let mut bound = |most: i64, what: &str| {
            if least > most {
                let detail = format!("must be less than or equal to {most} ({what})");
                errors.push(FieldError::invalid(at, least, detail));
            }
        };
        bound(completions, "the number of specified completions");
        if list.is_some() {
            bound(total, "the number of indexes in the specified succeededIndexes field");
        }
    }
    errors
}
