//! A definition that is right, and one change after the other that makes it wrong.

use super::*;
use crate::kinds::tests::{check, object, terms};

const GOOD: &str = r#"{"metadata":{"name":"things.example.com"},
    "spec":{"group":"example.com","scope":"Namespaced","conversion":{"strategy":"None"},
        "names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},
        "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]},
    "status":{"storedVersions":["v1"]}}"#;

fn checked(definition: &Object) -> FieldErrors {
    validate(definition, &Tools::new(&terms()))
}

fn rechecked(definition: &Object, old: &Object) -> FieldErrors {
    validate_update(definition, old, &Tools::new(&terms()))
}

/// The good definition with other values at some paths; null takes out what is there.
fn changed(changes: &str) -> Object {
    let mut definition = object(GOOD);
    for (path, value) in object(changes).iter() {
        let steps: Vec<&str> = path.split('.').collect();
        let (last, above) = steps.split_last().expect("split yields one part at least");
        let mut at = &mut definition;
        for step in above {
            at = at.object_mut(step);
        }
        at.set(last, Some(value.clone()).filter(|value| !value.is_null()));
    }
    definition
}

#[test]
fn new_definitions_are_checked() {
    let schema = r#""schema":{"openAPIV3Schema":{"type":"object"}}"#;
    for (changes, want) in [
        ("{}", &[][..]),
        (r#"{"metadata.name":"x.example.com"}"#, &["FieldValueInvalid metadata.name"]),
        (r#"{"spec.group":"example","metadata.name":"things.example"}"#, &["FieldValueInvalid spec.group"]),
        (
            r#"{"spec.group":"a.k8s.io","metadata.name":"things.a.k8s.io"}"#,
            &["FieldValueRequired metadata.annotations[api-approved.kubernetes.io]"],
        ),
        (r#"{"spec.scope":"World"}"#, &["FieldValueNotSupported spec.scope"]),
        (
            r#"{"spec.names":{"plural":"things"}}"#,
            &[
                "FieldValueRequired spec.names.kind",
                "FieldValueRequired spec.names.listKind",
                "FieldValueRequired spec.names.singular",
            ],
        ),
        (r#"{"spec.preserveUnknownFields":true}"#, &["FieldValueInvalid spec.preserveUnknownFields"]),
        (
            r#"{"spec.versions":null}"#,
            &["FieldValueInvalid spec.versions", "FieldValueInvalid status.storedVersions[0]"],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true}]}"#,
            &["FieldValueRequired spec.versions[0].schema.openAPIV3Schema"],
        ),
        (
            r#"{"spec.versions":[{"name":"V1","storage":true,SCHEMA}],"status.storedVersions":["V1"]}"#,
            &["FieldValueInvalid spec.versions[0].name", "FieldValueInvalid spec.version"],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,SCHEMA},{"name":"v1","storage":true,SCHEMA}]}"#,
            &[
                "FieldValueInvalid spec.versions",
                "FieldValueInvalid spec.versions",
                "FieldValueInvalid status.storedVersions",
            ],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"string"}}}]}"#,
            &["FieldValueInvalid spec.validation.openAPIV3Schema.type"],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object","id":"i"}}},{"name":"v2",SCHEMA}]}"#,
            &["FieldValueForbidden spec.versions[0].schema.openAPIV3Schema.id"],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object","$schema":"s"}}}]}"#,
            &["FieldValueInvalid spec.validation.openAPIV3Schema"],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","nullable":true}}}]}"#,
            &[
                "FieldValueInvalid spec.validation.openAPIV3Schema",
                "FieldValueForbidden spec.validation.openAPIV3Schema.nullable",
            ],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,SCHEMA,"deprecationWarning":"w"}]}"#,
            &["FieldValueInvalid spec.versions[0].deprecationWarning"],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,SCHEMA,"deprecated":true,"deprecationWarning":"a\nb"}]}"#,
            &["FieldValueInvalid spec.versions[0].deprecationWarning"],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,SCHEMA,"subresources":{"scale":{"specReplicasPath":".x","labelSelectorPath":"y"}}}]}"#,
            &[
                "FieldValueInvalid spec.subresources.scale.specReplicasPath",
                "FieldValueRequired spec.subresources.scale.statusReplicasPath",
                "FieldValueInvalid spec.subresources.scale.labelSelectorPath",
            ],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,SCHEMA,"additionalPrinterColumns":[{"type":"text","format":"f","jsonPath":"p"}]},{"name":"v2",SCHEMA}]}"#,
            &[
                "FieldValueRequired spec.versions[0].additionalPrinterColumns[0].name",
                "FieldValueInvalid spec.versions[0].additionalPrinterColumns[0].type",
                "FieldValueInvalid spec.versions[0].additionalPrinterColumns[0].format",
                "FieldValueInvalid spec.versions[0].additionalPrinterColumns[0].JSONPath",
            ],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,SCHEMA,"selectableFields":[{"jsonPath":""},{"jsonPath":".a"}]}]}"#,
            &[
                "FieldValueRequired spec.selectableFields[0].jsonPath",
                "FieldValueInvalid spec.selectableFields[1].jsonPath",
            ],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,SCHEMA,"selectableFields":[{"jsonPath":".a"}]},{"name":"v2",SCHEMA}]}"#,
            &["FieldValueInvalid spec.versions[0].selectableFields"],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object","id":"i"}},"selectableFields":[{"jsonPath":""}]}]}"#,
            &[
                "FieldValueInvalid spec.schema.openAPIV3Schema",
                "FieldValueRequired spec.selectableFields[0].jsonPath",
                "FieldValueForbidden spec.validation.openAPIV3Schema.id",
            ],
        ),
        (
            r#"{"spec.versions":[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-validations":[{"rule":"self.none"}]}}}]}"#,
            &["FieldValueInvalid spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule"],
        ),
        (r#"{"spec.conversion":{"strategy":"Other"}}"#, &["FieldValueNotSupported spec.conversion.strategy"]),
        (r#"{"status":{}}"#, &["FieldValueInvalid status.storedVersions"]),
        (r#"{"status.storedVersions":["v1","v0","v1","v0"]}"#, &["FieldValueInvalid status.storedVersions[3]"]),
        (
            r#"{"status.storedVersions":["v0"]}"#,
            &["FieldValueInvalid status.storedVersions", "FieldValueInvalid status.storedVersions[0]"],
        ),
    ] {
        check(changes, &checked(&changed(&changes.replace("SCHEMA", schema))), want);
    }
}

#[test]
fn selectable_fields_are_scalars_outside_of_metadata() {
    let fields: Vec<String> = (0..9).map(|at| format!(r#"{{"jsonPath":".spec.f{at}"}}"#)).collect();
    let properties: Vec<String> = (0..9).map(|at| format!(r#""f{at}":{{"type":"string"}}"#)).collect();
    let version = |fields: &str| {
        changed(&format!(
            r#"{{"spec.versions":[{{"name":"v1","storage":true,"selectableFields":[{fields}],"schema":{{"openAPIV3Schema":{{
                "type":"object","properties":{{"metadata":{{"type":"object","properties":{{"name":{{"type":"string"}}}}}},
                "spec":{{"type":"object","properties":{{{}}}}}}}}}}}}}]}}"#,
            properties.join(",")
        ))
    };
    let path = "FieldValueInvalid spec.selectableFields[0].jsonPath";
    for (fields, want) in [
        (r#"{"jsonPath":".spec.f0"}"#.to_owned(), &[][..]),
        (r#"{"jsonPath":".spec"}"#.to_owned(), &[path]),
        (r#"{"jsonPath":".metadata.name"}"#.to_owned(), &[path]),
        (r#"{"jsonPath":".spec['f0']"}"#.to_owned(), &[path]),
        (
            r#"{"jsonPath":".spec.f0"},{"jsonPath":".spec.f0"}"#.to_owned(),
            &["FieldValueDuplicate spec.selectableFields[1].jsonPath"],
        ),
        (fields.join(","), &["FieldValueTooMany spec.selectableFields"]),
    ] {
        let definition = version(&fields);
        check(&fields, &checked(&definition), want);
    }
    let too_many = version(&fields.join(","));
    check("unchanged", &rechecked(&too_many, &too_many), &[]);
}

#[test]
fn what_was_wrong_before_may_stay_so() {
    for changes in [
        r#"{"spec.versions":[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}}}}}}]}"#,
        r#"{"spec.versions":[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string"}}}}}}}}]}"#,
        r#"{"spec.versions":[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"object","default":{"b":1}}}}}}]}"#,
        r#"{"spec.preserveUnknownFields":true}"#,
        r#"{"spec.group":"a.k8s.io","metadata.name":"things.a.k8s.io"}"#,
    ] {
        let definition = changed(changes);
        assert!(!checked(&definition).is_empty(), "{changes}");
        check(changes, &rechecked(&definition, &definition), &[]);
        assert!(!rechecked(&definition, &object(GOOD)).is_empty(), "{changes}");
    }
}

#[test]
fn established_definitions_keep_their_kind() {
    let old = changed(r#"{"status.conditions":[{"type":"Established","status":"True"}]}"#);
    let new = changed(
        r#"{"spec.scope":"Cluster","spec.names.kind":"Other","spec.names.plural":"others","spec.group":"other.example.com"}"#,
    );
    check(
        "established",
        &rechecked(&new, &old),
        &[
            "FieldValueInvalid spec.group",
            "FieldValueInvalid spec.names.kind",
            "FieldValueInvalid spec.names.plural",
            "FieldValueInvalid spec.scope",
        ],
    );
    check(
        "not yet established",
        &rechecked(&new, &object(GOOD)),
        &["FieldValueInvalid spec.group", "FieldValueInvalid spec.names.plural"],
    );
}
