//! Fields of a pod's status whose feature is off: they are dropped, unless the pod uses the feature already.

use revisor_object::{Object, Value};

use super::container_status::STATUS_LISTS;
use super::objects;
use crate::{Feature, Features};

/// A feature, whether a pod with this status and spec uses it, and how it is taken out of a status.
type Gated = (Feature, fn(&Object, &Object) -> bool, fn(&mut Object));

const GATED: &[Gated] = &[
    (
        Feature::InPlacePodLevelResourcesVerticalScaling,
        |status, _| status.contains("resources") || status.contains("allocatedResources"),
        |status| drop_members(status, &["resources", "allocatedResources"]),
    ),
    (
        Feature::InPlacePodVerticalScaling,
        |_, spec| has_resize_policy(spec),
        |status| {
            for_all_containers(status, |container| drop_members(container, &["resources", "allocatedResources"]));
        },
    ),
    (
        Feature::DynamicResourceAllocation,
        |_, spec| !spec.array("resourceClaims").is_empty(),
        |status| drop_members(status, &["resourceClaimStatuses"]),
    ),
    (
        Feature::DRAExtendedResource,
        |status, _| status.contains("extendedResourceClaimStatus"),
        |status| drop_members(status, &["extendedResourceClaimStatus"]),
    ),
    (
        Feature::ResourceHealthStatus,
        |status, _| containers(status).any(|container| !container.array("allocatedResourcesStatus").is_empty()),
        |status| for_all_containers(status, |container| drop_members(container, &["allocatedResourcesStatus"])),
    ),
    (Feature::ResourceHealthStatusMessage, |status, _| has_health_message(status), drop_health_messages),
    (
        Feature::SupplementalGroupsPolicy,
        |_, spec| spec.at(&["securityContext", "supplementalGroupsPolicy"]).is_some(),
        |status| for_all_containers(status, |container| drop_members(container, &["user"])),
    ),
    (
        Feature::PodObservedGenerationTracking,
        |status, _| has_observed_generation(status),
        |status| {
            drop_members(status, &["observedGeneration"]);
            objects_mut(status, "conditions").for_each(|condition| drop_members(condition, &["observedGeneration"]));
        },
    ),
    (
        Feature::ImageVolumeWithDigest,
        |status, _| has_volume_status(status),
        |status| {
            for_all_containers(status, |container| {
                objects_mut(container, "volumeMounts").for_each(|mount| drop_members(mount, &["volumeStatus"]));
            });
        },
    ),
    (
        Feature::DRANodeAllocatableResources,
        |status, _| !status.array("nodeAllocatableResourceClaimStatuses").is_empty(),
        |status| drop_members(status, &["nodeAllocatableResourceClaimStatuses"]),
    ),
];

/// Drops what is off from a status, given the status and the spec that the pod had before.
pub(super) fn drop_fields(status: &mut Object, before: &Object, spec: &Object, features: Features) {
    for (feature, is_used, drop) in GATED {
        if !features.has(*feature) && !is_used(before, spec) {
            drop(status);
        }
    }
}

fn drop_members(object: &mut Object, names: &[&str]) {
    for name in names {
        object.remove(name);
    }
}

fn containers(status: &Object) -> impl Iterator<Item = &Object> {
    STATUS_LISTS.iter().flat_map(|(list, _)| objects(status, list))
}

fn objects_mut<'a>(object: &'a mut Object, list: &str) -> impl Iterator<Item = &'a mut Object> {
    object.array_mut(list).into_iter().flatten().filter_map(Value::as_object_mut)
}

fn for_all_containers(status: &mut Object, change: fn(&mut Object)) {
    for (list, _) in STATUS_LISTS {
        objects_mut(status, list).for_each(change);
    }
}

fn has_resize_policy(spec: &Object) -> bool {
    let lists = ["containers", "initContainers"];
    lists.iter().flat_map(|list| objects(spec, list)).any(|container| !container.array("resizePolicy").is_empty())
}

