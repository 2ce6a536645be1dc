//! Definitions of custom resources for tests of what is told of them.

use revisor_catalog::{Catalog, Definition};
use revisor_object::{Value, parse_json};

/// The definition of a kind in the version `v1` with this schema, and both subresources.
#[track_caller]
pub(crate) fn defined(group: &str, kind: &str, schema: &str) -> Definition {
    let singular = kind.to_ascii_lowercase();
    let names = format!(
        r#"{{"plural":"{singular}s","singular":"{singular}","kind":"{kind}","listKind":"{kind}List",
             "shortNames":["gd"],"categories":["all"]}}"#
    );
    let text = format!(
        r#"{{
            "metadata": {{"name": "{singular}s.{group}"}},
            "spec": {{"group": "{group}", "scope": "Namespaced", "names": {names}, "versions": [{{
                "name": "v1", "served": true, "storage": true, "schema": {{"openAPIV3Schema": {schema}}},
                "selectableFields": [{{"jsonPath": ".spec.color"}}],
                "subresources": {{"status": {{}},
                    "scale": {{"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}}}
            }}]}},
            "status": {{"acceptedNames": {names}}}
        }}"#
    );
    match parse_json(text.as_bytes()).expect("is JSON").value {
        Value::Object(object) => Definition::read(&object),
        other => panic!("no object: {other:?}"),
    }
}

/// The catalog with what this definition makes.
pub(crate) fn with_definition(catalog: &Catalog, definition: &Definition) -> Catalog {
    let resources = definition.resources(catalog, None).expect("a version is stored");
    catalog.with_custom(&definition.group, &definition.accepted.plural, resources.served)
}
