//! Fields whose feature is off: they are dropped, unless the old spec uses them already.

use revisor_object::{Object, Value};

use super::defaults::{CONTAINER_LISTS, objects_mut};
use super::handlers::has_stop_signal;
use super::members::{all_containers, objects, part};

/// Sources of projected volumes whose features are off.
const PROJECTIONS: &[&str] = &["clusterTrustBundle", "podCertificate"];

/// Drops what is off from a spec.
pub(super) fn drop_fields(spec: &mut Object, old: Option<&Object>) {
    for projection in PROJECTIONS {
        if !old.is_some_and(|old| has_projection(old, projection)) {
            drop_projection(spec, projection);
        }
    }
    if !old.is_some_and(|old| old.contains("schedulingGroup")) {
        spec.remove("schedulingGroup");
    }
    if !old.is_some_and(|old| all_containers(old).any(|(_, _, container)| has_stop_signal(container))) {
        for list in CONTAINER_LISTS {
            objects_mut(spec, list).for_each(drop_stop_signal);
        }
    }
}

fn has_projection(spec: &Object, name: &str) -> bool {
    objects(spec, "volumes")
        .any(|(_, volume)| objects(part(volume, "projected"), "sources").any(|(_, source)| source.contains(name)))
}

fn drop_projection(spec: &mut Object, name: &str) {
    for volume in objects_mut(spec, "volumes") {
        if let Some(projected) = volume.get_mut("projected").and_then(Value::as_object_mut) {
            for source in objects_mut(projected, "sources") {
                source.remove(name);
            }
        }
    }
}

fn drop_stop_signal(container: &mut Object) {
    let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) else { return };
    // Hooks that were empty before stay so.
    if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
        container.remove("lifecycle");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn what_is_off_is_dropped_unless_it_is_in_use() {
        let given = r#"{"schedulingGroup":{"podGroupName":"g"},
            "containers":[{"lifecycle":{"stopSignal":"SIGTERM"}},{"lifecycle":{"stopSignal":"SIGTERM","preStop":{}}}],
            "volumes":[{"projected":{"sources":[{"podCertificate":{}},{"clusterTrustBundle":{}},{"secret":{}}]}}]}"#;
        let want = r#"{"containers":[{},{"lifecycle":{"preStop":{}}}],
            "volumes":[{"projected":{"sources":[{},{},{"secret":{}}]}}]}"#;
        for (old, want) in [(None, want), (Some("{}"), want), (Some(given), given)] {
            let mut spec = object(given);
            drop_fields(&mut spec, old.map(object).as_ref());
            assert_eq!(spec, object(want), "{old:?}");
        }
    }
}
