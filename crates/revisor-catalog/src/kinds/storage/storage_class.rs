//! Storage classes: which provisioner makes the volumes of claims, and how.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use revisor_object::names::qualified_name;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use super::parameters;
use crate::checks::{self, immutable, problems};
use crate::kinds::node_selectors::deprecated_label;
use crate::{Part, Strategy};

pub(crate) struct StorageClasses;

impl Strategy for StorageClasses {
    fn validate(&self, object: &Object) -> FieldErrors {
        let provisioner = object.str("provisioner").unwrap_or_default();
        let mut errors = parameters::validate_provider(FieldPath::root("provisioner"), provisioner);
        errors.extend(parameters::validate(FieldPath::root("parameters"), object.object("parameters")));
        if let Some(policy) = object.str("reclaimPolicy").filter(|policy| !policy.is_empty()) {
            errors.extend(checks::one_of(FieldPath::root("reclaimPolicy"), policy, &["Delete", "Retain"]));
        }
        let mode_path = FieldPath::root("volumeBindingMode");
        match object.str("volumeBindingMode") {
            None => errors.push(FieldError::required(mode_path, "")),
            Some(mode) => errors.extend(checks::one_of(mode_path, mode, &["Immediate", "WaitForFirstConsumer"])),
        }
        errors.extend(validate_topologies(object.array("allowedTopologies")));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = self.validate(object);
        for name in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            errors.extend(immutable(FieldPath::root(name), object.get(name), old.get(name)));
        }
        errors
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        let mut warnings = Vec::new();
        let path = FieldPath::root("allowedTopologies");
        for (at, term) in object.array("allowedTopologies").iter().filter_map(Value::as_object).enumerate() {
            let path = path.index(at);
            let path = path.child("matchLabelExpressions");
            let expressions = term.array("matchLabelExpressions").iter().filter_map(Value::as_object);
            for (at, expression) in expressions.enumerate() {
                if let Some(message) = deprecated_label(expression.str("key").unwrap_or_default()) {
                    warnings.push(format!("{}: {message}", path.index(at).child("key")));
                }
            }
        }
        warnings
    }
}

fn validate_topologies(topologies: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let path = FieldPath::root("allowedTopologies");
    // The original begins with as many empty terms as there are given ones, so an empty term has that many twins.
    let mut seen: HashMap<BTreeMap<&str, BTreeSet<&str>>, usize> = HashMap::from([(BTreeMap::new(), topologies.len())]);
    for (at, term) in topologies.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let path = path.child("matchLabelExpressions");
        let mut expressions = BTreeMap::new();
        for (at, expression) in term.array("matchLabelExpressions").iter().filter_map(Value::as_object).enumerate() {
            let path = path.index(at);
            let values_path = path.child("values");
            let mut values = BTreeSet::new();
            if expression.array("values").is_empty() {
                errors.push(FieldError::required(values_path, ""));
            }
            for (at, value) in expression.array("values").iter().filter_map(Value::as_str).enumerate() {
                if !values.insert(value) {
                    errors.push(FieldError::duplicate(values_path.index(at), value));
                }
            }
            let key = expression.str("key").unwrap_or_default();
            errors.extend(problems(path.child("key"), key, qualified_name(key)));
            if expressions.insert(key, values).is_some() {
                errors.push(FieldError::duplicate(path.child("key"), key));
            }
        }
        let twins = seen.entry(expressions).or_default();
        errors.push_times(*twins, || FieldError::duplicate(path, ""));
        *twins += 1;
    }
    errors
}
