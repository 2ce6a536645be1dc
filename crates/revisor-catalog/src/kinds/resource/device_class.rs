//! Device classes: what an administrator knows about a sort of device.

use revisor_object::{FieldError, FieldPath, Object};

use super::device_claim::{MAX_CONFIGURATIONS, MAX_SELECTORS, validate_configuration};
use super::lists;
use super::selectors::Selectors;
use crate::kinds::resource_names::is_extended;
use crate::{Circumstances, Feature, Features, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

pub(crate) struct DeviceClasses {
    pub(super) selectors: Selectors,
    pub(super) features: Features,
}

impl Strategy for DeviceClasses {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn settle(&self, object: &mut Object, old: Option<&Object>, _: Circumstances<'_>) {
        let was_given = old.is_some_and(|old| old.at(&["spec", "extendedResourceName"]).is_some());
        if !self.features.has(Feature::DRAExtendedResource) && !was_given {
            object.object_mut("spec").remove("extendedResourceName");
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Requester;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn a_class_stands_for_a_resource_where_it_may_or_did() {
        let (given, bare) = (r#"{"spec":{"extendedResourceName":"a.b/c"}}"#, r#"{"spec":{}}"#);
        let nobody = Circumstances { now: "", requester: Requester::default() };
        for (is_on, old, want) in
            [(true, None, given), (false, None, bare), (false, Some(bare), bare), (false, Some(given), given)]
        {
            let gate = Feature::DRAExtendedResource;
            let features = if is_on { terms().features.with(gate) } else { terms().features.without(gate) };
            let classes = DeviceClasses { selectors: Selectors::new(&terms()), features };
            let mut class = object(given);
            classes.settle(&mut class, old.map(object).as_ref(), nobody);
            assert_eq!(class, object(want), "on: {is_on}, old: {old:?}");
        }
    }
}
