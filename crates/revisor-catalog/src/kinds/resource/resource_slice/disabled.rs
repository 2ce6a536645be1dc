//! Fields of a slice whose feature is off: they are dropped, unless the old slice uses them already.

use revisor_object::{Object, Value};

use super::LIST_ATTRIBUTES;
use crate::{Feature, Features};

/// A feature, whether a spec uses it, and how it is taken out of one.
type Gated = (Feature, fn(&Object) -> bool, fn(&mut Object));

const PARTITIONS: [&str; 4] = ["consumesCounters", "nodeName", "nodeSelector", "allNodes"];
const BINDING: [&str; 3] = ["bindingConditions", "bindingFailureConditions", "bindsToNode"];

const GATED: &[Gated] = &[
    (
        Feature::DRADeviceTaints,
        |spec| devices(spec).any(|device| has_any(device, &["taints"])),
        |spec| for_each_device(spec, |device| drop_all(device, &["taints"])),
    ),
    (
        Feature::DRAPartitionableDevices,
        |spec| {
            has_any(spec, &["sharedCounters", "perDeviceNodeSelection"])
                || devices(spec).any(|device| has_any(device, &PARTITIONS))
        },
        |spec| {
            drop_all(spec, &["sharedCounters", "perDeviceNodeSelection"]);
            for_each_device(spec, |device| drop_all(device, &PARTITIONS));
        },
    ),
    (Feature::DRADeviceBindingConditions, has_binding, drop_binding),
    // Whether conditions are met is said in the status of claims.
    (Feature::DRAResourceClaimDeviceStatus, has_binding, drop_binding),
    (
        Feature::DRAConsumableCapacity,
        |spec| {
            devices(spec).any(|device| {
                has_any(device, &["allowMultipleAllocations"])
                    || entries(device, "capacity").any(|capacity| has_any(capacity, &["requestPolicy"]))
            })
        },
        |spec| {
            for_each_device(spec, |device| {
                drop_all(device, &["allowMultipleAllocations"]);
                for_each_entry(device, "capacity", |capacity| drop_all(capacity, &["requestPolicy"]));
            });
        },
    ),
    (
        Feature::DRANodeAllocatableResources,
        |spec| devices(spec).any(|device| has_any(device, &["nodeAllocatableResourceMappings"])),
        |spec| for_each_device(spec, |device| drop_all(device, &["nodeAllocatableResourceMappings"])),
    ),
    (
        Feature::DRAListTypeAttributes,
        |spec| devices(spec).flat_map(|device| entries(device, "attributes")).any(|it| has_any(it, &LIST_ATTRIBUTES)),
        |spec| {
            for_each_device(spec, |device| {
                for_each_entry(device, "attributes", |attribute| drop_all(attribute, &LIST_ATTRIBUTES));
            });
        },
    ),
];

/// Drops what is off from the spec of a slice.
pub(super) fn drop_fields(spec: &mut Object, old: Option<&Object>, features: Features) {
    for (feature, is_used, drop) in GATED {
        if !features.has(*feature) && !old.is_some_and(is_used) {
            drop(spec);
        }
    }
}

fn has_binding(spec: &Object) -> bool {
    devices(spec).any(|device| has_any(device, &BINDING))
}

fn drop_binding(spec: &mut Object) {
    for_each_device(spec, |device| drop_all(device, &BINDING));
}

fn devices(spec: &Object) -> impl Iterator<Item = &Object> {
    spec.array("devices").iter().filter_map(Value::as_object)
}

fn for_each_device(spec: &mut Object, change: fn(&mut Object)) {
    spec.array_mut("devices").into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}

fn entries<'a>(device: &'a Object, name: &str) -> impl Iterator<Item = &'a Object> {
    device.object(name).into_iter().flat_map(Object::iter).filter_map(|(_, value)| value.as_object())
}

fn for_each_entry(device: &mut Object, name: &str, change: fn(&mut Object)) {
    if let Some(Value::Object(map)) = device.get_mut(name) {
        map.iter_mut().filter_map(|(_, value)| value.as_object_mut()).for_each(change);
    }
}

fn has_any(object: &Object, names: &[&str]) -> bool {
    names.iter().any(|name| object.contains(name))
}

fn drop_all(object: &mut Object, names: &[&str]) {
    object.retain(|name, _| !names.contains(&name));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn what_is_off_is_dropped_unless_it_is_in_use() {
        for (feature, given, want) in [
            (Feature::DRADeviceTaints, r#"{"devices":[{"taints":[{}]}]}"#, r#"{"devices":[{}]}"#),
            (
                Feature::DRAPartitionableDevices,
                r#"{"sharedCounters":[{}],"perDeviceNodeSelection":true,
                    "devices":[{"consumesCounters":[{}],"nodeName":"n","nodeSelector":{},"allNodes":true}]}"#,
                r#"{"devices":[{}]}"#,
            ),
            (
                Feature::DRADeviceBindingConditions,
                r#"{"devices":[{"bindingConditions":["a"],"bindingFailureConditions":["b"],"bindsToNode":true}]}"#,
                r#"{"devices":[{}]}"#,
            ),
            (
                Feature::DRAResourceClaimDeviceStatus,
                r#"{"devices":[{"bindingConditions":["a"]}]}"#,
                r#"{"devices":[{}]}"#,
            ),
            (
                Feature::DRAConsumableCapacity,
                r#"{"devices":[{"allowMultipleAllocations":true,"capacity":{"m":{"value":"1","requestPolicy":{}}}}]}"#,
                r#"{"devices":[{"capacity":{"m":{"value":"1"}}}]}"#,
            ),
            (
                Feature::DRANodeAllocatableResources,
                r#"{"devices":[{"nodeAllocatableResourceMappings":{"cpu":{}}}]}"#,
                r#"{"devices":[{}]}"#,
            ),
            (
                Feature::DRAListTypeAttributes,
                r#"{"devices":[{"attributes":{"a":{"ints":[1]},"b":{"int":1}}}]}"#,
                r#"{"devices":[{"attributes":{"a":{},"b":{"int":1}}}]}"#,
            ),
        ] {
            let all = Feature::ALL.iter().fold(terms().features, |features, feature| features.with(*feature));
            for (is_on, old, want) in
                [(false, None, want), (false, Some("{}"), want), (false, Some(given), given), (true, None, given)]
            {
                let features = if is_on { all } else { all.without(feature) };
                let mut spec = object(given);
                drop_fields(&mut spec, old.map(object).as_ref(), features);
                assert_eq!(spec, object(want), "{feature:?} on: {is_on}, old: {old:?}");
            }
        }
    }
}
