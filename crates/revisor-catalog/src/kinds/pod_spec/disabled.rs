//! Features of pod specs that leave more behind than a hole when their fields go. All others are rows of
//! `tables/disabled_fields.csv`.

use std::collections::HashSet;

use revisor_object::{Object, Value};

use super::defaults::{CONTAINER_LISTS, objects_mut};
use super::handlers::has_stop_signal;
use super::members::{all_containers, objects, part, text};
use super::restart_rules;
use crate::Feature;
use crate::disabled_fields::DroppedByCode;

/// What is dropped from a spec if its feature is off.
pub(crate) const DISABLED: &[DroppedByCode] = &[
    DroppedByCode { feature: Feature::ProcMountType, is_in_use: has_proc_mount, drop: mask_proc },
    DroppedByCode {
        feature: Feature::ContainerRestartRules,
        is_in_use: restart_rules::are_used,
        drop: drop_restart_rules,
    },
    DroppedByCode {
        feature: Feature::PodLifecycleSleepAction,
        is_in_use: has_sleep,
        drop: |spec| for_all_containers(spec, drop_sleep),
    },
    DroppedByCode { feature: Feature::ImageVolume, is_in_use: has_image_volume, drop: drop_image_volumes },
    DroppedByCode {
        feature: Feature::ContainerStopSignals,
        is_in_use: |spec| all_containers(spec).any(|(_, _, container)| has_stop_signal(container)),
        drop: |spec| for_all_containers(spec, drop_stop_signal),
    },
];

/// Whether a variable of a spec comes from a file.
pub(super) fn has_variable_file(spec: &Object) -> bool {
    all_containers(spec).any(|(_, _, container)| {
        objects(container, "env").any(|(_, variable)| part(variable, "valueFrom").contains("fileKeyRef"))
    })
}

fn object_mut<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    object.get_mut(name).and_then(Value::as_object_mut)
}

fn for_all_containers(spec: &mut Object, change: fn(&mut Object)) {
    for list in CONTAINER_LISTS {
        objects_mut(spec, list).for_each(change);
    }
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
