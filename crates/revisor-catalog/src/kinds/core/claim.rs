//! Persistent volume claims, and the specs of claims that others make from a template.

use revisor_object::{FieldError, FieldPath, Object};

/// Fills in the spec of a claim or of a template for claims.
pub(crate) fn default_claim_spec(spec: &mut Object) {
    let _ = spec;
}

/// What is wrong with the spec of a claim or of a template for claims.
pub(crate) fn validate_claim_spec(path: FieldPath<'_>, spec: &Object) -> Vec<FieldError> {
    let _ = (path, spec);
    Vec::new()
}
