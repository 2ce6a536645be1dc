//! ControllerRevisions: what a template looked like, so that its controller can go back to it.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::{immutable, not_negative};
use crate::kinds::workload::number;
use crate::{Part, Strategy};

const DATA: FieldPath<'static> = FieldPath::root("data");

pub(crate) struct ControllerRevisions;

impl Strategy for ControllerRevisions {
    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors: FieldErrors = validate_revision(object).into_iter().collect();
        let data = object.get("data");
        if let Some(Value::Raw(raw)) = data
            && let Some(problem) = raw.problem()
        {
            let detail = format!("error parsing data: {problem}");
            errors.push(FieldError::invalid(DATA, "<value omitted>", detail));
            return errors;
        }
        match data.map(Value::plain) {
            Some(Value::Object(_)) => {}
            None | Some(Value::Null) => errors.push(FieldError::required(DATA, "data is mandatory")),
            Some(_) => errors.push(FieldError::required(DATA, "data must be a valid JSON object")),
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors: FieldErrors = validate_revision(object).into_iter().collect();
        errors.extend(immutable(DATA, object.get("data"), old.get("data")));
        errors
    }
}

fn validate_revision(object: &Object) -> Option<FieldError> {
    not_negative(FieldPath::root("revision"), number(object, "revision"))
}
