//! AppArmor profiles, which were annotations before they were fields: an annotation without the field becomes the field.

use revisor_object::{Object, Value};

const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The longest name of a profile, which is a path on the node.
const MAX_PROFILE_BYTES: usize = 4095;

/// Sets the field of each container that has the annotation only.
pub(super) fn copy_annotations(pod: &mut Object) {
    let annotations = pod.object("metadata").and_then(|metadata| metadata.object("annotations"));
    let profiles: Vec<(String, Value)> = annotations
        .into_iter()
        .flat_map(Object::iter)
        .filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?.to_owned(), profile(value.as_str()?)?)))
        .collect();
    let spec = pod.object_mut("spec");
    let is_windows = spec.object("os").and_then(|os| os.str("name")) == Some("windows");
    if profiles.is_empty() || is_windows {
        return;
    }
    let of_pod = spec.object("securityContext").and_then(|context| context.get("appArmorProfile")).cloned();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.array_mut(list).into_iter().flatten().filter_map(Value::as_object_mut) {
            let name = container.str("name").unwrap_or_default();
            let Some((_, profile)) = profiles.iter().find(|(of, _)| of == name) else { continue };
            let has_field = container.object("securityContext").is_some_and(|it| it.contains("appArmorProfile"));
            if !has_field && of_pod.as_ref() != Some(profile) {
                container.object_mut("securityContext").insert("appArmorProfile", profile.clone());
            }
        }
    }
}

/// The field that says the same as an annotation; `None` if the annotation says nothing sensible.
fn profile(annotation: &str) -> Option<Value> {
    let of_type = |name: &str| Object::from_iter([("type", Value::from(name))]);
    Some(Value::from(match annotation {
        "unconfined" => of_type("Unconfined"),
        "runtime/default" => of_type("RuntimeDefault"),
        _ => {
            let name = annotation.strip_prefix("localhost/")?;
            if name.trim() != name || name.is_empty() || name.len() > MAX_PROFILE_BYTES {
                return None;
            }
            let mut profile = of_type("Localhost");
            profile.insert("localhostProfile", name);
            profile
        }
    }))
}
