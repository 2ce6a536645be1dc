//! Fields whose feature is off: they are dropped, unless the old spec uses them already.

use std::collections::HashSet;

use revisor_object::{Object, Value};

use super::defaults::{CONTAINER_LISTS, objects_mut};
use super::handlers::has_stop_signal;
use super::members::{all_containers, objects, part, text};
use super::restart_rules;
use crate::{Feature, Features};

/// A feature, whether a spec uses it, and how it is taken out of one.
type Gated = (Feature, fn(&Object) -> bool, fn(&mut Object));

const GATED: &[Gated] = &[
    (Feature::UserNamespacesSupport, |spec| spec.contains("hostUsers"), |spec| drop_member(spec, "hostUsers")),
    (
        Feature::SupplementalGroupsPolicy,
        |spec| part(spec, "securityContext").contains("supplementalGroupsPolicy"),
        |spec| drop_of_context(spec, "supplementalGroupsPolicy"),
    ),
    (Feature::PodLevelResources, has_pod_resources, |spec| drop_member(spec, "resources")),
    (Feature::ProcMountType, has_proc_mount, mask_proc),
    (Feature::MatchLabelKeysInPodTopologySpread, has_spread_keys, drop_spread_keys),
    (Feature::DynamicResourceAllocation, |spec| !spec.array("resourceClaims").is_empty(), drop_claims),
    (
        Feature::ClusterTrustBundleProjection,
        |spec| has_projection(spec, "clusterTrustBundle"),
        |spec| drop_projection(spec, "clusterTrustBundle"),
    ),
    (
        Feature::PodCertificateRequest,
        |spec| has_projection(spec, "podCertificate"),
        |spec| drop_projection(spec, "podCertificate"),
    ),
    (Feature::GenericWorkload, |spec| spec.contains("schedulingGroup"), |spec| drop_member(spec, "schedulingGroup")),
    (Feature::InPlacePodVerticalScaling, has_resize_policy, |spec| {
        for_all_containers(spec, |container| drop_member(container, "resizePolicy"));
    }),
    (Feature::ContainerRestartRules, restart_rules::are_used, drop_restart_rules),
    (Feature::HostnameOverride, |spec| spec.contains("hostnameOverride"), |spec| drop_member(spec, "hostnameOverride")),
    (Feature::EnvFiles, has_variable_file, drop_variable_files),
    (Feature::PodLifecycleSleepAction, has_sleep, |spec| for_all_containers(spec, drop_sleep)),
    (Feature::ImageVolume, has_image_volume, drop_image_volumes),
    (
        Feature::SELinuxChangePolicy,
        |spec| part(spec, "securityContext").contains("seLinuxChangePolicy"),
        |spec| drop_of_context(spec, "seLinuxChangePolicy"),
    ),
    (
        Feature::ContainerStopSignals,
        |spec| all_containers(spec).any(|(_, _, container)| has_stop_signal(container)),
        |spec| for_all_containers(spec, drop_stop_signal),
    ),
];

/// Drops what is off from a spec.
pub(super) fn drop_fields(spec: &mut Object, old: Option<&Object>, features: Features) {
    for (feature, is_used, drop) in GATED {
        if !features.has(*feature) && !old.is_some_and(is_used) {
            drop(spec);
        }
    }
}

/// Whether a variable of a spec comes from a file.
pub(super) fn has_variable_file(spec: &Object) -> bool {
    all_containers(spec).any(|(_, _, container)| {
        objects(container, "env").any(|(_, variable)| part(variable, "valueFrom").contains("fileKeyRef"))
    })
}

fn drop_member(object: &mut Object, name: &str) {
    object.remove(name);
}

fn drop_of_context(spec: &mut Object, name: &str) {
    if let Some(context) = object_mut(spec, "securityContext") {
        context.remove(name);
    }
}

fn object_mut<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    object.get_mut(name).and_then(Value::as_object_mut)
}

fn for_all_containers(spec: &mut Object, change: fn(&mut Object)) {
    for list in CONTAINER_LISTS {
        objects_mut(spec, list).for_each(change);
    }
}

fn has_pod_resources(spec: &Object) -> bool {
    let resources = part(spec, "resources");
    ["requests", "limits"].iter().any(|list| !part(resources, list).is_empty())
}

fn has_proc_mount(spec: &Object) -> bool {
    all_containers(spec).any(|(_, _, container)| {
        part(container, "securityContext").str("procMount").is_some_and(|mount| mount != "Default")
    })
}

/// What was said is not dropped, because earlier releases wrote it into every pod.
fn mask_proc(spec: &mut Object) {
    for_all_containers(spec, |container| {
        if let Some(context) = object_mut(container, "securityContext")
            && context.contains("procMount")
        {
            context.insert("procMount", "Default");
        }
    });
}

