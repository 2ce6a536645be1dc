//! Definitions of `apiextensions.k8s.io/v1beta1`, as they would be in `v1`.

use revisor_object::{Object, Value};

/// What stood beside `spec.versions` once, for all of them.
const SHARED: [(&str, &str); 3] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
];

/// A definition in `v1`; one that is in `v1` already stays as it is.
pub fn to_v1(mut definition: Object) -> Object {
    if definition.str("apiVersion") != Some("apiextensions.k8s.io/v1beta1") {
        return definition;
    }
    definition.insert("apiVersion", "apiextensions.k8s.io/v1");
    let spec = definition.object_mut("spec");
    if !spec.contains("preserveUnknownFields") {
        spec.insert("preserveUnknownFields", true);
    }
    if !spec.contains("scope") {
        spec.insert("scope", "Namespaced");
    }
    let only = spec.remove("version");
    let shared: Vec<(&str, Value)> = SHARED.iter().filter_map(|(old, new)| Some((*new, spec.remove(old)?))).collect();
    let mut versions = spec.array("versions").to_vec();
    if versions.is_empty() {
        let members = [("served", Value::Bool(true)), ("storage", Value::Bool(true))];
        let mut version: Object = members.into_iter().collect();
        version.set("name", only);
        versions.push(Value::Object(version));
    }
    for version in versions.iter_mut().filter_map(Value::as_object_mut) {
        for (name, value) in &shared {
            if version.get(name).is_none_or(Value::is_null) {
                version.insert(name, value.clone());
            }
        }
        for column in version.array_mut("additionalPrinterColumns").into_iter().flatten() {
            let Some(column) = column.as_object_mut() else { continue };
            if let Some(path) = column.remove("JSONPath") {
                column.insert("jsonPath", path);
            }
        }
        if version.at(&["schema", "openAPIV3Schema"]).is_none() {
            let open = [("type", Value::from("object")), ("x-kubernetes-preserve-unknown-fields", Value::Bool(true))];
            version.object_mut("schema").insert("openAPIV3Schema", Value::Object(open.into_iter().collect()));
        }
    }
    spec.insert("versions", versions);
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        for (old, new) in
            [("webhookClientConfig", "clientConfig"), ("conversionReviewVersions", "conversionReviewVersions")]
        {
            if let Some(moved) = conversion.remove(old) {
                conversion.object_mut("webhook").insert(new, moved);
            }
        }
    }
    definition
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn what_all_versions_shared_each_has_for_itself() {
        let text = r#"{"apiVersion":"apiextensions.k8s.io/v1beta1","spec":{"version":"v1","validation":{"openAPIV3Schema":
            {"type":"object"}},"additionalPrinterColumns":[{"name":"A","JSONPath":".a"}],
            "conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"u"}}}}"#;
        let Value::Object(old) = parse_json(text.as_bytes()).expect("is JSON").value else { panic!("is an object") };
        let spec = Value::Object(to_v1(old).object("spec").expect("is there").clone()).to_json();
        let want = r#"{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"u"}}},"preserveUnknownFields":true,"scope":"Namespaced","versions":[{"additionalPrinterColumns":[{"jsonPath":".a","name":"A"}],"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true,"storage":true}]}"#;
        assert_eq!(spec, want);
    }
}
