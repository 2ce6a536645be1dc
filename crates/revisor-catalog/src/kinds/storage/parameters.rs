//! What classes have in common: who provides them, and parameters that only that one understands.

use revisor_object::names::qualified_name;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use crate::checks::problems;

/// At most so many parameters.
const MAX_COUNT: usize = 512;

/// All names and values together may take up so many bytes.
const MAX_BYTES: usize = 256 * 1024;

/// The name of a provider: a qualified name, in any case.
pub(super) fn validate_provider(path: FieldPath<'_>, name: &str) -> FieldErrors {
    if name.is_empty() {
        return FieldErrors::from([FieldError::required(path, "")]);
    }
    let name = name.to_lowercase();
    problems(path, &name, qualified_name(&name))
}

/// The parameters of a class.
pub(super) fn validate(path: FieldPath<'_>, parameters: Option<&Object>) -> FieldErrors {
    let Some(parameters) = parameters else { return FieldErrors::new() };
    if parameters.len() > MAX_COUNT {
        return FieldErrors::from([FieldError::too_long(path, MAX_COUNT)]);
    }
    let mut errors = FieldErrors::new();
    if parameters.contains("") {
        errors.push(FieldError::invalid(path, "", "field can not be empty."));
    }
    let bytes: usize =
        parameters.iter().map(|(name, value)| name.len() + value.as_str().unwrap_or_default().len()).sum();
    if bytes > MAX_BYTES {
        errors.push(FieldError::too_long(path, MAX_BYTES));
    }
    errors
}
