//! Device classes: what an administrator knows about a sort of device.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

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

    fn validate(&self, object: &Object) -> FieldErrors {
        self.validate_over(object, None)
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        self.validate_over(object, Some(old))
    }
}

impl DeviceClasses {
    fn validate_over(&self, object: &Object, old: Option<&Object>) -> FieldErrors {
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        let selectors = spec.array("selectors");
        let is_stored = old.is_some_and(|old| old.object("spec").unwrap_or(&empty).array("selectors") == selectors);
        let mut errors = lists::objects(SPEC.child("selectors"), selectors, MAX_SELECTORS, |path, selector| {
            self.selectors.validate(path, selector, is_stored)
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
}

#[cfg(test)]
mod tests {
    use revisor_cel::{Environment, RuleEnvironments};
    use revisor_version::Release;

    use super::*;
    use crate::kinds::Terms;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn selectors_that_were_there_before_may_use_newer_libraries() {
        let release = |minor| Environment::new(Release { major: 1, minor });
        let expressions = RuleEnvironments { new: release(33), stored: release(36) };
        let terms = Terms { expressions, ..terms() };
        let classes = DeviceClasses { selectors: Selectors::new(&terms) };
        let class = object(r#"{"spec":{"selectors":[{"cel":{"expression":"[2, 1].sort() == [1, 2]"}}]}}"#);
        assert_eq!(classes.validate(&class).len(), 1);
        assert_eq!(classes.validate_update(&class, &object("{}"), Part::Whole).len(), 1);
        assert!(classes.validate_update(&class, &class, Part::Whole).is_empty());
    }
}
