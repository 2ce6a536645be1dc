//! CustomResourceDefinitions as the original keeps them: in `v1beta1`, which it has not served for years.
//!
//! There a definition has one schema, one set of subresources, columns and selectable fields for all versions, unless they
//! differ; names its first version once more; and says of its webhook what `v1` says one level deeper (upstream:
//! `Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec` and its neighbours).

use revisor_object::{Object, Value};

const STORED: &str = "apiextensions.k8s.io/v1beta1";
const SHOWN: &str = "apiextensions.k8s.io/v1";

/// What stands once for all versions where it is the same in all of them: its name in a version, and above them.
const COMMON: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// From the form that is shown to the one that is kept.
pub(super) fn to_stored(definition: &mut Object) {
    definition.insert("apiVersion", STORED);
    let spec = definition.object_mut("spec");
    spec.insert("preserveUnknownFields", spec.get("preserveUnknownFields") == Some(&Value::Bool(true)));
    if let Some(name) = first_version(spec) {
        spec.insert("version", name);
    }
    for (below, above) in COMMON {
        let versions = spec.array("versions").iter().filter_map(Value::as_object);
        let mut values = versions.map(|version| version.get(below));
        let Some(first) = values.next() else { continue };
        if !values.all(|value| value == first) {
            continue;
        }
        let common = first.cloned();
        each_version(spec, |version| {
            version.remove(below);
        });
        spec.set(above, common);
    }
    each_column(spec, "jsonPath", "JSONPath");
    if spec.contains("conversion") {
        let conversion = spec.object_mut("conversion");
        if let Some(Value::Object(mut webhook)) = conversion.remove("webhook") {
            conversion.set("webhookClientConfig", webhook.remove("clientConfig"));
            conversion.set("conversionReviewVersions", webhook.remove("conversionReviewVersions"));
        }
    }
}

/// From what is kept to the form that is shown. Answers whether it was kept in the usual form.
pub(super) fn from_stored(definition: &mut Object) -> bool {
    if definition.str("apiVersion") != Some(STORED) {
        return false;
    }
    definition.insert("apiVersion", SHOWN);
    let spec = definition.object_mut("spec");
    // What was not said then was the opposite of what is not said now.
    if !spec.contains("preserveUnknownFields") {
        spec.insert("preserveUnknownFields", true);
    }
    let name = spec.remove("version");
    if let (true, Some(name)) = (spec.array("versions").is_empty(), name) {
        let only: Object =
            [("name", name), ("served", Value::from(true)), ("storage", Value::from(true))].into_iter().collect();
        spec.insert("versions", vec![Value::from(only)]);
    }
    each_column(spec, "JSONPath", "jsonPath");
    for (below, above) in COMMON {
        if let Some(common) = spec.remove(above) {
            each_version(spec, |version| {
                version.insert(below, common.clone());
            });
        }
    }
    if spec.contains("conversion") {
        let conversion = spec.object_mut("conversion");
        let config = conversion.remove("webhookClientConfig");
        let reviews = conversion.remove("conversionReviewVersions");
        if config.is_some() || reviews.is_some() {
            let mut webhook = Object::new();
            webhook.set("clientConfig", config);
            webhook.set("conversionReviewVersions", reviews);
            conversion.insert("webhook", webhook);
        }
    }
    true
}

fn first_version(spec: &Object) -> Option<String> {
    spec.array("versions").first()?.as_object()?.str("name").map(str::to_owned)
}

fn each_version(spec: &mut Object, mut change: impl FnMut(&mut Object)) {
    let versions = spec.array_mut("versions").into_iter().flatten();
    versions.filter_map(Value::as_object_mut).for_each(&mut change);
}

/// Columns say where their value stands, in both forms by another name.
fn each_column(spec: &mut Object, old: &str, new: &str) {
    let rename = |holder: &mut Object| {
        let columns = holder.array_mut("additionalPrinterColumns").into_iter().flatten();
        for column in columns.filter_map(Value::as_object_mut) {
            if let Some(path) = column.remove(old) {
                column.insert(new, path);
            }
        }
    };
    rename(spec);
    each_version(spec, rename);
}
