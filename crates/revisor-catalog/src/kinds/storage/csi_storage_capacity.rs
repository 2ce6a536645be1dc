//! How much storage of a class there is for some nodes.

use revisor_object::names::dns1123_subdomain;
use revisor_object::{
    BadValue, FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector, Value,
};

use crate::checks::problems;
use crate::kinds::amounts;
use crate::kinds::node_selectors::{deprecated_label, expression_warnings};
use crate::{Part, Strategy};

const TOPOLOGY: FieldPath<'static> = FieldPath::root("nodeTopology");

pub(crate) struct CsiStorageCapacities;

impl Strategy for CsiStorageCapacities {
    fn validate(&self, object: &Object) -> FieldErrors {
        validate(object, false)
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let was_invalid = !validate_topology(old, false).is_empty();
        let mut errors = validate(object, was_invalid);
        for name in ["nodeTopology", "storageClassName"] {
            if object.get(name) != old.get(name) {
                let value = object.get(name).map_or(BadValue::of(&Value::Null), BadValue::of);
                errors.push(FieldError::invalid(name, value, "field is immutable"));
            }
        }
        errors
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        let Some(topology) = object.object("nodeTopology") else { return Vec::new() };
        let expressions = topology.array("matchExpressions");
        let mut warnings = expression_warnings(TOPOLOGY.child("matchExpressions"), expressions);
        for (label, _) in topology.object("matchLabels").into_iter().flat_map(Object::iter) {
            if let Some(message) = deprecated_label(label) {
                let path = TOPOLOGY.child("matchLabels");
                warnings.push(format!("{}: {message}", path.child(label)));
            }
        }
        warnings
    }
}

fn validate(object: &Object, allow_invalid_values: bool) -> FieldErrors {
    let mut errors = validate_topology(object, allow_invalid_values);
    let class = object.str("storageClassName").unwrap_or_default();
    errors.extend(problems(FieldPath::root("storageClassName"), class, dns1123_subdomain(class)));
    if let Some(capacity) = object.get("capacity") {
        errors.extend(amounts::not_negative(FieldPath::root("capacity"), &amounts::amount(capacity)));
    }
    errors
}

fn validate_topology(object: &Object, allow_invalid_values: bool) -> FieldErrors {
    let Some(topology) = object.object("nodeTopology") else { return FieldErrors::new() };
    let options = LabelSelectorOptions { allow_invalid_values, ..Default::default() };
    StructuredLabelSelector::new(topology).validate(&TOPOLOGY, options)
}
