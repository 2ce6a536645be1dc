//! What a pod's spec gets that depends on other fields of it. What depends on nothing stands in the table of fields.

use compact_str::CompactString;
use revisor_object::{Object, Quantity, Value};

use super::image::is_latest;
use super::resource_list::{is_pod_level, sum_of_containers};
use crate::kinds::amounts::{amount, round};
use crate::kinds::core::claim;
use crate::kinds::resource_names::{allows_overcommit, is_huge_page};
use crate::{Feature, Features};

/// Where init containers stood before they had a field. They are dropped, or old nodes would believe them.
const INIT_CONTAINER_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// The lists of containers in a spec.
pub(super) const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// What every spec gets.
pub(super) fn default_spec(spec: &mut Object, features: Features) {
    mirror_service_account(spec);
    for list in CONTAINER_LISTS {
        for container in objects_mut(spec, list) {
            default_container(container);
        }
    }
    for volume in objects_mut(spec, "volumes") {
        default_volume(volume, features);
    }
    round(spec, "overhead");
    round_requirements(spec);
}

/// What the spec of a pod gets, but not that of a template.
pub(super) fn default_pod_spec(spec: &mut Object, features: Features) {
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.insert("terminationGracePeriodSeconds", 1);
    }
    if !spec.contains("enableServiceLinks") {
        spec.insert("enableServiceLinks", true);
    }
    let on_host = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    for list in ["initContainers", "containers"] {
        for container in objects_mut(spec, list) {
            request_what_is_limited(container);
            if on_host {
                publish_ports(container);
            }
        }
    }
    if features.has(Feature::PodLevelResources) {
        default_pod_limits(spec);
        default_pod_requests(spec);
    }
}

