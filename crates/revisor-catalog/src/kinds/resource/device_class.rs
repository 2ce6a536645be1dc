//! Device classes: what an administrator knows about a sort of device.

use revisor_object::{FieldError, FieldPath, Object};

use super::device_claim::{MAX_CONFIGURATIONS, MAX_SELECTORS, validate_configuration};
use super::lists;
use super::selectors::Selectors;
use crate::kinds::resource_names::is_extended;
use crate::{Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

pub(crate) struct DeviceClasses {
    pub(super) selectors: Selectors,
}

impl Strategy for DeviceClasses {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        let selectors = spec.array("selectors");
        let mut errors = lists::objects(SPEC.child("selectors"), selectors, MAX_SELECTORS, |path, selector| {
            self.selectors.validate(path, selector)
        });
        let config = spec.array("config");
        errors.extend(lists::objects(SPEC.child("config"), config, MAX_CONFIGURATIONS, validate_configuration));
        if let Some(name) = spec.str("extendedResourceName")
            && !is_extended(name)
        {
            let detail = "must be a valid extended resource name";
            errors.push(FieldError::invalid(SPEC.child("extendedResourceName"), name, detail));
        }
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, _: Part<'_>) -> Vec<FieldError> {
        self.validate(object)
    }
}
