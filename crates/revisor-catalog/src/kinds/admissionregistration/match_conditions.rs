//! Match conditions: expressions that narrow down what a webhook or policy is asked about.

use std::collections::HashSet;

use revisor_cel::Type;
use revisor_object::names::qualified_name;
use revisor_object::{FieldError, FieldErrors, FieldPath, Value};

use super::expressions::{Composition, Scope};
use crate::checks::problems;

const MAX_CONDITIONS: usize = 64;

/// What is wrong with match conditions, which may speak of parameters if there are `params`.
pub(super) fn validate_match_conditions(
    path: FieldPath<'_>,
    conditions: &[Value],
    expressions: &Composition<'_>,
    params: bool,
    errors: &mut FieldErrors,
) {
    if conditions.len() > MAX_CONDITIONS {
        errors.push(FieldError::too_many(path, conditions.len(), MAX_CONDITIONS));
    }
    let mut seen = HashSet::new();
    for (at, condition) in conditions.iter().enumerate() {
        let Some(condition) = condition.as_object() else { continue };
        let path = path.index(at);
        let at_expression = path.child("expression");
        match condition.str("expression").unwrap_or_default().trim() {
            "" => errors.push(FieldError::required(at_expression, "")),
            text => {
                let scope = Scope { params, authorizer: true, patch: false };
                errors.extend(expressions.check(at_expression, (text, text), scope, &[Type::Bool]));
            }
        }
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
