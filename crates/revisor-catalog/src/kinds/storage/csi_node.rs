//! Which drivers of storage a node has.

use std::collections::HashMap;

use revisor_object::names::qualified_name;
use revisor_object::{BadValue, ByValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value};

use crate::checks::{not_negative, problems};
use crate::kinds::core::persistent_volume::csi_driver_name;
use crate::{Feature, Features, Part, Strategy};

const DRIVERS: FieldPath<'static> = FieldPath::root("spec.drivers");

/// The longest identity that a driver can give a node.
const MAX_NODE_ID: usize = 256;

pub(crate) struct CsiNodes {
    pub(crate) features: Features,
}

impl Strategy for CsiNodes {
    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let mut names = Seen::default();
        for (at, driver) in drivers(object).enumerate() {
            let path = DRIVERS.index(at);
            let name = driver.str("name").unwrap_or_default();
            errors.extend(csi_driver_name(path.child("name"), name));
            errors.extend(validate_driver(path, driver));
            if !names.is_new(name) {
                errors.push(FieldError::duplicate(path.child("name"), name));
            }
            errors.extend(validate_topology_keys(path, driver));
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = self.validate(object);
        let mut by_name: HashMap<Option<ByValue<'_>>, Vec<&Object>> = HashMap::new();
        for driver in drivers(object) {
            by_name.entry(driver.get("name").map(ByValue)).or_default().push(driver);
        }
        for before in drivers(old) {
            for driver in by_name.get(&before.get("name").map(ByValue)).into_iter().flatten() {
                // How much a node can hold may change, but only where that is a feature.
                let frozen: &[&str] = if self.features.has(Feature::MutableCSINodeAllocatableCount) {
                    &["nodeID", "topologyKeys"]
                } else {
                    &["nodeID", "topologyKeys", "allocatable"]
                };
                if frozen.iter().any(|name| driver.get(name) != before.get(name)) {
                    errors.push(FieldError::invalid(DRIVERS, BadValue::of(driver), "field is immutable"));
                }
            }
        }
        errors
    }
}

fn drivers(object: &Object) -> impl Iterator<Item = &Object> {
    let drivers = object.object("spec").map(|spec| spec.array("drivers")).unwrap_or_default();
    drivers.iter().filter_map(Value::as_object)
}

fn validate_driver(path: FieldPath<'_>, driver: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let id = driver.str("nodeID").unwrap_or_default();
    let id_path = path.child("nodeID");
    if id.is_empty() {
        errors.push(FieldError::required(id_path, ""));
    }
    if id.len() > MAX_NODE_ID {
        errors.push(FieldError::invalid(id_path, id, format!("must be {MAX_NODE_ID} characters or less")));
    }
    if let Some(count) = driver.at(&["allocatable", "count"]).and_then(Value::as_i64) {
        let path = path.child("allocatable");
        errors.extend(not_negative(path.child("count"), count));
    }
    errors
}

/// The paths of these errors are those of the driver.
fn validate_topology_keys(path: FieldPath<'_>, driver: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let keys: Vec<&str> = driver.array("topologyKeys").iter().filter_map(Value::as_str).collect();
    let mut seen = Seen::default();
    for key in &keys {
        if key.is_empty() {
            errors.push(FieldError::required(path, ""));
        }
        if !seen.is_new(*key) {
            errors.push(FieldError::duplicate(path, *key));
        }
        errors.extend(problems(path, key, qualified_name(key)));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn how_much_fits_changes_where_that_is_a_feature() {
        let node = |count: i64, id: &str| {
            object(&format!(
                r#"{{"spec":{{"drivers":[{{"name":"d.io","nodeID":"{id}","allocatable":{{"count":{count}}}}}]}}}}"#
            ))
        };
        let on = terms().features;
        let off = on.without(Feature::MutableCSINodeAllocatableCount);
        for (features, new, want) in
            [(on, node(2, "a"), 0), (off, node(2, "a"), 1), (off, node(1, "a"), 0), (on, node(1, "b"), 1)]
        {
            assert_eq!(CsiNodes { features }.validate_update(&new, &node(1, "a"), Part::Whole).len(), want);
        }
    }
}
