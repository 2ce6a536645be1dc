//! Classes of attributes that a volume can be changed to while it is in use.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use super::parameters;
use crate::{Part, Strategy};

const PARAMETERS: FieldPath<'static> = FieldPath::root("parameters");

pub(crate) struct VolumeAttributesClasses;

impl Strategy for VolumeAttributesClasses {
    fn validate(&self, object: &Object) -> FieldErrors {
        let driver = object.str("driverName").unwrap_or_default();
        let mut errors = parameters::validate_provider(FieldPath::root("driverName"), driver);
        let parameters = object.object("parameters");
        errors.extend(parameters::validate(PARAMETERS, parameters));
        if parameters.is_none_or(Object::is_empty) {
            errors.push(FieldError::required(PARAMETERS, "must contain at least one key/value pair"));
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = FieldErrors::new();
        for name in ["driverName", "parameters"] {
            if object.get(name) != old.get(name) || object.is_sent_empty(name) {
                errors.push(FieldError::forbidden(name, format!("updates to {name} are forbidden.")));
            }
        }
        errors.extend(self.validate(object));
        errors
    }
}