fn has_spread_keys(spec: &Object) -> bool {
    objects(spec, "topologySpreadConstraints").any(|(_, constraint)| !constraint.array("matchLabelKeys").is_empty())
}

fn drop_spread_keys(spec: &mut Object) {
    objects_mut(spec, "topologySpreadConstraints").for_each(|constraint| drop_member(constraint, "matchLabelKeys"));
}

fn drop_claims(spec: &mut Object) {
    spec.remove("resourceClaims");
    for_all_containers(spec, |container| {
        if let Some(resources) = object_mut(container, "resources") {
            resources.remove("claims");
        }
    });
}

fn has_projection(spec: &Object, name: &str) -> bool {
    objects(spec, "volumes")
        .any(|(_, volume)| objects(part(volume, "projected"), "sources").any(|(_, source)| source.contains(name)))
}

fn drop_projection(spec: &mut Object, name: &str) {
    for volume in objects_mut(spec, "volumes") {
        if let Some(projected) = object_mut(volume, "projected") {
            objects_mut(projected, "sources").for_each(|source| drop_member(source, name));
        }
    }
}

fn has_resize_policy(spec: &Object) -> bool {
    let lists = ["containers", "initContainers"];
    lists.iter().flat_map(|list| objects(spec, list)).any(|(_, container)| !container.array("resizePolicy").is_empty())
}

/// Sidecars were there before the rules, and stay.
fn drop_restart_rules(spec: &mut Object) {
    for list in CONTAINER_LISTS {
        for container in objects_mut(spec, list) {
            container.remove("restartPolicyRules");
            if list != "initContainers" || container.str("restartPolicy") != Some("Always") {
                container.remove("restartPolicy");
            }
        }
    }
}

fn drop_variable_files(spec: &mut Object) {
    for_all_containers(spec, |container| {
        for variable in objects_mut(container, "env") {
            if let Some(source) = object_mut(variable, "valueFrom") {
                source.remove("fileKeyRef");
            }
        }
    });
}

const HOOKS: [&str; 2] = ["preStop", "postStart"];

fn has_sleep(spec: &Object) -> bool {
    all_containers(spec)
        .any(|(_, _, container)| HOOKS.iter().any(|hook| part(part(container, "lifecycle"), hook).contains("sleep")))
}

fn drop_sleep(container: &mut Object) {
    let Some(lifecycle) = object_mut(container, "lifecycle") else { return };
    for name in HOOKS {
        if let Some(hook) = object_mut(lifecycle, name)
            && hook.remove("sleep").is_some()
            && hook.is_empty()
        {
            lifecycle.remove(name);
        }
    }
    if lifecycle.is_empty() {
        container.remove("lifecycle");
    }
}

fn has_image_volume(spec: &Object) -> bool {
    objects(spec, "volumes").any(|(_, volume)| volume.contains("image"))
}

/// The volumes go, and with them the places where they are mounted.
fn drop_image_volumes(spec: &mut Object) {
    let is_image = |volume: &Value| volume.as_object().is_some_and(|volume| volume.contains("image"));
    let images = objects(spec, "volumes").filter(|(_, volume)| volume.contains("image"));
    let names: HashSet<String> = images.map(|(_, volume)| text(volume, "name").to_owned()).collect();
    drop_elements(spec, "volumes", is_image);
    for list in CONTAINER_LISTS {
        for container in objects_mut(spec, list) {
            drop_elements(container, "volumeMounts", |mount| {
                let name = mount.as_object().map_or("", |mount| text(mount, "name"));
                names.contains(name)
            });
        }
    }
}

fn drop_elements(object: &mut Object, list: &str, is_dropped: impl Fn(&Value) -> bool) {
    let Some(elements) = object.array_mut(list) else { return };
    elements.retain(|element| !is_dropped(element));
    if elements.is_empty() {
        object.remove(list);
    }
}

