//! Match conditions: expressions that narrow down what a webhook or policy is asked about.

use std::collections::HashSet;

use revisor_object::names::qualified_name;
use revisor_object::{FieldError, FieldPath, Value};

use crate::checks::{problems, required};

const MAX_CONDITIONS: usize = 64;

/// What is wrong with match conditions.
pub(super) fn validate_match_conditions(path: FieldPath<'_>, conditions: &[Value], errors: &mut Vec<FieldError>) {
    if conditions.len() > MAX_CONDITIONS {
        errors.push(FieldError::too_many(path, conditions.len(), MAX_CONDITIONS));
    }
    let mut seen = HashSet::new();
    for (at, condition) in conditions.iter().enumerate() {
        let Some(condition) = condition.as_object() else { continue };
        let path = path.index(at);
        errors.extend(required(path.child("expression"), condition.str("expression").unwrap_or_default().trim()));
        match condition.str("name").unwrap_or_default() {
            "" => errors.push(FieldError::required(path.child("name"), "")),
            name => {
                errors.extend(problems(path.child("name"), name, qualified_name(name)));
                if !seen.insert(name) {
                    errors.push(FieldError::duplicate(path.child("name"), name));
                }
            }
        }
    }
}