fn has_health_message(status: &Object) -> bool {
    containers(status)
        .flat_map(|container| objects(container, "allocatedResourcesStatus"))
        .flat_map(|allocated| objects(allocated, "resources"))
        .any(|resource| resource.contains("message"))
}

fn drop_health_messages(status: &mut Object) {
    for_all_containers(status, |container| {
        for allocated in objects_mut(container, "allocatedResourcesStatus") {
            objects_mut(allocated, "resources").for_each(|resource| drop_members(resource, &["message"]));
        }
    });
}

fn has_observed_generation(status: &Object) -> bool {
    status.contains("observedGeneration")
        || objects(status, "conditions").any(|condition| condition.contains("observedGeneration"))
}

fn has_volume_status(status: &Object) -> bool {
    containers(status)
        .flat_map(|container| objects(container, "volumeMounts"))
        .any(|mount| mount.contains("volumeStatus"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn what_is_off_is_dropped_unless_it_is_in_use() {
        let of_container = |member: &str| format!(r#"{{"containerStatuses":[{{"name":"a"{member}}}]}}"#);
        let used = "{}".to_owned();
        for (feature, given, want, using_spec) in [
            (
                Feature::InPlacePodLevelResourcesVerticalScaling,
                r#"{"phase":"Running","resources":{},"allocatedResources":{}}"#.to_owned(),
                r#"{"phase":"Running"}"#.to_owned(),
                "{}",
            ),
            (
                Feature::InPlacePodVerticalScaling,
                of_container(r#","resources":{},"allocatedResources":{}"#),
                of_container(""),
                r#"{"containers":[{"resizePolicy":[{}]}]}"#,
            ),
            (
                Feature::DynamicResourceAllocation,
                r#"{"resourceClaimStatuses":[{}]}"#.to_owned(),
                used.clone(),
                r#"{"resourceClaims":[{}]}"#,
            ),
            (Feature::DRAExtendedResource, r#"{"extendedResourceClaimStatus":{}}"#.to_owned(), used.clone(), "{}"),
            (
                Feature::ResourceHealthStatus,
                of_container(r#","allocatedResourcesStatus":[{}]"#),
                of_container(""),
                "{}",
            ),
            (
                Feature::ResourceHealthStatusMessage,
                of_container(r#","allocatedResourcesStatus":[{"resources":[{"message":"m"}]}]"#),
                of_container(r#","allocatedResourcesStatus":[{"resources":[{}]}]"#),
                "{}",
            ),
            (
                Feature::SupplementalGroupsPolicy,
                of_container(r#","user":{}"#),
                of_container(""),
                r#"{"securityContext":{"supplementalGroupsPolicy":"Merge"}}"#,
            ),
            (
                Feature::PodObservedGenerationTracking,
                r#"{"observedGeneration":1,"conditions":[{"observedGeneration":1}]}"#.to_owned(),
                r#"{"conditions":[{}]}"#.to_owned(),
                "{}",
            ),
            (
                Feature::ImageVolumeWithDigest,
                of_container(r#","volumeMounts":[{"volumeStatus":{}}]"#),
                of_container(r#","volumeMounts":[{}]"#),
                "{}",
            ),
            (
                Feature::DRANodeAllocatableResources,
                r#"{"nodeAllocatableResourceClaimStatuses":[{}]}"#.to_owned(),
                used.clone(),
                "{}",
            ),
        ] {
            let features = terms().features;
            for (is_on, before, spec, want) in
                [(false, "{}", "{}", &want), (false, given.as_str(), using_spec, &given), (true, "{}", "{}", &given)]
            {
                let features = if is_on { features.with(feature) } else { features.without(feature) };
                let mut status = object(&given);
                drop_fields(&mut status, &object(before), &object(spec), features);
                assert_eq!(status, object(want), "{feature:?} on: {is_on}, before: {before}");
            }
        }
    }
}
