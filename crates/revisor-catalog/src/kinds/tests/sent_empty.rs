//! What lists and maps that are sent with nothing in them mean to kinds that tell them from none.

use revisor_object::{FieldErrors, Object, parse_json};

use crate::{Catalog, Part, Resource};

/// A new object as it is when it is validated.
#[track_caller]
fn sent(resource: &Resource, json: &str) -> Object {
    let mut value = parse_json(json.as_bytes()).expect("is JSON").value;
    resource.conform_as_sent(&mut value).expect("fits");
    let object = value.as_object_mut().expect("is an object");
    resource.default(object);
    resource.forget_empty(object);
    object.clone()
}

/// The same object after it was stored and read again.
fn stored(resource: &Resource, object: &Object) -> Object {
    let bytes = resource.encode(object).bytes;
    let mut value = parse_json(&bytes).expect("is JSON").value;
    resource.conform(&mut value).expect("fits");
    value.as_object().expect("is an object").clone()
}

fn told(resource: &Resource, errors: FieldErrors) -> Vec<String> {
    resource.quoting_internal_values(errors).iter().map(ToString::to_string).collect()
}

const POD: &str = r#""containers":[{"name":"c","image":"i"}]"#;

#[test]
fn kinds_tell_what_was_sent_empty_from_nothing_where_the_original_does() {
    let catalog = Catalog::default();
    let version = r#""name":"v1","served":true,"storage":true,"schema""#;
    for (group, version, plural, json, want) in [
        (
            "",
            "v1",
            "pods",
            format!(r#"{{"spec":{{{POD},"resources":{{"claims":[]}}}}}}"#),
            &["spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"][..],
        ),
        ("", "v1", "pods", format!(r#"{{"spec":{{{POD},"resources":{{}},"nodeSelector":{{}}}}}}"#), &[]),
        (
            "",
            "v1",
            "pods",
            format!(
                r#"{{"spec":{{{POD},"ephemeralContainers":[{{"name":"e","image":"i","ports":[],"env":[],"resources":{{"limits":{{}}}}}}]}}}}"#
            ),
            &[
                "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
            ],
        ),
        (
            "resource.k8s.io",
            "v1",
            "resourceclaimtemplates",
            r#"{"spec":{"metadata":{"finalizers":[],"labels":{},"ownerReferences":[]},"spec":{}}}"#.to_owned(),
            &[
                "spec.metadata.finalizers: Forbidden: cannot be set",
                "spec.metadata.ownerReferences: Forbidden: cannot be set",
            ],
        ),
        (
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            format!(
                r#"{{"metadata":{{"name":"things.a.example"}},"spec":{{"group":"a.example","scope":"Namespaced",
                    "names":{{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"}},
                    "versions":[{{{version}:{{"openAPIV3Schema":{{"type":"object","dependencies":{{}}}}}}}}]}}}}"#
            ),
            &["spec.validation.openAPIV3Schema.dependencies: Forbidden: dependencies is not supported"],
        ),
    ] {
        let resource = catalog.resource(group, version, plural).expect("is served");
        let object = sent(resource, &json);
        let errors = told(resource, resource.strategy.validate(&object));
        for text in want {
            assert!(errors.iter().any(|error| error == text), "{json}: {errors:?}");
        }
        if want.is_empty() {
            assert_eq!(errors, <[String; 0]>::default(), "{json}");
        }
        let kept = stored(resource, &object);
        assert!(!kept.has_sent_empty(), "{json}");
        let errors = told(resource, resource.strategy.validate(&kept));
        assert!(want.iter().all(|text| !errors.iter().any(|error| error == text)), "{json} when stored: {errors:?}");
    }
}

#[test]
fn messages_show_what_was_sent_empty() {
    let catalog = Catalog::default();
    let template = format!(r#""template":{{"metadata":{{"labels":{{}}}},"spec":{{{POD}}}}}"#);
    for (group, version, plural, json, want) in [
        (
            "apps",
            "v1",
            "replicasets",
            format!(r#"{{"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},{template}}}}}"#),
            "spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`",
        ),
        (
            "",
            "v1",
            "persistentvolumes",
            r#"{"spec":{"capacity":{},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/p"}}}"#.to_owned(),
            r#"spec.capacity: Unsupported value: {}: supported values: "storage""#,
        ),
    ] {
        let resource = catalog.resource(group, version, plural).expect("is served");
        let errors = told(resource, resource.strategy.validate(&sent(resource, &json)));
        assert!(errors.iter().any(|error| error == want), "{json}: {errors:?}");
    }
}

#[test]
fn what_is_sent_empty_is_a_change_to_those_who_compare_by_form_only() {
    let catalog = Catalog::default();
    for (group, version, plural, json, is_change) in [
        ("networking.k8s.io", "v1", "networkpolicies", r#"{"spec":{"podSelector":{"matchLabels":{}}}}"#, true),
        ("networking.k8s.io", "v1", "networkpolicies", r#"{"spec":{"podSelector":{},"ingress":[]}}"#, true),
        (
            "networking.k8s.io",
            "v1",
            "networkpolicies",
            r#"{"metadata":{"labels":{}},"spec":{"podSelector":{}}}"#,
            false,
        ),
        ("policy", "v1", "poddisruptionbudgets", r#"{"spec":{"minAvailable":1,"selector":{"matchLabels":{}}}}"#, false),
    ] {
        let resource = catalog.resource(group, version, plural).expect("is served");
        let new = sent(resource, json);
        let old = stored(resource, &new);
        assert_eq!(resource.strategy.is_changed(&new, &old), is_change, "{json}");
        let same = stored(resource, &old);
        assert!(!resource.strategy.is_changed(&same, &old), "{json}");
    }
    let config_maps = catalog.resource("", "v1", "configmaps").expect("is served");
    let old = sent(config_maps, r#"{"immutable":true}"#);
    let new = sent(config_maps, r#"{"immutable":true,"data":{},"binaryData":{}}"#);
    let errors = told(config_maps, config_maps.strategy.validate_update(&new, &old, Part::Whole));
    let frozen = |part: &str| format!("{part}: Forbidden: field is immutable when `immutable` is set");
    assert_eq!(errors, [frozen("data"), frozen("binaryData")]);
}

#[test]
fn defaults_spare_what_was_sent_empty() {
    let catalog = Catalog::default();
    let nodes = catalog.resource("", "v1", "nodes").expect("is served");
    let node = sent(nodes, r#"{"status":{"capacity":{"cpu":"1"},"allocatable":{}}}"#);
    assert_eq!(node.at(&["status", "allocatable"]), None);
}