fn drop_stop_signal(container: &mut Object) {
    let Some(lifecycle) = object_mut(container, "lifecycle") else { return };
    // Hooks that were empty before stay so.
    if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
        container.remove("lifecycle");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn what_is_off_is_dropped_unless_it_is_in_use() {
        for (feature, given, want) in [
            (Feature::UserNamespacesSupport, r#"{"hostUsers":false}"#, "{}"),
            (
                Feature::SupplementalGroupsPolicy,
                r#"{"securityContext":{"fsGroup":1,"supplementalGroupsPolicy":"Merge"}}"#,
                r#"{"securityContext":{"fsGroup":1}}"#,
            ),
            (Feature::PodLevelResources, r#"{"resources":{"limits":{"cpu":"1"}}}"#, "{}"),
            (
                Feature::ProcMountType,
                r#"{"containers":[{"securityContext":{"procMount":"Unmasked"}},{"securityContext":{}}]}"#,
                r#"{"containers":[{"securityContext":{"procMount":"Default"}},{"securityContext":{}}]}"#,
            ),
            (
                Feature::MatchLabelKeysInPodTopologySpread,
                r#"{"topologySpreadConstraints":[{"maxSkew":1,"matchLabelKeys":["a"]}]}"#,
                r#"{"topologySpreadConstraints":[{"maxSkew":1}]}"#,
            ),
            (
                Feature::DynamicResourceAllocation,
                r#"{"resourceClaims":[{"name":"a"}],"containers":[{"resources":{"claims":[{"name":"a"}]}}]}"#,
                r#"{"containers":[{"resources":{}}]}"#,
            ),
            (
                Feature::ClusterTrustBundleProjection,
                r#"{"volumes":[{"projected":{"sources":[{"clusterTrustBundle":{}},{"secret":{}}]}}]}"#,
                r#"{"volumes":[{"projected":{"sources":[{},{"secret":{}}]}}]}"#,
            ),
            (
                Feature::PodCertificateRequest,
                r#"{"volumes":[{"projected":{"sources":[{"podCertificate":{}},{"secret":{}}]}}]}"#,
                r#"{"volumes":[{"projected":{"sources":[{},{"secret":{}}]}}]}"#,
            ),
            (Feature::GenericWorkload, r#"{"schedulingGroup":{"podGroupName":"g"}}"#, "{}"),
            (
                Feature::InPlacePodVerticalScaling,
                r#"{"containers":[{"name":"a","resizePolicy":[{"resourceName":"cpu"}]}]}"#,
                r#"{"containers":[{"name":"a"}]}"#,
            ),
            (
                Feature::ContainerRestartRules,
                r#"{"initContainers":[{"restartPolicy":"Always"},{"restartPolicy":"Never","restartPolicyRules":[{}]}],
                    "containers":[{"restartPolicy":"Always","restartPolicyRules":[{}]}]}"#,
                r#"{"initContainers":[{"restartPolicy":"Always"},{}],"containers":[{}]}"#,
            ),
            (Feature::HostnameOverride, r#"{"hostnameOverride":"a"}"#, "{}"),
            (
                Feature::EnvFiles,
                r#"{"containers":[{"env":[{"name":"A","valueFrom":{"fileKeyRef":{}}}]}]}"#,
                r#"{"containers":[{"env":[{"name":"A","valueFrom":{}}]}]}"#,
            ),
            (
                Feature::PodLifecycleSleepAction,
                r#"{"containers":[{"lifecycle":{"preStop":{"sleep":{"seconds":1}}}},
                    {"lifecycle":{"postStart":{"exec":{},"sleep":{}}}},{"lifecycle":{"stopSignal":"SIGTERM"}}]}"#,
                r#"{"containers":[{},{"lifecycle":{"postStart":{"exec":{}}}},{"lifecycle":{"stopSignal":"SIGTERM"}}]}"#,
            ),
            (
                Feature::ImageVolume,
                r#"{"volumes":[{"name":"i","image":{}},{"name":"e","emptyDir":{}}],
                    "containers":[{"volumeMounts":[{"name":"i"}]},{"volumeMounts":[{"name":"e"},{"name":"i"}]}]}"#,
                r#"{"volumes":[{"name":"e","emptyDir":{}}],"containers":[{},{"volumeMounts":[{"name":"e"}]}]}"#,
            ),
            (
                Feature::SELinuxChangePolicy,
                r#"{"securityContext":{"seLinuxChangePolicy":"Recursive"}}"#,
                r#"{"securityContext":{}}"#,
            ),
            (
                Feature::ContainerStopSignals,
                r#"{"containers":[{"lifecycle":{"stopSignal":"SIGTERM"}},{"lifecycle":{"stopSignal":"SIGTERM","preStop":{}}}]}"#,
                r#"{"containers":[{},{"lifecycle":{"preStop":{}}}]}"#,
            ),
        ] {
            let features = terms().features;
            for (is_on, old, want) in [
                (false, None, want),
                (false, Some("{}"), want),
                (false, Some(given), given),
                (true, None, given),
                (true, Some("{}"), given),
            ] {
                let features = if is_on { features.with(feature) } else { features.without(feature) };
                // Signals are looked at last, and are off as a rule.
                let features = match feature {
                    Feature::ContainerStopSignals => features,
                    _ => features.with(Feature::ContainerStopSignals),
                };
                let mut spec = object(given);
                drop_fields(&mut spec, old.map(object).as_ref(), features);
                assert_eq!(spec, object(want), "{feature:?} on: {is_on}, old: {old:?}");
            }
        }
    }
}