/// Drops what older releases noted about init containers.
pub(super) fn default_annotations(metadata: &mut Object) {
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    if INIT_CONTAINER_ANNOTATIONS.iter().any(|name| annotations.contains(name)) {
        annotations.retain(|name, _| !INIT_CONTAINER_ANNOTATIONS.contains(&name));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

/// `serviceAccount` is an older name of `serviceAccountName`, which wins where both are given.
fn mirror_service_account(spec: &mut Object) {
    let name = spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount")).cloned();
    if let Some(name) = &name {
        spec.insert("serviceAccountName", name.clone());
    }
    spec.set("serviceAccount", name);
}

fn default_container(container: &mut Object) {
    if !container.contains("imagePullPolicy") {
        let image = container.str("image").unwrap_or_default();
        let policy = pull_policy(image);
        container.insert("imagePullPolicy", policy);
    }
    round_requirements(container);
}

fn pull_policy(image: &str) -> &'static str {
    if is_latest(image) { "Always" } else { "IfNotPresent" }
}

fn default_volume(volume: &mut Object, features: Features) {
    // A volume that says nothing but its name is an empty directory.
    if volume.iter().all(|(member, _)| member == "name") {
        volume.insert("emptyDir", Object::new());
    }
    if features.has(Feature::ImageVolume)
        && let Some(image) = volume.get_mut("image").and_then(Value::as_object_mut)
        && !image.contains("pullPolicy")
    {
        let policy = pull_policy(image.str("reference").unwrap_or_default());
        image.insert("pullPolicy", policy);
    }
    if let Some(ephemeral) = volume.get_mut("ephemeral").and_then(Value::as_object_mut)
        && let Some(template) = ephemeral.get_mut("volumeClaimTemplate").and_then(Value::as_object_mut)
    {
        claim::default_claim_spec(template.object_mut("spec"));
    }
}

fn request_what_is_limited(container: &mut Object) {
    let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else { return };
    let Some(limits) = resources.object("limits") else { return };
    let missing: Vec<(CompactString, Value)> = limits
        .iter()
        .filter(|(name, _)| !resources.object("requests").is_some_and(|requests| requests.contains(name)))
        .map(|(name, value)| (name.into(), value.clone()))
        .collect();
    if !missing.is_empty() {
        resources.object_mut("requests").insert_all(missing);
    }
}

/// On the network of the host, the ports of a container are ports of the host.
fn publish_ports(container: &mut Object) {
    for port in objects_mut(container, "ports") {
        if !port.contains("hostPort")
            && let Some(number) = port.get("containerPort").and_then(Value::as_i64)
            && number != 0
        {
            port.insert("hostPort", number);
        }
    }
}

/// The limits of the containers on huge pages are those of the pod, where it has resources but no word on these.
fn default_pod_limits(spec: &mut Object) {
    let Some(resources) = spec.object("resources") else { return };
    let has = |list: &str, name: &str| resources.object(list).is_some_and(|list| list.contains(name));
    let is_empty = |list: &str| resources.object(list).is_none_or(Object::is_empty);
    if is_empty("limits") && is_empty("requests") {
        return;
    }
    let added: Vec<(String, Quantity)> = sum_of_containers(spec, "limits")
        .into_iter()
        .filter(|(name, _)| is_huge_page(name) && !has("requests", name) && !has("limits", name))
        .map(|(name, amount)| (name.to_owned(), amount))
        .collect();
    insert_resources(spec, "limits", added);
}

/// Where a pod has limits, it requests what its containers request, and otherwise what it is limited to.
fn default_pod_requests(spec: &mut Object) {
    let Some(limits) = spec.object("resources").and_then(|resources| resources.object("limits")) else { return };
    if limits.is_empty() {
        return;
    }
    let requests = spec.object("resources").and_then(|resources| resources.object("requests"));
    let is_missing = |name: &str| is_pod_level(name) && !requests.is_some_and(|requests| requests.contains(name));
    let of_containers = sum_of_containers(spec, "requests");
    let mut added: Vec<(String, Quantity)> = limits
        .iter()
        .filter(|(name, _)| is_missing(name) && !(of_containers.contains_key(name) && allows_overcommit(name)))
        .map(|(name, value)| (name.to_owned(), amount(value)))
        .collect();
    let from_containers = of_containers.into_iter().filter(|(name, _)| is_missing(name) && allows_overcommit(name));
    added.extend(from_containers.map(|(name, amount)| (name.to_owned(), amount)));
    insert_resources(spec, "requests", added);
}

fn insert_resources(spec: &mut Object, list: &str, added: Vec<(String, Quantity)>) {
    if added.is_empty() {
        return;
    }
    let added = added.into_iter().map(|(name, amount)| (name.into(), amount.to_string().into())).collect();
    spec.object_mut("resources").object_mut(list).insert_all(added);
}

fn round_requirements(object: &mut Object) {
    if let Some(resources) = object.get_mut("resources").and_then(Value::as_object_mut) {
        round(resources, "limits");
        round(resources, "requests");
    }
}

/// The objects in the list `name`, to be changed.
pub(super) fn objects_mut<'a>(object: &'a mut Object, name: &str) -> impl Iterator<Item = &'a mut Object> {
    object.array_mut(name).into_iter().flatten().filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{object, terms};

    #[track_caller]
    fn check(default: fn(&mut Object, Features), features: Features, given: &str, want: &str) {
        let mut spec = object(given);
        for time in ["once", "twice"] {
            default(&mut spec, features);
            assert_eq!(spec, object(want), "{given} {time}: {}", Value::from(spec.clone()).to_json());
        }
    }

    #[test]
    fn specs_get_what_follows_from_other_fields() {
        for (given, want) in [
            (r#"{"serviceAccount":"a"}"#, r#"{"serviceAccount":"a","serviceAccountName":"a"}"#),
            (
                r#"{"serviceAccount":"a","serviceAccountName":"b"}"#,
                r#"{"serviceAccount":"b","serviceAccountName":"b"}"#,
            ),
            (
                r#"{"containers":[{"image":"a"},{"image":"a:1"},{"image":"a","imagePullPolicy":"Never"}]}"#,
                r#"{"containers":[{"image":"a","imagePullPolicy":"Always"},{"image":"a:1","imagePullPolicy":"IfNotPresent"},
                    {"image":"a","imagePullPolicy":"Never"}]}"#,
            ),
            (
                r#"{"volumes":[{"name":"a"},{"name":"b","image":{"reference":"x:1"}}]}"#,
                r#"{"volumes":[{"name":"a","emptyDir":{}},
                    {"name":"b","image":{"reference":"x:1","pullPolicy":"IfNotPresent"}}]}"#,
            ),
            (r#"{"overhead":{"cpu":"100u","memory":"1Gi"}}"#, r#"{"overhead":{"cpu":"1m","memory":"1Gi"}}"#),
        ] {
            check(default_spec, terms().features, given, want);
        }
        let image = r#"{"volumes":[{"name":"b","image":{"reference":"x:1"}}]}"#;
        check(default_spec, terms().features.without(Feature::ImageVolume), image, image);
    }

    #[test]
    fn pods_get_more_than_templates() {
        let links = r#""enableServiceLinks":true"#;
        for (given, want) in [
            (r#"{"terminationGracePeriodSeconds":-5"#, r#"{"terminationGracePeriodSeconds":1"#),
            (
                r#"{"hostNetwork":true,"containers":[{"ports":[{"containerPort":80},{"containerPort":81,"hostPort":82}]}]"#,
                r#"{"hostNetwork":true,"containers":[{"ports":[{"containerPort":80,"hostPort":80},
                    {"containerPort":81,"hostPort":82}]}]"#,
            ),
            (
                r#"{"containers":[{"resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"1"}}}]"#,
                r#"{"containers":[{"resources":{"limits":{"cpu":"2","memory":"1Gi"},
                    "requests":{"cpu":"1","memory":"1Gi"}}}]"#,
            ),
            (
                r#"{"resources":{"limits":{"cpu":"4","memory":"2Gi"}},
                    "containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"1"}}}]"#,
                r#"{"resources":{"limits":{"cpu":"4","memory":"2Gi"},"requests":{"cpu":"2","memory":"2Gi"}},
                    "containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"1"}}}]"#,
            ),
            (
                r#"{"resources":{"limits":{"cpu":"4"}},
                    "containers":[{"resources":{"limits":{"hugepages-2Mi":"2Mi"},"requests":{"hugepages-2Mi":"2Mi"}}}]"#,
                r#"{"resources":{"limits":{"cpu":"4","hugepages-2Mi":"2Mi"},"requests":{"cpu":"4","hugepages-2Mi":"2Mi"}},
                    "containers":[{"resources":{"limits":{"hugepages-2Mi":"2Mi"},"requests":{"hugepages-2Mi":"2Mi"}}}]"#,
            ),
        ] {
            check(default_pod_spec, terms().features, &format!("{given}}}"), &format!("{want},{links}}}"));
        }
        let of_pod = r#"{"resources":{"limits":{"cpu":"4"}},"enableServiceLinks":true}"#;
        check(default_pod_spec, terms().features.without(Feature::PodLevelResources), of_pod, of_pod);
    }
}
